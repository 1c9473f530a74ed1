// test: copy-removal
// The copied contents are computed in place.
#id = affine_map<(i) -> (i)>
func.func @f(%in: memref<2xf32>, %out: memref<2xf32>) {
  %t = memref.alloc() : memref<2xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%in : memref<2xf32>) outs(%t : memref<2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %e = arith.negf %a : f32
    linalg.yield %e : f32
  }
  memref.copy %t, %out : memref<2xf32> to memref<2xf32>
  memref.dealloc %t : memref<2xf32>
  return
}
// -----
// expect:
#map = affine_map<(d0) -> (d0)>
module {
  func.func @f(%arg0: memref<2xf32>, %arg1: memref<2xf32>) {
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg0 : memref<2xf32>) outs(%arg1 : memref<2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.negf %in : f32
      linalg.yield %0 : f32
    }
    return
  }
}
