// Softmax of rows of 1024: a subgroup holds a row.
@group(0) @binding(0) var<storage, read> x: array<vec4<u64>>;
@group(0) @binding(1) var<storage, read_write> z: array<vec4<u64>>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let l = t % 8u;
  let at = (w.x * 8u + t / 8u) * 128u + l;
  //# for i 0 16
  let v$(i) = x[at + $(i*8)u]; let a$(i) = lo(v$(i)); let b$(i) = hi(v$(i));
  //# end
  var m = max(a0, b0);
  //# for i 1 16
  m = max(m, max(a$(i), b$(i)));
  //# end
  let most = vec4<f32>(redmax(max(max(m.x, m.y), max(m.z, m.w))));
  var s = vec4<f32>(0.0);
  //# for i 0 16
  let e$(i) = exp(a$(i) - most); let f$(i) = exp(b$(i) - most);
  s += e$(i) + f$(i);
  //# end
  let q = 1.0 / redsum(s.x + s.y + s.z + s.w);
  //# for i 0 16
  z[at + $(i*8)u] = pk(e$(i) * q, f$(i) * q);
  //# end
}
