//! What a model computes of constants alone, to be computed once, when it is compiled.
//!
//! Before / after:
//!
//! ```text
//! %mean = generic ins(%weights)                   %w = arith.constant dense_resource<computed>
//! %w    = generic ins(%weights, %mean)            %y = linalg.matmul ins(%x, %w)
//! %y    = linalg.matmul ins(%x, %w)
//! ```
//!
//! Weights that are standardised, normalised or multiplied, and tables of positions that a layer projects, are such values. Convolutions and
//! products then have constant weights, which get their layouts and panels when the model is compiled.
//!
//! [`find`] copies those ops to a module of its own, whose function returns the values that others read; whoever runs it gives the
//! bytes to [`Computed::replace`].
//!
//! Requires: what [`crate::import`] ensures. Ensures: the same, with fewer ops.
//! Limits: ops of the entry's own block; values of known sizes that take no more bytes than the constants they are computed of and that
//! nothing else reads (a dequantised weight takes more: it stays in its few bits); values that an op with other operands reads: a
//! model without inputs is left as it is; no ops that fail on some operands (integer divisions, elements by computed places). What
//! only moves elements of one tensor stays too: it is a part of what reads it. Parts that are put together, as the gates of a recurrent layer in another order, would be copied in each run.

use crate::WeightTable;
use crate::linalg;
use monopour_ir::{
    Attr, Block, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter, Type, Value, WalkOrder,
    interfaces::is_pure, ops,
};
use monopour_program::DType;
use std::collections::{HashMap, HashSet};
use tracing::trace;

/// The name of the function that computes them.
pub const ENTRY: &str = "constants";

/// Values that are computed of constants, and a module that computes them.
pub struct Computed<'c> {
    values: Vec<Value<'c>>,
    bytecode: Vec<u8>,
}

/// What `entry` computes of constants alone, if anything.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn find<'c>(entry: Op<'c>, rw: &mut Rewriter<'c>) -> Result<Option<Computed<'c>>, Diagnostics> {
    let Some(body) = entry.body() else { return Ok(None) };
    let mut known = Known::default();
    for op in body.ops() {
        known.add(op);
    }
    let values = known.worthwhile(&body.ops());
    if values.is_empty() {
        return Ok(None);
    }
    let module = known.copied(&values, &body.ops(), rw)?;
    Ok(Some(Computed { values, bytecode: module.op().to_bytecode() }))
}

impl<'c> Computed<'c> {
    /// A module with a function [`ENTRY`] without arguments that returns the values.
    pub fn bytecode(&self) -> &[u8] {
        &self.bytecode
    }

    /// Puts constants of these elements, little endian, in the place of the values.
    ///
    /// # Errors
    /// None of its own; what MLIR's op builders report.
    pub fn replace(
        &self,
        elements: Vec<Vec<u8>>,
        weights: &mut WeightTable,
        rw: &mut Rewriter<'c>,
    ) -> Result<(), Diagnostics> {
        for (value, bytes) in self.values.iter().zip(elements) {
            let (op, ty) = (value.defining_op().expect("invariant: an op computes it"), value.ty());
            let dtype = DType::parse(&ty.element().to_string()).expect("invariant: asked before");
            let Some(attr) = weights.add("computed", dtype, ty, bytes) else { continue };
            trace!(target: "fuse", "{}: computed of constants alone", op.location());
            rw.set_point(InsertionPoint::Before(op));
            let spec = OpSpec::new(ops::arith::CONSTANT, op.location()).results(&[ty]);
            let constant = rw.create(spec.attr("value", attr))?.result(0);
            rw.replace_all_uses(*value, constant);
        }
        Ok(())
    }
}

/// The ops of a block that depend on constants alone.
#[derive(Default)]
struct Known<'c> {
    ops: HashSet<Op<'c>>,
}

impl<'c> Known<'c> {
    /// Adds an op whose operands are all constant; ops come in program order.
    fn add(&mut self, op: Op<'c>) {
        // A division by zero, or an element outside of a tensor, would end the compiler and not a run.
        let is_safe = is_pure(op) && op.find_all(ops::tensor::EXTRACT).is_empty() && !op.is(ops::tensor::EXTRACT);
        let computes = matches!(op.dialect(), "linalg" | "tensor" | "arith" | "math") && is_safe;
        if computes && reads(op).into_iter().all(|value| value.defining_op().is_some_and(|def| self.ops.contains(&def)))
        {
            self.ops.insert(op);
        }
    }

    /// The values that are worth a constant, in program order: those that others read, or else what they are computed of.
    fn worthwhile(&self, all: &[Op<'c>]) -> Vec<Value<'c>> {
        let others = all.iter().filter(|op| !self.ops.contains(op) && !op.is(ops::func::RETURN));
        let mut asked: HashSet<Value> = HashSet::new();
        let mut found: HashSet<Value> = HashSet::new();
        let mut open: Vec<Value> = others.flat_map(|op| reads(*op)).collect();
        while let Some(value) = open.pop() {
            let maker = value.defining_op().filter(|op| self.ops.contains(op) && !op.is(ops::arith::CONSTANT));
            let Some(maker) = maker.filter(|_| asked.insert(value)) else { continue };
            if self.is_worthwhile(value) {
                found.insert(value);
            } else {
                open.extend(reads(maker));
            }
        }
        all.iter().flat_map(|op| op.results()).filter(|value| found.contains(value)).collect()
    }

    /// Whether a constant would be worth its bytes, and no value on the way would be that takes fewer: weights that are quantised
    /// and dequantised stay in their few bits.
    fn is_worthwhile(&self, value: Value<'c>) -> bool {
        let sizes = |value: Value| Some((elements(value)?, value.ty().static_size_bytes()?));
        let Some((count, bytes)) = sizes(value).filter(|_| self.takes_no_more(value)) else { return false };
        let computed = cone(value).into_iter().filter(|op| !op.is(ops::arith::CONSTANT)).flat_map(|op| op.results());
        let is_narrower = |other: Value<'c>| {
            let is_choice = other.ty().element().integer_width() == Some(1);
            !is_choice && sizes(other).is_some_and(|(n, b)| n == count && b < bytes) && self.takes_no_more(other)
        };
        !computed.into_iter().any(is_narrower)
    }

    fn takes_no_more(&self, value: Value<'c>) -> bool {
        let plain = value.ty().as_tensor().is_some_and(|ty| ty.encoding.is_none());
        let known = DType::parse(&value.ty().element().to_string()).and(value.ty().static_size_bytes());
        let Some(bytes) = known.filter(|bytes| plain && *bytes > 0) else { return false };
        let cone = cone(value);
        let constants = cone.iter().filter(|op| op.is(ops::arith::CONSTANT) && op.result(0).ty().is_tensor());
        // Those that others read too stay.
        let own = constants.filter(|op| op.result(0).uses().iter().all(|used| cone.contains(&top(used.op, **op))));
        let varied = own.filter(|op| op.attr("value").is_some_and(|value| !value.is_splat()));
        let read: u64 = varied.map(|op| op.result(0).ty().static_size_bytes().unwrap_or(0)).sum();
        bytes <= read && cone.iter().any(|op| computes(*op))
    }

    /// A module with a function that returns the values.
    fn copied(&self, values: &[Value<'c>], all: &[Op<'c>], rw: &mut Rewriter<'c>) -> Result<Module<'c>, Diagnostics> {
        let (cx, loc) = (rw.context(), Location::unknown(rw.context()));
        let needed: HashSet<Op> = values.iter().flat_map(|value| cone(*value)).collect();
        let block = Block::new(&[]);
        rw.set_point(InsertionPoint::End(block));
        let mut map: HashMap<Value, Value> = HashMap::new();
        for op in all.iter().filter(|op| needed.contains(op)) {
            let copy = rw.clone_op(*op, |value| map.get(&value).copied().unwrap_or(value));
            rw.insert(copy);
            map.extend(op.results().into_iter().zip(copy.results()));
        }
        let returned: Vec<Value> = values.iter().map(|value| map[value]).collect();
        rw.create(OpSpec::new(ops::func::RETURN, loc).operands(&returned))?;
        let region = Region::new();
        region.append(block);
        let types: Vec<Type> = values.iter().map(|value| value.ty()).collect();
        let func = OpSpec::new(ops::func::FUNC, loc)
            .attr("sym_name", Attr::string(cx, ENTRY))
            .attr("function_type", Attr::ty(Type::function(cx, &[], &types)))
            .region(region);
        Ok(Module::of(func.build(cx)?))
    }
}

/// The values from outside of an op that it, or an op in it, reads.
fn reads<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    let outside = |value: &Value<'c>| match (value.defining_op(), value.block().and_then(Block::parent_op)) {
        (Some(def), _) => !def.is_inside(op),
        (None, Some(around)) => !around.is_inside(op),
        (None, None) => true,
    };
    op.nested(WalkOrder::Pre).into_iter().flat_map(|nested| nested.operands()).filter(outside).collect()
}

/// The ops that a value is computed by.
fn cone<'c>(value: Value<'c>) -> HashSet<Op<'c>> {
    let (mut cone, mut open) = (HashSet::new(), vec![value]);
    while let Some(op) = open.pop().and_then(|value| value.defining_op()) {
        if cone.insert(op) {
            open.extend(reads(op));
        }
    }
    cone
}

fn elements(value: Value) -> Option<i64> {
    value.ty().shape()?.into_iter().try_fold(1, i64::checked_mul)
}

/// The op of the block of `beside` that an op is, or is inside of.
fn top<'c>(op: Op<'c>, beside: Op<'c>) -> Op<'c> {
    let mut around = std::iter::successors(Some(op), |op| op.parent());
    around.find(|op| op.block() == beside.block()).unwrap_or(op)
}

/// Whether an op makes other elements than those that it reads, or puts tensors together: no fill, no copy.
fn computes(op: Op) -> bool {
    if op.is(ops::tensor::INSERT_SLICE) || op.is(ops::tensor::CONCAT) {
        return true;
    }
    let reads = linalg::is_structured(op) && op.operands()[..linalg::num_inputs(op)].iter().any(|v| v.ty().is_tensor());
    let moves =
        [ops::linalg::TRANSPOSE, ops::linalg::BROADCAST, ops::linalg::COPY, ops::linalg::FILL].contains(&op.name());
    reads && !moves && !linalg::is_data_movement(op)
}
