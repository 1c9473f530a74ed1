@group(0) @binding(0) 
var<storage> arg0_: array<vec4<u64>>;
@group(0) @binding(1) 
var<storage, read_write> arg1_: array<vec4<u64>>;

@compute @workgroup_size(4, 1, 1) 
fn kernel(@builtin(local_invocation_id) invocation: vec3<u32>) {
    var local: i32;

    local = 0i;
    loop {
        let _e11 = local;
        if (_e11 < 2i) {
        } else {
            break;
        }
        let _e15 = (((_e11 * 4i) + i32(invocation.x)) * 8i);
        let _e19 = arg0_[(_e15 >> 3u)];
        arg1_[(_e15 >> 3u)] = (vec4<u64>(bitcast<vec4<u32>>(exp(bitcast<vec4<f32>>(vec4<u32>(_e19))))) | (vec4<u64>(bitcast<vec4<u32>>(exp(bitcast<vec4<f32>>(vec4<u32>((_e19 >> vec4(32u))))))) << vec4(32u)));
        continuing {
            let _e40 = local;
            local = (_e40 + 1i);
        }
    }
}
