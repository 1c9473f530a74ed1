//! The variables of `ml_program`: one value each, initialised before the program starts.

use super::{Datum, Interpreter, Result, scalar::dtype_of, unsupported};
use crate::host_tensor::HostTensor;
use monopour_ir::Op;
use monopour_ir::ops;
use std::rc::Rc;

impl<'c> Interpreter<'c, '_> {
    pub(super) fn global_op(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let name = op.attr("global").and_then(|a| a.as_symbol().map(str::to_owned)).unwrap_or_default();
        match op.name() {
            ops::ml_program::GLOBAL_LOAD | ops::ml_program::GLOBAL_LOAD_CONST => {
                let known = self.globals.get(&name).cloned();
                Ok(vec![known.map_or_else(|| self.initial(op, &name), Ok)?])
            }
            ops::ml_program::GLOBAL_STORE => {
                let value = self.operand(op, 0)?;
                self.globals.insert(name, value);
                Ok(vec![])
            }
            _ => Err(unsupported(op.name(), op)),
        }
    }

    fn initial(&self, op: Op<'c>, name: &str) -> Result<Datum> {
        let unknown = || unsupported(&format!("a variable @{name} without a value"), op);
        let value = self.module.symbol(name).and_then(|g| g.attr("value")).ok_or_else(unknown)?;
        let ty = op.result(0).ty();
        let shape = ty.shape().ok_or_else(unknown)?;
        let shape = super::checked_shape(op, &shape)?;
        let dtype = dtype_of(ty).ok_or_else(unknown)?;
        let bytes = value.elements_bytes().ok_or_else(unknown)?;
        Ok(Datum::Tensor(Rc::new(HostTensor::from_bytes(dtype, &shape, &bytes).ok_or_else(unknown)?)))
    }
}
