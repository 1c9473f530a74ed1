//! Objects kept on disk: taken when text and target are the same, and only then.

use monopour_codegen_cpu::object;
use monopour_codegen_cpu::objects::Objects;
use monopour_ir::{Context, Module};
use monopour_program::CpuTarget;
use monopour_program::cache::Files;
use std::path::{Path, PathBuf};

const MODULE: &str = "memref.global \"private\" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
func.func @main(%cx: i64) { return }
func.func @k(%x: memref<8xf32>) attributes {monopour.kernel = {}} {
  %c0 = arith.constant 0 : index
  %t = memref.get_global @table : memref<2xf32>
  %v = memref.load %t[%c0] : memref<2xf32>
  memref.store %v, %x[%c0] : memref<8xf32>
  return
}";

fn objects(text: &str, target: &str, kept: Option<&Path>) -> Vec<Vec<u8>> {
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap();
    let kept = kept.map(|folder| Objects::new(folder.to_owned()));
    object::emit(&module, &CpuTarget::parse(target).unwrap(), kept.as_ref()).unwrap().objects
}

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).map_or(vec![], |dir| dir.map(|entry| entry.unwrap().path()).collect())
}

#[test]
fn an_object_is_taken_for_the_same_text_and_target_only() {
    let folder = crate::harness::scratch().join("objects");
    let made = objects(MODULE, "generic", None);
    assert_eq!(objects(MODULE, "generic", Some(&folder)), made);
    let [file] = &files(&folder)[..] else { panic!("one object is kept: {:?}", files(&folder)) };

    // Another content under its key shows that it is taken, and by what.
    let key = file.file_name().unwrap().to_str().unwrap();
    Files::new(folder.clone(), 1 << 20).put(key, b"taken");
    let taken = vec![b"taken".to_vec()];
    assert_eq!(objects(MODULE, "generic", Some(&folder)), taken);
    assert_eq!(objects(&format!("\n\n{MODULE}"), "generic", Some(&folder)), taken, "lines of the source do not count");
    let unread = "memref.global \"private\" constant @weights : memref<2xf32> = dense_resource<elsewhere>\n";
    assert_eq!(objects(&format!("{unread}{MODULE}"), "generic", Some(&folder)), taken, "nor does what no code reads");

    assert_eq!(objects(MODULE, "generic", None), made);
    let other = MODULE.replace("2.0]", "3.0]").replace("[1.0", "[4.0");
    assert_eq!(objects(&other, "generic", Some(&folder)), objects(&other, "generic", None), "a constant that is read");
    if cfg!(target_arch = "x86_64") {
        assert_eq!(objects(MODULE, "x86-64-v4", Some(&folder)), objects(MODULE, "x86-64-v4", None), "the target");
    }

    // Damaged: made again.
    std::fs::write(file, b"short").unwrap();
    assert_eq!(objects(MODULE, "generic", Some(&folder)), made);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn constants_that_are_not_in_the_text_are_not_kept() {
    let folder = crate::harness::scratch().join("objects");
    let text = MODULE.replace("dense<[1.0, 2.0]>", "dense_resource<table>");
    let text =
        format!("{text}\n{{-# dialect_resources: {{ builtin: {{ table: \"0x040000000000803F00000040\" }} }} #-}}");
    assert_eq!(objects(&text, "generic", Some(&folder)), objects(&text, "generic", None));
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
}
