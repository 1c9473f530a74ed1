// differs: upstream does not know that the result is what a region yields
func.func @main(%t: tensor<8xf32>, %x: f32, %i: index) -> (f32, f32) {
  %u = linalg.fill ins(%x : f32) outs(%t : tensor<8xf32>) -> tensor<8xf32>
  %r = scf.index_switch %i -> tensor<8xf32>
  case 2 {
    %a = tensor.insert %x into %u[%i] : tensor<8xf32>
    scf.yield %a : tensor<8xf32>
  }
  default {
    scf.yield %u : tensor<8xf32>
  }
  %w = tensor.insert %x into %r[%i] : tensor<8xf32>
  %o = tensor.extract %u[%i] : tensor<8xf32>
  %p = tensor.extract %w[%i] : tensor<8xf32>
  return %o, %p : f32, f32
}
