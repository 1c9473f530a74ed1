// test: deallocate extensions
// at most: 1 allocations, 1 copies, 0 clones
// Both ways lead to one block with different buffers, and a select of two lives on there.
func.func @f(%given: memref<2xf32>, %c: i1, %d: i1, %x: f32) {
  %a = memref.alloc() : memref<2xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<2xf32>)
  %s = memref.alloca() : memref<2xf32>
  %e = arith.select %c, %a, %s : memref<2xf32>
  cf.cond_br %d, ^end(%a : memref<2xf32>), ^end(%given : memref<2xf32>)
^end(%b: memref<2xf32>):
  memref.copy %b, %e : memref<2xf32> to memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func @f(%arg0: memref<2xf32>, %arg1: i1, %arg2: i1, %arg3: f32) {
    %alloc = memref.alloc() : memref<2xf32>
    linalg.fill ins(%arg3 : f32) outs(%alloc : memref<2xf32>)
    %alloca = memref.alloca() : memref<2xf32>
    %0 = arith.select %arg1, %alloc, %alloca : memref<2xf32>
    %1 = arith.select %arg2, %alloc, %arg0 : memref<2xf32>
    memref.copy %1, %0 : memref<2xf32> to memref<2xf32>
    memref.dealloc %alloc : memref<2xf32>
    return
  }
}
