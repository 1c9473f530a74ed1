//! The artifact format: round trips, determinism, and errors for damaged files.

use monopour_contract::RuntimeFunction;
use monopour_program::host::{HostBlock, HostConstant, HostOp, HostType, ScalarOp};
use monopour_program::*;

fn tensor(name: &str, dtype: DType, shape: &[u64]) -> TensorDesc {
    TensorDesc { name: name.into(), dtype, shape: shape.into(), donated: false, scalar: false }
}

fn size(input: u32, dim: Option<u32>) -> InputSize {
    InputSize { input, dim }
}

/// A variant with a plan and notes.
fn gpu_variant() -> Variant {
    Variant {
        target: Target::Gpu(GpuTarget {
            name: "portable".into(),
            backend: None,
            requires: GpuRequirements {
                features: vec![GpuFeature::Int64],
                subgroup_size: Some(8),
                ..Default::default()
            },
        }),
        kernels: vec![Kernel::Gpu(GpuKernel {
            name: "main_dispatch_0".into(),
            wgsl: "@compute @workgroup_size(8) fn main_dispatch_0() {}".into(),
            spirv: vec![0x0723_0203, 1, 2],
            workgroup_size: [8, 1, 1],
            bindings: vec![Binding { access: Access::ReadWrite, is_written: false }, Binding::of(Access::ReadWrite)],
            ..Default::default()
        })],
        dispatches: vec![3],
        host: NativeCode {
            arch: "x86_64".into(),
            features: vec![],
            objects: vec![vec![1, 2, 3]],
            entry: "main".into(),
        },
        host_data: host_data(),
        plan: MemoryPlan {
            arena_bytes: 512,
            planned_bytes: 300,
            lower_bound_bytes: 300,
            transients: vec![Transient { name: "t".into(), offset: 256, size_bytes: 200, first: 0, last: 1 }],
        },
        copies: vec![CopyNote {
            reason: "read after write".into(),
            location: "a.mlir:1:2".into(),
            bytes: Some(4),
            times: Some(1),
        }],
        allocations: vec![AllocationNote { reason: "its size".into(), location: String::new(), bytes: None }],
        lives: Lives { steps: vec![LifeStep { bound_bytes: 9, ..LifeStep::default() }], ..Lives::default() },
        sources: vec![Source { op: "linalg.matmul".into(), location: "a.mlir:3:4".into(), ..Source::default() }],
    }
}

/// Every kind of op: a loop that adds up, a branch, a loop on a condition, calls.
fn host_data() -> HostCode {
    let int = |bits: u64| HostConstant { ty: HostType::WORD, bits };
    let scalar =
        |op, operands: &[u32], result, location| HostOp::Scalar { op, operands: operands.into(), result, location };
    let call = |function, arguments: &[u32], result| HostOp::Call { function, arguments: arguments.into(), result };
    HostCode {
        constants: vec![int(0), int(1), int(3)],
        // 3: a handle; 4, 5, 6: the loop's number, value and sum; 7: its result; 8: a quotient; 9: a truth value;
        // 10: the branch's result; 11, 12, 13: the other loop's value, condition and result; 14: its second block's argument.
        registers: (3..15).map(|at| if matches!(at, 9 | 12) { HostType::BOOL } else { HostType::WORD }).collect(),
        blocks: vec![
            HostBlock {
                ops: vec![
                    call(RuntimeFunction::Input, &[0], Some(3)),
                    HostOp::For {
                        is_unsigned: false,
                        lower: 0,
                        upper: 2,
                        step: 1,
                        inits: vec![1],
                        body: 1,
                        results: vec![7],
                        location: None,
                    },
                    scalar(ScalarOp::DivS, &[7, 2], 8, Some(0)),
                    scalar(ScalarOp::CmpSlt, &[8, 2], 9, None),
                    HostOp::If { condition: 9, then: 2, otherwise: Some(3), results: vec![10] },
                    HostOp::While { inits: vec![10], before: 4, after: 5, results: vec![13] },
                    call(RuntimeFunction::Arg, &[3, 0, 13], None),
                    call(RuntimeFunction::Dispatch, &[0, 1, 1, 1], None),
                ],
                ..HostBlock::default()
            },
            HostBlock {
                arguments: vec![4, 5],
                ops: vec![scalar(ScalarOp::AddI, &[4, 5], 6, None)],
                results: vec![6],
                ..HostBlock::default()
            },
            HostBlock { results: vec![8], ..HostBlock::default() },
            HostBlock { results: vec![0], ..HostBlock::default() },
            HostBlock {
                arguments: vec![11],
                ops: vec![scalar(ScalarOp::CmpUlt, &[11, 2], 12, None)],
                condition: Some(12),
                results: vec![11],
            },
            HostBlock { arguments: vec![14], results: vec![2], ..HostBlock::default() },
        ],
        locations: vec!["3:7".into()],
    }
}

/// A small program with everything in it: two variants, two constants (one empty), a plan.
fn sample() -> Program {
    let gpu = gpu_variant();
    let mut cpu = gpu.clone();
    cpu.target = Target::Cpu(CpuTarget::parse("x86-64-v3").expect("a known name"));
    cpu.kernels =
        vec![Kernel::Cpu(CpuKernel { symbol: "main_dispatch_0".into(), args: 2, ids: 2, ..Default::default() })];
    Program {
        entry: "main".into(),
        signature: Signature {
            inputs: vec![
                tensor("arg0", DType::F32, &[2, 3]),
                tensor("arg1", DType::I1, &[]),
                tensor("arg2", DType::F32, &[DYNAMIC, DYNAMIC]),
                TensorDesc { scalar: true, ..tensor("arg3", DType::Index, &[]) },
            ],
            results: vec![tensor("result0", DType::F16, &[0, 3])],
            sizes: SizeRules { equal: vec![vec![size(2, Some(1)), size(3, None)]], fixed: vec![(size(2, Some(0)), 8)] },
        },
        constants: vec![
            Constant { name: "w".into(), dtype: DType::I32, shape: vec![2], data: vec![1, 0, 0, 0, 2, 0, 0, 0].into() },
            Constant { name: "none".into(), dtype: DType::F64, shape: vec![0], data: vec![].into() },
            Constant { name: "v".into(), dtype: DType::I8, shape: vec![3], data: vec![7, 8, 9].into() },
        ],
        variants: vec![gpu, cpu],
        producer: "test 0".into(),
        trust: Trust::default(),
    }
}

fn code(bytes: &[u8]) -> &'static str {
    Program::decode(bytes).map_or_else(|e| e.code(), |_| "ok")
}

#[test]
fn round_trip_keeps_everything_and_bytes_are_deterministic() {
    let program = sample();
    let bytes = program.encode().unwrap();
    let again = Program::decode(&bytes).unwrap();
    assert_eq!(program, again);
    assert_eq!(bytes, again.encode().unwrap());
}

#[test]
fn constants_of_a_saved_file_are_mapped_and_aligned() {
    let path = std::env::temp_dir().join(format!("monopour-{}.mpr", std::process::id()));
    sample().save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), sample().encode().unwrap());
    let program = Program::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(program, sample());
    for constant in &program.constants {
        let ConstantData::Mapped { range, .. } = &constant.data else { panic!("{:?} was copied", constant.data) };
        assert_eq!(range.start % 256, 0);
    }
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = sample().encode().unwrap();
    assert_eq!(code(&[]), "P0001");
    for len in 1..bytes.len() {
        assert_eq!(code(&bytes[..len]), "P0003", "cut at {len}");
    }
}

#[test]
fn every_flipped_byte_is_an_error() {
    let mut bytes = sample().encode().unwrap();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            bytes[at] ^= flip;
            let expected: &[&str] = match at {
                0..8 => &["P0001"],
                8..12 => &["P0002"],
                // A changed length looks like a missing end, or else the hash differs.
                48..56 => &["P0003", "P0004"],
                _ => &["P0004"],
            };
            assert!(expected.contains(&code(&bytes)), "byte {at}: {}", code(&bytes));
            bytes[at] ^= flip;
        }
    }
    assert_eq!(code(&bytes), "ok");
}

/// A damaged header with a matching hash, as from a hostile writer.
#[test]
fn a_damaged_header_with_a_right_hash_never_panics() {
    let good = sample().encode().unwrap();
    let mut malformed = 0;
    for at in 48..good.len().min(1024) {
        for value in [0x00, 0x7f, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            let hash = blake3::hash(&bytes[44..]);
            bytes[12..44].copy_from_slice(hash.as_bytes());
            if let Err(error) = Program::decode(&bytes) {
                assert!(["P0003", "P0005", "P0006"].contains(&error.code()), "{error}");
                malformed += u32::from(error.code() == "P0005");
            }
        }
    }
    assert!(malformed > 0, "some damage must reach the header's parser");
    let mut trailing = good;
    trailing.push(0);
    assert_eq!(code(&trailing), "P0004");
}

#[test]
fn inconsistent_programs_are_neither_written_nor_read() {
    let check = |change: &dyn Fn(&mut Program), expected: &str| {
        let mut program = sample();
        change(&mut program);
        let error = program.encode().unwrap_err();
        assert_eq!(error.code(), "P0006");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check(&|p| p.variants.clear(), "no variant");
    check(&|p| p.constants[0].data = vec![0; 4].into(), "constant `w` has 4 bytes, its type asks for 8");
    check(&|p| p.signature.inputs[0].shape = vec![u64::MAX - 1, 4], "too large");
    check(&|p| p.signature.inputs[1].name = "arg0".into(), "two inputs are named `arg0`");
    check(&|p| p.signature.results[0].donated = true, "donated");
    check(&|p| p.variants[0].plan.arena_bytes = 300, "outside the arena");
    let late = Life { last: 1, ..Life::default() };
    check(&|p| p.variants[0].lives.buffers.push(late.clone()), "alive from step 0 to 1 of 1");
    check(&|p| p.signature.sizes.equal[0].truncate(1), "fewer than two");
    for (wrong, name) in [
        (size(0, Some(0)), "dimension 0 of input `arg0`"),
        (size(2, Some(2)), "dimension 2 of input `arg2`"),
        (size(2, None), "input `arg2`"),
        (size(1, None), "input `arg1`"),
        (size(4, None), "input `?`"),
    ] {
        check(&|p| p.signature.sizes.equal[0][0] = wrong, &format!("a rule names {name}, which no run decides"));
        check(&|p| p.signature.sizes.fixed[0].0 = wrong, &format!("a rule names {name}, which no run decides"));
    }

    for size in [0, 1, 3, 16, 255] {
        let change = |p: &mut Program| {
            let kernels = p.variants.iter_mut().flat_map(|variant| &mut variant.kernels);
            kernels.for_each(|kernel| {
                if let Kernel::Gpu(kernel) = kernel {
                    kernel.scalars = vec![4, size];
                }
            });
        };
        check(&change, &format!("takes a number of {size} bytes, expected 4 or 8"));
    }
    check(&|p| p.variants[0].kernels = p.variants[1].kernels.clone(), "not of its variant's target");
    let no_form = |p: &mut Program| {
        p.variants[1].host.objects.clear();
        p.variants[1].host_data = HostCode::default();
    };
    check(&no_form, "no host function");
    check(&|p| p.variants[1].host.entry.clear(), "no native host function");
    check(&|p| p.variants[0].sources[0].kernel = 1, "a source of variant 0 is of kernel 1 of 1");
    check(&|p| p.variants[0].dispatches.clear(), "variant 0 counts the dispatches of 0 kernels and has 1");
}

#[test]
fn a_file_that_is_not_there_is_an_io_error() {
    let error = Program::open(std::path::Path::new("/nonexistent/x.mpr")).unwrap_err();
    assert_eq!(error.code(), "P0007");
    let error = sample().save(std::path::Path::new("/nonexistent/x.mpr")).unwrap_err();
    assert_eq!(error.code(), "P0007");
    let shown = error::render(error.code(), &error, error.help());
    assert!(shown.starts_with("error[P0007]: cannot access"), "{shown}");
}

#[test]
fn an_empty_or_foreign_file_is_not_an_artifact() {
    assert_eq!(code(b"func.func @main() { return }"), "P0001");
    assert_eq!(code(b"MONO"), "P0003");
}

#[test]
fn cpu_targets_parse_and_the_host_is_one() {
    assert!(CpuTarget::parse("pentium").is_none());
    let v3 = CpuTarget::parse("x86-64-v3").unwrap();
    assert_eq!((v3.vector_bits, v3.lanes(DType::F32)), (256, 8));
    assert!(v3.llvm_features().contains("+fma"));
    // Of factors with the same signs, and of others.
    let adds = |name: &str| [true, false].map(|alike| CpuTarget::parse(name).unwrap().adds_bytes(alike));
    assert_eq!(["x86-64-v3", "x86-64-v3-vnni", "aarch64"].map(adds), [[false, false], [false, true], [false, false]]);
    assert_eq!(["aarch64-dotprod", "aarch64-i8mm"].map(adds), [[true, true]; 2]);
    assert_eq!(CpuTarget::parse("aarch64-i8mm").unwrap().llvm_features(), "+dotprod,+i8mm");
    let host = CpuTarget::host();
    assert_eq!(host.missing(), Vec::<String>::new());
    assert_eq!(host.arch, std::env::consts::ARCH);
    let foreign = target::missing_on_host("riscv64", &[]);
    assert!(foreign[0].contains("architecture riscv64"), "{foreign:?}");
}

#[test]
fn requirements_name_what_a_device_lacks() {
    let device = GpuDescription::portable();
    let mut needs = GpuRequirements { features: vec![GpuFeature::Int64], subgroup_size: Some(8), ..Default::default() };
    needs.limits.max_storage_buffers = 12;
    let missing = needs.missing(&device);
    assert_eq!(
        missing,
        ["feature int64", "subgroup size 8 (the device has 0 to 0)", "storage buffers 12 (the device offers 8)",]
    );
    assert!(GpuRequirements::default().missing(&device).is_empty());
}

#[test]
fn gpu_descriptions_survive_json() {
    let device = GpuDescription {
        backend: Some(Backend::Vulkan),
        features: vec![GpuFeature::F16],
        ..GpuDescription::portable()
    };
    let text = serde_json::to_string(&device).unwrap();
    assert!(text.contains("\"f16\"") && text.contains("\"vulkan\""), "{text}");
    assert_eq!(serde_json::from_str::<GpuDescription>(&text).unwrap(), device);
}

#[test]
fn backends_are_named_as_they_are_written() {
    for backend in [Backend::Vulkan, Backend::Metal, Backend::Dx12] {
        assert_eq!(serde_json::to_value(backend).unwrap(), backend.as_str());
    }
}

#[test]
fn native_code_is_as_long_as_its_objects() {
    let host = NativeCode { objects: vec![vec![1, 2, 3], vec![4, 5]], ..sample().variants[0].host.clone() };
    assert_eq!(host.size_bytes(), 5);
}

#[test]
fn gpu_descriptions_that_no_device_has_are_told() {
    assert_eq!(GpuDescription::portable().check(), Ok(()));
    let wrong = |change: &dyn Fn(&mut GpuDescription)| {
        let mut description = GpuDescription::portable();
        change(&mut description);
        description.check().unwrap_err()
    };
    assert_eq!(wrong(&|d| d.limits.max_binding_bytes = 0), "limit `max_binding_bytes` is 0, at least 65536 is needed");
    assert!(wrong(&|d| d.limits.max_workgroup_size[0] = 1).contains("max_workgroup_size[0]"));
    assert_eq!(
        wrong(&|d| (d.subgroup_min_size, d.subgroup_max_size) = (64, 32)),
        "subgroups of 64 to 32 invocations do not exist"
    );
    assert!(wrong(&|d| (d.subgroup_min_size, d.subgroup_max_size) = (0, 7)).contains("0 to 7"));
}

#[test]
fn dtypes_print_as_mlir_types() {
    for dtype in DType::ALL {
        assert_eq!(DType::parse(dtype.as_str()), Some(dtype));
    }
    assert_eq!(sample().signature.inputs[0].to_string(), "arg0: tensor<2x3xf32>");
}

#[test]
fn every_code_has_a_page() {
    let pages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors");
    for n in 1..=7 {
        assert!(pages.join(format!("P000{n}.md")).exists(), "docs/errors/P000{n}.md");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_written_to_and_not_replaced() {
    let path = std::env::temp_dir().join(format!("monopour-pipe-{}", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    let reader = std::thread::spawn({
        let path = path.clone();
        move || std::fs::read(path).expect("the pipe is read")
    });
    monopour_program::write_atomically(&path, b"through").expect("writes");
    assert_eq!(reader.join().expect("the reader ends"), b"through");
    assert!(!std::fs::metadata(&path).expect("still there").is_file());
    std::fs::remove_file(&path).expect("can be removed");
}

#[test]
fn a_description_fits_tensors_of_its_sizes() {
    let open = tensor("x", DType::F32, &[DYNAMIC, 3]);
    assert!(open.fits(&[2, 3]) && open.fits(&[0, 3]));
    assert!(!open.fits(&[2, 4]) && !open.fits(&[3]) && !open.fits(&[2, 3, 1]));
    let closed = tensor("x", DType::F16, &[4, 3]);
    assert!(closed.fits(&[4, 3]) && !closed.fits(&[3, 4]));
    assert_eq!((closed.elements(), closed.size_bytes()), (12, 24));
    assert_eq!((tensor("n", DType::F32, &[]).elements(), open.elements()), (1, u64::MAX));
}

#[test]
fn a_device_that_has_all_lacks_nothing() {
    let features = vec![GpuFeature::Int64, GpuFeature::Subgroup];
    let device = GpuDescription { features, subgroup_min_size: 8, subgroup_max_size: 8, ..GpuDescription::portable() };
    assert!(device.has(GpuFeature::Int64) && !device.has(GpuFeature::F16));
    assert_eq!(device.exact_subgroup_size(), Some(8));
    let needs = GpuRequirements { features: vec![GpuFeature::Int64], subgroup_size: Some(8), ..Default::default() };
    assert_eq!(needs.missing(&device), Vec::<String>::new());
}

#[test]
fn kernels_say_what_a_dispatch_pushes_and_have_three_ids_at_most() {
    let mut program = sample();
    let cpu = |ids| {
        Kernel::Cpu(CpuKernel { symbol: "main_dispatch_0".into(), args: 2, ids, scalars: 5, ..Default::default() })
    };
    assert_eq!((cpu(1).args_len(), cpu(1).scalars_len()), (2, 5));
    assert_eq!((program.variants[0].kernels[0].args_len(), program.variants[0].kernels[0].scalars_len()), (2, 0));
    program.variants[1].kernels = vec![cpu(3)];
    assert!(program.encode().is_ok());
    program.variants[1].kernels = vec![cpu(4)];
    assert!(program.encode().unwrap_err().to_string().contains("takes 4 tile ids"));
}

#[test]
fn constants_show_how_long_they_are_and_not_what_they_hold() {
    assert_eq!(format!("{:?}", sample().constants[0].data), "Owned(8 bytes)");
}

/// The machine's features by the kernel's names equal those by LLVM's in the artifact's check.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn features_of_the_machine_are_those_that_the_kernel_lists() {
    let info = std::fs::read_to_string("/proc/cpuinfo").expect("Linux lists its processors");
    let flags: Vec<&str> = info.lines().find(|line| line.starts_with("flags")).expect("flags").split(' ').collect();
    let alike = [
        "cx16", "popcnt", "sse", "sse2", "ssse3", "avx", "avx2", "bmi2", "f16c", "fma", "movbe", "avx512f", "avx512bw",
        "avx512cd", "avx512dq", "avx512vl",
    ];
    let others = [
        ("sse3", "pni"),
        ("sse4.1", "sse4_1"),
        ("sse4.2", "sse4_2"),
        ("bmi", "bmi1"),
        ("lzcnt", "abm"),
        ("avx512vnni", "avx512_vnni"),
        ("avxvnni", "avx_vnni"),
        ("avx512bf16", "avx512_bf16"),
        ("avx512fp16", "avx512_fp16"),
        ("amx-tile", "amx_tile"),
        ("amx-int8", "amx_int8"),
    ];
    for (name, flag) in alike.map(|name| (name, name)).into_iter().chain(others) {
        let missing = target::missing_on_host("x86_64", &[name.to_owned()]);
        assert_eq!(missing.is_empty(), flags.contains(&flag), "{name}: {missing:?}");
    }
    assert_eq!(target::missing_on_host("x86_64", &["warp".to_owned()]), ["cpu feature warp"]);
}

/// Host code that is right is refused after a change.
fn check_host_code(change: &dyn Fn(&mut HostCode), expected: &str) {
    let scope = host::HostScope { inputs: 1, results: 1, constants: 1, kernels: 1 };
    let mut code = host_data();
    code.verify(&scope).unwrap();
    change(&mut code);
    let what = code.verify(&scope).unwrap_err();
    assert!(what.contains(expected), "{what}; expected {expected}");
    let mut program = sample();
    program.variants[0].host_data = code;
    let error = program.encode().unwrap_err();
    assert_eq!(error.code(), "P0006", "{error}");
}

#[test]
fn registers_of_host_code_are_checked_once() {
    let check = check_host_code;
    let nop = |operands: &[u32], result| HostOp::Scalar {
        op: ScalarOp::AddI,
        operands: operands.into(),
        result,
        location: None,
    };
    check(&|c| c.constants[0].ty = HostType::Int(0), "a register of 0 bits");
    check(&|c| c.constants[0].ty = HostType::Int(65), "a register of 65 bits");
    check(&|c| c.constants[2].ty = HostType::Int(1), "constant 3 does not fit 1 bits");
    check(&|c| c.registers[0] = HostType::F64, "register 3 is F64, expected Int(64)");
    check(&|c| c.blocks[0].arguments = vec![3], "its body takes or gives values");
    check(&|c| c.blocks[0].ops.insert(0, nop(&[0, 3], 6)), "register 3 is read before it is set");
    check(&|c| c.blocks[0].ops.push(nop(&[6, 0], 3)), "register 6 is read before it is set");
    check(&|c| c.blocks[0].ops.push(nop(&[0, 0], 3)), "register 3 is set twice");
    check(&|c| c.blocks[0].ops.push(nop(&[0, 0], 0)), "register 0 is set twice");
    check(&|c| c.blocks[0].ops.push(nop(&[0, 99], 0)), "register 99 does not exist");
    check(&|c| c.blocks[1].ops[0] = nop(&[4], 6), "`arith.addi` of [Int(64)] to Int(64)");
    check(&|c| c.blocks[2].results.clear(), "values of other types");
    check(&|c| c.blocks[4].condition = None, "the condition of block 4 is missing");
    check(&|c| c.blocks[4].condition = Some(11), "the condition of a loop is no truth value");
    check(&|c| c.blocks[5].arguments.clear(), "values of other types");
    check(&|c| c.locations.clear(), "location 0 does not exist");
}

#[test]
fn blocks_and_calls_of_host_code_are_checked_once() {
    let check = check_host_code;
    let op = |c: &mut HostCode, at: usize, change: &dyn Fn(&mut HostOp)| change(&mut c.blocks[0].ops[at]);
    let branch = |change: &'static dyn Fn(&mut u32, &mut Option<u32>)| {
        move |c: &mut HostCode| {
            op(c, 4, &|op| {
                let HostOp::If { then, otherwise, .. } = op else { panic!("{op:?}") };
                change(then, otherwise);
            });
        }
    };
    check(&branch(&|then, _| *then = 9), "block 9 does not exist");
    check(&branch(&|then, _| *then = 3), "block 3 has two ops");
    check(&branch(&|then, _| *then = 0), "a block and its op pass values of other types");
    check(&branch(&|_, otherwise| *otherwise = None), "results in one block only");
    let call = |function, arguments: &'static [u32], result| {
        move |c: &mut HostCode| {
            c.blocks[0].ops.push(HostOp::Call { function, arguments: arguments.into(), result });
        }
    };
    check(&call(RuntimeFunction::Input, &[1], None), "`monopour_rt_input` of position 1 of 1");
    check(&call(RuntimeFunction::Dispatch, &[2, 1, 1, 1], None), "`monopour_rt_dispatch` of position 3 of 1");
    check(&call(RuntimeFunction::Free, &[], None), "takes 1 arguments, 0 given");
    check(&call(RuntimeFunction::Input, &[0], None), "the result of `monopour_rt_input` is missing");
    check(&call(RuntimeFunction::Free, &[9], None), "register 9 is Int(1), expected Int(64)");
    let deep = |c: &mut HostCode| {
        for id in 6..6 + 2 * host::MAX_HOST_DEPTH as u32 {
            let op = HostOp::If { condition: 9, then: id, otherwise: None, results: vec![] };
            let into = if id == 6 { 0 } else { id as usize - 1 };
            c.blocks[into].ops.push(op);
            c.blocks.push(HostBlock::default());
        }
    };
    check(&deep, "blocks nest deeper than 200");
}

#[test]
fn host_code_is_readable() {
    let expected = "%3:i64 = input(0)
%7:i64 = for 0 to 3 step 1 with (%4:i64, %5:i64) from (1) {
  %6:i64 = arith.addi %4, %5
  give %6
}
%8:i64 = arith.divsi %7, 3  // 3:7
%9:i1 = arith.cmpi.slt %8, 3
%10:i64 = if %9 {
  give %8
} else {
  give 0
}
%13:i64 = while with (%11:i64) from (%10) {
  %12:i1 = arith.cmpi.ult %11, 3
  while %12 give %11
} do (%14:i64) {
  give 3
}
arg(%3, 0, %13)
dispatch(0, 1, 1, 1)
";
    assert_eq!(host_data().to_string(), expected);
}

/// Trust is of what was vouched for, not of what became of it; it is no part of a program's value.
#[test]
#[allow(unsafe_code, reason = "nothing of these programs runs")]
fn a_changed_program_is_no_longer_trusted() {
    assert!(!sample().is_trusted());
    // SAFETY: nothing runs it.
    let trusted = unsafe { sample().trust() };
    assert!(trusted.is_trusted() && trusted == sample());
    let mut decoded = Program::decode(&trusted.encode().unwrap()).unwrap();
    assert!(!decoded.is_trusted());
    decoded.trust = trusted.trust;
    assert!(decoded.is_trusted());
    let check = |change: &dyn Fn(&mut Program), expected: bool| {
        let mut program = trusted.clone();
        change(&mut program);
        assert_eq!(program.is_trusted(), expected);
    };
    check(&|p| p.variants[0].host.objects[0][1] ^= 1, false);
    check(&|p| p.variants[0].host.entry.push('x'), false);
    check(&|p| p.signature.inputs[0].shape[0] = 1, false);
    check(&|p| p.constants[0].shape = vec![1, 2], false);
    check(&|p| p.variants.swap(0, 1), false);
    // Values of constants decide nothing about memory.
    check(&|p| p.constants[0].data = vec![9; 8].into(), true);
}
