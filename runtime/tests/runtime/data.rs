//! Host functions that are data: what they compute, where they end, and that damage to them is an error.

use std::sync::Arc;

use monopour_contract::RuntimeFunction as F;
use monopour_program::host::{HostBlock, HostOp, HostType, ScalarOp};
use monopour_program::*;
use monopour_runtime::{Device, DeviceChoice, Error, HostForm, HostTensor, Options, Session, wgpu};

use crate::support::{Code, INT, compile_c, cpu_variant, gpu, gpu_kernel, gpu_variant};
use crate::trust::trusted;

fn number(name: &str) -> TensorDesc {
    TensorDesc { name: name.into(), dtype: DType::I64, shape: vec![], donated: false, scalar: true }
}

/// A program of two numbers to one, and of a tensor of 64 bytes to one, on the CPU and without kernels.
fn program(host_data: HostCode) -> Program {
    let tensor = |name: &str| TensorDesc::tensor(name, DType::I64, vec![8]);
    let mut variant = cpu_variant(vec![], &[]);
    variant.host = NativeCode::default();
    variant.host_data = host_data;
    Program {
        entry: "main".into(),
        signature: Signature {
            inputs: vec![number("a"), number("b"), tensor("x")],
            results: vec![number("r"), tensor("y")],
            ..Signature::default()
        },
        constants: vec![Constant { name: "c".into(), dtype: DType::I64, shape: vec![8], data: vec![1; 64].into() }],
        variants: vec![variant],
        producer: "test".into(),
        trust: Trust::default(),
    }
}

/// Multiplies the inputs by adding one up, subtracts until a remainder of 10 is left, and copies the tensor.
fn sample() -> HostCode {
    let mut code = Code::constants(&[0, 1, 2, 10, 64, 1]);
    let (a, b) = (code.call(0, F::InputScalar, &[0]), code.call(0, F::InputScalar, &[1]));
    let [at, sum, end] = [INT; 3].map(|ty| code.register(ty));
    let body = code.block(HostBlock { arguments: vec![at, sum], ..HostBlock::default() });
    let next = code.scalar(body, ScalarOp::AddI, &[sum, b], INT);
    code.0.blocks[body as usize].results = vec![next];
    let product = HostOp::For {
        is_unsigned: false,
        lower: 0,
        upper: a,
        step: 5,
        inits: vec![0],
        body,
        results: vec![end],
        location: None,
    };
    code.add(0, product);
    let [value, passed, rest] = [INT; 3].map(|ty| code.register(ty));
    let before = code.block(HostBlock { arguments: vec![value], results: vec![value], ..HostBlock::default() });
    let again = code.scalar(before, ScalarOp::CmpSge, &[value, 3], HostType::BOOL);
    code.0.blocks[before as usize].condition = Some(again);
    let after = code.block(HostBlock { arguments: vec![passed], ..HostBlock::default() });
    let less = code.scalar(after, ScalarOp::SubI, &[passed, 3], INT);
    code.0.blocks[after as usize].results = vec![less];
    code.add(0, HostOp::While { inits: vec![end], before, after, results: vec![rest] });
    let quotient = code.scalar(0, ScalarOp::DivS, &[rest, b], INT);
    code.0.locations.push("7:3".into());
    if let Some(HostOp::Scalar { location, .. }) = code.0.blocks[0].ops.last_mut() {
        *location = Some(0);
    }
    let small = code.scalar(0, ScalarOp::CmpEq, &[quotient, 0], HostType::BOOL);
    let chosen = code.register(INT);
    let (then, otherwise) = (
        code.block(HostBlock { results: vec![rest], ..HostBlock::default() }),
        code.block(HostBlock { results: vec![end], ..HostBlock::default() }),
    );
    code.add(0, HostOp::If { condition: small, then, otherwise: Some(otherwise), results: vec![chosen] });
    code.call(0, F::ResultScalar, &[0, chosen]);
    let (x, y) = (code.call(0, F::Input, &[2]), code.call(0, F::Alloc, &[4]));
    code.call(0, F::Fill, &[y, 0, 4, 1]);
    // By way of two transients that are alive at once.
    code.call(0, F::Request, &[4, 0, 1]);
    code.call(0, F::Request, &[4, 1, 2]);
    let [p, q] = [0, 1].map(|request| code.call(0, F::Place, &[request]));
    code.call(0, F::Copy, &[x, 0, p, 0, 3]);
    code.call(0, F::Copy, &[p, 0, q, 0, 3]);
    code.call(0, F::Copy, &[q, 0, y, 0, 3]);
    code.call(0, F::Result, &[1, y]);
    code.0
}

fn cpu() -> Device {
    Device::open(&DeviceChoice::Cpu).unwrap()
}

fn inputs(a: i64, b: i64) -> Vec<HostTensor> {
    let number = |value: i64| HostTensor::new(DType::I64, vec![], value.to_le_bytes().to_vec()).unwrap();
    vec![number(a), number(b), HostTensor::new(DType::I64, vec![8], vec![7; 64]).unwrap()]
}

fn run(program: Program, (a, b): (i64, i64), options: &Options) -> Result<Vec<HostTensor>, Error> {
    Session::load(&cpu(), Arc::new(program), options)?.run(&inputs(a, b))
}

fn options() -> Options {
    Options { threads: 1, memory_limit: Some(1 << 20), host_steps: Some(100_000), ..Options::default() }
}

#[test]
fn loops_branches_and_calls_run_without_trust() {
    let value = |a, b| {
        let results = run(program(sample()), (a, b), &options()).unwrap();
        assert_eq!(results[1].data()[..10], [7; 10]);
        assert_eq!(results[1].data()[12..], [1, 0, 0, 0].repeat(13));
        i64::from_le_bytes(results[0].data().try_into().unwrap())
    };
    // 6 times 7 is 42, 2 is left, and 2 is less than 7.
    assert_eq!(value(6, 7), 2);
    // 1 times 8 is less than 10, and 8 by 8 is not 0.
    assert_eq!(value(1, 8), 8);
    // No turn of either loop.
    assert_eq!(value(-5, 3), 0);
}

/// Places of transients that were not asked for, or asked for too late, in a way that no transient is.
#[test]
fn places_are_asked_for_before_they_are_taken() {
    type Calls = &'static [(F, &'static [u32])];
    let cases: [(&str, Calls); 6] = [
        ("place 0 of 0", &[(F::Place, &[0])]),
        ("place 2 of 1", &[(F::Request, &[4, 0, 1]), (F::Place, &[2])]),
        ("behind the first place", &[(F::Request, &[4, 0, 1]), (F::Place, &[0]), (F::Request, &[4, 0, 1])]),
        ("that no transient has", &[(F::Request, &[6, 0, 1])]),
        ("that no transient has", &[(F::Request, &[4, 1, 0])]),
        ("that no transient has", &[(F::Request, &[4, 0, 6])]),
    ];
    for (expected, calls) in cases {
        let mut code = Code::constants(&[0, 1, 2, 10, 64, 1, u64::MAX]);
        for (function, arguments) in calls {
            code.call(0, *function, arguments);
        }
        let error = run(program(code.0), (0, 0), &options()).unwrap_err();
        assert!(error.code() == "R0013" && error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_division_without_a_result_ends_the_run_with_its_place() {
    let error = run(program(sample()), (0, 0), &options()).unwrap_err();
    let text = "'arith.divsi' at 7:3 divides by zero, or the smallest number by -1";
    assert_eq!((error.code(), error.to_string()), ("R0019", format!("a check of the program failed: {text}")));
}

#[test]
fn a_host_function_ends_after_its_steps() {
    let limited = Options { host_steps: Some(1000), ..options() };
    assert!(run(program(sample()), (6, 7), &limited).is_ok());
    let error = run(program(sample()), (1 << 40, 1), &limited).unwrap_err();
    assert_eq!(error.code(), "R0022", "{error}");
    assert!(!error.is_machine_failure());
}

#[test]
fn loops_without_an_end_end() {
    // A step that is not positive, and a number that cannot grow.
    for (step, expected) in [(0, "R0019"), (u64::MAX, "R0019"), (u64::MAX >> 1, "ok")] {
        let mut code = sample();
        code.constants[5].bits = step;
        let found = run(program(code), (i64::MAX, 1), &options()).map_or_else(|e| e.code(), |_| "ok");
        assert_eq!(found, expected, "a step of {step}");
    }
}

#[test]
fn native_code_of_a_program_without_trust_is_refused() {
    let Some(object) = compile_c("void entry(i64 cx) { result(0, input(0)); }", &[]) else { return };
    let mut native = program(HostCode::default());
    native.variants[0].host = crate::support::host(object);
    let refused = |program: &Program, form: HostForm| {
        let options = Options { host: form, ..options() };
        Session::load(&cpu(), Arc::new(program.clone()), &options).map(|session| session.host_form())
    };
    let error = refused(&native, HostForm::Auto).unwrap_err();
    assert_eq!(error.code(), "R0020", "{error}");
    assert!(error.to_string().contains("the host function of its variant cpu:generic would run as machine code"));
    assert_eq!(refused(&native, HostForm::Data).unwrap_err().code(), "R0004");
    // With both forms it is the data that runs.
    native.variants[0].host_data = sample();
    assert_eq!(refused(&native, HostForm::Auto).unwrap(), HostForm::Data);
    assert_eq!(refused(&native, HostForm::Native).unwrap_err().code(), "R0020");
    let form = |form: HostForm| {
        let options = Options { host: form, ..options() };
        Session::load(&cpu(), trusted(native.clone()), &options).unwrap().host_form()
    };
    assert_eq!(
        [HostForm::Auto, HostForm::Native, HostForm::Data].map(form),
        [HostForm::Native, HostForm::Native, HostForm::Data]
    );
    // Kernels of the CPU are machine code, whatever the form of the host function.
    native.variants[0].kernels = vec![Kernel::Cpu(CpuKernel { symbol: "k".into(), ..CpuKernel::default() })];
    native.variants[0].dispatches = vec![1];
    let error = refused(&native, HostForm::Data).unwrap_err();
    assert!(error.code() == "R0020" && error.to_string().contains("the kernels of its variant"), "{error}");
}

/// Doubles 256 numbers on a GPU.
fn doubling(wgsl: &str) -> Program {
    let mut code = Code::constants(&[0, 1, 1024, 4]);
    let (x, y) = (code.call(0, F::Input, &[0]), code.call(0, F::Alloc, &[2]));
    code.call(0, F::Arg, &[x, 0, 2]);
    code.call(0, F::Arg, &[y, 0, 2]);
    code.call(0, F::Dispatch, &[0, 3, 1, 1]);
    code.call(0, F::Result, &[0, y]);
    let mut kernel = gpu_kernel("double", DOUBLE, &[Access::Read, Access::Write]);
    if let Kernel::Gpu(kernel) = &mut kernel {
        kernel.wgsl = wgsl.into();
        // What is no SPIR-V at all: the driver would crash on it.
        kernel.spirv = vec![0xdead_beef; 8];
    }
    let mut variant = gpu_variant(vec![], vec![kernel]);
    variant.host = NativeCode { arch: "riscv128".into(), objects: vec![vec![1]], ..NativeCode::default() };
    variant.host.entry = "entry".into();
    variant.host_data = code.0;
    crate::support::program(&[256], &[256], variant)
}

const DOUBLE: &str = "@group(0) @binding(0) var<storage> x: array<f32>;\n\
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n\
    @compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = 2.0 * x[id.x]; }\n";

#[test]
fn a_gpu_runs_validated_kernels_without_trust_on_any_architecture() {
    let Some(device) = gpu() else { return };
    let mut session = Session::load(&device, Arc::new(doubling(DOUBLE)), &Options::default()).unwrap();
    assert_eq!(session.host_form(), HostForm::Data);
    let values: Vec<f32> = (0..256).map(|i| i as f32).collect();
    let input = HostTensor::from_f32(vec![256], &values).unwrap();
    for _ in 0..3 {
        let results = session.run(std::slice::from_ref(&input)).unwrap();
        assert_eq!(results[0].to_f64(), values.iter().map(|v| f64::from(2.0 * v)).collect::<Vec<_>>());
    }
    let created = session.stats().steady_state;
    assert_eq!((created.buffers_created, created.bind_groups_created, created.pipelines_created), (0, 0, 0));
    assert!(session.close().is_clean());
}

/// An index outside of its buffer reads nothing of others, and writes nothing there.
#[test]
fn indices_of_kernels_without_trust_stay_in_their_buffers() {
    let Some(device) = gpu() else { return };
    let wgsl = DOUBLE.replace("y[id.x] = 2.0 * x[id.x]", "y[id.x * 1000003u] = 2.0 * x[id.x + 77777777u]");
    let mut session = Session::load(&device, Arc::new(doubling(&wgsl)), &Options::default()).unwrap();
    let input = HostTensor::from_f32(vec![256], &[1.0; 256]).unwrap();
    let results = session.run(&[input]).unwrap();
    assert!(results[0].to_f64().iter().all(|v| [0.0, 2.0].contains(v)), "{:?}", results[0].to_f64());
}

#[test]
fn wrong_kernels_of_a_file_are_its_fault() {
    let Some(device) = gpu() else { return };
    for wgsl in [&DOUBLE[1..], &DOUBLE.replace("64", "63"), &DOUBLE.replace("var<storage>", "var<storage, read_write>")]
    {
        let error = Session::load(&device, Arc::new(doubling(wgsl)), &Options::default()).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "R0021", "{error}");
        assert!(!error.is_machine_failure());
    }
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

/// Changes one thing of host code.
fn mutate(code: &mut HostCode, random: &mut Random) {
    let types = [INT, HostType::BOOL, HostType::Int(7), HostType::F32, HostType::F64, HostType::F16];
    match random.below(10) {
        0 => {
            let at = random.below(code.constants.len());
            let bits = [0, 1, 63, 64, 4096, 1 << 31, 1 << 40, u64::MAX, i64::MAX as u64][random.below(9)];
            code.constants[at].bits = bits;
        }
        1 => {
            let at = random.below(code.registers.len());
            code.registers[at] = types[random.below(types.len())];
        }
        2 => {
            let block = random.below(code.blocks.len());
            let ops = &mut code.blocks[block].ops;
            if !ops.is_empty() {
                let (from, to) = (random.below(ops.len()), random.below(ops.len()));
                ops.swap(from, to);
            }
        }
        3 => {
            let block = random.below(code.blocks.len());
            let ops = &mut code.blocks[block].ops;
            if !ops.is_empty() {
                ops.remove(random.below(ops.len()));
            }
        }
        kind => mutate_op(code, kind, random),
    }
}

/// Changes one operand, block or function of an op.
fn mutate_op(code: &mut HostCode, kind: usize, random: &mut Random) {
    let register = random.below(code.registers_len() + 2) as u32;
    let block = random.below(code.blocks.len());
    let blocks = code.blocks.len() + 1;
    let ops = &mut code.blocks[block].ops;
    if ops.is_empty() {
        return;
    }
    let at = random.below(ops.len());
    match &mut ops[at] {
        HostOp::Call { function, arguments, .. } if kind < 7 || arguments.is_empty() => {
            *function = F::ALL[random.below(F::ALL.len())];
        }
        HostOp::Call { arguments, .. } => {
            let at = random.below(arguments.len());
            arguments[at] = register;
        }
        HostOp::Scalar { op, .. } if kind < 7 => *op = ScalarOp::ALL[random.below(ScalarOp::ALL.len())],
        HostOp::Scalar { operands, .. } => {
            let at = random.below(operands.len());
            operands[at] = register;
        }
        HostOp::If { then, .. } if kind < 7 => *then = random.below(blocks) as u32,
        HostOp::If { condition, .. } => *condition = register,
        HostOp::For { upper, .. } if kind < 6 => *upper = register,
        HostOp::For { step, .. } if kind < 8 => *step = register,
        HostOp::For { body, .. } => *body = random.below(blocks) as u32,
        HostOp::While { before, .. } if kind < 7 => *before = random.below(blocks) as u32,
        HostOp::While { inits, .. } => inits[0] = register,
    }
}

/// Host code with one to four changes is refused, or runs to an end; `MONOPOUR_TEST_FULL=1` tries a million.
#[test]
fn changed_host_code_neither_panics_nor_hangs() {
    let count = if std::env::var_os("MONOPOUR_TEST_FULL").is_some_and(|v| v == "1") { 1_000_000 } else { 20_000 };
    let mut random = Random(20_261_125);
    let device = cpu();
    let limits = Options { host_steps: Some(20_000), ..options() };
    let given = inputs(6, 7);
    let (mut refused, mut failed, mut done) = (0, std::collections::BTreeMap::new(), 0);
    for _ in 0..count {
        let mut code = sample();
        (0..=random.below(3)).for_each(|_| mutate(&mut code, &mut random));
        let mut session = match Session::load(&device, Arc::new(program(code)), &limits) {
            Ok(session) => session,
            Err(error) => {
                assert_eq!(error.code(), "P0006", "{error}");
                refused += 1;
                continue;
            }
        };
        match session.run(&given) {
            Ok(_) => done += 1,
            Err(error) => *failed.entry(error.code()).or_insert(0) += 1,
        }
        let again = session.run(&given).map(|_| ());
        assert!(again.is_ok() || again.is_err_and(|error| error.code().starts_with('R')));
    }
    println!("{refused} refused, {done} ran, {failed:?} ended");
    let kinds = failed.keys().copied().collect::<Vec<_>>();
    assert!(refused > count / 20 && done > count / 50, "{refused} refused, {done} ran");
    assert!(["R0013", "R0019", "R0022"].iter().all(|code| kinds.contains(code)), "{kinds:?}");
}

/// One buffer for reading and for writing, in one dispatch of a kernel that is WGSL.
#[test]
fn a_buffer_is_bound_twice_without_trust() {
    let Some(device) = gpu() else { return };
    for declared in ["var<storage>", "var<storage, read>"] {
        let mut program = doubling(&DOUBLE.replace("var<storage>", declared));
        let mut code = Code::constants(&[0, 1, 1024, 4]);
        let (x, y) = (code.call(0, F::Input, &[0]), code.call(0, F::Alloc, &[2]));
        code.call(0, F::Copy, &[x, 0, y, 0, 2]);
        code.call(0, F::Arg, &[y, 0, 2]);
        code.call(0, F::Arg, &[y, 0, 2]);
        code.call(0, F::Dispatch, &[0, 3, 1, 1]);
        code.call(0, F::Result, &[0, y]);
        program.variants[0].host_data = code.0;
        let mut session = Session::load(&device, Arc::new(program), &Options::default()).unwrap();
        let values: Vec<f32> = (0..256).map(|i| i as f32).collect();
        let results = session.run(&[HostTensor::from_f32(vec![256], &values).unwrap()]).unwrap();
        assert!(results[0].to_f32().unwrap().iter().zip(&values).all(|(y, x)| *y == 2.0 * x), "{declared}");
    }
}

/// A device that makes buffers and validates what it is given, but computes nothing.
fn idle_device() -> Device {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::NOOP;
    descriptor.backend_options.noop.enable = true;
    let instance = wgpu::Instance::new(descriptor);
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).unwrap();
    let descriptor = wgpu::DeviceDescriptor { required_limits: wgpu::Limits::default(), ..Default::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).unwrap();
    Device::from_wgpu(device, queue).unwrap()
}

/// A binding has some bytes, also where the argument is empty and lies behind all of them.
#[test]
fn an_empty_argument_at_the_end_of_its_buffer_is_bound() {
    let mut program = doubling(DOUBLE);
    let mut code = Code::constants(&[0, 1, 1024, 4]);
    let (x, y) = (code.call(0, F::Input, &[0]), code.call(0, F::Alloc, &[2]));
    code.call(0, F::Arg, &[x, 2, 0]);
    code.call(0, F::Arg, &[y, 0, 2]);
    code.call(0, F::Dispatch, &[0, 3, 1, 1]);
    code.call(0, F::Result, &[0, y]);
    program.variants[0].host_data = code.0;
    let mut session = Session::load(&idle_device(), Arc::new(program), &Options::default()).unwrap();
    let input = HostTensor::from_f32(vec![256], &[1.0; 256]).unwrap();
    assert_eq!(session.run(&[input]).map(|results| results.len()), Ok(1));
}

/// With dispatches, on a device that computes nothing; `MONOPOUR_TEST_FULL=1` tries a million.
#[test]
fn changed_host_code_with_dispatches_neither_panics_nor_hangs() {
    let count = if std::env::var_os("MONOPOUR_TEST_FULL").is_some_and(|v| v == "1") { 1_000_000 } else { 2_000 };
    let (device, whole) = (idle_device(), doubling(DOUBLE));
    let mut random = Random(20_261_126);
    let limits = Options { host_steps: Some(20_000), memory_limit: Some(1 << 24), ..Options::default() };
    let input = HostTensor::from_f32(vec![256], &[1.0; 256]).unwrap();
    let run = |program: Arc<Program>| {
        let mut session = Session::load(&device, program, &limits)?;
        session.run(std::slice::from_ref(&input)).map(drop)
    };
    let mut codes = std::collections::BTreeMap::new();
    for _ in 0..count {
        let mut program = whole.clone();
        (0..=random.below(3)).for_each(|_| mutate(&mut program.variants[0].host_data, &mut random));
        let program = Arc::new(program);
        let code = match run(program.clone()) {
            Ok(()) => "ok",
            // Nothing may be left for the device to refuse.
            Err(error) if error.code() == "R0011" => panic!("{error}\n{}", program.variants[0].host_data),
            Err(error) => error.code(),
        };
        *codes.entry(code).or_insert(0) += 1;
    }
    println!("{codes:?}");
    let of = |code: &str| codes.get(code).copied().unwrap_or(0);
    assert!(of("P0006") > count / 20 && of("ok") > count / 50 && of("R0013") > count / 50, "{codes:?}");
    assert!(
        codes.keys().all(|code| ["ok", "P0006", "R0009", "R0010", "R0013", "R0014", "R0015", "R0022"].contains(code)),
        "{codes:?}"
    );
    assert_eq!(run(Arc::new(whole)), Ok(()));
}

/// The same on a GPU: no device is lost, and the next program runs.
#[test]
fn changed_host_code_on_a_gpu_leaves_the_device_whole() {
    let Some(device) = gpu() else { return };
    let mut random = Random(7);
    let limits = Options { host_steps: Some(20_000), memory_limit: Some(1 << 24), ..Options::default() };
    let input = HostTensor::from_f32(vec![256], &[1.0; 256]).unwrap();
    let run = |code: Option<HostCode>| {
        let mut program = doubling(DOUBLE);
        if let Some(code) = code {
            program.variants[0].host_data = code;
        }
        let mut session = match Session::load(&device, Arc::new(program), &limits) {
            Ok(session) => session,
            Err(error) => return error.code(),
        };
        session.run(std::slice::from_ref(&input)).map_or_else(|error| error.code(), |_| "ok")
    };
    let mut codes = std::collections::BTreeMap::new();
    for _ in 0..300 {
        let mut code = doubling(DOUBLE).variants[0].host_data.clone();
        (0..=random.below(2)).for_each(|_| mutate(&mut code, &mut random));
        *codes.entry(run(Some(code))).or_insert(0) += 1;
    }
    println!("{codes:?}");
    assert!(!codes.contains_key("R0012") && codes.contains_key("ok") && codes.contains_key("R0013"), "{codes:?}");
    assert_eq!(run(None), "ok");
}
