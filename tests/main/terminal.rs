//! Output of commands on a terminal and off it; caches that a process leaves for the next.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use monopour::npy;
use monopour::runtime::HostTensor;

const EXP: &str = "\
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
";

fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("monopour-terminal-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("m.mlir"), EXP).unwrap();
    npy::write(&folder.join("zeros.npy"), &HostTensor::from_f32(vec![4], &[0.0; 4]).unwrap()).unwrap();
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that waits for its input for longer than the bar's delay.
#[cfg(unix)]
fn waits(folder: &Path, pipe: &str, command: &mut Command) -> Output {
    let made = Command::new("mkfifo").arg(folder.join(pipe)).status().unwrap();
    assert!(made.success());
    let child = command.current_dir(folder).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let child = child.stderr(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    // Opening waits for the command, however long it compiles.
    let tensor = std::fs::read(folder.join("zeros.npy")).unwrap();
    let mut writer = std::fs::OpenOptions::new().write(true).open(folder.join(pipe)).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    std::io::Write::write_all(&mut writer, &tensor).unwrap();
    drop(writer);
    child.wait_with_output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn long_work_shows_its_phase_on_a_terminal_and_nowhere_else() {
    let folder = folder("progress");
    let binary = env!("CARGO_BIN_EXE_monopour");
    let run = |pipe: &str, more: &str| format!("{binary} run m.mlir --device cpu --input arg0={pipe} {more}");
    let on_terminal = |pipe: &str, more: &str| {
        let mut script = Command::new("script");
        // `script` gives its command a terminal, and records its output.
        script.args(["-qec", &run(pipe, more), "/dev/null"]).env("TERM", "xterm").env("NO_COLOR", "1");
        let output = waits(&folder, pipe, &mut script);
        assert!(output.status.success(), "{}", text(&output.stdout));
        text(&output.stdout)
    };
    let shown = on_terminal("one", "");
    assert!(shown.contains("] 12/14 inputs"), "{shown:?}");
    assert!(shown.contains("result0: tensor<4xf32>  min 1  max 1"), "{shown:?}");
    // `[3Nm` sets a colour; the bar's line is still cleared.
    assert!(!shown.contains("\u{1b}[3"), "{shown:?}");
    let quiet = on_terminal("two", "--quiet");
    assert!(!quiet.contains('\u{1b}') && !quiet.contains("inputs"), "{quiet:?}");
    let mut piped = Command::new(binary);
    piped.args(["run", "m.mlir", "--device", "cpu", "--input", "arg0=three"]);
    let output = waits(&folder, "three", &mut piped);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn drivers_do_not_complain_on_the_terminal() {
    let folder = folder("loader");
    for args in [&["devices"][..], &["run", "m.mlir", "--random", "1"], &["inspect", "m.mlir"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_monopour"));
        command.args(args).current_dir(&folder).env_remove("NODEVICE_SELECT").env_remove("XDG_RUNTIME_DIR");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "{args:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_drivers_cache_is_kept_and_a_damaged_one_ignored() {
    let folder = folder("cache");
    let run = |cache: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_monopour"));
        command.args(["run", "m.mlir", "--device", "gpu", "--input", "arg0=zeros.npy", "--stats=json"]);
        let output = command.current_dir(&folder).env("MONOPOUR_CACHE_DIR", cache).output().unwrap();
        if text(&output.stderr).contains("error[R0001]") {
            monopour_testkit::device::skip_without_adapter("no GPU");
            return None;
        }
        assert!(output.status.success(), "{}", text(&output.stderr));
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(stats["kernels_ms"].as_f64().unwrap() > 0.0, "{stats}");
        assert_eq!(stats["kernels_built"], 1, "{stats}");
        Some(stats["pipeline_cache_bytes"].as_u64().unwrap())
    };
    let Some(first) = run("cache") else { return };
    assert_eq!(first, 0);
    let files = || -> Vec<_> {
        let entries = std::fs::read_dir(folder.join("cache")).unwrap().map(|e| e.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|e| e == "bin")).collect()
    };
    // A driver without a cache leaves no file to check.
    if let [file] = &files()[..] {
        assert!(run("cache").unwrap() > 0);
        let mut bytes = std::fs::read(file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(file, &bytes).unwrap();
        assert_eq!(run("cache"), Some(0), "damaged");
        assert!(run("cache").unwrap() > 0, "written again");
    }
    assert_eq!(run(""), Some(0), "turned off");
    let only: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(only.len() <= 3, "{only:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn native_code_is_kept_unless_caches_are_off() {
    let folder = folder("objects");
    let compile = |cache: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_monopour"));
        command.args(["compile", "m.mlir", "--target", "cpu:generic", "-o", "m.mpr"]);
        let output = command.current_dir(&folder).env("MONOPOUR_CACHE_DIR", cache).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        std::fs::read(folder.join("m.mpr")).unwrap()
    };
    let kept = || std::fs::read_dir(folder.join("cache/objects")).map_or(0, Iterator::count);
    let made = compile("");
    assert_eq!(kept(), 0);
    assert_eq!(compile("cache"), made);
    assert_eq!(kept(), 1);
    assert_eq!(compile("cache"), made);
    assert_eq!(kept(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}
