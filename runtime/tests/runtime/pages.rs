//! Every code has a page.

#[test]
fn every_code_has_a_page() {
    let pages = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors");
    for n in 1..=16 {
        let page = pages.join(format!("R{n:04}.md"));
        let text = std::fs::read_to_string(&page).unwrap_or_default();
        assert!(text.starts_with(&format!("# R{n:04}: ")), "{}", page.display());
    }
}
