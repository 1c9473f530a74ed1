//! Counted steps: near-linear in blocks and allocations, whatever the machine.

use monopour_dealloc::run_ownership;
use monopour_dealloc::simplify::simplify;
use std::fmt::Write;

use crate::support::{EXTENSIONS, UPSTREAM, parse};

/// Steps of owners and of simplification.
fn steps(text: &str) -> (u64, u64) {
    let module = parse(text);
    let owners = run_ownership(module.op(), &UPSTREAM).expect("owners");
    let simplified = simplify(module.op()).expect("simplifies");
    (owners.steps, simplified.steps)
}

/// Twice the size may take that many times the steps.
const MAX_GROWTH: f64 = 2.4;

fn grows_slowly(name: &str, size: usize, program: impl Fn(usize) -> String) {
    let (small, large) = (steps(&program(size)), steps(&program(2 * size)));
    let general = (general_steps(&program(size)), general_steps(&program(2 * size)));
    let parts = [
        ("owners", small.0, large.0),
        ("simplification", small.1, large.1),
        ("any control flow", general.0, general.1),
    ];
    for (part, small, large) in parts {
        assert!(small > size as u64, "{name}: {part} of {size} counts {small}");
        let growth = large as f64 / small as f64;
        assert!(growth <= MAX_GROWTH, "{name}: {part} from {small} to {large}, that is {growth:.2} times as much");
    }
}

/// Steps of the general engine: the last line excludes a function from the other one.
fn general_steps(text: &str) -> u64 {
    let text = text
        .replace("return }", "%last = memref.alloc() : memref<4xf32>\nmemref.dealloc %last : memref<4xf32>\nreturn }");
    run_ownership(parse(&text).op(), &EXTENSIONS).expect("owners").steps
}

/// Upstream compares each allocation with each other one: 5.3 s for 5,000.
#[test]
fn allocations_in_one_block() {
    grows_slowly("allocations", 2500, |count| {
        let mut text = "func.func @f(%x: f32) {\n".to_owned();
        for i in 0..count {
            _ = writeln!(text, "%a{i} = memref.alloc() : memref<4xf32>");
            _ = writeln!(text, "linalg.fill ins(%x : f32) outs(%a{i} : memref<4xf32>)");
        }
        text + "return }"
    });
}

/// Upstream follows each path: 6 s for 26 diamonds.
#[test]
fn diamonds() {
    grows_slowly("diamonds", 300, |count| {
        let mut text = "func.func @f(%c: i1, %x: f32, %m: memref<4xf32>) {\ncf.br ^b0(%m : memref<4xf32>)\n".to_owned();
        for i in 0..count {
            let next = i + 1;
            _ = writeln!(text, "^b{i}(%m{i}: memref<4xf32>):\n%a{i} = memref.alloc() : memref<4xf32>");
            _ = writeln!(text, "linalg.fill ins(%x : f32) outs(%a{i} : memref<4xf32>)");
            _ = writeln!(text, "cf.cond_br %c, ^l{i}, ^r{i}");
            _ = writeln!(text, "^l{i}: cf.br ^b{next}(%a{i} : memref<4xf32>)");
            _ = writeln!(text, "^r{i}: cf.br ^b{next}(%m{i} : memref<4xf32>)");
        }
        _ = writeln!(text, "^b{count}(%e: memref<4xf32>):");
        text + "linalg.fill ins(%x : f32) outs(%e : memref<4xf32>)\nreturn }"
    });
}

/// Loops that yield their argument or a new buffer, one after the other.
#[test]
fn loops() {
    grows_slowly("loops", 300, |count| {
        let mut text = "func.func @f(%c: i1, %x: f32, %n: index, %m0: memref<4xf32>) {\n".to_owned();
        for i in 0..count {
            let next = i + 1;
            _ = writeln!(
                text,
                "%m{next} = scf.for %i{i} = %n to %n step %n iter_args(%k{i} = %m{i}) -> memref<4xf32> {{"
            );
            _ = writeln!(
                text,
                "%a{i} = memref.alloc() : memref<4xf32>\nmemref.copy %k{i}, %a{i} : memref<4xf32> to memref<4xf32>"
            );
            _ = writeln!(text, "scf.yield %a{i} : memref<4xf32>\n}}");
        }
        _ = writeln!(text, "linalg.fill ins(%x : f32) outs(%m{count} : memref<4xf32>)");
        text + "return }"
    });
}

/// Each function consumes a buffer and transfers another one.
fn chain_of_calls(count: usize) -> String {
    let mut text = "func.func @main(%x: f32) {\n%a = memref.alloc() : memref<4xf32>\n".to_owned();
    _ = writeln!(text, "func.call @f0(%a, %x) : (memref<4xf32>, f32) -> ()\nreturn }}");
    for i in 0..count {
        let next = i + 1;
        _ = writeln!(text, "func.func private @f{i}(%p: memref<4xf32>, %x: f32) {{");
        _ = writeln!(text, "linalg.fill ins(%x : f32) outs(%p : memref<4xf32>)");
        _ = writeln!(text, "%a = memref.alloc() : memref<4xf32>\nmemref.copy %p, %a : memref<4xf32> to memref<4xf32>");
        _ = writeln!(text, "func.call @f{next}(%a, %x) : (memref<4xf32>, f32) -> ()\nreturn }}");
    }
    let last = "linalg.fill ins(%x : f32) outs(%p : memref<4xf32>)\nreturn }";
    text + &format!("func.func private @f{count}(%p: memref<4xf32>, %x: f32) {{\n{last}")
}

#[test]
fn calls() {
    grows_slowly("calls", 300, chain_of_calls);
}

/// Consumed arguments of private functions are tried by deciding all of them again, which counts.
#[test]
fn trials_of_what_functions_take_count() {
    let (alone, tried) = (chain_of_calls(50).replace("private", ""), chain_of_calls(50));
    let (alone, tried) = (general_steps(&alone), general_steps(&tried));
    assert!(tried > 2 * alone, "{tried} steps with trials, {alone} without");
}
