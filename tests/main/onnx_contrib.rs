//! Ops of com.microsoft, which ONNX's suite lacks, with values of onnxruntime 1.31.1.

use crate::backend::Monopour;
use monopour::onnx::proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use monopour::onnx::{DataType, Model};
use monopour::{CompileOptions, compile_onnx};
use monopour_testkit::approx::{Tolerance, compare};
use monopour_testkit::onnx::{graph, model_of, opset, value, with_float, with_int, with_ints};
use monopour_testkit::{Data, Dtype, HostTensor};
use prost::Message;
use std::path::Path;

mod quantised;

/// A node; its float operands are made by a formula.
struct Case {
    name: &'static str,
    op: &'static str,
    domain: &'static str,
    inputs: &'static [Input],
    attributes: &'static [(&'static str, Attr)],
    /// Number, shape and elements of each result that is wanted.
    outputs: &'static [(usize, &'static [usize], &'static [f64])],
}

enum Input {
    Missing,
    Floats(&'static [usize]),
    Values(&'static [usize], &'static [f64]),
    Ints(Dtype, &'static [usize], &'static [i64]),
}
use Input::{Floats, Ints, Missing};

enum Attr {
    Int(i64),
    Float(f32),
    List(&'static [i64]),
}
use Attr::{Float, Int};

impl Input {
    /// The operand of that number; floats are multiples of 1/8 from -1 to 1.
    fn tensor(&self, number: usize) -> Option<HostTensor> {
        let float = |i: usize| (((i * (2 * number + 3) + number * 5 + 1) % 17) as f64 - 8.0) / 8.0;
        let (dtype, shape, data) = match self {
            Missing => return None,
            Floats(shape) => (Dtype::F32, shape, Data::Float((0..shape.iter().product()).map(float).collect())),
            Input::Values(shape, elements) => (Dtype::F32, shape, Data::Float(elements.to_vec())),
            Ints(dtype, shape, elements) => (*dtype, shape, Data::Int(elements.to_vec())),
        };
        Some(HostTensor { dtype, shape: shape.to_vec(), data })
    }
}

/// Name and type of a value of the graph.
fn info(name: &str, tensor: &HostTensor) -> ValueInfoProto {
    let dtype = match tensor.dtype {
        Dtype::F32 => DataType::F32,
        Dtype::Unsigned(8) => DataType::U8,
        Dtype::Int(8) => DataType::I8,
        Dtype::Int(32) => DataType::I32,
        _ => DataType::I64,
    };
    let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
    value(name, dtype, &shape.iter().map(String::as_str).collect::<Vec<_>>())
}

impl Case {
    fn expected(&self) -> Vec<HostTensor> {
        let tensor = |dtype, shape: &[usize], elements: &[f64]| {
            let data = match dtype {
                Dtype::F32 => Data::Float(elements.to_vec()),
                // As the evaluator holds them.
                Dtype::Unsigned(8) => Data::Int(elements.iter().map(|e| i64::from((*e as u8).cast_signed())).collect()),
                _ => Data::Int(elements.iter().map(|e| *e as i64).collect()),
            };
            HostTensor { dtype, shape: shape.to_vec(), data }
        };
        // Words are counted; quantised results are of their operand's type.
        let dtype = |number| match (self.op, &self.inputs[0]) {
            ("EmbedLayerNormalization", _) if number == 1 => Dtype::Int(32),
            (op, Ints(dtype, ..)) if op.starts_with("QLinear") => *dtype,
            _ => Dtype::F32,
        };
        self.outputs.iter().map(|(number, shape, elements)| tensor(dtype(*number), shape, elements)).collect()
    }

    fn model(&self) -> ModelProto {
        let (mut names, mut inputs) = (vec![], vec![]);
        for (number, input) in self.inputs.iter().enumerate() {
            let tensor = input.tensor(number);
            names.push(tensor.as_ref().map_or(String::new(), |_| format!("x{number}")));
            inputs.extend(tensor.map(|t| info(&format!("x{number}"), &t)));
        }
        let results = self.outputs.last().map_or(0, |(number, ..)| number + 1);
        let is_wanted = |number: usize| self.outputs.iter().any(|(wanted, ..)| *wanted == number);
        let outputs = (0..results).map(|n| if is_wanted(n) { format!("y{n}") } else { String::new() }).collect();
        let node = NodeProto {
            input: names,
            output: outputs,
            op_type: self.op.to_owned(),
            domain: self.domain.to_owned(),
            ..Default::default()
        };
        let node = self.attributes.iter().fold(node, |node, (name, value)| match value {
            Int(i) => with_int(node, name, *i),
            Float(f) => with_float(node, name, *f),
            Attr::List(list) => with_ints(node, name, list),
        });
        let expected = self.expected();
        let output = self.outputs.iter().zip(&expected).map(|((n, ..), t)| info(&format!("y{n}"), t)).collect();
        let graph = GraphProto { name: self.name.to_owned(), output, ..graph(inputs, vec![node], &[]) };
        let mut proto = model_of(graph, 21);
        proto.opset_import.push(opset("com.microsoft", 1));
        proto
    }

    fn check(&self, backend: &Monopour) -> Result<(), String> {
        let bytes = self.model().encode_to_vec();
        let model = Model::from_bytes(&bytes, self.name, Path::new(".")).map_err(|e| e.to_string())?;
        let options = CompileOptions { targets: vec![backend.target().clone()], ..Default::default() };
        let compiled = compile_onnx(&model, &options).map_err(|e| e.to_string())?;
        let inputs: Vec<HostTensor> = self.inputs.iter().enumerate().filter_map(|(n, i)| i.tensor(n)).collect();
        let run = backend.run_program(compiled.program, &inputs)?;
        let expected = self.expected();
        if run.outputs.len() != expected.len() {
            return Err(format!("{} results", run.outputs.len()));
        }
        // The values here have five digits.
        run.outputs.iter().zip(&expected).try_for_each(|(got, want)| compare(got, want, Tolerance::both(2e-4)))
    }
}

fn check_all(backend: &Monopour) {
    let failures: Vec<String> = CASES
        .iter()
        .chain(quantised::CASES)
        .filter_map(|case| case.check(backend).err().map(|why| format!("{}: {why}", case.name)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_ops_are_right_on_the_cpu() {
    check_all(&Monopour::cpu());
}

#[test]
fn the_ops_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check_all(&gpu);
    }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case {
        name: "fused_matmul",
        op: "FusedMatMul",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 3, 2]), Floats(&[2, 4, 3])],
        attributes: &[("transA", Int(1)), ("transB", Int(1)), ("alpha", Float(0.5))],
        outputs: &[(0, &[2, 2, 4], &[0.39844, 0.44531, 0.49219, 0.53906, 0.60938, 0.51562, 0.42188, 0.32812, -0.32812,
            -0.32812, -0.32812, -0.32812, -0.28125, -0.15625, 0.36719, 0.49219])],
    },
    Case {
        name: "gelu",
        op: "Gelu",
        domain: "com.microsoft",
        inputs: &[Floats(&[6])],
        attributes: &[],
        outputs: &[(0, &[6], &[-0.16694, -0.15427, -0.056283, 0.14968, 0.45876, 0.84134])],
    },
    Case {
        name: "bias_gelu",
        op: "BiasGelu",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 3]), Floats(&[3])],
        attributes: &[],
        outputs: &[(0, &[2, 3], &[-0.14658, -0.056283, 0.70806, 0.0, 0.84134, 1.9545])],
    },
    Case {
        name: "fast_gelu",
        op: "FastGelu",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 3]), Floats(&[3])],
        attributes: &[],
        outputs: &[(0, &[2, 3], &[-0.14678, -0.056283, 0.70795, 0.0, 0.84119, 1.9546])],
    },
    Case {
        name: "quick_gelu",
        op: "QuickGelu",
        domain: "com.microsoft",
        inputs: &[Floats(&[6])],
        attributes: &[("alpha", Float(1.5))],
        outputs: &[(0, &[6], &[-0.18556, -0.16041, -0.056658, 0.14817, 0.44912, 0.81757])],
    },
    Case {
        name: "simplified",
        op: "SimplifiedLayerNormalization",
        domain: "",
        inputs: &[Floats(&[2, 4]), Floats(&[4])],
        attributes: &[("epsilon", Float(0.001)), ("axis", Int(-1))],
        outputs: &[(0, &[2, 4], &[0.41757, -0.35791, -0.23861, -0.23861, -0.21576, 0.51783, -1.0357, 0.25891])],
    },
    Case {
        name: "skip",
        op: "SkipLayerNormalization",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 2, 4]), Floats(&[1, 2, 4]), Floats(&[4]), Floats(&[4]), Floats(&[4])],
        attributes: &[("epsilon", Float(0.001))],
        outputs: &[(0, &[1, 2, 4], &[0.50954, -0.74635, -1.0, -0.42232, 1.0369, -1.3953, -1.0, -0.54683]), (3, &[1, 2,
            4], &[-1.625, 0.75, 1.0, -0.875, 0.25, 2.625, -1.375, -1.125])],
    },
    Case {
        name: "skip_broadcast",
        op: "SkipLayerNormalization",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 1, 4]), Floats(&[1, 4]), Floats(&[4]), Floats(&[4])],
        attributes: &[("epsilon", Float(0.001))],
        outputs: &[(0, &[2, 1, 4], &[0.48825, -0.038519, -1.0, 0.0094435, 1.0441, -1.1993, -1.0, -1.1429])],
    },
    Case {
        name: "skip_simplified",
        op: "SkipSimplifiedLayerNormalization",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 2, 4]), Floats(&[1, 2, 4]), Floats(&[4])],
        attributes: &[("epsilon", Float(0.001))],
        outputs: &[(0, &[1, 2, 4], &[-0.5804, 0.15047, 0.0, -0.30095, 0.22721, -1.237, -0.0, -0.35344]), (3, &[1, 2,
            4], &[-1.125, -0.125, 0.875, -0.25, 0.75, 1.75, -1.5, -0.5])],
    },
    Case {
        name: "embed",
        op: "EmbedLayerNormalization",
        domain: "com.microsoft",
        inputs: &[Ints(Dtype::Int(32), &[2, 2], &[1, 0, 3, 2]), Ints(Dtype::Int(32), &[2, 2], &[0, 1, 1, 0]),
            Floats(&[4, 4]), Floats(&[3, 4]), Floats(&[2, 4]), Floats(&[4]), Floats(&[4]), Ints(Dtype::Int(32), &[2,
            2], &[1, 1, 1, 0])],
        attributes: &[("epsilon", Float(0.001))],
        outputs: &[(0, &[2, 2, 4], &[0.77905, -0.022888, 1.4701, -0.1743, 0.77505, 0.68791, 1.3023, 1.1275, 0.8911,
            0.76545, 1.3381, 0.617, 0.69511, -0.067226, 0.12192, -0.91488]), (1, &[2], &[2.0, 1.0])],
    },
    Case {
        name: "rotary_offset",
        op: "RotaryEmbedding",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 2, 8]), Ints(Dtype::Int(64), &[1], &[1]), Floats(&[4, 2]), Floats(&[4, 2])],
        attributes: &[],
        outputs: &[(0, &[1, 2, 8], &[-0.125, -0.46875, 0.875, 0.15625, -0.75, 0.92188, -0.625, -0.20312, 0.65625,
            0.4375, -0.28125, -0.40625, 0.34375, -0.25, 0.5, 0.1875])],
    },
    Case {
        name: "rotary_interleaved",
        op: "RotaryEmbedding",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 2, 1, 4]), Ints(Dtype::Int(64), &[2, 1], &[2, 0]), Floats(&[4, 2]), Floats(&[4, 2])],
        attributes: &[("interleaved", Int(1))],
        outputs: &[(0, &[2, 2, 1, 4], &[-0.10938, 0.95312, -0.125, 0.09375, 0.64062, -0.92188, -0.28125, -0.375,
            -0.375, 0.14062, -0.65625, 0.875, 0.015625, -0.71875, -0.10938, -0.4375])],
    },
    Case {
        name: "attention",
        op: "Attention",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 2, 4]), Floats(&[4, 12]), Floats(&[12]), Ints(Dtype::Int(32), &[2, 2], &[1, 1, 1, 0])],
        attributes: &[("num_heads", Int(2))],
        outputs: &[(0, &[2, 2, 4], &[0.58004, 0.37692, 0.97835, -1.1908, 0.59069, 0.43978, 0.95935, -1.1252, 1.6562,
            -1.1094, -0.15625, 0.0, 1.6562, -1.1094, -0.15625, 0.0]), (1, &[2, 2, 2, 2, 2], &[-0.26562, -0.17188,
            -1.0781, 0.10938, -0.078125, -0.51562, -0.5625, 1.4219, 0.23438, 1.1875, -0.57812, 0.14062, -1.5781, 1.5,
            -0.20312, -0.54688, 0.64062, 0.73438, 0.48438, -0.1875, 0.82812, -0.67188, 1.0, -1.2656, 1.6562, -1.1094,
            0.70312, 0.35938, -0.15625, 0.0, 1.0781, -0.85938])],
    },
    Case {
        name: "attention_past",
        op: "Attention",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 2, 4]), Floats(&[4, 12]), Floats(&[12]), Missing, Floats(&[2, 1, 2, 1, 2])],
        attributes: &[("num_heads", Int(2)), ("unidirectional", Int(1))],
        outputs: &[(0, &[1, 2, 4], &[0.67296, 0.51724, 0.1172, -0.087649, 0.61756, 0.36562, 0.60547, -0.76286]), (1,
            &[2, 1, 2, 3, 2], &[-0.5, 0.875, -0.26562, -0.17188, -1.0781, 0.10938, 0.125, -0.625, -0.078125, -0.51562,
            -0.5625, 1.4219, 0.75, 0.0, 0.64062, 0.73438, 0.48438, -0.1875, -0.75, 0.625, 0.82812, -0.67188, 1.0,
            -1.2656])],
    },
    Case {
        name: "attention_lengths",
        op: "Attention",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 3, 4]), Floats(&[4, 12]), Floats(&[12]), Ints(Dtype::Int(32), &[2], &[2, 3])],
        attributes: &[("num_heads", Int(1))],
        outputs: &[(0, &[2, 3, 4], &[0.52497, 0.052027, 0.95534, -1.1114, 0.55109, 0.20609, 0.92662, -1.0121, 0.54658,
            0.17951, 0.93157, -1.0292, 1.526, -1.035, 0.16249, -0.22801, 1.0388, -0.16861, 0.6562, -0.56615, 1.4488,
            -0.83889, 0.17088, -0.23012])],
    },
    Case {
        name: "multi_head",
        op: "MultiHeadAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 2, 4]), Floats(&[1, 3, 4]), Floats(&[1, 3, 4]), Floats(&[12]), Missing, Floats(&[1, 2,
            2, 3])],
        attributes: &[("num_heads", Int(2))],
        outputs: &[(0, &[1, 2, 4], &[-0.25565, 0.15259, -0.78498, 0.52967, -0.52752, 0.3629, -0.23328, 0.25132])],
    },
    Case {
        name: "multi_head_past",
        op: "MultiHeadAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 1, 4]), Floats(&[1, 1, 4]), Floats(&[1, 1, 4]), Missing, Missing, Missing, Floats(&[1,
            2, 2, 2]), Floats(&[1, 2, 2, 2])],
        attributes: &[("num_heads", Int(2)), ("scale", Float(0.5))],
        outputs: &[(0, &[1, 1, 4], &[-0.30149, -0.79984, -0.51033, -0.23071]), (1, &[1, 2, 3, 2], &[0.75, 0.5, 0.25,
            0.0, -0.25, 0.375, -0.25, -0.5, -0.75, -1.0, 1.0, -0.5]), (2, &[1, 2, 3, 2], &[-0.75, -0.75, -0.75, -0.75,
            0.375, -0.875, -0.75, -0.75, -0.75, -0.75, 0.0, 0.875])],
    },
    Case {
        name: "multi_head_padding",
        op: "MultiHeadAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 1, 4]), Floats(&[2, 3, 4]), Floats(&[2, 3, 4]), Missing, Ints(Dtype::Int(32), &[2, 3],
            &[1, 1, 0, 1, 1, 1])],
        attributes: &[("num_heads", Int(2))],
        outputs: &[(0, &[2, 1, 4], &[0.067615, -0.31146, -0.41626, 0.45874, 0.30038, -0.44379, -0.10726, 0.0090246])],
    },
    Case {
        name: "group_query",
        op: "GroupQueryAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 2, 32]), Floats(&[1, 2, 16]), Floats(&[1, 2, 16]), Missing, Missing,
            Ints(Dtype::Int(32), &[1], &[1]), Ints(Dtype::Int(32), &[1], &[2])],
        attributes: &[("num_heads", Int(4)), ("kv_num_heads", Int(2))],
        outputs: &[(0, &[1, 2, 32], &[0.375, -0.875, 0.0, 0.875, -0.375, 0.5, -0.75, 0.125, 0.375, -0.875, 0.0, 0.875,
            -0.375, 0.5, -0.75, 0.125, 1.0, -0.25, 0.625, -0.625, 0.25, -1.0, -0.125, 0.75, 1.0, -0.25, 0.625, -0.625,
            0.25, -1.0, -0.125, 0.75, 0.0010934, -0.34085, -0.37391, 0.50109, 0.15915, 0.12609, -0.21585, -0.24891,
            -0.11184, -0.17952, -0.48684, 0.38816, 0.32048, 0.013165, -0.054521, -0.36184, 0.54318, 0.4026, 0.16818,
            0.027603, -0.20682, -0.3474, -0.58182, 0.29318, 0.53234, 0.41809, 0.15734, 0.04309, -0.21766, -0.33191,
            -0.59266, 0.28234]), (1, &[1, 2, 2, 8], &[-0.25, 0.375, 1.0, -0.5, 0.125, 0.75, -0.75, -0.125, -0.875,
            -0.25, 0.375, 1.0, -0.5, 0.125, 0.75, -0.75, 0.5, -1.0, -0.375, 0.25, 0.875, -0.625, 0.0, 0.625, -0.125,
            0.5, -1.0, -0.375, 0.25, 0.875, -0.625, 0.0]), (2, &[1, 2, 2, 8], &[0.375, -0.875, 0.0, 0.875, -0.375,
            0.5, -0.75, 0.125, -0.5, 0.375, -0.875, 0.0, 0.875, -0.375, 0.5, -0.75, 1.0, -0.25, 0.625, -0.625, 0.25,
            -1.0, -0.125, 0.75, 0.125, 1.0, -0.25, 0.625, -0.625, 0.25, -1.0, -0.125])],
    },
    Case {
        name: "group_query_decode",
        op: "GroupQueryAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 1, 32]), Floats(&[2, 1, 16]), Floats(&[2, 1, 16]), Floats(&[2, 1, 2, 16]), Floats(&[2,
            1, 2, 16]), Ints(Dtype::Int(32), &[2], &[2, 2]), Ints(Dtype::Int(32), &[1], &[3]), Floats(&[4, 8]),
            Floats(&[4, 8])],
        attributes: &[("num_heads", Int(2)), ("kv_num_heads", Int(1)), ("do_rotary", Int(1))],
        outputs: &[(0, &[2, 1, 32], &[0.040657, -0.16959, 0.29958, 0.14445, -0.065793, 0.40338, -0.52966, 0.038003, 0.50717, -0.42586, 0.1418, -0.16694, -0.32207, -0.53231, -0.063139, 0.50452, -0.018214, -0.046478, 0.34482, 0.020513, -0.0077506, 0.38355, -0.49743, 0.030976, 0.42228, -0.4587, 0.069703, -0.095668, -0.41998, -0.44824, -0.056941, 0.47147, 0.27359, 0.48623, -0.37917, 0.29285, 0.50548, -0.35992, 0.3121, 0.034277, -0.34066, 0.33135, 0.05353, -0.32141, -0.13985, 0.072783, -0.79262, -0.1206, -0.038745, 0.57685, -0.34608, 0.052414, 0.66801, -0.25492, 0.14357, 0.024228, -0.16376, 0.23473, 0.11539, -0.072603, -0.40905, 0.20654, -0.71638, -0.31789])],
    },
    Case {
        name: "group_query_packed",
        op: "GroupQueryAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 3, 32]), Missing, Missing, Missing, Missing, Ints(Dtype::Int(32), &[1], &[2]),
            Ints(Dtype::Int(32), &[1], &[3])],
        attributes: &[("num_heads", Int(2)), ("kv_num_heads", Int(1)), ("local_window_size", Int(2))],
        outputs: &[(0, &[1, 3, 16], &[-0.375, 0.0, 0.375, 0.75, -1.0, -0.625, -0.25, 0.125, -0.375, 0.0, 0.375, 0.75,
            -1.0, -0.625, -0.25, 0.125, 0.41057, -0.42849, -0.053494, 0.32151, -0.21443, 0.16057, -0.67849, -0.30349,
            0.32199, -0.38018, -0.0051787, 0.36982, -0.30301, 0.071994, -0.63018, -0.25518, 0.625, -0.0625, 0.3125,
            -0.375, 0.0, 0.375, -0.3125, 0.0625, 0.70753, -0.2138, 0.1612, -0.29247, 0.082527, 0.45753, -0.4638,
            -0.0888])],
    },
    Case {
        name: "lstm_input_forget",
        op: "LSTM",
        domain: "",
        inputs: &[Floats(&[3, 2, 2]), Floats(&[1, 12, 2]), Floats(&[1, 12, 3]), Floats(&[1, 24])],
        attributes: &[("hidden_size", Int(3)), ("input_forget", Int(1))],
        outputs: &[(0, &[3, 1, 2, 3], &[-0.42412, 0.018562, -0.046797, -0.085528, -0.020396, -0.077575, 0.097636,
            -0.00083593, -0.070071, -0.43019, 0.0026309, -0.10252, 0.056726, -0.045314, -0.13229, -0.41534, -0.17136,
            0.018746]), (1, &[1, 2, 3], &[0.056726, -0.045314, -0.13229, -0.41534, -0.17136, 0.018746]), (2, &[1, 2,
            3], &[0.078348, -0.22212, -0.16673, -0.71588, -0.31081, 0.031883])],
    },
    Case {
        name: "lstm_input_forget_peepholes",
        op: "LSTM",
        domain: "",
        inputs: &[Floats(&[3, 2, 2]), Floats(&[1, 12, 2]), Floats(&[1, 12, 3]), Floats(&[1, 24]), Missing, Missing,
            Missing, Floats(&[1, 9])],
        attributes: &[("hidden_size", Int(3)), ("input_forget", Int(1))],
        outputs: &[(0, &[3, 1, 2, 3], &[-0.44708, 0.017908, -0.047176, -0.087392, -0.021583, -0.078713, 0.13808,
            0.0013452, -0.068171, -0.46439, 0.0037428, -0.10593, 0.088607, -0.056845, -0.13925, -0.50428, -0.17172,
            0.027602]), (1, &[1, 2, 3], &[0.088607, -0.056845, -0.13925, -0.50428, -0.17172, 0.027602]), (2, &[1, 2,
            3], &[0.12651, -0.24136, -0.17047, -0.75755, -0.28522, 0.048237])],
    },
    // Not by onnxruntime, which has no packed operands on a CPU: by the definition, in f64.
    Case {
        name: "multi_head_packed",
        op: "MultiHeadAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 3, 2, 3, 2])],
        attributes: &[("num_heads", Int(2))],
        outputs: &[(0, &[1, 3, 4], &[0.29018, -0.029412, 0.39406, -0.78293, 0.24731, -0.080406, 0.34995, -0.76838,
            0.20203, -0.13027, 0.30358, -0.75368]), (1, &[1, 2, 3, 2], &[-0.125, 0.25, 0.125, 0.5, 0.375, 0.75, 0.0,
            0.375, 0.25, 0.625, 0.5, 0.875]), (2, &[1, 2, 3, 2], &[0.625, 1.0, 0.875, -0.875, -1.0, -0.625, 0.75,
            -1.0, 1.0, -0.75, -0.875, -0.5])],
    },
    Case {
        name: "multi_head_packed_keys",
        op: "MultiHeadAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 2, 4]), Floats(&[1, 3, 2, 2, 2])],
        attributes: &[("num_heads", Int(2))],
        outputs: &[(0, &[1, 2, 4], &[0.33826, 0.41253, -0.015039, -0.14029, 0.4891, 0.059253, 0.13376, -0.20862])],
    },
    Case {
        name: "multi_head_keys_by_heads",
        op: "MultiHeadAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 2, 4]), Floats(&[1, 2, 3, 2]), Floats(&[1, 2, 3, 2]), Floats(&[12])],
        attributes: &[("num_heads", Int(2))],
        outputs: &[(0, &[1, 2, 4], &[0.010357, 0.26529, 0.026329, -0.21799, -0.071561, 0.40028, -0.07278, -0.16598])],
    },
    Case {
        name: "group_query_shared_buffer",
        op: "GroupQueryAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[2, 1, 16]), Floats(&[2, 1, 8]), Floats(&[2, 1, 8]), Floats(&[2, 1, 4, 8]), Floats(&[2, 1,
            4, 8]), Ints(Dtype::Int(32), &[2], &[2, 1]), Ints(Dtype::Int(32), &[1], &[3])],
        attributes: &[("num_heads", Int(2)), ("kv_num_heads", Int(1))],
        outputs: &[(0, &[2, 1, 16], &[0.0001077, -0.49358, 0.21143, 0.13366, -0.36003, 0.34498, -0.61186, 0.5563,
            -0.010061, -0.381, 0.17334, 0.14094, -0.23, 0.32434, -0.64646, 0.50775, 1.0, -0.072441, 0.22549,
            -0.092324, 0.20561, -0.86683, 0.18573, 0.48366, 1.0, 0.075591, -0.10758, 0.35177, 0.1686, -0.75581,
            0.44479, 0.26161]), (1, &[2, 1, 4, 8], &[1.0, 0.0, -1.0, 0.125, -0.875, 0.25, -0.75, 0.375, -0.625, 0.5,
            -0.5, 0.625, -0.375, 0.75, -0.25, 0.875, -0.25, 0.375, 1.0, -0.5, 0.125, 0.75, -0.75, -0.125, 0.375,
            -0.625, 0.5, -0.5, 0.625, -0.375, 0.75, -0.25, 0.875, -0.125, 1.0, 0.0, -1.0, 0.125, -0.875, 0.25, 0.5,
            -1.0, -0.375, 0.25, 0.875, -0.625, 0.0, 0.625, -0.25, 0.875, -0.125, 1.0, 0.0, -1.0, 0.125, -0.875, 0.25,
            -0.75, 0.375, -0.625, 0.5, -0.5, 0.625, -0.375]), (2, &[2, 1, 4, 8], &[-0.5, 0.875, 0.125, -0.625, 0.75,
            0.0, -0.75, 0.625, -0.125, -0.875, 0.5, -0.25, -1.0, 0.375, -0.375, 1.0, 0.375, -0.875, 0.0, 0.875,
            -0.375, 0.5, -0.75, 0.125, 0.625, -0.125, -0.875, 0.5, -0.25, -1.0, 0.375, -0.375, 1.0, 0.25, -0.5, 0.875,
            0.125, -0.625, 0.75, 0.0, 1.0, -0.25, 0.625, -0.625, 0.25, -1.0, -0.125, 0.75, -0.375, 1.0, 0.25, -0.5,
            0.875, 0.125, -0.625, 0.75, 0.0, -0.75, 0.625, -0.125, -0.875, 0.5, -0.25, -1.0])],
    },
    Case {
        name: "group_query_shared_buffer_chunk",
        op: "GroupQueryAttention",
        domain: "com.microsoft",
        inputs: &[Floats(&[1, 2, 16]), Floats(&[1, 2, 8]), Floats(&[1, 2, 8]), Floats(&[1, 1, 6, 8]), Floats(&[1, 1,
            6, 8]), Ints(Dtype::Int(32), &[1], &[3]), Ints(Dtype::Int(32), &[1], &[4])],
        attributes: &[("num_heads", Int(2)), ("kv_num_heads", Int(1))],
        outputs: &[(0, &[1, 2, 16], &[0.0001077, -0.49358, 0.21143, 0.13366, -0.36003, 0.34498, -0.61186, 0.5563,
            -0.010061, -0.381, 0.17334, 0.14094, -0.23, 0.32434, -0.64646, 0.50775, 0.25847, -0.1348, 0.34486,
            -0.29367, 0.076841, -0.20729, -0.46282, 0.64287, 0.11052, -0.26922, 0.31308, -0.18195, -0.1302, 0.020605,
            -0.50912, 0.65466]), (1, &[1, 1, 6, 8], &[1.0, 0.0, -1.0, 0.125, -0.875, 0.25, -0.75, 0.375, -0.625, 0.5,
            -0.5, 0.625, -0.375, 0.75, -0.25, 0.875, -0.25, 0.375, 1.0, -0.5, 0.125, 0.75, -0.75, -0.125, 0.5, -1.0,
            -0.375, 0.25, 0.875, -0.625, 0.0, 0.625, 0.875, -0.125, 1.0, 0.0, -1.0, 0.125, -0.875, 0.25, -0.75, 0.375,
            -0.625, 0.5, -0.5, 0.625, -0.375, 0.75]), (2, &[1, 1, 6, 8], &[-0.5, 0.875, 0.125, -0.625, 0.75, 0.0,
            -0.75, 0.625, -0.125, -0.875, 0.5, -0.25, -1.0, 0.375, -0.375, 1.0, 0.375, -0.875, 0.0, 0.875, -0.375,
            0.5, -0.75, 0.125, 1.0, -0.25, 0.625, -0.625, 0.25, -1.0, -0.125, 0.75, 1.0, 0.25, -0.5, 0.875, 0.125,
            -0.625, 0.75, 0.0, -0.75, 0.625, -0.125, -0.875, 0.5, -0.25, -1.0, 0.375])],
    },
];
