//! The converted operands of a pattern's op.

use super::super::plain;
use super::Driver;
use crate::Op;

impl<'c> Driver<'c, '_, '_> {
    /// Reads the converted operands; an error says why there are none.
    pub(super) fn adapt(&mut self, op: Op<'c>) -> Result<(), String> {
        if self.adapt_plainly(op) { Ok(()) } else { self.adapt_slowly(op) }
    }
    /// As [`Self::adapt`], if no pattern reads them.
    pub(super) fn adapt_nothing(&mut self) -> Result<(), String> {
        self.values.clear();
        self.ends.clear();
        Ok(())
    }
    /// Reads all operands by one call; whether each is one value that converts by its type alone.
    fn adapt_plainly(&mut self, op: Op<'c>) -> bool {
        self.values.clear();
        self.ends.clear();
        if !self.rw.is_plain() {
            return false;
        }
        let converter = self.patterns.converter();
        plain::read_operands(op, &self.rw.state().casts, &mut self.operands);
        for operand in &self.operands {
            let Some((source, source_ty)) = operand.source() else { return false };
            let value = match converter.map(|converter| converter.convert_by_type(operand.ty)) {
                None => source,
                Some(None) => return false,
                Some(Some(ty)) if ty == operand.ty => operand.value,
                Some(Some(ty)) if ty == source_ty => source,
                Some(Some(ty)) => self.rw.cast(operand.value, ty),
            };
            self.values.push(value);
        }
        true
    }
    /// As [`Self::adapt`], if an operand is several values, has no converted type, or converts by its value.
    fn adapt_slowly(&mut self, op: Op<'c>) -> Result<(), String> {
        self.values.clear();
        self.ends.clear();
        let mut is_one_to_one = true;
        for (i, value) in op.operand_list().enumerate() {
            let before = self.values.len();
            if let Some(converter) = self.patterns.converter() {
                let Some(types) = converter.convert_value(value) else {
                    return Err(format!(
                        "operand {i} has type {}, which the type converter does not convert",
                        value.ty()
                    ));
                };
                if let [ty] = types[..] {
                    self.values.push(self.rw.cast(value, ty));
                } else {
                    let cast = self.rw.cast_to_many(value, &types);
                    self.values.extend(cast);
                }
            } else if self.rw.is_bridging() {
                self.values.push(self.rw.converted(value));
            } else {
                self.rw.state().casts.behind(value, &mut self.values);
            }
            is_one_to_one &= self.values.len() == before + 1;
            self.ends.push(self.values.len());
        }
        if is_one_to_one {
            self.ends.clear();
        }
        Ok(())
    }
}
