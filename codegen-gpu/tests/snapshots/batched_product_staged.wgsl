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
    let _e61 = (_e50 * 48i);
    let _e65 = bitcast<i32>((bitcast<u32>(_e46) / bitcast<u32>(2i)));
    let _e70 = (bitcast<i32>((bitcast<u32>(_e46) % bitcast<u32>(2i))) * 4i);
    let _e71 = (_e65 * 32i);
    let _e74 = ((_e65 * 12i) + _e70);
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
        workgroupBarrier();
        let _e107 = (_e103 + _e70);
        let _e112 = arg0_[(((((_e28 * 256i) + (_e26 * 256i)) + _e71) + _e107) >> 2u)];
        shared_[(_e74 >> 2u)] = _e112;
        let _e120 = arg1_[(((_e35 + _e71) + _e107) >> 2u)];
        shared_1[(_e74 >> 2u)] = _e120;
        let _e129 = arg1_[(((_e35 + (_e80 * 32i)) + (_e103 + _e85)) >> 2u)];
        shared_1[(((_e80 * 12i) + _e85) >> 2u)] = _e129;
        workgroupBarrier();
        let _e136 = shared_[(_e60 >> 2u)];
        let _e142 = shared_[((_e60 >> 2u) + 1i)];
        let _e148 = shared_[((_e60 >> 2u) + 3i)];
        let _e154 = shared_[((_e60 >> 2u) + 4i)];
        let _e158 = shared_1[(_e61 >> 2u)];
        let _e164 = shared_1[((_e61 >> 2u) + 1i)];
        let _e170 = shared_1[((_e61 >> 2u) + 3i)];
        let _e176 = shared_1[((_e61 >> 2u) + 4i)];
        let _e182 = shared_1[((_e61 >> 2u) + 6i)];
        let _e188 = shared_1[((_e61 >> 2u) + 7i)];
        let _e194 = shared_1[((_e61 >> 2u) + 9i)];
        let _e200 = shared_1[((_e61 >> 2u) + 10i)];
        let _e205 = vec4<f32>(_e158.x, _e170.x, _e182.x, _e194.x);
        let _e210 = vec4<f32>(_e158.y, _e170.y, _e182.y, _e194.y);
        let _e215 = vec4<f32>(_e158.z, _e170.z, _e182.z, _e194.z);
        let _e220 = vec4<f32>(_e158.w, _e170.w, _e182.w, _e194.w);
        let _e225 = vec4<f32>(_e164.x, _e176.x, _e188.x, _e200.x);
        let _e230 = vec4<f32>(_e164.y, _e176.y, _e188.y, _e200.y);
        let _e235 = vec4<f32>(_e164.z, _e176.z, _e188.z, _e200.z);
        let _e240 = vec4<f32>(_e164.w, _e176.w, _e188.w, _e200.w);
        local_1 = ((((((((_e105 + (vec4(_e136.x) * _e205)) + (vec4(_e136.y) * _e210)) + (vec4(_e136.z) * _e215)) + (vec4(_e136.w) * _e220)) + (vec4(_e142.x) * _e225)) + (vec4(_e142.y) * _e230)) + (vec4(_e142.z) * _e235)) + (vec4(_e142.w) * _e240));
        local_2 = ((((((((_e106 + (vec4(_e148.x) * _e205)) + (vec4(_e148.y) * _e210)) + (vec4(_e148.z) * _e215)) + (vec4(_e148.w) * _e220)) + (vec4(_e154.x) * _e225)) + (vec4(_e154.y) * _e230)) + (vec4(_e154.z) * _e235)) + (vec4(_e154.w) * _e240));
        continuing {
            let _e305 = local;
            local = (_e305 + 8i);
        }
    }
    let _e307 = local_1;
    let _e308 = local_2;
    let _e313 = arg3_[((_e29 + _e58) >> 2u)];
    let _e314 = (_e307 + _e313);
    let _e324 = (_e308 + _e313);
    arg2_[(((_e39 + (_e54 * 32i)) + _e58) >> 2u)] = select(max(_e314, _e6), _e314, ((bitcast<vec4<u32>>(_e314) & vec4(2147483647u)) > vec4(2139095040u)));
    arg2_[(((_e39 + (((_e54 * 2i) + 1i) * 16i)) + _e58) >> 2u)] = select(max(_e324, _e6), _e324, ((bitcast<vec4<u32>>(_e324) & vec4(2147483647u)) > vec4(2139095040u)));
}
