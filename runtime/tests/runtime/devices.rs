//! Enumeration and choice of devices.

use monopour_program::*;
use monopour_runtime::{Device, DeviceChoice, DeviceKind, Options, Session, devices};

use crate::support::*;
use crate::trust::trusted;

#[test]
fn the_cpu_is_always_there_and_last() {
    let devices = devices();
    let last = devices.last().unwrap();
    assert!(matches!(last.kind, DeviceKind::Cpu(_)));
    assert_eq!(devices.iter().filter(|device| device.auto).count(), 1);
    assert_eq!(Device::open(&DeviceChoice::Index(last.index)).unwrap().kind_name(), "cpu");
    let json = serde_json::to_value(&devices).unwrap();
    assert!(json[last.index]["cpu"]["vector_bits"].is_number(), "{json}");
}

#[test]
fn software_adapters_are_taken_on_request_only() {
    let Some(device) = gpu() else { return };
    let description = device.description().unwrap();
    assert!(description.limits.max_binding_bytes > 0);
    let auto = Device::open(&DeviceChoice::Auto).unwrap();
    assert_eq!(auto.kind_name(), if description.is_cpu_adapter() { "cpu" } else { "gpu" });
    let part = description.name[..4].to_uppercase();
    assert_eq!(Device::open(&DeviceChoice::Name(part)).unwrap().name(), device.name());
}

#[test]
fn choices_parse() {
    assert_eq!(DeviceChoice::parse("auto"), DeviceChoice::Auto);
    assert_eq!(DeviceChoice::parse("1"), DeviceChoice::Index(1));
    assert_eq!(DeviceChoice::parse("llvm"), DeviceChoice::Name("llvm".into()));
    for choice in [DeviceChoice::Index(99), DeviceChoice::Name("no such thing".into())] {
        assert_eq!(Device::open(&choice).unwrap_err().code(), "R0002");
    }
}

/// A process without drivers has no adapter; the variables that hide them affect a whole process.
#[test]
fn no_adapter_is_an_error_of_its_own() {
    const FLAG: &str = "MONOPOUR_TEST_WITHOUT_DRIVERS";
    if std::env::var_os(FLAG).is_some() {
        let error = Device::open(&DeviceChoice::Gpu).unwrap_err();
        assert_eq!((error.code(), error.is_machine_failure()), ("R0001", true));
        assert_eq!(Device::open(&DeviceChoice::Auto).unwrap().kind_name(), "cpu");
        return;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "devices::no_adapter_is_an_error_of_its_own"]).env(FLAG, "1");
    for name in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
        command.env(name, "/nonexistent");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_program_without_a_fitting_variant_says_what_it_holds() {
    let mut wrong_arch = cpu_variant(vec![1], &[]);
    wrong_arch.target =
        Target::Cpu(CpuTarget { arch: "riscv64".into(), cpu: "rv64".into(), features: vec![], vector_bits: 64 });
    wrong_arch.host.arch = "riscv64".into();
    let mut program = program(&[], &[], gpu_variant(vec![1], vec![]));
    program.variants.push(wrong_arch);
    let error = Session::load(&cpu(), trusted(program), &Options::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "R0004");
    let text = error.to_string();
    assert!(text.contains("gpu:test needs a gpu device; cpu:rv64 needs architecture riscv64"), "{text}");
}

/// Sessions and tensors are not tied to the thread that created them.
#[test]
fn sessions_and_tensors_move_between_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Session>();
    is_send::<monopour_runtime::DeviceTensor>();
    is_sync::<monopour_runtime::DeviceTensor>();
    is_send::<Device>();
    is_sync::<Device>();
}
