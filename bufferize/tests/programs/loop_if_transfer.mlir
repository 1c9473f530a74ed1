func.func @f(%x: tensor<?xf32>, %n: index, %c: i1) -> (tensor<?xf32>, tensor<?xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %q = tensor.insert %f0 into %a[%i] : tensor<?xf32>
    scf.yield %q : tensor<?xf32>
  }
  %s = scf.if %c -> tensor<?xf32> { scf.yield %r : tensor<?xf32> } else { 
    %g = linalg.fill ins(%f0 : f32) outs(%e: tensor<?xf32>) -> tensor<?xf32>
    scf.yield %g : tensor<?xf32> }
  %v = vector.transfer_read %s[%c0], %f0 : tensor<?xf32>, vector<4xf32>
  %w = vector.transfer_write %v, %r[%n] : vector<4xf32>, tensor<?xf32>
  %z = tensor.extract %r[%c0] : tensor<?xf32>
  return %w, %s, %z : tensor<?xf32>, tensor<?xf32>, f32
}
