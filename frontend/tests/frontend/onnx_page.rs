//! `docs/onnx.md` is generated from the registry of ONNX ops: `BLESS=1 cargo test` renews it.

use monopour_frontend::onnx::Registry;
use std::collections::BTreeSet;

#[test]
fn the_page_of_onnx_ops_is_the_registry() {
    let registry = Registry::default();
    let rows = registry.entries().map(|(domain, op, entry)| {
        let domain = if domain.is_empty() { "" } else { domain };
        let versions = match (entry.versions.start(), entry.versions.end()) {
            (from, &i64::MAX) => format!("{from} and later"),
            (from, to) => format!("{from} to {to}"),
        };
        format!("| {domain} | {op} | {versions} | {} |\n", entry.missing)
    });
    let page = format!(
        "# ONNX ops\n\nThe ops of ONNX models that monopour compiles, {} in all.\n\
         Without a domain they are those of ai.onnx, of versions 1 to 28 of the operator set; a version here is the first in which the op has the \
         meaning that is compiled.\n\
         Types are bf16, f16, f32, f64, integers of 8 to 64 bits and truth values, as far as the op takes them.\n\
         A model that needs another op is refused with a list of all that is missing (F0042); `monopour inspect MODEL.onnx` shows the same list.\n\
         A program that embeds the compiler adds ops of its own to `monopour::onnx::Registry`.\n\n\
         Written from the registry (`BLESS=1 cargo test` renews this page).\n\n\
         | domain | op | versions | not supported |\n|---|---|---|---|\n{}",
        registry.entries().map(|(domain, op, _)| (domain, op)).collect::<BTreeSet<_>>().len(),
        rows.collect::<String>()
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/onnx.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    assert_eq!(std::fs::read_to_string(path).expect("the page exists"), page);
}
