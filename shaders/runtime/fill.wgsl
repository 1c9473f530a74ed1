// Fills a range with a repeated 32-bit pattern.
// The pattern is a pipeline constant: programs fill with few values, so that few pipelines do.
override pattern: u32;

@group(0) @binding(0) var<storage, read_write> dst: array<u32>;

@compute @workgroup_size(256)
fn fill(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let words = arrayLength(&dst);
    // A grid has at most 65,535 groups per dimension, so that an invocation may have several words.
    for (var i = id.x; i < words; i += groups.x * 256u) {
        dst[i] = pattern;
    }
}
