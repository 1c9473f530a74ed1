//! What the benches share: programs from the op suite, loaded on a device and warm.

use monopour::program::{CpuTarget, DType};
use monopour::runtime::{Device, DeviceChoice, DeviceTensor, HostTensor, Options, Session};
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_testkit::suite::{self, Case};
use std::sync::Arc;

/// The benchmark programs.
pub fn programs() -> Vec<Case> {
    suite::benchmarks()
}

/// A program that is loaded, with its inputs on the device.
pub struct Loaded {
    session: Session,
    inputs: Vec<DeviceTensor>,
}

impl Loaded {
    /// Compiles a program for a device and loads it there; the CPU with `threads` threads.
    ///
    /// # Errors
    /// What the compiler or the runtime says.
    pub fn new(case: &Case, choice: &DeviceChoice, threads: usize) -> Result<Self, String> {
        let device = Device::open(choice).map_err(|e| e.to_string())?;
        let target = match device.description() {
            Some(description) => TargetDescription::Gpu(description.clone()),
            None => TargetDescription::Cpu(CpuTarget::host()),
        };
        let options = CompileOptions { targets: vec![target], ..Default::default() };
        let compiled = compile(case.text.as_bytes(), &case.name, &options).map_err(|d| d.to_string())?;
        let options = Options { threads, ..Options::default() };
        let mut session = Session::load(&device, Arc::new(compiled.program), &options).map_err(|e| e.to_string())?;
        let tensor = |t: monopour_testkit::HostTensor| {
            HostTensor::new(DType::F32, t.shape.iter().map(|d| *d as u64).collect(), t.to_bytes())
        };
        let inputs =
            case.input_values().into_iter().map(tensor).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let inputs = session.upload(&inputs).map_err(|e| e.to_string())?;
        Ok(Self { session, inputs })
    }

    /// One run, to the end of its last kernel; the results are given back to the pool.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn run(&mut self) -> Result<(), String> {
        self.session.execute(&self.inputs).map(drop).map_err(|e| e.to_string())
    }
}
