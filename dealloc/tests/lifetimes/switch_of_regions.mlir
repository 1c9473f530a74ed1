// test: ownership 
// Results of several regions: an indicator comes beside the one that only some of them allocate.

func.func @f(%s: index, %b: memref<4xf32>, %x: f32) {
  %r = scf.index_switch %s -> memref<4xf32>
  case 1 {
    %a = memref.alloc() : memref<4xf32>
    scf.yield %a : memref<4xf32>
  }
  default {
    scf.yield %b : memref<4xf32>
  }
  linalg.fill ins(%x : f32) outs(%r : memref<4xf32>)
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: index, %arg1: memref<4xf32>, %arg2: f32) {
    %0:2 = scf.index_switch %arg0 -> memref<4xf32>, i1 
    case 1 {
      %alloc = memref.alloc() : memref<4xf32>
      %true = arith.constant true
      scf.yield %alloc, %true : memref<4xf32>, i1
    }
    default {
      %false = arith.constant false
      scf.yield %arg1, %false : memref<4xf32>, i1
    }
    linalg.fill ins(%arg2 : f32) outs(%0#0 : memref<4xf32>)
    scf.if %0#1 {
      memref.dealloc %0#0 : memref<4xf32>
    }
    return
  }
}
