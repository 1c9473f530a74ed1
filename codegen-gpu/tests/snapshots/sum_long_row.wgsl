@group(0) @binding(0) 
var<storage> arg0_: array<vec4<u64>>;
@group(0) @binding(1) 
var<storage, read_write> arg1_: array<f32>;

@compute @workgroup_size(8, 1, 1) 
fn kernel(@builtin(workgroup_id) workgroup_: vec3<u32>, @builtin(local_invocation_id) invocation: vec3<u32>) {
    var local: i32;
    var local_1: vec4<f32>;
    var local_2: vec4<f32>;

    let _e3 = vec4(-0f);
    let _e22 = i32(workgroup_.x);
    let _e23 = (_e22 * 5000i);
    let _e26 = i32(invocation.x);
    let _e27 = (_e26 * 8i);
    local = 0i;
    local_1 = _e3;
    local_2 = _e3;
    loop {
        let _e31 = local;
        if (_e31 < 4864i) {
        } else {
            break;
        }
        let _e33 = local_1;
        let _e34 = local_2;
        let _e40 = arg0_[((_e23 + (_e27 + _e31)) >> 3u)];
        let _e56 = arg0_[((_e23 + (_e27 + (_e31 + 64i))) >> 3u)];
        let _e72 = arg0_[((_e23 + (_e27 + (_e31 + 128i))) >> 3u)];
        let _e88 = arg0_[((_e23 + (_e27 + (_e31 + 192i))) >> 3u)];
        local_1 = (bitcast<vec4<f32>>(vec4<u32>(_e88)) + (bitcast<vec4<f32>>(vec4<u32>(_e72)) + (bitcast<vec4<f32>>(vec4<u32>(_e56)) + (bitcast<vec4<f32>>(vec4<u32>(_e40)) + _e33))));
        local_2 = (bitcast<vec4<f32>>(vec4<u32>((_e88 >> vec4(32u)))) + (bitcast<vec4<f32>>(vec4<u32>((_e72 >> vec4(32u)))) + (bitcast<vec4<f32>>(vec4<u32>((_e56 >> vec4(32u)))) + (bitcast<vec4<f32>>(vec4<u32>((_e40 >> vec4(32u)))) + _e34))));
        continuing {
            let _e98 = local;
            local = (_e98 + 256i);
        }
    }
    let _e100 = local_1;
    let _e101 = local_2;
    let _e107 = arg0_[((_e23 + (_e27 + 4864i)) >> 3u)];
    let _e122 = arg0_[((_e23 + (_e27 + 4928i)) >> 3u)];
    let _e130 = (bitcast<vec4<f32>>(vec4<u32>(_e122)) + (bitcast<vec4<f32>>(vec4<u32>(_e107)) + _e100));
    let _e131 = (bitcast<vec4<f32>>(vec4<u32>((_e122 >> vec4(32u)))) + (bitcast<vec4<f32>>(vec4<u32>((_e107 >> vec4(32u)))) + _e101));
    let _e132 = (_e27 + 4992i);
    let _e139 = arg0_[((_e23 + min(_e132, 4992i)) >> 3u)];
    let _e149 = vec4((_e132 < 5000i));
    let _e150 = select(_e130, (bitcast<vec4<f32>>(vec4<u32>(_e139)) + _e130), _e149);
    let _e151 = select(_e131, (bitcast<vec4<f32>>(vec4<u32>((_e139 >> vec4(32u)))) + _e131), _e149);
    let _e166 = (((_e150.x + _e150.z) + (_e150.y + _e150.w)) + ((_e151.x + _e151.z) + (_e151.y + _e151.w)));
    let _e168 = subgroupShuffleXor(_e166, bitcast<u32>(1i));
    let _e169 = (_e166 + _e168);
    let _e171 = subgroupShuffleXor(_e169, bitcast<u32>(2i));
    let _e172 = (_e169 + _e171);
    let _e174 = subgroupShuffleXor(_e172, bitcast<u32>(4i));
    if (_e26 < 1i) {
        arg1_[_e22] = ((_e172 + _e174) + 0f);
    }
}
