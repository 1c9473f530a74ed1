//! Compiles a module to ELF relocatables: one, or several on all cores where there are many kernels.
//!
//! Requires: the scheduled host function `func.func @entry(%cx: i64)`; on a CPU target also the kernels, functions with the
//! attribute `monopour.kernel` over memrefs and tile ids.
//! Ensures: the first object defines `void entry(int64_t cx)`, one of them per kernel `void kernel(void *const *args, const int64_t *ids)`;
//! undefined symbols are [`RuntimeFunction`]s and [`LibraryFunction`]s only. Same input, same bytes. The module is not changed.
//! Limits: x86_64 and aarch64 (C0006); nothing that needs a math library (C0004, C0005).

use crate::objects::Objects;
use crate::parts::{self, Parts};
use crate::{abi, error, to_llvm};
use monopour_contract::{LibraryFunction, RuntimeFunction};
use monopour_ir::parallel::map_parts;
use monopour_ir::{Diagnostic, Diagnostics, LlvmOutput, LlvmTarget, Module, Op, emit_llvm};
use monopour_program::{CpuKernel, CpuTarget, NativeCode};
use object::{Object, ObjectSymbol};

/// A textual form of the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listing {
    /// The module in MLIR's llvm dialect.
    Dialect,
    /// LLVM IR as translated.
    Ir,
    /// LLVM IR after the optimiser.
    OptimizedIr,
    /// Assembly.
    Assembly,
}

/// The CPU that a GPU program's host function is compiled for: the baseline of the architecture, so that an artifact runs anywhere.
pub fn baseline() -> CpuTarget {
    let name = if cfg!(target_arch = "x86_64") { "x86-64" } else { "generic" };
    CpuTarget::parse(name).unwrap_or_else(CpuTarget::host)
}

/// Compiles the host function, and the kernels if there are any, for `target`; takes what `kept` holds, and keeps the rest there.
///
/// # Errors
/// C0001 to C0008; I0005 when LLVM refuses the code.
pub fn emit(module: &Module, target: &CpuTarget, kept: Option<&Objects>) -> Result<NativeCode, Diagnostics> {
    let llvm = llvm_target(target)?;
    let entry = entry_name(module)?;
    let make = |part: &Module| {
        let lowered = to_llvm::run(part, target)?;
        let object = emit_llvm(lowered.op(), &llvm, LlvmOutput::Object)?;
        check_symbols(&object)?;
        Ok(object)
    };
    let one = |part: &Module| match kept {
        Some(kept) => kept.get_or_make(part, &llvm, || make(part)),
        None => make(part),
    };
    let objects = match parts::split(module) {
        Parts::Whole => vec![one(module)?],
        Parts::Split(host, kernels) => {
            let mut objects = vec![];
            let keep = |object| {
                objects.push(object);
                Ok(())
            };
            let (host, done) = map_parts(&kernels, |_, part| one(part), || one(&host), keep);
            objects.insert(0, host?);
            done.map(|()| objects)?
        }
    };
    if let Some(kept) = kept {
        kept.trim();
    }
    Ok(NativeCode { arch: target.arch.clone(), features: target.features.clone(), objects, entry })
}

/// The same code as text.
///
/// # Errors
/// As [`emit`].
pub fn listing(module: &Module, target: &CpuTarget, listing: Listing) -> Result<String, Diagnostics> {
    let llvm = llvm_target(target)?;
    let lowered = to_llvm::run(module, target)?;
    let output = match listing {
        Listing::Dialect => return Ok(lowered.op().to_string()),
        Listing::Ir => LlvmOutput::Ir,
        Listing::OptimizedIr => LlvmOutput::OptimizedIr,
        Listing::Assembly => LlvmOutput::Assembly,
    };
    let text = emit_llvm(lowered.op(), &llvm, output)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The module's kernels, in the order of their indices in host code.
///
/// # Errors
/// C0002 for a signature that the runtime cannot call.
pub fn kernels(module: &Module) -> Result<Vec<CpuKernel>, Diagnostics> {
    module
        .functions()
        .into_iter()
        .filter(|f| abi::is_kernel(*f))
        .map(|f| kernel(f).map_err(Diagnostics::from))
        .collect()
}

fn kernel(func: Op) -> Result<CpuKernel, Diagnostic> {
    let signature = abi::kernel_signature(func)?;
    Ok(CpuKernel {
        symbol: func.symbol_name().unwrap_or_default(),
        args: signature.args as u32,
        scalars: signature.scalars.len() as u32,
        ids: signature.ids as u32,
        copies: crate::copies::count(func),
    })
}

fn entry_name(module: &Module) -> Result<String, Diagnostics> {
    let i64_only = |f: &Op| {
        f.function_type().is_some_and(|(inputs, results)| {
            inputs.len() == 1 && inputs[0].integer_width() == Some(64) && results.is_empty()
        })
    };
    let public: Vec<Op> =
        module.functions().into_iter().filter(|f| f.is_public() && !abi::is_kernel(*f) && i64_only(f)).collect();
    match public.as_slice() {
        [entry] => Ok(entry.symbol_name().unwrap_or_default()),
        others => Err(error::entry(module.op().location(), others.len()).into()),
    }
}

fn llvm_target(target: &CpuTarget) -> Result<LlvmTarget, Diagnostics> {
    if !matches!(target.arch.as_str(), "x86_64" | "aarch64") {
        return Err(error::architecture(&target.arch).into());
    }
    Ok(LlvmTarget {
        // ELF and the System V calling convention on every operating system: the runtime's loader expects them.
        triple: format!("{}-unknown-none-elf", target.arch),
        cpu: target.cpu.clone(),
        features: target.llvm_features(),
        vector_bits: target.vector_bits,
    })
}

fn check_symbols(bytes: &[u8]) -> Result<(), Diagnostics> {
    let file = object::File::parse(bytes)
        .map_err(|e| Diagnostic::global("I0005", format!("llvm wrote an object that cannot be read: {e}")))?;
    let mut unknown: Vec<&str> = file.symbols().filter(|s| s.is_undefined()).filter_map(|s| s.name().ok()).collect();
    let is_offered = |name: &str| RuntimeFunction::parse(name).is_some() || LibraryFunction::parse(name).is_some();
    unknown.retain(|name| !name.is_empty() && !is_offered(name));
    unknown.sort_unstable();
    unknown.dedup();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Diagnostics(unknown.into_iter().map(error::undefined_symbol).collect()))
}
