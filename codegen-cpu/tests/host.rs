//! The host function calls the runtime in order.

use crate::harness::{can_run, compile_module, scratch};
use monopour_codegen_cpu::object::baseline;
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

/// A runtime that prints its calls.
const RUNTIME: &str = r#"
#include <stdint.h>
#include <stdio.h>
typedef int64_t I;
I monopour_rt_input(I cx, I i) { printf("input %ld %ld\n", cx, i); return 10; }
I monopour_rt_alloc(I cx, I n) { printf("alloc %ld %ld\n", cx, n); return 11; }
void monopour_rt_arg(I cx, I h, I o, I n) { printf("arg %ld %ld %ld %ld\n", cx, h, o, n); }
void monopour_rt_dispatch(I cx, I k, I x, I y, I z) { printf("dispatch %ld %ld %ld %ld %ld\n", cx, k, x, y, z); }
void monopour_rt_result(I cx, I i, I h) { printf("result %ld %ld %ld\n", cx, i, h); }
extern void entry(I cx);
int main(void) { entry(7); return 0; }
"#;

#[test]
fn calls_the_runtime_in_order() {
    if !can_run() {
        return;
    }
    // The C runtime's own `main` takes the name.
    let code = compile_module(&HOST.replace("@main", "@entry"), &baseline()).unwrap();
    assert_eq!(code.entry, "entry");
    let dir = scratch();
    std::fs::write(dir.join("rt.c"), RUNTIME).unwrap();
    std::fs::write(dir.join("code.o"), &code.objects[0]).unwrap();
    let built = Command::new("cc").current_dir(&dir).args(["-o", "run", "rt.c", "code.o"]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(dir.join("run")).output().unwrap();
    let expected = "input 7 0\nalloc 7 64\narg 7 10 0 64\narg 7 11 0 64\ndispatch 7 0 3 1 1\nresult 7 0 11\n";
    assert_eq!(String::from_utf8_lossy(&ran.stdout), expected);
    std::fs::remove_dir_all(dir).unwrap();
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
