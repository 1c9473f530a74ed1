// An iteration hands on what it loaded, and stores.
// options: allow-return-allocs-from-loops
// values: 2 3
ml_program.global private mutable @state(dense<0.0> : tensor<4xf32>) : tensor<4xf32>
func.func @main() -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  ml_program.global_store @state = %z : tensor<4xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %z) -> (tensor<4xf32>) {
    %l = ml_program.global_load @state : tensor<4xf32>
    %x = tensor.extract %l[%c0] : tensor<4xf32>
    %y = arith.addf %x, %one : f32
    %n = linalg.fill ins(%y : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    ml_program.global_store @state = %n : tensor<4xf32>
    scf.yield %l : tensor<4xf32>
  }
  %u = tensor.extract %r[%c0] : tensor<4xf32>
  %s = ml_program.global_load @state : tensor<4xf32>
  %v = tensor.extract %s[%c0] : tensor<4xf32>
  return %u, %v : f32, f32
}
