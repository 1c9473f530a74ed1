//! Ops that rewrites create often: copies of an op, binary ops, constants.

use crate::ops;
use crate::{Attr, Diagnostics, Location, Op, OpSpec, Region, Rewriter, Type, Value};

impl<'c> Rewriter<'c> {
    /// A copy of the op with other operands and result types, at the insertion point. It keeps attributes and successors, and takes
    /// the regions.
    ///
    /// # Errors
    /// MLIR's, for an op that does not build.
    pub fn recreate(
        &mut self,
        op: Op<'c>,
        operands: &[Value<'c>],
        results: &[Type<'c>],
    ) -> Result<Op<'c>, Diagnostics> {
        self.recreate_with(op, operands, results, |_, value| value)
    }

    /// As [`Rewriter::recreate`], with attributes that `attr` computes from the old ones.
    ///
    /// # Errors
    /// As [`Rewriter::recreate`].
    pub(crate) fn recreate_with(
        &mut self,
        op: Op<'c>,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attr: impl Fn(&str, Attr<'c>) -> Attr<'c>,
    ) -> Result<Op<'c>, Diagnostics> {
        let attrs = op.attrs();
        let mut spec = OpSpec::new(op.name(), op.location()).operands(operands).results(results);
        for (name, value) in &attrs {
            spec = spec.attr(name, attr(name, *value));
        }
        for _ in op.regions() {
            spec = spec.region(Region::new());
        }
        for successor in op.successors() {
            spec = spec.successor(successor);
        }
        let new = self.create(spec)?;
        for (to, from) in new.regions().into_iter().zip(op.regions()) {
            self.take_region(to, from);
        }
        Ok(new)
    }

    /// A binary op whose result has the type of its operands.
    ///
    /// # Errors
    /// MLIR's, for an op that does not build.
    pub fn binary(
        &mut self,
        name: &str,
        a: Value<'c>,
        b: Value<'c>,
        loc: Location<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        Ok(self.create(OpSpec::new(name, loc).operands(&[a, b]).results(&[a.ty()]))?.result(0))
    }

    /// `arith.constant` of an `i1`.
    pub fn const_bool(&mut self, value: bool, loc: Location<'c>) -> Value<'c> {
        let cx = self.context();
        let spec = OpSpec::new(ops::arith::CONSTANT, loc)
            .results(&[Type::integer(cx, 1)])
            .attr("value", Attr::bool(cx, value));
        self.create(spec).expect("arith.constant of a matching type always builds").result(0)
    }
}
