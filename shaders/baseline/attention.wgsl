// softmax(Q K^T / 8) V of 12 heads, 512 keys of 64: a subgroup has 32 queries and takes 16 keys at a time, with a running maximum.
@group(0) @binding(0) var<storage, read> Q: array<vec4<u64>>;
@group(0) @binding(1) var<storage, read> K: array<vec4<u64>>;
@group(0) @binding(2) var<storage, read> V: array<vec4<u64>>;
@group(0) @binding(3) var<storage, read_write> O: array<vec4<u64>>;
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  let head = w.y * 512u;
  let m0 = head + w.x * 32u;
  //# for m 0 32
  let r$(m) = Q[(m0 + $(m)u) * 8u + l]; let q$(m)_0 = lo(r$(m)) * 0.125; let q$(m)_1 = hi(r$(m)) * 0.125;
  var x$(m) = -3.0e38; var d$(m) = 0.0; var ol$(m) = vec4<f32>(0.0); var oh$(m) = vec4<f32>(0.0);
  //# end
  for (var n = 0u; n < 512u; n += 16u) {
    let n0 = head + n;
    //# for m 0 32
    var s$(m)_0 = 0.0; var s$(m)_1 = 0.0;
    //# end
    for (var j = 0u; j < 8u; j++) {
      let k0 = K[(n0 + l) * 8u + j]; let k0_0 = lo(k0); let k0_1 = hi(k0);
      let k1 = K[(n0 + 8u + l) * 8u + j]; let k1_0 = lo(k1); let k1_1 = hi(k1);
      //# for m 0 32
      let tl$(m) = subgroupShuffle(q$(m)_0, j); let th$(m) = subgroupShuffle(q$(m)_1, j);
      s$(m)_0 = s$(m)_0 + tl$(m).x * k0_0.x + th$(m).x * k0_1.x + tl$(m).y * k0_0.y + th$(m).y * k0_1.y + tl$(m).z * k0_0.z + th$(m).z * k0_1.z + tl$(m).w * k0_0.w + th$(m).w * k0_1.w;
      s$(m)_1 = s$(m)_1 + tl$(m).x * k1_0.x + th$(m).x * k1_1.x + tl$(m).y * k1_0.y + th$(m).y * k1_1.y + tl$(m).z * k1_0.z + th$(m).z * k1_1.z + tl$(m).w * k1_0.w + th$(m).w * k1_1.w;
      //# end
    }
    //# for m 0 32
    let nm$(m) = max(x$(m), redmax(max(s$(m)_0, s$(m)_1)));
    let f$(m) = exp(x$(m) - nm$(m));
    x$(m) = nm$(m);
    s$(m)_0 = exp(s$(m)_0 - nm$(m)); s$(m)_1 = exp(s$(m)_1 - nm$(m));
    d$(m) = d$(m) * f$(m) + s$(m)_0 + s$(m)_1;
    ol$(m) *= f$(m); oh$(m) *= f$(m);
    //# end
    for (var j = 0u; j < 8u; j++) {
      let v0 = V[(n0 + j) * 8u + l]; let v0l = lo(v0); let v0h = hi(v0);
      let v1 = V[(n0 + 8u + j) * 8u + l]; let v1l = lo(v1); let v1h = hi(v1);
      //# for m 0 32
      let p$(m)_0 = subgroupShuffle(s$(m)_0, j); let p$(m)_1 = subgroupShuffle(s$(m)_1, j);
      ol$(m) = ol$(m) + p$(m)_0 * v0l + p$(m)_1 * v1l;
      oh$(m) = oh$(m) + p$(m)_0 * v0h + p$(m)_1 * v1h;
      //# end
    }
  }
  //# for m 0 32
  let i$(m) = 1.0 / redsum(d$(m));
  O[(m0 + $(m)u) * 8u + l] = pk(ol$(m) * i$(m), oh$(m) * i$(m));
  //# end
}
