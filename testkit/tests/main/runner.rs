//! File tests: precise output, bless, oracle.

use monopour_ir::{Module, run_passes};
use monopour_testkit::oracle;
use monopour_testkit::runner::run;
use std::path::{Path, PathBuf};

/// The passes of the file tests below `tests/runner`.
fn upstream(pass: &str, options: &str, module: &Module) -> String {
    let result = match pass {
        "pipeline" => run_passes(module.op(), options),
        "decisions" => {
            let pipeline = format!("builtin.module(one-shot-bufferize{{test-analysis-only {options}}})");
            run_passes(module.op(), &pipeline)
        }
        other => return format!("unknown pass {other}"),
    };
    result.map_or_else(|d| d.to_string(), |()| module.op().to_string())
}

fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("the target folder is writable");
    for (file, text) in files {
        std::fs::write(dir.join(file), text).expect("the target folder is writable");
    }
    dir
}

#[test]
fn files_pass() {
    run(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runner"), upstream).assert_passed();
}

#[test]
fn a_difference_is_shown() {
    let text = "// test: pipeline builtin.module(cse)\nmodule {}\n// -----\n// expect:\nmodule @other {\n}\n";
    let report = run(&folder("difference", &[("a.mlir", text)]), upstream);
    assert_eq!((report.files, report.failures.len()), (1, 1));
    assert!(report.failures[0].contains("-  module @other {\n-  }\n+  module {"), "{}", report.failures[0]);
}

#[test]
fn a_stale_difference_to_the_oracle_fails() {
    let input = "func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %a : tensor<2xf32>\n}\n";
    let arguments = "-one-shot-bufferize=\"test-analysis-only bufferize-function-boundaries\"";
    let output = oracle::mlir_opt(arguments, input).expect("runs");
    let file = |differs: &str| {
        let output = output.trim_end();
        format!(
            "// test: decisions bufferize-function-boundaries\n// oracle: {arguments}\n{differs}{input}// -----\n// expect:\n{output}\n"
        )
    };
    let differs = file("// differs: of old\n");
    let report = run(&folder("stale", &[("a.mlir", &file("")), ("b.mlir", &differs)]), upstream);
    assert_eq!(report.failures.len(), 1, "{:?}", report.failures);
    assert!(report.failures[0].contains("b.mlir: stale"), "{:?}", report.failures);
}

#[test]
#[should_panic(expected = "holds no file test")]
fn an_empty_folder_is_an_error() {
    run(&folder("empty", &[]), upstream).assert_passed();
}
