@group(0) @binding(0) 
var<storage> arg0_: array<vec4<f32>>;
@group(0) @binding(1) 
var<storage> arg1_: array<vec4<f32>>;
@group(0) @binding(2) 
var<storage, read_write> arg2_: array<vec4<f32>>;
@group(0) @binding(3) 
var<storage> arg3_: array<vec4<f32>>;
var<workgroup> shared_: array<vec4<f32>, 24>;
var<workgroup> shared_1: array<vec4<f32>, 48>;

@compute @workgroup_size(4, 4, 1) 
fn kernel(@builtin(workgroup_id) workgroup_: vec3<u32>, @builtin(local_invocation_id) invocation: vec3<u32>) {
    var local: i32;
    var local_1: vec4<f32>;
    var local_2: vec4<f32>;

    let _e6 = vec4(0f);
    let _e24 = i32(workgroup_.x);
    let _e26 = i32(workgroup_.y);
    let _e28 = i32(workgroup_.z);
    let _e29 = (_e24 * 16i);
    let _e35 = ((_e28 * 512i) + (_e24 * 512i));
    let _e39 = (((_e28 * 128i) + (_e26 * 128i)) + _e29);
    let _e46 = (i32(invocation.x) + (i32(invocation.y) * 4i));
    let _e50 = bitcast<i32>((bitcast<u32>(_e46) % bitcast<u32>(4i)));
    let _e54 = bitcast<i32>((bitcast<u32>(_e46) / bitcast<u32>(4i)));
    let _e58 = (_e50 * 4i);
    let _e60 = (_e54 * 24i);
    let _e64 = bitcast<i32>((bitcast<u32>(_e46) / bitcast<u32>(2i)));
    let _e69 = (bitcast<i32>((bitcast<u32>(_e46) % bitcast<u32>(2i))) * 4i);
    let _e70 = (_e64 * 32i);
    let _e73 = ((_e64 * 12i) + _e69);
    let _e74 = (_e50 * 48i);
    let _e76 = (_e46 + 16i);
    let _e80 = bitcast<i32>((bitcast<u32>(_e76) / bitcast<u32>(2i)));
    let _e85 = (bitcast<i32>((bitcast<u32>(_e76) % bitcast<u32>(2i))) * 4i);
    local = 0i;
    local_1 = _e6;
    local_2 = _e6;
    loop {
        let _e103 = local;
        if (_e103 < 32i) {
        } else {
            break;
        }
        let _e105 = local_1;
        let _e106 = local_2;
        let _e107 = (_e103 + _e69);
        let _e112 = arg0_[(((((_e28 * 256i) + (_e26 * 256i)) + _e70) + _e107) >> 2u)];
        let _e117 = arg1_[(((_e35 + _e70) + _e107) >> 2u)];
        let _e123 = arg1_[(((_e35 + (_e80 * 32i)) + (_e103 + _e85)) >> 2u)];
        workgroupBarrier();
        shared_[(_e73 >> 2u)] = _e112;
        shared_1[(_e73 >> 2u)] = _e117;
        shared_1[(((_e80 * 12i) + _e85) >> 2u)] = _e123;
        workgroupBarrier();
        let _e136 = shared_[(_e60 >> 2u)];
        let _e140 = shared_[((_e60 + 4i) >> 2u)];
        let _e144 = shared_[((_e60 + 12i) >> 2u)];
        let _e148 = shared_[((_e60 + 16i) >> 2u)];
        let _e152 = shared_1[(_e74 >> 2u)];
        let _e156 = shared_1[((_e74 + 4i) >> 2u)];
        let _e160 = shared_1[((_e74 + 12i) >> 2u)];
        let _e164 = shared_1[((_e74 + 16i) >> 2u)];
        let _e168 = shared_1[((_e74 + 24i) >> 2u)];
        let _e172 = shared_1[((_e74 + 28i) >> 2u)];
        let _e176 = shared_1[((_e74 + 36i) >> 2u)];
        let _e180 = shared_1[((_e74 + 40i) >> 2u)];
        let _e185 = vec4<f32>(_e152.x, _e160.x, _e168.x, _e176.x);
        let _e190 = vec4<f32>(_e152.y, _e160.y, _e168.y, _e176.y);
        let _e195 = vec4<f32>(_e152.z, _e160.z, _e168.z, _e176.z);
        let _e200 = vec4<f32>(_e152.w, _e160.w, _e168.w, _e176.w);
        let _e205 = vec4<f32>(_e156.x, _e164.x, _e172.x, _e180.x);
        let _e210 = vec4<f32>(_e156.y, _e164.y, _e172.y, _e180.y);
        let _e215 = vec4<f32>(_e156.z, _e164.z, _e172.z, _e180.z);
        let _e220 = vec4<f32>(_e156.w, _e164.w, _e172.w, _e180.w);
        local_1 = ((((((((_e105 + (vec4(_e136.x) * _e185)) + (vec4(_e136.y) * _e190)) + (vec4(_e136.z) * _e195)) + (vec4(_e136.w) * _e200)) + (vec4(_e140.x) * _e205)) + (vec4(_e140.y) * _e210)) + (vec4(_e140.z) * _e215)) + (vec4(_e140.w) * _e220));
        local_2 = ((((((((_e106 + (vec4(_e144.x) * _e185)) + (vec4(_e144.y) * _e190)) + (vec4(_e144.z) * _e195)) + (vec4(_e144.w) * _e200)) + (vec4(_e148.x) * _e205)) + (vec4(_e148.y) * _e210)) + (vec4(_e148.z) * _e215)) + (vec4(_e148.w) * _e220));
        continuing {
            let _e285 = local;
            local = (_e285 + 8i);
        }
    }
    let _e287 = local_1;
    let _e288 = local_2;
    let _e293 = arg3_[((_e29 + _e58) >> 2u)];
    let _e294 = (_e287 + _e293);
    let _e304 = (_e288 + _e293);
    arg2_[(((_e39 + (_e54 * 32i)) + _e58) >> 2u)] = select(max(_e294, _e6), _e294, ((bitcast<vec4<u32>>(_e294) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e39 + (((_e54 * 2i) + 1i) * 16i)) + _e58) >> 2u)] = select(max(_e304, _e6), _e304, ((bitcast<vec4<u32>>(_e304) & vec4(2147483647u)) > vec4(2139095040u)));
}
