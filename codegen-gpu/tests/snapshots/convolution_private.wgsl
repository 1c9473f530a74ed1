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
            let _e89 = arg0_[((_e78 >> 2u) + 1i)];
            let _e96 = arg0_[((_e78 >> 2u) + 2i)];
            let _e103 = arg0_[((_e78 >> 2u) + 3i)];
            let _e106 = (_e60 + ((_e64 * 1536i) + (_e73 * 64i)));
            let _e110 = arg1_[(_e106 >> 2u)];
            let _e117 = arg1_[((_e106 >> 2u) + 16i)];
            let _e124 = arg1_[((_e106 >> 2u) + 32i)];
            let _e131 = arg1_[((_e106 >> 2u) + 48i)];
            let _e138 = arg1_[((_e106 >> 2u) + 64i)];
            let _e145 = arg1_[((_e106 >> 2u) + 80i)];
            let _e152 = arg1_[((_e106 >> 2u) + 96i)];
            let _e159 = arg1_[((_e106 >> 2u) + 112i)];
            local_4 = ((((((((_e75 + (vec4(_e82.x) * _e110)) + (vec4(_e82.y) * _e117)) + (vec4(_e82.z) * _e124)) + (vec4(_e82.w) * _e131)) + (vec4(_e89.x) * _e138)) + (vec4(_e89.y) * _e145)) + (vec4(_e89.z) * _e152)) + (vec4(_e89.w) * _e159));
            local_5 = ((((((((_e76 + (vec4(_e96.x) * _e110)) + (vec4(_e96.y) * _e117)) + (vec4(_e96.z) * _e124)) + (vec4(_e96.w) * _e131)) + (vec4(_e103.x) * _e138)) + (vec4(_e103.y) * _e145)) + (vec4(_e103.z) * _e152)) + (vec4(_e103.w) * _e159));
            continuing {
                let _e224 = local_3;
                local_3 = (_e224 + 8i);
            }
        }
        let _e226 = local_4;
        let _e227 = local_5;
        local_1 = _e226;
        local_2 = _e227;
        continuing {
            let _e228 = local;
            local = (_e228 + 1i);
        }
    }
    let _e230 = local_1;
    let _e231 = local_2;
    let _e235 = arg3_[(_e60 >> 2u)];
    let _e236 = (_e230 + _e235);
    let _e246 = (_e231 + _e235);
    arg2_[(((_e39 + (_e54 * 128i)) + _e56) >> 2u)] = select(max(_e236, _e5), _e236, ((bitcast<vec4<u32>>(_e236) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e39 + (((_e54 * 2i) + 1i) * 64i)) + _e56) >> 2u)] = select(max(_e246, _e5), _e246, ((bitcast<vec4<u32>>(_e246) & vec4(2147483647u)) > vec4(2139095040u)));
}
