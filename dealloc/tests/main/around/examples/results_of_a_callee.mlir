// test: deallocate
// at most: 2 allocations, 1 copies, 1 clones
// A caller owns what it gets: a callee that may return its argument gives a copy.
func.func private @either(%c: i1, %given: memref<2xf32>, %x: f32) -> memref<2xf32> {
  %a = memref.alloc() : memref<2xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<2xf32>)
  %e = arith.select %c, %a, %given : memref<2xf32>
  return %e : memref<2xf32>
}
func.func @f(%c: i1, %x: f32, %given: memref<2xf32>, %out: memref<2xf32>) {
  %r = call @either(%c, %given, %x) : (i1, memref<2xf32>, f32) -> memref<2xf32>
  memref.copy %r, %out : memref<2xf32> to memref<2xf32>
  return
}
// -----
// expect:
module {
  func.func private @either(%arg0: i1, %arg1: memref<2xf32>, %arg2: f32) -> memref<2xf32> {
    %alloc = memref.alloc() : memref<2xf32>
    linalg.fill ins(%arg2 : f32) outs(%alloc : memref<2xf32>)
    %0 = arith.select %arg0, %alloc, %arg1 : memref<2xf32>
    %1 = scf.if %arg0 -> (memref<2xf32>) {
      scf.yield %0 : memref<2xf32>
    } else {
      %3 = bufferization.clone %0 : memref<2xf32> to memref<2xf32>
      scf.yield %3 : memref<2xf32>
    }
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<2xf32> -> index
    %intptr_0 = memref.extract_aligned_pointer_as_index %1 : memref<2xf32> -> index
    %2 = arith.cmpi ne, %intptr, %intptr_0 : index
    scf.if %2 {
      memref.dealloc %alloc : memref<2xf32>
    }
    return %1 : memref<2xf32>
  }
  func.func @f(%arg0: i1, %arg1: f32, %arg2: memref<2xf32>, %arg3: memref<2xf32>) {
    %0 = call @either(%arg0, %arg2, %arg1) : (i1, memref<2xf32>, f32) -> memref<2xf32>
    memref.copy %0, %arg3 : memref<2xf32> to memref<2xf32>
    %base_buffer, %offset, %sizes, %strides = memref.extract_strided_metadata %0 : memref<2xf32> -> memref<f32>, index, index, index
    memref.dealloc %base_buffer : memref<f32>
    return
  }
}
