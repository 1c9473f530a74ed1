//! Builds the C++ shim against the MLIR that mlir-sys links.

fn main() {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let prefix = std::env::var("MLIR_SYS_220_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".to_owned());
    let mut build = cc::Build::new();
    if std::env::var_os("CARGO_FEATURE_TEST_DIALECT").is_some() {
        build.define("MONOPOUR_TEST_DIALECT", None);
    }
    if std::env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_none() {
        // MLIR's headers hold assertions that Debian's libraries, built without them, do not define.
        build.define("NDEBUG", None);
    }
    if std::env::var_os("CARGO_FEATURE_FLOOR").is_some() {
        build.file("shim/floor.cpp");
    }
    build
        .cpp(true)
        .std("c++17")
        .file("shim/shim.cpp")
        .file("shim/bufferizable.cpp")
        .file("shim/control_flow.cpp")
        .file("shim/conversion.cpp")
        .file("shim/enums.cpp")
        .file("shim/interfaces.cpp")
        .file("shim/linalg.cpp")
        .file("shim/llvm.cpp")
        .file("shim/opt.cpp")
        .file("shim/rewriting.cpp")
        .file("shim/widen.cpp")
        .include(format!("{prefix}/include"))
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-w")
        .opt_level(2)
        .compile("monopour_shim");
}
