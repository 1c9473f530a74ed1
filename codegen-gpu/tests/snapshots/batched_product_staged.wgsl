@group(0) @binding(0) 
var<storage> arg0_: array<vec4<f32>>;
@group(0) @binding(1) 
var<storage> arg1_: array<vec4<f32>>;
@group(0) @binding(2) 
var<storage, read_write> arg2_: array<vec4<f32>>;
@group(0) @binding(3) 
var<storage> arg3_: array<vec4<f32>>;
var<workgroup> shared_: array<vec4<f32>, 24>;
var<workgroup> shared_1: array<vec4<f32>, 40>;

@compute @workgroup_size(4, 4, 1) 
fn kernel(@builtin(workgroup_id) workgroup_: vec3<u32>, @builtin(local_invocation_id) invocation: vec3<u32>) {
    var local: i32;
    var local_1: vec4<f32>;
    var local_2: vec4<f32>;
    var local_3: vec4<f32>;
    var local_4: vec4<f32>;
    var local_5: vec4<f32>;

    let _e9 = vec4(0f);
    let _e28 = i32(workgroup_.x);
    let _e30 = i32(workgroup_.y);
    let _e32 = i32(workgroup_.z);
    let _e33 = (_e28 * 16i);
    let _e39 = ((_e32 * 512i) + (_e28 * 512i));
    let _e43 = (((_e32 * 128i) + (_e30 * 128i)) + _e33);
    let _e50 = (i32(invocation.x) + (i32(invocation.y) * 4i));
    let _e58 = bitcast<i32>((bitcast<u32>(_e50) / bitcast<u32>(4i)));
    let _e62 = (bitcast<i32>((bitcast<u32>(_e50) % bitcast<u32>(4i))) * 4i);
    let _e64 = (_e58 * 24i);
    let _e68 = bitcast<i32>((bitcast<u32>(_e50) / bitcast<u32>(2i)));
    let _e72 = bitcast<i32>((bitcast<u32>(_e50) % bitcast<u32>(2i)));
    let _e73 = (_e72 * 4i);
    let _e74 = (_e68 * 32i);
    let _e80 = (_e68 + (_e72 * 80i));
    let _e81 = (_e50 + 16i);
    let _e85 = bitcast<i32>((bitcast<u32>(_e81) / bitcast<u32>(2i)));
    let _e89 = bitcast<i32>((bitcast<u32>(_e81) % bitcast<u32>(2i)));
    let _e94 = (_e85 + (_e89 * 80i));
    let _e95 = ((((_e32 * 256i) + (_e30 * 256i)) + _e74) + _e73);
    let _e99 = arg0_[(_e95 >> 2u)];
    let _e100 = ((_e39 + _e74) + _e73);
    let _e104 = arg1_[(_e100 >> 2u)];
    let _e105 = ((_e39 + (_e85 * 32i)) + (_e89 * 4i));
    let _e109 = arg1_[(_e105 >> 2u)];
    local = 0i;
    local_1 = _e9;
    local_2 = _e9;
    local_3 = _e99;
    local_4 = _e104;
    local_5 = _e109;
    loop {
        let _e132 = local;
        if (_e132 < 4i) {
        } else {
            break;
        }
        let _e134 = local_1;
        let _e135 = local_2;
        let _e136 = local_3;
        let _e137 = local_4;
        let _e138 = local_5;
        workgroupBarrier();
        shared_[(((_e68 * 12i) + _e73) >> 2u)] = _e136;
        shared_1[(_e80 >> 2u)][(_e80 & 3i)] = _e137.x;
        shared_1[((_e80 >> 2u) + 5i)][((_e80 + 20i) & 3i)] = _e137.y;
        shared_1[((_e80 >> 2u) + 10i)][((_e80 + 40i) & 3i)] = _e137.z;
        shared_1[((_e80 >> 2u) + 15i)][((_e80 + 60i) & 3i)] = _e137.w;
        shared_1[(_e94 >> 2u)][(_e94 & 3i)] = _e138.x;
        shared_1[((_e94 >> 2u) + 5i)][((_e94 + 20i) & 3i)] = _e138.y;
        shared_1[((_e94 >> 2u) + 10i)][((_e94 + 40i) & 3i)] = _e138.z;
        shared_1[((_e94 >> 2u) + 15i)][((_e94 + 60i) & 3i)] = _e138.w;
        workgroupBarrier();
        let _e212 = (min((_e132 + 1i), 3i) * 8i);
        let _e217 = arg0_[((_e95 + _e212) >> 2u)];
        let _e222 = arg1_[((_e100 + _e212) >> 2u)];
        let _e227 = arg1_[((_e105 + _e212) >> 2u)];
        let _e231 = shared_[(_e64 >> 2u)];
        let _e237 = shared_[((_e64 >> 2u) + 3i)];
        let _e241 = shared_1[(_e62 >> 2u)];
        let _e247 = shared_1[((_e62 >> 2u) + 5i)];
        let _e253 = shared_1[((_e62 >> 2u) + 10i)];
        let _e259 = shared_1[((_e62 >> 2u) + 15i)];
        let _e297 = shared_[((_e64 >> 2u) + 1i)];
        let _e303 = shared_[((_e64 >> 2u) + 4i)];
        let _e309 = shared_1[((_e62 >> 2u) + 20i)];
        let _e315 = shared_1[((_e62 >> 2u) + 25i)];
        let _e321 = shared_1[((_e62 >> 2u) + 30i)];
        let _e327 = shared_1[((_e62 >> 2u) + 35i)];
        local_1 = ((((((((_e134 + (vec4(_e231.x) * _e241)) + (vec4(_e231.y) * _e247)) + (vec4(_e231.z) * _e253)) + (vec4(_e231.w) * _e259)) + (vec4(_e297.x) * _e309)) + (vec4(_e297.y) * _e315)) + (vec4(_e297.z) * _e321)) + (vec4(_e297.w) * _e327));
        local_2 = ((((((((_e135 + (vec4(_e237.x) * _e241)) + (vec4(_e237.y) * _e247)) + (vec4(_e237.z) * _e253)) + (vec4(_e237.w) * _e259)) + (vec4(_e303.x) * _e309)) + (vec4(_e303.y) * _e315)) + (vec4(_e303.z) * _e321)) + (vec4(_e303.w) * _e327));
        local_3 = _e217;
        local_4 = _e222;
        local_5 = _e227;
        continuing {
            let _e360 = local;
            local = (_e360 + 1i);
        }
    }
    let _e362 = local_1;
    let _e363 = local_2;
    let _e371 = arg3_[((_e33 + _e62) >> 2u)];
    let _e372 = (_e362 + _e371);
    let _e382 = (_e363 + _e371);
    arg2_[(((_e43 + (_e58 * 32i)) + _e62) >> 2u)] = select(max(_e372, _e9), _e372, ((bitcast<vec4<u32>>(_e372) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e43 + (((_e58 * 2i) + 1i) * 16i)) + _e62) >> 2u)] = select(max(_e382, _e9), _e382, ((bitcast<vec4<u32>>(_e382) & vec4(2147483647u)) > vec4(2139095040u)));
}
