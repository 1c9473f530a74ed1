//! Replays the corpus, so that fixed crashes stay fixed.

use std::process::Command;

#[test]
fn no_file_of_the_corpus_is_a_finding() {
    let output = Command::new(env!("CARGO_BIN_EXE_monopour-fuzz")).arg("--replay").output().expect("starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let files: u32 = text.lines().last().and_then(|l| l.split(' ').next()?.parse().ok()).unwrap_or(0);
    assert!(files >= 100, "{text}");
}
