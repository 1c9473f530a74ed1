//! Random chains: each op runs in one dispatch, and each phase's output parses again.

use crate::builder::{IDENTITY, Program};
use crate::support::{bufferized, compile, cpu, dispatches, lavapipe, portable};

/// Numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % n as u64).expect("less than n")
    }
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// One of the last few values for which `holds`.
fn choose(p: &Program, values: &[String], n: &mut Numbers, holds: impl Fn(&[i64]) -> bool) -> Option<String> {
    let fitting: Vec<&String> = values.iter().filter(|v| holds(&p.shape(v))).collect();
    let last = &fitting[fitting.len().saturating_sub(5)..];
    (!last.is_empty()).then(|| n.pick(last).clone())
}

fn step(p: &mut Program, values: &[String], n: &mut Numbers) -> Option<String> {
    let matrix = |s: &[i64]| s.len() >= 2;
    let any = choose(p, values, n, |s| !s.is_empty())?;
    match n.below(8) {
        0 => Some(p.map(&any, "%r = math.tanh %p0 : f32")),
        1 => {
            let shape = p.shape(&any);
            let other = choose(p, values, n, |s| s == shape)?;
            Some(p.zip(&any, &other, "%d = arith.subf %p0, %p1 : f32\n    %r = math.exp %d : f32"))
        }
        2 => Some(p.reduce(&any, IDENTITY, "arith.addf")),
        3 => Some(p.reduce(&any, "%c = math.absf %p0 : f32", "arith.maximumf")),
        4 | 5 => {
            let value = choose(p, values, n, matrix)?;
            let shape = p.shape(&value);
            let row = choose(p, values, n, |s| s == &shape[..shape.len() - 1])?;
            Some(p.by_row(&value, &row, "%r = arith.subf %p0, %p1 : f32"))
        }
        6 => {
            let value = choose(p, values, n, matrix)?;
            let mut shape = p.shape(&value);
            let rank = shape.len();
            shape[rank - 2] = shape[rank - 1];
            shape[rank - 1] = n.pick(&[1, 8, 13]);
            let weights = p.arg(&shape);
            Some(p.batched_product(&value, &weights))
        }
        _ => {
            let value = choose(p, values, n, |s| s.len() == 2)?;
            let shape = p.shape(&value);
            Some(p.pointwise(&[shape[1], shape[0]], &[(&value, &[1, 0])], "%r = arith.addf %p0, %zero : f32"))
        }
    }
}

fn program(seed: u64) -> Option<String> {
    let mut n = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1));
    let mut p = Program::new();
    let shape: &[i64] = n.pick(&[&[5, 7][..], &[16, 64], &[33, 65], &[1, 9], &[3, 4, 10], &[2, 3, 5, 8], &[17]]);
    let mut values = vec![p.arg(shape), p.arg(shape)];
    for _ in 0..4 + n.below(8) {
        let made = step(&mut p, &values, &mut n);
        values.extend(made);
    }
    let made = values.len() - 2;
    let mut results = vec![values.last()?.clone()];
    let other = values[2 + n.below(made.max(1)).min(made.checked_sub(1)?)].clone();
    if n.below(2) == 0 && !results.contains(&other) {
        results.push(other);
    }
    Some(p.finish(&results.iter().map(String::as_str).collect::<Vec<_>>()))
}

#[test]
fn random_chains_run_in_dispatches_without_copies() {
    let count = if std::env::var_os("MONOPOUR_TEST_FULL").is_some() { 1_000 } else { 24 };
    for seed in 0..count {
        let Some(text) = program(seed) else { continue };
        let target = [lavapipe(), portable(), cpu("x86-64-v4")][usize::try_from(seed % 3).expect("small")].clone();
        let module = compile(&text, &target);
        let structured = ["linalg.fill", "linalg.matmul", "linalg.generic"];
        for op in structured.into_iter().flat_map(|n| module.op().find_all(n)) {
            assert!(op.ancestor("scf.forall").is_some(), "seed {seed}: '{}' in\n{}", op.name(), module.op());
        }
        assert!(!dispatches(&module).is_empty(), "seed {seed}");
        let (_, copies, after) = bufferized(&module);
        assert_eq!(copies, 0, "seed {seed}\n{text}\n{after}");
    }
}
