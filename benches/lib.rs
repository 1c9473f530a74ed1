//! The benchmark programs, loaded on a device and warm, for all benches. `measure` and `allocator` serve the benches of
//! passes.

use monopour::program::{CpuTarget, DType};
use monopour::runtime::{Device, DeviceChoice, DeviceTensor, HostTensor, Options, Session};
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_testkit::programs::{Benchmark, NAMES, Size, benchmark};
use std::sync::Arc;

/// The benchmark programs, one after the other: together they would take much memory.
pub fn programs() -> impl Iterator<Item = Benchmark> {
    NAMES.iter().filter_map(|name| benchmark(name, Size::Full))
}

/// A loaded program, with its inputs on the device.
pub struct Loaded {
    session: Session,
    inputs: Vec<DeviceTensor>,
}

impl Loaded {
    /// Compiles a program for a device and loads it there; the CPU with `threads` threads.
    ///
    /// # Errors
    /// The compiler's or the runtime's error.
    pub fn new(program: &Benchmark, choice: &DeviceChoice, threads: usize) -> Result<Self, String> {
        let device = Device::open(choice).map_err(|e| e.to_string())?;
        let target = match device.description() {
            Some(description) => TargetDescription::Gpu(description.clone()),
            None => TargetDescription::Cpu(CpuTarget::host()),
        };
        let options = CompileOptions { targets: vec![target], ..Default::default() };
        let compiled = compile(program.text.as_bytes(), &program.name, &options).map_err(|d| d.to_string())?;
        let options = Options { threads, ..Options::default() };
        let mut session = Session::load(&device, Arc::new(compiled.program), &options).map_err(|e| e.to_string())?;
        let tensor = |t: &monopour_testkit::HostTensor| {
            HostTensor::new(DType::F32, t.shape.iter().map(|d| *d as u64).collect(), t.to_bytes())
        };
        let inputs = program.inputs.iter().map(tensor).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let inputs = session.upload(&inputs).map_err(|e| e.to_string())?;
        Ok(Self { session, inputs })
    }

    /// One run, to the end of its last kernel; the results return to the pool.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn run(&mut self) -> Result<(), String> {
        self.session.execute(&self.inputs).map(drop).map_err(|e| e.to_string())
    }
}
