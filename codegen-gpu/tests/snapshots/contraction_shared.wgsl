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
    let _e26 = i32(workgroup_.y);
    let _e27 = (i32(workgroup_.x) * 64i);
    let _e30 = ((_e26 * 128i) + _e27);
    let _e33 = i32(invocation.x);
    let _e34 = (_e33 * 8i);
    let _e38 = (_e27 + _e34);
    local = 0i;
    local_1 = _e5;
    local_2 = _e5;
    local_3 = _e5;
    local_4 = _e5;
    loop {
        let _e44 = local;
        if (_e44 < 16i) {
        } else {
            break;
        }
        let _e46 = local_1;
        let _e47 = local_2;
        let _e48 = local_3;
        let _e49 = local_4;
        let _e54 = arg0_[((((_e26 * 32i) + (min(_e33, 1i) * 16i)) + _e44) >> 3u)];
        let _e60 = bitcast<vec4<f32>>(vec4<u32>(_e54));
        let _e61 = bitcast<vec4<f32>>(vec4<u32>((_e54 >> vec4(32u))));
        let _e67 = arg1_[((_e38 + (_e44 * 64i)) >> 3u)];
        let _e73 = bitcast<vec4<f32>>(vec4<u32>(_e67));
        let _e74 = bitcast<vec4<f32>>(vec4<u32>((_e67 >> vec4(32u))));
        let _e81 = arg1_[((_e38 + ((_e44 + 1i) * 64i)) >> 3u)];
        let _e87 = bitcast<vec4<f32>>(vec4<u32>(_e81));
        let _e88 = bitcast<vec4<f32>>(vec4<u32>((_e81 >> vec4(32u))));
        let _e95 = arg1_[((_e38 + ((_e44 + 2i) * 64i)) >> 3u)];
        let _e101 = bitcast<vec4<f32>>(vec4<u32>(_e95));
        let _e102 = bitcast<vec4<f32>>(vec4<u32>((_e95 >> vec4(32u))));
        let _e109 = arg1_[((_e38 + ((_e44 + 3i) * 64i)) >> 3u)];
        let _e115 = bitcast<vec4<f32>>(vec4<u32>(_e109));
        let _e116 = bitcast<vec4<f32>>(vec4<u32>((_e109 >> vec4(32u))));
        let _e123 = arg1_[((_e38 + ((_e44 + 4i) * 64i)) >> 3u)];
        let _e129 = bitcast<vec4<f32>>(vec4<u32>(_e123));
        let _e130 = bitcast<vec4<f32>>(vec4<u32>((_e123 >> vec4(32u))));
        let _e137 = arg1_[((_e38 + ((_e44 + 5i) * 64i)) >> 3u)];
        let _e143 = bitcast<vec4<f32>>(vec4<u32>(_e137));
        let _e144 = bitcast<vec4<f32>>(vec4<u32>((_e137 >> vec4(32u))));
        let _e151 = arg1_[((_e38 + ((_e44 + 6i) * 64i)) >> 3u)];
        let _e157 = bitcast<vec4<f32>>(vec4<u32>(_e151));
        let _e158 = bitcast<vec4<f32>>(vec4<u32>((_e151 >> vec4(32u))));
        let _e165 = arg1_[((_e38 + ((_e44 + 7i) * 64i)) >> 3u)];
        let _e171 = bitcast<vec4<f32>>(vec4<u32>(_e165));
        let _e172 = bitcast<vec4<f32>>(vec4<u32>((_e165 >> vec4(32u))));
        let _e175 = subgroupShuffle(_e60.x, bitcast<u32>(0i));
        let _e178 = subgroupShuffle(_e61.x, bitcast<u32>(0i));
        let _e181 = subgroupShuffle(_e60.y, bitcast<u32>(0i));
        let _e184 = subgroupShuffle(_e61.y, bitcast<u32>(0i));
        let _e187 = subgroupShuffle(_e60.z, bitcast<u32>(0i));
        let _e190 = subgroupShuffle(_e61.z, bitcast<u32>(0i));
        let _e193 = subgroupShuffle(_e60.w, bitcast<u32>(0i));
        let _e196 = subgroupShuffle(_e61.w, bitcast<u32>(0i));
        let _e197 = vec4(_e175);
        let _e202 = vec4(_e178);
        let _e207 = vec4(_e181);
        let _e212 = vec4(_e184);
        let _e217 = vec4(_e187);
        let _e222 = vec4(_e190);
        let _e227 = vec4(_e193);
        let _e232 = vec4(_e196);
        let _e238 = subgroupShuffle(_e60.x, bitcast<u32>(1i));
        let _e240 = subgroupShuffle(_e61.x, bitcast<u32>(1i));
        let _e242 = subgroupShuffle(_e60.y, bitcast<u32>(1i));
        let _e244 = subgroupShuffle(_e61.y, bitcast<u32>(1i));
        let _e246 = subgroupShuffle(_e60.z, bitcast<u32>(1i));
        let _e248 = subgroupShuffle(_e61.z, bitcast<u32>(1i));
        let _e250 = subgroupShuffle(_e60.w, bitcast<u32>(1i));
        let _e252 = subgroupShuffle(_e61.w, bitcast<u32>(1i));
        let _e253 = vec4(_e238);
        let _e258 = vec4(_e240);
        let _e263 = vec4(_e242);
        let _e268 = vec4(_e244);
        let _e273 = vec4(_e246);
        let _e278 = vec4(_e248);
        let _e283 = vec4(_e250);
        let _e288 = vec4(_e252);
        local_1 = ((((((((_e46 + (_e197 * _e73)) + (_e202 * _e87)) + (_e207 * _e101)) + (_e212 * _e115)) + (_e217 * _e129)) + (_e222 * _e143)) + (_e227 * _e157)) + (_e232 * _e171));
        local_2 = ((((((((_e47 + (_e197 * _e74)) + (_e202 * _e88)) + (_e207 * _e102)) + (_e212 * _e116)) + (_e217 * _e130)) + (_e222 * _e144)) + (_e227 * _e158)) + (_e232 * _e172));
        local_3 = ((((((((_e48 + (_e253 * _e73)) + (_e258 * _e87)) + (_e263 * _e101)) + (_e268 * _e115)) + (_e273 * _e129)) + (_e278 * _e143)) + (_e283 * _e157)) + (_e288 * _e171));
        local_4 = ((((((((_e49 + (_e253 * _e74)) + (_e258 * _e88)) + (_e263 * _e102)) + (_e268 * _e116)) + (_e273 * _e130)) + (_e278 * _e144)) + (_e283 * _e158)) + (_e288 * _e172));
        continuing {
            let _e293 = local;
            local = (_e293 + 8i);
        }
    }
    let _e295 = local_1;
    let _e296 = local_2;
    let _e297 = local_3;
    let _e298 = local_4;
    let _e302 = arg3_[(_e38 >> 3u)];
    let _e308 = bitcast<vec4<f32>>(vec4<u32>(_e302));
    let _e309 = bitcast<vec4<f32>>(vec4<u32>((_e302 >> vec4(32u))));
    let _e310 = (_e295 + _e308);
    let _e311 = (_e296 + _e309);
    let _e330 = (_e297 + _e308);
    let _e331 = (_e298 + _e309);
    arg2_[((_e30 + _e34) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e310, _e5), _e310, ((bitcast<vec4<u32>>(_e310) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e311, _e5), _e311, ((bitcast<vec4<u32>>(_e311) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e30 + 64i) + _e34) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e330, _e5), _e330, ((bitcast<vec4<u32>>(_e330) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e331, _e5), _e331, ((bitcast<vec4<u32>>(_e331) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
}
