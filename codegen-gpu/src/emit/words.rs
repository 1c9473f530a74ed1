//! Passes over the words of a SPIR-V module.

/// Words before the first instruction.
const HEADER_WORDS: usize = 5;
/// The opcode of `OpControlBarrier`: scope of execution, scope of memory, semantics.
const CONTROL_BARRIER: u32 = 224;

/// Gives the memory of each barrier the scope of its execution. Naga asks for the device's wherever a barrier orders storage;
/// what the invocations of a workgroup exchange there needs that of the workgroup only.
pub(super) fn narrow_barriers(words: &mut [u32]) {
    let mut at = HEADER_WORDS;
    while at < words.len() {
        let count = (words[at] >> 16) as usize;
        if words[at] & 0xffff == CONTROL_BARRIER && count == 4 {
            words[at + 2] = words[at + 1];
        }
        at += count.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_scope_of_a_barrier_changes() {
        let barrier = 4 << 16 | CONTROL_BARRIER;
        // An instruction of three words, one of which looks like a barrier, then a barrier.
        let before = [0, 0, 0, 0, 0, 3 << 16 | 61, 7, barrier, barrier, 10, 11, 12];
        let mut words = before;
        narrow_barriers(&mut words);
        let mut expected = before;
        expected[10] = 10;
        assert_eq!(words, expected);
    }
}
