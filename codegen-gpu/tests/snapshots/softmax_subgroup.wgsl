@group(0) @binding(0) 
var<storage> arg0_: array<vec4<u64>>;
@group(0) @binding(1) 
var<storage, read_write> arg1_: array<vec4<u64>>;

@compute @workgroup_size(8, 1, 1) 
fn kernel(@builtin(workgroup_id) workgroup_: vec3<u32>, @builtin(local_invocation_id) invocation: vec3<u32>) {
    var local: i32;

    let _e18 = (i32(workgroup_.x) * 192i);
    local = 0i;
    loop {
        let _e23 = local;
        if (_e23 < 2i) {
        } else {
            break;
        }
        let _e25 = (_e23 * 2i);
        if (_e25 < 3i) {
            let _e27 = (_e25 + 1i);
            let _e30 = (i32(invocation.x) * 8i);
            let _e33 = ((_e18 + (_e23 * 128i)) + _e30);
            let _e37 = arg0_[(_e33 >> 3u)];
            let _e43 = bitcast<vec4<f32>>(vec4<u32>(_e37));
            let _e44 = bitcast<vec4<f32>>(vec4<u32>((_e37 >> vec4(32u))));
            let _e47 = ((_e18 + (min(_e27, 2i) * 64i)) + _e30);
            let _e51 = arg0_[(_e47 >> 3u)];
            let _e57 = bitcast<vec4<f32>>(vec4<u32>(_e51));
            let _e58 = bitcast<vec4<f32>>(vec4<u32>((_e51 >> vec4(32u))));
            let _e79 = select(select(max(_e43.x, _e43.z), _e43.z, ((bitcast<u32>(_e43.z) & 2147483647u) > 2139095040u)), _e43.x, ((bitcast<u32>(_e43.x) & 2147483647u) > 2139095040u));
            let _e92 = select(select(max(_e44.x, _e44.z), _e44.z, ((bitcast<u32>(_e44.z) & 2147483647u) > 2139095040u)), _e44.x, ((bitcast<u32>(_e44.x) & 2147483647u) > 2139095040u));
            let _e105 = select(select(max(_e43.y, _e43.w), _e43.w, ((bitcast<u32>(_e43.w) & 2147483647u) > 2139095040u)), _e43.y, ((bitcast<u32>(_e43.y) & 2147483647u) > 2139095040u));
            let _e118 = select(select(max(_e44.y, _e44.w), _e44.w, ((bitcast<u32>(_e44.w) & 2147483647u) > 2139095040u)), _e44.y, ((bitcast<u32>(_e44.y) & 2147483647u) > 2139095040u));
            let _e131 = select(select(max(_e79, _e105), _e105, ((bitcast<u32>(_e105) & 2147483647u) > 2139095040u)), _e79, ((bitcast<u32>(_e79) & 2147483647u) > 2139095040u));
            let _e144 = select(select(max(_e92, _e118), _e118, ((bitcast<u32>(_e118) & 2147483647u) > 2139095040u)), _e92, ((bitcast<u32>(_e92) & 2147483647u) > 2139095040u));
            let _e157 = select(select(max(_e131, _e144), _e144, ((bitcast<u32>(_e144) & 2147483647u) > 2139095040u)), _e131, ((bitcast<u32>(_e131) & 2147483647u) > 2139095040u));
            let _e178 = select(select(max(_e57.x, _e57.z), _e57.z, ((bitcast<u32>(_e57.z) & 2147483647u) > 2139095040u)), _e57.x, ((bitcast<u32>(_e57.x) & 2147483647u) > 2139095040u));
            let _e191 = select(select(max(_e58.x, _e58.z), _e58.z, ((bitcast<u32>(_e58.z) & 2147483647u) > 2139095040u)), _e58.x, ((bitcast<u32>(_e58.x) & 2147483647u) > 2139095040u));
            let _e204 = select(select(max(_e57.y, _e57.w), _e57.w, ((bitcast<u32>(_e57.w) & 2147483647u) > 2139095040u)), _e57.y, ((bitcast<u32>(_e57.y) & 2147483647u) > 2139095040u));
            let _e217 = select(select(max(_e58.y, _e58.w), _e58.w, ((bitcast<u32>(_e58.w) & 2147483647u) > 2139095040u)), _e58.y, ((bitcast<u32>(_e58.y) & 2147483647u) > 2139095040u));
            let _e230 = select(select(max(_e178, _e204), _e204, ((bitcast<u32>(_e204) & 2147483647u) > 2139095040u)), _e178, ((bitcast<u32>(_e178) & 2147483647u) > 2139095040u));
            let _e243 = select(select(max(_e191, _e217), _e217, ((bitcast<u32>(_e217) & 2147483647u) > 2139095040u)), _e191, ((bitcast<u32>(_e191) & 2147483647u) > 2139095040u));
            let _e256 = select(select(max(_e230, _e243), _e243, ((bitcast<u32>(_e243) & 2147483647u) > 2139095040u)), _e230, ((bitcast<u32>(_e230) & 2147483647u) > 2139095040u));
            let _e258 = subgroupShuffleXor(_e157, bitcast<u32>(1i));
            let _e271 = select(select(max(_e157, _e258), _e258, ((bitcast<u32>(_e258) & 2147483647u) > 2139095040u)), _e157, ((bitcast<u32>(_e157) & 2147483647u) > 2139095040u));
            let _e273 = subgroupShuffleXor(_e256, bitcast<u32>(1i));
            let _e286 = select(select(max(_e256, _e273), _e273, ((bitcast<u32>(_e273) & 2147483647u) > 2139095040u)), _e256, ((bitcast<u32>(_e256) & 2147483647u) > 2139095040u));
            let _e288 = subgroupShuffleXor(_e271, bitcast<u32>(2i));
            let _e301 = select(select(max(_e271, _e288), _e288, ((bitcast<u32>(_e288) & 2147483647u) > 2139095040u)), _e271, ((bitcast<u32>(_e271) & 2147483647u) > 2139095040u));
            let _e303 = subgroupShuffleXor(_e286, bitcast<u32>(2i));
            let _e316 = select(select(max(_e286, _e303), _e303, ((bitcast<u32>(_e303) & 2147483647u) > 2139095040u)), _e286, ((bitcast<u32>(_e286) & 2147483647u) > 2139095040u));
            let _e318 = subgroupShuffleXor(_e301, bitcast<u32>(4i));
            let _e333 = subgroupShuffleXor(_e316, bitcast<u32>(4i));
            let _e347 = vec4(select(select(max(_e301, _e318), _e318, ((bitcast<u32>(_e318) & 2147483647u) > 2139095040u)), _e301, ((bitcast<u32>(_e301) & 2147483647u) > 2139095040u)));
            let _e350 = exp((_e43 - _e347));
            let _e351 = exp((_e44 - _e347));
            let _e352 = vec4(select(select(max(_e316, _e333), _e333, ((bitcast<u32>(_e333) & 2147483647u) > 2139095040u)), _e316, ((bitcast<u32>(_e316) & 2147483647u) > 2139095040u)));
            let _e355 = exp((_e57 - _e352));
            let _e356 = exp((_e58 - _e352));
            let _e371 = (((_e350.x + _e350.z) + (_e350.y + _e350.w)) + ((_e351.x + _e351.z) + (_e351.y + _e351.w)));
            let _e386 = (((_e355.x + _e355.z) + (_e355.y + _e355.w)) + ((_e356.x + _e356.z) + (_e356.y + _e356.w)));
            let _e388 = subgroupShuffleXor(_e371, bitcast<u32>(1i));
            let _e389 = (_e371 + _e388);
            let _e391 = subgroupShuffleXor(_e386, bitcast<u32>(1i));
            let _e392 = (_e386 + _e391);
            let _e394 = subgroupShuffleXor(_e389, bitcast<u32>(2i));
            let _e395 = (_e389 + _e394);
            let _e397 = subgroupShuffleXor(_e392, bitcast<u32>(2i));
            let _e398 = (_e392 + _e397);
            let _e400 = subgroupShuffleXor(_e395, bitcast<u32>(4i));
            let _e403 = subgroupShuffleXor(_e398, bitcast<u32>(4i));
            let _e407 = vec4(((_e395 + _e400) + 0f));
            let _e410 = vec4(((_e398 + _e403) + 0f));
            arg1_[(_e33 >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>((_e350 / _e407))) | (vec4<u64>(bitcast<vec4<u32>>((_e351 / _e407))) << vec4(32u)));
            if (_e27 < 3i) {
                arg1_[(_e47 >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>((_e355 / _e410))) | (vec4<u64>(bitcast<vec4<u32>>((_e356 / _e410))) << vec4(32u)));
            }
        }
        continuing {
            let _e435 = local;
            local = (_e435 + 1i);
        }
    }
}
