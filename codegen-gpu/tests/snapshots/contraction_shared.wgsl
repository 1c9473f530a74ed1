@group(0) @binding(0) 
var<storage> arg0_: array<vec4<u64>>;
@group(0) @binding(1) 
var<storage> arg1_: array<vec4<u64>>;
@group(0) @binding(2) 
var<storage, read_write> arg2_: array<vec4<u64>>;
@group(0) @binding(3) 
var<storage> arg3_: array<vec4<u64>>;

@compute @workgroup_size(8, 1, 1) 
fn kernel(@builtin(workgroup_id) workgroup_: vec3<u32>, @builtin(local_invocation_id) invocation: vec3<u32>) {
    var local: i32;
    var local_1: vec4<f32>;
    var local_2: vec4<f32>;
    var local_3: vec4<f32>;
    var local_4: vec4<f32>;

    let _e5 = vec4(0f);
    let _e25 = i32(workgroup_.y);
    let _e26 = (i32(workgroup_.x) * 64i);
    let _e29 = ((_e25 * 128i) + _e26);
    let _e32 = i32(invocation.x);
    let _e33 = (_e32 * 8i);
    let _e37 = (_e26 + _e33);
    local = 0i;
    local_1 = _e5;
    local_2 = _e5;
    local_3 = _e5;
    local_4 = _e5;
    loop {
        let _e43 = local;
        if (_e43 < 16i) {
        } else {
            break;
        }
        let _e45 = local_1;
        let _e46 = local_2;
        let _e47 = local_3;
        let _e48 = local_4;
        let _e53 = arg0_[((((_e25 * 32i) + (min(_e32, 1i) * 16i)) + _e43) >> 3u)];
        let _e59 = bitcast<vec4<f32>>(vec4<u32>(_e53));
        let _e60 = bitcast<vec4<f32>>(vec4<u32>((_e53 >> vec4(32u))));
        let _e62 = (_e37 + (_e43 * 64i));
        let _e66 = arg1_[(_e62 >> 3u)];
        let _e72 = bitcast<vec4<f32>>(vec4<u32>(_e66));
        let _e73 = bitcast<vec4<f32>>(vec4<u32>((_e66 >> vec4(32u))));
        let _e78 = arg1_[((_e62 + 64i) >> 3u)];
        let _e84 = bitcast<vec4<f32>>(vec4<u32>(_e78));
        let _e85 = bitcast<vec4<f32>>(vec4<u32>((_e78 >> vec4(32u))));
        let _e90 = arg1_[((_e62 + 128i) >> 3u)];
        let _e96 = bitcast<vec4<f32>>(vec4<u32>(_e90));
        let _e97 = bitcast<vec4<f32>>(vec4<u32>((_e90 >> vec4(32u))));
        let _e102 = arg1_[((_e62 + 192i) >> 3u)];
        let _e108 = bitcast<vec4<f32>>(vec4<u32>(_e102));
        let _e109 = bitcast<vec4<f32>>(vec4<u32>((_e102 >> vec4(32u))));
        let _e114 = arg1_[((_e62 + 256i) >> 3u)];
        let _e120 = bitcast<vec4<f32>>(vec4<u32>(_e114));
        let _e121 = bitcast<vec4<f32>>(vec4<u32>((_e114 >> vec4(32u))));
        let _e126 = arg1_[((_e62 + 320i) >> 3u)];
        let _e132 = bitcast<vec4<f32>>(vec4<u32>(_e126));
        let _e133 = bitcast<vec4<f32>>(vec4<u32>((_e126 >> vec4(32u))));
        let _e138 = arg1_[((_e62 + 384i) >> 3u)];
        let _e144 = bitcast<vec4<f32>>(vec4<u32>(_e138));
        let _e145 = bitcast<vec4<f32>>(vec4<u32>((_e138 >> vec4(32u))));
        let _e150 = arg1_[((_e62 + 448i) >> 3u)];
        let _e156 = bitcast<vec4<f32>>(vec4<u32>(_e150));
        let _e157 = bitcast<vec4<f32>>(vec4<u32>((_e150 >> vec4(32u))));
        let _e160 = subgroupShuffle(_e59.x, bitcast<u32>(0i));
        let _e161 = vec4(_e160);
        let _e168 = subgroupShuffle(_e60.x, bitcast<u32>(0i));
        let _e169 = vec4(_e168);
        let _e176 = subgroupShuffle(_e59.y, bitcast<u32>(0i));
        let _e177 = vec4(_e176);
        let _e184 = subgroupShuffle(_e60.y, bitcast<u32>(0i));
        let _e185 = vec4(_e184);
        let _e192 = subgroupShuffle(_e59.z, bitcast<u32>(0i));
        let _e193 = vec4(_e192);
        let _e200 = subgroupShuffle(_e60.z, bitcast<u32>(0i));
        let _e201 = vec4(_e200);
        let _e208 = subgroupShuffle(_e59.w, bitcast<u32>(0i));
        let _e209 = vec4(_e208);
        let _e216 = subgroupShuffle(_e60.w, bitcast<u32>(0i));
        let _e217 = vec4(_e216);
        let _e223 = subgroupShuffle(_e59.x, bitcast<u32>(1i));
        let _e224 = vec4(_e223);
        let _e230 = subgroupShuffle(_e60.x, bitcast<u32>(1i));
        let _e231 = vec4(_e230);
        let _e237 = subgroupShuffle(_e59.y, bitcast<u32>(1i));
        let _e238 = vec4(_e237);
        let _e244 = subgroupShuffle(_e60.y, bitcast<u32>(1i));
        let _e245 = vec4(_e244);
        let _e251 = subgroupShuffle(_e59.z, bitcast<u32>(1i));
        let _e252 = vec4(_e251);
        let _e258 = subgroupShuffle(_e60.z, bitcast<u32>(1i));
        let _e259 = vec4(_e258);
        let _e265 = subgroupShuffle(_e59.w, bitcast<u32>(1i));
        let _e266 = vec4(_e265);
        let _e272 = subgroupShuffle(_e60.w, bitcast<u32>(1i));
        let _e273 = vec4(_e272);
        local_1 = ((((((((_e45 + (_e161 * _e72)) + (_e169 * _e84)) + (_e177 * _e96)) + (_e185 * _e108)) + (_e193 * _e120)) + (_e201 * _e132)) + (_e209 * _e144)) + (_e217 * _e156));
        local_2 = ((((((((_e46 + (_e161 * _e73)) + (_e169 * _e85)) + (_e177 * _e97)) + (_e185 * _e109)) + (_e193 * _e121)) + (_e201 * _e133)) + (_e209 * _e145)) + (_e217 * _e157));
        local_3 = ((((((((_e47 + (_e224 * _e72)) + (_e231 * _e84)) + (_e238 * _e96)) + (_e245 * _e108)) + (_e252 * _e120)) + (_e259 * _e132)) + (_e266 * _e144)) + (_e273 * _e156));
        local_4 = ((((((((_e48 + (_e224 * _e73)) + (_e231 * _e85)) + (_e238 * _e97)) + (_e245 * _e109)) + (_e252 * _e121)) + (_e259 * _e133)) + (_e266 * _e145)) + (_e273 * _e157));
        continuing {
            let _e278 = local;
            local = (_e278 + 8i);
        }
    }
    let _e280 = local_1;
    let _e281 = local_2;
    let _e282 = local_3;
    let _e283 = local_4;
    let _e287 = arg3_[(_e37 >> 3u)];
    let _e293 = bitcast<vec4<f32>>(vec4<u32>(_e287));
    let _e294 = bitcast<vec4<f32>>(vec4<u32>((_e287 >> vec4(32u))));
    let _e295 = (_e280 + _e293);
    let _e296 = (_e281 + _e294);
    let _e315 = (_e282 + _e293);
    let _e316 = (_e283 + _e294);
    arg2_[((_e29 + _e33) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e295, _e5), _e295, ((bitcast<vec4<u32>>(_e295) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e296, _e5), _e296, ((bitcast<vec4<u32>>(_e296) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e29 + 64i) + _e33) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e315, _e5), _e315, ((bitcast<vec4<u32>>(_e315) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e316, _e5), _e316, ((bitcast<vec4<u32>>(_e316) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
}
