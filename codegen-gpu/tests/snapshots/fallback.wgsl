@group(0) @binding(0) 
var<storage> arg0_: array<f32>;
@group(0) @binding(1) 
var<storage, read_write> arg1_: array<f32>;

@compute @workgroup_size(5, 1, 1) 
fn kernel(@builtin(local_invocation_id) invocation: vec3<u32>) {
    var local: i32;

    local = 0i;
    loop {
        let _e11 = local;
        if (_e11 < 13i) {
        } else {
            break;
        }
        let _e14 = ((_e11 * 5i) + i32(invocation.x));
        if (_e14 < 64i) {
            let _e17 = arg0_[_e14];
            arg1_[_e14] = exp(_e17);
        }
        continuing {
            let _e20 = local;
            local = (_e20 + 1i);
        }
    }
}
