//! Printed names of values.

use mlir_sys::{MlirAsmState, MlirOpPrintingFlags};

use crate::{Op, Value, string};

/// Names of the values in an operation, as its text shows them: `%arg0`, `%inserted_1`, `%2#1`.
///
/// They are numbered once, in time linear in the size of the operation; values made later have no names.
pub struct ValueNames {
    state: MlirAsmState,
    flags: MlirOpPrintingFlags,
}

impl ValueNames {
    /// Numbers the values in an operation.
    pub fn new(op: Op) -> Self {
        let flags = c!(mlirOpPrintingFlagsCreate());
        Self { state: c!(mlirAsmStateCreateForOperation(op.raw(), flags)), flags }
    }
    /// The name of a value of the operation.
    pub fn of(&self, value: Value) -> String {
        string::collect(|callback, user| c!(mlirValuePrintAsOperand(value.raw(), self.state, callback, user)))
    }
}

impl Drop for ValueNames {
    fn drop(&mut self) {
        c!(mlirAsmStateDestroy(self.state));
        c!(mlirOpPrintingFlagsDestroy(self.flags));
    }
}
