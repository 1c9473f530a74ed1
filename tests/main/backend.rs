//! monopour itself as a backend of the op suite, on the CPU or on a GPU.

use monopour::program::{CpuTarget, DType, Program};
use monopour::runtime::{Device, DeviceChoice, HostTensor, Options, Session};
use monopour::{CompileOptions, TargetDescription};
use monopour_testkit::suite::{Backend, Case, Cost, Run};
use monopour_testkit::{self as testkit, Dtype, device};
use std::sync::Arc;

/// Runs before the one that is looked at, so that pools and caches are warm.
const WARM_RUNS: usize = 2;
/// What no device can do yet.
const IGNORED: &[(&str, &str)] = &[("generic/gather", "import refuses tensor.extract in a body (F0002)")];

/// Compiles for a device and runs there, from the program and from its encoded bytes.
pub struct Monopour {
    name: &'static str,
    device: Device,
    target: TargetDescription,
    ignores: &'static [(&'static str, &'static str)],
}

impl Monopour {
    /// The CPU.
    pub fn cpu() -> Self {
        let device = Device::open(&DeviceChoice::Cpu).expect("there is always a CPU");
        Self { name: "cpu", device, target: TargetDescription::Cpu(CpuTarget::host()), ignores: IGNORED }
    }

    /// The best GPU, software adapters included; `None` where there is none and that is not a failure.
    pub fn gpu() -> Option<Self> {
        match Device::open(&DeviceChoice::Gpu) {
            Ok(device) => {
                let target = TargetDescription::Gpu(device.description().expect("a GPU has a description").clone());
                Some(Self { name: "gpu", device, target, ignores: IGNORED })
            }
            Err(error) => {
                device::skip_without_adapter(&error.to_string());
                None
            }
        }
    }

    /// The target that it compiles for.
    pub fn target(&self) -> &TargetDescription {
        &self.target
    }

    /// Runs a program, a few times, and gives the results and the cost of the last run.
    pub fn run_program(&self, program: Program, inputs: &[testkit::HostTensor]) -> Result<Run, String> {
        let inputs: Vec<_> = inputs.iter().map(to_runtime).collect();
        let options = Options { threads: 2, ..Options::default() };
        let mut session = Session::load(&self.device, Arc::new(program), &options).map_err(|e| e.to_string())?;
        let on_device = session.upload(&inputs).map_err(|e| e.to_string())?;
        for _ in 0..WARM_RUNS {
            session.execute(&on_device).map_err(|e| e.to_string())?;
        }
        let results = session.execute(&on_device).map_err(|e| e.to_string())?;
        let outputs = session.readback(&results).map_err(|e| e.to_string())?.iter().map(from_runtime).collect();
        let stats = session.stats();
        drop((on_device, results));
        let leaks = session.close();
        let steady = stats.steady_state;
        let cost = Cost {
            dispatches: stats.counts.dispatches,
            copies: stats.counts.copies,
            transfers: stats.counts.transfers,
            submits: stats.counts.submits,
            created_when_warm: steady.buffers_created + steady.bind_groups_created + steady.pipelines_created,
            leaks: leaks.buffers_alive + leaks.bytes_alive + leaks.unfreed_allocations,
        };
        Ok(Run { outputs, cost: Some(cost) })
    }
}

impl Backend for Monopour {
    fn name(&self) -> &str {
        self.name
    }

    fn submits(&self) -> u64 {
        u64::from(self.device.description().is_some())
    }

    fn ignores(&self) -> &[(&str, &str)] {
        self.ignores
    }

    fn run(&mut self, case: &Case, inputs: &[testkit::HostTensor]) -> Result<Run, String> {
        let options = CompileOptions { targets: vec![self.target.clone()], verify: true, ..Default::default() };
        let compiled = monopour::compile(case.text.as_bytes(), &case.name, &options).map_err(|d| d.to_string())?;
        let bytes = compiled.program.encode().map_err(|e| e.to_string())?;
        let decoded = Program::decode(&bytes).map_err(|e| e.to_string())?;
        let run = self.run_program(compiled.program, inputs)?;
        let again = self.run_program(decoded, inputs)?;
        let bytes_of = |run: &Run| run.outputs.iter().map(testkit::HostTensor::to_bytes).collect::<Vec<_>>();
        if bytes_of(&run) == bytes_of(&again) { Ok(run) } else { Err("the artifact gives other results".to_owned()) }
    }
}

fn to_runtime(tensor: &testkit::HostTensor) -> HostTensor {
    let dtype = match tensor.dtype {
        Dtype::F16 => DType::F16,
        Dtype::F64 => DType::F64,
        Dtype::Int(1) => DType::I1,
        Dtype::Int(8) => DType::I8,
        Dtype::Int(32) => DType::I32,
        Dtype::Int(64) => DType::I64,
        Dtype::Index => DType::Index,
        _ => DType::F32,
    };
    let shape = tensor.shape.iter().map(|d| *d as u64).collect();
    HostTensor::new(dtype, shape, tensor.to_bytes()).expect("a test's tensor has a type of the runtime")
}

fn from_runtime(tensor: &HostTensor) -> testkit::HostTensor {
    let dtype = match tensor.dtype() {
        DType::F16 => Dtype::F16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::I1 => Dtype::Int(1),
        DType::I8 => Dtype::Int(8),
        DType::I32 => Dtype::Int(32),
        DType::I64 => Dtype::Int(64),
        DType::Index => Dtype::Index,
    };
    let shape: Vec<_> = tensor.shape().iter().map(|d| *d as usize).collect();
    testkit::HostTensor::from_bytes(dtype, &shape, tensor.data()).expect("the runtime checked the length")
}
