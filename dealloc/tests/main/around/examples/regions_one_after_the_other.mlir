// test: deallocate in-registers
// at most: 5 allocations, 3 copies, 3 clones
// The result of one of two regions passes through a third one, and is returned.
func.func @f(%c: i1, %n: index, %x: f32) -> memref<?xf32> {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<?xf32>)
  %e = scf.if %c -> memref<?xf32> {
    scf.yield %a : memref<?xf32>
  } else {
    %b = memref.alloc(%n) : memref<?xf32>
    linalg.fill ins(%x : f32) outs(%b : memref<?xf32>)
    scf.yield %b : memref<?xf32>
  }
  %r = scf.execute_region -> memref<?xf32> {
    scf.yield %e : memref<?xf32>
  }
  return %r : memref<?xf32>
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: index, %arg2: f32) -> memref<?xf32> {
    %true = arith.constant true
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc(%arg1) : memref<?xf32>
    linalg.fill ins(%cst : f32) outs(%alloc : memref<?xf32>)
    %0 = arith.xori %arg0, %true : i1
    %1:2 = scf.if %arg0 -> (memref<?xf32>, memref<?xf32>) {
      %8 = bufferization.clone %alloc : memref<?xf32> to memref<?xf32>
      scf.yield %alloc, %8 : memref<?xf32>, memref<?xf32>
    } else {
      %alloc_2 = memref.alloc(%arg1) : memref<?xf32>
      linalg.fill ins(%arg2 : f32) outs(%alloc_2 : memref<?xf32>)
      scf.yield %alloc_2, %alloc_2 : memref<?xf32>, memref<?xf32>
    }
    %base_buffer, %offset, %sizes, %strides = memref.extract_strided_metadata %1#0 : memref<?xf32> -> memref<f32>, index, index, index
    %intptr = memref.extract_aligned_pointer_as_index %alloc : memref<?xf32> -> index
    %intptr_0 = memref.extract_aligned_pointer_as_index %base_buffer : memref<f32> -> index
    %intptr_1 = memref.extract_aligned_pointer_as_index %1#1 : memref<?xf32> -> index
    %2 = arith.cmpi ne, %intptr, %intptr_1 : index
    %3 = arith.cmpi eq, %intptr_0, %intptr_1 : index
    %4 = arith.cmpi eq, %intptr_0, %intptr : index
    %5 = arith.ori %3, %4 : i1
    %6 = arith.xori %5, %true : i1
    %7 = arith.andi %6, %0 : i1
    scf.if %2 {
      memref.dealloc %alloc : memref<?xf32>
    }
    scf.if %7 {
      memref.dealloc %base_buffer : memref<f32>
    }
    return %1#1 : memref<?xf32>
  }
}
