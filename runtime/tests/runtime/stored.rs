//! The stored artifact, a thousand times: equal values, nothing created once warm, and under valgrind no error.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use monopour_program::{DType, Program, VERSION};
use monopour_runtime::{Device, HostForm, HostTensor, Options, Session};

use crate::support::{cpu, gpu};
use crate::trust::trusted;

/// Names the number of runs of the process that valgrind watches.
const RUNS: &str = "MONOPOUR_TEST_RUNS";

fn artifact() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/artifacts/version-{VERSION}.mpr"))
}

/// Three rows, `turns` times through the weights of the artifact.
fn rows(turns: i64) -> HostTensor {
    let mut rows: Vec<[f32; 4]> = (0..3).map(|row| [row as f32, 1.0, -2.0, 0.5]).collect();
    for _ in 0..turns {
        rows = rows.iter().map(|[a, b, c, d]| [a + 3.0 * d, *b, *c, 2.0 * a + d]).collect();
    }
    HostTensor::from_f32(vec![3, 4], &rows.concat()).unwrap()
}

fn index(value: i64) -> HostTensor {
    HostTensor::new(DType::Index, vec![], value.to_le_bytes().to_vec()).unwrap()
}

fn check(device: &Device, runs: u32) {
    let program = trusted(Program::open(&artifact()).unwrap());
    for host in [HostForm::Native, HostForm::Data] {
        if host == HostForm::Native && !cfg!(target_arch = "x86_64") {
            continue;
        }
        let options = Options { host, ..Options::default() };
        let mut session = Session::load(device, Arc::clone(&program), &options).unwrap();
        for run in 0..runs {
            let turns = i64::from(run % 7 + 1);
            let results = session.run(&[rows(0), index(turns)]).unwrap();
            assert_eq!(results, [rows(turns), index((100 / turns).max(3))], "run {run}, {}", host.as_str());
        }
        let steady = session.stats().steady_state;
        assert_eq!((steady.buffers_created, steady.bind_groups_created, steady.pipelines_created), (0, 0, 0));
        assert!(session.close().is_clean());
    }
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "its CPU variant is for x86-64")]
fn a_thousand_runs_on_the_cpu() {
    let runs = std::env::var(RUNS).ok().and_then(|runs| runs.parse().ok());
    check(&cpu(), runs.unwrap_or(1000));
}

#[test]
fn a_thousand_runs_on_a_gpu() {
    let Some(device) = gpu() else { return };
    check(&device, 1000);
}

/// Under valgrind, where the machine has it: no error, and no byte that is lost.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn valgrind_finds_nothing_on_the_cpu() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return println!("skipped: no valgrind");
    }
    let mut command = Command::new("valgrind");
    command.args(["-q", "--leak-check=full", "--show-leak-kinds=definite,indirect"]);
    command.args(["--errors-for-leak-kinds=definite,indirect", "--error-exitcode=9"]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "stored::a_thousand_runs_on_the_cpu"]);
    let ran = command.env(RUNS, "20").output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && text.contains("1 passed"), "{text}");
}
