//! `docs/passes.md` is generated from the table of phases: `BLESS=1 cargo test` renews it.

use monopour::pipeline::PHASES;

#[test]
fn the_page_of_phases_is_the_table() {
    let rows = PHASES.iter().map(|p| format!("| `{}` | {} |\n", p.name, p.help)).collect::<String>();
    let page = format!(
        "# Phases\n\nIn this order; `monopour compile MODEL --emit PHASE` prints the IR after one, and the code that `emit` makes by its name: \
         `wgsl`, `spirv`, `llvm`, `object`.\n\
         Written from the table in `src/pipeline.rs` (`BLESS=1 cargo test` renews this page).\n\n\
         | phase | what it ensures |\n|---|---|\n{rows}"
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/passes.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    assert_eq!(std::fs::read_to_string(path).expect("the page exists"), page);
}
