//! Two programs of one signature on one device, in turns.

use crate::measure::cpu_s;
use crate::trust::trusted;
use monopour::options::Effort;
use monopour::program::host::{HostBlock, HostCode, HostConstant, HostOp, HostType, RuntimeFunction as F};
use monopour::program::{
    Access, Binding, DType, GpuFeature, GpuKernel, GpuRequirements, GpuTarget, Kernel, NativeCode, Program, Target,
    Variant,
};
use monopour::runtime::{Device, DeviceChoice, DeviceTensor, HostTensor, Options, Session};
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_testkit as testkit;
use std::sync::Arc;
use std::time::Instant;

/// Times of two programs, ours first.
pub struct Contest {
    /// The least CPU milliseconds of a run.
    pub least_ms: [f64; 2],
    /// The median over rounds of our time over the other's.
    pub median: f64,
    /// The least milliseconds of a run by the clock: less than CPU time where several cores run it.
    pub wall_ms: [f64; 2],
    /// CPU milliseconds of a first run.
    pub first_ms: [f64; 2],
}

impl Contest {
    /// Our least time over the other's.
    pub fn ratio(&self) -> f64 {
        self.least_ms[0] / self.least_ms[1]
    }
}

/// The GPU that the baselines are for.
///
/// # Errors
/// There is none, or it has other subgroups.
pub fn device() -> Result<Device, String> {
    let device = Device::open(&DeviceChoice::Gpu).map_err(|e| e.to_string())?;
    match device.description() {
        Some(gpu) if gpu.is_cpu_adapter() && gpu.exact_subgroup_size() == Some(8) => Ok(device),
        _ => Err("the baselines are for a software adapter with subgroups of eight".into()),
    }
}

/// The adapter and its driver.
pub fn adapter(device: &Device) -> String {
    device.description().map(|gpu| format!("{}, {}", gpu.name, gpu.driver)).unwrap_or_default()
}

/// Our program.
///
/// # Errors
/// The compiler's.
pub fn compiled(device: &Device, (name, text): (&str, &str), effort: Effort) -> Result<Program, String> {
    let description = device.description().expect("it is a GPU").clone();
    let options = CompileOptions { targets: vec![TargetDescription::Gpu(description)], effort, ..Default::default() };
    Ok(compile(text.as_bytes(), name, &options).map_err(|d| d.to_string())?.program)
}

/// A program with the signature of `ours`, of static sizes and one result, and one dispatch of this kernel.
pub fn hand_written(ours: &Program, wgsl: String, grid: [u64; 3]) -> Program {
    let inputs = ours.signature.inputs.len();
    let size = |t: &monopour::program::TensorDesc| t.shape.iter().product::<u64>() * 4;
    let sizes: Vec<u64> = ours.signature.inputs.iter().chain(&ours.signature.results).map(size).collect();
    let features = vec![GpuFeature::Subgroup, GpuFeature::Int64];
    let bindings = sizes.iter().enumerate().map(|(i, _)| if i < inputs { Access::Read } else { Access::Write });
    let size_at = wgsl.find("@workgroup_size(").map_or(0, |at| at + "@workgroup_size(".len());
    let invocations = wgsl[size_at..].split(')').next().and_then(|n| n.parse().ok()).expect("the size of a workgroup");
    let kernel = GpuKernel {
        name: "main".into(),
        wgsl,
        workgroup_size: [invocations, 1, 1],
        bindings: bindings.map(Binding::of).collect(),
        features: features.clone(),
        ..GpuKernel::default()
    };
    let requires = GpuRequirements { features, subgroup_size: Some(8), ..GpuRequirements::default() };
    let variant = Variant {
        target: Target::Gpu(GpuTarget { name: "hand-written".into(), backend: None, requires }),
        kernels: vec![Kernel::Gpu(kernel)],
        dispatches: vec![1],
        host: NativeCode::default(),
        host_data: host(inputs, &sizes, grid),
        plan: Default::default(),
        copies: vec![],
        allocations: vec![],
        lives: Default::default(),
        sources: vec![],
    };
    trusted(Program { variants: vec![variant], ..ours.clone() })
}

/// Binds inputs and result, and dispatches once.
fn host(inputs: usize, sizes: &[u64], grid: [u64; 3]) -> HostCode {
    let numbers = (0..=inputs as u64).chain(grid).chain(sizes.iter().copied());
    let constants: Vec<_> = numbers.map(|bits| HostConstant { ty: HostType::WORD, bits }).collect();
    let (grid_at, sizes_at, buffers_at) = (inputs + 1, inputs + 4, constants.len());
    let number = |i: usize| u32::try_from(i).expect("there are few registers");
    let call = |function, arguments: Vec<usize>, result: Option<usize>| HostOp::Call {
        function,
        arguments: arguments.into_iter().map(number).collect(),
        result: result.map(number),
    };
    let mut ops: Vec<HostOp> = (0..inputs).map(|i| call(F::Input, vec![i], Some(buffers_at + i))).collect();
    ops.push(call(F::Alloc, vec![sizes_at + inputs], Some(buffers_at + inputs)));
    ops.extend((0..=inputs).map(|i| call(F::Arg, vec![buffers_at + i, 0, sizes_at + i], None)));
    ops.push(call(F::Dispatch, vec![0, grid_at, grid_at + 1, grid_at + 2], None));
    ops.push(call(F::Result, vec![0, buffers_at + inputs], None));
    let block = HostBlock { ops, ..HostBlock::default() };
    HostCode { constants, registers: vec![HostType::WORD; inputs + 1], blocks: vec![block], ..HostCode::default() }
}

/// A loaded program with its inputs.
pub struct Side {
    session: Session,
    inputs: Vec<DeviceTensor>,
}

impl Side {
    /// Loads it.
    ///
    /// # Errors
    /// The runtime's.
    pub fn load(device: &Device, program: Program, inputs: &[testkit::HostTensor]) -> Result<Self, String> {
        let tensor = |t: &testkit::HostTensor| {
            let dtype = if t.dtype == testkit::Dtype::F16 { DType::F16 } else { DType::F32 };
            HostTensor::new(dtype, t.shape.iter().map(|d| *d as u64).collect(), t.to_bytes())
        };
        let inputs = inputs.iter().map(tensor).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let mut session = Session::load(device, Arc::new(program), &Options::default()).map_err(|e| e.to_string())?;
        let inputs = session.upload(&inputs).map_err(|e| e.to_string())?;
        Ok(Self { session, inputs })
    }

    /// Milliseconds of a run, to the end of its kernel, of CPU time and by the clock.
    fn run(&mut self) -> Result<[f64; 2], String> {
        let (before, start) = (cpu_s(), Instant::now());
        drop(self.session.execute(&self.inputs).map_err(|e| e.to_string())?);
        Ok([(cpu_s() - before) * 1e3, start.elapsed().as_secs_f64() * 1e3])
    }

    fn values(&mut self) -> Result<Vec<f32>, String> {
        let results = self.session.execute(&self.inputs).map_err(|e| e.to_string())?;
        let results = self.session.readback(&results).map_err(|e| e.to_string())?;
        results[0].to_f32().ok_or_else(|| "a result is no f32".to_owned())
    }
}

/// Compares the values of both.
///
/// # Errors
/// The runtime's; other values.
pub fn compare(ours: &mut Side, theirs: &mut Side) -> Result<(), String> {
    let (found, expected) = (ours.values()?, theirs.values()?);
    let largest = expected.iter().fold(1.0f32, |most, v| most.max(v.abs()));
    match (0..found.len()).find(|at| (found[*at] - expected[*at]).abs() > 1e-4 * largest) {
        Some(at) => Err(format!("element {at} is {}, the baseline's {}", found[at], expected[at])),
        None => Ok(()),
    }
}

/// Runs both in turns.
///
/// # Errors
/// The runtime's.
pub fn race(ours: &mut Side, theirs: &mut Side, rounds: usize) -> Result<Contest, String> {
    let first_ms = [ours.run()?[0], theirs.run()?[0]];
    let times = (0..rounds).map(|_| Ok([ours.run()?, theirs.run()?])).collect::<Result<Vec<_>, String>>()?;
    let least = |clock: usize| [0, 1].map(|side| times.iter().map(|t| t[side][clock]).fold(f64::INFINITY, f64::min));
    let mut ratios: Vec<f64> = times.iter().map(|[a, b]| a[0] / b[0]).collect();
    ratios.sort_by(f64::total_cmp);
    Ok(Contest { least_ms: least(0), median: ratios[ratios.len() / 2], wall_ms: least(1), first_ms })
}
