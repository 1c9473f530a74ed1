// C = A B, square matrices of side N: a subgroup has 64 rows and 64 columns. A lane holds rows of A, and eight columns of B and C.
// No workgroup memory: elements of A pass by shuffles.
@group(0) @binding(0) var<storage, read> A: array<vec4<u64>>;
@group(0) @binding(1) var<storage, read> B: array<vec4<u64>>;
@group(0) @binding(2) var<storage, read_write> C: array<vec4<u64>>;
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  let m0 = w.y * 64u;
  let n0 = w.x * 64u;
  //# for m 0 64
  var c$(m)l = vec4<f32>(0.0); var c$(m)h = vec4<f32>(0.0);
  //# end
  for (var k = 0u; k < $(N)u; k += 8u) {
    //# for r 0 8
    let a$(r) = A[((m0 + $(r*8)u + l) * $(N)u + k) / 8u]; let a$(r)_0 = lo(a$(r)); let a$(r)_1 = hi(a$(r));
    let b$(r) = B[((k + $(r)u) * $(N)u + n0) / 8u + l]; let b$(r)l = lo(b$(r)); let b$(r)h = hi(b$(r));
    //# end
    //# for m 0 64
    //# for q 0 8
    let s$(m)_$(q) = subgroupShuffle(a$(m/8)_$(q%2)[$(q/2)], $(m%8)u);
    //# end
    c$(m)l = c$(m)l + s$(m)_0 * b0l + s$(m)_1 * b1l + s$(m)_2 * b2l + s$(m)_3 * b3l + s$(m)_4 * b4l + s$(m)_5 * b5l + s$(m)_6 * b6l + s$(m)_7 * b7l;
    c$(m)h = c$(m)h + s$(m)_0 * b0h + s$(m)_1 * b1h + s$(m)_2 * b2h + s$(m)_3 * b3h + s$(m)_4 * b4h + s$(m)_5 * b5h + s$(m)_6 * b6h + s$(m)_7 * b7h;
    //# end
  }
  //# for m 0 64
  C[((m0 + $(m)u) * $(N)u + n0) / 8u + l] = pk(c$(m)l, c$(m)h);
  //# end
}
