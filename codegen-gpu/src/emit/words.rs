//! Passes over the words of a SPIR-V module.

/// Words before the first instruction.
const HEADER_WORDS: usize = 5;
/// The opcode of `OpControlBarrier`: scope of execution, scope of memory, semantics.
const CONTROL_BARRIER: u32 = 224;

/// The opcode of `OpCapability`.
const CAPABILITY: u32 = 17;
/// `UniformAndStorageBuffer16BitAccess`.
const UNIFORM_HALVES: u32 = 4434;

/// Drops the capability for 16-bit elements of uniform buffers, which naga declares with that for storage buffers:
/// uniform buffers hold scalar arguments, as words.
pub(super) fn drop_uniform_halves(words: &mut Vec<u32>) {
    let mut at = HEADER_WORDS;
    while at < words.len() && words[at] & 0xffff == CAPABILITY {
        if words[at + 1..].first() == Some(&UNIFORM_HALVES) {
            words.drain(at..at + 2);
        } else {
            at += 2;
        }
    }
}

/// Gives the memory of each barrier the scope of its execution. Naga asks for the device's wherever a barrier orders
/// storage; what the invocations of a workgroup exchange there needs that of the workgroup only.
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
    fn one_capability_is_dropped() {
        let capability = 2 << 16 | CAPABILITY;
        let mut words =
            vec![0, 0, 0, 0, 0, capability, 1, capability, UNIFORM_HALVES, capability, 9, 3 << 16 | 61, 7, 7];
        drop_uniform_halves(&mut words);
        assert_eq!(words, [0, 0, 0, 0, 0, capability, 1, capability, 9, 3 << 16 | 61, 7, 7]);
    }

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
