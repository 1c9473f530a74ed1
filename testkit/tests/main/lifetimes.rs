//! Lifetime checks, by programs with one defect each.

use monopour_ir::{Context, Module};
use monopour_testkit::evaluate::lifetimes::{Program, Run, Watch};
use monopour_testkit::{Defect, EvalError, HostTensor};

const T: &str = "memref<4xf32>";

fn run(text: &str, watch: Watch) -> Result<Run, EvalError> {
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("the test's program parses");
    let input = HostTensor::from_f32(&[4], &[1.0, 2.0, 3.0, 4.0]).expect("four elements");
    Program::new(&module)?.run("main", &[input], watch)
}

/// Runs the body of a function that takes `%a` and returns one or two buffers.
fn body(results: &str, body: &str) -> Result<Run, EvalError> {
    run(&format!("func.func @main(%a: {T}) -> ({results}) {{\n{body}\n}}"), Watch::Owners)
}

fn has(defect: Defect, found: Result<Run, EvalError>) {
    let found = found.map(|run| run.results).expect_err("there is a defect");
    assert_eq!(found.defect(), Some(defect), "{found}");
}

#[test]
fn each_defect_is_named() {
    let alloc = "%x = memref.alloc() : memref<4xf32>\nmemref.copy %a, %x : memref<4xf32> to memref<4xf32>\n";
    let free = "memref.dealloc %x : memref<4xf32>\n";
    let load = "%c0 = arith.constant 0 : index\n%v = memref.load %x[%c0] : memref<4xf32>\n";
    has(Defect::Leak, body("", &format!("{alloc}return")));
    has(Defect::UseAfterFree, body("", &format!("{alloc}{free}{load}return")));
    has(Defect::DoubleFree, body("", &format!("{alloc}{free}{free}return")));
    has(Defect::ForeignFree, body("", "memref.dealloc %a : memref<4xf32>\nreturn"));
    has(
        Defect::ForeignFree,
        body("", "%x = memref.alloca() : memref<4xf32>\nmemref.dealloc %x : memref<4xf32>\nreturn"),
    );
    has(Defect::ResultNotOwned, body(T, &format!("return %a : {T}")));
    has(Defect::ResultNotOwned, body(T, &format!("{alloc}{free}return %x : {T}")));
    has(Defect::ResultShared, body(&format!("{T}, {T}"), &format!("{alloc}return %x, %x : {T}, {T}")));
    let callee = "func.func @f(%a: memref<4xf32>) { memref.dealloc %a : memref<4xf32>\nreturn }\n";
    let caller = format!("func.func @main(%a: {T}) {{\n{alloc}call @f(%x) : ({T}) -> ()\nreturn\n}}");
    has(Defect::ArgumentFreed, run(&format!("{callee}{caller}"), Watch::Owners));
    let private = callee.replace("@f(", "private @f(");
    assert!(run(&format!("{private}{caller}"), Watch::Owners).is_ok(), "a private function may agree with its callers");
    assert!(body(T, &format!("{alloc}return %x : {T}")).is_ok());
}

/// A freed address is reused, so that pointers alone do not identify buffers.
#[test]
fn addresses_come_back() {
    let text = "func.func @main(%a: memref<4xf32>) -> i1 {
      %x = memref.alloc() : memref<4xf32>
      %p = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
      memref.dealloc %x : memref<4xf32>
      %y = memref.alloc() : memref<4xf32>
      %q = memref.extract_aligned_pointer_as_index %y : memref<4xf32> -> index
      memref.dealloc %y : memref<4xf32>
      %same = arith.cmpi eq, %p, %q : index
      return %same : i1
    }";
    assert_eq!(run(text, Watch::Owners).expect("no defect").results[0].to_f64(), [1.0]);
}

#[test]
fn views_share_the_memory_of_their_buffer() {
    let text = "func.func @main(%a: memref<4xf32>) -> (f32, f32) {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %seven = arith.constant 7.0 : f32
      %x = memref.alloc() : memref<4xf32>
      linalg.add ins(%a, %a : memref<4xf32>, memref<4xf32>) outs(%x : memref<4xf32>)
      %e = memref.expand_shape %x [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
      %v = memref.subview %e[1, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<2xf32, strided<[1], offset: 2>>
      %before = memref.load %v[%c0] : memref<2xf32, strided<[1], offset: 2>>
      memref.store %seven, %v[%c0] : memref<2xf32, strided<[1], offset: 2>>
      %after = memref.load %x[%c2] : memref<4xf32>
      memref.dealloc %x : memref<4xf32>
      return %before, %after : f32, f32
    }";
    let run = run(text, Watch::Owners).expect("no defect");
    assert_eq!(run.results.iter().map(HostTensor::to_f64).collect::<Vec<_>>(), [[6.0], [7.0]]);
    assert_eq!((run.cost.allocations, run.cost.peak_bytes), (1, 16));
}

/// Before deallocation, a public function returns copies of memory that its caller must not free.
#[test]
fn results_are_copies_of_arguments() {
    let text = "func.func @f(%a: memref<4xf32>) -> memref<4xf32> { return %a : memref<4xf32> }
    func.func @main(%a: memref<4xf32>) -> f32 {
      %c0 = arith.constant 0 : index
      %seven = arith.constant 7.0 : f32
      %x = call @f(%a) : (memref<4xf32>) -> memref<4xf32>
      memref.store %seven, %x[%c0] : memref<4xf32>
      %kept = memref.load %a[%c0] : memref<4xf32>
      return %kept : f32
    }";
    assert_eq!(run(text, Watch::Accesses).expect("it runs").results[0].to_f64(), [1.0]);
    let private = text.replacen("@f(", "private @f(", 1);
    assert_eq!(run(&private, Watch::Accesses).expect("it runs").results[0].to_f64(), [7.0]);
}
