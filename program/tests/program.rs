//! The artifact format: round trips, determinism, and errors for damaged files.

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
    check(&|p| p.variants[1].host.objects.clear(), "no host function");
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
    let pairs = [
        ("cx16", "cx16"),
        ("popcnt", "popcnt"),
        ("sse", "sse"),
        ("sse2", "sse2"),
        ("sse3", "pni"),
        ("ssse3", "ssse3"),
        ("sse4.1", "sse4_1"),
        ("sse4.2", "sse4_2"),
        ("avx", "avx"),
        ("avx2", "avx2"),
        ("bmi", "bmi1"),
        ("bmi2", "bmi2"),
        ("f16c", "f16c"),
        ("fma", "fma"),
        ("lzcnt", "abm"),
        ("movbe", "movbe"),
        ("avx512f", "avx512f"),
        ("avx512bw", "avx512bw"),
        ("avx512cd", "avx512cd"),
        ("avx512dq", "avx512dq"),
        ("avx512vl", "avx512vl"),
        ("avx512vnni", "avx512_vnni"),
        ("avx512bf16", "avx512_bf16"),
        ("avx512fp16", "avx512_fp16"),
    ];
    for (name, flag) in pairs {
        let missing = target::missing_on_host("x86_64", &[name.to_owned()]);
        assert_eq!(missing.is_empty(), flags.contains(&flag), "{name}: {missing:?}");
    }
    assert_eq!(target::missing_on_host("x86_64", &["warp".to_owned()]), ["cpu feature warp"]);
}
