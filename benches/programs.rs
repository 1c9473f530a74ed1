//! Wall time of a warm run of each benchmark program: on a GPU, on one CPU thread, and on all.

use criterion::Criterion;
use monopour::runtime::DeviceChoice;
use monopour_benches::{Loaded, programs};

fn benches(criterion: &mut Criterion) {
    for (name, device, threads) in
        [("gpu", DeviceChoice::Gpu, 0), ("cpu1", DeviceChoice::Cpu, 1), ("cpu", DeviceChoice::Cpu, 0)]
    {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        for program in programs() {
            match Loaded::new(&program, &device, threads) {
                Ok(mut loaded) => {
                    group.bench_function(&program.name, |b| b.iter(|| loaded.run().expect("a loaded program runs")));
                }
                Err(message) => eprintln!("{name}: {} is skipped: {message}", program.name),
            }
        }
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    benches(&mut criterion);
    criterion.final_summary();
}
