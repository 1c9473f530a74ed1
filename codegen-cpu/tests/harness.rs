//! Compiles, links and loads objects.

#![allow(unsafe_code, reason = "calls compiled code through dlopen")]

use crate::emulated::{COMPILER, Emulated, emulator};
use monopour_codegen_cpu::object;
use monopour_ir::{Context, Module};
use monopour_program::{CpuTarget, NativeCode};
use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

type Kernel = unsafe extern "C" fn(*const *mut c_void, *const i64);

/// A host function that does nothing, for modules that test kernels only.
const EMPTY_HOST: &str = "func.func @main(%cx: i64) { return }\n";

/// Compiles `kernels` beside an empty host function.
pub fn compile(kernels: &str, target: &CpuTarget) -> Result<NativeCode, monopour_ir::Diagnostics> {
    compile_module(&format!("{EMPTY_HOST}{kernels}"), target)
}

/// Compiles a whole module.
pub fn compile_module(text: &str, target: &CpuTarget) -> Result<NativeCode, monopour_ir::Diagnostics> {
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir")?;
    object::emit(&module, target, None)
}

/// Whether this machine runs code for a CPU, under an emulator if need be.
pub fn runs(target: &CpuTarget) -> bool {
    target.missing().is_empty() || (target.arch == "aarch64" && emulator().is_some())
}

/// Whether compiled code can be run; says so if not.
pub fn can_run() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("REQUIRE_CC").is_none(), "a C compiler is there");
    if !found {
        println!("skipped: no C compiler");
    }
    found
}

/// A directory of this test's own.
pub fn scratch() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("monopour-codegen-cpu-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A shared library, loaded here or by an emulated program.
pub enum Library {
    Here(*mut c_void),
    Emulated(Emulated),
}

impl Library {
    /// Links the object into a shared library and loads it.
    pub fn load(code: &NativeCode) -> Library {
        let dir = scratch();
        let library = dir.join("code.so");
        let is_native = code.arch == std::env::consts::ARCH;
        let mut link = Command::new(if is_native { "cc" } else { COMPILER });
        link.arg("-shared").arg("-o").arg(&library);
        for (i, object) in code.objects.iter().enumerate() {
            let path = dir.join(format!("code{i}.o"));
            std::fs::write(&path, object).unwrap();
            link.arg(path);
        }
        let output = link.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        if !is_native {
            return Library::Emulated(Emulated::new(dir));
        }
        #[cfg(target_arch = "x86_64")]
        if code.features.iter().any(|feature| feature == "amx-tile") {
            // SAFETY: takes two numbers: the process asks for the registers of tiles.
            let status = unsafe { libc::syscall(libc::SYS_arch_prctl, 0x1023, 18) };
            assert_eq!(status, 0, "the system gives tile registers");
        }
        let path = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: the path is a C string; the library has no initialisers.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "{} loads", library.display());
        std::fs::remove_dir_all(dir).unwrap();
        Library::Here(handle)
    }

    /// Runs one task of a kernel on `args`.
    pub fn run(&self, kernel: &str, args: &mut [&mut Vec<f32>], ids: &[i64]) {
        let handle = match self {
            Library::Here(handle) => *handle,
            Library::Emulated(library) => return library.run(kernel, args, ids),
        };
        let name = CString::new(kernel).unwrap();
        // SAFETY: the handle is live, the name a C string.
        let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
        assert!(!symbol.is_null(), "{kernel} is defined");
        // SAFETY: every kernel has this signature.
        let function = unsafe { std::mem::transmute::<*mut c_void, Kernel>(symbol) };
        let pointers: Vec<*mut c_void> = args.iter_mut().map(|a| a.as_mut_ptr().cast()).collect();
        // SAFETY: the test gives buffers of the sizes that the kernel's types say, and tile ids within them.
        unsafe { function(pointers.as_ptr(), ids.as_ptr()) };
    }
}

/// Numbers between -1 and 1, the same in every run.
pub fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// Compares within a relative and absolute tolerance.
pub fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * e.abs().max(1.0), "element {i}: {f}, expected {e}");
    }
}

unsafe extern "C" {
    #[link_name = "erf"]
    safe fn c_erf(x: f64) -> f64;
    #[link_name = "erfc"]
    safe fn c_erfc(x: f64) -> f64;
}

/// The error function of the machine's math library, as a reference.
pub fn erf(x: f64) -> f64 {
    c_erf(x)
}

/// Its complement.
pub fn erfc(x: f64) -> f64 {
    c_erfc(x)
}
