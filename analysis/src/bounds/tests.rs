//! Bounds of random graphs against their optima.

use super::exhaustive::{fewest_bytes, least_peak, orders};
use super::*;
use crate::random::Random;

/// Random graphs: some seconds.
const SEEDS: u64 = 300;

/// A graph of up to five steps with up to two results each.
fn random_graph(seed: u64) -> Graph {
    let mut random = Random::new(seed);
    let mut graph = Graph::default();
    for _ in 0..1 + random.below(3) {
        let origin = *[Origin::Donated, Origin::ReadOnly].get(random.below(2) as usize).unwrap();
        graph.values.push(Value { bytes: 1 + u64::from(random.below(6)), origin, is_result: false });
    }
    for _ in 0..1 + random.below(5) {
        let mut step = Step::default();
        for _ in 0..random.below(3) {
            let value = ValueId::new(random.below(graph.values.len() as u32));
            let bytes = if random.percent(60) { graph.values[value].bytes } else { 0 };
            if step.reads.iter().all(|read| read.value != value) {
                step.reads.push(Read { value, bytes });
            }
        }
        for number in 0..1 + random.below(2) {
            let old = ValueId::new(random.below(graph.values.len() as u32));
            let is_update = number == 0 && random.percent(50) && step.reads.iter().all(|read| read.value != old);
            let bytes = if is_update { graph.values[old].bytes } else { 1 + u64::from(random.below(6)) };
            let is_result = random.percent(15);
            let new = graph.values.push(Value { bytes, origin: Origin::Made, is_result });
            step.makes.push(new);
            if is_update {
                step.updates.push(Update { old, new, kept_bytes: u64::from(random.below(bytes as u32)) });
            }
        }
        graph.steps.push(step);
    }
    graph
}

#[test]
fn bounds_are_never_above_the_optimum() {
    let (mut tight, mut paid) = ([0; 3], 0);
    for seed in 0..SEEDS {
        let graph = random_graph(seed);
        let in_order: Vec<usize> = (0..graph.steps.len()).collect();
        let (bound, optimum) = (peak_in_order(&graph).into_iter().max().unwrap_or(0), least_peak(&graph, &in_order));
        assert!(bound <= optimum, "seed {seed}: in order {bound} > {optimum}\n{graph:#?}");
        tight[0] += usize::from(bound == optimum);

        let (any, is_exact) = peak_in_any_order(&graph);
        let mut best = u64::MAX;
        orders(&graph, &mut |order| best = best.min(least_peak(&graph, order)));
        assert!(any <= best && any <= bound && is_exact, "seed {seed}: in any order {any} > {best}\n{graph:#?}");
        tight[1] += usize::from(any == best);

        let (copies, fewest) = (copies(&graph), fewest_bytes(&graph));
        assert!(copies.bytes <= fewest, "seed {seed}: {copies:?} > {fewest}\n{graph:#?}");
        tight[2] += usize::from(copies.bytes == fewest);
        paid += copies.copies;
    }
    // A bound of zero would not be above anything: most are the optimum.
    assert!(tight.iter().all(|tight| tight * 10 > SEEDS as usize * 6) && paid > SEEDS / 10, "{tight:?} {paid}");
}

/// The largest dispatch, where there are too many for all orders.
#[test]
fn of_many_dispatches_the_largest_bounds_every_order() {
    let mut graph = Graph::default();
    let mut last = graph.values.push(Value { bytes: 10, origin: Origin::ReadOnly, is_result: false });
    for number in 0..40 {
        let bytes = if number == 20 { 70 } else { 10 };
        let value = graph.values.push(Value { bytes, origin: Origin::Made, is_result: number == 39 });
        graph.steps.push(Step { reads: vec![Read { value: last, bytes: 10 }], makes: vec![value], updates: vec![] });
        last = value;
    }
    assert_eq!(peak_in_any_order(&graph), (70, false));
    assert_eq!(peak_in_order(&graph).into_iter().max(), Some(70));
}

/// Two updates of a cache: one is in place, the other copies what it keeps.
#[test]
fn one_update_of_a_value_is_free() {
    let mut graph = Graph::default();
    let cache = graph.values.push(Value { bytes: 100, origin: Origin::Donated, is_result: false });
    for _ in 0..2 {
        let new = graph.values.push(Value { bytes: 100, origin: Origin::Made, is_result: true });
        let updates = vec![Update { old: cache, new, kept_bytes: 90 }];
        graph.steps.push(Step { reads: vec![], makes: vec![new], updates });
    }
    assert_eq!(copies(&graph), CopyBound { copies: 1, bytes: 90 });
    graph.values[cache].origin = Origin::ReadOnly;
    assert_eq!(copies(&graph), CopyBound { copies: 2, bytes: 180 });
}

/// An order for memory keeps what comes before what, and is not above that of the list; that of few steps is an
/// optimum.
#[test]
fn orders_for_memory_take_no_more() {
    let (mut changed, mut exact) = (0, 0);
    for seed in 0..2 * SEEDS {
        let mut graph = random_graph(seed);
        // More independent steps.
        if seed % 2 == 0 {
            let other = random_graph(seed + SEEDS);
            let first = graph.values.len() as u32;
            let moved = |value: ValueId| ValueId::new(first + value.number());
            for value in other.values.iter() {
                graph.values.push(*value);
            }
            for mut step in other.steps {
                step.reads.iter_mut().for_each(|read| read.value = moved(read.value));
                step.makes.iter_mut().for_each(|value| *value = moved(*value));
                step.updates.iter_mut().for_each(|u| (u.old, u.new) = (moved(u.old), moved(u.new)));
                graph.steps.push(step);
            }
        }
        let peak = |graph: &Graph| peak_in_order(graph).into_iter().max().unwrap_or(0);
        let after = vec![vec![]; graph.steps.len()];
        let Some(order) = order_for_memory(&graph, &after) else { continue };
        let mut made = vec![];
        for step in order.iter().map(|step| &graph.steps[*step]) {
            let is_there = |value: ValueId| graph.values[value].origin != Origin::Made || made.contains(&value);
            assert!(step.operands().all(is_there), "seed {seed}: {order:?}\n{graph:#?}");
            made.extend(&step.makes);
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..graph.steps.len()), "seed {seed}: {order:?}");
        let steps = order.iter().map(|step| graph.steps[*step].clone()).collect();
        let found = peak(&Graph { values: graph.values.clone(), steps });
        assert!(found <= peak(&graph), "seed {seed}: {found} > {}", peak(&graph));
        changed += 1;
        exact += usize::from(found == peak_in_any_order(&graph).0);
    }
    println!("{changed} changed, {exact} at the optimum");
    assert!(changed >= 100 && 2 * exact >= changed, "{changed} changed, of which {exact} at the optimum");
}
