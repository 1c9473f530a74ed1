//! Artifacts that were truncated, changed, or made by another version.

use std::path::Path;

use super::{Case, line};

/// All cases, from a good artifact.
pub fn cases(good: &Path) -> Vec<Case> {
    let good = std::fs::read(good).expect("it was written");
    let given = |bytes: Vec<u8>, code: &str, what: String| {
        let line = line("run m.mpr --device cpu --random 1", 1, &format!("error[{code}"));
        line.file("m.mpr", bytes).about(what)
    };
    let mut cases = vec![
        given(vec![], "P0001", "empty".into()),
        given(b"hello".to_vec(), "P0001", "text".into()),
        given(super::ADD.into(), "P0001", "MLIR".into()),
        given([&good[..], &[0]].concat(), "P0004", "a byte more".into()),
        given(good.iter().rev().copied().collect(), "P0001", "backwards".into()),
    ];
    for part in 1..12 {
        let len = good.len() * part / 12;
        cases.push(given(good[..len].to_vec(), "P0003", format!("cut at {len} of {}", good.len())));
    }
    let changed = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    for version in [0u32, 1 << 16, u32::MAX] {
        cases.push(given(changed(8, &version.to_le_bytes()), "P0002", format!("version {version}")));
    }
    cases.push(given(changed(0, b"mono"), "P0001", "another magic".into()));
    // One bit each, all over the file behind its version: the hash detects them all.
    for part in 0..16 {
        let at = 12 + (good.len() - 13) * part / 15;
        let code = if (44..52).contains(&at) { "P000" } else { "P0004" };
        cases.push(given(changed(at, &[good[at] ^ 1]), code, format!("a bit at {at}")));
    }
    for command in ["inspect m.mpr", "inspect m.mpr --json", "explain m.mpr", "explain m.mpr --json"] {
        cases.push(line(command, 1, "error[P0004]").file("m.mpr", changed(good.len() - 1, &[!good[good.len() - 1]])));
    }
    cases.push(line("run @/m.mpr --device cpu --random 1 --inputs nothing --check nothing", 1, "error[R0017]"));
    cases
}
