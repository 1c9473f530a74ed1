//! The IR that a phase may leave: its dialects, ops and types.

use crate::{Block, Diagnostic, Diagnostics, Op, Type, WalkOrder};

/// The ops and types that a module may contain.
#[derive(Clone, Copy, Debug)]
pub struct LegalIr {
    /// Dialects all of whose ops are legal.
    pub dialects: &'static [&'static str],
    /// Further legal ops.
    pub ops: &'static [&'static str],
    /// Whether tensor values may appear.
    pub tensors: bool,
    /// Whether memref values may appear.
    pub memrefs: bool,
}

impl LegalIr {
    /// Checks `root` and its nested ops against the legal IR of `phase`, then runs MLIR's verifier.
    ///
    /// # Errors
    /// I0010 for each op or value that is not legal; I0001 for the verifier's errors.
    pub fn verify(&self, phase: &str, root: Op) -> Result<(), Diagnostics> {
        let mut found = Diagnostics::default();
        root.walk(WalkOrder::Pre, |op| {
            if let Some(problem) = self.problem(op) {
                let message = format!("after phase '{phase}', {problem}");
                found.0.push(Diagnostic::error("I0010", op.location(), message));
            }
        });
        if found.has_errors() {
            return Err(found);
        }
        root.verify_with_diagnostics()
    }

    fn problem(&self, op: Op) -> Option<String> {
        let legal = op.dialect() == "builtin" || self.dialects.contains(&op.dialect()) || self.ops.contains(&op.name());
        if !legal {
            return Some(format!("op '{}' is not legal", op.name()));
        }
        let args = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(Block::args);
        let types = op.results().into_iter().chain(args).map(|v| v.ty());
        types.into_iter().find(|ty| !self.allows(*ty)).map(|ty| format!("'{}' has a value of type {ty}", op.name()))
    }

    fn allows(&self, ty: Type) -> bool {
        (self.tensors || !ty.is_tensor()) && (self.memrefs || !ty.is_memref())
    }
}
