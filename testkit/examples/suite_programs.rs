//! Writes the programs of the op suite, one file per case: `suite_programs DIR`. `scripts/same-products.py` compares builds on them.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("usage: suite_programs DIR"));
    std::fs::create_dir_all(&folder)?;
    for case in monopour_testkit::suite::all() {
        std::fs::write(folder.join(format!("{}.mlir", case.name.replace('/', "."))), &case.text)?;
    }
    Ok(())
}
