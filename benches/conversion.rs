//! CPU time and peak memory of dialect conversions: our driver beside upstream's two modes, on the same modules.
//!
//! Each measurement is a process of its own, which builds the module in memory before the clock starts. Upstream's passes
//! run through the pass manager without its verifier, on a context without threads, as ours does. The conversions are those
//! of the tests, which show that both sides give the same IR. With `--features floor` there is a fourth side: the same
//! conversions in C++, without a driver, patterns and casts, the cost of MLIR itself. It gives the same text as ours.
//!
//! ```text
//! cargo bench -p monopour-ir --bench conversion                  quick: 10,000 ops, one sample, no limits
//! cargo bench -p monopour-ir --bench conversion -- --full        10,000 to 1,000,000 ops; status 1 where a limit is missed
//!                                                 --only SHAPE   one shape
//!                                                 --write FILE   the table as Markdown
//!                                                 --repeat SHAPE N SIDE TIMES   runs only, for a profiler
//! ```

mod allocator;
#[path = "../ir/tests/lowerings/mod.rs"]
mod lowerings;
mod measure;

use std::process::ExitCode;

use lowerings::{scf_to_cf, to_llvm};
use measure::{Measured, Output};
use monopour_ir::conversion::on_clone;
use monopour_ir::{Attr, Block, Builder, Context, InsertionPoint, Module, Op, OpSpec, Region, Type, Value, run_passes};

/// Largest allowed growth of the time for ten times the ops: 10,000 ops fit the caches, 100,000 do not.
const MAX_GROWTH: f64 = 14.0;
/// The smallest module that is measured.
const FEWEST_OPS: usize = 10_000;
/// Ops of one function.
const FUNCTION_OPS: usize = 1_000;

/// A module with its conversion.
struct Shape {
    name: &'static str,
    /// Adds about as many ops as requested; returns their result. Types of the arguments: `index` twice.
    body: for<'c> fn(&mut Emit<'c, '_>, usize) -> Value<'c>,
    is_structured: bool,
    /// Largest allowed ratio of our CPU time to that of upstream's mode without rollback.
    max_ratio: f64,
}

const SHAPES: &[Shape] = &[
    Shape { name: "index arithmetic to llvm", body: index_arithmetic, is_structured: false, max_ratio: 0.3 },
    Shape { name: "mixed arithmetic to llvm", body: mixed_arithmetic, is_structured: false, max_ratio: 0.3 },
    Shape { name: "branches to llvm", body: branches, is_structured: false, max_ratio: 0.3 },
    // MLIR's own part, without a driver, is 0.25 to 0.31.
    Shape { name: "loops and ifs to cf", body: loops_and_ifs, is_structured: true, max_ratio: 0.4 },
];

/// Our conversion in place.
const OURS: &str = "ours";
/// The sides, with the option of upstream's pass. Compared sides are adjacent: they are measured in this order.
const SIDES: &[(&str, Option<&str>)] = &[
    ("ours on a clone", None),
    (OURS, None),
    ("upstream, no rollback", Some("allow-pattern-rollback=false")),
    ("upstream, rollback", Some("allow-pattern-rollback=true")),
];
/// The conversion in C++ without a driver, in builds with the feature `floor`.
const FLOOR: &str = "floor";
/// Modules up to this many ops are compared as text after the conversion without a driver.
const COMPARED_OPS: usize = 10_000;

fn main() -> ExitCode {
    let part = |words: &[&str]| match *words {
        ["--child", shape, ops, side] => Some(measure::print_measured(child(shape, ops, side))),
        ["--repeat", shape, ops, side, times] => Some(measure::finish(repeat(shape, ops, side, times), None, false)),
        _ => None,
    };
    measure::run(part, report)
}

/// The whole report as Markdown, and the missed limits.
fn report(full: bool, only: Option<&str>) -> Result<(String, Vec<String>), String> {
    let mut out = Output::default();
    let mut missed = Vec::new();
    out.line("# Dialect conversion: time and memory beside upstream's");
    out.line("");
    out.line("Written by `cargo bench -p monopour-ir --features floor --bench conversion -- --full --write FILE`:");
    out.line(
        "CPU seconds of the conversion alone, MiB that it takes at most beyond the module; medians of 101, 21 and 5 processes, the sides in turn; ratios are the medians of those of the turns.",
    );
    out.line("Limit: 0.3 of upstream's time without rollback; 0.4 for loops and ifs.");
    out.line("\"No driver\" (`--features floor`) is the same conversion written out in C++ over MLIR's own classes: one walk that makes each op, replaces what is used and erases; no patterns, no casts, no lists of ops. It splits blocks as the driver does, and gives the same text.");
    out.line("That is what MLIR's own data structures cost that way. For loops and ifs it is a quarter to a third of upstream's time by itself: a loop with an `if` becomes nine ops and four blocks, and five ops go.");
    out.line("Upstream: `convert-to-llvm` and `convert-scf-to-cf` of LLVM 22.1.8, with and without `allow-pattern-rollback`. All sides allocate by mimalloc, as `monopour` does.");
    out.place_and_date();
    out.line("| shape | ops | ours s | no rollback s | ours / no rollback | no driver s | no driver / no rollback | rollback s | ours / rollback | on a clone s | ours MiB | no rollback MiB | rollback MiB | clone MiB |");
    out.line("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let sizes: &[usize] = if full { &[FEWEST_OPS, 100_000, 1_000_000] } else { &[FEWEST_OPS] };
    for shape in SHAPES.iter().filter(|s| only.is_none_or(|o| o == s.name)) {
        for ops in sizes {
            row(shape, *ops, full, &mut out, &mut missed)?;
        }
    }
    Ok((out.text, missed))
}

/// One size of one shape.
fn row(shape: &Shape, ops: usize, full: bool, out: &mut Output, missed: &mut Vec<String>) -> Result<(), String> {
    let samples = match (full, ops) {
        (false, _) => 1,
        // Long runs take seconds; short ones vary most.
        (true, 1_000_000..) => 5,
        (true, 100_000..) => 21,
        (true, _) => 101,
    };
    let count = ops.to_string();
    let floor = cfg!(feature = "floor").then_some(FLOOR);
    let sides: Vec<_> = SIDES.iter().map(|side| side.0).chain(floor).collect();
    let mut args: Vec<_> = sides.iter().map(|side| vec!["--child", shape.name, &count, side]).collect();
    let tenth = (ops / 10).to_string();
    args.push(vec!["--child", shape.name, &tenth, OURS]);
    let turns = measure::by_turns(&args, samples)?;
    let [clone, ours, no_rollback, rollback] = [0, 1, 2, 3].map(|side| turns.median(side));
    let (ratio, to_rollback) = (turns.ratio(1, 2, 0.0), turns.ratio(1, 3, 0.0));
    let (floor, floor_ratio) = floor.map_or(("".to_owned(), "".to_owned()), |_| {
        (format!("{:.4}", turns.median(4).cpu_s), format!("{:.2}", turns.ratio(4, 2, 0.0)))
    });
    out.line(&format!(
        "| {} | {ops} | {:.4} | {:.4} | {ratio:.2} | {floor} | {floor_ratio} | {:.4} | {to_rollback:.2} | {:.4} | {:.1} | {:.1} | {:.1} | {:.1} |",
        shape.name,
        ours.cpu_s,
        no_rollback.cpu_s,
        rollback.cpu_s,
        clone.cpu_s,
        ours.peak_mib,
        no_rollback.peak_mib,
        rollback.peak_mib,
        clone.peak_mib
    ));
    if ratio > shape.max_ratio {
        missed.push(format!("{}: {ratio:.2} of upstream's time without rollback at {ops} ops", shape.name));
    }
    if ours.peak_mib >= no_rollback.peak_mib.min(rollback.peak_mib) {
        missed.push(format!("{}: peak memory is not below upstream's at {ops} ops", shape.name));
    }
    let growth = turns.ratio(1, sides.len(), 0.0);
    if growth > MAX_GROWTH {
        missed.push(format!("{}: time grows {growth:.1}-fold from {tenth} to {ops} ops", shape.name));
    }
    Ok(())
}

fn child(shape: &str, ops: &str, side: &str) -> Result<Measured, String> {
    let (shape, module) = prepare(shape, ops)?;
    let measured = measure::measured(|| convert(shape, module.op(), side))?;
    if side == FLOOR && ops.parse().is_ok_and(|ops: usize| ops <= COMPARED_OPS) {
        let (_, same) = prepare(shape.name, ops)?;
        convert(shape, same.op(), OURS)?;
        if same.op().to_string() != module.op().to_string() {
            return Err("the conversion without a driver gives another text".to_owned());
        }
    }
    // An incomplete conversion would be no comparison.
    let left = if shape.is_structured { "scf" } else { "arith" };
    let is_left = |op: &Op| op.dialect() == left || op.is("builtin.unrealized_conversion_cast");
    match module.op().nested(monopour_ir::WalkOrder::Pre).iter().find(|op| is_left(op)) {
        Some(op) => Err(format!("{} is left", op.name())),
        None => Ok(measured),
    }
}

fn repeat(shape: &str, ops: &str, side: &str, times: &str) -> Result<(String, Vec<String>), String> {
    let (shape, module) = prepare(shape, ops)?;
    for _ in 0..times.parse().map_err(|_| format!("{times} is not a number"))? {
        convert(shape, module.duplicate().op(), side)?;
    }
    Ok(Default::default())
}

fn prepare<'c>(shape: &str, ops: &str) -> Result<(&'static Shape, Module<'c>), String> {
    let shape = SHAPES.iter().find(|s| s.name == shape).ok_or_else(|| format!("{shape} is not a shape"))?;
    let ops: usize = ops.parse().map_err(|_| format!("{ops} is not a number"))?;
    Ok((shape, build(Context::new(), shape, ops)?))
}

fn convert(shape: &Shape, module: Op, side: &str) -> Result<(), String> {
    #[cfg(feature = "floor")]
    if side == FLOOR {
        monopour_ir::convert_without_driver(module, shape.is_structured);
        return Ok(());
    }
    let option = SIDES.iter().find(|s| s.0 == side).ok_or_else(|| format!("{side} is not a side"))?.1;
    let ours = |module| if shape.is_structured { scf_to_cf::convert(module) } else { to_llvm::convert(module) };
    let done = match (option, shape.is_structured) {
        (Some(option), true) => run_passes(module, &format!("builtin.module(convert-scf-to-cf{{{option}}})")),
        (Some(option), false) => run_passes(module, &format!("builtin.module(convert-to-llvm{{{option}}})")),
        (None, _) if side == OURS => ours(module).map(drop),
        (None, _) => on_clone(module, ours).map(drop),
    };
    done.map_err(|d| d.to_string())
}

/// A module of functions of [`FUNCTION_OPS`] ops each, built in memory.
fn build<'c>(cx: Context<'c>, shape: &Shape, ops: usize) -> Result<Module<'c>, String> {
    let module = Module::parse(cx, b"", "bench.mlir").map_err(|d| d.to_string())?;
    let location = module.op().location();
    let index = Type::index(cx);
    for number in 0..ops.div_ceil(FUNCTION_OPS) {
        let region = Region::new();
        let entry = Block::new(&[(index, location), (index, location)]);
        region.append(entry);
        let builder = Builder::new(cx, InsertionPoint::End(entry));
        let mut emit = Emit { cx, builder, region: &region, args: [entry.arg(0), entry.arg(1)] };
        let result = (shape.body)(&mut emit, FUNCTION_OPS.min(ops));
        let ty = result.ty();
        emit.op("func.return", &[result], &[]);
        let function = OpSpec::new("func.func", location)
            .attr("sym_name", Attr::string(cx, &format!("f{number}")))
            .attr("function_type", Attr::ty(Type::function(cx, &[index, index], &[ty])))
            .region(region);
        Builder::new(cx, InsertionPoint::End(module.body())).create(function).map_err(|d| d.to_string())?;
    }
    Ok(module)
}

/// Writes the body of a function.
struct Emit<'c, 'a> {
    cx: Context<'c>,
    builder: Builder<'c>,
    region: &'a Region<'c>,
    args: [Value<'c>; 2],
}

impl<'c> Emit<'c, '_> {
    fn op(&mut self, name: &str, operands: &[Value<'c>], types: &[Type<'c>]) -> Op<'c> {
        self.spec(OpSpec::new(name, monopour_ir::Location::unknown(self.cx)).operands(operands).results(types))
    }
    fn spec(&mut self, spec: OpSpec<'c, '_>) -> Op<'c> {
        self.builder.create(spec).expect("the op of a bench builds")
    }
    fn binary(&mut self, name: &str, lhs: Value<'c>, rhs: Value<'c>) -> Value<'c> {
        self.op(name, &[lhs, rhs], &[lhs.ty()]).result(0)
    }
    fn compare(&mut self, lhs: Value<'c>, rhs: Value<'c>) -> Value<'c> {
        let (i1, i64_ty) = (Type::integer(self.cx, 1), Type::integer(self.cx, 64));
        let spec = OpSpec::new("arith.cmpi", monopour_ir::Location::unknown(self.cx)).operands(&[lhs, rhs]);
        self.spec(spec.results(&[i1]).attr("predicate", Attr::int(i64_ty, 2))).result(0)
    }
    fn block(&mut self, args: &[Type<'c>]) -> Block<'c> {
        let location = monopour_ir::Location::unknown(self.cx);
        let args: Vec<_> = args.iter().map(|ty| (*ty, location)).collect();
        let block = Block::new(&args);
        self.region.append(block);
        block
    }
}

/// Every op changes its type.
fn index_arithmetic<'c>(emit: &mut Emit<'c, '_>, ops: usize) -> Value<'c> {
    let [mut x, mut y] = emit.args;
    for k in 0..ops {
        let next = emit.binary(["arith.addi", "arith.muli", "arith.subi", "arith.xori"][k % 4], x, y);
        (x, y) = (next, x);
    }
    x
}

/// One op in four changes its type, one in eight is a constant.
fn mixed_arithmetic<'c>(emit: &mut Emit<'c, '_>, ops: usize) -> Value<'c> {
    let [mut i, _] = emit.args;
    let (i32_ty, f32_ty) = (Type::integer(emit.cx, 32), Type::f32(emit.cx));
    let mut n = emit.op("arith.index_cast", &[i], &[i32_ty]).result(0);
    let mut x = emit.op("arith.sitofp", &[n], &[f32_ty]).result(0);
    for k in 0..ops / 8 {
        i = emit.binary("arith.addi", i, i);
        let constant =
            emit.builder.constant(Attr::int(i32_ty, k as i64), i32_ty, monopour_ir::Location::unknown(emit.cx));
        n = emit.binary("arith.muli", n, constant);
        x = emit.binary("arith.mulf", x, x);
        x = emit.binary("arith.addf", x, x);
        let less = emit.compare(n, constant);
        n = emit.op("arith.select", &[less, n, constant], &[i32_ty]).result(0);
        i = emit.binary("arith.xori", i, i);
    }
    let _ = x;
    i
}

/// A chain of blocks of four ops, each with arguments that change their types.
fn branches<'c>(emit: &mut Emit<'c, '_>, ops: usize) -> Value<'c> {
    let [mut x, mut y] = emit.args;
    let index = Type::index(emit.cx);
    for _ in 0..ops / 5 {
        let (then, next) = (emit.block(&[index]), emit.block(&[index, index]));
        let less = emit.compare(x, y);
        let location = monopour_ir::Location::unknown(emit.cx);
        let branch = OpSpec::new("cf.cond_br", location).operand_segments(&[&[less], &[x], &[x, y]]);
        emit.spec(branch.successor(then).successor(next));
        emit.builder.set_point(InsertionPoint::End(then));
        let sum = emit.binary("arith.addi", then.arg(0), y);
        emit.spec(OpSpec::new("cf.br", location).operands(&[sum, y]).successor(next));
        emit.builder.set_point(InsertionPoint::End(next));
        (x, y) = (emit.binary("arith.muli", next.arg(0), next.arg(1)), next.arg(0));
    }
    x
}

/// Loops with an `if` each.
fn loops_and_ifs<'c>(emit: &mut Emit<'c, '_>, ops: usize) -> Value<'c> {
    let [mut x, y] = emit.args;
    let location = monopour_ir::Location::unknown(emit.cx);
    let index = Type::index(emit.cx);
    let one = emit.builder.const_index(1, location);
    for _ in 0..ops / 8 {
        let (body, loop_region) = (Block::new(&[(index, location), (index, location)]), Region::new());
        loop_region.append(body);
        let outer = emit.builder;
        emit.builder = Builder::new(emit.cx, InsertionPoint::End(body));
        let less = emit.compare(body.arg(0), body.arg(1));
        let mut arms = Vec::new();
        for name in ["arith.addi", "arith.muli"] {
            let (arm, region) = (Block::new(&[]), Region::new());
            region.append(arm);
            let inside = emit.builder;
            emit.builder = Builder::new(emit.cx, InsertionPoint::End(arm));
            let value = emit.binary(name, body.arg(1), body.arg(0));
            emit.op("scf.yield", &[value], &[]);
            emit.builder = inside;
            arms.push(region);
        }
        let chosen = OpSpec::new("scf.if", location).operands(&[less]).results(&[index]);
        let chosen = arms.into_iter().fold(chosen, OpSpec::region);
        let chosen = emit.spec(chosen).result(0);
        emit.op("scf.yield", &[chosen], &[]);
        emit.builder = outer;
        let spec = OpSpec::new("scf.for", location).operands(&[x, y, one, x]).results(&[index]).region(loop_region);
        x = emit.spec(spec).result(0);
    }
    x
}
