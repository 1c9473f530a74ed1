// The type does not say that there is more than the insertion overwrites: the rest must be in the copy. Finds an insertion
// into a destination of unknown size that is taken for one that overwrites everything.
func.func @main(%s: tensor<3xf32>, %x: f32) -> (tensor<9xf32>, tensor<9xf32>) {
  %e = tensor.empty() : tensor<9xf32>
  %f = linalg.fill ins(%x : f32) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %c = tensor.cast %f : tensor<9xf32> to tensor<?xf32>
  %i = tensor.insert_slice %s into %c[0] [3] [1] : tensor<3xf32> into tensor<?xf32>
  %r = tensor.cast %i : tensor<?xf32> to tensor<9xf32>
  return %r, %f : tensor<9xf32>, tensor<9xf32>
}
