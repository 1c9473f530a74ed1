// Copies between places that are not whole words, or that are in one buffer and do not overlap.
struct Range {
    // Bytes from the start of what is bound.
    src: u32,
    dst: u32,
    bytes: u32,
}
var<immediate> range: Range;

@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;

@compute @workgroup_size(256)
fn copy_bytes(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let first = range.dst / 4u;
    let words = (range.dst + range.bytes + 3u) / 4u - first;
    if ((range.src | range.dst | range.bytes) & 3u) == 0u {
        for (var i = id.x; i < words; i += groups.x * 256u) {
            dst[first + i] = src[range.src / 4u + i];
        }
        return;
    }
    // A grid has at most 65,535 groups per dimension, so that an invocation may have several words.
    for (var i = id.x; i < words; i += groups.x * 256u) {
        // Bytes of the word that lie outside of the range stay.
        var word = dst[first + i];
        for (var b = 0u; b < 4u; b++) {
            let at = (first + i) * 4u + b;
            if at >= range.dst && at < range.dst + range.bytes {
                let place = at - range.dst + range.src;
                let byte = (src[place / 4u] >> (8u * (place % 4u))) & 0xffu;
                word = (word & ~(0xffu << (8u * b))) | (byte << (8u * b));
            }
        }
        dst[first + i] = word;
    }
}
