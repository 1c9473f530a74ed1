//! Every code that the frontend reports.

use crate::support::import_text;

fn code(text: &str) -> String {
    import_text(text).expect_err("is refused").0[0].code.to_owned()
}

#[test]
fn f0001_no_entry() {
    assert_eq!(code("func.func @a() { return }\nfunc.func @b() { return }"), "F0001");
}
