//! The allowed dependencies of each crate, and its files with `unsafe`.

use serde_json::Value;

/// A row of the layering table.
pub struct Layer {
    /// Package.
    pub package: &'static str,
    /// Folder from the root, with the slash; empty for the root package.
    pub folder: &'static str,
    /// Packages of the workspace, and restricted external ones, that it may depend on. `*` for any.
    pub may_use: &'static [&'static str],
    /// Files with `unsafe`, from its folder. `*` for all.
    pub unsafe_in: &'static [&'static str],
}

const fn layer(
    package: &'static str,
    folder: &'static str,
    may_use: &'static [&'static str],
    unsafe_in: &'static [&'static str],
) -> Layer {
    Layer { package, folder, may_use, unsafe_in }
}

/// The table. Development dependencies are exempt.
pub const LAYERS: &[Layer] = &[
    layer("monopour-contract", "contract/", &[], &[]),
    layer("monopour-program", "program/", &["monopour-contract"], &["src/map.rs", "src/trust.rs", "tests/program.rs"]),
    layer("monopour-analysis", "analysis/", &[], &[]),
    layer("monopour-ir", "ir/", &["monopour-contract", "melior", "mlir-sys"], &["*"]),
    layer("monopour-frontend", "frontend/", &["monopour-contract", "monopour-ir", "monopour-program"], &[]),
    layer("monopour-bufferize", "bufferize/", &["monopour-contract", "monopour-ir", "monopour-analysis"], &[]),
    layer("monopour-dealloc", "dealloc/", &["monopour-contract", "monopour-ir", "monopour-analysis"], &[]),
    layer(
        "monopour-split",
        "split/",
        &["monopour-contract", "monopour-ir", "monopour-analysis", "monopour-program"],
        &[],
    ),
    layer("monopour-math", "math/", &["monopour-contract", "monopour-ir"], &[]),
    layer(
        "monopour-codegen-gpu",
        "codegen-gpu/",
        &["monopour-contract", "monopour-ir", "monopour-math", "monopour-program", "naga"],
        &[],
    ),
    layer(
        "monopour-codegen-cpu",
        "codegen-cpu/",
        &["monopour-contract", "monopour-ir", "monopour-math", "monopour-program"],
        // The test harness runs compiled code.
        &["src/object.rs", "tests/harness.rs"],
    ),
    layer(
        "monopour-runtime",
        "runtime/",
        &["monopour-analysis", "monopour-contract", "monopour-program", "wgpu"],
        &[
            "src/native.rs",
            "src/ffi.rs",
            "src/hal.rs",
            "src/memory.rs",
            "examples/serve/trust.rs",
            "tests/runtime/counting.rs",
            "tests/runtime/trust.rs",
        ],
    ),
    layer("monopour-capi", "capi/", &["monopour-program", "monopour-runtime"], &["*"]),
    layer(
        "monopour-python",
        "python/",
        &["monopour-program", "monopour-runtime"],
        &["src/program.rs", "src/tensor.rs"],
    ),
    layer("monopour-testkit", "testkit/", &["*"], &[]),
    layer("monopour-benches", "benches/", &["*"], &["baselines/trust.rs", "peers-rust/src/machine.rs"]),
    layer("monopour-fuzz", "fuzz/", &["*"], &[]),
    layer("monopour-xtask", "xtask/", &["*"], &[]),
    layer("monopour-embed", "examples/embed/", &["monopour"], &["src/cache.rs"]),
    // Last: its folder is the prefix of every other.
    layer("monopour", "", &["*"], &["src/trust.rs", "src/bin/monopour/trust.rs", "tests/main/stored.rs"]),
];

/// External crates that only the table's rows may name.
const RESTRICTED: [&str; 5] = ["melior", "mlir-sys", "llvm-sys", "naga", "wgpu"];

/// Edges that the table does not allow, from the output of `cargo metadata`.
pub fn forbidden_edges(metadata: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(layer) = LAYERS.iter().find(|l| l.package == name) else {
            out.push(format!("{name}: not in the layering table (xtask/src/layering.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or_default();
            // `kind` is null for a normal dependency.
            let is_dev = dependency["kind"].as_str() == Some("dev");
            if !is_dev && is_bound(to) && !layer.may_use.iter().any(|allowed| *allowed == to || *allowed == "*") {
                out.push(format!("{name}: may not depend on {to}"));
            }
        }
    }
    out
}

fn is_bound(package: &str) -> bool {
    RESTRICTED.contains(&package) || package == "monopour" || package.starts_with("monopour-")
}

/// Whether the file, by its path from the root, may hold `unsafe`.
pub fn may_be_unsafe(path: &str) -> bool {
    let layer = LAYERS
        .iter()
        .find(|l| path.starts_with(l.folder))
        .expect("the root package's folder is a prefix of every path");
    let inner = &path[layer.folder.len()..];
    layer.unsafe_in.iter().any(|file| *file == "*" || *file == inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edge(from: &str, to: &str, kind: Option<&str>) -> Vec<String> {
        forbidden_edges(&json!({"packages": [{"name": from, "dependencies": [{"name": to, "kind": kind}]}]}))
    }

    #[test]
    fn edges_outside_the_table_are_found() {
        assert_eq!(
            edge("monopour-bufferize", "monopour-frontend", None),
            ["monopour-bufferize: may not depend on monopour-frontend"]
        );
        assert_eq!(
            edge("monopour-runtime", "mlir-sys", Some("build")),
            ["monopour-runtime: may not depend on mlir-sys"]
        );
        assert!(edge("monopour-bufferize", "monopour-ir", None).is_empty());
        assert!(edge("monopour-frontend", "monopour-testkit", Some("dev")).is_empty());
        assert!(edge("monopour-program", "serde", None).is_empty());
        assert_eq!(edge("monopour-new", "serde", None).len(), 1);
    }

    #[test]
    fn unsafe_is_allowed_by_file() {
        assert!(may_be_unsafe("ir/src/op.rs") && may_be_unsafe("runtime/src/native.rs"));
        assert!(
            !may_be_unsafe("runtime/src/pool.rs")
                && !may_be_unsafe("src/lib.rs")
                && !may_be_unsafe("analysis/src/facts.rs")
        );
    }
}
