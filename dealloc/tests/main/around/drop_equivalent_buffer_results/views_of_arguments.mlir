// test: drop-equivalent-buffer-results extensions
// A view of an argument is made by the caller; a function that returns it in turn loses its result, too.
func.func private @slice(%a: memref<8xf32>, %i: index) -> memref<2xf32, strided<[1], offset: ?>> {
  %one = arith.constant 1 : index
  %j = arith.addi %i, %one : index
  %v = memref.subview %a[%j] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: ?>>
  return %v : memref<2xf32, strided<[1], offset: ?>>
}
func.func private @pass(%i: index, %a: memref<8xf32>) -> memref<2xf32, strided<[1], offset: ?>> {
  %v = call @slice(%a, %i) : (memref<8xf32>, index) -> memref<2xf32, strided<[1], offset: ?>>
  return %v : memref<2xf32, strided<[1], offset: ?>>
}
func.func @caller(%a: memref<8xf32>, %i: index, %x: f32) {
  %v = call @pass(%i, %a) : (index, memref<8xf32>) -> memref<2xf32, strided<[1], offset: ?>>
  memref.store %x, %v[%i] : memref<2xf32, strided<[1], offset: ?>>
  return
}
// -----
// expect:
module {
  func.func private @slice(%arg0: memref<8xf32>, %arg1: index) {
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg1, %c1 : index
    %subview = memref.subview %arg0[%0] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: ?>>
    return
  }
  func.func private @pass(%arg0: index, %arg1: memref<8xf32>) {
    call @slice(%arg1, %arg0) : (memref<8xf32>, index) -> ()
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg0, %c1 : index
    %subview = memref.subview %arg1[%0] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: ?>>
    return
  }
  func.func @caller(%arg0: memref<8xf32>, %arg1: index, %arg2: f32) {
    call @pass(%arg1, %arg0) : (index, memref<8xf32>) -> ()
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg1, %c1 : index
    %subview = memref.subview %arg0[%0] [2] [1] : memref<8xf32> to memref<2xf32, strided<[1], offset: ?>>
    memref.store %arg2, %subview[%arg1] : memref<2xf32, strided<[1], offset: ?>>
    return
  }
}
