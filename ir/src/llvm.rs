//! LLVM behind MLIR: the llvm dialect to object code for a named CPU, and polynomial math.

use crate::{Diagnostic, Diagnostics, Op, string};
use mlir_sys::{MlirOperation, MlirStringCallback, MlirStringRef};
use std::ffi::c_void;

/// The machine to compile for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LlvmTarget {
    /// Target triple: `x86_64-unknown-linux-gnu`.
    pub triple: String,
    /// LLVM's name of the CPU: `x86-64-v3`.
    pub cpu: String,
    /// LLVM's feature string: `+avx,+avx2`.
    pub features: String,
    /// Width of the widest vector register that pays off.
    pub vector_bits: u32,
}

/// The output of [`emit_llvm`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LlvmOutput {
    /// An ELF relocatable.
    Object,
    /// Assembly text.
    Assembly,
    /// LLVM IR as translated.
    Ir,
    /// LLVM IR after the optimiser.
    OptimizedIr,
}

unsafe extern "C" {
    fn monopour_shim_approximate_math(root: MlirOperation) -> bool;
    fn monopour_shim_emit(
        module: MlirOperation,
        triple: MlirStringRef,
        cpu: MlirStringRef,
        features: MlirStringRef,
        vector_bits: u32,
        kind: i32,
        out: MlirStringCallback,
        out_user: *mut c_void,
        message: MlirStringCallback,
        message_user: *mut c_void,
    ) -> bool;
}

/// Rewrites `math` ops of f32 (and of f16, through f32) under `root` to polynomials over `arith` and `math.fma`, scalar and vector
/// alike. Ops without such a pattern stay as they are.
///
/// # Errors
/// I0005 when the rewriting does not converge.
pub fn approximate_math(root: Op) -> Result<(), Diagnostics> {
    let (converged, diagnostics) = root.context().with_diagnostics(|| {
        // SAFETY: defined in the shim; `root` is a live op (crate invariant).
        unsafe { monopour_shim_approximate_math(root.raw()) }
    });
    if converged {
        return Ok(());
    }
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Err(Diagnostic::error("I0005", root.location(), "polynomial approximation of math ops does not converge").into())
}

/// Translates a module in the llvm dialect to LLVM IR, optimises it at O3 for `target` and writes it as `output`.
/// Calls and multiply-adds are as `docs/numerics.md` says: `a * b + c` rounds once where the CPU can. No function unwinds.
///
/// # Errors
/// I0005 with LLVM's message: an op that has no translation, an architecture that LLVM was not built with.
pub fn emit_llvm(module: Op, target: &LlvmTarget, output: LlvmOutput) -> Result<Vec<u8>, Diagnostics> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut message: Vec<u8> = Vec::new();
    let kind = match output {
        LlvmOutput::Object => 0,
        LlvmOutput::Assembly => 1,
        LlvmOutput::Ir => 2,
        LlvmOutput::OptimizedIr => 3,
    };
    let (done, mut diagnostics) = module.context().with_diagnostics(|| {
        // SAFETY: defined in the shim; the strings, and the vectors under the callbacks, live during the call.
        unsafe {
            monopour_shim_emit(
                module.raw(),
                string::to_ref(&target.triple),
                string::to_ref(&target.cpu),
                string::to_ref(&target.features),
                target.vector_bits,
                kind,
                Some(string::append),
                (&raw mut bytes).cast(),
                Some(string::append),
                (&raw mut message).cast(),
            )
        }
    });
    if done {
        return Ok(bytes);
    }
    let message = String::from_utf8_lossy(&message).into_owned();
    diagnostics.0.push(Diagnostic::global("I0005", format!("llvm: {message}")));
    Err(diagnostics)
}
