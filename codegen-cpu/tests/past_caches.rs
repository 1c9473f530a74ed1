//! Results too large for any cache.

use crate::harness::{Library, can_run, compile, random};
use crate::kernels::targets;
use monopour_codegen_cpu::object::{Listing, listing};
use monopour_ir::{Context, Module};
use monopour_program::CpuTarget;

/// A task of a result of `elements`: `length` of them from four times its number on, of `source` negated.
fn negate(elements: usize, length: usize, source: &str) -> String {
    let part = format!("memref<{length}xf32, strided<[1], offset: ?>>");
    format!(
        r#"
func.func private @k(%A: memref<{elements}xf32>, %C: memref<{elements}xf32>, %i: index) attributes {{monopour.kernel = {{class = "elementwise"}}}} {{
  %c4 = arith.constant 4 : index
  %i0 = arith.muli %i, %c4 : index
  %a = memref.subview {source}[%i0] [{length}] [1] : memref<{elements}xf32> to {part}
  %c = memref.subview %C[%i0] [{length}] [1] : memref<{elements}xf32> to {part}
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
    ins(%a : {part}) outs(%c : {part}) {{
  ^bb0(%x: f32, %o: f32):
    %n = arith.negf %x : f32
    linalg.yield %n : f32
  }}
  return
}}
"#
    )
}

/// Elements of 64 MiB, and of the least result that passes the caches, 16 MiB.
const LARGE: usize = 16 << 20;
const LEAST: usize = 4 << 20;

#[test]
fn a_large_result_is_right_wherever_it_begins() {
    if !can_run() {
        return;
    }
    for target in targets() {
        let code = compile(&negate(LARGE, 96, "%A"), &target).unwrap();
        let library = Library::load(&code);
        let (mut a, mut c) = (random(256, 3), vec![0.0; 256]);
        // Each place within a line that the elements of a buffer can have.
        for task in 0..32 {
            library.run("k", &mut [&mut a, &mut c], &[task]);
            let part = task as usize * 4..task as usize * 4 + 96;
            assert!(c[part.clone()].iter().zip(&a[part]).all(|(c, a)| *c == -a), "task {task} on {}", target.cpu);
        }
        assert!(c[31 * 4 + 96..].iter().all(|c| *c == 0.0));
    }
}

#[test]
fn whole_lines_that_nothing_reads_pass_the_caches() {
    let stores = |kernel: &str| {
        let module = format!("func.func @main(%cx: i64) {{ return }}\n{kernel}");
        let module = Module::parse(Context::new(), module.as_bytes(), "test.mlir").unwrap();
        let text = listing(&module, &CpuTarget::parse("x86-64-v4").unwrap(), Listing::OptimizedIr).unwrap();
        let fences = text.matches("call void @llvm.x86.sse.sfence").count();
        assert_eq!(fences, usize::from(text.contains("!nontemporal")), "{text}");
        text.lines()
            .filter(|line| line.contains("!nontemporal"))
            .map(|line| line.contains("align 64"))
            .collect::<Vec<_>>()
    };
    assert_eq!(stores(&negate(LEAST, 96, "%A")), [true], "a loop of three steps");
    assert_eq!(stores(&negate(LEAST - 1, 96, "%A")), [], "a cache may hold it");
    assert_eq!(stores(&negate(LEAST, 100, "%A")), [], "a part of a line");
    assert_eq!(stores(&negate(LEAST, 96, "%C")), [], "in place");
}
