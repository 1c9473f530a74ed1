//! Stores images of 16-bit floats, and rows that meet constant weights, as f32 between convolutions and products.
//!
//! Before / after:
//!
//! ```text
//! %y = generic ins(%p : f32) outs(%e : f16) {        %y = generic ins(%p : f32) outs(%f : f32) {
//!   truncf %p }                                        extf (truncf %p) }
//! generic ins(%y, %w) {                              generic ins(%y, %w) {
//!   addf(%o, mulf(extf %y, extf %w)) }                 addf(%o, mulf(%y, extf %w)) }
//! ```
//!
//! A convolution would widen an element for each vector of channels that it meets, a product of rows and constant weights one for
//! each vector of columns. The values are the same: each is rounded
//! where it was. Arithmetic on them is done in f32 and rounded, which is what the ops of 16 bits are.
//! Limits: known shapes but of batches; inputs, results, and what other ops read or make are converted, among them sums of 16 bits.

use super::groups;
use crate::collapse_lines::dynamic_sizes;
use crate::{linalg, products};
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types_attr};
use monopour_ir::{
    AffineMap, Attr, Block, Builder, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value,
    ops,
};
use std::collections::{HashMap, HashSet};

/// Widens the images that convolutions read, and those that are computed with them.
///
/// # Errors
/// What MLIR's op builders report.
pub(super) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for function in module.functions() {
        let wide = Wide::of(function);
        let ops = function.body().map(Block::ops).unwrap_or_default();
        for op in ops.into_iter().filter(|_| !wide.values.is_empty()) {
            wide.rewrite(op, rw)?;
        }
        for value in &wide.values {
            rw.set_type(*value, widened(value.ty()));
        }
    }
    Ok(())
}

/// The tensor type with elements of f32.
fn widened(ty: Type<'_>) -> Type<'_> {
    Type::tensor(&ty.shape().unwrap_or_default(), Type::f32(ty.context()), None)
}

/// The values of a function that are stored as f32.
struct Wide<'c> {
    function: Op<'c>,
    values: HashSet<Value<'c>>,
}

impl<'c> Wide<'c> {
    fn of(function: Op<'c>) -> Self {
        let mut wide = Self { function, values: HashSet::new() };
        let mut next: Vec<Value> = vec![];
        for op in function.body().map(Block::ops).unwrap_or_default() {
            next.extend(multiplied(op).map(|factor| op.operand(factor)));
        }
        while let Some(value) = next.pop() {
            if wide.can_be(value) && wide.values.insert(value) {
                let ops = value.defining_op().into_iter().chain(value.uses().into_iter().map(|use_| use_.op));
                next.extend(ops.filter(|op| wide.follows(*op)).flat_map(with));
            }
        }
        wide
    }

    /// Whether a value is an image of 16-bit floats that an op makes which can make it of f32.
    fn can_be(&self, value: Value<'c>) -> bool {
        let Some(ty) = value.ty().as_tensor().filter(|ty| ty.encoding.is_none()) else { return false };
        let image = ty.shape.len() >= 2 && ty.shape.iter().all(|size| *size != 0);
        image && ty.element.float_width() == Some(16) && value.defining_op().is_some_and(|op| self.follows(op))
    }

    fn follows(&self, op: Op<'c>) -> bool {
        use ops::tensor::{COLLAPSE_SHAPE, EXPAND_SHAPE, EXTRACT_SLICE, INSERT_SLICE};
        let moves = [COLLAPSE_SHAPE, EXPAND_SHAPE, EXTRACT_SLICE, INSERT_SLICE].contains(&op.name());
        op.parent() == Some(self.function) && (moves || op.is(ops::linalg::GENERIC) && !rounds_sums(op))
    }

    fn rewrite(&self, op: Op<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let is_wide = |value: &Value<'c>| self.values.contains(value);
        if op.is(ops::linalg::GENERIC) && self.follows(op) {
            let inputs = linalg::num_inputs(op);
            // What is accumulated on has the type of the result.
            for i in inputs..op.num_operands() {
                self.agree(op, i, is_wide(&op.result(i - inputs)), rw)?;
            }
            return Body::new(op, &self.values, rw).run();
        }
        let wide = self.follows(op) && op.results().iter().any(is_wide);
        let tensors = (0..op.num_operands()).filter(|i| op.operand(*i).ty().element().float_width() == Some(16));
        tensors.collect::<Vec<_>>().into_iter().try_for_each(|i| self.agree(op, i, wide, rw))
    }

    /// Converts an operand that is not stored as the op takes it.
    fn agree(&self, op: Op<'c>, index: usize, wide: bool, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let value = op.operand(index);
        if self.values.contains(&value) == wide || !value.ty().is_tensor() {
            return Ok(());
        }
        let (cx, loc, shape) = (rw.context(), op.location(), value.ty().shape().unwrap_or_default());
        let (narrow, f32) = (value.ty().element(), Type::f32(cx));
        let (name, [from, to]) = match wide {
            true => (ops::arith::EXTF, [narrow, f32]),
            false => (ops::arith::TRUNCF, [f32, narrow]),
        };
        rw.set_point(InsertionPoint::Before(op));
        let sizes = dynamic_sizes(value, rw)?;
        let spec = OpSpec::new(ops::tensor::EMPTY, loc).operands(&sizes);
        let empty = rw.create(spec.results(&[Type::tensor(&shape, to, None)]))?;
        if value.defining_op().is_some_and(|def| def.is(ops::tensor::EMPTY)) {
            rw.set_operand(op, index, empty.result(0));
            return Ok(());
        }
        let (body, region) = (Block::new(&[(from, loc), (to, loc)]), Region::new());
        let mut inner = Builder::new(cx, InsertionPoint::End(body));
        let converted = inner.create(OpSpec::new(name, loc).operands(&[body.arg(0)]).results(&[to]))?.result(0);
        inner.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[converted]))?;
        region.append(body);
        let maps = [0, 1].map(|_| AffineMap::identity(cx, shape.len()));
        let kinds = iterator_types_attr(cx, &vec![IteratorType::Parallel; shape.len()]);
        let operands = Operands { inputs: &[value], outputs: &[empty.result(0)] };
        let copy = rw.create(generic(loc, operands, &maps, kinds, region))?.result(0);
        rw.set_operand(op, index, copy);
        Ok(())
    }
}

/// The factor of a product that meets constants: the image of a convolution, or several rows.
fn multiplied(op: Op) -> Option<usize> {
    let stored = |i: &usize| op.operand(*i).defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
    let product = Some(op).filter(|op| op.is(ops::linalg::GENERIC) && !rounds_sums(*op))?;
    let filter = groups::filter(product).filter(stored);
    filter.and_then(|filter| 1usize.checked_sub(filter)).or_else(|| groups::rows_times_weights(product))
}

/// What is stored as f32 with an operand or a result of an op; not both sides of a product, whose sums are of f32 anyway.
fn with<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    let is_product = op.is(ops::linalg::GENERIC) && products::contraction_loops(op).is_some();
    if is_product { op.results() } else { [op.operands(), op.results()].concat() }
}

/// Whether a reduction rounds each step to 16 bits: its body would be no product any more.
fn rounds_sums(op: Op) -> bool {
    let sums = linalg::parallel_loops(op).is_none_or(|parallel| parallel.contains(&false));
    sums && op.results().iter().any(|result| result.ty().element().float_width() == Some(16))
        && op.body().is_none_or(|body| body.ops().iter().any(|op| op.is(ops::arith::ADDF) || op.is(ops::arith::MULF)))
}

/// The body of a generic that reads or makes wide values.
struct Body<'c, 'a> {
    op: Op<'c>,
    body: Block<'c>,
    values: &'a HashSet<Value<'c>>,
    rw: &'a mut Rewriter<'c>,
    /// Values of 16 bits that are known as f32.
    twins: HashMap<Value<'c>, Value<'c>>,
    /// Arguments that were of 16 bits, and the type that they had.
    args: HashMap<Value<'c>, Type<'c>>,
}

impl<'c, 'a> Body<'c, 'a> {
    fn new(op: Op<'c>, values: &'a HashSet<Value<'c>>, rw: &'a mut Rewriter<'c>) -> Self {
        let body = op.body().expect("invariant: a generic has a body");
        Self { op, body, values, rw, twins: HashMap::new(), args: HashMap::new() }
    }

    fn run(mut self) -> Result<(), Diagnostics> {
        // Which operands are of 16 bits, before arguments change their type.
        let is_narrow = |value: Value| value.ty().float_width() == Some(16);
        let ops: Vec<(Op, Vec<bool>)> =
            self.body.ops().into_iter().map(|op| (op, op.operands().into_iter().map(is_narrow).collect())).collect();
        let inputs = linalg::num_inputs(self.op);
        for i in 0..self.op.num_operands() {
            let wide = match i.checked_sub(inputs) {
                Some(result) => self.values.contains(&self.op.result(result)),
                None => self.values.contains(&self.op.operand(i)),
            };
            if wide {
                let arg = self.body.arg(i);
                self.args.insert(arg, arg.ty());
                self.rw.set_type(arg, Type::f32(self.rw.context()));
            }
        }
        let results: Vec<bool> = self.op.results().iter().map(|result| self.values.contains(result)).collect();
        for (op, narrow) in ops {
            if op.is_terminator() {
                for (i, wide) in results.iter().enumerate().filter(|(i, _)| narrow[*i]) {
                    let value = op.operand(i);
                    let value = if *wide { self.widened(value, op)? } else { self.narrowed(value, op)? };
                    self.rw.set_operand(op, i, value);
                }
            } else {
                self.inner(op, &narrow)?;
            }
        }
        Ok(())
    }

    /// An op, of whose operands those are of 16 bits.
    fn inner(&mut self, op: Op<'c>, narrow: &[bool]) -> Result<(), Diagnostics> {
        use ops::arith::{ADDF, CMPF, DIVF, EXTF, MAXIMUMF, MAXNUMF, MINIMUMF, MINNUMF, MULF, NEGF, SELECT, SUBF};
        let known = |(value, narrow): (Value<'c>, &bool)| *narrow && self.twin(value).is_some();
        if !op.operands().into_iter().zip(narrow).any(known) {
            return Ok(());
        }
        let rounds = [ADDF, SUBF, MULF, DIVF].contains(&op.name());
        let exact = [MAXIMUMF, MAXNUMF, MINIMUMF, MINNUMF, NEGF, SELECT].contains(&op.name());
        if op.is(EXTF) && op.result(0).ty() == Type::f32(self.rw.context()) {
            let twin = self.widened(op.operand(0), op)?;
            self.rw.replace_op(op, &[twin]);
            return Ok(());
        }
        if !(rounds || exact || op.is(CMPF)) {
            for i in (0..op.num_operands()).filter(|i| narrow[*i]) {
                let value = self.narrowed(op.operand(i), op)?;
                self.rw.set_operand(op, i, value);
            }
            return Ok(());
        }
        let mut operands = vec![];
        for (value, narrow) in op.operands().into_iter().zip(narrow) {
            operands.push(if *narrow { self.widened(value, op)? } else { value });
        }
        let narrow = op.result(0).ty();
        self.rw.set_point(InsertionPoint::Before(op));
        let copy = self.rw.clone_op(op, |value| value);
        self.rw.insert(copy);
        self.rw.set_operands(copy, &operands);
        if op.is(CMPF) {
            self.rw.replace_op(op, &[copy.result(0)]);
            return Ok(());
        }
        self.rw.set_type(copy.result(0), Type::f32(self.rw.context()));
        let rounded = self.create(ops::arith::TRUNCF, copy.result(0), narrow)?;
        let twin = if rounds { self.create(EXTF, rounded, copy.result(0).ty())? } else { copy.result(0) };
        self.twins.insert(rounded, twin);
        self.rw.replace_op(op, &[rounded]);
        Ok(())
    }

    /// A value of 16 bits as f32, where it is known.
    fn twin(&self, value: Value<'c>) -> Option<Value<'c>> {
        Some(value).filter(|value| self.args.contains_key(value)).or_else(|| self.twins.get(&value).copied())
    }

    /// A value of 16 bits as f32, at an op.
    fn widened(&mut self, value: Value<'c>, at: Op<'c>) -> Result<Value<'c>, Diagnostics> {
        if let Some(twin) = self.twin(value) {
            return Ok(twin);
        }
        let f32 = Type::f32(self.rw.context());
        let constant = value.defining_op().filter(|def| def.is(ops::arith::CONSTANT));
        if let Some(number) = constant.and_then(|def| def.attr("value")?.as_float()) {
            // In front of the generic, where it is no part of a body that moves data.
            self.rw.set_point(InsertionPoint::Before(self.op));
            let spec = OpSpec::new(ops::arith::CONSTANT, at.location()).results(&[f32]);
            return Ok(self.rw.create(spec.attr("value", Attr::float(f32, number)))?.result(0));
        }
        self.rw.set_point(InsertionPoint::Before(at));
        self.create(ops::arith::EXTF, value, f32)
    }

    /// A value that may be an argument which was of 16 bits, as such.
    fn narrowed(&mut self, value: Value<'c>, at: Op<'c>) -> Result<Value<'c>, Diagnostics> {
        let Some(ty) = self.args.get(&value).copied() else { return Ok(value) };
        self.rw.set_point(InsertionPoint::Before(at));
        self.create(ops::arith::TRUNCF, value, ty)
    }

    fn create(&mut self, name: &'static str, value: Value<'c>, ty: Type<'c>) -> Result<Value<'c>, Diagnostics> {
        let spec = OpSpec::new(name, self.op.location()).operands(&[value]).results(&[ty]);
        Ok(self.rw.create(spec)?.result(0))
    }
}
