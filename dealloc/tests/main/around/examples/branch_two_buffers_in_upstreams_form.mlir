// test: deallocate
// at most: 4 allocations, 3 copies, 0 clones
// Two buffers that meet in one block argument, one of them made before the branch.
func.func @f(%c: i1, %x: f32, %out: memref<2xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<2xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<2xf32>)
  cf.cond_br %c, ^left, ^right
^left:
  %b = memref.alloc() : memref<2xf32>
  linalg.fill ins(%x : f32) outs(%b : memref<2xf32>)
  cf.br ^join(%b : memref<2xf32>)
^right:
  cf.br ^join(%a : memref<2xf32>)
^join(%e: memref<2xf32>):
  memref.copy %e, %out : memref<2xf32> to memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<2xf32>) {
    %true = arith.constant true
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() : memref<2xf32>
    linalg.fill ins(%cst : f32) outs(%alloc : memref<2xf32>)
    scf.if %arg0 {
      memref.dealloc %alloc : memref<2xf32>
    }
    %0 = arith.xori %arg0, %true : i1
    cf.cond_br %arg0, ^bb1, ^bb2(%alloc, %0 : memref<2xf32>, i1)
  ^bb1:  // pred: ^bb0
    %alloc_0 = memref.alloc() : memref<2xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc_0 : memref<2xf32>)
    cf.br ^bb2(%alloc_0, %true : memref<2xf32>, i1)
  ^bb2(%1: memref<2xf32>, %2: i1):  // 2 preds: ^bb0, ^bb1
    memref.copy %1, %arg2 : memref<2xf32> to memref<2xf32>
    %base_buffer, %offset, %sizes, %strides = memref.extract_strided_metadata %1 : memref<2xf32> -> memref<f32>, index, index, index
    scf.if %2 {
      memref.dealloc %base_buffer : memref<f32>
    }
    return
  }
}
