func.func @f(%n: index, %t: tensor<6xf32>, %u: tensor<6xf32>) -> tensor<6xf32> {
  %r = scf.index_switch %n -> tensor<6xf32>
  case 1 {
    scf.yield %t : tensor<6xf32>
  } default {
  ^bb0(%a: tensor<8xf32>):
    scf.yield %u : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}
