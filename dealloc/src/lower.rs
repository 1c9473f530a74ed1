//! `bufferization.dealloc` in terms of `memref.dealloc`.
//!
//! ```text
//! %r = bufferization.dealloc (%a) if (%c)          %p, %q: the pointers of %a and %m
//!      retain (%m)                                 %differs = arith.cmpi ne, %p, %q
//!                                            ==>   %frees = arith.andi %differs, %c
//!                                                  scf.if %frees { memref.dealloc %a }
//!                                                  %same = arith.xori %differs, %true
//!                                                  %r = arith.andi %same, %c
//! ```
//!
//! Each memref is freed whose indicator is set, unless it is the same memory as a retained or an earlier one. The indicator of a
//! retained memref is the disjunction of those of the same memory.
//! Ensures: no `bufferization.dealloc`; with `extensions`, no allocation on the heap either: pointers are compared in registers,
//! and where there are many, on the stack.
//! Limits: without `extensions`, a dealloc of several memrefs needs a module to put a helper function into (D0112).
//! Source: MLIR's lower-deallocations, LLVM 22.

mod general;
mod helper;
mod registers;

use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{Diagnostic, Diagnostics, InsertionPoint, Location, Op, OpSpec, Rewriter, Type, Value};

use crate::indicators::{If, if_owned};
pub(crate) use helper::Helpers;

/// Options of [`lower_deallocations`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerOptions {
    /// Extensions: pointers are compared without allocations or calls.
    pub extensions: bool,
}

/// Lowers every `bufferization.dealloc` in a module or function, and returns their number.
///
/// # Errors
/// D0112 where a helper function is needed and there is no module, D0113 for an operation that is neither module nor function.
pub fn lower_deallocations(root: Op, options: &LowerOptions) -> Result<u32, Diagnostics> {
    if !root.is(ops::builtin::MODULE) && !monopour_ir::control_flow::Traits::of(root).is_function() {
        let message = "root operation must be a builtin.module or a function";
        let error = Diagnostic::error("D0113", root.location(), message);
        return Err(error.with_help("run the pass on the module, or on func.func").into());
    }
    let helpers = Helpers::needed_in(root, options.extensions)?;
    let mut target = ConversionTarget::new();
    target.illegal_op(ops::bufferization::DEALLOC);
    let mut patterns = PatternSet::new();
    add_pattern(&mut patterns, &helpers);
    let stats = convert(root, &target, &patterns, Mode::Partial)?;
    Ok(u32::try_from(stats.patterns_applied).unwrap_or(u32::MAX))
}

/// Adds the pattern of `bufferization.dealloc`.
pub(crate) fn add_pattern<'c, 'p>(patterns: &mut PatternSet<'c, 'p>, helpers: &'p Helpers<'c>) {
    patterns.add_fn(ops::bufferization::DEALLOC, move |op, _, rw| {
        let parts = Dealloc::of(op);
        let results = match (parts.memrefs.len(), parts.retained.len()) {
            (0, 0) => vec![],
            (0, count) => vec![rw.const_bool(false, op.location()); count],
            (1, 0) => {
                free_if(op, parts.conditions[0], parts.memrefs[0], rw)?;
                vec![]
            }
            (1, _) => one(op, &parts, rw)?,
            _ => match helpers.of(op) {
                Some(name) => general::lower(op, &parts, name, rw)?,
                None if helpers.uses_registers() => registers::lower(op, &parts, rw)?,
                None => return Err(Declined::no_match("there is no helper function")),
            },
        };
        rw.replace_op(op, &results);
        Ok(())
    });
}

/// The parts of a `bufferization.dealloc`.
pub(crate) struct Dealloc<'c> {
    pub(crate) memrefs: Vec<Value<'c>>,
    pub(crate) conditions: Vec<Value<'c>>,
    pub(crate) retained: Vec<Value<'c>>,
}

impl<'c> Dealloc<'c> {
    pub(crate) fn of(op: Op<'c>) -> Self {
        let mut retained = op.operands();
        // One result for each retained memref, one condition for each freed one.
        let rest = retained.len() - op.num_results();
        let mut memrefs: Vec<Value> = retained.drain(..rest).collect();
        let conditions = memrefs.split_off(rest / 2);
        Self { memrefs, conditions, retained }
    }
}

/// Compares one memref with each retained one.
fn one<'c>(op: Op<'c>, parts: &Dealloc<'c>, rw: &mut Rewriter<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
    let loc = op.location();
    let pointer = pointer_of(op, parts.memrefs[0], rw)?;
    let mut differs = Vec::with_capacity(parts.retained.len());
    for value in &parts.retained {
        let other = pointer_of(op, *value, rw)?;
        differs.push(compare(CmpIPredicate::Ne, loc, pointer, other, rw)?);
    }
    let condition = parts.conditions[0];
    let mut frees = differs[0];
    for next in &differs[1..] {
        frees = rw.binary(ops::arith::ANDI, frees, *next, loc)?;
    }
    let frees = rw.binary(ops::arith::ANDI, frees, condition, loc)?;
    free_if(op, frees, parts.memrefs[0], rw)?;
    let always = rw.const_bool(true, loc);
    let mut results = Vec::with_capacity(differs.len());
    for differs in differs {
        let same = rw.binary(ops::arith::XORI, differs, always, loc)?;
        results.push(rw.binary(ops::arith::ANDI, same, condition, loc)?);
    }
    Ok(results)
}

/// The address of a memref's memory, as an index.
fn pointer_of<'c>(op: Op<'c>, memref: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let spec = OpSpec::new(ops::memref::EXTRACT_ALIGNED_POINTER_AS_INDEX, op.location())
        .operands(&[memref])
        .results(&[Type::index(op.context())]);
    Ok(rw.create(spec)?.result(0))
}

fn compare<'c>(
    predicate: CmpIPredicate,
    loc: Location<'c>,
    a: Value<'c>,
    b: Value<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let cx = rw.context();
    let spec = OpSpec::new(ops::arith::CMPI, loc)
        .operands(&[a, b])
        .results(&[Type::integer(cx, 1)])
        .attr("predicate", predicate.to_attr(cx));
    Ok(rw.create(spec)?.result(0))
}

/// `scf.if` around a `memref.dealloc`, before the operation.
fn free_if<'c>(op: Op<'c>, condition: Value<'c>, memref: Value<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let loc = op.location();
    let free =
        |rw: &mut Rewriter<'c>| rw.create(OpSpec::new(ops::memref::DEALLOC, loc).operands(&[memref])).map(|_| vec![]);
    if_owned(rw, If::new(InsertionPoint::Before(op), loc, condition, &[]), free, |_| Ok(vec![]))?;
    Ok(())
}
