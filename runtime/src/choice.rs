//! The choice of a variant and of a form of its host function.

use monopour_program::target::missing_on_host;
use monopour_program::{NativeCode, Program, Target, Variant};

use crate::device::Device;
use crate::error::Error;
use crate::host_function::HostForm;

/// Whether this build runs native code.
const HAS_NATIVE: bool = cfg!(all(feature = "native", unix));

/// The variant that runs, and the form of its host function: native code or data.
pub(crate) struct Choice {
    pub variant: usize,
    pub form: HostForm,
}

/// Whether the kernels of a variant are native code.
pub(crate) fn runs_native_kernels(variant: &Variant) -> bool {
    matches!(variant.target, Target::Cpu(_)) && !variant.kernels.is_empty()
}

/// The best variant whose requirements are all met; of equally good ones the first.
pub(crate) fn choose(
    device: &Device,
    program: &Program,
    (wanted, is_trusted): (HostForm, bool),
) -> Result<Choice, Error> {
    let (mut held, mut untrusted) = (Vec::new(), None);
    let mut best: Option<(Merit, Choice)> = None;
    for (index, variant) in program.variants.iter().enumerate() {
        let mut missing = missing_of_target(device, &variant.target);
        let native = missing_for_native(&variant.host);
        let has_data = !variant.host_data.is_empty();
        let needs_native = runs_native_kernels(variant) || wanted == HostForm::Native || !has_data;
        if needs_native {
            missing.extend(native.iter().cloned());
        }
        if wanted == HostForm::Data && !has_data {
            missing.push("its host function as data, which it does not hold".into());
        }
        missing.dedup();
        match missing.is_empty() {
            true if needs_native && !is_trusted => {
                let label = variant.target.label();
                let part = if runs_native_kernels(variant) { "kernels" } else { "host function" };
                untrusted.get_or_insert_with(|| format!("the {part} of its variant {label} would run as machine code"));
            }
            true => {
                let runs_native = wanted != HostForm::Data && is_trusted && native.is_empty();
                let form = if runs_native { HostForm::Native } else { HostForm::Data };
                let merit = merit(device, &variant.target);
                if best.as_ref().is_none_or(|(most, _)| merit > *most) {
                    best = Some((merit, Choice { variant: index, form }));
                }
            }
            false => held.push((variant.target.label(), missing)),
        }
    }
    match (best, untrusted) {
        (Some((_, choice)), _) => Ok(choice),
        (None, Some(what)) => Err(Error::Untrusted { what }),
        (None, None) => Err(Error::NoVariant { device: device.name().to_owned(), held }),
    }
}

/// What makes a variant that fits better than another: it was compiled for this adapter; its kernels assume the size of subgroups;
/// it uses more features; more workgroup memory, or wider vectors.
type Merit = (bool, bool, usize, u32);

fn merit(device: &Device, target: &Target) -> Merit {
    match target {
        Target::Gpu(target) => {
            let requires = &target.requires;
            let memory = requires.limits.max_workgroup_storage_bytes;
            (target.name == device.name(), requires.subgroup_size.is_some(), requires.features.len(), memory)
        }
        Target::Cpu(target) => (false, false, target.features.len(), target.vector_bits),
    }
}

/// What native code needs and this machine or build has not.
fn missing_for_native(code: &NativeCode) -> Vec<String> {
    if code.objects.is_empty() {
        return vec!["native code, which it does not hold".into()];
    }
    let mut missing = missing_on_host(&code.arch, &code.features);
    if !HAS_NATIVE {
        missing.push("native code, which this build of the runtime does not run".into());
    }
    missing
}

fn missing_of_target(device: &Device, target: &Target) -> Vec<String> {
    match (target, device.description()) {
        (Target::Cpu(target), None) => target.missing(),
        (Target::Gpu(target), Some(description)) => {
            let mut missing = target.requires.missing(description);
            if let Some(backend) = target.backend.filter(|backend| Some(*backend) != description.backend) {
                missing.push(format!("backend {}", backend.as_str()));
            }
            missing
        }
        (Target::Cpu(_), Some(_)) => vec!["the cpu device".into()],
        (Target::Gpu(_), None) => vec!["a gpu device".into()],
    }
}
