// Writes a number of up to 8 bytes, which may begin at any byte: of three words, the masked bits.
struct Number {
    word: u32,
    mask0: u32,
    mask1: u32,
    mask2: u32,
    value0: u32,
    value1: u32,
    value2: u32,
}
var<immediate> number: Number;

@group(0) @binding(0) var<storage, read_write> dst: array<u32>;

@compute @workgroup_size(1)
fn write() {
    dst[number.word] = (dst[number.word] & ~number.mask0) | number.value0;
    if number.mask1 != 0u {
        dst[number.word + 1u] = (dst[number.word + 1u] & ~number.mask1) | number.value1;
    }
    if number.mask2 != 0u {
        dst[number.word + 2u] = (dst[number.word + 2u] & ~number.mask2) | number.value2;
    }
}
