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
    let _e110 = (_e80 + 20i);
    let _e111 = (_e80 + 40i);
    let _e112 = (_e80 + 60i);
    let _e113 = (_e94 + 20i);
    let _e114 = (_e94 + 40i);
    let _e115 = (_e94 + 60i);
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
        shared_1[(_e110 >> 2u)][(_e110 & 3i)] = _e137.y;
        shared_1[(_e111 >> 2u)][(_e111 & 3i)] = _e137.z;
        shared_1[(_e112 >> 2u)][(_e112 & 3i)] = _e137.w;
        shared_1[(_e94 >> 2u)][(_e94 & 3i)] = _e138.x;
        shared_1[(_e113 >> 2u)][(_e113 & 3i)] = _e138.y;
        shared_1[(_e114 >> 2u)][(_e114 & 3i)] = _e138.z;
        shared_1[(_e115 >> 2u)][(_e115 & 3i)] = _e138.w;
        workgroupBarrier();
        let _e200 = (min((_e132 + 1i), 3i) * 8i);
        let _e205 = arg0_[((_e95 + _e200) >> 2u)];
        let _e210 = arg1_[((_e100 + _e200) >> 2u)];
        let _e215 = arg1_[((_e105 + _e200) >> 2u)];
        let _e219 = shared_[(_e64 >> 2u)];
        let _e223 = shared_[((_e64 + 12i) >> 2u)];
        let _e227 = shared_1[(_e62 >> 2u)];
        let _e231 = shared_1[((_e62 + 20i) >> 2u)];
        let _e235 = shared_1[((_e62 + 40i) >> 2u)];
        let _e239 = shared_1[((_e62 + 60i) >> 2u)];
        let _e275 = shared_[((_e64 + 4i) >> 2u)];
        let _e279 = shared_[((_e64 + 16i) >> 2u)];
        let _e283 = shared_1[((_e62 + 80i) >> 2u)];
        let _e287 = shared_1[((_e62 + 100i) >> 2u)];
        let _e291 = shared_1[((_e62 + 120i) >> 2u)];
        let _e295 = shared_1[((_e62 + 140i) >> 2u)];
        local_1 = ((((((((_e134 + (vec4(_e219.x) * _e227)) + (vec4(_e219.y) * _e231)) + (vec4(_e219.z) * _e235)) + (vec4(_e219.w) * _e239)) + (vec4(_e275.x) * _e283)) + (vec4(_e275.y) * _e287)) + (vec4(_e275.z) * _e291)) + (vec4(_e275.w) * _e295));
        local_2 = ((((((((_e135 + (vec4(_e223.x) * _e227)) + (vec4(_e223.y) * _e231)) + (vec4(_e223.z) * _e235)) + (vec4(_e223.w) * _e239)) + (vec4(_e279.x) * _e283)) + (vec4(_e279.y) * _e287)) + (vec4(_e279.z) * _e291)) + (vec4(_e279.w) * _e295));
        local_3 = _e205;
        local_4 = _e210;
        local_5 = _e215;
        continuing {
            let _e328 = local;
            local = (_e328 + 1i);
        }
    }
    let _e330 = local_1;
    let _e331 = local_2;
    let _e339 = arg3_[((_e33 + _e62) >> 2u)];
    let _e340 = (_e330 + _e339);
    let _e350 = (_e331 + _e339);
    arg2_[(((_e43 + (_e58 * 32i)) + _e62) >> 2u)] = select(max(_e340, _e9), _e340, ((bitcast<vec4<u32>>(_e340) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e43 + (((_e58 * 2i) + 1i) * 16i)) + _e62) >> 2u)] = select(max(_e350, _e9), _e350, ((bitcast<vec4<u32>>(_e350) & vec4(2147483647u)) > vec4(2139095040u)));
}
