//! Print an allocation trace for `monopour plan` (columns id,lower,upper,size; upper exclusive).
//!
//! `cargo run --release -p monopour-analysis --example make_trace -- KIND COUNT > trace.csv`
//!
//! Kinds: `layers`, one short-lived buffer after another, of which one in twenty lives for up to a twentieth of all;
//! `uniform`, lifetimes up to 100; `nested`, half within each other, half short; `cut`, 1 MiB over 3,000 positions, cut
//! into that many.

use monopour_analysis::liveness::Interval;
use monopour_analysis::plan::Request;
use monopour_analysis::plan::made::cut;
use monopour_analysis::random::Random;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, count] = &arguments[..] else { panic!("give KIND COUNT") };
    println!("id,lower,upper,size");
    let buffers = made(kind, count.parse().expect("a number of buffers"));
    for (id, Request { live, size_bytes }) in buffers.iter().enumerate() {
        println!("{id},{},{},{size_bytes}", live.first, live.last + 1);
    }
}

fn made(kind: &str, count: u32) -> Vec<Request> {
    let mut random = Random::new(1);
    if kind == "cut" {
        let parts = cut(&mut random, count as usize, 1024, 3000).into_iter();
        return parts.map(|part| Request { size_bytes: part.size_bytes * 1024, ..part }).collect();
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
