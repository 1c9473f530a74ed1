//! Hand-written programs: host functions and CPU kernels in C, compute kernels in WGSL.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use monopour_contract::RuntimeFunction as F;
use monopour_program::host::{HostBlock, HostConstant, HostOp, HostType, ScalarOp};
use monopour_program::*;
use monopour_runtime::{Device, DeviceChoice, Error};

/// Declarations of the functions that host code may call.
const ABI: &str = "
typedef long long i64;
i64 monopour_rt_input(i64 cx, i64 index);
i64 monopour_rt_constant(i64 cx, i64 index);
i64 monopour_rt_alloc(i64 cx, i64 bytes);
i64 monopour_rt_arena(i64 cx, i64 bytes);
void monopour_rt_free(i64 cx, i64 handle);
void monopour_rt_result(i64 cx, i64 index, i64 handle);
void monopour_rt_arg(i64 cx, i64 handle, i64 offset, i64 bytes);
void monopour_rt_dispatch(i64 cx, i64 kernel, i64 x, i64 y, i64 z);
void monopour_rt_copy(i64 cx, i64 src, i64 src_offset, i64 dst, i64 dst_offset, i64 bytes);
void monopour_rt_fill(i64 cx, i64 dst, i64 offset, i64 bytes, i64 pattern);
#define input(i) monopour_rt_input(cx, i)
#define constant(i) monopour_rt_constant(cx, i)
#define alloc(n) monopour_rt_alloc(cx, n)
#define arena(n) monopour_rt_arena(cx, n)
#define release(h) monopour_rt_free(cx, h)
#define result(i, h) monopour_rt_result(cx, i, h)
#define arg(h, o, n) monopour_rt_arg(cx, h, o, n)
#define dispatch(k, x, y, z) monopour_rt_dispatch(cx, k, x, y, z)
#define copy(s, so, d, d_o, n) monopour_rt_copy(cx, s, so, d, d_o, n)
i64 monopour_rt_read(i64, i64, i64, i64); void monopour_rt_write(i64, i64, i64, i64, i64);
#define read(h, o, n) monopour_rt_read(cx, h, o, n)
#define write(h, o, n, v) monopour_rt_write(cx, h, o, n, v)
#define fill(d, o, n, p) monopour_rt_fill(cx, d, o, n, p)
";

/// Compiles C to an ELF relocatable with the machine's compiler; `None`, counted as a skip, if there is none.
pub fn compile_c(source: &str, flags: &[&str]) -> Option<Vec<u8>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("monopour-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let (c, o) = (std::env::temp_dir().join(format!("{name}.c")), std::env::temp_dir().join(format!("{name}.o")));
    std::fs::write(&c, format!("{ABI}\n{source}")).unwrap();
    let mut command = Command::new("cc");
    command.args(["-O2", "-c", "-fno-asynchronous-unwind-tables", "-fno-stack-protector"]);
    let output = match command.args(flags).arg("-o").arg(&o).arg(&c).output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: no C compiler ({error})");
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let object = std::fs::read(&o).unwrap();
    std::fs::remove_file(&c).unwrap();
    std::fs::remove_file(&o).unwrap();
    Some(object)
}

pub fn host(object: Vec<u8>) -> NativeCode {
    NativeCode { arch: std::env::consts::ARCH.into(), features: vec![], objects: vec![object], entry: "entry".into() }
}

pub fn tensor(name: &str, len: u64) -> TensorDesc {
    TensorDesc { name: name.into(), dtype: DType::F32, shape: vec![len], donated: false, scalar: false }
}

/// A program of one variant with `inputs` and `results` of f32 vectors.
pub fn program(inputs: &[u64], results: &[u64], variant: Variant) -> Program {
    let named = |kind: &str, lens: &[u64]| {
        lens.iter().enumerate().map(|(i, &len)| tensor(&format!("{kind}{i}"), len)).collect()
    };
    Program {
        entry: "entry".into(),
        signature: Signature { inputs: named("arg", inputs), results: named("result", results), ..Default::default() },
        constants: vec![],
        variants: vec![variant],
        producer: "test".into(),
        trust: Trust::default(),
    }
}

pub fn cpu_variant(object: Vec<u8>, kernels: &[(&str, u32, u32)]) -> Variant {
    let kernels = kernels.iter().map(|&(symbol, args, ids)| {
        Kernel::Cpu(CpuKernel { symbol: symbol.into(), args, ids, ..CpuKernel::default() })
    });
    Variant {
        target: Target::Cpu(CpuTarget::parse("generic").unwrap()),
        dispatches: vec![1; kernels.len()],
        kernels: kernels.collect(),
        host: host(object),
        host_data: HostCode::default(),
        plan: MemoryPlan::default(),
        copies: vec![],
        allocations: vec![],
        lives: Lives::default(),
        sources: vec![],
    }
}

/// A kernel with the entry point `name`, and SPIR-V as from the compiler.
pub fn gpu_kernel(name: &str, wgsl: &str, bindings: &[Access]) -> Kernel {
    let module = naga::front::wgsl::parse_str(wgsl).unwrap();
    let flags = naga::valid::ValidationFlags::all();
    let info = naga::valid::Validator::new(flags, naga::valid::Capabilities::all()).validate(&module).unwrap();
    let options = naga::back::spv::Options {
        lang_version: (1, 3),
        zero_initialize_workgroup_memory: naga::back::spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        ..Default::default()
    };
    let spirv = naga::back::spv::write_vec(&module, &info, &options, None).unwrap();
    let entry = module.entry_points.iter().find(|entry| entry.name == name).unwrap();
    Kernel::Gpu(GpuKernel {
        name: name.into(),
        wgsl: wgsl.into(),
        spirv,
        workgroup_size: entry.workgroup_size,
        bindings: bindings.iter().map(|&access| Binding::of(access)).collect(),
        ..GpuKernel::default()
    })
}

pub fn gpu_variant(object: Vec<u8>, kernels: Vec<Kernel>) -> Variant {
    Variant {
        target: Target::Gpu(GpuTarget { name: "test".into(), ..GpuTarget::default() }),
        dispatches: vec![1; kernels.len()],
        kernels,
        host: host(object),
        host_data: HostCode::default(),
        plan: MemoryPlan::default(),
        copies: vec![],
        allocations: vec![],
        lives: Lives::default(),
        sources: vec![],
    }
}

/// The GPU, software adapters included; `None`, counted as a skip, if there is none and none is required.
pub fn gpu() -> Option<Device> {
    match Device::open(&DeviceChoice::Gpu) {
        Ok(device) => Some(device),
        Err(Error::NoAdapter) if std::env::var_os("REQUIRE_GPU").is_none_or(|v| v != "1") => {
            println!("skipped: no adapter");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub fn cpu() -> Device {
    Device::open(&DeviceChoice::Cpu).unwrap()
}

/// The type of integers of host code.
pub const INT: HostType = HostType::WORD;

/// Builds host code: constants first, then registers as they are named.
#[derive(Default)]
pub struct Code(pub HostCode);

impl Code {
    pub fn constants(values: &[u64]) -> Code {
        let constants = values.iter().map(|bits| HostConstant { ty: INT, bits: *bits }).collect();
        Code(HostCode { constants, blocks: vec![HostBlock::default()], ..HostCode::default() })
    }

    pub fn register(&mut self, ty: HostType) -> u32 {
        self.0.registers.push(ty);
        self.0.registers_len() as u32 - 1
    }

    pub fn block(&mut self, block: HostBlock) -> u32 {
        self.0.blocks.push(block);
        self.0.blocks.len() as u32 - 1
    }

    pub fn add(&mut self, block: u32, op: HostOp) {
        self.0.blocks[block as usize].ops.push(op);
    }

    pub fn call(&mut self, block: u32, function: F, arguments: &[u32]) -> u32 {
        let result = function.result().map(|_| self.register(INT));
        self.add(block, HostOp::Call { function, arguments: arguments.into(), result });
        result.unwrap_or(0)
    }

    pub fn scalar(&mut self, block: u32, op: ScalarOp, operands: &[u32], ty: HostType) -> u32 {
        let result = self.register(ty);
        self.add(block, HostOp::Scalar { op, operands: operands.into(), result, location: None });
        result
    }
}
