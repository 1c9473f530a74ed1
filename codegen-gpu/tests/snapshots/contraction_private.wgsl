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
    let _e10 = vec4(0f);
    let _e22 = i32(workgroup_.y);
    let _e23 = (i32(workgroup_.x) * 16i);
    let _e24 = (_e22 * 64i);
    let _e26 = ((_e22 * 128i) + _e23);
    let _e33 = (i32(invocation.x) + (i32(invocation.y) * 4i));
    let _e41 = bitcast<i32>((bitcast<u32>(_e33) / bitcast<u32>(4i)));
    let _e43 = ((_e41 * 2i) + 1i);
    let _e44 = (bitcast<i32>((bitcast<u32>(_e33) % bitcast<u32>(4i))) * 4i);
    let _e46 = (_e24 + (_e41 * 16i));
    let _e48 = (_e24 + (_e43 * 8i));
    let _e49 = (_e23 + _e44);
    let _e53 = arg0_[(_e46 >> 2u)];
    let _e58 = arg0_[((_e46 + 4i) >> 2u)];
    let _e62 = arg0_[(_e48 >> 2u)];
    let _e67 = arg0_[((_e48 + 4i) >> 2u)];
    let _e71 = arg1_[(_e49 >> 2u)];
    let _e76 = arg1_[((_e49 + 16i) >> 2u)];
    let _e81 = arg1_[((_e49 + 32i) >> 2u)];
    let _e86 = arg1_[((_e49 + 48i) >> 2u)];
    let _e91 = arg1_[((_e49 + 64i) >> 2u)];
    let _e96 = arg1_[((_e49 + 80i) >> 2u)];
    let _e101 = arg1_[((_e49 + 96i) >> 2u)];
    let _e106 = arg1_[((_e49 + 112i) >> 2u)];
    let _e174 = arg3_[(_e49 >> 2u)];
    let _e175 = ((((((((((vec4(_e53.x) * _e71) + _e10) + (vec4(_e53.y) * _e76)) + (vec4(_e53.z) * _e81)) + (vec4(_e53.w) * _e86)) + (vec4(_e58.x) * _e91)) + (vec4(_e58.y) * _e96)) + (vec4(_e58.z) * _e101)) + (vec4(_e58.w) * _e106)) + _e174);
    let _e185 = ((((((((((vec4(_e62.x) * _e71) + _e10) + (vec4(_e62.y) * _e76)) + (vec4(_e62.z) * _e81)) + (vec4(_e62.w) * _e86)) + (vec4(_e67.x) * _e91)) + (vec4(_e67.y) * _e96)) + (vec4(_e67.z) * _e101)) + (vec4(_e67.w) * _e106)) + _e174);
    arg2_[(((_e26 + (_e41 * 32i)) + _e44) >> 2u)] = select(max(_e175, _e10), _e175, ((bitcast<vec4<u32>>(_e175) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e26 + (_e43 * 16i)) + _e44) >> 2u)] = select(max(_e185, _e10), _e185, ((bitcast<vec4<u32>>(_e185) & vec4(2147483647u)) > vec4(2139095040u)));
}
