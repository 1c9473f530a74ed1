// A matrix of rows of 4096 times a vector: a subgroup has eight rows, of which it reads 64 elements at a time.
@group(0) @binding(0) var<storage, read> A: array<vec4<u64>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<u64>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  let r0 = w.x * 8u;
  //# for r 0 8
  var s$(r) = vec4<f32>(0.0);
  //# end
  for (var k = 0u; k < 512u; k += 8u) {
    let v = x[k + l]; let vl = lo(v); let vh = hi(v);
    //# for r 0 8
    let a$(r) = A[(r0 + $(r)u) * 512u + k + l];
    s$(r) = s$(r) + lo(a$(r)) * vl + hi(a$(r)) * vh;
    //# end
  }
  var sum = 0.0;
  //# for r 0 8
  let t$(r) = redsum(s$(r).x + s$(r).y + s$(r).z + s$(r).w);
  sum = select(sum, t$(r), l == $(r)u);
  //# end
  y[r0 + l] = sum;
}
