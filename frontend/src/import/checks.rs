//! Run-time checks in host code: slices within their tensors, matching sizes, divisors that are not zero, shifts by less
//! than the width.
//!
//! Before / after:
//!
//! ```text
//! %s = tensor.extract_slice %x[%o] [%n] [1]       %ok = 0 <= %o <= dim(%x) and 0 <= %n <= dim(%x) - %o
//!                                                 cf.assert %ok, "'tensor.extract_slice' at 7:8: .."
//!                                                 %s = tensor.extract_slice %x[%o] [%n] [1]
//! %q = arith.shli %a, %b                          cf.assert %b < width; %d = arith.select ..; %q = arith.shli %a, %d
//! %q = arith.divsi %a, %b                         cf.assert ..; %d = arith.select %b is 0 or -1, 1, %b
//!                                                 %r = arith.divsi %a, %d; ..
//! ```
//!
//! Loads and stores of elements are checked again in `split`; the checks made here name the user's op.
//!
//! Requires: what `lower` leaves; composed ops are still whole, so that each check names the user's op.
//! Ensures: after its checks, every slice, window and size of a run is in range. Checks that types or the size rules of the
//! inputs imply are left out.

mod composed;

use super::guards::{self, Guard};
use super::ranges;
use crate::linalg;
use monopour_ir::interfaces::indexing_maps;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec,
    Rewriter, Type, Value, WalkOrder,
};
use monopour_program::{InputSize, SizeRules};

/// Puts checks in front of the ops of host code in `module`.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(super) fn run(module: &Module, rules: &SizeRules) -> Result<(), Diagnostics> {
    let guard = Guard { rw: Rewriter::new(module.context()) };
    let mut checks = Checks { guard, rules, conditions: vec![] };
    for op in module.op().nested(WalkOrder::Pre).into_iter().filter(|op| is_on_host(*op)) {
        checks.guard.rw.set_point(InsertionPoint::Before(place(op)));
        let what = checks.op(op)?;
        checks.assert(op, what)?;
        if is_division(op) {
            // Host code goes on after a failed check, without effects: it must not trap.
            checks.guard.division(op)?;
        } else if is_shift(op) {
            checks.guard.shift(op)?;
        }
    }
    Ok(())
}

/// Whether no op around this one computes on elements.
pub(super) fn is_on_host(op: Op) -> bool {
    let mut parent = op.parent();
    while let Some(around) = parent {
        if linalg::is_structured(around) || matches!(around.name(), ops::tensor::GENERATE | ops::tensor::PAD) {
            return false;
        }
        parent = around.parent();
    }
    true
}

fn is_division(op: Op) -> bool {
    guards::is_division(op.name()) && !op.result(0).ty().is_tensor()
}

fn is_shift(op: Op) -> bool {
    guards::is_shift(op.name()) && guards::bits(op.result(0).ty()).is_some()
}

/// The op before which the check of `op` stands.
fn place<'c>(op: Op<'c>) -> Op<'c> {
    op.parent().filter(|p| p.is(ops::scf::FORALL_IN_PARALLEL)).unwrap_or(op)
}

struct Checks<'c, 'a> {
    guard: Guard<'c>,
    /// Equalities of sizes that are checked before a run.
    rules: &'a SizeRules,
    /// The conditions of the op at hand.
    conditions: Vec<Value<'c>>,
}

/// A size, static or computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size<'c> {
    Known(i64),
    Value(Value<'c>),
}

impl<'c> Checks<'c, '_> {
    /// Collects the conditions of an op; returns the message for when they do not hold.
    fn op(&mut self, op: Op<'c>) -> Result<&'static str, Diagnostics> {
        let loc = op.location();
        match op.name() {
            ops::tensor::EXTRACT_SLICE => self.slice(op, op.operand(0), 1)?,
            ops::tensor::INSERT_SLICE | ops::tensor::PARALLEL_INSERT_SLICE => {
                self.slice(op, op.operand(1), 2)?;
                self.inserted(op)?;
                return Ok("leaves its tensor, or inserts one of another size");
            }
            ops::tensor::EXTRACT => self.element(op, op.operand(0), 1)?,
            ops::tensor::INSERT => self.element(op, op.operand(1), 2)?,
            ops::tensor::EMPTY | ops::tensor::GENERATE | ops::tensor::SPLAT => {
                let index = op.operands().into_iter().filter(|v| v.ty().is_index());
                index.collect::<Vec<_>>().into_iter().try_for_each(|size| self.is_size(loc, size))?;
                return Ok("has a negative size");
            }
            ops::tensor::CAST => {
                let shape = op.result(0).ty().shape().unwrap_or_default();
                for (dim, size) in shape.into_iter().enumerate().filter(|(_, size)| *size != DYNAMIC) {
                    let fixed = origin(op.operand(0), dim).is_some_and(|of| self.rules.fixed.contains(&(of, size)));
                    if !fixed {
                        let from = self.size(loc, op.operand(0), dim)?;
                        self.equal(loc, from, Size::Known(size))?;
                    }
                }
                return Ok("is of a tensor with another size");
            }
            ops::tensor::EXPAND_SHAPE => return self.expand(op).map(|()| "does not keep the number of elements"),
            ops::tensor::CONCAT => return self.concat(op).map(|()| "joins tensors whose other sizes differ"),
            ops::linalg::SOFTMAX => return self.softmax(op).map(|()| "has operands whose sizes do not fit together"),
            ops::linalg::PACK | ops::linalg::UNPACK => {
                return self.packed(op).map(|()| "has operands whose sizes do not fit together");
            }
            ops::scf::FOR => return self.step(op).map(|()| "has a step that is not positive"),
            _ if is_division(op) => {
                return self.division(op).map(|()| "divides by zero, or the smallest number by -1");
            }
            _ if is_shift(op) => return self.shift(op).map(|()| "shifts by its width or more"),
            _ if linalg::is_structured(op) && indexing_maps(op).is_some() => {
                return self.structured(op).map(|()| "has operands whose sizes do not fit together");
            }
            _ => {}
        }
        Ok("leaves its tensor")
    }

    /// One `cf.assert` of all conditions.
    fn assert(&mut self, op: Op<'c>, what: &str) -> Result<(), Diagnostics> {
        let (cx, loc) = (op.context(), op.location());
        let mut all: Option<Value> = None;
        for condition in std::mem::take(&mut self.conditions) {
            all = Some(match all {
                Some(before) => self.guard.op(ops::arith::ANDI, loc, &[before, condition], Type::integer(cx, 1))?,
                None => condition,
            });
        }
        let Some(all) = all else { return Ok(()) };
        let at = loc.position().map(|(_, line, column)| format!(" at {line}:{column}")).unwrap_or_default();
        let message = format!("'{}'{at} {what}", op.name());
        let spec = OpSpec::new(ops::cf::ASSERT, loc).operands(&[all]).attr("msg", Attr::string(cx, &message));
        self.guard.rw.create(spec).map(|_| ())
    }

    fn value(&mut self, loc: Location<'c>, size: Size<'c>) -> Result<Value<'c>, Diagnostics> {
        match size {
            Size::Known(size) => {
                let index = Type::index(self.guard.rw.context());
                self.guard.constant(loc, index, size)
            }
            Size::Value(value) => Ok(value),
        }
    }

    fn size(&mut self, loc: Location<'c>, tensor: Value<'c>, dim: usize) -> Result<Size<'c>, Diagnostics> {
        let known = tensor.ty().shape().and_then(|shape| shape.get(dim).copied()).unwrap_or(DYNAMIC);
        if known == DYNAMIC { self.guard.size(loc, tensor, dim).map(Size::Value) } else { Ok(Size::Known(known)) }
    }

    fn require(
        &mut self,
        loc: Location<'c>,
        predicate: CmpIPredicate,
        left: Size<'c>,
        right: Size<'c>,
    ) -> Result<(), Diagnostics> {
        let (left, right) = (self.value(loc, left)?, self.value(loc, right)?);
        let condition = self.guard.compare(loc, predicate, left, right)?;
        self.conditions.push(condition);
        Ok(())
    }

    fn equal(&mut self, loc: Location<'c>, left: Size<'c>, right: Size<'c>) -> Result<(), Diagnostics> {
        if left == right || matches!((left, right), (Size::Known(_), Size::Known(_))) {
            return Ok(());
        }
        self.require(loc, CmpIPredicate::Eq, left, right)
    }

    fn is_size(&mut self, loc: Location<'c>, value: Value<'c>) -> Result<(), Diagnostics> {
        if ranges::is_size(value) {
            return Ok(());
        }
        self.require(loc, CmpIPredicate::Sge, Size::Value(value), Size::Known(0))
    }

    fn arith(
        &mut self,
        loc: Location<'c>,
        name: &str,
        left: Size<'c>,
        right: Size<'c>,
    ) -> Result<Size<'c>, Diagnostics> {
        let known = match (left, right, name) {
            (Size::Known(l), Size::Known(r), ops::arith::ADDI) => l.checked_add(r),
            (Size::Known(l), Size::Known(r), ops::arith::SUBI) => l.checked_sub(r),
            (Size::Known(l), Size::Known(r), ops::arith::MULI) => l.checked_mul(r),
            _ => None,
        };
        if let Some(known) = known {
            return Ok(Size::Known(known));
        }
        let (left, right) = (self.value(loc, left)?, self.value(loc, right)?);
        self.guard.op(name, loc, &[left, right], left.ty()).map(Size::Value)
    }

    /// The mixed static and dynamic sizes of attribute `name`, whose values begin at operand `next`.
    fn mixed(op: Op<'c>, name: &str, next: &mut usize) -> Vec<Size<'c>> {
        let known = op.attr(name).and_then(|a| a.as_ints()).unwrap_or_default();
        let each = known.into_iter().map(|size| {
            if size != DYNAMIC {
                return Size::Known(size);
            }
            *next += 1;
            Size::Value(op.operand(*next - 1))
        });
        each.collect()
    }

    /// Offsets, sizes and strides of a slice of `tensor`.
    fn slice(&mut self, op: Op<'c>, tensor: Value<'c>, mut next: usize) -> Result<(), Diagnostics> {
        let loc = op.location();
        let lists = ["static_offsets", "static_sizes", "static_strides"];
        let [offsets, sizes, strides] = lists.map(|name| Self::mixed(op, name, &mut next));
        for (dim, ((offset, size), stride)) in offsets.into_iter().zip(sizes).zip(strides).enumerate() {
            let extent = self.size(loc, tensor, dim)?;
            self.interval(loc, extent, offset, size, stride)?;
        }
        Ok(())
    }

    /// The indices of an element, which are the operands from `first` on.
    fn element(&mut self, op: Op<'c>, tensor: Value<'c>, first: usize) -> Result<(), Diagnostics> {
        let loc = op.location();
        for (dim, index) in op.operands().into_iter().skip(first).enumerate() {
            let size = self.size(loc, tensor, dim)?;
            let index = index.constant_int().map_or(Size::Value(index), Size::Known);
            let inside = matches!((index, size), (Size::Known(i), Size::Known(n)) if 0 <= i && i < n);
            if !inside {
                self.require(loc, CmpIPredicate::Ult, index, size)?;
            }
        }
        Ok(())
    }

    /// The inserted tensor has the sizes of the slice; one of lower rank has those that are not one.
    fn inserted(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let (loc, part) = (op.location(), op.operand(0));
        let shape = part.ty().shape().unwrap_or_default();
        let mut next = 2 + list_len(op, "static_offsets");
        let sizes = Self::mixed(op, "static_sizes", &mut next);
        let reduces = shape.len() < sizes.len();
        let kept: Vec<Size> = sizes.into_iter().filter(|size| !reduces || *size != Size::Known(1)).collect();
        let given: Vec<usize> = (0..shape.len()).filter(|dim| !reduces || shape[*dim] != 1).collect();
        if kept.len() == given.len() {
            for (dim, size) in given.into_iter().zip(kept) {
                let given = self.size(loc, part, dim)?;
                self.equal(loc, given, size)?;
            }
        }
        Ok(())
    }

    fn interval(
        &mut self,
        loc: Location<'c>,
        extent: Size<'c>,
        offset: Size<'c>,
        size: Size<'c>,
        stride: Size<'c>,
    ) -> Result<(), Diagnostics> {
        let known = |s: Size<'c>| matches!(s, Size::Known(_));
        if [extent, offset, size, stride].into_iter().all(known) {
            return Ok(());
        }
        // Compared as unsigned, so that negative ones are too large.
        self.within(loc, offset, extent)?;
        let rest = self.arith(loc, ops::arith::SUBI, extent, offset)?;
        if stride == Size::Known(1) {
            return self.within(loc, size, rest);
        }
        // With stride: (size - 1) * stride < rest, or no element at all.
        if !known(stride) {
            self.require(loc, CmpIPredicate::Sge, stride, Size::Known(1))?;
        }
        self.within(loc, size, rest)?;
        let one = self.value(loc, Size::Known(1))?;
        let stride = self.value(loc, stride)?;
        let positive = self.guard.op(ops::arith::MAXSI, loc, &[stride, one], one.ty())?;
        let rest = self.value(loc, rest)?;
        let fitting = self.guard.op(ops::arith::CEILDIVUI, loc, &[rest, positive], one.ty())?;
        self.within(loc, size, Size::Value(fitting))
    }

    fn within(&mut self, loc: Location<'c>, value: Size<'c>, limit: Size<'c>) -> Result<(), Diagnostics> {
        if value == Size::Known(0) || matches!((value, limit), (Size::Known(v), Size::Known(l)) if 0 <= v && v <= l) {
            return Ok(());
        }
        self.require(loc, CmpIPredicate::Ule, value, limit)
    }

    fn expand(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let (loc, mut next) = (op.location(), 1);
        let sizes = Self::mixed(op, "static_output_shape", &mut next);
        let groups = op.attr("reassociation").and_then(|a| a.as_array()).unwrap_or_default();
        for (at, group) in groups.into_iter().enumerate() {
            let dims = group.as_array().unwrap_or_default().into_iter().filter_map(|d| d.as_int());
            let sizes: Vec<Size> = dims.filter_map(|d| sizes.get(usize::try_from(d).ok()?).copied()).collect();
            if sizes.iter().all(|size| matches!(size, Size::Known(_))) {
                continue;
            }
            let from = self.size(loc, op.operand(0), at)?;
            self.product(loc, &sizes, from)?;
        }
        Ok(())
    }

    /// The product of `sizes`, none of which is negative, is `whole`. Each is at most `whole` unless there is no element, so that
    /// a product that wraps is not taken for the right one.
    fn product(&mut self, loc: Location<'c>, sizes: &[Size<'c>], whole: Size<'c>) -> Result<(), Diagnostics> {
        let index = Type::index(self.guard.rw.context());
        let mut product = Size::Known(1);
        for size in sizes {
            if let Size::Value(value) = size {
                self.is_size(loc, *value)?;
            }
            // Bounded by whole / product, so that the next product is at most whole.
            let (size, so_far) = (self.value(loc, *size)?, self.value(loc, product)?);
            let one = self.value(loc, Size::Known(1))?;
            let so_far_positive = self.guard.op(ops::arith::MAXUI, loc, &[so_far, one], index)?;
            let whole = self.value(loc, whole)?;
            let most = self.guard.op(ops::arith::DIVUI, loc, &[whole, so_far_positive], index)?;
            let least = self.guard.op(ops::arith::MINUI, loc, &[size, most], index)?;
            // Without elements any size is allowed: the product is zero.
            let zero = self.value(loc, Size::Known(0))?;
            let empty = self.guard.compare(loc, CmpIPredicate::Eq, whole, zero)?;
            let fits = self.guard.compare(loc, CmpIPredicate::Eq, size, least)?;
            let fits = self.guard.op(ops::arith::ORI, loc, &[fits, empty], fits.ty())?;
            self.conditions.push(fits);
            let taken = self.guard.op(ops::arith::SELECT, loc, &[empty, size, least], index)?;
            product = Size::Value(self.guard.op(ops::arith::MULI, loc, &[so_far, taken], index)?);
        }
        self.equal(loc, product, whole)
    }

    fn concat(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let loc = op.location();
        let along = op.attr("dim").and_then(|a| a.as_int()).and_then(|d| usize::try_from(d).ok());
        let rank = op.result(0).ty().shape().map_or(0, |shape| shape.len());
        for dim in (0..rank).filter(|dim| Some(*dim) != along) {
            let first = self.size(loc, op.operand(0), dim)?;
            for operand in op.operands().into_iter().skip(1) {
                let other = self.size(loc, operand, dim)?;
                self.equal(loc, first, other)?;
            }
        }
        Ok(())
    }

    /// The step of a loop is not zero.
    fn step(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let (loc, step) = (op.location(), op.operand(2));
        if step.constant_int().is_some_and(|step| step > 0) {
            return Ok(());
        }
        let one = self.guard.constant(loc, step.ty(), 1)?;
        let positive = self.guard.compare(loc, CmpIPredicate::Sge, step, one)?;
        self.conditions.push(positive);
        let taken = self.guard.op(ops::arith::MAXSI, loc, &[step, one], step.ty())?;
        self.guard.rw.set_operand(op, 2, taken);
        Ok(())
    }

    fn division(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        if guards::is_safe_divisor(op) {
            return Ok(());
        }
        let (loc, divisor) = (op.location(), op.operand(1));
        let zero = self.guard.constant(loc, divisor.ty(), 0)?;
        let defined = self.guard.compare(loc, CmpIPredicate::Ne, divisor, zero)?;
        self.conditions.push(defined);
        if op.name().ends_with("si") {
            self.no_overflow(op)?;
        }
        Ok(())
    }

    fn shift(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        if let Some(fits) = self.guard.fits(op)? {
            self.conditions.push(fits);
        }
        Ok(())
    }

    /// Not the smallest number by -1: the smallest is the only one but zero that is its own negative.
    fn no_overflow(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let (loc, dividend, divisor) = (op.location(), op.operand(0), op.operand(1));
        let (ty, bool_ty) = (divisor.ty(), Type::integer(op.context(), 1));
        let (zero, minus_one) = (self.guard.constant(loc, ty, 0)?, self.guard.constant(loc, ty, -1)?);
        let negated = self.guard.op(ops::arith::SUBI, loc, &[zero, dividend], ty)?;
        let differs = self.guard.compare(loc, CmpIPredicate::Ne, negated, dividend)?;
        let is_zero = self.guard.compare(loc, CmpIPredicate::Eq, dividend, zero)?;
        let other = self.guard.compare(loc, CmpIPredicate::Ne, divisor, minus_one)?;
        let any = self.guard.op(ops::arith::ORI, loc, &[differs, is_zero], bool_ty)?;
        let defined = self.guard.op(ops::arith::ORI, loc, &[any, other], bool_ty)?;
        self.conditions.push(defined);
        Ok(())
    }

    /// The extents of each loop are equal, and no map leaves its operand.
    fn structured(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let loc = op.location();
        let maps = indexing_maps(op).unwrap_or_default();
        let is_open = |v: &Value<'c>| v.ty().shape().is_some_and(|shape| shape.contains(&DYNAMIC));
        if !op.operands().iter().any(is_open) {
            return Ok(());
        }
        let Some(extents) = self.extents(op, &maps)? else { return Ok(()) };
        for (map, operand) in maps.iter().zip(op.operands()) {
            let shape = operand.ty().shape().unwrap_or_default();
            for ((dim, expr), known) in map.results().into_iter().enumerate().zip(shape) {
                if let AffineExprKind::Dim(at) = expr.kind() {
                    if known == DYNAMIC && !self.is_same(extents[at], (operand, dim)) {
                        let size = self.size(loc, operand, dim)?;
                        self.equal(loc, size, extents[at].size)?;
                    }
                    continue;
                }
                self.window(loc, expr, &extents, operand, dim)?;
            }
        }
        Ok(())
    }

    /// Whether a dimension has the size of a loop because both are sizes of inputs that are equal in every run.
    fn is_same(&self, extent: Extent<'c>, (operand, dim): (Value<'c>, usize)) -> bool {
        let (Some(one), Some(other)) = (origin(extent.of.0, extent.of.1), origin(operand, dim)) else { return false };
        let known = |size: Size<'c>| if let Size::Known(known) = size { Some(known) } else { None };
        one == other
            || self.rules.equal.iter().any(|class| class.contains(&one) && class.contains(&other))
            || known(extent.size).is_some_and(|size| self.rules.fixed.contains(&(other, size)))
    }

    /// Iterations of the loops: a static one if some type has it, else that of the first operand. `None` where a loop has no
    /// operand.
    fn extents(&mut self, op: Op<'c>, maps: &[AffineMap<'c>]) -> Result<Option<Vec<Extent<'c>>>, Diagnostics> {
        let loc = op.location();
        let loops = maps.first().map_or(0, |map| map.num_dims());
        let mut extents = vec![];
        for at in 0..loops {
            let places = maps.iter().zip(op.operands()).filter_map(|(map, operand)| {
                let is_here = |e: &AffineExpr<'c>| matches!(e.kind(), AffineExprKind::Dim(d) if d == at);
                let dim = map.results().iter().position(is_here)?;
                Some((operand, dim, operand.ty().shape()?.get(dim).copied()?))
            });
            let places: Vec<(Value, usize, i64)> = places.collect();
            let Some(first) = places.first() else { return Ok(None) };
            let (operand, dim, _) = places.iter().find(|(_, _, known)| *known != DYNAMIC).unwrap_or(first);
            let size = self.size(loc, *operand, *dim)?;
            extents.push(Extent { size, of: (*operand, *dim) });
        }
        Ok(Some(extents))
    }

    /// Checks that an expression over loops stays within the dimension that it indexes.
    fn window(
        &mut self,
        loc: Location<'c>,
        expr: AffineExpr<'c>,
        extents: &[Extent<'c>],
        operand: Value<'c>,
        dim: usize,
    ) -> Result<(), Diagnostics> {
        let size = self.size(loc, operand, dim)?;
        let Some((low, high)) = self.reach(loc, expr, extents)? else { return Ok(()) };
        let is_known = |s: Size<'c>| matches!(s, Size::Known(_));
        if is_known(low) && is_known(high) && is_known(size) {
            return Ok(());
        }
        let bool_ty = Type::integer(self.guard.rw.context(), 1);
        let (low, high, size) = (self.value(loc, low)?, self.value(loc, high)?, self.value(loc, size)?);
        let zero = self.value(loc, Size::Known(0))?;
        let above = self.guard.compare(loc, CmpIPredicate::Sge, low, zero)?;
        let below = self.guard.compare(loc, CmpIPredicate::Slt, high, size)?;
        let mut fits = self.guard.op(ops::arith::ANDI, loc, &[above, below], bool_ty)?;
        for extent in extents.iter().filter(|extent| !is_known(extent.size)) {
            let extent = self.value(loc, extent.size)?;
            let none = self.guard.compare(loc, CmpIPredicate::Sle, extent, zero)?;
            fits = self.guard.op(ops::arith::ORI, loc, &[fits, none], bool_ty)?;
        }
        self.conditions.push(fits);
        Ok(())
    }

    /// Smallest and largest value of an expression; `None` for one that multiplies or divides by an unknown.
    fn reach(
        &mut self,
        loc: Location<'c>,
        expr: AffineExpr<'c>,
        extents: &[Extent<'c>],
    ) -> Result<Option<(Size<'c>, Size<'c>)>, Diagnostics> {
        let constant = |e: AffineExpr<'c>| if let AffineExprKind::Constant(c) = e.kind() { Some(c) } else { None };
        match expr.kind() {
            AffineExprKind::Dim(at) => {
                let last = self.arith(loc, ops::arith::SUBI, extents[at].size, Size::Known(1))?;
                Ok(Some((Size::Known(0), last)))
            }
            AffineExprKind::Constant(c) => Ok(Some((Size::Known(c), Size::Known(c)))),
            AffineExprKind::Add(l, r) => {
                let (left, right) = (self.reach(loc, l, extents)?, self.reach(loc, r, extents)?);
                let (Some((a, b)), Some((c, d))) = (left, right) else { return Ok(None) };
                Ok(Some((self.arith(loc, ops::arith::ADDI, a, c)?, self.arith(loc, ops::arith::ADDI, b, d)?)))
            }
            AffineExprKind::Mul(l, r) => {
                let (Some((a, b)), Some(c)) = (self.reach(loc, l, extents)?, constant(r)) else { return Ok(None) };
                let a = self.arith(loc, ops::arith::MULI, a, Size::Known(c))?;
                let b = self.arith(loc, ops::arith::MULI, b, Size::Known(c))?;
                Ok(Some(if c < 0 { (b, a) } else { (a, b) }))
            }
            AffineExprKind::Mod(_, r) => Ok(constant(r).map(|c| (Size::Known(0), Size::Known(c - 1)))),
            AffineExprKind::FloorDiv(l, r) => {
                let (Some((a, b)), Some(c)) = (self.reach(loc, l, extents)?, constant(r)) else { return Ok(None) };
                let a = self.arith(loc, ops::arith::FLOORDIVSI, a, Size::Known(c))?;
                Ok(Some((a, self.arith(loc, ops::arith::FLOORDIVSI, b, Size::Known(c))?)))
            }
            _ => Ok(None),
        }
    }
}

/// Trip count of a loop, and the dimension that it was read from.
#[derive(Clone, Copy)]
struct Extent<'c> {
    size: Size<'c>,
    of: (Value<'c>, usize),
}

/// How many operands a mixed list has.
fn list_len(op: Op, name: &str) -> usize {
    op.attr(name).and_then(|a| a.as_ints()).unwrap_or_default().into_iter().filter(|size| *size == DYNAMIC).count()
}

/// The size of an input that the size of a value equals, followed through ops that keep it.
fn origin(value: Value, dim: usize) -> Option<InputSize> {
    let (mut value, mut dim) = (value, dim);
    loop {
        if let Some((block, input)) = value.as_block_arg() {
            let is_entry = block.parent_op().is_some_and(|op| op.is(ops::func::FUNC));
            let (input, dim) = (u32::try_from(input).ok()?, u32::try_from(dim).ok()?);
            return is_entry.then_some(InputSize { input, dim: Some(dim) });
        }
        let op = value.defining_op()?;
        value = match op.name() {
            ops::tensor::CAST => op.operand(0),
            ops::tensor::INSERT | ops::tensor::INSERT_SLICE => op.operand(1),
            ops::tensor::EMPTY => {
                let shape = op.result(0).ty().shape()?;
                if *shape.get(dim)? != DYNAMIC {
                    return None;
                }
                let before = shape[..dim].iter().filter(|size| **size == DYNAMIC).count();
                let asked = op.operand(before).defining_op().filter(|size| size.is(ops::tensor::DIM))?;
                dim = usize::try_from(asked.operand(1).constant_int()?).ok()?;
                asked.operand(0)
            }
            _ if linalg::is_structured(op) => linalg::destination(op, value.result_index()?),
            _ => return None,
        };
    }
}
