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
        let _e87 = arg1_[((_e71 + 16i) >> 3u)];
        let _e93 = bitcast<vec4<f32>>(vec4<u32>(_e87));
        let _e94 = bitcast<vec4<f32>>(vec4<u32>((_e87 >> vec4(32u))));
        let _e99 = arg1_[((_e71 + 32i) >> 3u)];
        let _e105 = bitcast<vec4<f32>>(vec4<u32>(_e99));
        let _e106 = bitcast<vec4<f32>>(vec4<u32>((_e99 >> vec4(32u))));
        let _e111 = arg1_[((_e71 + 48i) >> 3u)];
        let _e117 = bitcast<vec4<f32>>(vec4<u32>(_e111));
        let _e118 = bitcast<vec4<f32>>(vec4<u32>((_e111 >> vec4(32u))));
        let _e123 = arg1_[((_e71 + 64i) >> 3u)];
        let _e129 = bitcast<vec4<f32>>(vec4<u32>(_e123));
        let _e130 = bitcast<vec4<f32>>(vec4<u32>((_e123 >> vec4(32u))));
        let _e135 = arg1_[((_e71 + 80i) >> 3u)];
        let _e141 = bitcast<vec4<f32>>(vec4<u32>(_e135));
        let _e142 = bitcast<vec4<f32>>(vec4<u32>((_e135 >> vec4(32u))));
        let _e147 = arg1_[((_e71 + 96i) >> 3u)];
        let _e153 = bitcast<vec4<f32>>(vec4<u32>(_e147));
        let _e154 = bitcast<vec4<f32>>(vec4<u32>((_e147 >> vec4(32u))));
        let _e159 = arg1_[((_e71 + 112i) >> 3u)];
        let _e165 = bitcast<vec4<f32>>(vec4<u32>(_e159));
        let _e166 = bitcast<vec4<f32>>(vec4<u32>((_e159 >> vec4(32u))));
        let _e175 = vec4<f32>(_e81.x, _e105.x, _e129.x, _e153.x);
        let _e176 = vec4<f32>(_e93.x, _e117.x, _e141.x, _e165.x);
        let _e185 = vec4<f32>(_e82.x, _e106.x, _e130.x, _e154.x);
        let _e186 = vec4<f32>(_e94.x, _e118.x, _e142.x, _e166.x);
        let _e195 = vec4<f32>(_e81.y, _e105.y, _e129.y, _e153.y);
        let _e196 = vec4<f32>(_e93.y, _e117.y, _e141.y, _e165.y);
        let _e205 = vec4<f32>(_e82.y, _e106.y, _e130.y, _e154.y);
        let _e206 = vec4<f32>(_e94.y, _e118.y, _e142.y, _e166.y);
        let _e215 = vec4<f32>(_e81.z, _e105.z, _e129.z, _e153.z);
        let _e216 = vec4<f32>(_e93.z, _e117.z, _e141.z, _e165.z);
        let _e225 = vec4<f32>(_e82.z, _e106.z, _e130.z, _e154.z);
        let _e226 = vec4<f32>(_e94.z, _e118.z, _e142.z, _e166.z);
        let _e235 = vec4<f32>(_e81.w, _e105.w, _e129.w, _e153.w);
        let _e236 = vec4<f32>(_e93.w, _e117.w, _e141.w, _e165.w);
        let _e245 = vec4<f32>(_e82.w, _e106.w, _e130.w, _e154.w);
        let _e246 = vec4<f32>(_e94.w, _e118.w, _e142.w, _e166.w);
        let _e249 = subgroupShuffle(_e69.x, bitcast<u32>(0i));
        let _e250 = vec4(_e249);
        let _e257 = subgroupShuffle(_e70.x, bitcast<u32>(0i));
        let _e258 = vec4(_e257);
        let _e265 = subgroupShuffle(_e69.y, bitcast<u32>(0i));
        let _e266 = vec4(_e265);
        let _e273 = subgroupShuffle(_e70.y, bitcast<u32>(0i));
        let _e274 = vec4(_e273);
        let _e281 = subgroupShuffle(_e69.z, bitcast<u32>(0i));
        let _e282 = vec4(_e281);
        let _e289 = subgroupShuffle(_e70.z, bitcast<u32>(0i));
        let _e290 = vec4(_e289);
        let _e297 = subgroupShuffle(_e69.w, bitcast<u32>(0i));
        let _e298 = vec4(_e297);
        let _e305 = subgroupShuffle(_e70.w, bitcast<u32>(0i));
        let _e306 = vec4(_e305);
        let _e312 = subgroupShuffle(_e69.x, bitcast<u32>(1i));
        let _e313 = vec4(_e312);
        let _e319 = subgroupShuffle(_e70.x, bitcast<u32>(1i));
        let _e320 = vec4(_e319);
        let _e326 = subgroupShuffle(_e69.y, bitcast<u32>(1i));
        let _e327 = vec4(_e326);
        let _e333 = subgroupShuffle(_e70.y, bitcast<u32>(1i));
        let _e334 = vec4(_e333);
        let _e340 = subgroupShuffle(_e69.z, bitcast<u32>(1i));
        let _e341 = vec4(_e340);
        let _e347 = subgroupShuffle(_e70.z, bitcast<u32>(1i));
        let _e348 = vec4(_e347);
        let _e354 = subgroupShuffle(_e69.w, bitcast<u32>(1i));
        let _e355 = vec4(_e354);
        let _e361 = subgroupShuffle(_e70.w, bitcast<u32>(1i));
        let _e362 = vec4(_e361);
        local_1 = ((((((((_e55 + (_e250 * _e175)) + (_e258 * _e185)) + (_e266 * _e195)) + (_e274 * _e205)) + (_e282 * _e215)) + (_e290 * _e225)) + (_e298 * _e235)) + (_e306 * _e245));
        local_2 = ((((((((_e56 + (_e250 * _e176)) + (_e258 * _e186)) + (_e266 * _e196)) + (_e274 * _e206)) + (_e282 * _e216)) + (_e290 * _e226)) + (_e298 * _e236)) + (_e306 * _e246));
        local_3 = ((((((((_e57 + (_e313 * _e175)) + (_e320 * _e185)) + (_e327 * _e195)) + (_e334 * _e205)) + (_e341 * _e215)) + (_e348 * _e225)) + (_e355 * _e235)) + (_e362 * _e245));
        local_4 = ((((((((_e58 + (_e313 * _e176)) + (_e320 * _e186)) + (_e327 * _e196)) + (_e334 * _e206)) + (_e341 * _e216)) + (_e348 * _e226)) + (_e355 * _e236)) + (_e362 * _e246));
        continuing {
            let _e367 = local;
            local = (_e367 + 8i);
        }
    }
    let _e369 = local_1;
    let _e370 = local_2;
    let _e371 = local_3;
    let _e372 = local_4;
    let _e377 = arg3_[((_e28 + _e42) >> 3u)];
    let _e383 = bitcast<vec4<f32>>(vec4<u32>(_e377));
    let _e384 = bitcast<vec4<f32>>(vec4<u32>((_e377 >> vec4(32u))));
    let _e385 = (_e369 + _e383);
    let _e386 = (_e370 + _e384);
    let _e405 = (_e371 + _e383);
    let _e406 = (_e372 + _e384);
    arg2_[((_e38 + _e42) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e385, _e5), _e385, ((bitcast<vec4<u32>>(_e385) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e386, _e5), _e386, ((bitcast<vec4<u32>>(_e386) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
    arg2_[(((_e38 + 64i) + _e42) >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(select(max(_e405, _e5), _e405, ((bitcast<vec4<u32>>(_e405) & vec4(2147483647u)) > vec4(2139095040u))))) | (vec4<u64>(bitcast<vec4<u32>>(select(max(_e406, _e5), _e406, ((bitcast<vec4<u32>>(_e406) & vec4(2147483647u)) > vec4(2139095040u))))) << vec4(32u)));
}
