//! Control flow: branches between blocks, joined types, copies in loops, and the number of type queries.

use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;

use crate::support::{boundaries, bufferize, parse};
use monopour_bufferize::op_model::{AliasModel, Buffers, OpModel, OpModels, UseModel};
use monopour_bufferize::{BufferTypes, Callees, FunctionBoundaryTypeConversion, Options, Rewriting, run_with_models};
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Diagnostics, Op};

fn loops() -> Options {
    Options { allow_return_allocs_from_loops: true, ..boundaries() }
}

/// The printed lines that contain one of the words, trimmed.
fn lines(text: &str, options: &Options, words: &[&str]) -> Vec<String> {
    let (module, _) = bufferize(text, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let printed = module.op().to_string();
    assert!(!printed.contains("tensor<"), "{printed}");
    printed.lines().map(str::trim).filter(|l| words.iter().any(|w| l.contains(w))).map(str::to_owned).collect()
}

/// MLIR's verifier allows such an argument; the rewrite must not recreate the switch endlessly.
#[test]
fn arguments_that_nothing_is_passed_to() {
    let text = "func.func @f(%n: index, %t: tensor<6xf32>, %u: tensor<6xf32>) -> tensor<6xf32> {
        %r = scf.index_switch %n -> tensor<6xf32>
        case 1 { scf.yield %t : tensor<6xf32> }
        default {
        ^bb0(%a: tensor<8xf32>):
          scf.yield %u : tensor<6xf32>
        }
        return %r : tensor<6xf32>
    }";
    for options in [boundaries(), Options { extensions: true, ..boundaries() }] {
        assert_eq!(lines(text, &options, &["scf.index_switch"]).len(), 1);
    }
    // For other operations they are refused, or stay on tensors.
    let text = "func.func @f(%w: !shape.witness, %t: tensor<6xf32>) -> tensor<6xf32> {
        %r = \"shape.assuming\"(%w) ({
        ^bb0(%a: tensor<8xf32>):
          \"shape.assuming_yield\"(%t) : (tensor<6xf32>) -> ()
        }) : (!shape.witness) -> tensor<6xf32>
        return %r : tensor<6xf32>
    }";
    let errors = bufferize(text, &boundaries()).expect_err("an argument is a tensor still");
    assert_eq!(errors.0[0].code, "B0120", "{errors}");
    bufferize(text, &Options { allow_unknown_ops: true, ..boundaries() }).unwrap_or_else(|e| panic!("{e}"));
}

/// Sizes beyond any memory: MLIR's products wrap, and so must those of a view's strides.
#[test]
fn strides_that_overflow() {
    let text = "func.func @f(%t: tensor<?x6xf32>, %i: index) -> tensor<4x6xf32> {
        %s = tensor.extract_slice %t[%i, 0] [4, 6] [9223372036854775807, 1] : tensor<?x6xf32> to tensor<4x6xf32>
        return %s : tensor<4x6xf32>
    }";
    let identity = FunctionBoundaryTypeConversion::Identity;
    let options = Options { function_boundary_type_conversion: identity, ..boundaries() };
    assert_eq!(lines(text, &options, &["strided<[-6, 1], offset: ?>>"]).len(), 2);
}

/// Upstream casts for the first edge only, which leaves invalid IR.
#[test]
fn each_edge_to_one_block_has_its_own_cast() {
    let text = "func.func @f(%c: i1, %t: tensor<8xf32>) -> tensor<8xf32> {
        %e = bufferization.alloc_tensor() : tensor<8xf32>
        cf.cond_br %c, ^b(%t : tensor<8xf32>), ^b(%e : tensor<8xf32>)
      ^b(%a: tensor<8xf32>):
        return %a : tensor<8xf32>
    }";
    let dynamic = "memref<8xf32, strided<[?], offset: ?>>";
    assert_eq!(
        lines(text, &boundaries(), &["memref.cast", "cf.cond_br"]),
        [
            format!("%cast = memref.cast %alloc : memref<8xf32> to {dynamic}"),
            format!("cf.cond_br %arg0, ^bb1(%arg1 : {dynamic}), ^bb1(%cast : {dynamic})"),
        ]
    );
}

#[test]
fn branches_stay_where_their_blocks_stay() {
    let text = "func.func @f(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
        cf.br ^b(%t : tensor<8xf32>)
      ^b(%a: tensor<8xf32>):
        %w = tensor.insert %x into %a[%i] : tensor<8xf32>
        return %w : tensor<8xf32>
    }";
    let (module, stats) = bufferize(text, &Options::default()).expect("bufferizes");
    let printed = module.op().to_string();
    assert!(printed.contains("cf.br ^bb1(%arg0 : tensor<8xf32>)"), "{printed}");
    // The argument is a tensor of the caller.
    assert_eq!(stats.copies, 1, "{printed}");
}

/// A loop of blocks whose argument's type changes by the back edge, in another such loop.
#[test]
fn types_go_around_loops_of_blocks() {
    let text = "func.func @f(%n: index, %c: i1, %x: f32) -> f32 {
        %c1 = arith.constant 1 : index
        %e = bufferization.alloc_tensor(%n) : tensor<?xf32>
        cf.br ^outer(%e : tensor<?xf32>)
      ^outer(%a: tensor<?xf32>):
        cf.br ^inner(%a : tensor<?xf32>)
      ^inner(%b: tensor<?xf32>):
        %s = tensor.extract_slice %b[%c1] [%n] [1] : tensor<?xf32> to tensor<?xf32>
        cf.cond_br %c, ^inner(%s : tensor<?xf32>), ^next
      ^next:
        cf.cond_br %c, ^outer(%b : tensor<?xf32>), ^end
      ^end:
        %y = tensor.extract %a[%c1] : tensor<?xf32>
        return %y : f32
    }";
    let found = lines(text, &boundaries(), &["^bb1(%0", "^bb2(%1"]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|l| l.contains("memref<?xf32, strided<[?], offset: ?>>")), "{found:?}");
}

#[test]
fn a_region_may_yield_in_several_blocks_with_extensions() {
    let text = "func.func @f(%c: i1, %t: tensor<8xf32>, %x: f32, %i: index) -> f32 {
        %r = scf.execute_region -> tensor<8xf32> {
          cf.cond_br %c, ^old, ^new
        ^old:
          scf.yield %t : tensor<8xf32>
        ^new:
          %w = tensor.insert %x into %t[%i] : tensor<8xf32>
          scf.yield %w : tensor<8xf32>
        }
        %y = tensor.extract %r[%i] : tensor<8xf32>
        return %y : f32
    }";
    let error = bufferize(text, &boundaries()).expect_err("upstream refuses");
    assert_eq!(error.0[0].message, "'scf.execute_region' op op without unique scf.yield is not supported");
    let found = lines(text, &Options { extensions: true, ..boundaries() }, &["scf.yield"]);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn loops_stay_in_their_memory_space() {
    let text = "func.func @f(%n: index, %u: tensor<4xf32>) -> (f32, f32) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %a = bufferization.alloc_tensor() {memory_space = 1 : i64} : tensor<4xf32>
        %b = bufferization.alloc_tensor() {memory_space = 1 : i64} : tensor<4xf32>
        %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (tensor<4xf32>, tensor<4xf32>) {
          scf.yield %y, %x : tensor<4xf32>, tensor<4xf32>
        }
        %f = tensor.extract %r#0[%c0] : tensor<4xf32>
        %g = tensor.extract %r#1[%c0] : tensor<4xf32>
        return %f, %g : f32, f32
    }";
    let found = lines(text, &loops(), &["memref.alloc"]);
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|l| l.contains("memref<4xf32, 1>")), "{found:?}");
    let other = text.replacen("{memory_space = 1 : i64}", "", 1);
    let errors = bufferize(&other, &loops()).expect_err("the spaces differ");
    let messages: Vec<&str> = errors.0.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        messages,
        ["'scf.for' op init_arg and yielded value bufferize to inconsistent memory spaces", "failed to bufferize op"]
    );
}

/// Tensors that a condition swaps are copied there; the yield then swaps back two buffers.
#[test]
fn a_while_loop_copies_what_its_condition_swaps() {
    let text = "func.func @f(%c: i1, %t: tensor<8xf32>, %u: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
        %r:2 = scf.while (%a = %t, %b = %u) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
          scf.condition(%c) %b, %a : tensor<8xf32>, tensor<8xf32>
        } do {
        ^bb0(%x: tensor<8xf32>, %y: tensor<8xf32>):
          scf.yield %y, %x : tensor<8xf32>, tensor<8xf32>
        }
        return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
    }";
    let (_, stats) = bufferize(text, &loops()).expect("bufferizes");
    assert_eq!(stats.copies, 2);
    let error = bufferize(text, &boundaries()).expect_err("needs the option");
    assert_eq!(error.0[0].message, "Condition arg #0 is not equivalent to the corresponding iter bbArg");
    // Extensions need no option; then a yield may not forward another's argument.
    let (_, stats) = bufferize(text, &Options { extensions: true, ..boundaries() }).expect("bufferizes");
    assert_eq!(stats.copies, 4);
}

#[test]
fn the_first_loop_that_yields_another_buffer_is_named() {
    let text = "func.func @f(%n: index, %t: tensor<8xf32>, %u: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t, %b = %u) -> (tensor<8xf32>, tensor<8xf32>) {
          scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
        }
        return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
    }";
    let error = bufferize(text, &boundaries()).expect_err("needs the option");
    assert_eq!(error.0.len(), 1);
    assert_eq!(error.0[0].message, "Yield operand #0 is not equivalent to the corresponding iter bbArg");
}

/// A model of `tensor.insert` that counts the queries of its types.
struct Counting {
    inner: Rc<dyn OpModel>,
    asked: Rc<Cell<usize>>,
}

impl OpModel for Counting {
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, callees: &Callees<'c>) -> UseModel<'c> {
        self.inner.use_of(op, operand, callees)
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        self.inner.aliases(op, operand, callees)
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        self.asked.set(self.asked.get() + 1);
        self.inner.buffer_types(op, types)
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        self.inner.rewrite(op, buffers, rw, pass)
    }
}

/// The number of type queries of a `tensor.insert`.
fn questions(text: &str) -> usize {
    let module = parse(text);
    let mut models = OpModels::upstream();
    let mut insert = None;
    module.op().walk(monopour_ir::WalkOrder::Pre, |op| {
        if op.is("tensor.insert") {
            insert = models.get(op, &loops()).cloned();
        }
    });
    let asked = Rc::new(Cell::new(0));
    models.add("tensor.insert", Counting { inner: insert.expect("there is an insert"), asked: asked.clone() });
    run_with_models(module.op(), &loops(), &models).unwrap_or_else(|e| panic!("{e}"));
    asked.get()
}

/// Nested loops whose carried tensor gets another layout on its way out.
fn nest(depth: usize) -> String {
    let mut text = String::from(
        "func.func @f(%x: f32, %n: index) -> tensor<?xf32> {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %t0 = bufferization.alloc_tensor(%n) : tensor<?xf32>\n",
    );
    for i in 0..depth {
        let _ = writeln!(
            text,
            "%r{i} = scf.for %i{i} = %c0 to %n step %c1 iter_args(%t{} = %t{i}) -> tensor<?xf32> {{",
            i + 1
        );
    }
    let _ = writeln!(text, "%w = tensor.insert %x into %t{depth}[%c0] : tensor<?xf32>");
    let _ = writeln!(text, "%s = tensor.extract_slice %w[%c1] [%n] [1] : tensor<?xf32> to tensor<?xf32>");
    let _ = writeln!(text, "scf.yield %s : tensor<?xf32>\n}}");
    for i in (1..depth).rev() {
        let _ = writeln!(text, "scf.yield %r{i} : tensor<?xf32>\n}}");
    }
    text + "return %r0 : tensor<?xf32>\n}"
}

/// Nested branches, each with an insert.
fn branches(depth: usize) -> String {
    let mut text = String::from("func.func @f(%t: tensor<8xf32>, %x: f32, %c: i1, %i: index) -> tensor<8xf32> {\n");
    for i in 0..depth {
        let _ = writeln!(text, "%w{i} = tensor.insert %x into %t[%i] : tensor<8xf32>");
        let _ = writeln!(text, "%r{i} = scf.if %c -> tensor<8xf32> {{\nscf.yield %w{i} : tensor<8xf32>\n}} else {{");
    }
    text += "scf.yield %t : tensor<8xf32>\n}\n";
    for i in (1..depth).rev() {
        let _ = writeln!(text, "scf.yield %r{i} : tensor<8xf32>\n}}");
    }
    text + "return %r0 : tensor<8xf32>\n}"
}

fn switch(cases: usize) -> String {
    let mut text = String::from(
        "func.func @f(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
        %r = scf.index_switch %i -> tensor<8xf32>\n",
    );
    for i in 0..cases {
        let _ = writeln!(text, "case {i} {{\n%w = tensor.insert %x into %t[%i] : tensor<8xf32>");
        let _ = writeln!(text, "scf.yield %w : tensor<8xf32>\n}}");
    }
    text + "default {\nscf.yield %t : tensor<8xf32>\n}\nreturn %r : tensor<8xf32>\n}"
}

#[test]
fn types_are_asked_for_a_few_times() {
    // Twice per loop whose argument's layout changes, not twice for each enclosing loop.
    let (nest_30, nest_60) = (questions(&nest(30)), questions(&nest(60)));
    assert!(nest_30 <= 2 * 30 && nest_60 <= 2 * 60, "{nest_30} {nest_60}");
    // Once for its own type, once for each enclosing branch with an early query.
    let (ifs_20, ifs_40) = (questions(&branches(20)), questions(&branches(40)));
    assert!(ifs_20 <= 20 * 20 && ifs_40 <= 40 * 40, "{ifs_20} {ifs_40}");
    assert!(questions(&switch(50)) <= 2 * 50 && questions(&switch(100)) <= 2 * 100);
}
