//! Mutated ONNX models: a sample of a fixed seed, 10,000 in the full mode.

use std::process::Command;

#[test]
fn mutated_models_compile_or_are_refused() {
    let cases = if monopour_testkit::device::full_is_asked_for() { 10_000 } else { 200 };
    let mut run = Command::new(env!("CARGO_BIN_EXE_monopour-fuzz"));
    let output = run.args(["onnx", "--cases", &cases.to_string()]).output().expect("starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let last = text.lines().last().unwrap_or_default();
    let count = |word: &str| {
        let before = last.split(&format!(" {word}")).next().and_then(|head| head.rsplit(' ').next());
        before.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
    };
    assert_eq!(count("compiled") + count("refused"), cases, "{text}");
    // Neither the one nor the other by accident.
    assert!(count("compiled") >= 50 && count("refused") >= 50, "{text}");
}
