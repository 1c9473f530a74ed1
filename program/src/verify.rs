//! Consistency of the parts of a program.

use std::collections::HashSet;

use crate::constants::Constant;
use crate::dtype::DType;
use crate::error::Error;
use crate::host::HostScope;
use crate::kernel::{GpuKernel, Kernel};
use crate::program::{DYNAMIC, Lives, MemoryPlan, Program, Signature, SizeRules, TensorDesc, Variant, tensor_bytes};
use crate::target::Target;

type Check = Result<(), Error>;

impl Program {
    /// Checks sizes, names and ranges, on which the runtime relies.
    ///
    /// # Errors
    /// [`Error::Inconsistent`].
    pub fn verify(&self) -> Check {
        verify_tensors("input", &self.signature.inputs)?;
        verify_tensors("result", &self.signature.results)?;
        if let Some(result) = self.signature.results.iter().find(|result| result.donated) {
            return inconsistent(format!("result `{}` is marked as donated", result.name));
        }
        verify_sizes(&self.signature)?;
        self.constants.iter().try_for_each(verify_constant)?;
        if self.variants.is_empty() {
            return inconsistent("no variant".into());
        }
        self.variants.iter().enumerate().try_for_each(|(index, variant)| {
            verify_variant(index, variant)?;
            self.verify_host_data(index, variant)
        })
    }

    fn verify_host_data(&self, index: usize, variant: &Variant) -> Check {
        if variant.host_data.is_empty() {
            return Ok(());
        }
        let scope = HostScope {
            inputs: self.signature.inputs.len(),
            results: self.signature.results.len(),
            constants: self.constants.len(),
            kernels: variant.kernels.len(),
        };
        let defect =
            |what: String| Error::Inconsistent { what: format!("the host function of variant {index}: {what}") };
        variant.host_data.verify(&scope).map_err(defect)
    }
}

fn verify_tensors(kind: &str, tensors: &[TensorDesc]) -> Check {
    let mut names = HashSet::new();
    for tensor in tensors {
        if !names.insert(&tensor.name) {
            return inconsistent(format!("two {kind}s are named `{}`", tensor.name));
        }
        // The runtime counts bytes in 63 bits: offsets pass through i64 in host code.
        let known: Vec<u64> = tensor.shape.iter().copied().filter(|extent| *extent != DYNAMIC).collect();
        if tensor_bytes(tensor.dtype, &known).is_none_or(|bytes| bytes > i64::MAX as u64) {
            return inconsistent(format!("{kind} `{tensor}` is too large"));
        }
        if tensor.scalar && (tensor.donated || !tensor.shape.is_empty()) {
            return inconsistent(format!("{kind} `{}` is a number with sizes, or donated", tensor.name));
        }
    }
    Ok(())
}

/// Each rule names dynamic sizes.
fn verify_sizes(signature: &Signature) -> Check {
    let SizeRules { equal, fixed } = &signature.sizes;
    if equal.iter().any(|class| class.len() < 2) {
        return inconsistent("a rule of equal sizes names fewer than two".into());
    }
    for size in equal.iter().flatten().chain(fixed.iter().map(|(size, _)| size)) {
        let is_integer = |dtype: DType| !dtype.is_float() && dtype != DType::I1;
        let known = signature.inputs.get(size.input as usize).is_some_and(|input| match size.dim {
            Some(dim) => input.shape.get(dim as usize) == Some(&DYNAMIC),
            None => input.scalar && is_integer(input.dtype),
        });
        if !known {
            return inconsistent(format!("a rule names {}, which no run decides", signature.size_text(*size)));
        }
    }
    Ok(())
}

fn verify_constant(constant: &Constant) -> Check {
    let found = constant.data.bytes().len() as u64;
    match constant.size_bytes() {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => {
            inconsistent(format!("constant `{}` has {found} bytes, its type asks for {expected}", constant.name))
        }
        None => inconsistent(format!("constant `{}` is too large", constant.name)),
    }
}

fn verify_variant(index: usize, variant: &Variant) -> Check {
    if variant.dispatches.len() != variant.kernels.len() {
        let (dispatches, kernels) = (variant.dispatches.len(), variant.kernels.len());
        return inconsistent(format!(
            "variant {index} counts the dispatches of {dispatches} kernels and has {kernels}"
        ));
    }
    let native = &variant.host;
    if native.objects.is_empty() && variant.host_data.is_empty() {
        return inconsistent(format!("variant {index} has no host function"));
    }
    if native.objects.iter().any(Vec::is_empty) || (native.entry.is_empty() && !native.objects.is_empty()) {
        return inconsistent(format!("variant {index} has no native host function"));
    }
    for kernel in &variant.kernels {
        let scalars = kernel.copies().sizes.iter().flatten().flat_map(|size| &size.scalars);
        if let Some(number) = scalars.copied().find(|number| *number as usize >= kernel.scalars_len()) {
            let (name, scalars) = (kernel.name(), kernel.scalars_len());
            return inconsistent(format!("kernel `{name}` copies by scalar {number} of {scalars}"));
        }
        match (kernel, &variant.target) {
            (Kernel::Gpu(kernel), Target::Gpu(_)) => verify_gpu_kernel(kernel)?,
            (Kernel::Cpu(kernel), Target::Cpu(_)) if kernel.symbol.is_empty() => {
                return inconsistent(format!("a kernel of variant {index} has no symbol"));
            }
            (Kernel::Cpu(kernel), Target::Cpu(_)) if kernel.ids > 3 => {
                return inconsistent(format!(
                    "kernel `{}` takes {} tile ids, at most 3 exist",
                    kernel.symbol, kernel.ids
                ));
            }
            (Kernel::Cpu(_), Target::Cpu(_)) => {}
            _ => {
                return inconsistent(format!("kernel `{}` is not of its variant's target", kernel.name()));
            }
        }
    }
    if let Some(source) = variant.sources.iter().find(|source| source.kernel as usize >= variant.kernels.len()) {
        let (kernel, kernels) = (source.kernel, variant.kernels.len());
        return inconsistent(format!("a source of variant {index} is of kernel {kernel} of {kernels}"));
    }
    verify_lives(&variant.lives)?;
    verify_plan(&variant.plan)
}

fn verify_gpu_kernel(kernel: &GpuKernel) -> Check {
    if kernel.name.is_empty() || kernel.wgsl.is_empty() {
        return inconsistent(format!("kernel `{}` has no name or no code", kernel.name));
    }
    if kernel.workgroup_size.contains(&0) {
        return inconsistent(format!("kernel `{}` has an empty workgroup", kernel.name));
    }
    // The layout of immediates requires these sizes: another one is no alignment, or longer than a number's bits.
    if let Some(size) = kernel.scalars.iter().find(|size| ![4, 8].contains(*size)) {
        return inconsistent(format!("kernel `{}` takes a number of {size} bytes, expected 4 or 8", kernel.name));
    }
    Ok(())
}

fn verify_lives(lives: &Lives) -> Check {
    let steps = lives.steps.len() as u64;
    for life in &lives.buffers {
        if life.first > life.last || u64::from(life.last) >= steps {
            return inconsistent(format!("a buffer is alive from step {} to {} of {steps}", life.first, life.last));
        }
    }
    Ok(())
}

fn verify_plan(plan: &MemoryPlan) -> Check {
    for transient in &plan.transients {
        let end = transient.offset.checked_add(transient.size_bytes);
        if end.is_none_or(|end| end > plan.arena_bytes) {
            return inconsistent(format!("transient `{}` lies outside the arena", transient.name));
        }
        if transient.first > transient.last {
            return inconsistent(format!("transient `{}` dies before it lives", transient.name));
        }
    }
    Ok(())
}

fn inconsistent(what: String) -> Check {
    Err(Error::Inconsistent { what })
}
