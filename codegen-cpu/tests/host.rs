//! The host function calls the runtime in order.

use crate::harness::{can_run, compile_module, scratch};
use monopour_codegen_cpu::object::baseline;
use monopour_program::NativeCode;
use object::{Object, ObjectSymbol};
use std::process::Command;

const HOST: &str = r#"
func.func private @monopour_rt_input(i64, i64) -> i64
func.func private @monopour_rt_alloc(i64, i64) -> i64
func.func private @monopour_rt_arg(i64, i64, i64, i64)
func.func private @monopour_rt_dispatch(i64, i64, i64, i64, i64)
func.func private @monopour_rt_result(i64, i64, i64)
func.func @main(%cx: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c3 = arith.constant 3 : i64
  %c64 = arith.constant 64 : i64
  %in = call @monopour_rt_input(%cx, %c0) : (i64, i64) -> i64
  %out = call @monopour_rt_alloc(%cx, %c64) : (i64, i64) -> i64
  call @monopour_rt_arg(%cx, %in, %c0, %c64) : (i64, i64, i64, i64) -> ()
  call @monopour_rt_arg(%cx, %out, %c0, %c64) : (i64, i64, i64, i64) -> ()
  call @monopour_rt_dispatch(%cx, %c0, %c3, %c1, %c1) : (i64, i64, i64, i64, i64) -> ()
  call @monopour_rt_result(%cx, %c0, %out) : (i64, i64, i64) -> ()
  return
}
"#;

/// A runtime that prints its calls, and lets loops make ten trips in all.
const RUNTIME: &str = r#"
#include <stdint.h>
#include <stdio.h>
typedef int64_t I;
I monopour_rt_input(I cx, I i) { printf("input %ld %ld\n", cx, i); return 10; }
I monopour_rt_alloc(I cx, I n) { static I next = 11; printf("alloc %ld %ld\n", cx, n); return next++; }
void monopour_rt_arg(I cx, I h, I o, I n) { printf("arg %ld %ld %ld %ld\n", cx, h, o, n); }
void monopour_rt_dispatch(I cx, I k, I x, I y, I z) { printf("dispatch %ld %ld %ld %ld %ld\n", cx, k, x, y, z); }
void monopour_rt_result(I cx, I i, I h) { printf("result %ld %ld %ld\n", cx, i, h); }
I monopour_rt_ok(I cx) { static I trips = 10; return cx == 7 && trips-- > 0; }
extern void entry(I cx);
int main(void) { entry(7); return 0; }
"#;

#[test]
fn calls_the_runtime_in_order() {
    if !can_run() {
        return;
    }
    let expected = "input 7 0\nalloc 7 64\narg 7 10 0 64\narg 7 11 0 64\ndispatch 7 0 3 1 1\nresult 7 0 11\n";
    assert_eq!(trace(HOST).0, expected);
}

/// What the runtime is asked for when the host function, `@main`, runs; and the code.
fn trace(host: &str) -> (String, NativeCode) {
    // The C runtime's own `main` takes the name.
    let code = compile_module(&host.replace("@main", "@entry"), &baseline()).unwrap();
    assert_eq!(code.entry, "entry");
    let dir = scratch();
    std::fs::write(dir.join("rt.c"), RUNTIME).unwrap();
    std::fs::write(dir.join("code.o"), &code.objects[0]).unwrap();
    let built = Command::new("cc").current_dir(&dir).args(["-o", "run", "rt.c", "code.o"]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(dir.join("run")).output().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    (String::from_utf8_lossy(&ran.stdout).into_owned(), code)
}

/// A host function of `layers` dispatches and the calls that it makes. Layer `i` reads the results of the layers `i - 1` and
/// `i - reach`; every tenth stands in a condition that holds.
fn layers(layers: i64, reach: i64) -> (String, String) {
    let (head, _) = HOST.split_once("func.func @main").unwrap();
    let mut host = format!("{head}func.func @main(%cx: i64) {{\n  %c0 = arith.constant 0 : i64\n");
    host += "  %c64 = arith.constant 64 : i64\n  %h0 = call @monopour_rt_input(%cx, %c0) : (i64, i64) -> i64\n";
    host += "  %holds = arith.cmpi eq, %h0, %h0 : i64\n";
    let mut calls = "input 7 0\n".to_owned();
    for i in 1..=layers {
        let far = (i - reach).max(0);
        host += &format!("  %h{i} = func.call @monopour_rt_alloc(%cx, %c64) : (i64, i64) -> i64\n");
        calls += "alloc 7 64\n";
        let mut body = format!("  %k{i} = arith.constant {i} : i64\n");
        for handle in [i - 1, far, i] {
            body +=
                &format!("  func.call @monopour_rt_arg(%cx, %h{handle}, %k{i}, %c64) : (i64, i64, i64, i64) -> ()\n");
            calls += &format!("arg 7 {} {i} 64\n", 10 + handle);
        }
        body += &format!(
            "  func.call @monopour_rt_dispatch(%cx, %k{i}, %c0, %c0, %c0) : (i64, i64, i64, i64, i64) -> ()\n"
        );
        calls += &format!("dispatch 7 {i} 0 0 0\n");
        host += &if i % 10 == 0 { format!("  scf.if %holds {{\n{body}  }}\n") } else { body };
    }
    host += &format!("  call @monopour_rt_result(%cx, %c0, %h{layers}) : (i64, i64, i64) -> ()\n  return\n}}\n");
    (host, calls + &format!("result 7 0 {}\n", 10 + layers))
}

/// The functions in the first object.
fn functions(code: &NativeCode) -> usize {
    let file = object::File::parse(code.objects[0].as_slice()).unwrap();
    file.symbols().filter(|s| s.kind() == object::SymbolKind::Text && s.is_definition()).count()
}

#[test]
fn long_functions_are_cut_and_call_the_same() {
    if !can_run() {
        return;
    }
    // (layers, reach, functions): five operations a layer, 1,000 a part, the last part in the function itself.
    for (count, reach, parts) in [(10, 3, 1), (900, 1, 5), (900, 20, 5)] {
        let (host, calls) = layers(count, reach);
        let (traced, code) = trace(&host);
        assert_eq!(traced, calls, "{count} layers");
        assert_eq!(functions(&code), parts, "{count} layers, {reach} in use");
    }
}

#[test]
fn no_part_has_more_results_than_bounded() {
    if !can_run() {
        return;
    }
    // 40 values are in use everywhere: nowhere can the function be cut.
    let (host, calls) = layers(900, 40);
    let (traced, code) = trace(&host);
    assert_eq!((traced, functions(&code)), (calls, 1));
}

#[test]
fn wide_floats_cross_from_part_to_part_and_bf16_does_not() {
    if !can_run() {
        return;
    }
    for (ty, parts) in [("f64", 5), ("f32", 5), ("bf16", 1)] {
        let (host, calls) = layers(900, 1);
        let made = format!("  %float = arith.sitofp %h0 : i64 to {ty}\n  %h1 =");
        let used = format!(
            "  %used = arith.fptosi %float : {ty} to i64\n  call @monopour_rt_result(%cx, %c1, %used) : (i64, i64, i64) -> ()\n  \
             return"
        );
        let host = host.replace("  %h1 =", &made).replace("  return", &used);
        let (traced, code) = trace(&host.replace("  %c64 =", "  %c1 = arith.constant 1 : i64\n  %c64 ="));
        assert_eq!((traced, functions(&code)), (calls + "result 7 1 10\n", parts), "{ty}");
    }
}

#[test]
fn long_bodies_of_loops_are_cut() {
    if !can_run() {
        return;
    }
    let (host, calls) = layers(900, 2);
    let (first, rest) = host.split_once("  %h1 =").unwrap();
    let (body, _) = rest.split_once("  call @monopour_rt_result").unwrap();
    let bounds = "  %one = arith.constant 1 : i64\n  %two = arith.constant 2 : i64\n";
    let (traced, code) = trace(&format!(
        "{first}{bounds}  scf.for %i = %c0 to %two step %one : i64 {{\n  %h1 ={body}  }}\n  return\n}}\n"
    ));
    let (input, layer_calls) = calls.split_once("alloc").unwrap();
    let (layer_calls, _) = layer_calls.rsplit_once("result").unwrap();
    let again: Vec<String> = format!("alloc{layer_calls}").lines().map(later_handles).collect();
    assert_eq!(traced, format!("{input}alloc{layer_calls}{}\n", again.join("\n")));
    assert_eq!(functions(&code), 5);
}

/// Loops ask before each trip whether the run goes on, nested ones too, and say how far they came.
#[test]
fn loops_end_when_the_run_does() {
    if !can_run() {
        return;
    }
    let (head, _) = HOST.split_once("func.func @main").unwrap();
    let traced = trace(&format!(
        "{head}func.func @main(%cx: i64) {{
          %c0 = arith.constant 0 : i64
          %c1 = arith.constant 1 : i64
          %c2 = arith.constant 2 : i64
          %many = arith.constant 1000000000000 : i64
          %trips = scf.for %i = %c0 to %many step %c2 iter_args(%t = %c0) -> (i64) : i64 {{
            scf.for %j = %c0 to %c2 step %c1 : i64 {{
              func.call @monopour_rt_result(%cx, %i, %j) : (i64, i64, i64) -> ()
            }}
            %u = arith.addi %t, %c1 : i64
            scf.yield %u : i64
          }}
          call @monopour_rt_result(%cx, %c0, %trips) : (i64, i64, i64) -> ()
          return
        }}"
    ));
    // Ten questions: a trip of the outer loop takes one, the inner loop three, one of which is at its end.
    let calls = ["0 0", "0 1", "2 0", "2 1", "4 0", "0 3"];
    assert_eq!(traced.0, calls.map(|call| format!("result 7 {call}\n")).concat());
}

/// A call of the second iteration: its handles, but the input's, are 900 more.
fn later_handles(call: &str) -> String {
    let words: Vec<&str> = call.split(' ').collect();
    match words[..] {
        ["arg", cx, handle, layer, size] if handle != "10" => {
            format!("arg {cx} {} {layer} {size}", handle.parse::<i64>().unwrap() + 900)
        }
        _ => call.to_owned(),
    }
}

#[test]
fn same_input_same_bytes() {
    let first = compile_module(HOST, &baseline()).unwrap();
    let second = compile_module(HOST, &baseline()).unwrap();
    assert_eq!(first, second);
}

#[test]
fn weights_stay_out_of_the_object() {
    let weights = "memref.global \"private\" constant @w : memref<1024x1024xf32> = dense_resource<w>\n";
    let code = compile_module(&format!("{weights}{HOST}"), &baseline()).unwrap();
    assert!(code.size_bytes() < 4096, "{} bytes", code.size_bytes());
}
