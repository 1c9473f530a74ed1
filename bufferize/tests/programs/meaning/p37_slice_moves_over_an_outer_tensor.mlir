// Each iteration fills a slice of its own of one tensor and reads all of it: the others are as they were, not as another
// iteration left them. Finds a destination from around the loop that is taken for one that the iteration made.
func.func @main(%x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %t = linalg.fill ins(%one : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %zero) -> (f32) {
    %s = tensor.extract_slice %t[%i] [1] [1] : tensor<8xf32> to tensor<1xf32>
    %f = linalg.fill ins(%zero : f32) outs(%s : tensor<1xf32>) -> tensor<1xf32>
    %w = tensor.insert_slice %f into %t[%i] [1] [1] : tensor<1xf32> into tensor<8xf32>
    %sum = scf.for %j = %c0 to %c8 step %c1 iter_args(%b = %a) -> (f32) {
      %v = tensor.extract %w[%j] : tensor<8xf32>
      %c = arith.addf %b, %v : f32
      scf.yield %c : f32
    }
    scf.yield %sum : f32
  }
  return %r : f32
}
