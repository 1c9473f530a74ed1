//! House rules that a compiler does not check.

use crate::circles;
use crate::layering;
use crate::lengths::Lengths;
use crate::source::{self, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// First letters of diagnostic codes.
const CODE_LETTERS: &str = "IFBDSGCRP";
/// Crates without LLVM, as arguments of `cargo tree`: no crate of `LLVM_CRATES` may be below them.
const WITHOUT_LLVM: [&[&str]; 2] = [&["-p", "monopour-runtime"], &["-p", "monopour", "--no-default-features"]];
const LLVM_CRATES: [&str; 3] = ["melior", "mlir-sys", "llvm-sys"];

/// Where ops are named, `dialect.op`.
const OP_NAMES: &str = "ir/src/ops.rs";
/// The ops of host code as data, which a runtime without `ir` prints.
const HOST_OPS: &str = "program/src/host/scalar.rs";
/// Literals that look like names of ops: sets of patterns of the transform dialect, a file.
const NO_OPS: [&str; 5] = [
    "index.json",
    "tensor.fold_tensor_subset_ops_into_vector_transfers",
    "vector.reduction_to_contract",
    "vector.sink_ops",
    "vector.transfer_permutation_patterns",
];

/// Checks the repository and gives one line per finding.
pub fn run(root: &Path) -> Result<Vec<String>, String> {
    let mut out = layering::forbidden_edges(&metadata(root)?);
    for arguments in WITHOUT_LLVM {
        out.extend(llvm_below(root, arguments)?);
    }
    let mut codes: BTreeMap<String, String> = BTreeMap::new();
    let mut tests = String::new();
    let mut rust_files = Vec::new();
    let mut lengths = Lengths::default();
    let dialects = dialects(&fs::read_to_string(root.join(OP_NAMES)).map_err(|e| format!("{OP_NAMES}: {e}"))?);
    for path in tracked_files(root)? {
        let Ok(text) = fs::read_to_string(root.join(&path)) else {
            // Binary, or deleted and not yet committed.
            continue;
        };
        lengths.file(&path, &text);
        tests.push_str(test_part(&path, &text));
        if path.ends_with(".rs") {
            let parsed = source::parse(&text);
            lengths.functions(&path, &parsed);
            out.extend(check_rust(&path, &text, &parsed));
            out.extend(check_names(&path, &text, &parsed));
            out.extend(check_op_names(&path, &text, &parsed, &dialects));
            out.extend(check_segments(&path, &text, &parsed));
            // Test fixtures have codes without a source.
            let is_source = path.contains("src/") && !path.starts_with("xtask/");
            for (line, code) in codes_in(&parsed).into_iter().filter(|_| is_source) {
                codes.entry(code).or_insert_with(|| format!("{path}:{line}"));
            }
            rust_files.push((path, text));
        }
    }
    out.extend(lengths.finish());
    out.extend(circles::check(&circles::crates(&rust_files)));
    out.extend(check_pages(&codes, &pages(root)?));
    out.extend(
        codes
            .iter()
            .filter(|(code, _)| !tests.contains(*code))
            .map(|(code, place)| format!("{place}: no test names {code}")),
    );
    Ok(out)
}

/// The largest circle between the files of each crate.
pub fn largest_circles(root: &Path) -> Result<Vec<String>, String> {
    let rust = tracked_files(root)?.into_iter().filter(|path| path.ends_with(".rs"));
    let text = |path: &String| fs::read_to_string(root.join(path)).ok();
    let files: Vec<_> = rust.filter_map(|path| Some((text(&path)?, path))).map(|(text, path)| (path, text)).collect();
    Ok(circles::report(&circles::crates(&files)))
}

/// The part of a file that is tests.
fn test_part<'a>(path: &str, text: &'a str) -> &'a str {
    let is_code = path.ends_with(".rs") || path.ends_with(".mlir") || path.ends_with(".py");
    let name = path.rsplit('/').next().unwrap_or(path);
    if !is_code || path.starts_with("xtask/") {
        ""
    } else if path.starts_with("tests/") || path.contains("/tests/") || name.contains("test") {
        text
    } else {
        text.find("#[cfg(test)]").map_or("", |at| &text[at..])
    }
}

fn metadata(root: &Path) -> Result<serde_json::Value, String> {
    let text = output(root, "cargo", &["metadata", "--format-version", "1", "--no-deps"])?;
    serde_json::from_str(&text).map_err(|e| format!("cargo metadata: {e}"))
}

fn llvm_below(root: &Path, arguments: &[&str]) -> Result<Vec<String>, String> {
    let mut command = vec!["tree", "-e", "normal,build", "--prefix", "none"];
    command.extend(arguments);
    let tree = output(root, "cargo", &command)?;
    let found: BTreeSet<&str> =
        tree.lines().filter_map(|l| l.split(' ').next()).filter(|n| LLVM_CRATES.contains(n)).collect();
    Ok(found.into_iter().map(|name| format!("cargo tree {}: holds {name}", arguments.join(" "))).collect())
}

/// Files that git tracks or would add, from the root.
fn tracked_files(root: &Path) -> Result<Vec<String>, String> {
    let text = output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let result =
        Command::new(program).args(arguments).current_dir(root).output().map_err(|e| format!("{program}: {e}"))?;
    if !result.status.success() {
        return Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&result.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

fn check_rust(path: &str, text: &str, parsed: &Source) -> Vec<String> {
    let mut out = Vec::new();
    if !text.starts_with("//!") {
        out.push(format!("{path}:1: does not open with a //! header"));
    }
    if !layering::may_be_unsafe(path) {
        for (line, _) in parsed.words.iter().filter(|(_, word)| word == "unsafe") {
            out.push(format!("{path}:{line}: `unsafe` outside the files that may hold it"));
        }
    }
    for (line, comment) in &parsed.comments {
        if is_unbound_todo(comment) {
            out.push(format!("{path}:{line}: a TODO names its issue, `TODO(#123): outcome`"));
        }
    }
    for (line, word) in &parsed.words {
        if word == "todo" || word == "unimplemented" {
            out.push(format!("{path}:{line}: `{word}!` is not an answer to any input"));
        }
    }
    out
}

/// Names of the contract as literals outside of it. Tests and `testkit` hold IR text.
fn check_names(path: &str, text: &str, parsed: &Source) -> Vec<String> {
    if path.starts_with("contract/") || path.starts_with("testkit/") {
        return vec![];
    }
    let literals = literals_in_code(path, text, parsed).filter(|(_, literal)| is_contract_name(literal));
    literals
        .map(|(line, literal)| format!("{path}:{line}: `{literal}` as a literal, take it from monopour-contract"))
        .collect()
}

/// Names of ops as literals outside of [`OP_NAMES`]. Tests, benches and fuzz targets hold IR text.
fn check_op_names(path: &str, text: &str, parsed: &Source, dialects: &BTreeSet<String>) -> Vec<String> {
    if path == OP_NAMES
        || path == HOST_OPS
        || ["xtask/", "benches/", "fuzz/"].iter().any(|folder| path.starts_with(folder))
    {
        return vec![];
    }
    let is_op = |literal: &str| {
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b"_.".contains(&b));
        let parts = literal.split_once('.');
        parts.is_some_and(|(dialect, name)| dialects.contains(dialect) && is_name(name)) && !NO_OPS.contains(&literal)
    };
    let literals = literals_in_code(path, text, parsed).filter(|(_, literal)| is_op(literal));
    literals.map(|(line, literal)| format!("{path}:{line}: `{literal}` as a literal, name it in {OP_NAMES}")).collect()
}

/// The property of operand segments as a literal outside of `ir`, which has typed views and builders of the ops that have it.
fn check_segments(path: &str, text: &str, parsed: &Source) -> Vec<String> {
    if path.starts_with("ir/") || path.starts_with("xtask/") {
        return vec![];
    }
    let literals = literals_in_code(path, text, parsed).filter(|(_, literal)| literal.contains("operandSegmentSizes"));
    literals.map(|(line, _)| format!("{path}:{line}: operand segments by hand, use monopour_ir::typed")).collect()
}

/// The dialects whose ops [`OP_NAMES`] names.
fn dialects(op_names: &str) -> BTreeSet<String> {
    let names = source::parse(op_names).strings;
    names.iter().filter_map(|(_, name)| Some(name.split_once('.')?.0.to_owned())).collect()
}

/// String literals outside of tests.
fn literals_in_code<'a>(path: &str, text: &str, parsed: &'a Source) -> impl Iterator<Item = (usize, &'a str)> {
    let lines = text[..text.len() - test_part(path, text).len()].lines().count();
    let code = parsed.strings.iter().filter(move |(line, _)| *line <= lines);
    code.map(|(line, literal)| (*line, literal.as_str()))
}

/// Whether it is the name of an attribute of ours, or of a function of the runtime.
fn is_contract_name(literal: &str) -> bool {
    let rest = ["monopour.", "monopour_rt_"].iter().find_map(|prefix| literal.strip_prefix(prefix));
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
}

fn is_unbound_todo(comment: &str) -> bool {
    let words = ["TODO", "FIXME", "XXX"];
    let Some(rest) = words.iter().find_map(|w| comment.split_once(w)).map(|(_, rest)| rest) else { return false };
    let bound = rest
        .strip_prefix("(#")
        .and_then(|r| r.split_once(')'))
        .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
    // `TODO` in backticks speaks of the rule itself.
    !bound && !comment.contains("`TODO")
}

/// Diagnostic codes among the strings: a whole literal `B0104`, or `[B0104]` within one.
fn codes_in(parsed: &Source) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for (line, text) in &parsed.strings {
        if is_code(text) {
            out.push((*line, text.clone()));
        }
        for (at, _) in text.match_indices('[') {
            let inner = text.get(at + 1..at + 6).unwrap_or_default();
            if is_code(inner) && text[at + 6..].starts_with(']') {
                out.push((*line, inner.to_owned()));
            }
        }
    }
    out
}

fn is_code(text: &str) -> bool {
    let mut chars = text.chars();
    text.len() == 5 && chars.next().is_some_and(|c| CODE_LETTERS.contains(c)) && chars.all(|c| c.is_ascii_digit())
}

fn pages(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let folder = root.join("docs/errors");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    Ok(paths
        .into_iter()
        .filter_map(|path| {
            let code = path.file_stem()?.to_str()?.to_owned();
            is_code(&code).then(|| (code, fs::read_to_string(&path).unwrap_or_default()))
        })
        .collect())
}

fn check_pages(codes: &BTreeMap<String, String>, pages: &BTreeMap<String, String>) -> Vec<String> {
    let mut out = Vec::new();
    for (code, place) in codes.iter().filter(|(code, _)| !pages.contains_key(*code)) {
        out.push(format!("{place}: {code} has no page docs/errors/{code}.md"));
    }
    for (code, text) in pages {
        if !codes.contains_key(code) {
            out.push(format!("docs/errors/{code}.md: no source gives this code"));
        }
        if !text.starts_with(&format!("# {code}: ")) {
            out.push(format!("docs/errors/{code}.md: does not open with `# {code}: ...`"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check_rust(path, text, &source::parse(text))
    }

    #[test]
    fn headers_unsafe_and_todos() {
        assert_eq!(findings("split/src/a.rs", "fn f() {}\n"), ["split/src/a.rs:1: does not open with a //! header"]);
        assert_eq!(findings("split/src/a.rs", "//! A.\nunsafe { f() }\n").len(), 1);
        assert!(findings("ir/src/a.rs", "//! A.\nunsafe { f() }\n").is_empty());
        assert_eq!(findings("a.rs", "//! A.\n// TODO: later\n").len(), 1);
        assert!(findings("a.rs", "//! A.\n// TODO(#12): later\n").is_empty());
        assert_eq!(findings("a.rs", "//! A.\nfn f() { todo!() }\n").len(), 1);
    }

    #[test]
    fn names_of_the_contract_stand_in_it_alone() {
        let found = |path: &str, text: &str| check_names(path, text, &source::parse(text));
        let text = "//! A `monopour.kernel`.\nf(\"monopour.kernel\", \"see monopour.kernel\", \"monopour.toml.in\", \"monopour.\");\n\
            g(\"monopour_rt_ok\");\n#[cfg(test)]\nmod tests { f(\"monopour.kernel\") }\n";
        let expected = [
            "split/src/a.rs:2: `monopour.kernel` as a literal, take it from monopour-contract",
            "split/src/a.rs:3: `monopour_rt_ok` as a literal, take it from monopour-contract",
        ];
        assert_eq!(found("split/src/a.rs", text), expected);
        for path in ["contract/src/a.rs", "testkit/src/a.rs", "split/tests/a.rs", "tests/main/a.rs"] {
            assert!(found(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn names_of_ops_stand_in_one_file() {
        let dialects = dialects("names! { scf { FOR = \"scf.for\" } vector { LOAD = \"vector.load\" } }");
        let found = |path: &str, text: &str| check_op_names(path, text, &source::parse(text), &dialects);
        let text = "//! `scf.for`.\nf(\"scf.for\", \"scf.\", \"after scf.for\", \"arith.addi\", \"vector.sink_ops\");\n\
            #[cfg(test)]\nmod tests { f(\"scf.for\") }\n";
        assert_eq!(
            found("split/src/a.rs", text),
            ["split/src/a.rs:2: `scf.for` as a literal, name it in ir/src/ops.rs"]
        );
        assert!(found("split/tests/a.rs", text).is_empty() && found("ir/src/ops.rs", text).is_empty());
    }

    #[test]
    fn operand_segments_are_set_by_ir_alone() {
        let found = |path: &str, text: &str| check_segments(path, text, &source::parse(text));
        let text = "//! `operandSegmentSizes`.\nf(\"operandSegmentSizes\");\n#[cfg(test)]\nmod tests { f(\"operandSegmentSizes\") }\n";
        let expected = ["split/src/a.rs:2: operand segments by hand, use monopour_ir::typed"];
        assert_eq!(found("split/src/a.rs", text), expected);
        for path in ["ir/src/segments.rs", "split/tests/a.rs"] {
            assert!(found(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn codes_are_read_from_strings_only() {
        let parsed = source::parse(
            "//! B0001\nf(\"B0104\", \"error[S0002]: x\", \"F16\", \"Q0001\", \"B01041\"); let I0001 = 1;\n",
        );
        let codes: Vec<_> = codes_in(&parsed).into_iter().map(|c| c.1).collect();
        assert_eq!(codes, ["B0104", "S0002"]);
    }

    #[test]
    fn tests_are_whole_files_or_modules() {
        assert_eq!(test_part("split/tests/a.mlir", "B0001"), "B0001");
        assert_eq!(test_part("split/src/a.rs", "B0001\n#[cfg(test)]\nB0002"), "#[cfg(test)]\nB0002");
        assert_eq!(test_part("docs/errors/B0001.md", "B0001"), "");
    }

    #[test]
    fn pages_and_codes_match() {
        let codes =
            BTreeMap::from([("B0001".to_owned(), "a.rs:1".to_owned()), ("B0002".to_owned(), "a.rs:2".to_owned())]);
        let pages = BTreeMap::from([
            ("B0001".to_owned(), "# B0001: x\n".to_owned()),
            ("B0003".to_owned(), "B0003\n".to_owned()),
        ]);
        let found = check_pages(&codes, &pages);
        assert_eq!(found[0], "a.rs:2: B0002 has no page docs/errors/B0002.md");
        assert_eq!(found[1], "docs/errors/B0003.md: no source gives this code");
        assert_eq!(found.len(), 3);
    }
}
