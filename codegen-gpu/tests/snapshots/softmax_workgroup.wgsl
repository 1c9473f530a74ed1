@group(0) @binding(0) 
var<storage> arg0_: array<vec4<f32>>;
@group(0) @binding(1) 
var<storage, read_write> arg1_: array<vec4<f32>>;
var<workgroup> shared_: array<f32, 64>;

@compute @workgroup_size(64, 1, 1) 
fn kernel(@builtin(workgroup_id) workgroup_: vec3<u32>, @builtin(local_invocation_id) invocation: vec3<u32>) {
    let _e18 = i32(invocation.x);
    let _e22 = bitcast<i32>((bitcast<u32>(_e18) % bitcast<u32>(16i)));
    let _e26 = bitcast<i32>((bitcast<u32>(_e18) / bitcast<u32>(16i)));
    let _e33 = (((i32(workgroup_.x) * 192i) + (min(_e26, 2i) * 64i)) + (_e22 * 4i));
    let _e37 = arg0_[(_e33 >> 2u)];
    let _e54 = select(select(max(_e37.x, _e37.z), _e37.z, ((bitcast<u32>(_e37.z) & 2147483647u) > 2139095040u)), _e37.x, ((bitcast<u32>(_e37.x) & 2147483647u) > 2139095040u));
    let _e67 = select(select(max(_e37.y, _e37.w), _e37.w, ((bitcast<u32>(_e37.w) & 2147483647u) > 2139095040u)), _e37.y, ((bitcast<u32>(_e37.y) & 2147483647u) > 2139095040u));
    shared_[_e18] = select(select(max(_e54, _e67), _e67, ((bitcast<u32>(_e67) & 2147483647u) > 2139095040u)), _e54, ((bitcast<u32>(_e54) & 2147483647u) > 2139095040u));
    workgroupBarrier();
    let _e82 = (_e22 < 4i);
    if _e82 {
        let _e84 = shared_[_e18];
        let _e87 = shared_[(_e18 + 4i)];
        let _e100 = select(select(max(_e84, _e87), _e87, ((bitcast<u32>(_e87) & 2147483647u) > 2139095040u)), _e84, ((bitcast<u32>(_e84) & 2147483647u) > 2139095040u));
        let _e103 = shared_[(_e18 + 8i)];
        let _e116 = select(select(max(_e100, _e103), _e103, ((bitcast<u32>(_e103) & 2147483647u) > 2139095040u)), _e100, ((bitcast<u32>(_e100) & 2147483647u) > 2139095040u));
        let _e119 = shared_[(_e18 + 12i)];
        shared_[_e18] = select(select(max(_e116, _e119), _e119, ((bitcast<u32>(_e119) & 2147483647u) > 2139095040u)), _e116, ((bitcast<u32>(_e116) & 2147483647u) > 2139095040u));
    }
    workgroupBarrier();
    let _e134 = (_e22 < 1i);
    if _e134 {
        let _e136 = shared_[_e18];
        let _e139 = shared_[(_e18 + 1i)];
        let _e152 = select(select(max(_e136, _e139), _e139, ((bitcast<u32>(_e139) & 2147483647u) > 2139095040u)), _e136, ((bitcast<u32>(_e136) & 2147483647u) > 2139095040u));
        let _e155 = shared_[(_e18 + 2i)];
        let _e168 = select(select(max(_e152, _e155), _e155, ((bitcast<u32>(_e155) & 2147483647u) > 2139095040u)), _e152, ((bitcast<u32>(_e152) & 2147483647u) > 2139095040u));
        let _e171 = shared_[(_e18 + 3i)];
        shared_[_e18] = select(select(max(_e168, _e171), _e171, ((bitcast<u32>(_e171) & 2147483647u) > 2139095040u)), _e168, ((bitcast<u32>(_e168) & 2147483647u) > 2139095040u));
    }
    workgroupBarrier();
    let _e186 = (_e18 - _e22);
    let _e188 = shared_[_e186];
    let _e191 = exp((_e37 - vec4(_e188)));
    workgroupBarrier();
    shared_[_e18] = ((_e191.x + _e191.z) + (_e191.y + _e191.w));
    workgroupBarrier();
    if _e82 {
        let _e201 = shared_[_e18];
        let _e204 = shared_[(_e18 + 4i)];
        let _e208 = shared_[(_e18 + 8i)];
        let _e212 = shared_[(_e18 + 12i)];
        shared_[_e18] = (((_e201 + _e204) + _e208) + _e212);
    }
    workgroupBarrier();
    if _e134 {
        let _e216 = shared_[_e18];
        let _e219 = shared_[(_e18 + 1i)];
        let _e223 = shared_[(_e18 + 2i)];
        let _e227 = shared_[(_e18 + 3i)];
        shared_[_e18] = (((_e216 + _e219) + _e223) + _e227);
    }
    workgroupBarrier();
    let _e231 = shared_[_e186];
    if (_e26 < 3i) {
        arg1_[(_e33 >> 2u)] = (_e191 / vec4((_e231 + 0f)));
    }
}
