//! Sizes that data decides: elements of operands are read at run time, and sizes that follow from them are new symbols.

use super::builder::{Builder, Failure};
use super::operand::Operand;
use super::symbolic::Dim;
use monopour_ir::{Type, Value, ops};

/// Most elements that are read one by one.
const MAX_READ: i64 = 64;

/// Predicates of signed integers.
const LESS: i64 = 2;

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
        let (element, index) = (self.element(x.dtype)?, Type::index(self.context()));
        let flat = self.reshaped(x, &[Dim::constant(count)])?;
        let value = self.value(&flat)?;
        let mut out = vec![];
        for at in 0..count {
            let at = self.int(index, at);
            let read = self.op(ops::tensor::EXTRACT, &[value, at], element)?;
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
        let less = self.compare(LESS, x, y)?;
        self.select(less, a, b)
    }
}
