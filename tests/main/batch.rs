//! Many small functions on memrefs as one CPU program, so that compiling and loading are paid once.
//!
//! Each function becomes a kernel that works on copies of its arguments and hands out, besides its results, what those
//! arguments hold at the end that it must not write. Allocations come from one arena and are not freed, which is tested elsewhere.

use monopour::program::{
    Constant, CpuTarget, DType, Kernel, MemoryPlan, Program, Signature, Target, TensorDesc, Variant,
};
use monopour::runtime::{Device, DeviceChoice, HostTensor, Options, Session};
use monopour_codegen_cpu::object;
use monopour_ir::{Attr, Context, Diagnostics, InsertionPoint, Module, OpSpec, Rewriter, Type, Value, run_passes};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that all allocations of one call take together at most.
const ARENA_BYTES: i64 = 1 << 22;
/// Bytes that are kept for one allocation.
const SLOT_BYTES: i64 = 1 << 10;
/// Value of every `index` argument.
const INDEX_ARGUMENT: i64 = 2;
/// Value of every float argument.
const FLOAT_ARGUMENT: f32 = 0.625;

/// What a function left behind: its results, then the final contents of the arguments that it must not write.
pub type Outcome = Vec<Vec<u8>>;

/// Functions that wait to be run.
#[derive(Default)]
pub struct Batch {
    text: String,
    host: String,
    inputs: Vec<TensorDesc>,
    /// What each input holds.
    values: Vec<HostTensor>,
    results: Vec<TensorDesc>,
    /// Results of each function.
    functions: Vec<Range<usize>>,
}

impl Batch {
    /// Adds `@main` of a bufferized module, and returns its number. `frozen`: which arguments it must not write.
    pub fn add(&mut self, module: &Module, frozen: &[bool]) -> Result<usize, String> {
        let number = self.functions.len();
        let main = module.symbol("main").ok_or("there is no @main")?;
        let (arguments, results) = main.function_type().ok_or("@main has no type")?;
        let wrapper = Wrapper::new(&arguments, &results, frozen)?;
        let mut text: String = module.body().ops().iter().map(|op| format!("{op}\n")).collect();
        text = text.replacen("func.func @main", "func.func private @main", 1);
        text.push_str(&wrapper.text);
        let whole =
            Module::parse(module.context(), text.as_bytes(), "batch.mlir").map_err(|d| format!("{d}\n{text}"))?;
        run_passes(whole.op(), "builtin.module(func.func(scf-forall-to-for),inline{default-pipeline=},symbol-dce)")
            .map_err(|d| d.to_string())?;
        allocate_from_arena(&whole).map_err(|d| d.to_string())?;
        let inlined: String = whole.body().ops().iter().map(|op| format!("{op}\n")).collect();
        // A constant that a wrong decision overwrites must not take the process down.
        let inlined = inlined.replace("memref.global \"private\" constant", "memref.global \"private\"");
        self.text.push_str(&inlined.replace('@', &format!("@f{number}_")));
        let first = self.results.len();
        self.dispatch(number, &wrapper);
        self.functions.push(first..self.results.len());
        Ok(number)
    }

    fn dispatch(&mut self, number: usize, wrapper: &Wrapper) {
        let mut line = |text: String| self.host.push_str(&text);
        for (position, desc) in wrapper.inputs.iter().enumerate() {
            let (i, bytes) = (self.inputs.len(), desc.size_bytes());
            line(format!("  %i{i} = arith.constant {i} : i64\n  %ib{i} = arith.constant {bytes} : i64\n"));
            line(format!("  %ih{i} = func.call @monopour_rt_input(%cx, %i{i}) : (i64, i64) -> i64\n"));
            line(format!("  func.call @monopour_rt_arg(%cx, %ih{i}, %zero, %ib{i}) : (i64, i64, i64, i64) -> ()\n"));
            self.values.push(contents(position, desc));
            self.inputs.push(TensorDesc { name: format!("arg{i}"), ..desc.clone() });
        }
        line("  func.call @monopour_rt_arg(%cx, %arena, %zero, %arenab) : (i64, i64, i64, i64) -> ()\n".to_owned());
        let first = self.results.len();
        for desc in &wrapper.outputs {
            let (i, bytes) = (self.results.len(), desc.size_bytes());
            line(format!("  %r{i} = arith.constant {i} : i64\n  %rb{i} = arith.constant {bytes} : i64\n"));
            line(format!("  %rh{i} = func.call @monopour_rt_alloc(%cx, %rb{i}) : (i64, i64) -> i64\n"));
            line(format!("  func.call @monopour_rt_arg(%cx, %rh{i}, %zero, %rb{i}) : (i64, i64, i64, i64) -> ()\n"));
            self.results.push(TensorDesc { name: format!("result{i}"), ..desc.clone() });
        }
        line(format!("  %k{number} = arith.constant {number} : i64\n"));
        line(format!(
            "  func.call @monopour_rt_dispatch(%cx, %k{number}, %one, %one, %one) : (i64, i64, i64, i64, i64) -> ()\n"
        ));
        for i in first..self.results.len() {
            line(format!("  func.call @monopour_rt_result(%cx, %r{i}, %rh{i}) : (i64, i64, i64) -> ()\n"));
        }
    }

    /// Compiles and runs all of them; every tensor argument holds 1, 2, 3, ... scaled by its position.
    pub fn run(self) -> Result<Vec<Outcome>, String> {
        let text = format!(
            "{RUNTIME}func.func @main(%cx: i64) {{\n  %zero = arith.constant 0 : i64\n  %one = arith.constant 1 : i64\n  \
             %arenab = arith.constant {ARENA_BYTES} : i64\n  \
             %arena = func.call @monopour_rt_alloc(%cx, %arenab) : (i64, i64) -> i64\n{}  \
             func.call @monopour_rt_free(%cx, %arena) : (i64, i64) -> ()\n  return\n}}\n{}",
            self.host, self.text
        );
        let target = CpuTarget::host();
        let (host, mut kernels) = Context::scope(|cx| {
            let module = Module::parse(cx, text.as_bytes(), "batch.mlir")?;
            Ok((object::emit(&module, &target)?, object::kernels(&module)?))
        })
        .map_err(|d: Diagnostics| d.to_string())?;
        kernels.sort_by_key(|k| k.symbol[1..k.symbol.find('_').unwrap_or(1)].parse::<usize>().unwrap_or(0));
        let variant = Variant {
            target: Target::Cpu(target),
            kernels: kernels.into_iter().map(Kernel::Cpu).collect(),
            host,
            plan: MemoryPlan::default(),
            copies: vec![],
            allocations: vec![],
        };
        let program = Program {
            entry: "main".to_owned(),
            signature: Signature { inputs: self.inputs, results: self.results, ..Default::default() },
            constants: Vec::<Constant>::new(),
            variants: vec![variant],
            producer: "test".to_owned(),
        };
        let device = Device::open(&DeviceChoice::Cpu).map_err(|e| e.to_string())?;
        let options = Options { threads: 1, ..Options::default() };
        let mut session = Session::load(&device, Arc::new(program), &options).map_err(|e| e.to_string())?;
        let on_device = session.upload(&self.values).map_err(|e| e.to_string())?;
        let results = session.execute(&on_device).map_err(|e| e.to_string())?;
        let outputs = session.readback(&results).map_err(|e| e.to_string())?;
        let outcome = |range: &Range<usize>| outputs[range.clone()].iter().map(|t| t.data().to_vec()).collect();
        Ok(self.functions.iter().map(outcome).collect())
    }
}

/// The kernel around one function.
struct Wrapper {
    text: String,
    inputs: Vec<TensorDesc>,
    outputs: Vec<TensorDesc>,
}

impl Wrapper {
    fn new(arguments: &[Type], results: &[Type], frozen: &[bool]) -> Result<Self, String> {
        let mut out = Self { text: String::new(), inputs: vec![], outputs: vec![] };
        let (mut params, mut before, mut after) = (vec![], String::new(), String::new());
        let mut operands = vec![];
        for (i, ty) in arguments.iter().enumerate() {
            if !ty.is_memref() {
                let value = match ty.to_string().as_str() {
                    "i1" => "true".to_owned(),
                    "index" => format!("{INDEX_ARGUMENT} : index"),
                    other => format!("{FLOAT_ARGUMENT:?} : {other}"),
                };
                let _ = writeln!(before, "  %a{i} = arith.constant {value}");
                operands.push(format!("%a{i}"));
                continue;
            }
            let plain = identity(*ty)?;
            params.push(format!("%in{i}: {plain}"));
            let _ = writeln!(
                before,
                "  %l{i} = memref.alloca() : {plain}\n  memref.copy %in{i}, %l{i} : {plain} to {plain}"
            );
            let mut value = format!("%l{i}");
            if ty.to_string() != plain {
                let _ = writeln!(before, "  %lc{i} = memref.cast %l{i} : {plain} to {ty}");
                value = format!("%lc{i}");
            }
            operands.push(value);
            if frozen[i] {
                let _ = writeln!(after, "  memref.copy %l{i}, %end{i} : {plain} to {plain}");
            }
            out.inputs.push(describe(*ty)?);
        }
        let mut outs = vec![];
        for (i, ty) in results.iter().enumerate() {
            let result = if results.len() == 1 { "%r".to_owned() } else { format!("%r#{i}") };
            if ty.is_memref() {
                let plain = identity(*ty)?;
                outs.push(format!("%out{i}: {plain}"));
                after.insert_str(0, &format!("  memref.copy {result}, %out{i} : {ty} to {plain}\n"));
                out.outputs.push(describe(*ty)?);
            } else {
                outs.push(format!("%out{i}: memref<{ty}>"));
                after.insert_str(0, &format!("  memref.store {result}, %out{i}[] : memref<{ty}>\n"));
                let dtype = DType::parse(&ty.to_string()).ok_or_else(|| format!("result type {ty}"))?;
                out.outputs.push(TensorDesc::tensor("", dtype, vec![]));
            }
        }
        for (i, ty) in arguments.iter().enumerate().filter(|(i, t)| t.is_memref() && frozen[*i]) {
            outs.push(format!("%end{i}: {}", identity(*ty)?));
            out.outputs.push(describe(*ty)?);
        }
        params.push(format!("%arena: memref<{ARENA_BYTES}xi8>"));
        params.extend(outs);
        params.push("%id: index".to_owned());
        let list = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
        let names = match results.len() {
            0 => String::new(),
            1 => "%r = ".to_owned(),
            n => format!("%r:{n} = "),
        };
        out.text = format!(
            "func.func @kernel({}) attributes {{monopour.kernel = {{}}}} {{\n  \
             %zero = arith.constant 0 : index\n  %next = memref.alloca() {{next}} : memref<index>\n  \
             memref.store %zero, %next[] : memref<index>\n{before}  {names}func.call @main({}) : ({}) -> ({})\n{after}  return\n}}\n",
            params.join(", "),
            operands.join(", "),
            list(arguments),
            list(results)
        );
        Ok(out)
    }
}

/// Every allocation becomes the next slot of the arena, so that each iteration of a loop gets another one.
fn allocate_from_arena(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let cx = module.context();
    let index = Type::index(cx);
    for alloc in module.op().find_all("memref.alloc") {
        let kernel = alloc.ancestor("func.func").expect("allocations are in functions");
        let next = kernel.find_all("memref.alloca").into_iter().find(|a| a.attr("next").is_some());
        let next = next.expect("the wrapper has the position of the next slot").result(0);
        let is_arena = |v: &Value| v.ty().static_size_bytes() == u64::try_from(ARENA_BYTES).ok();
        let arena =
            kernel.body().and_then(|b| b.args().into_iter().find(is_arena)).expect("the wrapper takes an arena");
        let loc = alloc.location();
        rw.set_point(InsertionPoint::Before(alloc));
        let at = rw.create(OpSpec::new("memref.load", loc).operands(&[next]).results(&[index]))?.result(0);
        let slot = OpSpec::new("arith.constant", loc).attr("value", Attr::int(index, SLOT_BYTES)).results(&[index]);
        let slot = rw.create(slot)?.result(0);
        let end = rw.create(OpSpec::new("arith.addi", loc).operands(&[at, slot]).results(&[index]))?.result(0);
        rw.create(OpSpec::new("memref.store", loc).operands(&[end, next]))?;
        let operands: Vec<Value> = [arena, at].into_iter().chain(alloc.operands()).collect();
        let view = OpSpec::new("memref.view", loc).operands(&operands).results(&[alloc.result(0).ty()]);
        let view = rw.create(view)?;
        rw.replace_op(alloc, &view.results());
    }
    Ok(())
}

/// The contiguous memref type of the same shape.
fn identity(ty: Type) -> Result<String, String> {
    let desc = describe(ty)?;
    let dims: String = desc.shape.iter().map(|d| format!("{d}x")).collect();
    Ok(format!("memref<{dims}{}>", ty.element()))
}

fn describe(ty: Type) -> Result<TensorDesc, String> {
    let shape: Result<Vec<u64>, _> = ty.shape().unwrap_or_default().into_iter().map(u64::try_from).collect();
    let shape = shape.map_err(|_| format!("{ty} is not static"))?;
    let dtype = DType::parse(&ty.element().to_string()).ok_or_else(|| format!("element type of {ty}"))?;
    Ok(TensorDesc::tensor("", dtype, shape))
}

/// Small numbers that differ from element to element and from argument to argument.
fn contents(position: usize, desc: &TensorDesc) -> HostTensor {
    let count = desc.elements();
    let value = |i: u64| (i + 1) as f32 * 0.25 + (position % 7) as f32;
    let bytes: Vec<u8> = match desc.dtype {
        DType::F32 => (0..count).flat_map(|i| value(i).to_le_bytes()).collect(),
        _ => (0..desc.size_bytes()).map(|i| u8::from(i % desc.dtype.size_bytes() == 0)).collect(),
    };
    HostTensor::new(desc.dtype, desc.shape.clone(), bytes).expect("the bytes are of this type and shape")
}

const RUNTIME: &str = "\
func.func private @monopour_rt_input(i64, i64) -> i64
func.func private @monopour_rt_alloc(i64, i64) -> i64
func.func private @monopour_rt_arg(i64, i64, i64, i64)
func.func private @monopour_rt_dispatch(i64, i64, i64, i64, i64)
func.func private @monopour_rt_free(i64, i64)
func.func private @monopour_rt_result(i64, i64, i64)
";
