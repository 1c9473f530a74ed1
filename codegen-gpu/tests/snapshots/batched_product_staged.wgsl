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
    let _e109 = (_e79 + 20i);
    let _e110 = (_e79 + 40i);
    let _e111 = (_e79 + 60i);
    let _e112 = (_e93 + 20i);
    let _e113 = (_e93 + 40i);
    let _e114 = (_e93 + 60i);
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
        shared_1[(_e109 >> 2u)][(_e109 & 3i)] = _e136.y;
        shared_1[(_e110 >> 2u)][(_e110 & 3i)] = _e136.z;
        shared_1[(_e111 >> 2u)][(_e111 & 3i)] = _e136.w;
        shared_1[(_e93 >> 2u)][(_e93 & 3i)] = _e137.x;
        shared_1[(_e112 >> 2u)][(_e112 & 3i)] = _e137.y;
        shared_1[(_e113 >> 2u)][(_e113 & 3i)] = _e137.z;
        shared_1[(_e114 >> 2u)][(_e114 & 3i)] = _e137.w;
        workgroupBarrier();
        let _e198 = min((_e131 + 8i), 24i);
        let _e199 = (_e198 + _e72);
        let _e204 = arg0_[((_e74 + _e199) >> 2u)];
        let _e209 = arg1_[((_e77 + _e199) >> 2u)];
        let _e215 = arg1_[((_e91 + (_e198 + _e89)) >> 2u)];
        let _e219 = shared_[(_e63 >> 2u)];
        let _e223 = shared_[((_e63 + 12i) >> 2u)];
        let _e227 = shared_1[(_e61 >> 2u)];
        let _e231 = shared_1[((_e61 + 20i) >> 2u)];
        let _e235 = shared_1[((_e61 + 40i) >> 2u)];
        let _e239 = shared_1[((_e61 + 60i) >> 2u)];
        let _e275 = shared_[((_e63 + 4i) >> 2u)];
        let _e279 = shared_[((_e63 + 16i) >> 2u)];
        let _e283 = shared_1[((_e61 + 80i) >> 2u)];
        let _e287 = shared_1[((_e61 + 100i) >> 2u)];
        let _e291 = shared_1[((_e61 + 120i) >> 2u)];
        let _e295 = shared_1[((_e61 + 140i) >> 2u)];
        local_1 = ((((((((_e133 + (vec4(_e219.x) * _e227)) + (vec4(_e219.y) * _e231)) + (vec4(_e219.z) * _e235)) + (vec4(_e219.w) * _e239)) + (vec4(_e275.x) * _e283)) + (vec4(_e275.y) * _e287)) + (vec4(_e275.z) * _e291)) + (vec4(_e275.w) * _e295));
        local_2 = ((((((((_e134 + (vec4(_e223.x) * _e227)) + (vec4(_e223.y) * _e231)) + (vec4(_e223.z) * _e235)) + (vec4(_e223.w) * _e239)) + (vec4(_e279.x) * _e283)) + (vec4(_e279.y) * _e287)) + (vec4(_e279.z) * _e291)) + (vec4(_e279.w) * _e295));
        local_3 = _e204;
        local_4 = _e209;
        local_5 = _e215;
        continuing {
            let _e328 = local;
            local = (_e328 + 8i);
        }
    }
    let _e330 = local_1;
    let _e331 = local_2;
    let _e339 = arg3_[((_e32 + _e61) >> 2u)];
    let _e340 = (_e330 + _e339);
    let _e350 = (_e331 + _e339);
    arg2_[(((_e42 + (_e57 * 32i)) + _e61) >> 2u)] = select(max(_e340, _e8), _e340, ((bitcast<vec4<u32>>(_e340) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e42 + (((_e57 * 2i) + 1i) * 16i)) + _e61) >> 2u)] = select(max(_e350, _e8), _e350, ((bitcast<vec4<u32>>(_e350) & vec4(2147483647u)) > vec4(2139095040u)));
}
