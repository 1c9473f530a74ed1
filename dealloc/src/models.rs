//! How each kind of operation passes on the ownership of its memrefs: one [`OwnershipModel`] per operation or interface.
//!
//! The registry is open: [`OwnershipModels::add`] takes models of other operations, and replaces ours.
//! The model of the operation's name is used, if there is one; else all models of interfaces that
//! describe the operation, in the order of their registration. A memref without ownership from them belongs to
//! the owner of the operation's memref operands; without such operands, it has no owner.

mod branch;
mod call;
mod memory_effects;
mod region_branch;
mod select;
mod terminator;
mod upstream;

use std::collections::HashMap;
use std::rc::Rc;

use monopour_ir::control_flow::Traits;
use monopour_ir::{Diagnostics, Op, Value};

use crate::state::State;

/// The memory of the memref results of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultMemory {
    /// Each is a fresh buffer of the heap, which `memref.dealloc` frees.
    Fresh,
    /// Memory of another owner, which outlives the function.
    Foreign,
    /// That of any of the operation's memref operands.
    Operands,
}

/// How one kind of operation passes on the ownership of memrefs.
pub trait OwnershipModel {
    /// Whether the model, registered by interface, describes this operation.
    fn describes(&self, _op: Op, _traits: Traits) -> bool {
        true
    }
    /// Gives the operation's memref results their owners, or, for a terminator, inserts the deallocs of its block.
    /// Returns the resulting operation: the same one, unless it was recreated.
    ///
    /// # Errors
    /// For memrefs that cannot be given an owner.
    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics>;
    /// One indicator for a memref result with one of several owners ([`BlockOwnership::Unknown`](crate::ownership::BlockOwnership)),
    /// created before the operation `at` of its block. Without one the memref is copied where an owner is needed.
    ///
    /// # Errors
    /// MLIR's diagnostics for the operations.
    fn indicator<'c>(
        &self,
        _op: Op<'c>,
        _at: Op<'c>,
        _state: &mut State<'c, '_>,
    ) -> Result<Option<Value<'c>>, Diagnostics> {
        Ok(None)
    }
    /// With `extensions`: the memory of the memref results; `None` if the model does not know.
    /// Not called for views, calls, operations with regions, and the allocations of `memref` and `bufferization`.
    fn result_memory(&self, _op: Op) -> Option<ResultMemory> {
        None
    }
}

/// The models by operation name and by interface.
#[derive(Clone, Default)]
pub struct OwnershipModels {
    by_name: HashMap<String, Rc<dyn OwnershipModel>>,
    by_interface: Vec<Rc<dyn OwnershipModel>>,
}

impl std::fmt::Debug for OwnershipModels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut names: Vec<_> = self.by_name.keys().collect();
        names.sort();
        f.debug_struct("OwnershipModels").field("names", &names).field("interfaces", &self.by_interface.len()).finish()
    }
}

impl OwnershipModels {
    /// No models.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds or replaces the model of an operation.
    pub fn add(&mut self, name: &str, model: impl OwnershipModel + 'static) {
        self.by_name.insert(name.to_owned(), Rc::new(model));
    }
    /// Adds a model for every operation that it describes, after the existing ones.
    pub fn add_interface(&mut self, model: impl OwnershipModel + 'static) {
        self.by_interface.push(Rc::new(model));
    }
    /// The model of the operation's name.
    pub fn by_name(&self, op: Op) -> Option<&Rc<dyn OwnershipModel>> {
        self.by_name.get(op.name())
    }
    /// The memory of the memref results, if a model knows.
    pub(crate) fn result_memory(&self, op: Op) -> Option<ResultMemory> {
        if let Some(model) = self.by_name(op) {
            return model.result_memory(op);
        }
        let traits = Traits::of(op);
        let mut models = self.by_interface.iter().filter(|model| model.describes(op, traits));
        models.find_map(|model| model.result_memory(op))
    }
    /// Lets every model that describes the operation process it; returns the resulting operation.
    pub(crate) fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        if let Some(model) = self.by_name(op) {
            return model.process(op, state);
        }
        let traits = Traits::of(op);
        let mut current = op;
        for model in self.by_interface.iter().filter(|model| model.describes(op, traits)) {
            current = model.process(current, state)?;
        }
        Ok(current)
    }
}
