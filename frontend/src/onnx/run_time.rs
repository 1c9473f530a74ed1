//! Sizes that data decides: elements of operands are read at run time, and sizes that follow from them are new symbols.

use super::builder::{Builder, Failure};
use super::operand::Operand;
use super::predicate::CmpI;
use super::symbolic::Dim;
use monopour_ir::{Type, Value, ops};

/// Most elements that are read one by one.
const MAX_READ: i64 = 64;

impl<'c> Builder<'c> {
    /// The elements of an operand of integers as index values: constants, sizes, or read at run time.
    ///
    /// # Errors
    /// For operands of unknown or large size, which decide a rank.
    pub fn elements_of(&mut self, x: &Operand<'c>) -> Result<Vec<Value<'c>>, Failure> {
        if let Some(sizes) = x.as_sizes() {
            return sizes.iter().map(|size| self.index(size)).collect();
        }
        let count = x.elements().as_constant().filter(|n| *n <= MAX_READ);
        let count = count.ok_or("an operand of sizes has an unknown number of elements")?;
        let index = Type::index(self.context());
        let flat = self.reshaped(x, &[Dim::constant(count)])?;
        let value = self.value(&flat)?;
        let mut out = vec![];
        for at in 0..count {
            let at = self.int(index, at);
            let read = self.read(value, &[at])?;
            out.push(self.op(ops::arith::INDEX_CAST, &[read], index)?);
        }
        Ok(out)
    }

    /// A value that is not negative as a size.
    pub fn size(&mut self, value: Value<'c>) -> Dim {
        value.constant_int().map_or_else(|| self.new_symbol(value), Dim::constant)
    }

    /// The elements of an operand of integers as sizes: a negative one that is read at run time counts as 0.
    ///
    /// # Errors
    /// As [`Self::elements_of`].
    pub fn sizes_of(&mut self, x: &Operand<'c>) -> Result<Vec<Dim>, Failure> {
        if let Some(sizes) = x.as_sizes() {
            return Ok(sizes);
        }
        let zero = self.int(Type::index(self.context()), 0);
        let mut out = vec![];
        for element in self.elements_of(x)? {
            let size = self.binary(ops::arith::MAXSI, element, zero)?;
            out.push(self.new_symbol(size));
        }
        Ok(out)
    }

    /// `a` where `x < y` of signed integers, else `b`.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn where_less(&mut self, [x, y]: [Value<'c>; 2], [a, b]: [Value<'c>; 2]) -> Result<Value<'c>, Failure> {
        let less = self.compare(CmpI::Slt, x, y)?;
        self.select(less, a, b)
    }

    /// Dimensions that are read at run time, counted from the front.
    ///
    /// # Errors
    /// As [`Self::elements_of`].
    pub fn axes_of(&mut self, axes: &Operand<'c>, rank: usize) -> Result<Vec<Value<'c>>, Failure> {
        let index = Type::index(self.context());
        let (zero, rank) = (self.int(index, 0), self.int(index, rank as i64));
        let mut out = vec![];
        for axis in self.elements_of(axes)? {
            let counted = self.binary(ops::arith::ADDI, axis, rank)?;
            out.push(self.where_less([axis, zero], [counted, axis])?);
        }
        Ok(out)
    }

    /// For each dimension whether it is among these axes.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn among(&mut self, axes: &[Value<'c>], rank: usize) -> Result<Vec<Value<'c>>, Failure> {
        let (index, truth) = (Type::index(self.context()), Type::integer(self.context(), 1));
        let mut out = vec![];
        for d in 0..rank {
            let d = self.int(index, d as i64);
            let mut is = self.int(truth, 0);
            for axis in axes {
                let equal = self.compare(CmpI::Eq, *axis, d)?;
                is = self.binary(ops::arith::ORI, is, equal)?;
            }
            out.push(is);
        }
        Ok(out)
    }

    /// Of these sizes, in order, the first `count` that are not left out.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn without(&mut self, sizes: &[Value<'c>], left_out: &[Value<'c>], count: usize) -> Result<Vec<Dim>, Failure> {
        let index = Type::index(self.context());
        let (zero, one) = (self.int(index, 0), self.int(index, 1));
        let (mut found, mut place) = (vec![zero; count], zero);
        for (size, is_out) in sizes.iter().zip(left_out) {
            for (at, found) in found.iter_mut().enumerate() {
                let at = self.int(index, at as i64);
                let here = self.compare(CmpI::Eq, place, at)?;
                let taken = self.select(here, *size, *found)?;
                *found = self.select(*is_out, *found, taken)?;
            }
            let next = self.binary(ops::arith::ADDI, place, one)?;
            place = self.select(*is_out, place, next)?;
        }
        Ok(found.into_iter().map(|size| self.new_symbol(size)).collect())
    }
}
