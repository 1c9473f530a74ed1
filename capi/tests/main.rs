//! The header is that of the functions; a C and a C++ program use it.

use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// `BLESS=1` writes the header.
#[test]
fn the_header_is_made_from_the_functions() {
    let config = cbindgen::Config::from_file(Path::new(ROOT).join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new().with_crate(ROOT).with_config(config).generate().unwrap();
    let mut made = Vec::new();
    bindings.write(&mut made);
    let header = Path::new(ROOT).join("include/monopour.h");
    if std::env::var_os("BLESS").is_some_and(|v| v == "1") {
        std::fs::write(&header, &made).unwrap();
    }
    let found = std::fs::read(&header).unwrap();
    assert!(found == made, "monopour.h is not that of capi/src: BLESS=1 cargo test -p monopour-capi");
}

/// The folder of the libraries that cargo has built for this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    assert!(folder.join("libmonopour_c.so").exists(), "no library in {}", folder.display());
    folder.to_owned()
}

/// Compiles `run.c` and runs it on the stored artifact.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn run(compiler: &[&str], link: &[&str], prefix: &[&str], runs: u32) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("monopour-capi-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let program = std::env::temp_dir().join(name);
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-I", "include", "tests/run.c"]);
    command.args(["-x", "none", "-o"]).arg(&program).arg(format!("-L{}", libraries().display())).args(link);
    let compiled = match command.current_dir(ROOT).output() {
        Ok(compiled) => compiled,
        Err(error) => return println!("skipped: no {} ({error})", compiler[0]),
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let artifact = Path::new(ROOT).join("../tests/artifacts/version-9.mpr");
    let mut line = prefix.iter().map(std::ffi::OsString::from).collect::<Vec<_>>();
    line.extend([program.clone().into(), artifact.into(), runs.to_string().into()]);
    let mut command = Command::new(&line[0]);
    let ran = command.args(&line[1..]).current_dir(ROOT).env("LD_LIBRARY_PATH", libraries()).output();
    std::fs::remove_file(&program).unwrap();
    let ran = ran.unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && text.contains(&format!("{runs} runs in each form")), "{text}");
}

const SHARED: &[&str] = &["-lmonopour_c"];
const STATIC: &[&str] = &["-l:libmonopour_c.a", "-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn a_c_program_runs_an_artifact_a_thousand_times() {
    run(&["cc", "-std=c99"], SHARED, &[], 1000);
    run(&["cc", "-std=c99"], STATIC, &[], 10);
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn it_is_a_cpp_program_too() {
    run(&["c++", "-std=c++11", "-x", "c++"], SHARED, &[], 1000);
}

/// Under valgrind, where the machine has it: no error, and no byte that is lost. Valgrind runs one thread at a time: threads take
/// turns, else one that waits for a time may wake when the other is done.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn valgrind_finds_nothing() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return println!("skipped: no valgrind");
    }
    let valgrind = [
        "valgrind",
        "-q",
        "--fair-sched=try",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite,indirect",
        "--error-exitcode=9",
        "--suppressions=tests/valgrind.supp",
    ];
    run(&["cc", "-std=c99", "-g"], SHARED, &valgrind, 5);
}
