//! Gives the crate the identity of what makes objects, for `objects.rs`: a hash of the sources that lower kernels and of
//! LLVM's version. Another identity, other keys: a build never takes an object that a different one made.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a kernel passes through from the schedule to its object, relative to this crate.
const SOURCES: [&str; 5] = ["src", "../math/src", "../ir/src", "../ir/shim", "../Cargo.lock"];

fn main() {
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let prefix = std::env::var("MLIR_SYS_220_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".to_owned());
    let version = Command::new(format!("{prefix}/bin/llvm-config")).arg("--version").output();
    let mut hasher = DefaultHasher::new();
    hasher.write(&version.expect("llvm-config is there, as for mlir-sys").stdout);
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        for path in files(Path::new(source)) {
            hasher.write(path.to_string_lossy().as_bytes());
            hasher.write(&std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        }
    }
    println!("cargo:rustc-env=MONOPOUR_OBJECTS_IDENTITY={:016x}", hasher.finish());
}

/// The files under a path, in order.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| files(entry)).collect()
}
