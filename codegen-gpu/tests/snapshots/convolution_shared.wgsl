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
            let _e120 = arg1_[((_e104 + 64i) >> 3u)];
            let _e126 = bitcast<vec4<f32>>(vec4<u32>(_e120));
            let _e127 = bitcast<vec4<f32>>(vec4<u32>((_e120 >> vec4(32u))));
            let _e132 = arg1_[((_e104 + 128i) >> 3u)];
            let _e138 = bitcast<vec4<f32>>(vec4<u32>(_e132));
            let _e139 = bitcast<vec4<f32>>(vec4<u32>((_e132 >> vec4(32u))));
            let _e144 = arg1_[((_e104 + 192i) >> 3u)];
            let _e150 = bitcast<vec4<f32>>(vec4<u32>(_e144));
            let _e151 = bitcast<vec4<f32>>(vec4<u32>((_e144 >> vec4(32u))));
            let _e156 = arg1_[((_e104 + 256i) >> 3u)];
            let _e162 = bitcast<vec4<f32>>(vec4<u32>(_e156));
            let _e163 = bitcast<vec4<f32>>(vec4<u32>((_e156 >> vec4(32u))));
            let _e168 = arg1_[((_e104 + 320i) >> 3u)];
            let _e174 = bitcast<vec4<f32>>(vec4<u32>(_e168));
            let _e175 = bitcast<vec4<f32>>(vec4<u32>((_e168 >> vec4(32u))));
            let _e180 = arg1_[((_e104 + 384i) >> 3u)];
            let _e186 = bitcast<vec4<f32>>(vec4<u32>(_e180));
            let _e187 = bitcast<vec4<f32>>(vec4<u32>((_e180 >> vec4(32u))));
            let _e192 = arg1_[((_e104 + 448i) >> 3u)];
            let _e198 = bitcast<vec4<f32>>(vec4<u32>(_e192));
            let _e199 = bitcast<vec4<f32>>(vec4<u32>((_e192 >> vec4(32u))));
            let _e202 = subgroupShuffle(_e100.x, bitcast<u32>(0i));
            let _e203 = vec4(_e202);
            let _e210 = subgroupShuffle(_e101.x, bitcast<u32>(0i));
            let _e211 = vec4(_e210);
            let _e218 = subgroupShuffle(_e100.y, bitcast<u32>(0i));
            let _e219 = vec4(_e218);
            let _e226 = subgroupShuffle(_e101.y, bitcast<u32>(0i));
            let _e227 = vec4(_e226);
            let _e234 = subgroupShuffle(_e100.z, bitcast<u32>(0i));
            let _e235 = vec4(_e234);
            let _e242 = subgroupShuffle(_e101.z, bitcast<u32>(0i));
            let _e243 = vec4(_e242);
            let _e250 = subgroupShuffle(_e100.w, bitcast<u32>(0i));
            let _e251 = vec4(_e250);
            let _e258 = subgroupShuffle(_e101.w, bitcast<u32>(0i));
            let _e259 = vec4(_e258);
            let _e265 = subgroupShuffle(_e100.x, bitcast<u32>(1i));
            let _e266 = vec4(_e265);
            let _e272 = subgroupShuffle(_e101.x, bitcast<u32>(1i));
            let _e273 = vec4(_e272);
            let _e279 = subgroupShuffle(_e100.y, bitcast<u32>(1i));
            let _e280 = vec4(_e279);
            let _e286 = subgroupShuffle(_e101.y, bitcast<u32>(1i));
            let _e287 = vec4(_e286);
            let _e293 = subgroupShuffle(_e100.z, bitcast<u32>(1i));
            let _e294 = vec4(_e293);
            let _e300 = subgroupShuffle(_e101.z, bitcast<u32>(1i));
            let _e301 = vec4(_e300);
            let _e307 = subgroupShuffle(_e100.w, bitcast<u32>(1i));
            let _e308 = vec4(_e307);
            let _e314 = subgroupShuffle(_e101.w, bitcast<u32>(1i));
            let _e315 = vec4(_e314);
            let _e321 = subgroupShuffle(_e100.x, bitcast<u32>(2i));
            let _e322 = vec4(_e321);
            let _e328 = subgroupShuffle(_e101.x, bitcast<u32>(2i));
            let _e329 = vec4(_e328);
            let _e335 = subgroupShuffle(_e100.y, bitcast<u32>(2i));
            let _e336 = vec4(_e335);
            let _e342 = subgroupShuffle(_e101.y, bitcast<u32>(2i));
            let _e343 = vec4(_e342);
            let _e349 = subgroupShuffle(_e100.z, bitcast<u32>(2i));
            let _e350 = vec4(_e349);
            let _e356 = subgroupShuffle(_e101.z, bitcast<u32>(2i));
            let _e357 = vec4(_e356);
            let _e363 = subgroupShuffle(_e100.w, bitcast<u32>(2i));
            let _e364 = vec4(_e363);
            let _e370 = subgroupShuffle(_e101.w, bitcast<u32>(2i));
            let _e371 = vec4(_e370);
            let _e377 = subgroupShuffle(_e100.x, bitcast<u32>(3i));
            let _e378 = vec4(_e377);
            let _e384 = subgroupShuffle(_e101.x, bitcast<u32>(3i));
            let _e385 = vec4(_e384);
            let _e391 = subgroupShuffle(_e100.y, bitcast<u32>(3i));
            let _e392 = vec4(_e391);
            let _e398 = subgroupShuffle(_e101.y, bitcast<u32>(3i));
            let _e399 = vec4(_e398);
            let _e405 = subgroupShuffle(_e100.z, bitcast<u32>(3i));
            let _e406 = vec4(_e405);
            let _e412 = subgroupShuffle(_e101.z, bitcast<u32>(3i));
            let _e413 = vec4(_e412);
            let _e419 = subgroupShuffle(_e100.w, bitcast<u32>(3i));
            let _e420 = vec4(_e419);
            let _e426 = subgroupShuffle(_e101.w, bitcast<u32>(3i));
            let _e427 = vec4(_e426);
            local_10 = ((((((((_e81 + (_e203 * _e114)) + (_e211 * _e126)) + (_e219 * _e138)) + (_e227 * _e150)) + (_e235 * _e162)) + (_e243 * _e174)) + (_e251 * _e186)) + (_e259 * _e198));
            local_11 = ((((((((_e82 + (_e203 * _e115)) + (_e211 * _e127)) + (_e219 * _e139)) + (_e227 * _e151)) + (_e235 * _e163)) + (_e243 * _e175)) + (_e251 * _e187)) + (_e259 * _e199));
            local_12 = ((((((((_e83 + (_e266 * _e114)) + (_e273 * _e126)) + (_e280 * _e138)) + (_e287 * _e150)) + (_e294 * _e162)) + (_e301 * _e174)) + (_e308 * _e186)) + (_e315 * _e198));
            local_13 = ((((((((_e84 + (_e266 * _e115)) + (_e273 * _e127)) + (_e280 * _e139)) + (_e287 * _e151)) + (_e294 * _e163)) + (_e301 * _e175)) + (_e308 * _e187)) + (_e315 * _e199));
            local_14 = ((((((((_e85 + (_e322 * _e114)) + (_e329 * _e126)) + (_e336 * _e138)) + (_e343 * _e150)) + (_e350 * _e162)) + (_e357 * _e174)) + (_e364 * _e186)) + (_e371 * _e198));
            local_15 = ((((((((_e86 + (_e322 * _e115)) + (_e329 * _e127)) + (_e336 * _e139)) + (_e343 * _e151)) + (_e350 * _e163)) + (_e357 * _e175)) + (_e364 * _e187)) + (_e371 * _e199));
            local_16 = ((((((((_e87 + (_e378 * _e114)) + (_e385 * _e126)) + (_e392 * _e138)) + (_e399 * _e150)) + (_e406 * _e162)) + (_e413 * _e174)) + (_e420 * _e186)) + (_e427 * _e198));
            local_17 = ((((((((_e88 + (_e378 * _e115)) + (_e385 * _e127)) + (_e392 * _e139)) + (_e399 * _e151)) + (_e406 * _e163)) + (_e413 * _e175)) + (_e420 * _e187)) + (_e427 * _e199));
            continuing {
                let _e432 = local_9;
                local_9 = (_e432 + 8i);
            }
        }
        let _e434 = local_10;
        let _e435 = local_11;
        let _e436 = local_12;
        let _e437 = local_13;
        let _e438 = local_14;
        let _e439 = local_15;
        let _e440 = local_16;
        let _e441 = local_17;
        local_1 = _e434;
        local_2 = _e435;
        local_3 = _e436;
        local_4 = _e437;
        local_5 = _e438;
        local_6 = _e439;
        local_7 = _e440;
        local_8 = _e441;
        continuing {
            let _e442 = local;
            local = (_e442 + 1i);
        }
    }
    let _e444 = local_1;
    let _e445 = local_2;
    let _e446 = local_3;
    let _e447 = local_4;
    let _e448 = local_5;
    let _e449 = local_6;
    let _e450 = local_7;
    let _e451 = local_8;
    let _e455 = arg3_[(_e48 >> 3u)];
    let _e461 = bitcast<vec4<f32>>(vec4<u32>(_e455));
    let _e462 = bitcast<vec4<f32>>(vec4<u32>((_e455 >> vec4(32u))));
    let _e463 = (_e444 + _e461);
    let _e464 = (_e445 + _e462);
    let _e483 = (_e446 + _e461);
    let _e484 = (_e447 + _e462);
    let _e503 = (_e448 + _e461);
    let _e504 = (_e449 + _e462);
    let _e523 = (_e450 + _e461);
    let _e524 = (_e451 + _e462);
    arg2_[((_e40 + _e44) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e463, _e5), _e463, ((bitcast<vec4<u32>>(_e463) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e464, _e5), _e464, ((bitcast<vec4<u32>>(_e464) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e40 + 64i) + _e44) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e483, _e5), _e483, ((bitcast<vec4<u32>>(_e483) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e484, _e5), _e484, ((bitcast<vec4<u32>>(_e484) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e40 + 128i) + _e44) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e503, _e5), _e503, ((bitcast<vec4<u32>>(_e503) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e504, _e5), _e504, ((bitcast<vec4<u32>>(_e504) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e40 + 192i) + _e44) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e523, _e5), _e523, ((bitcast<vec4<u32>>(_e523) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e524, _e5), _e524, ((bitcast<vec4<u32>>(_e524) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
}
