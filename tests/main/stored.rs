//! The artifact that an earlier build wrote: every build that reads its version runs it, and gets the same values.

use monopour::Program;
use monopour::program::VERSION;
use monopour::runtime::{HostForm, HostTensor, Options, Session};
use std::path::Path;
use std::sync::Arc;

use crate::host::{devices, f32s, index};

/// The version that [`VERSION`] was when the file was written: another one needs another file, beside this one or in its
/// place.
const STORED: u32 = 9;

fn stored() -> Program {
    let name = format!("tests/artifacts/version-{STORED}.mpr");
    Program::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap_or_else(|e| panic!("{e}"))
}

/// Three rows, `n` times through the weights of the source.
fn rows(n: i64) -> HostTensor {
    let mut rows: Vec<[f32; 4]> = (0..3).map(|row| [row as f32, 1.0, -2.0, 0.5]).collect();
    for _ in 0..n {
        rows = rows.iter().map(|[a, b, c, d]| [a + 3.0 * d, *b, *c, 2.0 * a + d]).collect();
    }
    f32s(&[3, 4], &rows.concat())
}

fn check(program: Arc<Program>, device: &monopour::runtime::Device, host: HostForm) {
    let mut session = Session::load(device, program, &Options { host, ..Options::default() }).expect("loads");
    for n in [1, 2, 7] {
        let results = session.run(&[rows(0), index(n)]).expect("runs");
        assert_eq!(results, [rows(n), index((100 / n).max(3))], "{n} turns on {}", device.name());
    }
    let error = session.run(&[rows(0), index(0)]).unwrap_err();
    assert_eq!(error.code(), "R0019", "{error}");
}

/// A program of the repository, or one compiled here whose host function a test has changed.
#[allow(unsafe_code, reason = "vouches for stored and changed programs of tests")]
pub fn trusted(program: Program) -> Program {
    // SAFETY: kernels are as they were compiled; the runtime checks what the host function asks for.
    unsafe { program.trust() }
}

#[test]
fn an_earlier_artifact_runs() {
    assert_eq!(STORED, VERSION, "write the artifact of the new version");
    let trusted = Arc::new(trusted(stored()));
    for (device, _) in devices() {
        if device.description().is_some() {
            check(Arc::new(stored()), &device, HostForm::Data);
            check(trusted.clone(), &device, HostForm::Data);
        }
        if cfg!(target_arch = "x86_64") {
            check(trusted.clone(), &device, HostForm::Native);
            check(trusted.clone(), &device, HostForm::Data);
        }
    }
}
