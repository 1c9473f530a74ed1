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
    var local_5: vec4<f32>;
    var local_6: vec4<f32>;
    var local_7: vec4<f32>;
    var local_8: vec4<f32>;
    var local_9: i32;
    var local_10: vec4<f32>;
    var local_11: vec4<f32>;
    var local_12: vec4<f32>;
    var local_13: vec4<f32>;
    var local_14: vec4<f32>;
    var local_15: vec4<f32>;
    var local_16: vec4<f32>;
    var local_17: vec4<f32>;

    let _e5 = vec4(0f);
    let _e30 = i32(workgroup_.y);
    let _e32 = i32(workgroup_.z);
    let _e33 = (i32(workgroup_.x) * 64i);
    let _e40 = (((_e32 * 256i) + (_e30 * 256i)) + _e33);
    let _e43 = i32(invocation.x);
    let _e44 = (_e43 * 8i);
    let _e48 = (_e33 + _e44);
    local = 0i;
    local_1 = _e5;
    local_2 = _e5;
    local_3 = _e5;
    local_4 = _e5;
    local_5 = _e5;
    local_6 = _e5;
    local_7 = _e5;
    local_8 = _e5;
    loop {
        let _e58 = local;
        if (_e58 < 3i) {
        } else {
            break;
        }
        let _e60 = local_1;
        let _e61 = local_2;
        let _e62 = local_3;
        let _e63 = local_4;
        let _e64 = local_5;
        let _e65 = local_6;
        let _e66 = local_7;
        let _e67 = local_8;
        local_9 = 0i;
        local_10 = _e60;
        local_11 = _e61;
        local_12 = _e62;
        local_13 = _e63;
        local_14 = _e64;
        local_15 = _e65;
        local_16 = _e66;
        local_17 = _e67;
        loop {
            let _e79 = local_9;
            if (_e79 < 24i) {
            } else {
                break;
            }
            let _e81 = local_10;
            let _e82 = local_11;
            let _e83 = local_12;
            let _e84 = local_13;
            let _e85 = local_14;
            let _e86 = local_15;
            let _e87 = local_16;
            let _e88 = local_17;
            let _e94 = arg0_[(((((_e32 * 48i) + (_e30 * 32i)) + (min(_e43, 3i) * 8i)) + ((_e58 * 48i) + _e79)) >> 3u)];
            let _e100 = bitcast<vec4<f32>>(vec4<u32>(_e94));
            let _e101 = bitcast<vec4<f32>>(vec4<u32>((_e94 >> vec4(32u))));
            let _e104 = (_e48 + ((_e58 * 1536i) + (_e79 * 64i)));
            let _e108 = arg1_[(_e104 >> 3u)];
            let _e114 = bitcast<vec4<f32>>(vec4<u32>(_e108));
            let _e115 = bitcast<vec4<f32>>(vec4<u32>((_e108 >> vec4(32u))));
            let _e122 = arg1_[((_e104 >> 3u) + 8i)];
            let _e128 = bitcast<vec4<f32>>(vec4<u32>(_e122));
            let _e129 = bitcast<vec4<f32>>(vec4<u32>((_e122 >> vec4(32u))));
            let _e136 = arg1_[((_e104 >> 3u) + 16i)];
            let _e142 = bitcast<vec4<f32>>(vec4<u32>(_e136));
            let _e143 = bitcast<vec4<f32>>(vec4<u32>((_e136 >> vec4(32u))));
            let _e150 = arg1_[((_e104 >> 3u) + 24i)];
            let _e156 = bitcast<vec4<f32>>(vec4<u32>(_e150));
            let _e157 = bitcast<vec4<f32>>(vec4<u32>((_e150 >> vec4(32u))));
            let _e164 = arg1_[((_e104 >> 3u) + 32i)];
            let _e170 = bitcast<vec4<f32>>(vec4<u32>(_e164));
            let _e171 = bitcast<vec4<f32>>(vec4<u32>((_e164 >> vec4(32u))));
            let _e178 = arg1_[((_e104 >> 3u) + 40i)];
            let _e184 = bitcast<vec4<f32>>(vec4<u32>(_e178));
            let _e185 = bitcast<vec4<f32>>(vec4<u32>((_e178 >> vec4(32u))));
            let _e192 = arg1_[((_e104 >> 3u) + 48i)];
            let _e198 = bitcast<vec4<f32>>(vec4<u32>(_e192));
            let _e199 = bitcast<vec4<f32>>(vec4<u32>((_e192 >> vec4(32u))));
            let _e206 = arg1_[((_e104 >> 3u) + 56i)];
            let _e212 = bitcast<vec4<f32>>(vec4<u32>(_e206));
            let _e213 = bitcast<vec4<f32>>(vec4<u32>((_e206 >> vec4(32u))));
            let _e216 = subgroupShuffle(_e100.x, bitcast<u32>(0i));
            let _e217 = vec4(_e216);
            let _e224 = subgroupShuffle(_e101.x, bitcast<u32>(0i));
            let _e225 = vec4(_e224);
            let _e232 = subgroupShuffle(_e100.y, bitcast<u32>(0i));
            let _e233 = vec4(_e232);
            let _e240 = subgroupShuffle(_e101.y, bitcast<u32>(0i));
            let _e241 = vec4(_e240);
            let _e248 = subgroupShuffle(_e100.z, bitcast<u32>(0i));
            let _e249 = vec4(_e248);
            let _e256 = subgroupShuffle(_e101.z, bitcast<u32>(0i));
            let _e257 = vec4(_e256);
            let _e264 = subgroupShuffle(_e100.w, bitcast<u32>(0i));
            let _e265 = vec4(_e264);
            let _e272 = subgroupShuffle(_e101.w, bitcast<u32>(0i));
            let _e273 = vec4(_e272);
            let _e279 = subgroupShuffle(_e100.x, bitcast<u32>(1i));
            let _e280 = vec4(_e279);
            let _e286 = subgroupShuffle(_e101.x, bitcast<u32>(1i));
            let _e287 = vec4(_e286);
            let _e293 = subgroupShuffle(_e100.y, bitcast<u32>(1i));
            let _e294 = vec4(_e293);
            let _e300 = subgroupShuffle(_e101.y, bitcast<u32>(1i));
            let _e301 = vec4(_e300);
            let _e307 = subgroupShuffle(_e100.z, bitcast<u32>(1i));
            let _e308 = vec4(_e307);
            let _e314 = subgroupShuffle(_e101.z, bitcast<u32>(1i));
            let _e315 = vec4(_e314);
            let _e321 = subgroupShuffle(_e100.w, bitcast<u32>(1i));
            let _e322 = vec4(_e321);
            let _e328 = subgroupShuffle(_e101.w, bitcast<u32>(1i));
            let _e329 = vec4(_e328);
            let _e335 = subgroupShuffle(_e100.x, bitcast<u32>(2i));
            let _e336 = vec4(_e335);
            let _e342 = subgroupShuffle(_e101.x, bitcast<u32>(2i));
            let _e343 = vec4(_e342);
            let _e349 = subgroupShuffle(_e100.y, bitcast<u32>(2i));
            let _e350 = vec4(_e349);
            let _e356 = subgroupShuffle(_e101.y, bitcast<u32>(2i));
            let _e357 = vec4(_e356);
            let _e363 = subgroupShuffle(_e100.z, bitcast<u32>(2i));
            let _e364 = vec4(_e363);
            let _e370 = subgroupShuffle(_e101.z, bitcast<u32>(2i));
            let _e371 = vec4(_e370);
            let _e377 = subgroupShuffle(_e100.w, bitcast<u32>(2i));
            let _e378 = vec4(_e377);
            let _e384 = subgroupShuffle(_e101.w, bitcast<u32>(2i));
            let _e385 = vec4(_e384);
            let _e391 = subgroupShuffle(_e100.x, bitcast<u32>(3i));
            let _e392 = vec4(_e391);
            let _e398 = subgroupShuffle(_e101.x, bitcast<u32>(3i));
            let _e399 = vec4(_e398);
            let _e405 = subgroupShuffle(_e100.y, bitcast<u32>(3i));
            let _e406 = vec4(_e405);
            let _e412 = subgroupShuffle(_e101.y, bitcast<u32>(3i));
            let _e413 = vec4(_e412);
            let _e419 = subgroupShuffle(_e100.z, bitcast<u32>(3i));
            let _e420 = vec4(_e419);
            let _e426 = subgroupShuffle(_e101.z, bitcast<u32>(3i));
            let _e427 = vec4(_e426);
            let _e433 = subgroupShuffle(_e100.w, bitcast<u32>(3i));
            let _e434 = vec4(_e433);
            let _e440 = subgroupShuffle(_e101.w, bitcast<u32>(3i));
            let _e441 = vec4(_e440);
            local_10 = ((((((((_e81 + (_e217 * _e114)) + (_e225 * _e128)) + (_e233 * _e142)) + (_e241 * _e156)) + (_e249 * _e170)) + (_e257 * _e184)) + (_e265 * _e198)) + (_e273 * _e212));
            local_11 = ((((((((_e82 + (_e217 * _e115)) + (_e225 * _e129)) + (_e233 * _e143)) + (_e241 * _e157)) + (_e249 * _e171)) + (_e257 * _e185)) + (_e265 * _e199)) + (_e273 * _e213));
            local_12 = ((((((((_e83 + (_e280 * _e114)) + (_e287 * _e128)) + (_e294 * _e142)) + (_e301 * _e156)) + (_e308 * _e170)) + (_e315 * _e184)) + (_e322 * _e198)) + (_e329 * _e212));
            local_13 = ((((((((_e84 + (_e280 * _e115)) + (_e287 * _e129)) + (_e294 * _e143)) + (_e301 * _e157)) + (_e308 * _e171)) + (_e315 * _e185)) + (_e322 * _e199)) + (_e329 * _e213));
            local_14 = ((((((((_e85 + (_e336 * _e114)) + (_e343 * _e128)) + (_e350 * _e142)) + (_e357 * _e156)) + (_e364 * _e170)) + (_e371 * _e184)) + (_e378 * _e198)) + (_e385 * _e212));
            local_15 = ((((((((_e86 + (_e336 * _e115)) + (_e343 * _e129)) + (_e350 * _e143)) + (_e357 * _e157)) + (_e364 * _e171)) + (_e371 * _e185)) + (_e378 * _e199)) + (_e385 * _e213));
            local_16 = ((((((((_e87 + (_e392 * _e114)) + (_e399 * _e128)) + (_e406 * _e142)) + (_e413 * _e156)) + (_e420 * _e170)) + (_e427 * _e184)) + (_e434 * _e198)) + (_e441 * _e212));
            local_17 = ((((((((_e88 + (_e392 * _e115)) + (_e399 * _e129)) + (_e406 * _e143)) + (_e413 * _e157)) + (_e420 * _e171)) + (_e427 * _e185)) + (_e434 * _e199)) + (_e441 * _e213));
            continuing {
                let _e446 = local_9;
                local_9 = (_e446 + 8i);
            }
        }
        let _e448 = local_10;
        let _e449 = local_11;
        let _e450 = local_12;
        let _e451 = local_13;
        let _e452 = local_14;
        let _e453 = local_15;
        let _e454 = local_16;
        let _e455 = local_17;
        local_1 = _e448;
        local_2 = _e449;
        local_3 = _e450;
        local_4 = _e451;
        local_5 = _e452;
        local_6 = _e453;
        local_7 = _e454;
        local_8 = _e455;
        continuing {
            let _e456 = local;
            local = (_e456 + 1i);
        }
    }
    let _e458 = local_1;
    let _e459 = local_2;
    let _e460 = local_3;
    let _e461 = local_4;
    let _e462 = local_5;
    let _e463 = local_6;
    let _e464 = local_7;
    let _e465 = local_8;
    let _e469 = arg3_[(_e48 >> 3u)];
    let _e475 = bitcast<vec4<f32>>(vec4<u32>(_e469));
    let _e476 = bitcast<vec4<f32>>(vec4<u32>((_e469 >> vec4(32u))));
    let _e477 = (_e458 + _e475);
    let _e478 = (_e459 + _e476);
    let _e497 = (_e460 + _e475);
    let _e498 = (_e461 + _e476);
    let _e517 = (_e462 + _e475);
    let _e518 = (_e463 + _e476);
    let _e537 = (_e464 + _e475);
    let _e538 = (_e465 + _e476);
    arg2_[((_e40 + _e44) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e477, _e5), _e477, ((bitcast<vec4<u32>>(_e477) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e478, _e5), _e478, ((bitcast<vec4<u32>>(_e478) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e40 + 64i) + _e44) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e497, _e5), _e497, ((bitcast<vec4<u32>>(_e497) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e498, _e5), _e498, ((bitcast<vec4<u32>>(_e498) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e40 + 128i) + _e44) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e517, _e5), _e517, ((bitcast<vec4<u32>>(_e517) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e518, _e5), _e518, ((bitcast<vec4<u32>>(_e518) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e40 + 192i) + _e44) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e537, _e5), _e537, ((bitcast<vec4<u32>>(_e537) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e538, _e5), _e538, ((bitcast<vec4<u32>>(_e538) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
}
