//! Kernels of programs that no one vouched for: their WGSL is parsed and validated, and compared with what the program says.
//!
//! Whatever passes here is given to wgpu with all of its run-time checks: indices into buffers, private and workgroup arrays
//! are clamped, loops end, workgroup memory is zeroed. What this file adds is that the metadata, on which the executor
//! relies, tells the truth: above all that a kernel does not write where it says that it only reads.

use std::panic::{AssertUnwindSafe, catch_unwind};

use monopour_program::{GpuFeature, GpuKernel};
use wgpu::naga::front::wgsl;
use wgpu::naga::valid::{Capabilities, GlobalUse, ModuleInfo, ValidationFlags, Validator};
use wgpu::naga::{AddressSpace, GlobalVariable, Handle, Module, ShaderStage, StorageAccess, Type};

use crate::error::Error;

/// Stack of the threads that parse and translate kernels: naga recurses 200 levels deep.
pub(crate) const STACK_BYTES: usize = 16 << 20;
/// Longest text of a kernel: generated ones have some kilobytes.
const MAX_WGSL_BYTES: usize = 4 << 20;
/// Most bytes of one invocation's own variables: drivers do not check them, and kernels keep theirs in registers.
const MAX_LOCAL_BYTES: u64 = 64 << 10;

/// Checks a kernel against its metadata.
///
/// # Errors
/// [`Error::Kernel`].
pub(crate) fn check(kernel: &GpuKernel) -> Result<(), Error> {
    // naga's own defects must not become panics of the caller.
    let checked = catch_unwind(AssertUnwindSafe(|| defect(kernel)));
    let what = match checked {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(what)) => what,
        Err(_) => "its WGSL cannot be parsed".to_owned(),
    };
    Err(Error::Kernel { kernel: kernel.name.clone(), what })
}

fn defect(kernel: &GpuKernel) -> Result<(), String> {
    if kernel.wgsl.len() > MAX_WGSL_BYTES {
        return Err(format!("its WGSL has {} bytes, more than {MAX_WGSL_BYTES}", kernel.wgsl.len()));
    }
    if kernel.features.contains(&GpuFeature::CooperativeMatrix) {
        return Err("it multiplies cooperative matrices, whose accesses nothing checks".into());
    }
    let module = wgsl::parse_str(&kernel.wgsl).map_err(|error| format!("its WGSL is wrong: {}", one_line(&error)))?;
    // Whatever the metadata says: the device has what its adapter offers.
    let checked = Capabilities::all() - Capabilities::COOPERATIVE_MATRIX;
    let mut validator = Validator::new(ValidationFlags::all(), checked);
    let info = validator.validate(&module).map_err(|error| format!("its WGSL is invalid: {}", one_line(&error)))?;
    entry(kernel, &module)?;
    local_memory(&module)?;
    variables(kernel, &module, &info)
}

/// The one entry point, with its workgroup size.
fn entry(kernel: &GpuKernel, module: &Module) -> Result<(), String> {
    let [entry] = module.entry_points.as_slice() else {
        return Err(format!("its WGSL has {} entry points", module.entry_points.len()));
    };
    if entry.name != kernel.name || entry.stage != ShaderStage::Compute {
        return Err(format!("its WGSL has the entry point `{}`, of stage {:?}", entry.name, entry.stage));
    }
    if !module.overrides.is_empty() || entry.workgroup_size_overrides.is_some() {
        return Err("its WGSL leaves constants open".into());
    }
    if entry.workgroup_size != kernel.workgroup_size {
        let (found, stated) = (entry.workgroup_size, kernel.workgroup_size);
        return Err(format!("its WGSL has workgroups of {found:?}, the program says {stated:?}"));
    }
    Ok(())
}

/// Bytes of variables that each invocation has for itself.
fn local_memory(module: &Module) -> Result<(), String> {
    let bytes = |ty| size_bytes(module, ty);
    let private = module.global_variables.iter().filter(|(_, variable)| variable.space == AddressSpace::Private);
    let functions = module.functions.iter().map(|(_, function)| function);
    let functions = functions.chain(module.entry_points.iter().map(|entry| &entry.function));
    let local = functions.flat_map(|function| function.local_variables.iter().map(|(_, variable)| variable.ty));
    let all = private.map(|(_, variable)| variable.ty).chain(local).map(bytes).fold(0, u64::saturating_add);
    if all > MAX_LOCAL_BYTES {
        return Err(format!("its variables take {all} bytes per invocation, more than {MAX_LOCAL_BYTES}"));
    }
    Ok(())
}

/// Every variable with a binding is an argument, used as the program says; the numbers have the stated size.
fn variables(kernel: &GpuKernel, module: &Module, info: &ModuleInfo) -> Result<(), String> {
    let uses = info.get_entry_point(0);
    for (handle, variable) in module.global_variables.iter() {
        match variable.space {
            AddressSpace::Private | AddressSpace::WorkGroup => {}
            AddressSpace::Storage { access } => {
                let (at, argument) = position(variable)
                    .and_then(|at| Some((at, kernel.bindings.get(at)?)))
                    .ok_or_else(|| format!("its WGSL binds {:?}, which is no argument", variable.binding))?;
                let writes = GlobalUse::WRITE | GlobalUse::ATOMIC;
                if uses[handle].intersects(writes) && !argument.is_written {
                    return Err(format!("it writes argument {at}, which the program says it does not"));
                }
                if access.contains(StorageAccess::STORE) && !argument.access.is_written() {
                    return Err(format!("argument {at} is bound for writing, which the program says it is not"));
                }
            }
            AddressSpace::Uniform
                if kernel.takes_number_buffer() && position(variable) == Some(kernel.bindings.len()) =>
            {
                numbers(kernel, module, variable)?;
            }
            AddressSpace::Immediate if !kernel.takes_number_buffer() => numbers(kernel, module, variable)?,
            space => return Err(format!("its WGSL has a variable in the space {space:?}")),
        }
    }
    Ok(())
}

/// The scalars fit in what a dispatch sets.
fn numbers(kernel: &GpuKernel, module: &Module, variable: &GlobalVariable) -> Result<(), String> {
    let read = size_bytes(module, variable.ty);
    // A uniform binding is whole vectors, of which the last may be longer than the numbers.
    let given = u64::from(kernel.number_bytes()).next_multiple_of(16);
    if read > given {
        return Err(format!("its WGSL reads {read} bytes of scalars, the program gives {}", kernel.number_bytes()));
    }
    Ok(())
}

/// Bytes of a type; the most that there are for one that is too large.
fn size_bytes(module: &Module, ty: Handle<Type>) -> u64 {
    module.types[ty].inner.try_size(module.to_ctx()).map_or(u64::MAX, u64::from)
}

/// The argument that a variable is bound to.
fn position(variable: &GlobalVariable) -> Option<usize> {
    let binding = variable.binding.as_ref().filter(|binding| binding.group == 0)?;
    usize::try_from(binding.binding).ok()
}

fn one_line(error: &dyn std::fmt::Display) -> String {
    let text: String = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use monopour_program::{Access, Binding};

    const ADD: &str = "@group(0) @binding(0) var<storage> a: array<f32>;\n\
        @group(0) @binding(1) var<storage, read_write> b: array<f32>;\n\
        var<immediate> n: u32;\n\
        @compute @workgroup_size(8) fn add(@builtin(global_invocation_id) id: vec3<u32>) {\n\
        if (id.x < n) { b[id.x] = a[id.x]; }\n}\n";

    fn kernel(wgsl: &str) -> GpuKernel {
        GpuKernel {
            name: "add".into(),
            wgsl: wgsl.into(),
            workgroup_size: [8, 1, 1],
            bindings: vec![Binding::of(Access::Read), Binding::of(Access::Write)],
            features: vec![GpuFeature::Immediates],
            scalars: vec![4],
            ..GpuKernel::default()
        }
    }

    #[track_caller]
    fn refused(kernel: &GpuKernel, expected: &str) {
        let error = check(kernel).expect_err("it must be refused");
        assert_eq!(error.code(), "R0021");
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn a_kernel_that_is_what_the_program_says_passes() {
        check(&kernel(ADD)).unwrap();
    }

    #[test]
    fn metadata_that_does_not_fit_is_refused() {
        let add = kernel(ADD);
        refused(&GpuKernel { name: "sub".into(), ..add.clone() }, "entry point `add`");
        refused(&GpuKernel { workgroup_size: [4, 1, 1], ..add.clone() }, "workgroups of [8, 1, 1]");
        refused(&GpuKernel { bindings: vec![Binding::of(Access::Read)], ..add.clone() }, "no argument");
        let says_reads = vec![Binding::of(Access::Read), Binding { access: Access::ReadWrite, is_written: false }];
        refused(&GpuKernel { bindings: says_reads, ..add.clone() }, "writes argument 1");
        refused(&GpuKernel { bindings: vec![Binding::of(Access::Read); 2], ..add.clone() }, "argument 1");
        refused(&GpuKernel { features: vec![], ..add.clone() }, "space Immediate");
        refused(&GpuKernel { scalars: vec![], features: vec![GpuFeature::Immediates], ..add }, "reads 4 bytes");
    }

    #[test]
    fn cooperative_matrices_are_refused() {
        let features = vec![GpuFeature::Immediates, GpuFeature::CooperativeMatrix];
        refused(&GpuKernel { features, ..kernel(ADD) }, "cooperative matrices");
        // One that does not say so is refused for its text.
        let text = ADD.replace("if (id.x < n)", "var sums = coop_mat16x16<f32, C>(); if (id.x < n)");
        refused(&kernel(&format!("enable wgpu_cooperative_matrix;\n{text}")), "invalid");
    }

    #[test]
    fn wrong_text_is_refused() {
        refused(&kernel("fn add("), "wrong");
        refused(&kernel(""), "0 entry points");
        refused(&kernel(&ADD.replace("b[id.x] = a", "b[id.x] = c")), "wrong");
        refused(&kernel(&format!("override n2: u32;\n{ADD}")), "leaves constants open");
        refused(&kernel(&format!("var<private> big: array<f32, 100000>;\n{ADD}")), "400000 bytes");
        let nested = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
        refused(&kernel(&format!("const x = {nested};\n{ADD}")), "wrong");
    }
}
