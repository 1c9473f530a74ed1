//! Every code of this crate, by a program that triggers it.

use monopour_dealloc::lower::{LowerOptions, lower_deallocations};
use monopour_dealloc::models::{OwnershipModel, OwnershipModels};
use monopour_dealloc::ownership::BlockOwnership;
use monopour_dealloc::state::State;
use monopour_dealloc::{Options, convert_bufferization_to_memref, promote, run_ownership_with};
use monopour_ir::{Diagnostics, Op};

use crate::support::{EXTENSIONS, UPSTREAM, dealloc, parse};

fn fails(code: &str, text: &str, options: &Options) {
    let Err(errors) = dealloc(text, options) else { panic!("{code} was expected") };
    let found = errors.0.iter().find(|d| d.code == code).unwrap_or_else(|| panic!("{code} was expected: {errors}"));
    assert!(found.help.is_some(), "{code} has a hint");
}

/// An unregistered operation does not say which argument gets which operand.
#[test]
fn unknown_branch() {
    fails(
        "D0101",
        "func.func @f(%a: memref<4xf32>) {
            \"test.jump\"(%a)[^next] : (memref<4xf32>) -> ()
          ^next(%p: memref<4xf32>): return }",
        &EXTENSIONS,
    );
}

/// Upstream's messages.
#[test]
fn upstreams_preconditions() {
    let cases = [
        (
            "D0106",
            "Only structured control-flow loops are supported",
            "func.func @f(%c: i1) { cf.br ^a
          ^a: cf.cond_br %c, ^a, ^b
          ^b: return }",
        ),
        (
            "D0102",
            "memory free side-effect on MemRef value not supported!",
            "func.func @f() { %a = memref.alloc() : memref<4xf32>
          memref.dealloc %a : memref<4xf32>
          return }",
        ),
        (
            "D0102",
            "No deallocation operations must be present when running this pass!",
            "func.func @f(%a: memref<4xf32>, %c: i1) { bufferization.dealloc (%a : memref<4xf32>) if (%c)
          return }",
        ),
        (
            "D0107",
            "ops with unknown memory side effects are not supported",
            "func.func @f(%a: memref<4xf32>) { \"t.unknown\"(%a) : (memref<4xf32>) -> ()
          return }",
        ),
        (
            "D0108",
            "All operations with attached regions need to implement the RegionBranchOpInterface.",
            "func.func @f(%n: index) { %r = memref.generic_atomic_rmw %m[%n] : memref<4xf32> {
          ^bb0(%x: f32): memref.atomic_yield %x : f32 }
          return }",
        ),
        (
            "D0109",
            "BranchOpInterface operations with multiple successors are not supported yet",
            "func.func @f(%n: i32) { %a = memref.alloc() : memref<4xf32>
          cf.switch %n : i32, [default: ^a, 1: ^b]
          ^a: return
          ^b: return }",
        ),
        (
            "D0109",
            "Terminators with more than one successor are not supported!",
            "func.func @f(%n: i32, %a: memref<4xf32>) { cf.switch %n : i32, [default: ^a(%a : memref<4xf32>), 1: ^a(%a : memref<4xf32>)]
          ^a(%b: memref<4xf32>): return }",
        ),
    ];
    for (code, message, text) in cases {
        let text = text.replace("%n: index)", "%n: index, %m: memref<4xf32>)");
        let Err(errors) = dealloc(&text, &UPSTREAM) else { panic!("{code} was expected") };
        assert_eq!((errors.0[0].code, errors.0[0].message.as_str()), (code, message));
        assert!(errors.0[0].help.is_some());
    }
}

/// A model that makes a memref a candidate without setting its ownership.
#[test]
fn a_model_that_forgets_the_owner() {
    struct Forgetful;
    impl OwnershipModel for Forgetful {
        fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
            state.add_candidate(op.result(0), op.block().expect("in a block"));
            Ok(op)
        }
    }
    let module = parse(
        "func.func @f() { %a = \"t.make\"() : () -> memref<4xf32>
        %b = \"t.make\"() : () -> memref<4xf32>
        %c = arith.constant true
        %d = \"t.mix\"(%a, %b) : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
        return }",
    );
    let mut models = OwnershipModels::upstream();
    models.add("t.make", Made);
    models.add("t.mix", Forgetful);
    let errors = run_ownership_with(module.op(), &UPSTREAM, &models).expect_err("nobody owns it for sure");
    assert_eq!(errors.0[0].code, "D0111");
}

/// Allocates.
struct Made;
impl OwnershipModel for Made {
    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let block = op.block().expect("in a block");
        let always = state.constant(block, op.next().is_some_and(|next| next.is("t.make")));
        state.set(op.result(0), block, BlockOwnership::Unique(always));
        state.add_candidate(op.result(0), block);
        Ok(op)
    }
}

#[test]
fn lowering() {
    let pair = "func.func @f(%a: memref<4xf32>, %b: memref<4xf32>, %c: i1) {
        bufferization.dealloc (%a, %b : memref<4xf32>, memref<4xf32>) if (%c, %c)
        return }";
    let module = parse(pair);
    let function = module.op().find_all("func.func")[0];
    let upstream = LowerOptions::default();
    let errors = lower_deallocations(function, &upstream).expect_err("no place for a helper");
    assert_eq!(errors.0[0].code, "D0112");
    let codes = |errors: Diagnostics| errors.0.iter().map(|e| e.code).collect::<Vec<_>>();
    assert_eq!(
        codes(lower_deallocations(function.body().expect("body").ops()[0], &upstream).expect_err("no root")),
        ["D0113"]
    );
    lower_deallocations(function, &LowerOptions { extensions: true }).expect("needs no helper");
    for text in [
        "func.func @f(%a: memref<?xf32, strided<[10], offset: ?>>) -> memref<?xf32, strided<[10], offset: ?>> {
          %b = bufferization.clone %a : memref<?xf32, strided<[10], offset: ?>> to memref<?xf32, strided<[10], offset: ?>>
          return %b : memref<?xf32, strided<[10], offset: ?>> }",
        "func.func @f(%t: tensor<4xf32>) -> memref<4xf32> {
          %b = bufferization.to_buffer %t : tensor<4xf32> to memref<4xf32>
          return %b : memref<4xf32> }",
    ] {
        let module = parse(text);
        let errors = convert_bufferization_to_memref(module.op(), &upstream).expect_err("has no form");
        assert_eq!(codes(errors), ["D0114"]);
    }
}

#[test]
fn an_argument_is_freed() {
    fails(
        "D0102",
        "func.func @f(%a: memref<4xf32>, %b: memref<4xf32>, %c: i1) { %p = arith.select %c, %a, %b : memref<4xf32>
        memref.dealloc %p : memref<4xf32>
        return }",
        &EXTENSIONS,
    );
}

#[test]
fn unknown_owner() {
    fails(
        "D0103",
        "func.func @f(%p: memref<2xmemref<4xf32>>, %i: index) { %a = memref.load %p[%i] : memref<2xmemref<4xf32>>
        return }",
        &EXTENSIONS,
    );
}

#[test]
fn a_copy_without_a_rank() {
    fails("D0105", "func.func @f(%t: memref<*xf32>) -> memref<*xf32> { return %t : memref<*xf32> }", &EXTENSIONS);
}

#[test]
fn too_large_for_the_stack() {
    // Its size is defined in the task only, and has no bound.
    let module = parse(
        "func.func @f(%b: memref<4xf32>) { scf.forall (%i) in (4) {
        %a = memref.alloc(%i) : memref<?x1024xf32>
      } {monopour.kernel = {}}
      return }",
    );
    let errors = promote::run(module.op()).expect_err("no bound");
    assert_eq!(errors.0[0].code, "D0104");
}

/// A branch with unknown successor operands.
#[test]
fn a_branch_without_operands_of_its_own() {
    struct Silent;
    impl OwnershipModel for Silent {
        fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
            let freeable = state.freeable(op)?;
            state.dealloc(op, &freeable, Some(0))?;
            Ok(op)
        }
    }
    let module = parse(
        "func.func @f(%a: memref<4xf32>) { \"t.br\"()[^a] : () -> ()
          ^a: return }",
    );
    let mut models = OwnershipModels::upstream();
    models.add("t.br", Silent);
    let errors = run_ownership_with(module.op(), &UPSTREAM, &models).expect_err("says nothing");
    assert_eq!(errors.0[0].code, "D0110");
}
