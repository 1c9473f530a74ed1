//! Elements of a line by their places, near each other or not, against those that plain Rust takes.

use crate::harness::{Library, can_run, compile, random, runs};
use monopour_codegen_cpu::object::{Listing, listing};
use monopour_ir::{Context, Module};
use monopour_program::CpuTarget;

const ROWS: usize = 3;

/// `y[r, i] = x[r, place[i]]`, of lines of so many elements.
fn kernel(name: &str, count: usize, length: usize) -> String {
    let (x, p, y) =
        (format!("memref<{ROWS}x{length}xf32>"), format!("memref<{count}xf32>"), format!("memref<{ROWS}x{count}xf32>"));
    format!(
        "func.func private @{name}(%x: {x}, %p: {p}, %y: {y}) attributes {{monopour.kernel = {{class = \"generic\"}}}} {{
linalg.generic {{indexing_maps = [affine_map<(r, i) -> (i)>, affine_map<(r, i) -> (r, i)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%p : {p}) outs(%y : {y}) {{
^bb0(%a: f32, %o: f32):
  %n = arith.fptosi %a : f32 to i32
  %at = arith.index_cast %n : i32 to index
  %r = linalg.index 0 : index
  %v = memref.load %x[%r, %at] : {x}
  linalg.yield %v : f32
}}
return
}}\n"
    )
}

/// Places in a line of so many elements.
fn places(count: usize, length: usize) -> Vec<Vec<usize>> {
    let last = length - 1;
    let each = |place: &dyn Fn(usize) -> usize| (0..count).map(|i| place(i).min(last)).collect();
    vec![
        each(&|i| i * length / count),
        // Those of a register are behind where the last register of the line begins.
        each(&|i| last.saturating_sub(i % 3)),
        each(&|i| last - (i * length / count).min(last)),
        // One lane is out of what a register holds, in front or behind.
        each(&|i| if i % 16 == 5 { 0 } else { length / 2 + i % 4 }),
        each(&|i| if i % 16 == 5 { last } else { i % 4 }),
        each(&|i| i * 5 % length),
        each(&|i| i * i * 7 % length),
    ]
}

#[test]
fn elements_near_each_other_are_right() {
    if !can_run() {
        return;
    }
    let sizes = [(64, 32), (37, 16), (48, 17), (16, 15), (40, 8), (33, 7), (112, 300), (5, 40), (32, 31), (48, 96)];
    let text: String =
        sizes.iter().enumerate().map(|(i, (count, length))| kernel(&format!("k{i}"), *count, *length)).collect();
    for target in ["x86-64-v4", "x86-64-v3", "x86-64-v2", "aarch64"] {
        let target = CpuTarget::parse(target).unwrap();
        if !runs(&target) {
            continue;
        }
        let library = Library::load(&compile(&text, &target).unwrap());
        for (i, (count, length)) in sizes.into_iter().enumerate() {
            let mut x = random(ROWS * length, i as u64);
            for places in places(count, length) {
                let mut p: Vec<f32> = places.iter().map(|place| *place as f32).collect();
                let mut y = vec![f32::NAN; ROWS * count];
                library.run(&format!("k{i}"), &mut [&mut x, &mut p, &mut y], &[]);
                let rows = (0..ROWS).flat_map(|r| places.iter().map(move |place| r * length + place));
                assert_eq!(y, rows.map(|at| x[at]).collect::<Vec<_>>(), "{length}: {places:?} on {target:?}");
            }
        }
    }
}

#[test]
fn a_register_of_the_line_is_permuted() {
    let assembly = |length: usize, target: &str| {
        let module = format!("func.func @main(%cx: i64) {{ return }}\n{}", kernel("k", 64, length));
        let module = Module::parse(Context::new(), module.as_bytes(), "test.mlir").unwrap();
        listing(&module, &CpuTarget::parse(target).unwrap(), Listing::Assembly).unwrap()
    };
    let permutes = |text: &str| ["vpermps", "vpermd", "vpermt2", "vpermi2"].iter().any(|name| text.contains(name));
    for (target, lanes) in [("x86-64-v4", 16), ("x86-64-v3", 8)] {
        assert!([1, 2, 9].iter().all(|lines| permutes(&assembly(lines * lanes, target))), "{target}");
        assert!(!permutes(&assembly(lanes - 1, target)), "{target}: the line is no register");
    }
    assert!(!permutes(&assembly(64, "x86-64-v2")));
}
