//! Bad inputs and command lines: each ends within limits, with status 1 or 2, a code and a hint, and leaves no file behind.

mod artifacts;
mod lines;
mod models;
mod onnx;
mod tensors;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use monopour::program::CpuTarget;
use monopour::runtime::HostTensor;
use monopour::{CompileOptions, TargetDescription, npy};

/// Longest time: the promise is for a release build; debug builds run beside other tests.
pub const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 2 });
/// Peak resident memory, if a case says nothing else.
pub const MEMORY_BYTES: u64 = 1 << 30;

/// A command line with the files in its folder.
pub struct Case {
    name: String,
    files: Vec<(String, Vec<u8>)>,
    args: Vec<OsString>,
    status: i32,
    /// Expected in standard error: a code, or words where `mlir-opt` has none.
    expected: String,
    /// Peak resident memory.
    memory: u64,
}

/// A case without files; arguments are separated by blanks, `@` stands for the folder of good files.
pub fn line(args: &str, status: i32, expected: &str) -> Case {
    let split = args.split(' ').filter(|arg| !arg.is_empty()).map(|arg| arg.replace('@', "../good"));
    // `''` is an empty argument.
    let args = split.map(|arg| OsString::from(if arg == "''" { String::new() } else { arg })).collect();
    let words = |args: &Vec<OsString>| args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ");
    Case { name: words(&args), files: vec![], args, status, expected: expected.to_owned(), memory: MEMORY_BYTES }
}

impl Case {
    /// With a file of these bytes in its folder.
    pub fn file(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Case {
        self.files.push((name.to_owned(), bytes.into()));
        self
    }

    /// With less memory.
    pub fn within(mut self, bytes: u64) -> Case {
        self.memory = bytes;
        self
    }

    /// Describes its files.
    pub fn about(mut self, what: impl std::fmt::Display) -> Case {
        self.name = format!("{} ({what})", self.name);
        self
    }
}

const ADD: &str = "\
func.func @main(%a: tensor<4x2xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %e = tensor.empty() : tensor<4x2xf32>
  %0 = linalg.add ins(%a, %b : tensor<4x2xf32>, tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
";

const WEIGHTED: &str = "\
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %w = arith.constant dense_resource<w> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %0 = linalg.add ins(%a, %w : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
";

/// A folder of good files beside the cases' own.
struct Ground {
    root: PathBuf,
}

impl Ground {
    fn new() -> Ground {
        let root = std::env::temp_dir().join(format!("monopour-bad-{}", std::process::id()));
        let good = root.join("good");
        std::fs::create_dir_all(&good).unwrap();
        std::fs::write(good.join("m.mlir"), ADD).unwrap();
        std::fs::write(good.join("w.mlir"), WEIGHTED).unwrap();
        let tensor = HostTensor::from_f32(vec![4, 2], &[1.0; 8]).unwrap();
        for name in ["a", "arg0", "arg1"] {
            npy::write(&good.join(format!("{name}.npy")), &tensor).unwrap();
        }
        compiled(ADD).save(&good.join("m.mpr")).unwrap();
        Ground { root }
    }

    /// Runs a case in its own folder; returns the failure, if any.
    fn check(&self, number: usize, case: &Case) -> Option<String> {
        let folder = self.root.join(number.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in &case.files {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
        let before = listing(&folder);
        let start = Instant::now();
        let (status, text, memory) = run(&folder, &case.args);
        let elapsed = start.elapsed();
        let has_hint = match case.status {
            // mlir-opt's own messages have no codes.
            _ if case.args[0] == "opt" => true,
            2 => text.contains("--help") || text.contains("Usage:"),
            _ => text.contains("  help: "),
        };
        let wrong = [
            (status != Some(case.status)).then(|| format!("status {status:?}, expected {}", case.status)),
            (!text.contains(&case.expected)).then(|| format!("expected {}", case.expected)),
            (!has_hint).then(|| "no hint".to_owned()),
            (text.len() > 16 << 10).then(|| format!("a message of {} bytes", text.len())),
            (elapsed > LIMIT).then(|| format!("{elapsed:?}")),
            (memory > case.memory).then(|| format!("{memory} B of memory")),
            (listing(&folder) != before).then(|| "files were written or changed".to_owned()),
        ];
        std::fs::remove_dir_all(&folder).unwrap();
        let wrong: Vec<String> = wrong.into_iter().flatten().collect();
        let head: String = text.chars().take(400).collect();
        (!wrong.is_empty()).then(|| format!("{}: {}\n{head}", case.name, wrong.join("; ")))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// The artifact of a model for this CPU.
pub fn compiled(source: &str) -> monopour::Program {
    let options =
        CompileOptions { targets: vec![TargetDescription::Cpu(CpuTarget::host())], ..CompileOptions::default() };
    monopour::compile(source.as_bytes(), "m.mlir", &options).unwrap_or_else(|d| panic!("{d}")).program
}

/// Every file below a folder, with its contents.
fn listing(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let contents = if path.is_dir() { None } else { Some(std::fs::read(&path).unwrap()) };
            if contents.is_none() {
                folders.push(path.clone());
            }
            found.insert(path, contents);
        }
    }
    found
}

/// Exit status, standard error, and peak memory of the command in a folder; another file beside the folder holds its errors.
pub fn run(folder: &Path, args: &[OsString]) -> (Option<i32>, String, u64) {
    let output = folder.with_extension("err");
    let mut child = Command::new(env!("CARGO_BIN_EXE_monopour"))
        .args(args)
        .current_dir(folder)
        .env("MONOPOUR_CACHE_DIR", "")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&output).unwrap())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let mut memory = 0;
    let status = loop {
        memory = memory.max(high_water(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > 2 * LIMIT || memory > 2 * MEMORY_BYTES {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = String::from_utf8_lossy(&std::fs::read(&output).unwrap()).into_owned();
    std::fs::remove_file(&output).unwrap();
    (status.code(), text, memory)
}

/// Peak resident bytes of a process but for those of files, such as the debug binary's 400 MB, of which the kernel maps as
/// much as it likes; 0 if unknown.
pub fn high_water(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
    };
    bytes("VmHWM:").saturating_sub(bytes("RssFile:")).max(bytes("RssAnon:"))
}

#[test]
fn bad_inputs_and_command_lines_end_with_a_code_and_a_hint() {
    let ground = Ground::new();
    let cases: Vec<Case> = [
        lines::cases(),
        models::cases(),
        onnx::cases(),
        tensors::cases(),
        artifacts::cases(&ground.root.join("good/m.mpr")),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(cases.len() >= 200, "{} cases", cases.len());
    let good = listing(&ground.root.join("good"));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut ended = vec![];
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let number = cases.iter().position(|other| std::ptr::eq(other, case)).expect("it is one of them");
            ended.push(ground.check(number, case));
        }
        ended
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let wrong: Vec<&String> = ended.iter().flatten().collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.iter().map(|w| format!("{w}\n")).collect::<String>()
    );
    assert_eq!(listing(&ground.root.join("good")), good, "a good file was changed");
}

/// File names, and nothing else, may be other than UTF-8.
#[cfg(unix)]
#[test]
fn file_names_need_not_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = std::env::temp_dir().join(format!("monopour-bad-utf8-{}", std::process::id()));
    let odd = folder.join(std::ffi::OsStr::from_bytes(b"od\xffd"));
    std::fs::create_dir_all(&odd).unwrap();
    std::fs::write(odd.join("m.mlir"), ADD).unwrap();
    npy::write(&odd.join("a.npy"), &HostTensor::from_f32(vec![4, 2], &[1.0; 8]).unwrap()).unwrap();
    let with = |prefix: &str, name: &str| {
        let mut arg = OsString::from(prefix);
        arg.push(odd.join(name));
        arg
    };
    let plain = |text: &str| OsString::from(text);
    let args = [
        plain("run"),
        with("", "m.mlir"),
        plain("--device=cpu"),
        with("--input=arg0=", "a.npy"),
        with("--input=arg1=", "a.npy"),
        plain("--outputs"),
        with("", "out"),
    ];
    let (status, text, _) = run(&folder, &args);
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(npy::read(&odd.join("out/result0.npy")).unwrap().to_f32().unwrap(), [2.0; 8]);
    let (status, text, _) = run(&folder, &[plain("opt"), with("", "m.mlir")]);
    assert_eq!(status, Some(0), "{text}");
    let (status, text, _) = run(&folder, &[plain("run"), with("", "m.mlir"), with("--device=", "x")]);
    assert_eq!(status, Some(2), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}
