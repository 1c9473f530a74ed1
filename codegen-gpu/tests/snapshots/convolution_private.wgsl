@group(0) @binding(0) 
var<storage> arg0_: array<vec4<f32>>;
@group(0) @binding(1) 
var<storage> arg1_: array<vec4<f32>>;
@group(0) @binding(2) 
var<storage, read_write> arg2_: array<vec4<f32>>;
@group(0) @binding(3) 
var<storage> arg3_: array<vec4<f32>>;

@compute @workgroup_size(16, 2, 1) 
fn kernel(@builtin(workgroup_id) workgroup_: vec3<u32>, @builtin(local_invocation_id) invocation: vec3<u32>) {
    var local: i32;
    var local_1: vec4<f32>;
    var local_2: vec4<f32>;
    var local_3: i32;
    var local_4: vec4<f32>;
    var local_5: vec4<f32>;

    let _e5 = vec4(0f);
    let _e29 = i32(workgroup_.y);
    let _e31 = i32(workgroup_.z);
    let _e32 = (i32(workgroup_.x) * 64i);
    let _e39 = (((_e31 * 256i) + (_e29 * 256i)) + _e32);
    let _e46 = (i32(invocation.x) + (i32(invocation.y) * 16i));
    let _e54 = bitcast<i32>((bitcast<u32>(_e46) / bitcast<u32>(16i)));
    let _e56 = (bitcast<i32>((bitcast<u32>(_e46) % bitcast<u32>(16i))) * 4i);
    let _e60 = (_e32 + _e56);
    local = 0i;
    local_1 = _e5;
    local_2 = _e5;
    loop {
        let _e64 = local;
        if (_e64 < 3i) {
        } else {
            break;
        }
        let _e66 = local_1;
        let _e67 = local_2;
        local_3 = 0i;
        local_4 = _e66;
        local_5 = _e67;
        loop {
            let _e73 = local_3;
            if (_e73 < 24i) {
            } else {
                break;
            }
            let _e75 = local_4;
            let _e76 = local_5;
            let _e78 = ((((_e31 * 48i) + (_e29 * 32i)) + (_e54 * 16i)) + ((_e64 * 48i) + _e73));
            let _e82 = arg0_[(_e78 >> 2u)];
            let _e87 = arg0_[((_e78 + 4i) >> 2u)];
            let _e92 = arg0_[((_e78 + 8i) >> 2u)];
            let _e97 = arg0_[((_e78 + 12i) >> 2u)];
            let _e100 = (_e60 + ((_e64 * 1536i) + (_e73 * 64i)));
            let _e104 = arg1_[(_e100 >> 2u)];
            let _e109 = arg1_[((_e100 + 64i) >> 2u)];
            let _e114 = arg1_[((_e100 + 128i) >> 2u)];
            let _e119 = arg1_[((_e100 + 192i) >> 2u)];
            let _e124 = arg1_[((_e100 + 256i) >> 2u)];
            let _e129 = arg1_[((_e100 + 320i) >> 2u)];
            let _e134 = arg1_[((_e100 + 384i) >> 2u)];
            let _e139 = arg1_[((_e100 + 448i) >> 2u)];
            local_4 = ((((((((_e75 + (vec4(_e82.x) * _e104)) + (vec4(_e82.y) * _e109)) + (vec4(_e82.z) * _e114)) + (vec4(_e82.w) * _e119)) + (vec4(_e87.x) * _e124)) + (vec4(_e87.y) * _e129)) + (vec4(_e87.z) * _e134)) + (vec4(_e87.w) * _e139));
            local_5 = ((((((((_e76 + (vec4(_e92.x) * _e104)) + (vec4(_e92.y) * _e109)) + (vec4(_e92.z) * _e114)) + (vec4(_e92.w) * _e119)) + (vec4(_e97.x) * _e124)) + (vec4(_e97.y) * _e129)) + (vec4(_e97.z) * _e134)) + (vec4(_e97.w) * _e139));
            continuing {
                let _e204 = local_3;
                local_3 = (_e204 + 8i);
            }
        }
        let _e206 = local_4;
        let _e207 = local_5;
        local_1 = _e206;
        local_2 = _e207;
        continuing {
            let _e208 = local;
            local = (_e208 + 1i);
        }
    }
    let _e210 = local_1;
    let _e211 = local_2;
    let _e215 = arg3_[(_e60 >> 2u)];
    let _e216 = (_e210 + _e215);
    let _e226 = (_e211 + _e215);
    arg2_[(((_e39 + (_e54 * 128i)) + _e56) >> 2u)] = select(max(_e216, _e5), _e216, ((bitcast<vec4<u32>>(_e216) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e39 + (((_e54 * 2i) + 1i) * 64i)) + _e56) >> 2u)] = select(max(_e226, _e5), _e226, ((bitcast<vec4<u32>>(_e226) & vec4(2147483647u)) > vec4(2139095040u)));
}
