// Eight elementwise ops on two vectors: one subgroup walks 64 KiB of each, in order.
@group(0) @binding(0) var<storage, read> x: array<vec4<u64>>;
@group(0) @binding(1) var<storage, read> y: array<vec4<u64>>;
@group(0) @binding(2) var<storage, read_write> z: array<vec4<u64>>;
fn f(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  return sqrt(abs((max((a + b) * a, vec4<f32>(0.0)) - b) * 0.5)) + 1.0;
}
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  for (var i = 0u; i < 256u; i++) {
    let q = w.x * 2048u + i * 8u + l;
    let a = x[q];
    let b = y[q];
    z[q] = pk(f(lo(a), lo(b)), f(hi(a), hi(b)));
  }
}
