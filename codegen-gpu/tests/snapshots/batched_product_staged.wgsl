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

    let _e8 = vec4(0f);
    let _e27 = i32(workgroup_.x);
    let _e29 = i32(workgroup_.y);
    let _e31 = i32(workgroup_.z);
    let _e32 = (_e27 * 16i);
    let _e38 = ((_e31 * 512i) + (_e27 * 512i));
    let _e42 = (((_e31 * 128i) + (_e29 * 128i)) + _e32);
    let _e49 = (i32(invocation.x) + (i32(invocation.y) * 4i));
    let _e57 = bitcast<i32>((bitcast<u32>(_e49) / bitcast<u32>(4i)));
    let _e61 = (bitcast<i32>((bitcast<u32>(_e49) % bitcast<u32>(4i))) * 4i);
    let _e63 = (_e57 * 24i);
    let _e67 = bitcast<i32>((bitcast<u32>(_e49) / bitcast<u32>(2i)));
    let _e71 = bitcast<i32>((bitcast<u32>(_e49) % bitcast<u32>(2i)));
    let _e72 = (_e71 * 4i);
    let _e73 = (_e67 * 32i);
    let _e74 = (((_e31 * 256i) + (_e29 * 256i)) + _e73);
    let _e77 = (_e38 + _e73);
    let _e79 = (_e67 + (_e71 * 80i));
    let _e80 = (_e49 + 16i);
    let _e84 = bitcast<i32>((bitcast<u32>(_e80) / bitcast<u32>(2i)));
    let _e88 = bitcast<i32>((bitcast<u32>(_e80) % bitcast<u32>(2i)));
    let _e89 = (_e88 * 4i);
    let _e91 = (_e38 + (_e84 * 32i));
    let _e93 = (_e84 + (_e88 * 80i));
    let _e98 = arg0_[((_e74 + _e72) >> 2u)];
    let _e103 = arg1_[((_e77 + _e72) >> 2u)];
    let _e108 = arg1_[((_e91 + _e89) >> 2u)];
    local = 0i;
    local_1 = _e8;
    local_2 = _e8;
    local_3 = _e98;
    local_4 = _e103;
    local_5 = _e108;
    loop {
        let _e131 = local;
        if (_e131 < 32i) {
        } else {
            break;
        }
        let _e133 = local_1;
        let _e134 = local_2;
        let _e135 = local_3;
        let _e136 = local_4;
        let _e137 = local_5;
        workgroupBarrier();
        shared_[(((_e67 * 12i) + _e72) >> 2u)] = _e135;
        shared_1[(_e79 >> 2u)][(_e79 & 3i)] = _e136.x;
        shared_1[((_e79 >> 2u) + 5i)][((_e79 + 20i) & 3i)] = _e136.y;
        shared_1[((_e79 >> 2u) + 10i)][((_e79 + 40i) & 3i)] = _e136.z;
        shared_1[((_e79 >> 2u) + 15i)][((_e79 + 60i) & 3i)] = _e136.w;
        shared_1[(_e93 >> 2u)][(_e93 & 3i)] = _e137.x;
        shared_1[((_e93 >> 2u) + 5i)][((_e93 + 20i) & 3i)] = _e137.y;
        shared_1[((_e93 >> 2u) + 10i)][((_e93 + 40i) & 3i)] = _e137.z;
        shared_1[((_e93 >> 2u) + 15i)][((_e93 + 60i) & 3i)] = _e137.w;
        workgroupBarrier();
        let _e210 = min((_e131 + 8i), 24i);
        let _e211 = (_e210 + _e72);
        let _e216 = arg0_[((_e74 + _e211) >> 2u)];
        let _e221 = arg1_[((_e77 + _e211) >> 2u)];
        let _e227 = arg1_[((_e91 + (_e210 + _e89)) >> 2u)];
        let _e231 = shared_[(_e63 >> 2u)];
        let _e237 = shared_[((_e63 >> 2u) + 3i)];
        let _e241 = shared_1[(_e61 >> 2u)];
        let _e247 = shared_1[((_e61 >> 2u) + 5i)];
        let _e253 = shared_1[((_e61 >> 2u) + 10i)];
        let _e259 = shared_1[((_e61 >> 2u) + 15i)];
        let _e297 = shared_[((_e63 >> 2u) + 1i)];
        let _e303 = shared_[((_e63 >> 2u) + 4i)];
        let _e309 = shared_1[((_e61 >> 2u) + 20i)];
        let _e315 = shared_1[((_e61 >> 2u) + 25i)];
        let _e321 = shared_1[((_e61 >> 2u) + 30i)];
        let _e327 = shared_1[((_e61 >> 2u) + 35i)];
        local_1 = ((((((((_e133 + (vec4(_e231.x) * _e241)) + (vec4(_e231.y) * _e247)) + (vec4(_e231.z) * _e253)) + (vec4(_e231.w) * _e259)) + (vec4(_e297.x) * _e309)) + (vec4(_e297.y) * _e315)) + (vec4(_e297.z) * _e321)) + (vec4(_e297.w) * _e327));
        local_2 = ((((((((_e134 + (vec4(_e237.x) * _e241)) + (vec4(_e237.y) * _e247)) + (vec4(_e237.z) * _e253)) + (vec4(_e237.w) * _e259)) + (vec4(_e303.x) * _e309)) + (vec4(_e303.y) * _e315)) + (vec4(_e303.z) * _e321)) + (vec4(_e303.w) * _e327));
        local_3 = _e216;
        local_4 = _e221;
        local_5 = _e227;
        continuing {
            let _e360 = local;
            local = (_e360 + 8i);
        }
    }
    let _e362 = local_1;
    let _e363 = local_2;
    let _e371 = arg3_[((_e32 + _e61) >> 2u)];
    let _e372 = (_e362 + _e371);
    let _e382 = (_e363 + _e371);
    arg2_[(((_e42 + (_e57 * 32i)) + _e61) >> 2u)] = select(max(_e372, _e8), _e372, ((bitcast<vec4<u32>>(_e372) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e42 + (((_e57 * 2i) + 1i) * 16i)) + _e61) >> 2u)] = select(max(_e382, _e8), _e382, ((bitcast<vec4<u32>>(_e382) & vec4(2147483647u)) > vec4(2139095040u)));
}
