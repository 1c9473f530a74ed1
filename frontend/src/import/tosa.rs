//! Lowers TOSA to linalg on tensors, by upstream's passes where these compute what TOSA 1.0 says.
//!
//! Before / after:
//!
//! ```text
//! %r = tosa.add %x, %bias                    %r = linalg.generic ins(%x, %bias) { arith.addf }
//! %c = tosa.matmul %r, %w, %z, %z            %c = linalg.batch_matmul ins(%r, %w)
//! %s = tosa.scatter %d, %at, %v              %s = linalg.generic over %d and all of %at { select is_at(..), %v, %d }
//! ```
//!
//! Names of arguments and results come from `tosa.tensor_name`, which deserialized flatbuffers have.
//! Requires: no calls. Ensures: no op of the dialect is left.
//! Limits: no variables, block scaled types, custom ops or `fft2d`; `rfft2d` has static sizes.

mod units;
pub(super) mod unsigned;
mod widths;

use super::guards::Guard;
use super::lower::Generic;
use super::verify;
use monopour_contract::attributes;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{
    Attr, Block, CANONICALIZE, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, WalkOrder, ops,
    run_passes,
};

const DIALECT: &str = "tosa";
/// How a rescale rounds.
const ROUNDING: &str = "rounding_mode";
const INEXACT: &str = "#tosa.rounding_mode<INEXACT_ROUND>";
const SINGLE: &str = "#tosa.rounding_mode<SINGLE_ROUND>";
const HELP: &str = "docs/tosa.md lists the ops and types that are lowered";
/// Ops without a lowering.
const NOT_SUPPORTED: [&str; 8] = [
    ops::tosa::CUSTOM,
    ops::tosa::FFT2D,
    ops::tosa::VARIABLE,
    ops::tosa::VARIABLE_READ,
    ops::tosa::VARIABLE_WRITE,
    ops::tosa::CAST_FROM_BLOCK_SCALED,
    ops::tosa::CAST_TO_BLOCK_SCALED,
    ops::tosa::MATMUL_T_BLOCK_SCALED,
];

/// Lowers all ops of the dialect.
///
/// # Errors
/// F0002 for an op without a lowering.
pub(super) fn run(module: &Module, entry: Op) -> Result<(), Diagnostics> {
    name_boundary(entry);
    if !module.op().nested(WalkOrder::Pre).iter().any(|op| op.dialect() == DIALECT) {
        return Ok(());
    }
    refuse(module, |op| NOT_SUPPORTED.contains(&op.name()))?;
    let steps = |steps: &[&str]| run_passes(module.op(), &format!("builtin.module(func.func({}))", steps.join(",")));
    roundings(module);
    steps(&["tosa-optional-decompositions", CANONICALIZE, "tosa-infer-shapes", "tosa-make-broadcastable"])
        .map_err(unlowered)?;
    scatters(module)?;
    conditions(module)?;
    let lowered = steps(&[
        "tosa-to-scf",
        "tosa-to-linalg-named",
        "tosa-make-broadcastable",
        "tosa-to-linalg",
        "tosa-to-arith{include-apply-rescale=true}",
        "tosa-to-tensor",
        CANONICALIZE,
    ]);
    lowered.map_err(unlowered)?;
    refuse(module, |op| op.dialect() == DIALECT)?;
    indices(module)?;
    widths::widen(module, entry)?;
    units::drop(module)
}

/// A rescale that may round in any way rounds once: upstream's passes do not take it.
fn roundings(module: &Module) {
    let mut rw = Rewriter::new(module.context());
    for op in module.op().find_all(ops::tosa::RESCALE) {
        if op.attr(ROUNDING).is_some_and(|mode| mode.to_string() == INEXACT) {
            rw.set_attr(op, ROUNDING, Attr::parse(op.context(), SINGLE).expect("invariant: the text is a mode"));
        }
    }
}

/// Ops of the `index` dialect, which upstream's passes make of `rfft2d`, as those of `arith`.
fn indices(module: &Module) -> Result<(), Diagnostics> {
    let mut guard = Guard { rw: Rewriter::new(module.context()) };
    for (from, to) in [(ops::index::MUL, ops::arith::MULI), (ops::index::REMU, ops::arith::REMUI)] {
        for op in module.op().find_all(from) {
            guard.rw.set_point(InsertionPoint::Before(op));
            let made = guard.op(to, op.location(), &op.operands(), op.result(0).ty())?;
            guard.rw.replace_op(op, &[made]);
        }
    }
    Ok(())
}

/// What an op that upstream's passes decline is: not supported in its types or sizes.
fn unlowered(mut errors: Diagnostics) -> Diagnostics {
    for error in &mut errors.0 {
        error.code = "F0002";
        error.help = Some(HELP.to_owned());
    }
    errors
}

/// F0002 for each op that `is_refused`.
fn refuse(module: &Module, is_refused: impl Fn(&Op) -> bool) -> Result<(), Diagnostics> {
    let all = module.op().nested(WalkOrder::Pre);
    let refused = all
        .into_iter()
        .filter(is_refused)
        .map(|op| verify::error("F0002", op, format!("op '{}' is not supported", op.name()), HELP));
    let refused = Diagnostics(refused.collect());
    if refused.has_errors() { Err(refused) } else { Ok(()) }
}

/// Arguments and results without a name get that of their tensor in the flatbuffer.
fn name_boundary(entry: Op) {
    let cx = entry.context();
    for list in ["arg_attrs", "res_attrs"] {
        let Some(dicts) = entry.attr(list).and_then(|a| a.as_array()) else { continue };
        let named = dicts.iter().map(|dict| {
            let mut entries = dict.as_dict().unwrap_or_default();
            if let Some(name) =
                dict.get(ops::attributes::tosa::TENSOR_NAME).filter(|_| dict.get(attributes::NAME).is_none())
            {
                entries.push((attributes::NAME.to_owned(), name));
            }
            Attr::dict(cx, &entries.iter().map(|(key, value)| (key.as_str(), *value)).collect::<Vec<_>>())
        });
        let named: Vec<Attr> = named.collect();
        Rewriter::new(cx).set_attr(entry, list, Attr::array(cx, &named));
    }
}

/// `tosa.scatter` as a search of the updates for each element, as [`super::lower`] does for `tensor.scatter`: upstream's loops
/// would be one step of the host for each update.
fn scatters(module: &Module) -> Result<(), Diagnostics> {
    let mut guard = Guard { rw: Rewriter::new(module.context()) };
    for op in module.op().find_all(ops::tosa::SCATTER) {
        guard.rw.set_point(InsertionPoint::Before(op));
        let (loc, [into, at, updates]) = (op.location(), [0, 1, 2].map(|i| op.operand(i)));
        // Loops: batch, row of the destination, channel; update.
        let inputs = [(at, "d0, d3".to_owned()), (updates, "d0, d3, d2".to_owned())];
        let generic = Generic { parallel: 3, reductions: 1, inputs: &inputs, output: (into, "d0, d1, d2".to_owned()) };
        let result = generic.build(&mut guard, loc, |guard, args| {
            let row = guard.counter(loc, 1)?;
            let row = guard.cast_to(loc, row, args[0].ty())?;
            let is_meant = guard.compare(loc, CmpIPredicate::Eq, args[0], row)?;
            guard.op(ops::arith::SELECT, loc, &[is_meant, args[1], args[2]], args[2].ty())
        })?;
        guard.rw.replace_op(op, &[result]);
    }
    Ok(())
}

/// Conditions have any rank in TOSA and none in upstream's passes, which extract their element without indices.
fn conditions(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let branches = module.op().find_all(ops::tosa::COND_IF);
    let loops = module.op().find_all(ops::tosa::WHILE_LOOP);
    let loops = loops.into_iter().filter_map(|op| op.body().and_then(Block::terminator));
    for op in branches.into_iter().chain(loops) {
        let condition = op.operand(0);
        if condition.ty().shape().is_none_or(|shape| shape.is_empty()) {
            continue;
        }
        rw.set_point(InsertionPoint::Before(op));
        let spec = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, op.location())
            .operands(&[condition])
            .results(&[Type::tensor(&[], condition.ty().element(), None)])
            .attr("reassociation", Attr::array(op.context(), &[]));
        let scalar = rw.create(spec)?.result(0);
        rw.set_operand(op, 0, scalar);
    }
    Ok(())
}
