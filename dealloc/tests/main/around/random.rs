//! Random programs before and after each pass, run with checked buffers: the values are the same, no buffer is used after
//! it was freed, and owned buffers are still freed once.

use monopour_dealloc::around::{CopyRemovalOptions, remove_copies};
use monopour_dealloc::run_ownership;
use monopour_ir::typed::memref;
use monopour_ir::{Context, InsertionPoint, Module, Op, OpSpec, Rewriter, Value, WalkOrder};
use monopour_testkit::evaluate::lifetimes::{Program, Run, Watch, same_values};
use monopour_testkit::generate_memrefs::{Shape, inputs, module};
use monopour_testkit::random::{Rng, seeds};

use super::apply;
use crate::support::EXTENSIONS;

/// Passes with their options.
const PASSES: &[(&str, &str)] = &[
    ("buffer-hoisting", ""),
    ("buffer-hoisting", "extensions"),
    ("buffer-loop-hoisting", ""),
    ("optimize-allocation-liveness", ""),
    ("promote-buffers-to-stack", ""),
    ("promote-buffers-to-stack", "extensions"),
    ("drop-equivalent-buffer-results", ""),
    ("drop-equivalent-buffer-results", "extensions"),
    ("buffer-results-to-out-params", "hoist-static-allocs extensions"),
    ("copy-removal", ""),
    ("copy-removal", "extensions"),
];

fn parse<'c>(cx: Context<'c>, text: &str) -> Module<'c> {
    Module::parse(cx, text.as_bytes(), "random.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The number of ops of a name.
fn number_of(module: &Module, name: &str) -> usize {
    module.op().nested(WalkOrder::Pre).iter().filter(|op| op.is(name)).count()
}

fn runs(module: &Module, seed: u64, watch: Watch) -> Result<Vec<Run>, String> {
    let program = Program::new(module).map_err(|e| e.to_string())?;
    inputs(seed).iter().map(|inputs| program.run("main", inputs, watch).map_err(|e| e.to_string())).collect()
}

/// The number of programs that a pass changed. Each is run until every branch is taken.
fn check<'c>(pass: &str, options: &str, programs: impl Iterator<Item = (u64, Module<'c>)>, watch: Watch) -> usize {
    let mut changed = 0;
    for (seed, before) in programs {
        let after = before.duplicate();
        let name = || format!("{pass} {options}, seed {seed}");
        apply(pass, options, after.op()).unwrap_or_else(|e| panic!("{}: {e}", name()));
        if let Err(e) = after.op().verify_with_diagnostics() {
            panic!("{}: {e}\n{}", name(), after.op());
        }
        if before.op().to_string() == after.op().to_string() {
            continue;
        }
        changed += 1;
        let expected = runs(&before, seed, watch).unwrap_or_else(|e| panic!("{}: the program itself: {e}", name()));
        let found = runs(&after, seed, watch);
        let same = found.and_then(|found| {
            expected.iter().zip(&found).try_for_each(|(a, b)| same_values(a, b).map_err(|e| e.to_string()))
        });
        if let Err(e) = same {
            panic!("{}: {e}\nfrom\n{}\nto\n{}", name(), before.op(), after.op());
        }
    }
    changed
}

/// Programs without frees; signatures of functions may change.
#[test]
fn programs_mean_the_same() {
    let cx = Context::new();
    for (pass, options) in PASSES {
        let seeds = seeds(60, 4000);
        let is_sample = seeds.end - seeds.start >= 60;
        let programs = seeds.map(|seed| (seed, parse(cx, &module(seed, Shape::structured(seed)))));
        let changed = check(pass, options, programs, Watch::Accesses);
        // Views and frees of this kind are rare in these programs.
        let is_rare = ["optimize-allocation-liveness", "drop-equivalent-buffer-results", "copy-removal"].contains(pass);
        assert!(changed > 0 || is_rare || !is_sample, "{pass} {options} changed nothing");
    }
}

/// Programs with frees: passes that move and drop them.
#[test]
fn owners_stay_owners() {
    let cx = Context::new();
    let owned = |seed| {
        let shape = if seed % 2 == 0 { Shape::whole(seed) } else { Shape::giving(seed) };
        let module = parse(cx, &module(seed, shape));
        run_ownership(module.op(), &EXTENSIONS).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        (number_of(&module, "memref.dealloc") > 0).then_some((seed, module))
    };
    // Hoisted out of a branch, a buffer would leak on the other path: upstream's form of that pass is for programs without frees.
    let passes = PASSES.iter().filter(|p| **p != ("buffer-hoisting", "") && p.0 != "buffer-results-to-out-params");
    for (pass, options) in passes.filter(|p| p.0 != "drop-equivalent-buffer-results") {
        let changed = check(pass, options, seeds(60, 4000).filter_map(owned), Watch::Owners);
        println!("{pass} {options}: {changed} programs changed");
    }
}

/// Makes parts of blocks use copies of buffers.
fn add_copies(rng: &mut Rng, module: &Module) {
    let mut rw = Rewriter::new(module.context());
    for alloc in module.op().find_all("memref.alloc") {
        let Some((from, to)) = part_of_block(rng, alloc) else { continue };
        if rng.below(2) == 0 {
            borrow(rng, &mut rw, alloc, from, to);
        } else {
            hand_over(rng, &mut rw, alloc, from, to);
        }
    }
}

/// Two ops after the allocation in its block, before it is freed there.
fn part_of_block<'c>(rng: &mut Rng, alloc: Op<'c>) -> Option<(Op<'c>, Op<'c>)> {
    let ops = alloc.block()?.ops();
    let start = ops.iter().position(|op| *op == alloc)? + 1;
    let frees = |op: &Op<'c>| op.is_terminator() || (op.is("memref.dealloc") && op.operand(0) == alloc.result(0));
    let end = start + ops[start..].iter().position(frees)?;
    let at = |rng: &mut Rng| start + rng.below((end - start + 1) as u64) as usize;
    let (a, b) = (at(rng), at(rng));
    (a != b && rng.below(2) == 0).then(|| (ops[a.min(b)], ops[a.max(b)]))
}

/// A buffer like another one, at the insertion point.
fn like<'c>(rw: &mut Rewriter<'c>, alloc: Op<'c>) -> Value<'c> {
    let spec = memref::alloc(alloc.location(), &alloc.operands(), alloc.result(0).ty());
    rw.create(spec).expect("it builds").result(0)
}

fn op<'c>(rw: &mut Rewriter<'c>, name: &str, alloc: Op<'c>, operands: &[Value<'c>]) {
    rw.create(OpSpec::new(name, alloc.location()).operands(operands)).expect("it builds");
}

/// The op of the allocation's block that is or contains this one.
fn in_block<'c>(alloc: Op<'c>, user: Op<'c>) -> Option<Op<'c>> {
    std::iter::successors(Some(user), |op| op.parent()).find(|op| op.block() == alloc.block())
}

/// From one op to a later one, most uses are of another buffer, which is then copied back.
fn borrow<'c>(rng: &mut Rng, rw: &mut Rewriter<'c>, alloc: Op<'c>, from: Op<'c>, to: Op<'c>) {
    let buffer = alloc.result(0);
    let moves = |op: Op<'c>| op == from || (from.is_before_in_block(op) && op.is_before_in_block(to));
    let uses: Vec<_> = buffer.uses().into_iter().filter(|u| in_block(alloc, u.op).is_some_and(moves)).collect();
    rw.set_point(InsertionPoint::Before(from));
    let copy = like(rw, alloc);
    // Its initial contents come from the buffer, or from an argument of the function.
    let argument = alloc.ancestor("func.func").and_then(|f| f.body()).map(|b| b.arg(0));
    let first = argument.filter(|a| a.ty() == buffer.ty() && rng.below(4) > 0).unwrap_or(buffer);
    op(rw, "memref.copy", alloc, &[first, copy]);
    for used in uses.into_iter().filter(|_| rng.below(8) > 0) {
        rw.set_operand(used.op, used.index, copy);
    }
    rw.set_point(InsertionPoint::Before(to));
    op(rw, "memref.copy", alloc, &[copy, buffer]);
    op(rw, "memref.dealloc", alloc, &[copy]);
}

/// From one op on another buffer is used, which is allocated there or earlier.
fn hand_over<'c>(rng: &mut Rng, rw: &mut Rewriter<'c>, alloc: Op<'c>, from: Op<'c>, to: Op<'c>) {
    let buffer = alloc.result(0);
    let moves = |op: Op<'c>| op == to || to.is_before_in_block(op);
    let uses: Vec<_> = buffer.uses().into_iter().filter(|u| in_block(alloc, u.op).is_none_or(moves)).collect();
    rw.set_point(InsertionPoint::Before(if rng.below(2) == 0 { from } else { to }));
    let copy = like(rw, alloc);
    uses.into_iter().for_each(|used| rw.set_operand(used.op, used.index, copy));
    rw.set_point(InsertionPoint::Before(to));
    op(rw, "memref.copy", alloc, &[buffer, copy]);
    if rng.below(4) == 0 {
        // A use of the buffer after the copy keeps it.
        let element = Rng::below(rng, 2) as i64;
        let index = rw.const_index(element, alloc.location());
        let zero = rw.const_index(0, alloc.location());
        let size = OpSpec::new("memref.dim", alloc.location()).operands(&[buffer, zero]).infer_results();
        rw.create(size).expect("it builds");
        let load = OpSpec::new("memref.load", alloc.location()).operands(&[buffer, index]).infer_results();
        rw.create(load).expect("it builds");
    }
    op(rw, "memref.dealloc", alloc, &[buffer]);
}

/// Only copies that are not needed are removed.
#[test]
fn copies_that_are_removed_were_not_needed() {
    let cx = Context::new();
    for extensions in [false, true] {
        let (mut programs, mut sources, mut targets) = (0, 0, 0);
        for seed in seeds(150, 10_000) {
            let before = parse(cx, &module(seed, Shape::whole(seed)));
            run_ownership(before.op(), &EXTENSIONS).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            add_copies(&mut Rng::new(seed), &before);
            // A view of the copy that is used after it makes the program invalid.
            let Ok(expected) = runs(&before, seed, Watch::Owners) else { continue };
            programs += 1;
            let after = before.duplicate();
            let options = CopyRemovalOptions { arguments_may_alias: false, extensions };
            let stats = remove_copies(after.op(), &options).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let found = runs(&after, seed, Watch::Owners);
            let same = found.and_then(|f| expected.iter().zip(&f).try_for_each(|(a, b)| same_values(a, b)));
            if let Err(e) = same {
                panic!("seed {seed}: {e}\nfrom\n{}\nto\n{}", before.op(), after.op());
            }
            sources += stats.sources_reused;
            targets += stats.targets_reused;
        }
        println!("{programs} programs, {sources} sources and {targets} targets reused");
        assert!(sources > 10 && targets > 10, "{programs} programs, {sources} sources and {targets} targets reused");
    }
}
