// test: deallocate extensions
// at most: 2 allocations, 0 copies, 0 clones
// Both branches give the same buffer; one makes another one for itself.
func.func @f(%c: i1, %n: index, %x: f32) -> memref<?xf32> {
  %i = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<?xf32>)
  %e = scf.if %c -> memref<?xf32> {
    scf.yield %a : memref<?xf32>
  } else {
    %b = memref.alloc() : memref<1xf32>
    linalg.fill ins(%x : f32) outs(%b : memref<1xf32>)
    %y = memref.load %b[%i] : memref<1xf32>
    memref.store %y, %a[%i] : memref<?xf32>
    scf.yield %a : memref<?xf32>
  }
  return %e : memref<?xf32>
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: index, %arg2: f32) -> memref<?xf32> {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc(%arg1) : memref<?xf32>
    linalg.fill ins(%cst : f32) outs(%alloc : memref<?xf32>)
    scf.if %arg0 {
    } else {
      %alloc_0 = memref.alloc() : memref<1xf32>
      linalg.fill ins(%arg2 : f32) outs(%alloc_0 : memref<1xf32>)
      %0 = memref.load %alloc_0[%c0] : memref<1xf32>
      memref.dealloc %alloc_0 : memref<1xf32>
      memref.store %0, %alloc[%c0] : memref<?xf32>
    }
    return %alloc : memref<?xf32>
  }
}
