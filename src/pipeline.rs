//! The table of phases, in order, for `--emit`, `--dump-after`, timings and help texts.
//!
//! A phase takes the stage before it, of a type of its own (`stages.rs`), and returns the next: rows out of order do not
//! compile. Each but the last promises a [`LegalIr`] of the module, which the next one trusts; the last, `emit`, turns the
//! scheduled module into kernels and native code.

use crate::options::{CompileOptions, TargetDescription, target_kind};
use crate::report::{Dump, Report, Timing};
use crate::trust;
use monopour_codegen_cpu::objects::Objects;
use monopour_frontend::{Weight, onnx};
use monopour_ir::{Context, Diagnostic, Diagnostics, LegalIr, Module, PrintOptions};
use monopour_program::{Constant, Map, Program, Signature, Trust, Variant};
use monopour_split as split;
use stages::{Emitted, Source, Stage};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

mod constants;
mod copies;
mod emit;
mod legal_ir;
mod phases;
mod signature;
mod stages;

/// A phase between a model and a program.
pub struct Phase {
    /// The name for `--emit`, `--dump-after` and timings.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    legal_ir: Option<fn(&TargetDescription) -> LegalIr>,
}

impl Phase {
    /// Whether it leaves IR to print: all phases but the last do.
    pub fn leaves_ir(&self) -> bool {
        self.legal_ir.is_some()
    }
}

/// Makes each row an entry of [`PHASES`] and a step of [`run_phases`].
macro_rules! phases {
    ($($phase:ident: $help:literal, $legal_ir:expr;)*) => {
        /// All phases, in order.
        pub const PHASES: &[Phase] =
            &[$(Phase { name: stringify!($phase), help: $help, legal_ir: $legal_ir }),*];

        fn run_phases<'c>(job: &mut Job<'c, '_>, stage: Source<'_>) -> Result<Emitted<'c>, Diagnostics> {
            $(
                let phase = Phase { name: stringify!($phase), help: $help, legal_ir: $legal_ir };
                let stage = job.run(&phase, stage, phases::$phase)?;
            )*
            Ok(stage)
        }
    };
}

phases! {
    import: "canonical linalg on tensors", Some(legal_ir::on_tensors);
    fuse: "elementwise ops fused, dispatch roots marked", Some(legal_ir::on_tensors);
    tile: "one scf.forall over tiles per dispatch", Some(legal_ir::tiled);
    place: "host or device for each op, memory spaces", Some(legal_ir::tiled);
    bufferize: "memrefs instead of tensors, in place where it is safe", Some(legal_ir::on_memrefs);
    dealloc: "every allocation freed once, or returned", Some(legal_ir::on_memrefs);
    outline: "each dispatch a kernel function of a tile id", Some(legal_ir::on_memrefs);
    distribute: "a GPU tile spread over the invocations of a workgroup", Some(legal_ir::distributed);
    plan: "transients placed in one arena", Some(legal_ir::distributed);
    schedule: "the host function as calls of the runtime", Some(legal_ir::distributed);
    emit: "WGSL and SPIR-V, or native code", None;
}

/// A program, and the report of its compilation.
pub struct Compiled {
    /// The program, one variant per target.
    pub program: Program,
    /// Timings, dumps and remarks.
    pub report: Report,
}

/// The compilation of one variant: constant for all phases but for the report, which grows.
struct Job<'c, 'a> {
    cx: Context<'c>,
    options: &'a CompileOptions,
    target: &'a TargetDescription,
    /// Constants of the variants before.
    known_constants: &'a [Constant],
    objects: Option<&'a Objects>,
    report: &'a mut Report,
}

/// Compiles MLIR text or bytecode; `file` is its name in diagnostics, and weights are searched beside it.
///
/// # Errors
/// Diagnostics of the phase that failed.
pub fn compile(source: &[u8], file: &str, options: &CompileOptions) -> Result<Compiled, Diagnostics> {
    refuse_dims(options)?;
    compile_source(Source::Mlir { bytes: source, file }, options)
}

/// MLIR models have no symbolic dimensions.
fn refuse_dims(options: &CompileOptions) -> Result<(), Diagnostics> {
    let Some(name) = options.dims.keys().next() else { return Ok(()) };
    let message = format!("the model has no dimension that is called '{name}'");
    let help = "sizes of MLIR models are in their types; `--dim` is for .onnx";
    Err(Diagnostic::global("F0045", message).with_help(help).into())
}

/// Compiles an open ONNX model.
///
/// # Errors
/// Diagnostics of the phase that failed.
pub fn compile_onnx(model: &onnx::Model, options: &CompileOptions) -> Result<Compiled, Diagnostics> {
    compile_source(Source::Onnx(model), options)
}

fn compile_source(source: Source<'_>, options: &CompileOptions) -> Result<Compiled, Diagnostics> {
    let mut report = Report::default();
    let mut program = Program {
        entry: String::new(),
        signature: Signature::default(),
        constants: vec![],
        variants: vec![],
        producer: concat!("monopour ", env!("CARGO_PKG_VERSION")).to_owned(),
        trust: Trust::default(),
    };
    let objects = options.object_cache.clone().map(Objects::new);
    for target in &options.targets {
        let parts = Context::scope(|cx| {
            let known_constants = &program.constants;
            let objects = objects.as_ref();
            let job = Job { cx, options, target, known_constants, objects, report: &mut report };
            compile_variant(job, source)
        })?;
        program.entry = parts.entry;
        program.signature = parts.signature;
        program.constants.extend(parts.constants);
        program.variants.push(parts.variant);
    }
    Ok(Compiled { program: trust::compiled(program), report })
}

/// Compiles a file: an ONNX model by its name, else MLIR.
///
/// # Errors
/// I0031 when the file cannot be read; else as [`compile`].
pub fn compile_file(path: &Path, options: &CompileOptions) -> Result<Compiled, Diagnostics> {
    if is_onnx(path) {
        return compile_onnx(&onnx::Model::open(path)?, options);
    }
    let file = path.display().to_string();
    let mut first = [0; 4];
    let is_bytecode = File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok();
    if is_bytecode && Module::is_bytecode(&first) {
        refuse_dims(options)?;
        let map = Map::open(path).map_err(|e| unreadable(path, &e))?;
        return compile_source(Source::Mapped { map: &Arc::new(map), file: &file }, options);
    }
    compile(&read(path)?, &file, options)
}

/// Whether the file is an ONNX model, by its name.
pub fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "onnx")
}

fn read(path: &Path) -> Result<Vec<u8>, Diagnostics> {
    std::fs::read(path).map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, error: &dyn std::error::Error) -> Diagnostics {
    let message = format!("cannot read {}: {error}", path.display());
    Diagnostic::global("I0031", message).with_help("check the path and its permissions").into()
}

/// A variant and its additions to the program, outside of any context.
struct VariantParts {
    entry: String,
    signature: Signature,
    /// Those that no variant before has.
    constants: Vec<Constant>,
    variant: Variant,
}

fn compile_variant(mut job: Job<'_, '_>, source: Source<'_>) -> Result<VariantParts, Diagnostics> {
    job.cx.allow_unregistered_dialects(true);
    let Emitted { model, variant, constants: symbols } = run_phases(&mut job, source)?;
    let weights = |name: &str| model.weights.get(name).map(Weight::data);
    let constants = split::constants::collect(&model.module, &symbols, &weights)?;
    Ok(VariantParts { entry: model.entry, signature: model.signature, constants, variant })
}

impl<'c> Job<'c, '_> {
    fn run<I, O: Stage<'c>>(
        &mut self,
        phase: &Phase,
        stage: I,
        step: fn(&mut Self, I) -> Result<O, Diagnostics>,
    ) -> Result<O, Diagnostics> {
        let target = target_kind(self.target);
        if let Some(watch) = &self.options.watch {
            watch.begins(phase.name, target);
        }
        let (start, cpu_start) = (Instant::now(), cpu_ms());
        let stage = step(self, stage)?;
        let elapsed_ms = start.elapsed().as_secs_f64() * 1e3;
        let cpu_ms = cpu_ms().zip(cpu_start).map(|(end, start)| end - start);
        self.report.timings.push(Timing { phase: phase.name, target, elapsed_ms, cpu_ms });
        self.check(phase, stage.module())?;
        Ok(stage)
    }

    /// Verifies that a phase's IR is legal and dumps it, by the options.
    fn check(&mut self, phase: &Phase, module: &Module<'c>) -> Result<(), Diagnostics> {
        let Some(legal_ir) = phase.legal_ir else { return Ok(()) };
        if self.options.verify || cfg!(debug_assertions) {
            legal_ir(self.target).verify(phase.name, module.op())?;
        }
        self.dump(phase.name, || {
            module.op().print(&PrintOptions { elide_larger_than: Some(64), ..Default::default() })
        });
        Ok(())
    }

    /// Whether the text of a phase or product is requested.
    fn wants(&self, what: &str) -> bool {
        self.options.dump_after.iter().any(|p| p == what)
    }

    /// Keeps the text of a phase or product, if requested.
    fn dump(&mut self, what: &str, text: impl FnOnce() -> String) {
        if self.wants(what) {
            let dump = Dump { phase: what.to_owned(), target: target_kind(self.target), text: text() };
            if let Some(on_dump) = &self.options.on_dump {
                on_dump.call(&dump);
            }
            self.report.dumps.push(dump);
        }
    }

    fn is_gpu(&self) -> bool {
        matches!(self.target, TargetDescription::Gpu(_))
    }
}

/// CPU time of this process so far.
#[cfg(unix)]
fn cpu_ms() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6)
}

#[cfg(not(unix))]
fn cpu_ms() -> Option<f64> {
    None
}
