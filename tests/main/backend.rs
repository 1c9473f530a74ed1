//! monopour itself as a backend of the op suite, on the CPU, on an emulated one, or on a GPU.

use crate::emulated::Emulator;
use crate::measure;
use monopour::program::{CpuTarget, DType, GpuDescription, Kernel, Program};
use monopour::runtime::{Device, DeviceChoice, HostTensor};
use monopour::tune::{Choices, Tunable, Tuning};
use monopour::{CompileOptions, TargetDescription};
use monopour_testkit::suite::{Backend, Case, Cost, Run};
use monopour_testkit::{self as testkit, Data, Dtype, device};
use std::cell::RefCell;
use std::sync::Arc;

/// Factor of float inputs in a first run, whose results are dropped: a later run that reads what it left is wrong.
const OTHER_VALUES: f64 = 0.75;
/// Cases that fail on every device.
const IGNORED: &[(&str, &str)] = &[];

/// Compiles for a device and runs there, from the program and from its encoded bytes.
pub struct Monopour {
    name: &'static str,
    device: Device,
    target: TargetDescription,
    ignores: &'static [(&'static str, &'static str)],
    /// Where programs run instead of on `device`.
    emulator: Option<RefCell<Emulator>>,
    trusts: bool,
    /// Whether dispatches take other kernels than the cost model's.
    deviates: bool,
}

impl Monopour {
    /// The CPU.
    pub fn cpu() -> Self {
        Self::of_cpu("cpu", CpuTarget::host())
    }

    /// The CPU, by code for each level of x86-64 that it has above the baseline: its own target may have more.
    pub fn lower_cpus() -> Vec<Self> {
        ["x86-64-v2", "x86-64-v3", "x86-64-v4"].into_iter().filter_map(Self::cpu_like).collect()
    }

    /// This CPU by code for those that add products of bytes in registers of 256 bits.
    pub fn cpu_of_short_dots() -> Option<Self> {
        Self::cpu_like("x86-64-v3-vnni")
    }

    /// The CPU, by code for the one named `name`; `None` where it lacks something for that.
    fn cpu_like(name: &'static str) -> Option<Self> {
        let target = CpuTarget::parse(name).expect("the name of a CPU");
        let missing = target.missing();
        if !missing.is_empty() {
            println!("skipped: no {name} ({})", missing.join(", "));
            return None;
        }
        Some(Self::of_cpu(name, target))
    }

    /// An emulated CPU of another architecture; `None` where there is none.
    pub fn aarch64() -> Option<Self> {
        Self::aarch64_like("aarch64")
    }

    /// As [`Self::aarch64`], without and with instructions for products of bytes.
    pub fn all_aarch64() -> Vec<Self> {
        ["aarch64", "aarch64-dotprod", "aarch64-i8mm"].into_iter().filter_map(Self::aarch64_like).collect()
    }

    fn aarch64_like(name: &'static str) -> Option<Self> {
        let emulator = Some(RefCell::new(Emulator::aarch64()?));
        let target = CpuTarget::parse(name).expect("the name of a CPU");
        Some(Self { emulator, ..Self::of_cpu(name, target) })
    }

    fn of_cpu(name: &'static str, target: CpuTarget) -> Self {
        let device = Device::open(&DeviceChoice::Cpu).expect("there is always a CPU");
        Self {
            name,
            device,
            target: TargetDescription::Cpu(target),
            ignores: IGNORED,
            emulator: None,
            trusts: true,
            deviates: false,
        }
    }

    /// The best GPU, software adapters included; `None` where a missing one is no failure.
    pub fn gpu() -> Option<Self> {
        match Device::open(&DeviceChoice::Gpu) {
            Ok(device) => {
                let target = TargetDescription::Gpu(device.description().expect("a GPU has a description").clone());
                Some(Self {
                    name: "gpu",
                    device,
                    target,
                    ignores: IGNORED,
                    emulator: None,
                    trusts: true,
                    deviates: false,
                })
            }
            Err(error) => {
                device::skip_without_adapter(&error.to_string());
                None
            }
        }
    }

    /// The best GPU, running programs that no one vouched for: validated kernels, and the host function as data.
    pub fn untrusted_gpu() -> Option<Self> {
        let target = |gpu: &Self| match &gpu.target {
            TargetDescription::Gpu(description) => TargetDescription::Gpu(description.clone().without_trust()),
            TargetDescription::Cpu(_) => gpu.target.clone(),
        };
        Self::gpu().map(|gpu| Self { name: "gpu:untrusted", target: target(&gpu), trusts: false, ..gpu })
    }

    /// The best GPU without optional features and with default limits, and programs compiled for any such device.
    pub fn portable() -> Option<Self> {
        match Device::open_portable() {
            Ok(device) => {
                let target = TargetDescription::Gpu(GpuDescription::portable());
                let ignores = crate::portable::REFUSED;
                Some(Self {
                    name: "gpu:portable",
                    device,
                    target,
                    ignores,
                    emulator: None,
                    trusts: true,
                    deviates: false,
                })
            }
            Err(error) => {
                device::skip_without_adapter(&error.to_string());
                None
            }
        }
    }

    /// The same device, by other kernels than the cost model's.
    pub fn deviating(self) -> Self {
        Self { name: "gpu:deviating", deviates: true, ..self }
    }

    /// The target that it compiles for.
    pub fn target(&self) -> &TargetDescription {
        &self.target
    }

    /// Runs a program several times, and returns the results and the cost of the last run.
    pub fn run_program(&self, program: Program, inputs: &[testkit::HostTensor]) -> Result<Run, String> {
        self.run_on_threads(program, inputs, 2)
    }

    /// As [`Monopour::run_program`], on this many CPU threads.
    pub fn run_on_threads(
        &self,
        program: Program,
        inputs: &[testkit::HostTensor],
        threads: usize,
    ) -> Result<Run, String> {
        let others: Vec<_> = inputs.iter().map(|input| to_runtime(&with_other_values(input))).collect();
        let inputs: Vec<_> = inputs.iter().map(to_runtime).collect();
        let (outputs, cost) = self.measure(program, threads, &others, &inputs)?;
        let [dispatches, copies, transfers, submits, created_when_warm, leaks] = cost;
        let cost = Cost { dispatches, copies, transfers, submits, created_when_warm, leaks };
        let outputs = outputs.iter().map(from_runtime).collect();
        Ok(Run { outputs, cost: Some(cost) })
    }

    /// The results of a program on this many CPU threads.
    pub fn results(&self, program: Program, inputs: &[HostTensor], threads: usize) -> Result<Vec<HostTensor>, String> {
        self.measure(program, threads, inputs, inputs).map(|(outputs, _)| outputs)
    }

    fn measure(
        &self,
        program: Program,
        threads: usize,
        first: &[HostTensor],
        inputs: &[HostTensor],
    ) -> Result<(Vec<HostTensor>, [u64; 6]), String> {
        if let Some(emulator) = &self.emulator {
            let program = program.encode().map_err(|e| e.to_string())?;
            return emulator.borrow_mut().run(program, threads, first, inputs);
        }
        let measured = measure::run(&self.device, Arc::new(program), threads, first, inputs)?;
        Ok((measured.outputs, measured.cost))
    }
}

/// The same integers, and other floats of the same signs.
fn with_other_values(input: &testkit::HostTensor) -> testkit::HostTensor {
    let data = match &input.data {
        Data::Float(values) => Data::Float(values.iter().map(|v| v * OTHER_VALUES).collect()),
        Data::Int(values) => Data::Int(values.clone()),
    };
    testkit::HostTensor { data, ..input.clone() }
}

impl Backend for Monopour {
    fn name(&self) -> &str {
        self.name
    }

    fn submits(&self) -> u64 {
        u64::from(self.device.description().is_some())
    }

    fn lanes(&self) -> Option<usize> {
        match &self.target {
            TargetDescription::Cpu(cpu) => Some(cpu.vector_bits as usize / 32),
            TargetDescription::Gpu(_) => None,
        }
    }

    fn ignores(&self) -> &[(&str, &str)] {
        self.ignores
    }

    fn run(&mut self, case: &Case, inputs: &[testkit::HostTensor]) -> Result<Run, String> {
        // A panic is a failure of its case, not the end of the suite.
        let attempt = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.attempt(case, inputs)));
        attempt.unwrap_or_else(|_| Err("panicked".to_owned()))
    }
}

impl Monopour {
    fn attempt(&self, case: &Case, inputs: &[testkit::HostTensor]) -> Result<Run, String> {
        let compiled =
            if self.deviates { deviating(case, &self.target)? } else { compile_for(case, self.target.clone())? };
        let bytes = compiled.encode().map_err(|e| e.to_string())?;
        let mut decoded = Program::decode(&bytes).map_err(|e| e.to_string())?;
        if decoded != compiled {
            return Err("the artifact holds another program".to_owned());
        }
        if self.trusts {
            decoded.trust = compiled.trust;
        }
        if self.device.description().is_some() {
            validate_spirv(&compiled)?;
        }
        let run = self.run_program(decoded, inputs)?;
        let made = run.cost.map_or(0, |cost| cost.copies);
        match explained_copies(&compiled) {
            Some(explained) if explained != made => {
                Err(format!("explain says {explained} copies, the run makes {made}"))
            }
            _ => Ok(run),
        }
    }
}

/// The number of copies that `explain` shows; `None` if dynamic.
pub fn explained_copies(program: &Program) -> Option<u64> {
    let explained = monopour::explain::explain(program).into_iter().next()?;
    explained.copies.iter().map(|copy| copy.times).sum()
}

fn compile_for(case: &Case, target: TargetDescription) -> Result<Program, String> {
    let options = CompileOptions { targets: vec![target], verify: true, ..Default::default() };
    Ok(monopour::compile(case.text.as_bytes(), &case.name, &options).map_err(|d| d.to_string())?.program)
}

/// The program of a case in which each dispatch takes another kernel than the cost model's, where it may: by the case's name, so that
/// all kinds come by.
pub fn deviating(case: &Case, target: &TargetDescription) -> Result<Program, String> {
    let TargetDescription::Gpu(device) = target else { return compile_for(case, target.clone()) };
    let compiled = |choices| {
        let tuning = Some(Tuning { device: device.clone(), choices, measures: false });
        let options = CompileOptions { targets: vec![target.clone()], verify: true, tuning, ..Default::default() };
        monopour::compile(case.text.as_bytes(), &case.name, &options).map_err(|d| d.to_string())
    };
    let own: usize = case.name.bytes().map(usize::from).sum();
    let tunable = compiled(Choices::new())?.report.tunable;
    let choice = |of: &Tunable| of.candidates.get(1 + own % (of.candidates.len() - 1)).cloned();
    let others = tunable.iter().filter(|of| of.candidates.len() > 1);
    Ok(compiled(others.filter_map(|of| Some((of.key.clone(), choice(of)?))).collect())?.program)
}

/// Runs `spirv-val`, where the machine has it, on every module of a program.
///
/// # Errors
/// Its error.
pub fn validate_spirv(program: &Program) -> Result<(), String> {
    let name = format!("monopour-suite-{}-{:?}.spv", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    for kernel in program.variants.iter().flat_map(|v| &v.kernels) {
        let Kernel::Gpu(kernel) = kernel else { continue };
        let words: Vec<u8> = kernel.spirv.iter().flat_map(|w| w.to_le_bytes()).collect();
        std::fs::write(&path, words).map_err(|e| e.to_string())?;
        let result = std::process::Command::new("spirv-val").args(["--target-env", "vulkan1.3"]).arg(&path).output();
        let _ = std::fs::remove_file(&path);
        let Ok(output) = result else { return Ok(()) };
        if !output.status.success() {
            return Err(format!("spirv-val of {}: {}", kernel.name, String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(())
}

/// A tensor of the evaluator in the runtime's form.
pub fn to_runtime(tensor: &testkit::HostTensor) -> HostTensor {
    let dtype = match tensor.dtype {
        Dtype::F16 => DType::F16,
        Dtype::F64 => DType::F64,
        Dtype::Int(1) => DType::I1,
        Dtype::Int(8) => DType::I8,
        Dtype::Int(16) => DType::I16,
        Dtype::Bf16 => DType::Bf16,
        Dtype::Int(32) => DType::I32,
        Dtype::Int(64) => DType::I64,
        Dtype::Unsigned(8) => DType::U8,
        Dtype::Unsigned(16) => DType::U16,
        Dtype::Unsigned(32) => DType::U32,
        Dtype::Unsigned(64) => DType::U64,
        Dtype::Index => DType::Index,
        _ => DType::F32,
    };
    let shape = tensor.shape.iter().map(|d| *d as u64).collect();
    HostTensor::new(dtype, shape, tensor.to_bytes()).expect("a test's tensor has a type of the runtime")
}

/// The same tensor in the evaluator's form.
pub fn from_runtime(tensor: &HostTensor) -> testkit::HostTensor {
    let dtype = match tensor.dtype() {
        DType::F16 => Dtype::F16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::Bf16 => Dtype::Bf16,
        DType::I1 => Dtype::Int(1),
        DType::I8 => Dtype::Int(8),
        DType::I16 => Dtype::Int(16),
        DType::I32 => Dtype::Int(32),
        DType::I64 => Dtype::Int(64),
        DType::U8 => Dtype::Unsigned(8),
        DType::U16 => Dtype::Unsigned(16),
        DType::U32 => Dtype::Unsigned(32),
        DType::U64 => Dtype::Unsigned(64),
        DType::Index => Dtype::Index,
    };
    let shape: Vec<_> = tensor.shape().iter().map(|d| *d as usize).collect();
    testkit::HostTensor::from_bytes(dtype, &shape, tensor.data()).expect("the runtime checked the length")
}
