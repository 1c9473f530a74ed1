// test: deallocate
// at most: 3 allocations, 3 copies, 0 clones
// A buffer passes through two joins, of which the second one also takes an argument.
func.func @f(%c: i1, %d: i1, %given: memref<?xf32>, %out: memref<?xf32>, %n: index) {
  cf.cond_br %c, ^keep, ^make(%n : index)
^keep:
  cf.br ^outer(%given : memref<?xf32>)
^make(%size: index):
  %x = arith.constant 1.0 : f32
  %a = memref.alloc(%size) : memref<?xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<?xf32>)
  cf.cond_br %d, ^left, ^right
^left:
  cf.br ^inner(%a : memref<?xf32>)
^right:
  cf.br ^inner(%a : memref<?xf32>)
^inner(%b: memref<?xf32>):
  cf.br ^outer(%b : memref<?xf32>)
^outer(%e: memref<?xf32>):
  cf.br ^end(%e : memref<?xf32>)
^end(%g: memref<?xf32>):
  memref.copy %g, %out : memref<?xf32> to memref<?xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: i1, %arg2: memref<?xf32>, %arg3: memref<?xf32>, %arg4: index) {
    %true = arith.constant true
    %cst = arith.constant 1.000000e+00 : f32
    %false = arith.constant false
    cf.cond_br %arg0, ^bb2(%arg2, %false : memref<?xf32>, i1), ^bb1(%arg4 : index)
  ^bb1(%0: index):  // pred: ^bb0
    %alloc = memref.alloc(%0) : memref<?xf32>
    linalg.fill ins(%cst : f32) outs(%alloc : memref<?xf32>)
    cf.br ^bb2(%alloc, %true : memref<?xf32>, i1)
  ^bb2(%1: memref<?xf32>, %2: i1):  // 2 preds: ^bb0, ^bb1
    memref.copy %1, %arg3 : memref<?xf32> to memref<?xf32>
    %base_buffer, %offset, %sizes, %strides = memref.extract_strided_metadata %1 : memref<?xf32> -> memref<f32>, index, index, index
    scf.if %2 {
      memref.dealloc %base_buffer : memref<f32>
    }
    return
  }
}
