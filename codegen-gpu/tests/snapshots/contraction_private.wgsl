@group(0) @binding(0) 
var<storage> arg0_: array<vec4<f32>>;
@group(0) @binding(1) 
var<storage> arg1_: array<vec4<f32>>;
@group(0) @binding(2) 
var<storage, read_write> arg2_: array<vec4<f32>>;
@group(0) @binding(3) 
var<storage> arg3_: array<vec4<f32>>;

@compute @workgroup_size(4, 4, 1) 
fn kernel(@builtin(workgroup_id) workgroup_: vec3<u32>, @builtin(local_invocation_id) invocation: vec3<u32>) {
    let _e5 = vec4(0f);
    let _e23 = i32(workgroup_.y);
    let _e24 = (i32(workgroup_.x) * 16i);
    let _e27 = ((_e23 * 128i) + _e24);
    let _e34 = (i32(invocation.x) + (i32(invocation.y) * 4i));
    let _e42 = bitcast<i32>((bitcast<u32>(_e34) / bitcast<u32>(4i)));
    let _e44 = (bitcast<i32>((bitcast<u32>(_e34) % bitcast<u32>(4i))) * 4i);
    let _e47 = ((_e23 * 64i) + (_e42 * 16i));
    let _e48 = (_e24 + _e44);
    let _e52 = arg0_[(_e47 >> 2u)];
    let _e59 = arg0_[((_e47 >> 2u) + 1i)];
    let _e66 = arg0_[((_e47 >> 2u) + 2i)];
    let _e73 = arg0_[((_e47 >> 2u) + 3i)];
    let _e77 = arg1_[(_e48 >> 2u)];
    let _e84 = arg1_[((_e48 >> 2u) + 4i)];
    let _e91 = arg1_[((_e48 >> 2u) + 8i)];
    let _e98 = arg1_[((_e48 >> 2u) + 12i)];
    let _e105 = arg1_[((_e48 >> 2u) + 16i)];
    let _e112 = arg1_[((_e48 >> 2u) + 20i)];
    let _e119 = arg1_[((_e48 >> 2u) + 24i)];
    let _e126 = arg1_[((_e48 >> 2u) + 28i)];
    let _e194 = arg3_[(_e48 >> 2u)];
    let _e195 = ((((((((((vec4(_e52.x) * _e77) + _e5) + (vec4(_e52.y) * _e84)) + (vec4(_e52.z) * _e91)) + (vec4(_e52.w) * _e98)) + (vec4(_e59.x) * _e105)) + (vec4(_e59.y) * _e112)) + (vec4(_e59.z) * _e119)) + (vec4(_e59.w) * _e126)) + _e194);
    let _e205 = ((((((((((vec4(_e66.x) * _e77) + _e5) + (vec4(_e66.y) * _e84)) + (vec4(_e66.z) * _e91)) + (vec4(_e66.w) * _e98)) + (vec4(_e73.x) * _e105)) + (vec4(_e73.y) * _e112)) + (vec4(_e73.z) * _e119)) + (vec4(_e73.w) * _e126)) + _e194);
    arg2_[(((_e27 + (_e42 * 32i)) + _e44) >> 2u)] = select(max(_e195, _e5), _e195, ((bitcast<vec4<u32>>(_e195) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e27 + (((_e42 * 2i) + 1i) * 16i)) + _e44) >> 2u)] = select(max(_e205, _e5), _e205, ((bitcast<vec4<u32>>(_e205) & vec4(2147483647u)) > vec4(2139095040u)));
}
