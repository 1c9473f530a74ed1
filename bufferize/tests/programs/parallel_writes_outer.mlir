// differs: upstream takes the body of scf.parallel as running once, and lets an iteration read what another one wrote
func.func @main(%t: tensor<8xf32>, %x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%x) -> f32 {
    %old = tensor.extract %t[%c0] : tensor<8xf32>
    %y = arith.addf %old, %x : f32
    %w = tensor.insert %y into %t[%c0] : tensor<8xf32>
    %z = tensor.extract %w[%c0] : tensor<8xf32>
    scf.reduce(%z : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }
  return %r : f32
}
