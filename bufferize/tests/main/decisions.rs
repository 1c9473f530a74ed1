//! In-place decisions equal upstream's, operand by operand.

use crate::support::{agreed_programs, bufferize, option_line, upstream};
use monopour_bufferize::Options;

#[test]
fn decisions_without_function_boundaries_equal_upstreams() {
    let mut failures = String::new();
    for (name, text) in agreed_programs() {
        let (extra, options) = option_line(&text);
        // The destination is an argument, which is not writable here.
        if name == "materialize" {
            continue;
        }
        let options = Options { test_analysis_only: true, bufferize_function_boundaries: false, ..options };
        let expected = upstream(&text, &format!("test-analysis-only {extra}"));
        match bufferize(&text, &options) {
            Ok((module, _)) if module.op().to_string() == expected => {}
            Ok((module, _)) => failures += &difference(&name, &expected, &module.op().to_string()),
            Err(e) => failures += &format!("{name}: {e}\n"),
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn decisions_equal_upstreams() {
    let all = agreed_programs();
    assert!(all.len() > 20, "the programs are there");
    let mut failures = String::new();
    for (name, text) in all {
        let (extra, options) = option_line(&text);
        let options = Options { test_analysis_only: true, ..options };
        let flags = format!("bufferize-function-boundaries test-analysis-only {extra}");
        let expected = upstream(&text, &flags);
        match bufferize(&text, &options) {
            Ok((module, _)) if module.op().to_string() == expected => {}
            Ok((module, _)) => failures += &difference(&name, &expected, &module.op().to_string()),
            Err(e) => failures += &format!("{name}: {e}\n"),
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn difference(name: &str, expected: &str, actual: &str) -> String {
    let lines = expected.lines().zip(actual.lines()).filter(|(e, a)| e != a);
    let shown: String =
        lines.take(4).map(|(e, a)| format!("  upstream {}\n  ours     {}\n", e.trim(), a.trim())).collect();
    format!("{name}:\n{shown}")
}
