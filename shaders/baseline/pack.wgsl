// Eight f32 as one vec4<u64>, which llvmpipe loads and stores at the price of one element: the elements 0, 2, 4, 6, then 1, 3, 5, 7.
fn lo(v: vec4<u64>) -> vec4<f32> { return bitcast<vec4<f32>>(vec4<u32>(v)); }
fn hi(v: vec4<u64>) -> vec4<f32> { return bitcast<vec4<f32>>(vec4<u32>(v >> vec4<u32>(32u))); }
fn pk(a: vec4<f32>, b: vec4<f32>) -> vec4<u64> {
  return vec4<u64>(bitcast<vec4<u32>>(a)) | (vec4<u64>(bitcast<vec4<u32>>(b)) << vec4<u32>(32u));
}
// Over the eight lanes of a subgroup.
fn redsum(v: f32) -> f32 {
  let a = v + subgroupShuffleXor(v, 1u);
  let b = a + subgroupShuffleXor(a, 2u);
  return b + subgroupShuffleXor(b, 4u);
}
fn redmax(v: f32) -> f32 {
  let a = max(v, subgroupShuffleXor(v, 1u));
  let b = max(a, subgroupShuffleXor(a, 2u));
  return max(b, subgroupShuffleXor(b, 4u));
}
