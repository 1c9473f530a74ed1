//! Arguments that a private function consumes are freed earlier: the peak of the heap falls, and nothing else changes.

use monopour_dealloc::run_ownership;
use monopour_ir::{Context, Module};
use monopour_testkit::evaluate::lifetimes::{Program, Run, Watch, same_values};
use monopour_testkit::{Data, Dtype, HostTensor};

use crate::support::EXTENSIONS;

fn run(text: &str) -> Run {
    let module = Module::parse(Context::new(), text.as_bytes(), "takes.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"));
    run_ownership(module.op(), &EXTENSIONS).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let bit = HostTensor { dtype: Dtype::Int(1), shape: vec![], data: Data::Int(vec![0]) };
    let inputs = [HostTensor::random(Dtype::F32, &[4], 7), bit];
    let program = Program::new(&module).expect("it runs");
    program.run("main", &inputs, Watch::Owners).unwrap_or_else(|e| panic!("{e}\n{}", module.op()))
}

/// Peak of the heap in buffers of 16 bytes: with private callees, and with the same functions as public ones, which consume none.
fn check(text: &str, private: u64, public: u64) {
    let (lower, higher) = (run(text), run(&text.replace("private ", "")));
    same_values(&higher, &lower).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!((lower.cost.peak_bytes, higher.cost.peak_bytes), (16 * private, 16 * public), "{text}");
}

const WORK: &str = "func.func private @work(%p: memref<4xf32>, %o: memref<4xf32>) {
    %x = arith.constant 2.0 : f32
    memref.copy %p, %o : memref<4xf32> to memref<4xf32>
    %a = memref.alloc() : memref<4xf32>
    linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
    memref.copy %a, %o : memref<4xf32> to memref<4xf32>
    return
    }\n";

fn main_function(body: &str) -> String {
    format!(
        "func.func @main(%o: memref<4xf32>, %c: i1) {{
        %b = memref.alloc() : memref<4xf32>
        memref.copy %o, %b : memref<4xf32> to memref<4xf32>
        {body}
        return }}"
    )
}

#[test]
fn a_buffer_is_freed_by_the_callee() {
    let call = "func.call @work(%b, %o) : (memref<4xf32>, memref<4xf32>) -> ()";
    check(&(WORK.to_owned() + &main_function(call)), 1, 2);
}

#[test]
fn a_buffer_is_given_on() {
    let between = "func.func private @between(%p: memref<4xf32>, %o: memref<4xf32>) {
        func.call @work(%p, %o) : (memref<4xf32>, memref<4xf32>) -> ()
        return }\n";
    let call = "func.call @between(%b, %o) : (memref<4xf32>, memref<4xf32>) -> ()";
    check(&(WORK.to_owned() + between + &main_function(call)), 1, 2);
}

#[test]
fn a_buffer_is_used_after_one_of_the_calls() {
    let calls = "func.call @work(%b, %o) : (memref<4xf32>, memref<4xf32>) -> ()
        memref.copy %b, %o : memref<4xf32> to memref<4xf32>
        func.call @work(%b, %o) : (memref<4xf32>, memref<4xf32>) -> ()";
    check(&(WORK.to_owned() + &main_function(calls)), 2, 2);
}

#[test]
fn a_buffer_is_given_in_one_branch_and_used_in_the_other() {
    let calls = "scf.if %c { memref.copy %b, %o : memref<4xf32> to memref<4xf32> } else {
        %d = memref.alloc() : memref<4xf32>
        memref.copy %b, %d : memref<4xf32> to memref<4xf32>
        func.call @work(%d, %o) : (memref<4xf32>, memref<4xf32>) -> () }";
    check(&(WORK.to_owned() + &main_function(calls)), 2, 3);
}

/// A buffer for each iteration, which the loop carries through the callee.
#[test]
fn a_loop_carries_what_the_callee_returns() {
    let next = "func.func private @next(%p: memref<4xf32>) -> memref<4xf32> {
        %x = memref.load %p[%i] : memref<4xf32>
        %a = memref.alloc() : memref<4xf32>
        linalg.fill ins(%x : f32) outs(%a : memref<4xf32>)
        return %a : memref<4xf32> }\n"
        .replace("%x =", "%i = arith.constant 1 : index\n%x =");
    let calls = "%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %r = scf.for %k = %c0 to %c3 step %c1 iter_args(%m = %b) -> (memref<4xf32>) {
            %n = func.call @next(%m) : (memref<4xf32>) -> memref<4xf32>
            scf.yield %n : memref<4xf32>
        }
        memref.copy %r, %o : memref<4xf32> to memref<4xf32>";
    check(&(next + &main_function(calls)), 1, 2);
}
