//! Kernels for aarch64 on another machine: a C program loads them under an emulator.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Set by `make test-aarch64`: the command line of an emulator, and behind it a program of other tests.
const AARCH64: &str = "MONOPOUR_AARCH64_RUNNER";

/// The C compiler for aarch64.
pub const COMPILER: &str = "aarch64-linux-gnu-gcc";

/// The emulator's command line, where there is one.
pub fn emulator() -> Option<Vec<String>> {
    let line = std::env::var(AARCH64).ok()?;
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    words.pop();
    (!words.is_empty()).then_some(words)
}

/// A shared library for aarch64 and the program that loads it, in a folder of their own.
pub struct Emulated {
    dir: PathBuf,
}

impl Emulated {
    /// Of the library `code.so` in `dir`.
    pub fn new(dir: PathBuf) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver.c");
        let status = Command::new(COMPILER).arg("-O1").arg(source).arg("-o").arg(dir.join("driver")).status();
        assert!(status.unwrap().success(), "the driver compiles");
        Self { dir }
    }

    /// Runs one task of a kernel on `args`.
    pub fn run(&self, kernel: &str, args: &mut [&mut Vec<f32>], ids: &[i64]) {
        let words = emulator().expect("an emulator, since code for it was asked for");
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(self.dir.join("driver")).arg(self.dir.join("code.so")).arg(kernel);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = vec![];
        let numbers = [ids.len() as i64, args.len() as i64].into_iter().chain(ids.iter().copied());
        numbers.for_each(|n| input.extend(n.to_le_bytes()));
        for arg in args.iter() {
            input.extend((arg.len() as u64 * 4).to_le_bytes());
            arg.iter().for_each(|x| input.extend(x.to_le_bytes()));
        }
        // The program writes only when it has read everything.
        process.stdin.take().unwrap().write_all(&input).unwrap();
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{kernel} under the emulator: {}", output.status);
        let mut found = output.stdout.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
        args.iter_mut().flat_map(|arg| arg.iter_mut()).for_each(|x| *x = found.next().expect("all buffers come back"));
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
