//! Builder of programs as text, for the op suite, the random graphs and the benchmark programs.

use crate::host_tensor::{Data, Dtype, HostTensor};
use monopour_ir::ops;
use std::fmt::Write;

/// An SSA value of a program under construction.
#[derive(Clone, Debug)]
pub struct Value {
    /// With its percent sign.
    pub name: String,
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions; `None` is a scalar.
    pub dims: Option<Vec<usize>>,
}

impl Value {
    /// Dimensions; none for a scalar.
    pub fn shape(&self) -> &[usize] {
        self.dims.as_deref().unwrap_or_default()
    }
    /// The type in MLIR's spelling.
    pub fn ty(&self) -> String {
        match &self.dims {
            Some(shape) => tensor(self.dtype, shape),
            None => self.dtype.to_string(),
        }
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Type and range of an input of a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions; empty for a scalar.
    pub shape: Vec<usize>,
    /// Least value.
    pub low: f64,
    /// Upper end of the values: excluded for integers.
    pub high: f64,
    /// Whether special values are among them: see [`HostTensor::with_specials`].
    pub special: bool,
    /// Whether floats are multiples of one half.
    pub halves: bool,
}

impl Input {
    /// The usual range: [-1, 1) for floats, [-8, 8) for integers, both values of `i1`.
    pub fn new(dtype: Dtype, shape: &[usize]) -> Self {
        let (low, high) = match dtype {
            Dtype::Int(1) => (0.0, 2.0),
            Dtype::Int(_) | Dtype::Index => (-8.0, 8.0),
            // Half of the numbers are small, half have the highest bit set.
            Dtype::Unsigned(_) => (-8.0, 8.0),
            _ => (-1.0, 1.0),
        };
        Self { dtype, shape: shape.to_vec(), low, high, special: false, halves: false }
    }
    /// Another range.
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { low, high, ..self }
    }
    /// With special values.
    pub fn special(self) -> Self {
        Self { special: true, ..self }
    }
    /// With floats that are multiples of one half.
    pub fn in_halves(self) -> Self {
        Self { halves: true, ..self }
    }
    /// Values drawn from the range by a seeded generator; floats are values of their type.
    pub fn values(&self, seed: u64) -> HostTensor {
        let mut values = HostTensor::random_within(self.dtype, &self.shape, self.low, self.high, seed);
        if let (true, Data::Float(floats)) = (self.halves, &mut values.data) {
            floats.iter_mut().for_each(|v| *v = (*v * 2.0).round() / 2.0);
        }
        if self.special { values.with_specials(seed) } else { values }
    }
}

/// `tensor<4x5xf32>`.
pub fn tensor(dtype: Dtype, shape: &[usize]) -> String {
    let dims: String = shape.iter().map(|d| format!("{d}x")).collect();
    format!("tensor<{dims}{dtype}>")
}

/// A list of integers with commas.
pub fn list(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A function `main` under construction.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Each declaration, with its range.
    inputs: Vec<(String, Input)>,
    body: String,
    next: usize,
    work: u64,
}

impl Program {
    /// An empty function.
    pub fn new() -> Self {
        Self::default()
    }

    /// An input of the usual range.
    pub fn input(&mut self, dtype: Dtype, shape: &[usize]) -> Value {
        self.input_of(Input::new(dtype, shape), true)
    }
    /// An `f32` input of the usual range.
    pub fn f32(&mut self, shape: &[usize]) -> Value {
        self.input(Dtype::F32, shape)
    }
    /// An input of a range.
    pub fn input_within(&mut self, dtype: Dtype, shape: &[usize], low: f64, high: f64) -> Value {
        self.input_of(Input::new(dtype, shape).within(low, high), true)
    }
    /// A scalar input of a range.
    pub fn scalar(&mut self, dtype: Dtype, low: f64, high: f64) -> Value {
        self.input_of(Input::new(dtype, &[]).within(low, high), false)
    }
    /// A tensor input.
    pub fn input_from(&mut self, input: Input) -> Value {
        self.input_of(input, true)
    }
    fn input_of(&mut self, input: Input, is_tensor: bool) -> Value {
        let dims = is_tensor.then(|| input.shape.clone());
        let value = Value { name: format!("%arg{}", self.inputs.len()), dtype: input.dtype, dims };
        self.inputs.push((format!("{}: {}", value.name, value.ty()), input));
        value
    }
    /// A tensor input of a declared type, such as `tensor<?x4xf32>`; returns its name.
    pub fn input_declared(&mut self, ty: &str, input: Input) -> String {
        let name = format!("%arg{}", self.inputs.len());
        self.inputs.push((format!("{name}: {ty}"), input));
        name
    }

    /// Appends lines of text.
    pub fn raw(&mut self, text: &str) {
        let _ = writeln!(self.body, "  {text}");
    }
    /// A fresh name.
    pub fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next - 1)
    }
    /// `%v = text`, a tensor.
    pub fn op(&mut self, dtype: Dtype, shape: &[usize], text: &str) -> Value {
        let name = self.fresh();
        let _ = writeln!(self.body, "  {name} = {text}");
        Value { name, dtype, dims: Some(shape.to_vec()) }
    }
    /// `%v = text`, a scalar.
    pub fn scalar_op(&mut self, dtype: Dtype, text: &str) -> Value {
        let value = self.op(dtype, &[], text);
        Value { dims: None, ..value }
    }
    /// A scalar constant.
    pub fn constant(&mut self, dtype: Dtype, literal: &str) -> Value {
        let text = match dtype {
            Dtype::Int(1) => format!("arith.constant {}", if literal == "0" { "false" } else { "true" }),
            _ => format!("arith.constant {literal} : {dtype}"),
        };
        self.scalar_op(dtype, &text)
    }
    /// An index constant.
    pub fn index(&mut self, value: usize) -> Value {
        self.constant(Dtype::Index, &value.to_string())
    }
    /// `tensor.empty`.
    pub fn empty(&mut self, dtype: Dtype, shape: &[usize]) -> Value {
        let ty = tensor(dtype, shape);
        self.op(dtype, shape, &format!("tensor.empty() : {ty}"))
    }
    /// A tensor of one value.
    pub fn fill(&mut self, dtype: Dtype, shape: &[usize], literal: &str) -> Value {
        let (value, out) = (self.constant(dtype, literal), self.empty(dtype, shape));
        self.named(ops::linalg::FILL, &[&value], &out)
    }
    /// A tensor of zeros.
    pub fn zeros(&mut self, dtype: Dtype, shape: &[usize]) -> Value {
        self.fill(dtype, shape, if dtype.is_float() { "0.0" } else { "0" })
    }

    /// A named linalg op; `name` may end in attributes.
    pub fn named(&mut self, name: &str, ins: &[&Value], out: &Value) -> Value {
        let (names, types) = name_list(ins);
        self.work += (ins.iter().map(|v| v.len()).max().unwrap_or(0).max(out.len())) as u64;
        let text = format!("{name} ins({names} : {types}) outs({} : {}) -> {}", out.name, out.ty(), out.ty());
        self.op(out.dtype, out.shape(), &text)
    }
    /// As [`Program::named`], for the ops that print no result type.
    pub fn named_untyped(&mut self, name: &str, ins: &[&Value], out: &Value, tail: &str) -> Value {
        let (names, types) = name_list(ins);
        self.work += (ins.iter().map(|v| v.len()).max().unwrap_or(0).max(out.len())) as u64;
        let text = format!("{name} ins({names} : {types}) outs({} : {}) {tail}", out.name, out.ty());
        self.op(out.dtype, out.shape(), &text)
    }

    /// `linalg.generic` of one result. `loops` names the dimensions, `!` after a reduction; an operand comes with the
    /// results of its map. The body has lines separated by `;`, arguments `%a, %b, ..` and `%o`, and yields `%s`.
    pub fn generic(&mut self, loops: &str, ins: &[(&Value, &str)], out: (&Value, &str), body: &str) -> Value {
        self.generics(loops, ins, &[out], body, "%s").remove(0)
    }
    /// A pointwise generic with implicit maps: operands have the result's dimensions, or the last ones of them.
    pub fn pointwise(&mut self, dtype: Dtype, ins: &[&Value], body: &str) -> Value {
        let shape = ins.iter().map(|v| v.shape()).max_by_key(|s| s.len()).unwrap_or_default().to_vec();
        let dims: Vec<_> = (0..shape.len()).map(|d| format!("d{d}")).collect();
        let maps: Vec<_> = ins.iter().map(|v| dims[shape.len() - v.shape().len()..].join(", ")).collect();
        let operands: Vec<_> = ins.iter().zip(&maps).map(|(v, m)| (*v, m.as_str())).collect();
        let out = self.empty(dtype, &shape);
        self.generic(&dims.join(" "), &operands, (&out, &dims.join(", ")), body)
    }
    /// `linalg.generic` of several results, which share their map's dimensions.
    pub fn generics(
        &mut self,
        loops: &str,
        ins: &[(&Value, &str)],
        outs: &[(&Value, &str)],
        body: &str,
        yields: &str,
    ) -> Vec<Value> {
        let dims: Vec<_> = loops.split_whitespace().map(|d| d.trim_end_matches('!')).collect();
        let iterators: Vec<_> =
            loops.split_whitespace().map(|d| if d.ends_with('!') { "\"reduction\"" } else { "\"parallel\"" }).collect();
        let maps: Vec<_> = ins
            .iter()
            .chain(outs)
            .map(|(_, results)| format!("affine_map<({}) -> ({results})>", dims.join(", ")))
            .collect();
        let mut args: Vec<_> = ins.iter().zip('a'..).map(|((v, _), n)| format!("%{n}: {}", v.dtype)).collect();
        let out_names = ["%o", "%oo", "%ooo"];
        args.extend(outs.iter().zip(out_names).map(|((v, _), n)| format!("{n}: {}", v.dtype)));
        self.work += iterations(&dims, ins.iter().chain(outs));
        let (names, types) = name_list(&ins.iter().map(|(v, _)| *v).collect::<Vec<_>>());
        let inputs = if ins.is_empty() { String::new() } else { format!(" ins({names} : {types})") };
        let (out_values, out_types) = name_list(&outs.iter().map(|(v, _)| *v).collect::<Vec<_>>());
        let element_types = outs.iter().map(|(v, _)| v.dtype.to_string()).collect::<Vec<_>>().join(", ");
        let lines: String = body.split(';').map(|l| format!("    {}\n", l.trim())).collect();
        let name = self.fresh();
        let several = if outs.len() == 1 { String::new() } else { format!(":{}", outs.len()) };
        let results = if outs.len() == 1 { out_types.clone() } else { format!("({out_types})") };
        let _ = writeln!(
            self.body,
            "  {name}{several} = linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}}{inputs} outs({out_values} : {out_types}) {{\n  \
             ^bb0({}):\n{lines}    linalg.yield {yields} : {element_types}\n  }} -> {results}",
            maps.join(", "),
            iterators.join(", "),
            args.join(", "),
        );
        let result = |(i, (v, _)): (usize, &(&Value, &str))| {
            let name = if outs.len() == 1 { name.clone() } else { format!("{name}#{i}") };
            Value { name, ..(*v).clone() }
        };
        outs.iter().enumerate().map(result).collect()
    }

    /// Innermost iterations so far, roughly.
    pub fn work(&self) -> u64 {
        self.work
    }
    /// Counts iterations that the program's text does not show.
    pub fn add_work(&mut self, iterations: usize) {
        self.work += iterations as u64;
    }

    /// The function's text, and its inputs.
    pub fn finish(self, results: &[&Value]) -> (String, Vec<Input>) {
        let results: Vec<_> = results.iter().map(|v| (v.name.clone(), v.ty())).collect();
        self.finish_with(&results)
    }
    /// As [`Program::finish`], of results by name and type.
    pub fn finish_with(self, results: &[(String, String)]) -> (String, Vec<Input>) {
        let (names, types): (Vec<_>, Vec<_>) = results.iter().cloned().unzip();
        let (names, types) = (names.join(", "), types.join(", "));
        let (arguments, inputs): (Vec<_>, Vec<_>) = self.inputs.into_iter().unzip();
        let text = format!(
            "func.func @main({}) -> ({types}) {{\n{}  return {names} : {types}\n}}\n",
            arguments.join(", "),
            self.body
        );
        (text, inputs)
    }
}

fn name_list(values: &[&Value]) -> (String, String) {
    let names: Vec<_> = values.iter().map(|v| v.name.clone()).collect();
    let types: Vec<_> = values.iter().map(|v| v.ty()).collect();
    (names.join(", "), types.join(", "))
}

/// The product of the ranges of dimensions that some operand indexes alone.
fn iterations<'a>(dims: &[&str], operands: impl Iterator<Item = &'a (&'a Value, &'a str)> + Clone) -> u64 {
    let range = |dim: &&str| {
        operands
            .clone()
            .find_map(|(v, map)| map.split(", ").position(|r| r == *dim).and_then(|at| v.shape().get(at).copied()))
    };
    dims.iter().map(|d| range(d).unwrap_or(1) as u64).product()
}
