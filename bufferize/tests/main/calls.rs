//! Calls: summaries, recursion, annotations of boundaries, and other analyses.

use monopour_analysis::facts::Facts;
use monopour_analysis::index::OperandId;
use monopour_analysis::one_shot::DecideError;
use monopour_bufferize::op_model::OpModels;
use monopour_bufferize::{Analysis, CopyBeforeWrite, Greedy, Options, Strategy, run_one_shot, run_with_analysis};
use monopour_ir::{Context, Module};

use crate::support::{boundaries, bufferize, parse, upstream};

/// Copies in a program's functions, by their remarks.
fn copies(text: &str, options: &Options) -> usize {
    bufferize(text, options).unwrap_or_else(|e| panic!("{e}\n{text}")).1.out_of_place as usize
}

/// A recursive function that updates its argument in place, with a caller that reads its own tensor afterwards or not.
fn recursion(read_after: bool) -> String {
    let read = if read_after { "%t" } else { "%r" };
    format!(
        "func.func private @rec(%t: tensor<8xf32>, %x: f32, %i: index, %more: i1) -> tensor<8xf32> {{
           %a = tensor.insert %x into %t[%i] : tensor<8xf32>
           %b = scf.if %more -> tensor<8xf32> {{
             %no = arith.constant false
             %c = func.call @rec(%a, %x, %i, %no) : (tensor<8xf32>, f32, index, i1) -> tensor<8xf32>
             scf.yield %c : tensor<8xf32>
           }} else {{
             scf.yield %a : tensor<8xf32>
           }}
           return %b : tensor<8xf32>
         }}
         func.func @main(%x: f32, %i: index, %more: i1) -> f32 {{
           %e = tensor.empty() : tensor<8xf32>
           %t = linalg.fill ins(%x : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
           %r = call @rec(%t, %x, %i, %more) : (tensor<8xf32>, f32, index, i1) -> tensor<8xf32>
           %v = tensor.extract {read}[%i] : tensor<8xf32>
           return %v : f32
         }}"
    )
}

#[test]
fn recursion_is_in_place() {
    let extended = Options { extensions: true, ..boundaries() };
    assert_eq!(copies(&recursion(false), &extended), 0);
    assert_eq!(copies(&recursion(true), &extended), 1, "the tensor is read after the call");
}

#[test]
fn mutual_recursion_that_reads_needs_no_copy() {
    let text = "func.func private @even(%t: tensor<8xf32>, %i: index) -> f32 {
        %r = call @odd(%t, %i) : (tensor<8xf32>, index) -> f32
        %v = tensor.extract %t[%i] : tensor<8xf32>
        %s = arith.addf %r, %v : f32
        return %s : f32
    }
    func.func private @odd(%t: tensor<8xf32>, %i: index) -> f32 {
        %r = call @even(%t, %i) : (tensor<8xf32>, index) -> f32
        %v = tensor.extract %t[%i] : tensor<8xf32>
        %s = arith.addf %r, %v : f32
        return %s : f32
    }";
    assert_eq!(copies(text, &Options { extensions: true, ..boundaries() }), 0);
    assert_eq!(copies(text, &boundaries()), 2, "as upstream, nothing is known of a call in a cycle");
}

/// Both annotated texts, printed by one printer.
fn annotated(text: &str, extra: &str, options: &Options) -> (String, String) {
    let module = parse(text);
    run_one_shot(module.op(), options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    (module.op().to_string(), upstream(text, extra))
}

const ANNOTATED: &str = "func.func private @ext(tensor<8xf32> {bufferization.access = \"read\"}, tensor<8xf32>) -> tensor<8xf32>
    func.func @two(%c: i1, %t: tensor<8xf32>, %u: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      cf.cond_br %c, ^a, ^b
    ^a:
      return %t, %t : tensor<8xf32>, tensor<8xf32>
    ^b:
      return %t, %u : tensor<8xf32>, tensor<8xf32>
    }
    func.func @none(%t: tensor<8xf32> {bufferization.access = \"none\"}, %x: f32) -> f32 {
      return %x : f32
    }
    func.func @writes(%t: tensor<8xf32>, %u: tensor<8xf32> {bufferization.writable = false}, %x: f32, %i: index, %b: i1) -> (tensor<8xf32>, tensor<8xf32>, f32) {
      %k = arith.constant dense<1.0> : tensor<8xf32>
      %r:2 = scf.if %b -> (tensor<8xf32>, f32) {
        scf.yield %k, %x : tensor<8xf32>, f32
      } else {
        %e = tensor.insert %x into %u[%i] : tensor<8xf32>
        scf.yield %e, %x : tensor<8xf32>, f32
      }
      %a = tensor.insert %x into %t[%i] : tensor<8xf32>
      %v = tensor.extract %t[%i] : tensor<8xf32>
      %w = call @ext(%a, %t) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      return %r#0, %w, %v : tensor<8xf32>, tensor<8xf32>, f32
    }
    func.func @again(%t: tensor<8xf32>, %i: index) -> f32 {
      %v = call @again(%t, %i) : (tensor<8xf32>, index) -> f32
      return %v : f32
    }
    func.func @calls_again(%t: tensor<8xf32>, %i: index) -> (f32, tensor<8xf32>) {
      %v = call @again(%t, %i) : (tensor<8xf32>, index) -> f32
      return %v, %t : f32, tensor<8xf32>
    }";

#[test]
fn annotations_are_upstreams() {
    let options = Options { test_analysis_only: true, dump_alias_sets: true, ..boundaries() };
    let (ours, theirs) =
        annotated(ANNOTATED, "bufferize-function-boundaries test-analysis-only dump-alias-sets", &options);
    assert_eq!(ours, theirs);
    let (ours, theirs) = annotated(
        ANNOTATED,
        "test-analysis-only dump-alias-sets",
        &Options { bufferize_function_boundaries: false, ..options },
    );
    assert_eq!(ours, theirs);
}

#[test]
fn conflicts_are_upstreams() {
    // One conflict per operand, so that the choice is unique; one function per module, for upstream numbers
    // conflicts in an order of functions that differs from run to run.
    let same = "func.func @same(%t: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %r = linalg.transpose ins(%t : tensor<8x8xf32>) outs(%t : tensor<8x8xf32>) permutation = [1, 0]
      return %r : tensor<8x8xf32>
    }";
    let two = "func.func @two(%t: tensor<8xf32>, %x: f32, %i: index) -> (tensor<8xf32>, tensor<8xf32>, f32) {
      %c = arith.constant dense<1.0> : tensor<8xf32>
      %a = tensor.insert %x into %t[%i] : tensor<8xf32>
      %e = tensor.extract %t[%i] : tensor<8xf32>
      %d = tensor.insert %x into %c[%i] : tensor<8xf32>
      %n = tensor.insert %e into %a[%i] : tensor<8xf32>
      %f = tensor.extract %a[%i] : tensor<8xf32>
      return %n, %d, %f : tensor<8xf32>, tensor<8xf32>, f32
    }";
    let options = Options { test_analysis_only: true, print_conflicts: true, ..boundaries() };
    for (text, mark) in
        [(same, "C_0[CONFL-WRITE: 1]"), (two, "C_1[DEF: bbArg 0]"), (two, "W_0[NOT-WRITABLE: result 0]")]
    {
        let (ours, theirs) =
            annotated(text, "bufferize-function-boundaries test-analysis-only print-conflicts", &options);
        assert_eq!(ours, theirs);
        assert!(ours.contains(mark), "{ours}");
    }
}

#[test]
fn functions_of_an_inner_module_stay() {
    let text = "func.func @outer(%t: tensor<8xf32>) -> tensor<8xf32> { return %t : tensor<8xf32> }
    module @inner {
      func.func @f(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
        %a = tensor.insert %x into %t[%i] : tensor<8xf32>
        %b = func.call @g(%a) : (tensor<8xf32>) -> tensor<8xf32>
        return %b : tensor<8xf32>
      }
      func.func private @g(%t: tensor<8xf32>) -> tensor<8xf32> { return %t : tensor<8xf32> }
    }";
    let (module, _) = bufferize(text, &boundaries()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(module.op().to_string(), upstream(text, "bufferize-function-boundaries"));
}

/// Only functions of the pass's own symbol table take part: nested ones are unchanged, not half rewritten.
#[test]
fn functions_that_lie_deeper_stay() {
    let inner = "func.func @f(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
        %a = bufferization.alloc_tensor() copy(%t) : tensor<8xf32>
        %b = tensor.insert %x into %a[%i] : tensor<8xf32>
        return %b : tensor<8xf32>
      }";
    for text in [
        format!("\"unknown.module\"() ({{ {inner} }}) : () -> ()"),
        format!("func.func @g() {{ builtin.module {{ {inner} }} return }}"),
        format!("func.func @g() {{ \"unknown.module\"() ({{ {inner} }}) : () -> () return }}"),
    ] {
        let cx = Context::new();
        cx.allow_unregistered_dialects(true);
        let parsed = || Module::parse(cx, text.as_bytes(), "test.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"));
        for options in [boundaries(), Options { extensions: true, ..boundaries() }, Options::pipeline()] {
            let module = parsed();
            run_one_shot(module.op(), &options).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(module.op().to_string(), parsed().op().to_string());
        }
    }
}

/// A module needs no name to be a symbol table of its own, and other symbol tables are no modules.
#[test]
fn nested_symbol_tables_stay() {
    let ops = "%c0 = arith.constant 0 : index
        %x = arith.constant 1.0 : f32
        %t = tensor.from_elements %x : tensor<1xf32>
        %y = tensor.extract %t[%c0] : tensor<1xf32>";
    for text in [
        format!("builtin.module {{ builtin.module {{ {ops} }} }}"),
        format!("builtin.module {{ gpu.module @k {{ gpu.func @f() {{ {ops} gpu.return }} }} }}"),
    ] {
        for options in [boundaries(), Options { extensions: true, ..boundaries() }] {
            let (module, stats) = bufferize(&text, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(module.op().to_string(), crate::support::parse(&text).op().to_string());
            assert_eq!((stats.in_place, stats.allocs), (0, 0));
        }
    }
}

#[test]
fn functions_that_are_not_analysed_are_copied() {
    let text = "func.func private @f(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
        %a = tensor.insert %x into %t[%i] : tensor<8xf32>
        return %a : tensor<8xf32>
    }
    func.func @main(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
        %a = call @f(%t, %x, %i) : (tensor<8xf32>, f32, index) -> tensor<8xf32>
        return %a : tensor<8xf32>
    }";
    assert_eq!(copies(text, &boundaries()), 0);
    let filtered = Options { no_analysis_func_filter: vec!["f".to_owned()], ..boundaries() };
    assert_eq!(copies(text, &filtered), 1);
}

const IN_PLACE: &str = "func.func @f(%t: tensor<8xf32>, %x: f32, %i: index) -> (tensor<8xf32>, f32) {
    %a = tensor.insert %x into %t[%i] : tensor<8xf32>
    %v = tensor.extract %a[%i] : tensor<8xf32>
    return %a, %v : tensor<8xf32>, f32
}";

/// Only operands that are just read are in place.
#[derive(Default)]
struct OnlyReads {
    reads: Vec<bool>,
}

impl Analysis for OnlyReads {
    fn begin(&mut self, function: &str, facts: &Facts) -> Result<(), DecideError> {
        assert_eq!(function, "f");
        self.reads = facts.operands().iter().map(|used| !used.writes).collect();
        Ok(())
    }
    fn is_in_place(&self, operand: OperandId) -> bool {
        use monopour_analysis::index::Id;
        self.reads[operand.index()]
    }
}

#[test]
fn the_analysis_is_replaceable() {
    let run = |options: &Options, analysis: &mut dyn Analysis| {
        let module = parse(IN_PLACE);
        let stats = run_with_analysis(module.op(), options, &OpModels::upstream(), analysis);
        (module.op().to_string(), stats.unwrap_or_else(|e| panic!("{e}")).out_of_place)
    };
    let built_in = |options: &Options| {
        let (module, stats) = bufferize(IN_PLACE, options).unwrap_or_else(|e| panic!("{e}"));
        (module.op().to_string(), stats.out_of_place)
    };
    let (greedy, copied) = (boundaries(), Options { copy_before_write: true, ..boundaries() });
    assert_eq!(run(&greedy, &mut Greedy::new(&greedy)), built_in(&greedy));
    assert_eq!(run(&greedy, &mut CopyBeforeWrite::default()), built_in(&copied));
    assert_eq!(run(&greedy, &mut OnlyReads::default()), built_in(&copied));
    assert_eq!(built_in(&greedy).1, 0);
    assert_eq!(built_in(&copied).1, 1);
}

#[test]
fn a_layout_that_is_declared_is_taken() {
    let text = "func.func private @e(tensor<8xf32> {bufferization.buffer_layout = affine_map<(d0) -> (d0)>})
    func.func @f(%t: tensor<?x?xf32> {bufferization.buffer_layout = strided<[?, 1]>}, %u: tensor<8xf32>, %i: index) -> f32 {
      call @e(%u) : (tensor<8xf32>) -> ()
      %v = tensor.extract %t[%i, %i] : tensor<?x?xf32>
      return %v : f32
    }";
    let (module, _) = bufferize(text, &boundaries()).unwrap_or_else(|e| panic!("{e}"));
    let text = module.op().to_string();
    assert!(text.contains("@f(%arg0: memref<?x?xf32, strided<[?, 1]>>"), "{text}");
    assert!(text.contains("@e(memref<8xf32> {bufferization.buffer_layout"), "{text}");
}

/// A private function with one argument, and calls on `%e`, which is row-major, or on a part of it.
fn private(calls: &str, body: &str) -> String {
    let text = format!(
        "func.func private @f(%t: tensor<4x8xf32>, %i: index) -> f32 {{
           {body}
           %v = tensor.extract %t[%i, %i] : tensor<4x8xf32>
           return %v : f32
         }}
         func.func @main(%x: f32, %i: index) -> f32 {{
           %n = tensor.empty() : tensor<8x16xf32>
           %w = linalg.fill ins(%x : f32) outs(%n : tensor<8x16xf32>) -> tensor<8x16xf32>
           %m = tensor.empty() : tensor<4x8xf32>
           %e = linalg.fill ins(%x : f32) outs(%m : tensor<4x8xf32>) -> tensor<4x8xf32>
           %p = tensor.extract_slice %w[4, 8] [4, 8] [1, 1] : tensor<8x16xf32> to tensor<4x8xf32>
           %q = tensor.extract_slice %w[%i, 0] [4, 8] [1, 1] : tensor<8x16xf32> to tensor<4x8xf32>
           {calls}
           return %r : f32
         }}"
    );
    let options = Options { strategy: Strategy::Minimal, extensions: true, ..boundaries() };
    let (module, _) = bufferize(&text, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}"));
    let text = module.op().to_string();
    let signature = text.lines().find(|line| line.contains("@f(%arg0")).expect("it is kept");
    signature.split("%arg0: ").nth(1).and_then(|rest| rest.split(", %arg1").next()).expect("an argument").to_owned()
}

#[test]
fn a_private_function_takes_the_layout_of_all_calls() {
    let call = |name: &str, of: &str| format!("%{name} = func.call @f(%{of}, %i) : (tensor<4x8xf32>, index) -> f32\n");
    assert_eq!(private(&call("r", "e"), ""), "memref<4x8xf32>");
    assert_eq!(private(&(call("s", "e") + &call("r", "e")), ""), "memref<4x8xf32>");
    assert_eq!(private(&(call("s", "p") + &call("r", "p")), ""), "memref<4x8xf32, strided<[16, 1], offset: 72>>");
    // Two layouts: any.
    let any = "memref<4x8xf32, strided<[?, ?], offset: ?>>";
    assert_eq!(private(&(call("s", "p") + &call("r", "q")), ""), any);
    assert_eq!(private(&(call("s", "e") + &call("r", "p")), ""), any);
    // Its own calls are calls, too.
    let again = "%s = func.call @f(%t, %i) : (tensor<4x8xf32>, index) -> f32";
    assert_eq!(private(&call("r", "p"), again), any, "what it is given at first is not what was assumed");
    assert_eq!(private(&call("r", "e"), again), "memref<4x8xf32>");
}

#[test]
fn what_is_outside_of_functions_is_analysed() {
    let text = "func.func @f(%t: tensor<4xf32>) -> tensor<4xf32> { return %t : tensor<4xf32> }
    %e = tensor.empty() : tensor<4xf32>
    %x = arith.constant 1.0 : f32
    %y = arith.constant 2.0 : f32
    %i = arith.constant 1 : index
    %a = linalg.fill ins(%x : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %b = linalg.fill ins(%y : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
    %v = tensor.extract %a[%i] : tensor<4xf32>
    %w = tensor.extract %b[%i] : tensor<4xf32>
    vector.print %v : f32
    vector.print %w : f32";
    let (module, _) = bufferize(text, &boundaries()).unwrap_or_else(|e| panic!("{e}"));
    let text = module.op().to_string();
    assert_eq!(text.matches("memref.alloc").count(), 2, "{text}");
}
