// test: buffer-hoisting
// A yielded buffer is hoisted before its if, as far up as its size is defined; a local one stays inside.
func.func @f(%c: i1, %n: index, %x: f32) -> memref<?xf32> {
  %i = arith.constant 0 : index
  %m = arith.addi %n, %n : index
  %r = scf.if %c -> memref<?xf32> {
    %s = scf.if %c -> memref<?xf32> {
      %a = memref.alloc(%m) : memref<?xf32>
      scf.yield %a : memref<?xf32>
    } else {
      %k = arith.muli %n, %m : index
      %b = memref.alloc(%k) : memref<?xf32>
      scf.yield %b : memref<?xf32>
    }
    scf.yield %s : memref<?xf32>
  } else {
    %t = memref.alloc() : memref<2xf32>
    memref.store %x, %t[%i] : memref<2xf32>
    %e = memref.alloc(%n) : memref<?xf32>
    scf.yield %e : memref<?xf32>
  }
  return %r : memref<?xf32>
}
// -----
// expect:
module {
  func.func @f(%arg0: i1, %arg1: index, %arg2: f32) -> memref<?xf32> {
    %c0 = arith.constant 0 : index
    %0 = arith.addi %arg1, %arg1 : index
    %alloc = memref.alloc(%0) : memref<?xf32>
    %alloc_0 = memref.alloc(%arg1) : memref<?xf32>
    %1 = scf.if %arg0 -> (memref<?xf32>) {
      %2 = scf.if %arg0 -> (memref<?xf32>) {
        scf.yield %alloc : memref<?xf32>
      } else {
        %3 = arith.muli %arg1, %0 : index
        %alloc_1 = memref.alloc(%3) : memref<?xf32>
        scf.yield %alloc_1 : memref<?xf32>
      }
      scf.yield %2 : memref<?xf32>
    } else {
      %alloc_1 = memref.alloc() : memref<2xf32>
      memref.store %arg2, %alloc_1[%c0] : memref<2xf32>
      scf.yield %alloc_0 : memref<?xf32>
    }
    return %1 : memref<?xf32>
  }
}
