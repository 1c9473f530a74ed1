//! Partial bufferization: ops that stay on tensors, and the bridges to them.

use crate::support::{agreed_programs, bufferize, parse, upstream};
use monopour_bufferize::op_model::OpModels;
use monopour_bufferize::{Options, UnknownTypeConversion, finalize, run_one_shot, run_with_models};
use monopour_ir::Rewriter;

fn partial() -> Options {
    Options { allow_unknown_ops: true, ..Options::default() }
}

fn filtered(dialects: &str) -> Options {
    Options { dialect_filter: dialects.split(',').map(str::to_owned).collect(), ..partial() }
}

/// Upstream's output without the `to_buffer`s that it leaves unused.
fn upstream_used(text: &str, line: &str) -> String {
    let module = parse(&upstream(text, line));
    let mut rw = Rewriter::new(module.op().context());
    for op in module.op().find_all("bufferization.to_buffer").into_iter().filter(|op| op.result(0).is_unused()) {
        rw.erase(op);
    }
    module.op().to_string()
}

fn printed(text: &str, options: &Options) -> String {
    bufferize(text, options).unwrap_or_else(|e| panic!("{e}\n{text}")).0.op().to_string()
}

/// An op without a model between tensors that bufferize.
const UNKNOWN: &str = "func.func @f(%t: tensor<?xf32>, %i: index, %x: f32) -> (tensor<?xf32>, f32) {
    %0 = tensor.insert %x into %t[%i] : tensor<?xf32>
    %1 = \"tosa.custom\"(%0) {domain_name = \"x\", implementation_attrs = \"\", operator_name = \"y\"}
      : (tensor<?xf32>) -> tensor<?xf32>
    %2 = tensor.insert %x into %1[%i] : tensor<?xf32>
    %3 = tensor.extract %t[%i] : tensor<?xf32>
    return %2, %3 : tensor<?xf32>, f32
  }";

/// A loop whose body and surroundings belong to three dialects.
const LOOP: &str = "func.func @f(%t: tensor<8xf32>, %lb: index, %ub: index, %st: index, %x: f32) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %f = linalg.fill ins(%x : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %r = scf.for %i = %lb to %ub step %st iter_args(%a = %f) -> (tensor<8xf32>) {
      %s = tensor.extract %t[%i] : tensor<8xf32>
      %n = tensor.insert %s into %a[%i] : tensor<8xf32>
      scf.yield %n : tensor<8xf32>
    }
    return %r : tensor<8xf32>
  }";

/// Bridges stand where upstream's do, and are as many.
#[test]
fn bridges_are_upstreams() {
    let identity = Options { unknown_type_conversion: UnknownTypeConversion::Identity, ..partial() };
    let copying = Options { copy_before_write: true, ..partial() };
    let cases = [
        (partial(), "allow-unknown-ops"),
        (identity, "allow-unknown-ops unknown-type-conversion=identity-layout-map"),
        (copying, "allow-unknown-ops copy-before-write"),
        (filtered("tensor,bufferization"), "allow-unknown-ops dialect-filter=tensor,bufferization"),
        (filtered("linalg,bufferization"), "allow-unknown-ops dialect-filter=linalg,bufferization"),
    ];
    for text in [UNKNOWN, LOOP] {
        for (options, line) in &cases {
            assert_eq!(printed(text, options), upstream(text, line), "{line}");
        }
    }
}

/// A parallel loop that stays on tensors: its iterations insert through a buffer of its output.
#[test]
fn inserts_into_a_loop_that_stays() {
    let text = "func.func @f(%t: tensor<8xf32>, %s: tensor<4xf32>) -> tensor<8xf32> {
        %r = scf.forall (%i) in (2) shared_outs(%o = %t) -> (tensor<8xf32>) {
          %m = affine.apply affine_map<(d0) -> (d0 * 4)>(%i)
          scf.forall.in_parallel {
            tensor.parallel_insert_slice %s into %o[%m] [4] [1] : tensor<4xf32> into tensor<8xf32>
          }
        }
        return %r : tensor<8xf32>
      }";
    let line = "dialect-filter=tensor,bufferization";
    let options = Options { allow_unknown_ops: false, ..filtered("tensor,bufferization") };
    assert_eq!(printed(text, &options), upstream_used(text, line));
    let beyond = Options { extensions: true, ..options };
    assert!(printed(text, &beyond).contains("memref.copy"));
}

/// The same over the programs of this crate's tests, whose functions keep their signatures.
#[test]
fn programs_without_function_boundaries() {
    let mut seen = 0;
    // Upstream makes two buffers of a collapsed tensor, casts the values of a while loop, and leaves unused sizes of
    // concatenated and padded tensors; `rewrite` compares these cleaned up. It infers no memory space without an encoding.
    let names = ["collapse_shape", "scf.while", "tensor.concat", "tensor.pad", "tensor<*"];
    let differs = |text: &str| names.iter().any(|name| text.contains(name));
    for (name, text) in agreed_programs().into_iter().filter(|(_, text)| !differs(text)) {
        let line = "allow-unknown-ops allow-return-allocs-from-loops use-encoding-for-memory-space";
        let options =
            Options { allow_return_allocs_from_loops: true, use_encoding_for_memory_space: true, ..partial() };
        let Ok((ours, _)) = bufferize(&text, &options) else { continue };
        assert_eq!(ours.op().to_string(), upstream_used(&text, line), "{name}");
        seen += 1;
    }
    assert!(seen > 20, "{seen} programs");
}

/// Consecutive runs bufferize all, and the last pass reports no error.
#[test]
fn filters_in_sequence_and_the_end() {
    let copying = |options: Options| Options { copy_before_write: true, ..options };
    let module = parse(LOOP);
    for dialects in ["tensor,bufferization", "linalg,bufferization", "scf,bufferization"] {
        let line = format!("allow-unknown-ops copy-before-write dialect-filter={dialects}");
        let expected = upstream(&module.op().to_string(), &line);
        run_one_shot(module.op(), &copying(filtered(dialects))).expect("each run is partial");
        module.op().verify_with_diagnostics().expect("it stays valid");
        assert_eq!(module.op().to_string(), expected, "{line}");
    }
    let errors = finalize(module.op()).expect_err("the function is on tensors still");
    assert_eq!(errors.0[0].code, "B0124");
    assert_eq!(errors.0[0].message, "failed to legalize operation 'func.return'");
    assert!(errors.0[0].help.is_some());
    run_one_shot(module.op(), &copying(crate::support::boundaries())).expect("the function, too");
    finalize(module.op()).expect("nothing is left");
    assert!(!module.op().to_string().contains("tensor"), "{}", module.op());
}

/// With extensions each run of a sequence analyses the result of the earlier ones.
#[test]
fn filters_in_sequence_with_an_analysis() {
    let beyond = |options: Options| Options { extensions: true, allow_return_allocs_from_loops: true, ..options };
    let module = parse(LOOP);
    for dialects in ["tensor,bufferization", "linalg,bufferization", "scf,bufferization"] {
        run_one_shot(module.op(), &beyond(filtered(dialects))).unwrap_or_else(|e| panic!("{dialects}: {e}"));
        module.op().verify_with_diagnostics().expect("it stays valid");
    }
    run_one_shot(module.op(), &beyond(crate::support::boundaries())).expect("the function, too");
    finalize(module.op()).expect("nothing is left");
}

#[test]
fn finalizing_folds_bridges_and_casts_where_that_is_safe() {
    let text = "func.func @f(%m: memref<4xf32>, %i: index) -> (f32, f32) {
        %t = bufferization.to_tensor %m : memref<4xf32> to tensor<4xf32>
        %a = bufferization.to_buffer %t : tensor<4xf32> to memref<4xf32>
        %b = bufferization.to_buffer %t : tensor<4xf32> to memref<4xf32, strided<[?], offset: ?>>
        %x = memref.load %a[%i] : memref<4xf32>
        %y = memref.load %b[%i] : memref<4xf32, strided<[?], offset: ?>>
        return %x, %y : f32, f32
      }";
    let module = parse(text);
    assert_eq!(finalize(module.op()).expect("no tensor is left").folded, 2);
    let text = module.op().to_string();
    assert!(text.contains("memref.load %arg0[") && text.contains("memref.cast %arg0"), "{text}");
    assert!(!text.contains("bufferization"), "{text}");
}

#[test]
fn finalizing_names_what_is_left() {
    let lone = "func.func @f(%m: memref<f32>) -> tensor<f32> {
        %t = bufferization.to_tensor %m : memref<f32> to tensor<f32>
        return %t : tensor<f32>
      }";
    let errors = finalize(parse(lone).op()).expect_err("a tensor is left");
    let messages: Vec<_> = errors.0.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages, ["failed to legalize operation 'func.return'"]);
    let unused = "func.func @f(%t: tensor<f32>) { return }";
    let errors = finalize(parse(unused).op()).expect_err("the argument is a tensor");
    assert_eq!(errors.0[0].message, "failed to legalize operation 'func.func'");
}

/// An op that cannot be bufferized is named, in upstream's words.
#[test]
fn an_unknown_op_is_an_error_unless_it_may_stay() {
    let errors = bufferize(UNKNOWN, &Options::default()).expect_err("nothing describes it");
    assert_eq!((errors.0[0].code, errors.0[0].message.as_str()), ("B0120", "op was not bufferized"));
    assert!(errors.0[0].location.ends_with(":3:10"), "{errors}");
}

/// A memory space that must be inferred and cannot be.
#[test]
fn memory_spaces_are_inferred_or_refused() {
    let options = Options { must_infer_memory_space: true, ..Options::default() };
    let text = "func.func @f(%x: f32, %i: index) -> f32 {
        %0 = bufferization.alloc_tensor() : tensor<10xf32>
        %1 = tensor.insert %x into %0[%i] : tensor<10xf32>
        %2 = tensor.extract %1[%i] : tensor<10xf32>
        return %2 : f32
      }";
    let errors = bufferize(text, &options).expect_err("no space is given");
    let found: Vec<_> = errors.0.iter().map(|d| (d.code, d.message.as_str())).collect();
    assert_eq!(found, [("B0121", "could not infer memory space"), ("B0120", "failed to bufferize op")]);
    let placed = text.replace("alloc_tensor()", "alloc_tensor() {memory_space = 1 : i64}");
    let ours = printed(&placed, &options);
    assert!(ours.contains("memref<10xf32, 1>"), "{ours}");
    assert_eq!(ours, upstream(&placed, "must-infer-memory-space"));
}

/// A tensor that may alias another one is refused, unless every write is copied.
#[test]
fn to_tensor_says_restrict() {
    let text = "func.func @f(%m: memref<4xf32>, %i: index) -> f32 {
        %t = bufferization.to_tensor %m : memref<4xf32> to tensor<4xf32>
        %x = tensor.extract %t[%i] : tensor<4xf32>
        return %x : f32
      }";
    let errors = bufferize(text, &partial()).expect_err("it may be shared");
    assert_eq!(errors.0[0].code, "B0122");
    let copying = Options { copy_before_write: true, ..partial() };
    assert_eq!(printed(text, &copying), upstream(text, "allow-unknown-ops copy-before-write"));
}

fn beyond() -> Options {
    Options { extensions: true, ..partial() }
}

/// Two tensors that may share memory: the write of one is copied if the other is read afterwards.
#[test]
fn tensors_of_one_memref_are_aliases() {
    let program = |second: &str| {
        format!(
            "func.func @f(%m: memref<4xf32>, %i: index, %x: f32) -> f32 {{
              %n = memref.alloc() : memref<4xf32>
              %a = bufferization.to_tensor %m writable : memref<4xf32> to tensor<4xf32>
              %b = bufferization.to_tensor {second} : memref<4xf32> to tensor<4xf32>
              %c = tensor.insert %x into %a[%i] : tensor<4xf32>
              %y = tensor.extract %b[%i] : tensor<4xf32>
              %z = tensor.extract %c[%i] : tensor<4xf32>
              %s = arith.addf %y, %z : f32
              return %s : f32
            }}"
        )
    };
    let copies = |second: &str| bufferize(&program(second), &beyond()).expect("it is analysed").1.copies;
    assert_eq!(copies("%m"), 1, "the same memory");
    assert_eq!(copies("%n"), 0, "an allocation is no argument");
}

/// As above, for globals: one is the same memory wherever its address is taken, two are not.
#[test]
fn tensors_of_one_global_are_aliases() {
    let program = |second: &str| {
        format!(
            "memref.global \"private\" @g : memref<4xf32>
            memref.global \"private\" @h : memref<4xf32>
            func.func @f(%i: index, %x: f32) -> f32 {{
              %m = memref.get_global @g : memref<4xf32>
              %n = memref.get_global {second} : memref<4xf32>
              %a = bufferization.to_tensor %m writable : memref<4xf32> to tensor<4xf32>
              %b = bufferization.to_tensor %n : memref<4xf32> to tensor<4xf32>
              %c = tensor.insert %x into %a[%i] : tensor<4xf32>
              %y = tensor.extract %b[%i] : tensor<4xf32>
              %z = tensor.extract %c[%i] : tensor<4xf32>
              %s = arith.addf %y, %z : f32
              return %s : f32
            }}"
        )
    };
    let copies = |second: &str| bufferize(&program(second), &beyond()).expect("it is analysed").1.copies;
    assert_eq!((copies("@g"), copies("@h")), (1, 0));
}

/// A write to the memory itself may come before, or after the last use, and not between.
#[test]
fn writes_to_memory_that_is_seen_as_a_tensor() {
    let program = |before: &str, between: &str, after: &str| {
        format!(
            "func.func @f(%m: memref<4xf32>, %i: index, %x: f32) -> f32 {{
              {before}
              %a = bufferization.to_tensor %m : memref<4xf32> to tensor<4xf32>
              {between}
              %y = tensor.extract %a[%i] : tensor<4xf32>
              {after}
              return %y : f32
            }}"
        )
    };
    let store = "memref.store %x, %m[%i] : memref<4xf32>";
    let other = "%n = memref.alloc() : memref<4xf32> memref.store %x, %n[%i] : memref<4xf32>";
    bufferize(&program(store, other, store), &beyond()).expect("the tensor is what it was");
    let errors = bufferize(&program("", store, ""), &beyond()).expect_err("the tensor would change");
    assert_eq!(errors.0[0].code, "B0122");
    assert!(errors.0[0].message.contains("is written by memref.store") && errors.0[0].help.is_some(), "{errors}");
}

/// Without a model of ours upstream's interface is queried and rewrites.
#[test]
fn ops_without_a_model_have_upstreams() {
    let text = "func.func @f(%t: tensor<8xf32>, %i: index, %x: f32) -> (tensor<8xf32>, tensor<4xf32>, f32) {
        %e = tensor.empty() : tensor<8xf32>
        %0 = linalg.fill ins(%x : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
        %1 = tensor.insert %x into %t[%i] : tensor<8xf32>
        %2 = tensor.extract_slice %1[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>
        %3 = tensor.insert %x into %0[%i] : tensor<8xf32>
        %4 = tensor.extract %0[%i] : tensor<8xf32>
        return %3, %2, %4 : tensor<8xf32>, tensor<4xf32>, f32
      }";
    let module = parse(text);
    let stats = run_with_models(module.op(), &partial(), &OpModels::new()).expect("the interface is enough");
    module.op().verify_with_diagnostics().expect("it stays valid");
    assert_eq!(module.op().to_string(), upstream_used(text, "allow-unknown-ops"));
    let (_, ours) = bufferize(text, &partial()).expect("bufferizes");
    assert_eq!((stats.in_place, stats.out_of_place), (ours.in_place, ours.out_of_place));
}

/// The number of sizes of an unranked tensor is unknown.
#[test]
fn an_unranked_tensor_is_not_copied() {
    let text = "func.func private @ext(tensor<*xf32>) -> tensor<*xf32>
      func.func @f(%t: tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
        %0 = func.call @ext(%t) : (tensor<*xf32>) -> tensor<*xf32>
        return %0, %t : tensor<*xf32>, tensor<*xf32>
      }";
    let copying = Options { copy_before_write: true, ..crate::support::boundaries() };
    let errors = bufferize(text, &copying).expect_err("the call may write");
    let found = (errors.0[0].code, errors.0[0].message.as_str());
    assert_eq!(found, ("B0123", "copying of unranked tensors is not implemented"));
}
