//! `monopour opt` as users start it: mlir-opt's command line, with monopour's passes under upstream's names.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "\
func.func @main(%a: tensor<8x4xf32>, %b: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.fill ins(%c : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
";
const BUFFERIZE: &str =
    "-one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map";

fn start(program: &str, input: &str, args: &[&str]) -> Output {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    child.stdin.take().expect("is piped").write_all(input.as_bytes()).expect("takes the input");
    child.wait_with_output().expect("ends")
}

fn opt(args: &[&str]) -> (Option<i32>, String, String) {
    opt_on(PROGRAM, args)
}

fn opt_on(input: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let mut all = vec!["opt", "-"];
    all.extend(args);
    let output = start(env!("CARGO_BIN_EXE_monopour"), input, &all);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn bufferization_is_monopours_and_prints_what_upstreams_prints() {
    let (status, ours, err) = opt(&[BUFFERIZE, "-mlir-pass-statistics"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("(S)        1 num-buffer-alloc        - monopour: number of buffer allocations"), "{err}");
    let (_, upstreams, err) = opt(&[BUFFERIZE, "-mlir-pass-statistics", "--use-upstream=one-shot-bufferize"]);
    assert!(!err.contains("monopour: number of buffer allocations"), "{err}");
    assert_eq!(ours, upstreams);
}

/// `strategy=minimal` knows which parts of a buffer do not overlap, and that loops may exchange buffers.
#[test]
fn the_strategy_minimal_copies_less() {
    let programs = [
        ("cache", include_str!("../../bufferize/tests/programs/copies/cache.mlir"), 2, 1),
        ("disjoint_halves", include_str!("../../bufferize/tests/programs/copies/disjoint_halves.mlir"), 1, 0),
        ("double_buffer", include_str!("../../bufferize/tests/programs/copies/double_buffer.mlir"), 2, 0),
    ];
    for (name, program, greedy, minimal) in programs {
        let copies = |strategy: &str| {
            let pass = format!("-one-shot-bufferize=bufferize-function-boundaries extensions strategy={strategy}");
            let (status, out, err) = opt_on(program, &[&pass]);
            assert_eq!(status, Some(0), "{name}: {err}");
            out.matches("memref.copy").count()
        };
        assert_eq!((copies("greedy"), copies("minimal")), (greedy, minimal), "{name}");
    }
    let (status, _, err) = opt(&["-one-shot-bufferize=strategy=most"]);
    assert!(status == Some(1) && err.contains("strategy"), "{err}");
}

#[test]
fn deallocation_is_monopours() {
    let extensions = "-ownership-based-buffer-deallocation=extensions";
    let (status, out, err) = opt(&[BUFFERIZE, extensions, "-mlir-pass-statistics"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(err.contains("(ownership-based-buffer-deallocation)\n  (S)"), "{err}");
    // The only buffer is the result.
    assert!(!out.contains("dealloc"), "{out}");
}

#[test]
fn a_wrong_value_of_an_option_is_a_diagnostic() {
    // I0015; upstream's form has no codes.
    let (status, _, err) = opt(&["-one-shot-bufferize=bufferize-function-boundaries analysis-heuristic=sideways"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("error: invalid value 'sideways' of option 'analysis-heuristic'"), "{err}");
}

#[test]
fn help_lists_both_and_other_flags_are_mlir_opts() {
    let (status, help, _) = opt(&["--help"]);
    assert_eq!(status, Some(0));
    for text in [
        "monopour: One-Shot Bufferize",
        "--ownership-based-buffer-deallocation",
        "--canonicalize",
        "--split-input-file",
        "--use-upstream=<pass,...>",
    ] {
        assert!(help.contains(text), "{text}");
    }
    let (status, out, _) = opt(&["-split-input-file", "-verify-diagnostics", "--canonicalize", "-cse"]);
    assert_eq!((status, out.contains("linalg.matmul")), (Some(0), true));
}

#[test]
fn statistics_go_to_a_file() {
    let file = std::env::temp_dir().join(format!("monopour-statistics-{}", std::process::id()));
    let (status, _, err) = opt(&[BUFFERIZE, &format!("--statistics-to={}", file.display())]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    let report = std::fs::read_to_string(&file).expect("is written");
    std::fs::remove_file(&file).expect("is there");
    assert!(report.starts_with("OneShotBufferize (one-shot-bufferize)\n  (S)        1 num-buffer-alloc"), "{report}");
    assert!(!report.contains("num-errors"), "{report}");
    let (status, _, err) = opt(&[BUFFERIZE, "--statistics-to=/nowhere/file"]);
    assert!(status == Some(2) && err.contains("/nowhere/file"), "{err}");
}

const TRANSFORM: &str = "\
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.consumed}) {
    %0 = transform.bufferization.one_shot_bufferize %module {bufferize_function_boundaries = true}
        : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
  func.func @f(%t: tensor<4xf32>) -> tensor<4xf32> { return %t : tensor<4xf32> }
}
";

#[test]
fn transform_ops_say_that_they_run_upstreams_engine() {
    let remark = "<stdin>:3:10: remark: runs upstream's bufferization, not monopour's";
    let (status, out, err) = opt_on(TRANSFORM, &["--transform-interpreter"]);
    assert!(status == Some(0) && out.contains("return %arg0 : memref<4xf32"), "{out}{err}");
    assert!(err.contains(remark), "{err}");
    // No test of upstream's would expect it.
    let (status, _, err) = opt_on(TRANSFORM, &["--transform-interpreter", "-verify-diagnostics"]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
}

#[test]
fn lists_of_passes_and_dialects_are_mlir_opts() {
    let (status, out, _) = opt(&["--show-dialects"]);
    assert!(status == Some(0) && out.starts_with("Available Dialects: ") && out.contains(",linalg,"), "{out}");
    let (status, out, _) = opt(&["--list-passes"]);
    assert!(status == Some(0) && out.contains("one-shot-bufferize"), "{out}");
}

#[test]
fn each_conversion_pattern_leaves_valid_ir_to_look_at() {
    let partial = "\
func.func @main(%m: memref<4xf32>, %x: f32, %i: index) {
  %t = bufferization.to_tensor %m : memref<4xf32> to tensor<4xf32>
  %a = bufferization.to_buffer %t : tensor<4xf32> to memref<4xf32>
  %b = bufferization.to_buffer %t : tensor<4xf32> to memref<4xf32>
  memref.store %x, %a[%i] : memref<4xf32>
  memref.store %x, %b[%i] : memref<4xf32>
  return
}
";
    let (status, out, err) = opt_on(partial, &["-finalizing-bufferize", "--dump-after-each-pattern"]);
    assert_eq!((status, out.contains("bufferization")), (Some(0), false), "{out}{err}");
    let dumps: Vec<(&str, &str)> = err
        .split("// after pattern ")
        .skip(1)
        .map(|dump| dump.split_once('\n').expect("a line, then the IR"))
        .collect();
    let heads: Vec<&str> = dumps.iter().map(|dump| dump.0).collect();
    let folds = "'convert bufferization.to_buffer' on 'bufferization.to_buffer'";
    assert_eq!(heads, [folds, folds, "'convert bufferization.to_tensor' on 'bufferization.to_tensor'"]);
    for (i, (_, ir)) in dumps.iter().enumerate() {
        let (status, same, err) = opt_on(ir, &[]);
        assert_eq!(status, Some(0), "{err}");
        assert_eq!(same.matches("bufferization.to_buffer").count(), 2 - (i + 1).min(2), "{same}");
    }
}

/// mlir-opt parses each dump of bufferization; where two patterns change an op together, nothing is dumped between them.
#[test]
fn each_dump_of_bufferization_is_valid() {
    let text = "\
func.func private @callee(%t: tensor<4xf32>, %x: f32, %i: index) -> tensor<4xf32> {
  %0 = tensor.insert %x into %t[%i] : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%t: tensor<4xf32>, %x: f32, %c: i1, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> (tensor<4xf32>) {
    %b = scf.if %c -> (tensor<4xf32>) {
      %p = func.call @callee(%a, %x, %i) : (tensor<4xf32>, f32, index) -> tensor<4xf32>
      scf.yield %p : tensor<4xf32>
    } else {
      %f = linalg.fill ins(%x : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
      scf.yield %f : tensor<4xf32>
    }
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
";
    let pass = "-one-shot-bufferize=bufferize-function-boundaries extensions";
    let (status, _, err) = opt_on(text, &[pass, "--dump-after-each-pattern"]);
    assert_eq!(status, Some(0), "{err}");
    let (mut printed, mut left_out) = (vec![], 0);
    for dump in err.split("// after pattern ").skip(1) {
        match dump.split_once('\n').expect("a line, then the IR").1 {
            ir if ir.starts_with("// not printed") => left_out += 1,
            ir => printed.push(ir),
        }
    }
    assert!(!printed.is_empty() && printed.len() + left_out >= 8, "{err}");
    for ir in printed {
        assert!(ir.contains("func.func"), "{ir}");
        monopour_testkit::oracle::mlir_opt("", ir).unwrap_or_else(|e| panic!("{e}\n{ir}"));
    }
}
