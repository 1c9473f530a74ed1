// test: deallocate only-lower
// at most: 2 allocations, 0 copies, 0 clones
// One buffer and nothing retained: a condition.
func.func @f(%c: i1, %x: f32) -> memref<2xf32> {
  %a = memref.alloc() : memref<2xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<2xf32>)
  %true = arith.constant true
  %no = arith.xori %c, %true : i1
  bufferization.dealloc (%a : memref<2xf32>) if (%no)
  %r = scf.if %c -> memref<2xf32> {
    scf.yield %a : memref<2xf32>
  } else {
    %b = memref.alloc() : memref<2xf32>
    linalg.fill ins(%x : f32) outs(%b : memref<2xf32>)
    scf.yield %b : memref<2xf32>
  }
  return %r : memref<2xf32>
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: f32) -> memref<2xf32> {
    %alloc = memref.alloc() : memref<2xf32>
    linalg.fill ins(%arg1 : f32) outs(%alloc : memref<2xf32>)
    %0 = scf.if %arg0 -> (memref<2xf32>) {
      scf.yield %alloc : memref<2xf32>
    } else {
      memref.dealloc %alloc : memref<2xf32>
      %alloc_0 = memref.alloc() : memref<2xf32>
      linalg.fill ins(%arg1 : f32) outs(%alloc_0 : memref<2xf32>)
      scf.yield %alloc_0 : memref<2xf32>
    }
    return %0 : memref<2xf32>
  }
}
