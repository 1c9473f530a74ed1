//! Properties of memory plans on random requests, and small plans to read.

use expect_test::{Expect, expect};

use crate::index::{BufferId, IndexVec};
use crate::liveness::{Interval, peak_bytes};
use crate::plan::{ALIGNMENT_BYTES, Request, plan, plan_aligned};
use crate::random::Random;

fn check(requests: &[(u32, u32, u64)], expected: Expect) {
    let requests: IndexVec<BufferId, Request> = requests
        .iter()
        .map(|&(first, last, size_bytes)| Request { live: Interval::new(first, last), size_bytes })
        .collect();
    let plan = plan(&requests);
    let text = format!(
        "{:?} peak {} of {}, at least {}",
        plan.offsets, plan.peak_bytes, plan.sum_bytes, plan.lower_bound_bytes
    );
    expected.assert_eq(&text);
}

#[test]
fn nothing_needs_nothing() {
    check(&[], expect!["[] peak 0 of 0, at least 0"]);
}

#[test]
fn chain_needs_two_buffers() {
    check(
        &[(0, 1, 1024), (1, 2, 1024), (2, 3, 1024), (3, 4, 1024)],
        expect!["[0, 1024, 0, 1024] peak 2048 of 4096, at least 2048"],
    );
}

#[test]
fn large_buffer_goes_below_small_ones() {
    check(&[(0, 3, 100), (2, 5, 100), (4, 9, 300)], expect!["[0, 512, 0] peak 768 of 1024, at least 768"]);
}

#[test]
fn empty_buffers_have_a_place() {
    check(&[(0, 3, 0), (0, 3, 1)], expect!["[0, 0] peak 256 of 256, at least 256"]);
}

#[test]
fn absurd_sizes_saturate() {
    check(
        &[(0, 3, u64::MAX), (0, 3, u64::MAX)],
        expect![
            "[0, 18446744073709551615] peak 18446744073709551615 of 18446744073709551615, at least 18446744073709551615"
        ],
    );
}

/// Minimal plans, each found by a strategy that is not the first.
#[test]
fn other_strategies_are_tried() {
    let by_pressure = [
        &[(5, 8, 768), (0, 0, 1024), (1, 1, 512), (1, 4, 768), (0, 2, 768), (3, 5, 768)],
        &[(2, 3, 1024), (2, 5, 1024), (0, 0, 1280), (0, 2, 1024), (5, 5, 512), (5, 7, 1280)],
        &[(0, 2, 1024), (1, 1, 1280), (2, 2, 1024), (1, 3, 1280), (2, 5, 1024), (5, 8, 256)],
        &[(4, 5, 1024), (2, 2, 768), (3, 3, 768), (2, 4, 1024), (1, 2, 1280), (0, 1, 1280)],
    ];
    let by_area = [
        &[(2, 2, 1024), (1, 1, 1280), (1, 3, 768), (5, 6, 1024), (4, 5, 512), (2, 2, 512)][..],
        &[(1, 2, 512), (0, 1, 1280), (2, 5, 512), (4, 4, 1280)],
    ];
    for requests in by_pressure.map(|requests| &requests[..]).into_iter().chain(by_area) {
        let requests: IndexVec<BufferId, Request> = requests
            .iter()
            .map(|&(first, last, size_bytes)| Request { live: Interval::new(first, last), size_bytes })
            .collect();
        let plan = plan(&requests);
        assert_eq!(plan.peak_bytes, plan.lower_bound_bytes, "{requests:?}");
    }
}

#[test]
fn plans_hold_their_promises() {
    let mut random = Random::new(1);
    let (mut peaks, mut bounds) = (0, 0);
    for round in 0..400 {
        let count = 1 + random.below(40);
        let requests: IndexVec<BufferId, Request> = (0..count)
            .map(|_| {
                let first = random.below(60);
                let size_bytes = u64::from(1 + random.below(20)) * if random.percent(30) { 1000 } else { 256 };
                Request { live: Interval::new(first, first + random.below(12)), size_bytes }
            })
            .collect();
        let align = if round % 3 == 0 { 1 } else { ALIGNMENT_BYTES };
        let plan = plan_aligned(&requests, align);
        for (a, first) in requests.iter_enumerated() {
            assert_eq!(plan.offsets[a] % align, 0);
            assert!(plan.offsets[a] + first.size_bytes <= plan.peak_bytes);
            for (b, second) in requests.iter_enumerated().filter(|&(b, _)| b > a) {
                let apart = plan.offsets[a] + first.size_bytes <= plan.offsets[b]
                    || plan.offsets[b] + second.size_bytes <= plan.offsets[a];
                assert!(apart || !first.live.overlaps(second.live), "round {round}: {a} and {b} overlap");
            }
        }
        assert!(plan.lower_bound_bytes <= plan.peak_bytes && plan.peak_bytes <= plan.sum_bytes);
        peaks += plan.peak_bytes;
        bounds += plan.lower_bound_bytes;
        assert_eq!(plan, plan_aligned(&requests, align), "plans depend on requests only");
    }
    assert!(peaks * 100 <= bounds * 105, "plans of {peaks} bytes where {bounds} may do");
}

#[test]
fn peak_counts_both_ends() {
    let requests = [(Interval::new(0, 2), 10), (Interval::new(2, 4), 20), (Interval::new(3, 3), 5)];
    assert_eq!(peak_bytes(requests), 30);
}

#[test]
fn buffers_of_a_loop_live_as_long_as_it_does() {
    let body = Interval::new(10, 20);
    assert_eq!(Interval::new(5, 12).widened_to_loop(body), Interval::new(5, 20));
    assert_eq!(Interval::new(12, 14).widened_to_loop(body), Interval::new(12, 14));
    assert_eq!(Interval::new(2, 9).widened_to_loop(body), Interval::new(2, 9));
    assert_eq!(Interval::hull([4, 9, 2]), Some(Interval::new(2, 9)));
}
