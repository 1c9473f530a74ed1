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
    let _e23 = i32(workgroup_.x);
    let _e25 = i32(workgroup_.y);
    let _e27 = i32(workgroup_.z);
    let _e28 = (_e23 * 64i);
    let _e38 = (((_e27 * 128i) + (_e25 * 128i)) + _e28);
    let _e41 = i32(invocation.x);
    let _e42 = (_e41 * 8i);
    local = 0i;
    local_1 = _e5;
    local_2 = _e5;
    local_3 = _e5;
    local_4 = _e5;
    loop {
        let _e53 = local;
        if (_e53 < 16i) {
        } else {
            break;
        }
        let _e55 = local_1;
        let _e56 = local_2;
        let _e57 = local_3;
        let _e58 = local_4;
        let _e63 = arg0_[(((((_e27 * 32i) + (_e25 * 32i)) + (min(_e41, 1i) * 16i)) + _e53) >> 3u)];
        let _e69 = bitcast<vec4<f32>>(vec4<u32>(_e63));
        let _e70 = bitcast<vec4<f32>>(vec4<u32>((_e63 >> vec4(32u))));
        let _e71 = ((((_e27 * 1024i) + (_e23 * 1024i)) + (_e41 * 128i)) + _e53);
        let _e75 = arg1_[(_e71 >> 3u)];
        let _e81 = bitcast<vec4<f32>>(vec4<u32>(_e75));
        let _e82 = bitcast<vec4<f32>>(vec4<u32>((_e75 >> vec4(32u))));
        let _e89 = arg1_[((_e71 >> 3u) + 2i)];
        let _e95 = bitcast<vec4<f32>>(vec4<u32>(_e89));
        let _e96 = bitcast<vec4<f32>>(vec4<u32>((_e89 >> vec4(32u))));
        let _e103 = arg1_[((_e71 >> 3u) + 4i)];
        let _e109 = bitcast<vec4<f32>>(vec4<u32>(_e103));
        let _e110 = bitcast<vec4<f32>>(vec4<u32>((_e103 >> vec4(32u))));
        let _e117 = arg1_[((_e71 >> 3u) + 6i)];
        let _e123 = bitcast<vec4<f32>>(vec4<u32>(_e117));
        let _e124 = bitcast<vec4<f32>>(vec4<u32>((_e117 >> vec4(32u))));
        let _e131 = arg1_[((_e71 >> 3u) + 8i)];
        let _e137 = bitcast<vec4<f32>>(vec4<u32>(_e131));
        let _e138 = bitcast<vec4<f32>>(vec4<u32>((_e131 >> vec4(32u))));
        let _e145 = arg1_[((_e71 >> 3u) + 10i)];
        let _e151 = bitcast<vec4<f32>>(vec4<u32>(_e145));
        let _e152 = bitcast<vec4<f32>>(vec4<u32>((_e145 >> vec4(32u))));
        let _e159 = arg1_[((_e71 >> 3u) + 12i)];
        let _e165 = bitcast<vec4<f32>>(vec4<u32>(_e159));
        let _e166 = bitcast<vec4<f32>>(vec4<u32>((_e159 >> vec4(32u))));
        let _e173 = arg1_[((_e71 >> 3u) + 14i)];
        let _e179 = bitcast<vec4<f32>>(vec4<u32>(_e173));
        let _e180 = bitcast<vec4<f32>>(vec4<u32>((_e173 >> vec4(32u))));
        let _e189 = vec4<f32>(_e81.x, _e109.x, _e137.x, _e165.x);
        let _e190 = vec4<f32>(_e95.x, _e123.x, _e151.x, _e179.x);
        let _e199 = vec4<f32>(_e82.x, _e110.x, _e138.x, _e166.x);
        let _e200 = vec4<f32>(_e96.x, _e124.x, _e152.x, _e180.x);
        let _e209 = vec4<f32>(_e81.y, _e109.y, _e137.y, _e165.y);
        let _e210 = vec4<f32>(_e95.y, _e123.y, _e151.y, _e179.y);
        let _e219 = vec4<f32>(_e82.y, _e110.y, _e138.y, _e166.y);
        let _e220 = vec4<f32>(_e96.y, _e124.y, _e152.y, _e180.y);
        let _e229 = vec4<f32>(_e81.z, _e109.z, _e137.z, _e165.z);
        let _e230 = vec4<f32>(_e95.z, _e123.z, _e151.z, _e179.z);
        let _e239 = vec4<f32>(_e82.z, _e110.z, _e138.z, _e166.z);
        let _e240 = vec4<f32>(_e96.z, _e124.z, _e152.z, _e180.z);
        let _e249 = vec4<f32>(_e81.w, _e109.w, _e137.w, _e165.w);
        let _e250 = vec4<f32>(_e95.w, _e123.w, _e151.w, _e179.w);
        let _e259 = vec4<f32>(_e82.w, _e110.w, _e138.w, _e166.w);
        let _e260 = vec4<f32>(_e96.w, _e124.w, _e152.w, _e180.w);
        let _e263 = subgroupShuffle(_e69.x, bitcast<u32>(0i));
        let _e264 = vec4(_e263);
        let _e271 = subgroupShuffle(_e70.x, bitcast<u32>(0i));
        let _e272 = vec4(_e271);
        let _e279 = subgroupShuffle(_e69.y, bitcast<u32>(0i));
        let _e280 = vec4(_e279);
        let _e287 = subgroupShuffle(_e70.y, bitcast<u32>(0i));
        let _e288 = vec4(_e287);
        let _e295 = subgroupShuffle(_e69.z, bitcast<u32>(0i));
        let _e296 = vec4(_e295);
        let _e303 = subgroupShuffle(_e70.z, bitcast<u32>(0i));
        let _e304 = vec4(_e303);
        let _e311 = subgroupShuffle(_e69.w, bitcast<u32>(0i));
        let _e312 = vec4(_e311);
        let _e319 = subgroupShuffle(_e70.w, bitcast<u32>(0i));
        let _e320 = vec4(_e319);
        let _e326 = subgroupShuffle(_e69.x, bitcast<u32>(1i));
        let _e327 = vec4(_e326);
        let _e333 = subgroupShuffle(_e70.x, bitcast<u32>(1i));
        let _e334 = vec4(_e333);
        let _e340 = subgroupShuffle(_e69.y, bitcast<u32>(1i));
        let _e341 = vec4(_e340);
        let _e347 = subgroupShuffle(_e70.y, bitcast<u32>(1i));
        let _e348 = vec4(_e347);
        let _e354 = subgroupShuffle(_e69.z, bitcast<u32>(1i));
        let _e355 = vec4(_e354);
        let _e361 = subgroupShuffle(_e70.z, bitcast<u32>(1i));
        let _e362 = vec4(_e361);
        let _e368 = subgroupShuffle(_e69.w, bitcast<u32>(1i));
        let _e369 = vec4(_e368);
        let _e375 = subgroupShuffle(_e70.w, bitcast<u32>(1i));
        let _e376 = vec4(_e375);
        local_1 = ((((((((_e55 + (_e264 * _e189)) + (_e272 * _e199)) + (_e280 * _e209)) + (_e288 * _e219)) + (_e296 * _e229)) + (_e304 * _e239)) + (_e312 * _e249)) + (_e320 * _e259));
        local_2 = ((((((((_e56 + (_e264 * _e190)) + (_e272 * _e200)) + (_e280 * _e210)) + (_e288 * _e220)) + (_e296 * _e230)) + (_e304 * _e240)) + (_e312 * _e250)) + (_e320 * _e260));
        local_3 = ((((((((_e57 + (_e327 * _e189)) + (_e334 * _e199)) + (_e341 * _e209)) + (_e348 * _e219)) + (_e355 * _e229)) + (_e362 * _e239)) + (_e369 * _e249)) + (_e376 * _e259));
        local_4 = ((((((((_e58 + (_e327 * _e190)) + (_e334 * _e200)) + (_e341 * _e210)) + (_e348 * _e220)) + (_e355 * _e230)) + (_e362 * _e240)) + (_e369 * _e250)) + (_e376 * _e260));
        continuing {
            let _e381 = local;
            local = (_e381 + 8i);
        }
    }
    let _e383 = local_1;
    let _e384 = local_2;
    let _e385 = local_3;
    let _e386 = local_4;
    let _e391 = arg3_[((_e28 + _e42) >> 3u)];
    let _e397 = bitcast<vec4<f32>>(vec4<u32>(_e391));
    let _e398 = bitcast<vec4<f32>>(vec4<u32>((_e391 >> vec4(32u))));
    let _e399 = (_e383 + _e397);
    let _e400 = (_e384 + _e398);
    let _e419 = (_e385 + _e397);
    let _e420 = (_e386 + _e398);
    arg2_[((_e38 + _e42) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e399, _e5), _e399, ((bitcast<vec4<u32>>(_e399) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e400, _e5), _e400, ((bitcast<vec4<u32>>(_e400) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e38 + 64i) + _e42) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e419, _e5), _e419, ((bitcast<vec4<u32>>(_e419) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e420, _e5), _e420, ((bitcast<vec4<u32>>(_e420) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
}
