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
    let _e57 = arg0_[((_e47 + 4i) >> 2u)];
    let _e62 = arg0_[((_e47 + 8i) >> 2u)];
    let _e67 = arg0_[((_e47 + 12i) >> 2u)];
    let _e71 = arg1_[(_e48 >> 2u)];
    let _e76 = arg1_[((_e48 + 16i) >> 2u)];
    let _e81 = arg1_[((_e48 + 32i) >> 2u)];
    let _e86 = arg1_[((_e48 + 48i) >> 2u)];
    let _e91 = arg1_[((_e48 + 64i) >> 2u)];
    let _e96 = arg1_[((_e48 + 80i) >> 2u)];
    let _e101 = arg1_[((_e48 + 96i) >> 2u)];
    let _e106 = arg1_[((_e48 + 112i) >> 2u)];
    let _e174 = arg3_[(_e48 >> 2u)];
    let _e175 = ((((((((((vec4(_e52.x) * _e71) + _e5) + (vec4(_e52.y) * _e76)) + (vec4(_e52.z) * _e81)) + (vec4(_e52.w) * _e86)) + (vec4(_e57.x) * _e91)) + (vec4(_e57.y) * _e96)) + (vec4(_e57.z) * _e101)) + (vec4(_e57.w) * _e106)) + _e174);
    let _e185 = ((((((((((vec4(_e62.x) * _e71) + _e5) + (vec4(_e62.y) * _e76)) + (vec4(_e62.z) * _e81)) + (vec4(_e62.w) * _e86)) + (vec4(_e67.x) * _e91)) + (vec4(_e67.y) * _e96)) + (vec4(_e67.z) * _e101)) + (vec4(_e67.w) * _e106)) + _e174);
    arg2_[(((_e27 + (_e42 * 32i)) + _e44) >> 2u)] = select(max(_e175, _e5), _e175, ((bitcast<vec4<u32>>(_e175) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e27 + (((_e42 * 2i) + 1i) * 16i)) + _e44) >> 2u)] = select(max(_e185, _e5), _e185, ((bitcast<vec4<u32>>(_e185) & vec4(2147483647u)) > vec4(2139095040u)));
}
