//! Place allocation traces (columns id,lower,upper,size; upper exclusive), and print what that takes.
//!
//! `cargo run --release -p monopour-analysis --example plan_trace -- [--compile] TRACE.csv...`
//!
//! Instead of a file: `layers:N`, one short-lived buffer after another, of which one in twenty lives for up to N / 20;
//! `uniform:N`, lifetimes up to 100; `nested:N`, half within each other, half short; `cut:N`, a rectangle of bytes and
//! time, cut into N.

use monopour_analysis::index::{BufferId, IndexVec};
use monopour_analysis::liveness::Interval;
use monopour_analysis::plan::{ALIGNMENT_BYTES, Effort, Request, plan_with_effort};
use monopour_analysis::random::Random;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let effort = if arguments.iter().any(|a| a == "--compile") { Effort::Compile } else { Effort::Thorough };
    for name in arguments.iter().filter(|a| !a.starts_with("--")) {
        let requests = match name.split_once(':') {
            Some((kind, count)) => made(kind, count.parse().expect("a number of buffers")),
            None => read(name),
        };
        let start = Instant::now();
        let plan = plan_with_effort(&requests, ALIGNMENT_BYTES, effort);
        let seconds = start.elapsed().as_secs_f64();
        let ratio = plan.peak_bytes as f64 / plan.lower_bound_bytes as f64;
        let (count, peak, least) = (requests.len(), plan.peak_bytes, plan.lower_bound_bytes);
        println!("{name}: {count} buffers, peak {peak}, at least {least}, ratio {ratio:.4}, {seconds:.3} s");
    }
}

fn read(path: &str) -> IndexVec<BufferId, Request> {
    let text = std::fs::read_to_string(path).expect("the trace is a readable file");
    text.lines().skip(1).map(request).collect()
}

fn request(line: &str) -> Request {
    let numbers: Vec<u64> = line.split(',').map(|field| field.trim().parse().expect("a number")).collect();
    let [_, lower, upper, size_bytes] = numbers[..] else { panic!("four columns: {line}") };
    let position = |number: u64| u32::try_from(number).expect("a position fits into 32 bits");
    Request { live: Interval::new(position(lower), position(upper - 1)), size_bytes }
}

fn made(kind: &str, count: u32) -> IndexVec<BufferId, Request> {
    let mut random = Random::new(1);
    if kind == "cut" {
        return cut(&mut random, count);
    }
    let request = |i: u32| {
        let long = random.percent(5);
        let (first, length) = match kind {
            "layers" => (i, if long { random.below(count / 20) } else { 1 + random.below(4) }),
            "uniform" => (random.below(count), random.below(100)),
            "nested" if i < count / 2 => (i, count - 2 * i),
            "nested" => (random.below(count), 1 + random.below(3)),
            _ => panic!("layers, uniform, nested or cut: {kind}"),
        };
        Request { live: Interval::new(first, first + length), size_bytes: 256 * u64::from(1 + random.below(4096)) }
    };
    (0..count).map(request).collect()
}

/// A capacity of 1 MiB over 3,000 positions, in parts without a gap.
fn cut(random: &mut Random, count: u32) -> IndexVec<BufferId, Request> {
    let mut parts = vec![(0, 3000, 1024)];
    while parts.len() < count as usize {
        let i = random.below(parts.len() as u32) as usize;
        let (first, end, size) = parts[i];
        if random.percent(50) && size > 1 {
            let lower = 1 + random.below(size - 1);
            parts[i].2 = lower;
            parts.push((first, end, size - lower));
        } else if end - first > 1 {
            let middle = first + 1 + random.below(end - first - 1);
            parts[i].1 = middle;
            parts.push((middle, end, size));
        }
    }
    let request =
        |(first, end, size)| Request { live: Interval::new(first, end - 1), size_bytes: 1024 * u64::from(size) };
    parts.into_iter().map(request).collect()
}
