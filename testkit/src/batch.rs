//! Runs many small bufferized functions in one process: lowered by upstream's passes, run by `mlir-runner`.
//!
//! Every function keeps its calls, so that recursion is real. Each runs twice on the same inputs: a constant that the first
//! run overwrote shows in the second. The outcome of a function is its results, then its read-only arguments. Output before
//! a crash is kept: the functions after the one that crashed run in another process.
//! Requires: `@main` over scalars and memrefs of 32-bit floats, of static shape or (results) row-major; nothing is freed. A
//! result of row-major type is read as such, whatever its strides.

mod softmax;

use crate::host_tensor::{Data, Dtype, HostTensor};
use crate::oracle::tool;
use monopour_ir::ops;
use monopour_ir::{Context, DYNAMIC, Module, Type, run_passes};
use std::fmt::Write;
use std::io::{Read, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest CPU time of a batch, which otherwise counts as an endless loop.
const LIMIT_CPU_SECONDS: u32 = 120;
/// Longest wall time of a batch: the machine may be shared.
const LIMIT: Duration = Duration::from_secs(3_600);
/// Fill byte of fresh memory, so that a read of it shows.
const PERTURB: &str = "165";

/// To the llvm dialect: any layout, any control flow, real calls.
const LOWERING: &str = "builtin.module(func.func(scf-forall-to-for,convert-linalg-to-loops,lower-vector-mask,\
    convert-vector-to-scf),convert-bufferization-to-memref,expand-strided-metadata,lower-affine,convert-scf-to-cf,\
    convert-vector-to-llvm,finalize-memref-to-llvm,convert-math-to-llvm,convert-math-to-libm,\
    convert-index-to-llvm,convert-arith-to-llvm,convert-ub-to-llvm,convert-cf-to-llvm,convert-func-to-llvm,\
    reconcile-unrealized-casts)";

/// The outcome of one run of a function.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The bits of its results, then of its read-only arguments; scalars first widened to 64 bits.
    Values(Vec<Vec<i64>>),
    /// The process crashed or hung; the reason.
    Crash(String),
}

/// Functions to run.
#[derive(Default)]
pub struct Batch {
    constants_can_be_written: bool,
    functions: Vec<Function>,
}

struct Function {
    text: String,
    /// Number of lists that one run prints.
    lists: usize,
}

impl Batch {
    /// A batch in which a write to a constant succeeds and shows in the second run, instead of ending the process.
    pub fn with_writable_constants() -> Self {
        Self { constants_can_be_written: true, ..Self::default() }
    }

    /// Adds `@main` of a bufferized module, to be run on `inputs`, and returns its number. `frozen`: which arguments are
    /// read-only.
    ///
    /// # Errors
    /// The reason why it cannot be called.
    pub fn add(&mut self, module: &Module, inputs: &[HostTensor], frozen: &[bool]) -> Result<usize, String> {
        let number = self.functions.len();
        let main = module.symbol("main").ok_or("there is no @main")?;
        let (arguments, results) = main.function_type().ok_or("@main has no type")?;
        let wrapper = Wrapper::new(&arguments, &results, inputs, frozen)?;
        let module = softmax::outline(module)?;
        let mut text: String = module.body().ops().iter().map(|op| format!("{op}\n")).collect();
        if self.constants_can_be_written {
            text = text.replace("memref.global \"private\" constant", "memref.global \"private\"");
        }
        text = text.replacen("func.func @main", "func.func private @main", 1);
        text.push_str(&wrapper.text);
        let text = text.replace('@', &format!("@f{number}_"));
        let text = text.replace(&format!("@f{number}_monopour_print"), "@monopour_print");
        self.functions.push(Function { text, lists: wrapper.lists });
        Ok(number)
    }

    /// Runs all of them, each twice.
    ///
    /// # Errors
    /// When they cannot be lowered, or print something unexpected.
    pub fn run(&self) -> Result<Vec<[Outcome; 2]>, String> {
        let program = self.program()?;
        let mut outcomes: Vec<[Outcome; 2]> = vec![];
        while outcomes.len() < self.functions.len() {
            let first = outcomes.len();
            let (lines, died) = execute(&program, first)?;
            let mut lines = lines.into_iter();
            for function in &self.functions[first..] {
                let mut once = || lines.by_ref().take(function.lists).collect::<Vec<_>>();
                let (one, two) = (once(), once());
                match &died {
                    _ if two.len() == function.lists => outcomes.push([Outcome::Values(one), Outcome::Values(two)]),
                    Some(why) => {
                        outcomes.push([Outcome::Crash(why.clone()), Outcome::Crash(why.clone())]);
                        break;
                    }
                    None => return Err(format!("function {} printed too little", outcomes.len())),
                }
            }
        }
        Ok(outcomes)
    }

    /// Bytecode of all functions in the llvm dialect; `@from3` runs those from 3 on.
    fn program(&self) -> Result<Vec<u8>, String> {
        let mut text = PRINT.to_owned();
        for (number, function) in self.functions.iter().enumerate() {
            let _ = writeln!(
                text,
                "func.func @from{number}() {{\n  %null = arith.constant 0 : i64\n  call @f{number}_run() : () -> ()\n  \
                 call @f{number}_run() : () -> ()\n  %f = call @fflush(%null) : (i64) -> i32\n  \
                 call @from{}() : () -> ()\n  return\n}}",
                number + 1
            );
            text.push_str(&function.text);
        }
        let _ = writeln!(text, "func.func @from{}() {{\n  return\n}}", self.functions.len());
        Context::scope(|cx| {
            let module = Module::parse(cx, text.as_bytes(), "batch.mlir").map_err(|d| d.to_string())?;
            run_passes(module.op(), LOWERING).map_err(|d| d.to_string())?;
            Ok(module.op().to_bytecode())
        })
    }
}

/// Runs a program from one function on; returns its output line by line, and the reason if it crashed.
fn execute(program: &[u8], first: usize) -> Result<(Vec<Vec<i64>>, Option<String>), String> {
    let libraries = tool("mlir-runner").with_file_name("").join("../lib");
    // The shell sets the limit, and becomes the runner.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -t {LIMIT_CPU_SECONDS}; exec \"$0\" \"$@\"")]).arg(tool("mlir-runner"));
    command.args(["-e", &format!("from{first}"), "-entry-point-result=void", "-O0"]);
    for library in ["libmlir_c_runner_utils.so", "libmlir_runner_utils.so"] {
        command.arg(format!("-shared-libs={}", libraries.join(library).display()));
    }
    command.env("MALLOC_PERTURB_", PERTURB).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("{}: {e}", tool("mlir-runner").display()))?;
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let mut stdout = child.stdout.take().expect("standard output is piped");
    let mut stderr = child.stderr.take().expect("standard error is piped");
    let program = program.to_vec();
    // Threads, because each pipe could fill up.
    let writer = std::thread::spawn(move || stdin.write_all(&program).is_ok());
    let printed = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let errors = std::thread::spawn(move || {
        let mut bytes = vec![];
        let _ = stderr.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).lines().take(3).collect::<Vec<_>>().join("\n")
    });
    let status = wait(&mut child)?;
    let _ = writer.join();
    let text = printed.join().map_err(|_| "a reader failed")?.map_err(|e| e.to_string())?;
    let errors = errors.join().map_err(|_| "a reader failed")?;
    let died = (!status.success()).then(|| format!("{status}\n{errors}"));
    let number = |word: &str| word.parse::<i64>().map_err(|e| format!("{word:?}: {e}"));
    let list = |line: &str| line.split(',').map(str::trim).filter(|w| !w.is_empty()).map(number).collect();
    // A partial last line is dropped.
    let lines = text.split_inclusive('\n').filter_map(|l| l.strip_suffix('\n')).map(list);
    Ok((lines.collect::<Result<_, _>>()?, died))
}

fn wait(child: &mut std::process::Child) -> Result<std::process::ExitStatus, String> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(status);
        }
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            return child.wait().map_err(|e| e.to_string());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The [`Outcome::Values`] of these tensors.
pub fn bits(tensors: &[HostTensor]) -> Vec<Vec<i64>> {
    let of = |t: &HostTensor| match &t.data {
        Data::Float(v) => v.iter().map(|v| i64::from((*v as f32).to_bits() as i32)).collect(),
        Data::Int(v) => v.clone(),
    };
    tensors.iter().map(of).collect()
}

/// The function around `@main`: makes the arguments, calls, prints.
struct Wrapper {
    text: String,
    lists: usize,
}

impl Wrapper {
    fn new(arguments: &[Type], results: &[Type], inputs: &[HostTensor], frozen: &[bool]) -> Result<Self, String> {
        if inputs.len() != arguments.len() {
            return Err(format!("{} inputs for {} arguments", inputs.len(), arguments.len()));
        }
        let mut out = Self { text: String::new(), lists: 0 };
        let (mut before, mut after, mut operands) = (String::new(), String::new(), vec![]);
        for (i, (ty, input)) in arguments.iter().zip(inputs).enumerate() {
            operands.push(out.argument(&mut before, i, *ty, input)?);
        }
        for (i, ty) in results.iter().enumerate() {
            let value = if results.len() == 1 { "%r".to_owned() } else { format!("%r#{i}") };
            out.print(&mut after, &format!("r{i}"), &value, *ty)?;
        }
        for (i, ty) in arguments.iter().enumerate().filter(|(i, t)| t.is_memref() && frozen.get(*i) == Some(&true)) {
            out.print(&mut after, &format!("a{i}"), &operands[i], *ty)?;
        }
        let list = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
        let names = match results.len() {
            0 => String::new(),
            1 => "%r = ".to_owned(),
            n => format!("%r:{n} = "),
        };
        let _ = writeln!(
            out.text,
            "func.func @run() {{\n{before}  {names}call @main({}) : ({}) -> ({})\n{after}  return\n}}",
            operands.join(", "),
            list(arguments),
            list(results)
        );
        Ok(out)
    }

    /// A buffer with the input's contents, or the scalar.
    fn argument(&mut self, before: &mut String, i: usize, ty: Type, input: &HostTensor) -> Result<String, String> {
        if !ty.is_memref() {
            let value = match &input.data {
                Data::Float(v) => format!("{:?}", v.first().copied().unwrap_or_default()),
                Data::Int(v) => v.first().copied().unwrap_or_default().to_string(),
            };
            let value =
                if ty.integer_width() == Some(1) { (value != "0").to_string() } else { format!("{value} : {ty}") };
            let _ = writeln!(before, "  %a{i} = arith.constant {value}");
            return Ok(format!("%a{i}"));
        }
        let plain = contiguous(&input.shape, input.dtype);
        let hex: String = input.to_bytes().iter().map(|b| format!("{b:02X}")).collect();
        let _ = writeln!(self.text, "memref.global \"private\" constant @in{i} : {plain} = dense<\"0x{hex}\">");
        let _ = writeln!(
            before,
            "  %g{i} = memref.get_global @in{i} : {plain}\n  %l{i} = memref.alloc() {{alignment = 64 : i64}} : {plain}\n  \
             memref.copy %g{i}, %l{i} : {plain} to {plain}"
        );
        if ty.to_string() == plain {
            return Ok(format!("%l{i}"));
        }
        let _ = writeln!(before, "  %c{i} = memref.cast %l{i} : {plain} to {ty}");
        Ok(format!("%c{i}"))
    }

    fn print(&mut self, after: &mut String, name: &str, value: &str, ty: Type) -> Result<(), String> {
        self.lists += 1;
        if !ty.is_memref() {
            let cast = match (ty.is_index(), ty.integer_width()) {
                (true, _) => ops::arith::INDEX_CAST,
                (_, Some(1)) => ops::arith::EXTUI,
                (_, Some(64)) => {
                    let _ = writeln!(after, "  call @monopour_print_one({value}) : (i64) -> ()");
                    return Ok(());
                }
                (_, Some(_)) => ops::arith::EXTSI,
                _ if ty.float_width() == Some(32) => {
                    let _ = writeln!(after, "  %{name}b = arith.bitcast {value} : f32 to i32");
                    let _ = writeln!(after, "  %{name}w = arith.extsi %{name}b : i32 to i64");
                    let _ = writeln!(after, "  call @monopour_print_one(%{name}w) : (i64) -> ()");
                    return Ok(());
                }
                _ => return Err(format!("result type {ty}")),
            };
            let _ = writeln!(after, "  %{name}w = {cast} {value} : {ty} to i64");
            let _ = writeln!(after, "  call @monopour_print_one(%{name}w) : (i64) -> ()");
            return Ok(());
        }
        if ty.element().float_width() != Some(32) {
            return Err(format!("element type of {ty}"));
        }
        let shape = ty.shape().unwrap_or_default();
        let is_identity = ty.memref_layout().is_some_and(|layout| layout.is_identity());
        if is_identity && shape.contains(&DYNAMIC) {
            print_row_major(after, name, value, ty, shape.len());
            return Ok(());
        }
        let shape: Result<Vec<usize>, _> = shape.into_iter().map(usize::try_from).collect();
        let shape = shape.map_err(|_| format!("{ty} is neither static nor row-major"))?;
        let (plain, count) = (contiguous(&shape, Dtype::F32), shape.iter().product::<usize>());
        let _ = writeln!(
            after,
            "  %{name}l = memref.alloc() {{alignment = 64 : i64}} : {plain}\n  \
             memref.copy {value}, %{name}l : {ty} to {plain}\n  \
             %{name}f = memref.reinterpret_cast %{name}l to offset: [0], sizes: [{count}], strides: [1] : \
             {plain} to memref<{count}xf32>\n  \
             %{name}d = memref.cast %{name}f : memref<{count}xf32> to memref<?xf32>\n  \
             call @monopour_print_list(%{name}d) : (memref<?xf32>) -> ()"
        );
        Ok(())
    }
}

/// Prints as many elements as the sizes say from the first on, whatever the descriptor's strides: the type is row-major.
fn print_row_major(after: &mut String, name: &str, value: &str, ty: Type, rank: usize) {
    let _ = writeln!(after, "  %{name}n = arith.constant 1 : index");
    let mut count = format!("%{name}n");
    for dim in 0..rank {
        let _ = writeln!(
            after,
            "  %{name}k{dim} = arith.constant {dim} : index\n  %{name}s{dim} = memref.dim {value}, %{name}k{dim} : {ty}\n  \
             %{name}m{dim} = arith.muli {count}, %{name}s{dim} : index"
        );
        count = format!("%{name}m{dim}");
    }
    let _ = writeln!(
        after,
        "  %{name}f = memref.reinterpret_cast {value} to offset: [0], sizes: [{count}], strides: [1] : \
         {ty} to memref<?xf32>\n  \
         call @monopour_print_list(%{name}f) : (memref<?xf32>) -> ()"
    );
}

fn contiguous(shape: &[usize], dtype: Dtype) -> String {
    let dims: String = shape.iter().map(|d| format!("{d}x")).collect();
    format!("memref<{dims}{dtype}>")
}

const PRINT: &str = "\
func.func private @printI64(i64)
func.func private @printComma()
func.func private @printNewline()
func.func private @fflush(i64) -> i32
func.func private @monopour_print_one(%v: i64) {
  call @printI64(%v) : (i64) -> ()
  call @printNewline() : () -> ()
  return
}
func.func private @monopour_print_list(%m: memref<?xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = memref.dim %m, %zero : memref<?xf32>
  scf.for %i = %zero to %end step %one {
    %f = memref.load %m[%i] : memref<?xf32>
    %b = arith.bitcast %f : f32 to i32
    %w = arith.extsi %b : i32 to i64
    func.call @printI64(%w) : (i64) -> ()
    func.call @printComma() : () -> ()
  }
  call @printNewline() : () -> ()
  return
}
";
