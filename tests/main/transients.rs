//! One memory plan: transients of loops and branches have places in the arena; those of dynamic sizes are planned once per tuple of
//! sizes, and lie in one buffer.

use crate::backend::to_runtime;
use crate::host::{compare, devices, evaluated, f32s, index, raw, source};
use monopour::explain::{KnownInput, explain_for};
use monopour::program::{DType, Program};
use monopour::runtime::{Device, HostTensor, Options, Session, Stats};
use monopour::{CompileOptions, TargetDescription, compile};
use std::sync::Arc;

fn compiled(text: &str, target: &TargetDescription) -> Arc<Program> {
    let options = CompileOptions { targets: vec![target.clone()], verify: true, ..Default::default() };
    Arc::new(compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}\n{text}")).program)
}

/// What each run on one of the inputs counts; its values are right.
fn runs(text: &str, (device, target): &(Device, TargetDescription), all: &[Vec<HostTensor>]) -> Vec<Stats> {
    let mut session = Session::load(device, compiled(text, target), &Options::default()).expect("loads");
    let mut stats = vec![];
    for inputs in all {
        let results = session.run(inputs).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let expected: Vec<_> = evaluated(text, inputs).iter().map(to_runtime).collect();
        compare(device.name(), &results, &expected);
        stats.push(session.stats());
    }
    assert!(session.close().is_clean(), "{text}");
    stats
}

/// Small numbers, none negative.
fn numbers(rows: u64) -> HostTensor {
    let values: Vec<f32> = (0..rows * 16).map(|i| (i * 7 % 11) as f32 / 16.0).collect();
    f32s(&[rows, 16], &values)
}

/// In the arena, too: what lives in an iteration beside what lives over the loop, and what two branches make in one place.
#[test]
fn loops_and_branches_take_nothing_from_the_pool() {
    let bit = |c: u8| raw(DType::I1, &[], &[c]);
    let trips = [(2, 1), (1, 0), (0, 1), (2, 1)].map(|(n, c)| vec![numbers(8), index(n), bit(c)]);
    let branches = [1, 0, 1].map(|c| vec![numbers(8), bit(c)]);
    // Places of 512 bytes. In the loop: before it, in an iteration, and in a branch.
    for (name, all, places) in [("nested_transients", &trips[..], 3), ("branch_transients", &branches[..], 1)] {
        for device in devices() {
            let stats = runs(&source(&format!("host/{name}")), &device, all);
            let taken = |s: &Stats| (s.memory.pool, s.planned_bytes, s.counts.copies);
            assert!(stats.iter().all(|s| taken(s) == (0, places * 512, 0)), "{name}: {stats:#?}");
        }
    }
}

/// What a loop makes anew in each iteration alternates between two buffers, whatever its size and its condition.
#[test]
fn loops_allocate_nothing_in_an_iteration() {
    // Each iteration doubles the first number, until it is no less than the limit.
    let ramp: Vec<f32> = (0..16).map(|i| i as f32 + 1.0).collect();
    let limits = [0.5, 3.0, 500.0].map(|limit| vec![f32s(&[16], &ramp), f32s(&[], &[limit])]);
    let trips = [0, 1, 6].map(|n| vec![numbers(5), index(n)]);
    for (name, all) in [("while_fresh", &limits[..]), ("dyn_remade", &trips[..])] {
        for device in devices() {
            let stats = runs(&source(&format!("host/{name}")), &device, all);
            let allocations: Vec<u64> = stats.iter().map(|s| s.counts.allocations).collect();
            // The copy of the input, and the second buffer.
            assert_eq!(allocations, [2, 2, 2], "{name} on {}", device.0.name());
        }
    }
}

/// Rows of the dynamic program, and bytes of its plan: two transients of these rows, one of them beside one of 1,024 bytes.
const PLANNED: [(u64, u64); 4] = [(4, 1024 + 512), (100, 1024 + 2 * 6400), (4, 1024 + 512), (0, 1024)];

/// One buffer for all, planned once per size, and what `explain` says of it for known sizes.
#[test]
fn dynamic_transients_are_planned_once_per_size() {
    let text = source("host/dyn_transients");
    for device in devices() {
        let all: Vec<_> = PLANNED.iter().map(|(rows, _)| vec![numbers(*rows)]).collect();
        let stats = runs(&text, &device, &all);
        let program = compiled(&text, &device.1);
        for (at, (stats, (rows, bytes))) in stats.iter().zip(PLANNED).enumerate() {
            // The result is an allocation of its own.
            let results = rows * 64;
            assert_eq!(
                (stats.counts.allocations, stats.counts.fresh_bytes),
                (2, bytes + results),
                "{rows}: {stats:#?}"
            );
            assert_eq!(stats.steady_state.plans_made, u64::from(at != 2), "{rows}: the third run is as the first");
            let known = [KnownInput { shape: vec![Some(rows), Some(16)], bits: None }];
            let explained = explain_for(&program, &known).remove(0);
            assert_eq!(explained.fresh_bytes, Some(bytes + results), "{rows}: {explained:#?}");
        }
    }
}

/// The second run on a size plans and creates nothing, whatever came between.
#[test]
fn a_size_that_came_before_creates_nothing() {
    let text = source("host/dyn_transients");
    let sizes = [64, 5, 200, 33];
    for device in devices() {
        let all: Vec<_> = (0..3).flat_map(|_| sizes).map(|rows| vec![numbers(rows)]).collect();
        let stats = runs(&text, &device, &all);
        for again in &stats[2 * sizes.len()..] {
            let s = &again.steady_state;
            assert_eq!((s.plans_made, s.buffers_created, s.bind_groups_created, s.pipelines_created), (0, 0, 0, 0));
        }
        assert!(stats[..sizes.len()].iter().all(|s| s.steady_state.plans_made == 1));
    }
}

/// Where no buffer of the device holds all of them, the runtime places them.
#[test]
fn what_is_larger_than_a_buffer_is_placed_by_the_runtime() {
    let text = source("host/nested_transients").replace("8x16", "8x2048");
    let values: Vec<f32> = (0..8 * 2048).map(|i| (i * 7 % 11) as f32 / 16.0).collect();
    let inputs = vec![f32s(&[8, 2048], &values), index(2), raw(DType::I1, &[], &[1])];
    for (device, target) in devices() {
        let TargetDescription::Gpu(mut description) = target else { continue };
        description.limits.max_buffer_bytes = 128 << 10;
        let small = (device, TargetDescription::Gpu(description));
        // Three places of 64 KiB.
        let stats = runs(&text, &small, &[inputs.clone(), inputs.clone()]);
        assert!(stats.iter().all(|s| (s.planned_bytes, s.counts.fresh_bytes) == (0, 192 << 10)), "{stats:#?}");
    }
}
