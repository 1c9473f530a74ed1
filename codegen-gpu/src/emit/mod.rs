//! Translates a distributed kernel to a naga module, and writes it as WGSL and SPIR-V.
//!
//! Before: `func.func @k(%x: memref<64xf32, #gpu.address_space<global>> {monopour.access = "read"}, ..) attributes {monopour.workgroup_size = array<i32: 8, 1, 1>}`
//! After: `@compute @workgroup_size(8, 1, 1) fn k(..)` with buffer i at `@group(0) @binding(i)`, and the scalars that follow
//! the buffers as words of one `var<immediate>`, or of one `var<uniform>` at the binding behind the buffers (layout:
//! [`GpuKernel::numbers`]).
//! Requires: the op set below; one lane count per buffer.
//! Ensures: the module passed naga's validator; the same input gives the same text and words.
//! Limits: ops outside the set (G0001), types without a counterpart (G0002), mixed lane counts (G0007).
//!
//! The op set: `arith`, `math` on scalars and on vectors of 2, 4 or 8 lanes; `scf.{for,if,while}`; `memref.{load,store}` and
//! `vector.{load,store}` at one linear index into an argument or a `memref.alloca` (workgroup or private);
//! `vector.{broadcast,splat,extract,insert,from_elements,shuffle,bitcast,fma}`;
//! `gpu.{block_id,thread_id,grid_dim,lane_id,subgroup_id,subgroup_size,shuffle,subgroup_reduce,subgroup_broadcast,barrier}`;
//! `gpu.subgroup_mma_{load_matrix,store_matrix,compute,constant_matrix,elementwise}`; in memory of an invocation, a matrix of
//! f32 sums is the elements of it that the invocation holds.
//!
//! Representation: `index` is i32 (no buffer has 2^31 elements: bindings end at 2 GiB) and takes eight bytes in a buffer,
//! signless integers are signed, integers of 2 to 31 bits are sign-extended i32. i1 is bool; in a buffer it is a byte of
//! value 0 or 1. bf16 is f32, and so is f16 where the kernel says so. Bytes and halves of a buffer lie in words, an access
//! of 8 or 16 bytes in one vector of them; a store of a single one is two atomics, which keeps its neighbours, or the store
//! of a u16. `vector<8xT>` of 32-bit elements is two `vec4<T>`, the elements of even and of odd position, and one
//! `vec4<u64>` in memory: on adapters with 64-bit integers one wide access costs as much as a narrow one.
//!
//! The files: one per dialect (`arith`, `math` with `special`, `memref`, `vector`, `scf`, `gpu`), `module` (the builder), `types`,
//! `scalars` (scalar arguments), `cooperative` (matrices), `convert`, `bits`, the representations `narrow`, `packed`, `short_float`
//! (bf16, f16) and `wide` (f64), and passes over SPIR-V: `words`, and `fragments` (elements of matrices).

mod arith;
mod bits;
mod convert;
mod cooperative;
mod fragments;
mod gpu;
mod math;
mod memref;
mod module;
mod narrow;
mod packed;
mod remainder;
mod scalars;
mod scf;
mod short_float;
mod special;
mod types;
mod vector;
mod wide;
mod words;

use crate::error;
use module::Kernel;
use monopour_contract::attributes;
use monopour_ir::typed::gpu::is_load;
use monopour_ir::{Attr, Block, Diagnostics, Module, Op, Value, ops};
use monopour_program::{Access, Binding, CopiedSize, DispatchCopies, GpuFeature, GpuKernel};
use naga::back::{spv, wgsl};
pub(crate) use scalars::size_bytes as scalar_bytes;
pub(crate) use wide::{is_double, works_on_bits};

/// A buffer in workgroup memory counts as a multiple of so many bytes.
pub(crate) const WORKGROUP_UNIT_BYTES: u64 = 16;

/// Translates one distributed kernel function of `module`.
///
/// # Errors
/// G0001, G0002, G0004, G0006, G0007.
pub fn run(module: &Module, kernel_func: Op) -> Result<GpuKernel, Diagnostics> {
    run_all(module, &[kernel_func]).map(|mut kernels| kernels.remove(0))
}

/// Translates distributed kernel functions of `module`, in order. One thread reads the IR; naga validates and writes on the
/// other cores meanwhile.
///
/// # Errors
/// Those of [`run`].
pub fn run_all(module: &Module, kernels: &[Op]) -> Result<Vec<GpuKernel>, Diagnostics> {
    let mut written: Vec<Result<GpuKernel, String>> = kernels.iter().map(|_| Ok(GpuKernel::default())).collect();
    rayon::in_place_scope(|scope| {
        for (func, slot) in kernels.iter().zip(&mut written) {
            let translated = translate(module, *func)?;
            scope.spawn(move |_| *slot = write(translated));
        }
        Ok::<(), Diagnostics>(())
    })?;
    let failed = |(func, kernel): (&Op, Result<GpuKernel, String>)| {
        kernel.map_err(|message| error::invalid_module(*func, message))
    };
    kernels.iter().zip(written).map(failed).collect()
}

/// A kernel without its texts, and the naga module.
fn translate(module: &Module, kernel_func: Op) -> Result<(GpuKernel, naga::Module), Diagnostics> {
    debug_assert!(kernel_func.is_inside(module.op()), "the kernel belongs to the module");
    let name =
        kernel_func.symbol_name().ok_or_else(|| error::bad_kernel_attr(kernel_func, "the function has no name"))?;
    let workgroup_size = workgroup_size(kernel_func)?;
    let body = kernel_func.body().ok_or_else(|| error::not_a_tile(kernel_func, "the function has no body"))?;
    let mut kernel = Kernel::new(kernel_func);
    let bindings = bind_arguments(&mut kernel, kernel_func, body)?;
    kernel.ordered = memref::exchanged(kernel_func, body);
    let scalars = scalars::bind(&mut kernel, kernel_func, body, bindings.len() as u32)?;
    emit_block(&mut kernel, body)?;
    let features: Vec<GpuFeature> = kernel.features.iter().copied().collect();
    let naga = kernel.finish(&name, workgroup_size);
    let count = |attr: &str| kernel_func.attr(attr).and_then(|a| a.as_int()).unwrap_or(0);
    let sizes = kernel_func.attr(attributes::COPIED_SIZES).and_then(|a| a.as_array()).unwrap_or_default();
    let lists = sizes.iter().filter_map(Attr::as_int_lists);
    let copies = DispatchCopies {
        count: count(attributes::COPIES) as u32,
        bytes: count(attributes::COPIED_BYTES) as u64,
        sizes: lists.map(|lists| lists.iter().filter_map(|list| CopiedSize::from_list(list)).collect()).collect(),
    };
    let kernel =
        GpuKernel { name, wgsl: String::new(), spirv: vec![], workgroup_size, bindings, features, copies, scalars };
    Ok((kernel, naga))
}

/// Bytes of workgroup memory of a distributed kernel function, each of its buffers in whole units, as WebGPU counts them.
///
/// # Errors
/// G0002.
pub fn workgroup_bytes(kernel_func: Op) -> Result<u64, Diagnostics> {
    let mut kernel = Kernel::new(kernel_func);
    let mut total = 0u64;
    for op in kernel_func.find_all(ops::memref::ALLOCA) {
        if let Some(bytes) = memref::shared_bytes(&mut kernel, op)? {
            total = total.saturating_add(bytes.next_multiple_of(WORKGROUP_UNIT_BYTES));
        }
    }
    Ok(total)
}

fn workgroup_size(func: Op) -> Result<[u32; 3], Diagnostics> {
    let size = func.attr(attributes::WORKGROUP_SIZE).and_then(|a| a.as_ints());
    match size.as_deref() {
        Some(&[x, y, z]) if x > 0 && y > 0 && z > 0 => Ok([x as u32, y as u32, z as u32]),
        _ => {
            let why = format!("'{}' is not three positive integers", attributes::WORKGROUP_SIZE);
            Err(error::bad_kernel_attr(func, &why))
        }
    }
}

/// Access mode of an argument, from the attribute `monopour.access` of the argument; `read_write` where it is missing.
fn access_of(func: Op, index: usize) -> Access {
    let attrs = func.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    let access = attrs.get(index).and_then(|a| a.get(attributes::ACCESS));
    match access.as_ref().and_then(|a| a.as_string()) {
        Some("read") => Access::Read,
        Some("write") => Access::Write,
        _ => Access::ReadWrite,
    }
}

/// Whether an argument is used by other ops than loads, whatever its binding.
fn is_written(arg: Value) -> bool {
    arg.uses().iter().any(|u| !is_load(u.op))
}

fn bind_arguments<'c>(kernel: &mut Kernel<'c>, func: Op<'c>, body: Block<'c>) -> Result<Vec<Binding>, Diagnostics> {
    let forms = memref::argument_forms(kernel, body)?;
    let mut bindings = Vec::new();
    for (i, arg) in body.args().into_iter().enumerate().filter(|(_, arg)| arg.ty().is_memref()) {
        let access = access_of(func, i);
        memref::bind(kernel, func, arg, bindings.len() as u32, forms[i], access)?;
        bindings.push(Binding { access, is_written: is_written(arg) });
    }
    Ok(bindings)
}

/// Emits all ops of a block but its terminator, which the op of the region handles.
fn emit_block<'c>(kernel: &mut Kernel<'c>, block: Block<'c>) -> Result<(), Diagnostics> {
    let terminator = block.terminator();
    for op in block.ops() {
        if Some(op) != terminator {
            emit_op(kernel, op)?;
        }
    }
    Ok(())
}

fn emit_op<'c>(kernel: &mut Kernel<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    match op.dialect() {
        "arith" => arith::emit(kernel, op),
        "math" if bits::OPS.contains(&op.name()) => bits::emit(kernel, op),
        "math" => math::emit(kernel, op),
        "scf" => scf::emit(kernel, op),
        "memref" => memref::emit(kernel, op),
        "vector" => vector::emit(kernel, op),
        "gpu" => gpu::emit(kernel, op),
        _ => Err(error::unsupported_op(op)),
    }
}

/// Validates and writes both languages, with one name of the entry point.
fn write((kernel, mut module): (GpuKernel, naga::Module)) -> Result<GpuKernel, String> {
    let info = validate(&module, &kernel.features)?;
    let text = wgsl::write_string(&module, &info, wgsl::WriterFlags::empty()).map_err(|e| e.to_string())?;
    let (name, wgsl) = entry_name(&module.entry_points[0].name, text).ok_or("it has no entry point")?;
    module.entry_points[0].name.clone_from(&name);
    let info = validate(&module, &kernel.features)?;
    let mut spirv = spirv(&module, &info, &name).map_err(|e| e.to_string())?;
    words::narrow_barriers(&mut spirv);
    words::drop_uniform_halves(&mut spirv);
    let spirv = fragments::resolve(spirv)?;
    Ok(GpuKernel { name, wgsl, spirv, ..kernel })
}

/// The writer renames symbols that are not identifiers, and appends `_` to those that end in a digit, although they are
/// identifiers: those keep their name.
fn entry_name(symbol: &str, text: String) -> Option<(String, String)> {
    let after = text.split("@compute").nth(1)?.split_once("fn ")?.1;
    let written = after.split('(').next()?.to_owned();
    if written == format!("{symbol}_") && symbol.ends_with(|c: char| c.is_ascii_digit()) {
        let text = text.replacen(&format!("fn {written}("), &format!("fn {symbol}("), 1);
        return Some((symbol.to_owned(), text));
    }
    Some((written, text))
}

fn validate(module: &naga::Module, features: &[GpuFeature]) -> Result<naga::valid::ModuleInfo, String> {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    let mut flags = ValidationFlags::all();
    // Conditions that a workgroup agrees on through its memory are not known to be uniform; such kernels run as SPIR-V only.
    flags.set(ValidationFlags::CONTROL_FLOW_UNIFORMITY, !features.contains(&GpuFeature::CooperativeMatrix));
    let capabilities = Capabilities::SHADER_INT64
        | Capabilities::SHADER_INT16
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::FLOAT64
        | Capabilities::SUBGROUP
        | Capabilities::COOPERATIVE_MATRIX
        | Capabilities::IMMEDIATES;
    let result = Validator::new(flags, capabilities).validate(module);
    result.map_err(|e| format!("{}: {}", e.as_inner(), cause(e.as_inner())))
}

fn spirv(module: &naga::Module, info: &naga::valid::ModuleInfo, name: &str) -> Result<Vec<u32>, spv::Error> {
    let mut options = spv::Options {
        // Subgroup operations need 1.3, which Vulkan 1.1 guarantees.
        lang_version: (1, 3),
        flags: spv::WriterFlags::empty(),
        // The polyfills below exist for untrusted shaders; they cost several hundred ms of driver time on software adapters,
        // and these kernels index in bounds, write before they read and never divide by zero.
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        // No compute shader has such inputs, and NVIDIA's drivers lack the feature.
        use_storage_input_output_16: false,
        ..spv::Options::default()
    };
    options.bounds_check_policies = naga::proc::BoundsCheckPolicies::default();
    let pipeline = spv::PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: name.to_owned() };
    spv::write_vec(module, info, &options, Some(&pipeline))
}

fn cause(error: &dyn std::error::Error) -> String {
    let mut parts = Vec::new();
    let mut source = error.source();
    while let Some(e) = source {
        parts.push(e.to_string());
        source = e.source();
    }
    parts.join(": ")
}
