// options: use-encoding-for-memory-space
#g = #gpu.address_space<global>
#map = affine_map<(d0) -> (d0 * 16)>
#mapn = affine_map<(d0) -> (d0 * 64)>
#min = affine_map<(d0) -> (-d0 * 16 + 63, 16)>
#minn = affine_map<(d0) -> (-d0 * 64 + 100, 64)>
func.func @main(%a: tensor<63x30xf32, #g>, %b: tensor<30x100xf32,#g>, %bias: tensor<100xf32,#g>) -> tensor<63x100xf32,#g> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<63x100xf32,#g>
  %r = scf.forall (%i, %j) in (4, 2) shared_outs(%o = %e) -> tensor<63x100xf32,#g> {
    %m0 = affine.apply #map(%i)
    %n0 = affine.apply #mapn(%j)
    %ms = affine.min #min(%i)
    %ns = affine.min #minn(%j)
    %as = tensor.extract_slice %a[%m0, 0] [%ms, 30] [1,1] : tensor<63x30xf32,#g> to tensor<?x30xf32,#g>
    %bs = tensor.extract_slice %b[0, %n0] [30, %ns] [1,1] : tensor<30x100xf32,#g> to tensor<30x?xf32,#g>
    %bi = tensor.extract_slice %bias[%n0] [%ns] [1] : tensor<100xf32,#g> to tensor<?xf32,#g>
    %os = tensor.extract_slice %o[%m0, %n0] [%ms, %ns] [1,1] : tensor<63x100xf32,#g> to tensor<?x?xf32,#g>
    %f = linalg.fill ins(%z : f32) outs(%os : tensor<?x?xf32,#g>) -> tensor<?x?xf32,#g>
    %m = linalg.matmul ins(%as, %bs : tensor<?x30xf32,#g>, tensor<30x?xf32,#g>) outs(%f : tensor<?x?xf32,#g>) -> tensor<?x?xf32,#g>
    %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%bi : tensor<?xf32,#g>) outs(%m : tensor<?x?xf32,#g>) {
  ^bb0(%q: f32, %p: f32):
    %s = arith.addf %p, %q : f32
    %t = arith.maximumf %s, %z : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32,#g>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[%m0, %n0] [%ms, %ns] [1,1] : tensor<?x?xf32,#g> into tensor<63x100xf32,#g>
    }
  } {mapping = [#gpu.block<y>, #gpu.block<x>], monopour.kernel = {class = "contraction"}}
  return %r : tensor<63x100xf32,#g>
}
