//! Loops of host code end when their run does: cancelled, given up, or after an error.

use monopour::program::CpuTarget;
use monopour::runtime::{HostForm, HostTensor, Options, Session};
use monopour::{CompileOptions, TargetDescription, compile};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::host::{devices, f32s, index};

/// Time in which a run ends that is cancelled or fails, beside the dispatch that runs.
const PROMPT: Duration = Duration::from_millis(100);
/// Trips for minutes.
const LONG: i64 = 1_000_000_000;

/// `x` doubled in every trip, by a dispatch.
const DISPATCHES: &str = "\
func.func @main(%x: tensor<16xf32>, %n: index) -> (tensor<16xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<16xf32> {
    %s = linalg.add ins(%a, %a : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    scf.yield %s : tensor<16xf32>
  }
  return %r, %n : tensor<16xf32>, index
}
";

/// A loop in a loop that only computes, and a sum that depends on every trip.
const NUMBERS: &str = "\
func.func @main(%x: tensor<16xf32>, %n: index) -> (tensor<16xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> index {
    %q = scf.for %j = %c0 to %c3 step %c1 iter_args(%b = %a) -> index {
      %s = arith.xori %b, %i : index
      %t = arith.addi %s, %c1 : index
      scf.yield %t : index
    }
    scf.yield %q : index
  }
  %e = tensor.empty() : tensor<16xf32>
  %y = linalg.add ins(%x, %x : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  return %y, %r : tensor<16xf32>, index
}
";

/// A division by zero in the sixth trip.
const FAILS: &str = "\
func.func @main(%x: tensor<16xf32>, %n: index) -> (tensor<16xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c100 = arith.constant 100 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> index {
    %d = arith.subi %i, %c5 : index
    %q = arith.divsi %c100, %d : index
    %s = arith.addi %a, %q : index
    scf.yield %s : index
  }
  return %x, %r : tensor<16xf32>, index
}
";

/// Waits on a machine that others load are long now and then: one of five tries has to be prompt.
fn try_prompt(what: &str, mut scenario: impl FnMut() -> Duration) {
    let mut found = vec![];
    while found.len() < 5 {
        let took = scenario();
        if took < PROMPT {
            return;
        }
        found.push(took);
    }
    panic!("{what}: {found:?}");
}

fn ones() -> HostTensor {
    f32s(&[16], &[1.0; 16])
}

fn sessions(text: &str) -> Vec<(String, Session)> {
    let mut all = vec![];
    for (device, target) in devices() {
        let options = CompileOptions { targets: vec![target], ..Default::default() };
        let program = Arc::new(compile(text.as_bytes(), "ends.mlir", &options).expect("compiles").program);
        for host in [HostForm::Native, HostForm::Data] {
            let options = Options { host, ..Options::default() };
            let name = format!("{}, {}", device.name(), host.as_str());
            all.push((name, Session::load(&device, program.clone(), &options).expect("loads")));
        }
    }
    all
}

#[test]
fn a_loop_ends_when_its_run_is_cancelled() {
    for (text, after) in [(DISPATCHES, ([8.0; 16], 3)), (NUMBERS, ([2.0; 16], 4))] {
        for (name, mut session) in sessions(text) {
            let long = session.upload(&[ones(), index(LONG)]).expect("uploads");
            try_prompt(&name, || {
                let run = session.submit(&long).expect("begins");
                assert_eq!(run.wait(Some(Duration::from_millis(20))).unwrap_err().code(), "R0024", "{name}");
                let start = Instant::now();
                run.cancel();
                assert_eq!(run.wait(None).unwrap_err().code(), "R0025", "{name}");
                // An upload needs the session: the run is over.
                session.upload(&[ones(), index(0)]).expect("the session works on");
                start.elapsed()
            });
            let (values, number) = after;
            let expected = vec![f32s(&[16], &values), index(number)];
            assert_eq!(session.run(&[ones(), index(3)]).expect("the session works on"), expected, "{name}");
            drop(long);
            assert!(session.close().is_clean(), "{name}");
        }
    }
}

#[test]
fn a_loop_ends_with_an_error() {
    for (name, mut session) in sessions(FAILS) {
        try_prompt(&name, || {
            let start = Instant::now();
            let error = session.run(&[ones(), index(LONG)]).unwrap_err();
            assert_eq!(error.code(), "R0019", "{name}: {error}");
            start.elapsed()
        });
        let expected = vec![ones(), index(-20 - 25 - 33)];
        assert_eq!(session.run(&[ones(), index(3)]).expect("the session works on"), expected, "{name}");
    }
}

/// Loops with bounds of every kind make the trips that they did.
#[test]
fn loops_make_their_trips() {
    let text = "\
func.func @main(%from: index, %to: index, %by: index, %less: i32, %more: i32) -> (index, index, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  %sum, %trips = scf.for %i = %from to %to step %by iter_args(%s = %c0, %t = %c0) -> (index, index) {
    %u = arith.addi %s, %i : index
    %v = arith.addi %t, %c1 : index
    scf.yield %u, %v : index, index
  }
  %unsigned = scf.for unsigned %i = %less to %more step %i1 iter_args(%s = %i0) -> i32 : i32 {
    %u = arith.addi %s, %i1 : i32
    scf.yield %u : i32
  }
  return %sum, %trips, %unsigned : index, index, i32
}
";
    let options = CompileOptions { targets: vec![TargetDescription::Cpu(CpuTarget::host())], ..Default::default() };
    let program = Arc::new(compile(text.as_bytes(), "trips.mlir", &options).expect("compiles").program);
    let (device, _) = devices().swap_remove(0);
    let word = |value: i32| crate::host::raw(monopour::program::DType::I32, &[], &value.to_le_bytes());
    for host in [HostForm::Native, HostForm::Data] {
        let options = Options { host, ..Options::default() };
        let mut session = Session::load(&device, program.clone(), &options).expect("loads");
        for (from, to, by) in [(0, 10, 1), (0, 10, 3), (5, 5, 1), (7, -7, 2), (-5, 6, 4)] {
            let trips: Vec<i64> = (0..).map(|trip| from + trip * by).take_while(|i| *i < to).collect();
            for (less, more) in [(0, 3), (-4, -1), (i32::MAX, i32::MIN + 2), (3, 0)] {
                let unsigned = (more as u32).saturating_sub(less as u32) as i32;
                let expected = vec![index(trips.iter().sum()), index(trips.len() as i64), word(unsigned)];
                let given = [index(from), index(to), index(by), word(less), word(more)];
                assert_eq!(session.run(&given).expect("runs"), expected, "{from} to {to} by {by}, {less} to {more}");
            }
        }
    }
}
