// The source of version-9.mpr: `monopour compile version-9.mlir --target gpu:portable --target cpu:x86-64 -o version-9.mpr`.
// A product with weights, a loop of dispatches on the host, a branch and a division there, and a size of the run.
func.func @main(%x: tensor<?x4xf32>, %n: index) -> (tensor<?x4xf32>, index) {
  %w = arith.constant dense<[[1.0, 0.0, 0.0, 2.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [3.0, 0.0, 0.0, 1.0]]> : tensor<4x4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %z = arith.constant 0.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x4xf32>
  %q = arith.divsi %c100, %n : index
  %large = arith.cmpi sgt, %q, %rows : index
  %m = arith.select %large, %q, %rows : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<?x4xf32>) {
    %e = tensor.empty(%rows) : tensor<?x4xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    %p = linalg.matmul ins(%a, %w : tensor<?x4xf32>, tensor<4x4xf32>) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
    scf.yield %p : tensor<?x4xf32>
  }
  return %r, %m : tensor<?x4xf32>, index
}
