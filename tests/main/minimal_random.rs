//! Random programs under the strategies `minimal` and `greedy`: the same values, and never a higher cost; what a program
//! takes of the device is what is counted.

use crate::backend::to_runtime;
use crate::explained::program;
use crate::host::{devices, source};
use monopour::options::Strategy;
use monopour::runtime::{Device, HostTensor, Options, Session, Stats};
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_testkit::random::seeds;
use monopour_testkit::{generate_graphs, text::Input};
use std::sync::Arc;

fn values(inputs: &[Input], seed: u64) -> Vec<HostTensor> {
    inputs.iter().zip(seed..).map(|(input, s)| to_runtime(&input.values(s))).collect()
}

/// A session; `None` if a number is to be donated.
fn session(
    (device, target): &(Device, TargetDescription),
    text: &str,
    donate: &[String],
    strategy: Strategy,
) -> Option<Session> {
    let targets = vec![target.clone()];
    let options = CompileOptions { targets, donate: donate.to_vec(), strategy, ..Default::default() };
    let program = compile(text.as_bytes(), "random.mlir", &options).ok()?.program;
    let options = Options { threads: 2, ..Options::default() };
    Some(Session::load(device, Arc::new(program), &options).unwrap_or_else(|e| panic!("{e}\n{text}")))
}

/// What two runs give and count; `None` where a check of the program ends them.
fn run_twice(session: &mut Session, inputs: &[HostTensor]) -> Option<(Vec<HostTensor>, Stats)> {
    session.run(inputs).ok()?;
    let results = session.run(inputs).ok()?;
    Some((results, session.stats()))
}

/// The order of cost: bytes copied, then bytes taken of the device, then allocations.
///
/// By size class: what is planned together is aligned, buffers of the pool are only so as the device has them.
fn cost(stats: &Stats) -> [u64; 3] {
    let memory = stats.memory;
    [stats.counts.copied_bytes, memory.results + memory.arena + memory.pool, stats.counts.allocations]
}

/// Whether the results are the same but for the rounding of kernels that are fused in another way.
fn agree(a: &[HostTensor], b: &[HostTensor]) -> bool {
    let numbers = |all: &[HostTensor]| all.iter().flat_map(HostTensor::to_f64).collect::<Vec<f64>>();
    let (a, b) = (numbers(a), numbers(b));
    let largest = a.iter().filter(|n| n.is_finite()).fold(1.0f64, |most, n| most.max(n.abs()));
    let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-4 * largest;
    a.len() == b.len() && a.iter().zip(&b).all(same)
}

#[test]
fn no_random_program_costs_more_than_greedy() {
    let (mut compared, mut below, mut failures, devices) = (0, 0, vec![], devices());
    for seed in seeds(30, 2000) {
        let (text, inputs) = program(seed);
        let values = values(&inputs, seed);
        // Every other program may overwrite all that it can.
        let donate: Vec<String> =
            (0..inputs.len()).filter(|_| seed.is_multiple_of(2)).map(|i| format!("arg{i}")).collect();
        for device in &devices {
            let run = |strategy| {
                let session = session(device, &text, &donate, strategy);
                session
                    .or_else(|| self::session(device, &text, &[], strategy))
                    .and_then(|mut s| run_twice(&mut s, &values))
            };
            let (Some(minimal), Some(greedy)) = (run(Strategy::Minimal), run(Strategy::Greedy)) else { continue };
            let (of, other) = (cost(&minimal.1), cost(&greedy.1));
            let least = minimal.1.bounds;
            let is_bound = least.copies <= minimal.1.counts.copies
                && least.copied_bytes <= of[0]
                && least.peak_bytes <= minimal.1.counts.fresh_bytes
                && least.any_order_bytes <= least.peak_bytes;
            compared += 1;
            below += usize::from(of < other);
            if of > other || !is_bound || !agree(&minimal.0, &greedy.0) {
                let same = agree(&minimal.0, &greedy.0);
                let name = device.0.name();
                failures.push(format!(
                    "seed {seed} on {name}: minimal {of:?} {:?}, greedy {other:?} {:?}, {least:?}, equal values: {same}\n{text}",
                    minimal.1.memory, greedy.1.memory
                ));
            }
        }
    }
    println!("{compared} runs under both strategies: {below} below greedy, {} wrong or above it", failures.len());
    assert!(failures.is_empty(), "{} of {compared}\n{}", failures.len(), failures.join("\n"));
    assert!(compared > 0 && below > 0, "{below} of {compared}");
}

/// The second run on the same sizes, of programs with dynamic sizes and all else.
#[test]
fn the_second_run_of_a_random_program_plans_and_creates_nothing() {
    let (mut compared, mut failures, devices) = (0, vec![], devices());
    for seed in seeds(20, 500) {
        let features = generate_graphs::Features::EVERYTHING;
        let (text, inputs) = generate_graphs::graph_with(seed, 3 + (seed % 11) as usize, features);
        let values = values(&inputs, seed);
        for device in &devices {
            let Some(mut session) = session(device, &text, &[], Strategy::Minimal) else { continue };
            let Some((_, stats)) = run_twice(&mut session, &values) else { continue };
            let s = stats.steady_state;
            let made = [s.plans_made, s.buffers_created, s.bind_groups_created, s.pipelines_created];
            compared += 1;
            if made != [0; 4] {
                failures.push(format!("seed {seed} on {}: {made:?}\n{text}", device.0.name()));
            }
        }
    }
    println!("{compared} second runs: {} plan or create something", failures.len());
    assert!(failures.is_empty() && compared > 0, "{} of {compared}\n{}", failures.len(), failures.join("\n"));
}

/// Bytes that a second session of a program takes of its device for a warm run, and its counts; `None` if it has none.
///
/// By wgpu's count on a GPU. What that has at first for itself is gone once a first session has run; what an upload went through,
/// once a later wait has noticed its end.
fn taken_by_another(device: &(Device, TargetDescription), text: &str, values: &[HostTensor]) -> Option<(u64, Stats)> {
    let warm = || {
        let mut session = session(device, text, &[], Strategy::Minimal)?;
        let on_device = session.upload(values).unwrap();
        for _ in 0..2 {
            drop(session.execute(&on_device).unwrap());
        }
        let results = session.execute(&on_device).unwrap();
        session.readback(&results).unwrap();
        Some((session, on_device, results))
    };
    let first = warm()?;
    let before = device.0.internal_counters();
    let second = warm()?;
    let stats = second.0.stats();
    let (mut session, on_device, results) = second;
    let mut taken = stats.peak_device_bytes;
    if let Some(before) = before {
        let counts = (0..3).map(|_| {
            session.readback(&results).unwrap();
            device.0.internal_counters().map_or(0, |now| (now.buffer_bytes - before.buffer_bytes) as u64)
        });
        taken = counts.min().unwrap_or_default();
    }
    drop((first, on_device));
    Some((taken, stats))
}

/// Random static programs, and one of products.
fn static_programs() -> impl Iterator<Item = (String, String, Vec<HostTensor>)> {
    let random = seeds(20, 500).map(|seed| {
        let (text, inputs) = generate_graphs::graph(seed, 2 + (seed % 9) as usize);
        (format!("seed {seed}"), text, values(&inputs, seed))
    });
    let square = Input::new(monopour_testkit::Dtype::F32, &[256, 256]);
    let named = [("q10".to_owned(), source("copies/q10_matmul_chain"), values(&vec![square; 5], 1))];
    random.chain(named)
}

/// What a static program takes of its device besides buffers for transfers: inputs, constants, results and the arena.
#[test]
fn static_programs_take_what_is_counted() {
    /// A buffer of the device for numbers that host code reads.
    const READS: u64 = 16;
    let (mut compared, mut pooled, mut failures, devices) = (0, 0, vec![], devices());
    for (name, text, values) in static_programs() {
        for device in &devices {
            let Some((taken, stats)) = taken_by_another(device, &text, &values) else { continue };
            let (m, s) = (stats.memory, stats.steady_state);
            if m.pool > 0 {
                pooled += 1;
                continue;
            }
            let reads = if device.0.description().is_some() && stats.counts.scalar_reads > 0 { READS } else { 0 };
            compared += 1;
            let made = [s.plans_made, s.buffers_created, s.bind_groups_created, s.pipelines_created];
            if taken != m.inputs + m.constants + m.results + m.arena + m.staging + reads || made != [0; 4] {
                failures.push(format!("{name} on {}: {taken} B taken, {m:?}, {s:?}\n{text}", device.0.name()));
            }
        }
    }
    println!(
        "{compared} static programs: {} take other bytes or create something; {pooled} use the pool",
        failures.len()
    );
    assert!(failures.is_empty() && compared > 0, "{} of {compared}\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn static_programs_take_nothing_of_the_pool() {
    let (mut compared, mut pooled, devices) = (0, vec![], devices());
    for (name, text, values) in static_programs() {
        for device in &devices {
            let Some(mut session) = session(device, &text, &[], Strategy::Minimal) else { continue };
            let Some((_, stats)) = run_twice(&mut session, &values) else { continue };
            compared += 1;
            if stats.memory.pool > 0 {
                pooled.push(format!("{name} on {}: {} B\n{text}", device.0.name(), stats.memory.pool));
            }
        }
    }
    println!("{compared} static programs: {} use the pool", pooled.len());
    assert!(pooled.is_empty(), "{}", pooled.join("\n"));
}
