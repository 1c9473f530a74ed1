// test: ownership 
// An argument or a buffer: an indicator is passed beside it, by each edge of the switch.

func.func @f(%arg: memref<4xf32>, %s: i32, %x: f32) {
  %a = memref.alloc() : memref<4xf32>
  cf.switch %s : i32, [
    default: ^join(%arg : memref<4xf32>),
    0: ^join(%a : memref<4xf32>),
    1: ^leave
  ]
^join(%p: memref<4xf32>):
  linalg.fill ins(%x : f32) outs(%p : memref<4xf32>)
  return
^leave:
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: memref<4xf32>, %arg1: i32, %arg2: f32) {
    %alloc = memref.alloc() : memref<4xf32>
    %true = arith.constant true
    cf.switch %arg1 : i32, [
      default: ^bb1(%arg0 : memref<4xf32>),
      0: ^bb2(%alloc, %true : memref<4xf32>, i1),
      1: ^bb3
    ]
  ^bb1(%0: memref<4xf32>):  // pred: ^bb0
    memref.dealloc %alloc : memref<4xf32>
    %false = arith.constant false
    cf.br ^bb2(%0, %false : memref<4xf32>, i1)
  ^bb2(%1: memref<4xf32>, %2: i1):  // 2 preds: ^bb0, ^bb1
    linalg.fill ins(%arg2 : f32) outs(%1 : memref<4xf32>)
    scf.if %2 {
      memref.dealloc %1 : memref<4xf32>
    }
    return
  ^bb3:  // pred: ^bb0
    memref.dealloc %alloc : memref<4xf32>
    return
  }
}
