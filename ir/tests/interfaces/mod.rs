//! Interface queries.

use crate::conversion::parse;
use monopour_ir::interfaces::{self, EffectKind};

const TEXT: &str = r#"
func.func @f(%t: tensor<8xf32>, %m: memref<8xf32>, %n: index) -> tensor<8xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.fill ins(%c : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %v = memref.load %m[%n] : memref<8xf32>
  memref.store %v, %m[%n] : memref<8xf32>
  %a = memref.alloc() : memref<8xf32>
  memref.dealloc %a : memref<8xf32>
  scf.for %i = %n to %n step %n {
    scf.yield
  }
  %s = tensor.extract_slice %0[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %r = tensor.insert_slice %s into %t[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
  "t.unknown"() : () -> ()
  return %r : tensor<8xf32>
}
"#;

#[test]
fn ops_answer_for_themselves() {
    let module = parse(TEXT);
    let op = |name: &str| module.op().find_all(name)[0];
    assert_eq!(interfaces::dps_inits(op("linalg.fill")), [1]);
    assert_eq!(interfaces::dps_inits(op("tensor.insert_slice")), [1]);
    assert_eq!(interfaces::dps_inits_if_any(op("memref.load")), None);
    let effects = |name: &str| interfaces::memory_effects(op(name)).expect("says so");
    let kinds = |name: &str| effects(name).iter().map(|e| e.kind).collect::<Vec<_>>();
    assert_eq!(kinds("memref.load"), [EffectKind::Read]);
    assert_eq!(effects("memref.store")[0].value, Some(op("memref.store").operand(1)));
    assert_eq!(kinds("memref.alloc"), [EffectKind::Allocate]);
    assert_eq!(kinds("memref.dealloc"), [EffectKind::Free]);
    assert_eq!(interfaces::memory_effects(op("t.unknown")), None);
    assert!(interfaces::is_pure(op("arith.constant")) && !interfaces::is_memory_effect_free(op("memref.load")));
    assert!(interfaces::has_recursive_effects(op("scf.for")));
    assert!(interfaces::is_region_branch(op("scf.for")) && interfaces::is_loop_like(op("scf.for")));
    assert!(
        interfaces::is_repetitive_region(op("scf.for"), 0) && !interfaces::is_repetitive_region(op("func.func"), 0)
    );
    assert!(interfaces::is_subset_insertion(op("tensor.insert_slice")));
    assert!(interfaces::is_subset_extraction(op("tensor.extract_slice")));
    assert!(!interfaces::is_subset_insertion(op("linalg.fill")));
}
