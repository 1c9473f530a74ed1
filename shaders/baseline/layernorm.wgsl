// Layer normalisation of rows of 1024: a subgroup holds four rows, for which it loads scale and shift once.
@group(0) @binding(0) var<storage, read> x: array<vec4<u64>>;
@group(0) @binding(1) var<storage, read> g: array<vec4<u64>>;
@group(0) @binding(2) var<storage, read> d: array<vec4<u64>>;
@group(0) @binding(3) var<storage, read_write> z: array<vec4<u64>>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let l = t % 8u;
  let at = (w.x * 8u + t / 8u) * 512u + l;
  //# for r 0 4
  var s$(r) = vec4<f32>(0.0);
  //# for i 0 16
  let v$(r)_$(i) = x[at + $(r*128)u + $(i*8)u]; let a$(r)_$(i) = lo(v$(r)_$(i)); let b$(r)_$(i) = hi(v$(r)_$(i));
  s$(r) += a$(r)_$(i) + b$(r)_$(i);
  //# end
  let mean$(r) = vec4<f32>(redsum(s$(r).x + s$(r).y + s$(r).z + s$(r).w) / 1024.0);
  var u$(r) = vec4<f32>(0.0);
  //# for i 0 16
  let c$(r)_$(i) = a$(r)_$(i) - mean$(r); let e$(r)_$(i) = b$(r)_$(i) - mean$(r);
  u$(r) += c$(r)_$(i) * c$(r)_$(i) + e$(r)_$(i) * e$(r)_$(i);
  //# end
  let k$(r) = inverseSqrt(redsum(u$(r).x + u$(r).y + u$(r).z + u$(r).w) / 1024.0 + 1.0e-5);
  //# end
  //# for i 0 16
  let g$(i) = g[$(i*8)u + l]; let p$(i) = lo(g$(i)); let q$(i) = hi(g$(i));
  let d$(i) = d[$(i*8)u + l]; let m$(i) = lo(d$(i)); let n$(i) = hi(d$(i));
  //# for r 0 4
  z[at + $(r*128)u + $(i*8)u] = pk(c$(r)_$(i) * k$(r) * p$(i) + m$(i), e$(r)_$(i) * k$(r) * q$(i) + n$(i));
  //# end
  //# end
}
