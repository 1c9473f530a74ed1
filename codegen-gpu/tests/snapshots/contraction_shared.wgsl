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
        let _e80 = arg1_[((_e62 >> 3u) + 8i)];
        let _e86 = bitcast<vec4<f32>>(vec4<u32>(_e80));
        let _e87 = bitcast<vec4<f32>>(vec4<u32>((_e80 >> vec4(32u))));
        let _e94 = arg1_[((_e62 >> 3u) + 16i)];
        let _e100 = bitcast<vec4<f32>>(vec4<u32>(_e94));
        let _e101 = bitcast<vec4<f32>>(vec4<u32>((_e94 >> vec4(32u))));
        let _e108 = arg1_[((_e62 >> 3u) + 24i)];
        let _e114 = bitcast<vec4<f32>>(vec4<u32>(_e108));
        let _e115 = bitcast<vec4<f32>>(vec4<u32>((_e108 >> vec4(32u))));
        let _e122 = arg1_[((_e62 >> 3u) + 32i)];
        let _e128 = bitcast<vec4<f32>>(vec4<u32>(_e122));
        let _e129 = bitcast<vec4<f32>>(vec4<u32>((_e122 >> vec4(32u))));
        let _e136 = arg1_[((_e62 >> 3u) + 40i)];
        let _e142 = bitcast<vec4<f32>>(vec4<u32>(_e136));
        let _e143 = bitcast<vec4<f32>>(vec4<u32>((_e136 >> vec4(32u))));
        let _e150 = arg1_[((_e62 >> 3u) + 48i)];
        let _e156 = bitcast<vec4<f32>>(vec4<u32>(_e150));
        let _e157 = bitcast<vec4<f32>>(vec4<u32>((_e150 >> vec4(32u))));
        let _e164 = arg1_[((_e62 >> 3u) + 56i)];
        let _e170 = bitcast<vec4<f32>>(vec4<u32>(_e164));
        let _e171 = bitcast<vec4<f32>>(vec4<u32>((_e164 >> vec4(32u))));
        let _e174 = subgroupShuffle(_e59.x, bitcast<u32>(0i));
        let _e175 = vec4(_e174);
        let _e182 = subgroupShuffle(_e60.x, bitcast<u32>(0i));
        let _e183 = vec4(_e182);
        let _e190 = subgroupShuffle(_e59.y, bitcast<u32>(0i));
        let _e191 = vec4(_e190);
        let _e198 = subgroupShuffle(_e60.y, bitcast<u32>(0i));
        let _e199 = vec4(_e198);
        let _e206 = subgroupShuffle(_e59.z, bitcast<u32>(0i));
        let _e207 = vec4(_e206);
        let _e214 = subgroupShuffle(_e60.z, bitcast<u32>(0i));
        let _e215 = vec4(_e214);
        let _e222 = subgroupShuffle(_e59.w, bitcast<u32>(0i));
        let _e223 = vec4(_e222);
        let _e230 = subgroupShuffle(_e60.w, bitcast<u32>(0i));
        let _e231 = vec4(_e230);
        let _e237 = subgroupShuffle(_e59.x, bitcast<u32>(1i));
        let _e238 = vec4(_e237);
        let _e244 = subgroupShuffle(_e60.x, bitcast<u32>(1i));
        let _e245 = vec4(_e244);
        let _e251 = subgroupShuffle(_e59.y, bitcast<u32>(1i));
        let _e252 = vec4(_e251);
        let _e258 = subgroupShuffle(_e60.y, bitcast<u32>(1i));
        let _e259 = vec4(_e258);
        let _e265 = subgroupShuffle(_e59.z, bitcast<u32>(1i));
        let _e266 = vec4(_e265);
        let _e272 = subgroupShuffle(_e60.z, bitcast<u32>(1i));
        let _e273 = vec4(_e272);
        let _e279 = subgroupShuffle(_e59.w, bitcast<u32>(1i));
        let _e280 = vec4(_e279);
        let _e286 = subgroupShuffle(_e60.w, bitcast<u32>(1i));
        let _e287 = vec4(_e286);
        local_1 = ((((((((_e45 + (_e175 * _e72)) + (_e183 * _e86)) + (_e191 * _e100)) + (_e199 * _e114)) + (_e207 * _e128)) + (_e215 * _e142)) + (_e223 * _e156)) + (_e231 * _e170));
        local_2 = ((((((((_e46 + (_e175 * _e73)) + (_e183 * _e87)) + (_e191 * _e101)) + (_e199 * _e115)) + (_e207 * _e129)) + (_e215 * _e143)) + (_e223 * _e157)) + (_e231 * _e171));
        local_3 = ((((((((_e47 + (_e238 * _e72)) + (_e245 * _e86)) + (_e252 * _e100)) + (_e259 * _e114)) + (_e266 * _e128)) + (_e273 * _e142)) + (_e280 * _e156)) + (_e287 * _e170));
        local_4 = ((((((((_e48 + (_e238 * _e73)) + (_e245 * _e87)) + (_e252 * _e101)) + (_e259 * _e115)) + (_e266 * _e129)) + (_e273 * _e143)) + (_e280 * _e157)) + (_e287 * _e171));
        continuing {
            let _e292 = local;
            local = (_e292 + 8i);
        }
    }
    let _e294 = local_1;
    let _e295 = local_2;
    let _e296 = local_3;
    let _e297 = local_4;
    let _e301 = arg3_[(_e37 >> 3u)];
    let _e307 = bitcast<vec4<f32>>(vec4<u32>(_e301));
    let _e308 = bitcast<vec4<f32>>(vec4<u32>((_e301 >> vec4(32u))));
    let _e309 = (_e294 + _e307);
    let _e310 = (_e295 + _e308);
    let _e329 = (_e296 + _e307);
    let _e330 = (_e297 + _e308);
    arg2_[((_e29 + _e33) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e309, _e5), _e309, ((bitcast<vec4<u32>>(_e309) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e310, _e5), _e310, ((bitcast<vec4<u32>>(_e310) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e29 + 64i) + _e33) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e329, _e5), _e329, ((bitcast<vec4<u32>>(_e329) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e330, _e5), _e330, ((bitcast<vec4<u32>>(_e330) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
}
