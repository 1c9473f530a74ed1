//! Results do not depend on the number of threads, to the bit: the order of sums follows from shapes and the CPU alone.

use crate::backend::Monopour;
use monopour::{CompileOptions, compile};
use monopour_testkit::HostTensor;
use monopour_testkit::programs::{NAMES, Size, benchmark};

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let cpu = Monopour::cpu();
    for name in NAMES {
        let b = benchmark(name, Size::Small).expect("one of the names");
        let options = CompileOptions { targets: vec![cpu.target().clone()], ..Default::default() };
        let program = compile(b.text.as_bytes(), &b.name, &options).expect("it compiles").program;
        let results = |threads: usize| -> Vec<Vec<u8>> {
            let run = cpu.run_on_threads(program.clone(), &b.inputs, threads).expect("it runs");
            run.outputs.iter().map(HostTensor::to_bytes).collect()
        };
        let one = results(1);
        assert!(!one.is_empty());
        for threads in [2, 3, 7] {
            assert!(results(threads) == one, "{name} gives other bits on {threads} threads");
        }
    }
}
