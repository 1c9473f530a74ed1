//! The memory effects of an operation on tensors, and its rewrite: one [`OpModel`] per operation name.
//!
//! The registry is open: [`OpModels::add`] takes models of other operations, and replaces ours.
//! Looked up are, in this order:
//!
//! 1. the model of the operation's name ([`OpModels::add`]);
//! 2. the model of its dialect ([`OpModels::add_dialect`]);
//! 3. upstream's `BufferizableOpInterface`, if the operation implements it in C++;
//! 4. with [`Options::extensions`], upstream's `DestinationStyleOpInterface`, if the operation implements it: inputs
//!    are read, destinations are read and written, each result is equivalent to its destination, and the operation
//!    itself remains, on memrefs and without results. An operation without such a form is refused (B0104).
//!
//! With `extensions`, an operation that is element-wise on tensors (`arith.addf`) becomes a loop over their elements.
//!
//! An operation on tensors without any of them is refused (B0101), never guessed.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Diagnostic, Diagnostics, Op, Value};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
pub use crate::effects::{
    AliasModel, BufferInfo, Index, LoopCarried, LoopTerminator, ReadModel, RegionInfo, RelationModel, SliceModel,
    SubsetModel, UseModel,
};
use crate::options::Options;
use crate::rewriting::Rewriting;
pub use crate::scope::has_tensors;

/// The operands of an operation after the rewrite: memrefs where it has tensors.
#[derive(Clone, Debug)]
pub struct Buffers<'c, 'a> {
    values: &'a [Value<'c>],
}

impl<'c, 'a> Buffers<'c, 'a> {
    pub(crate) fn new(values: &'a [Value<'c>]) -> Self {
        Self { values }
    }
    /// Operand by position.
    pub fn operand(&self, index: usize) -> Value<'c> {
        self.values[index]
    }
    /// All operands.
    pub fn operands(&self) -> &'a [Value<'c>] {
        self.values
    }
}

/// The memory effects of an operation on tensors, and its rewrite.
///
/// `operand` and `result` are positions among all operands and results; methods are called for tensors only.
pub trait OpModel {
    /// Whether the model, registered for more than one operation name, describes this operation.
    fn describes(&self, _op: Op, _options: &Options) -> bool {
        true
    }
    /// The use of an operand.
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, callees: &Callees<'c>) -> UseModel<'c>;
    /// The values that may alias the operand when it is in place.
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, callees: &Callees<'c>) -> Vec<AliasModel<'c>>;
    /// Properties of the buffer of a result.
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        BufferInfo::default()
    }
    /// Pairs of results that may alias though they alias no operand.
    fn shared_results(&self, _op: Op, _callees: &Callees) -> Vec<(usize, usize)> {
        vec![]
    }
    /// Whether the callee lets a result be written.
    fn is_result_writable(&self, _op: Op, _result: usize, _callees: &Callees) -> bool {
        true
    }
    /// The region arguments and results of the parent operation that receive an operand's contents.
    fn flows<'c>(&self, _op: Op<'c>, _operand: usize) -> Vec<Value<'c>> {
        vec![]
    }
    /// Whether the rewrite copies an operand, because its layout does not fit: results no longer alias it then.
    fn copies_for_layout<'c>(&self, _op: Op<'c>, _operand: usize, _types: &BufferTypes<'c, '_>) -> bool {
        false
    }
    /// Properties of a region.
    fn region(&self, _op: Op, _region: usize) -> RegionInfo {
        RegionInfo::default()
    }
    /// Whether the tensor arguments of a region may be stored to.
    fn are_arguments_writable(&self, _op: Op, _region: usize) -> bool {
        false
    }
    /// The edges along which control enters and leaves the regions, if there are no others: pairs of region positions.
    fn region_branches(&self, _op: Op) -> Option<Vec<(usize, usize)>> {
        None
    }
    /// For loops: the tensors that the terminators of its regions carry to the next region or iteration.
    fn loop_carried<'c>(&self, _op: Op<'c>) -> Vec<LoopCarried<'c>> {
        vec![]
    }
    /// An error for a form of the operation that can never be bufferized.
    fn refuse(&self, _op: Op, _options: &Options) -> Option<Diagnostic> {
        None
    }
    /// Whether its regions may hold several blocks, with branches between them.
    fn has_several_blocks(&self, _op: Op) -> bool {
        false
    }
    /// The operands that a branch forwards to its successors, by position, each with its block argument.
    ///
    /// Each may alias its argument, and its contents flow there; [`Self::aliases`] need not repeat it.
    fn passes_to_blocks<'c>(&self, _op: Op<'c>) -> Vec<(usize, Value<'c>)> {
        vec![]
    }
    /// For branches: whether the operation stays on tensors if the arguments of the enclosing blocks do.
    fn follows_blocks(&self, _op: Op) -> bool {
        false
    }
    /// The subset of a tensor that it reads or overwrites.
    fn subset<'c>(&self, _op: Op<'c>) -> Option<SubsetModel<'c>> {
        None
    }
    /// Predicts the memref types of the results and of values in its regions.
    ///
    /// # Errors
    /// When a type cannot be predicted.
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let callees = types.callees();
        types.set_from_aliases(op, &|operand| self.aliases(op, operand, callees))
    }
    /// Whether the rewrite gets its buffers itself: it is given the original operands, tensors included.
    fn keeps_tensors(&self, _op: Op) -> bool {
        false
    }
    /// Replaces the operation by one on memrefs.
    ///
    /// # Errors
    /// `Declined` as the conversion driver defines it.
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined>;
}

/// The models by operation name, and by dialect for operations without one.
#[derive(Clone)]
pub struct OpModels {
    by_name: HashMap<String, Rc<dyn OpModel>>,
    by_dialect: HashMap<String, Rc<dyn OpModel>>,
    removed: HashSet<String>,
    general: GeneralModels,
}

/// Models that describe operations of any name.
#[derive(Clone)]
pub(crate) struct GeneralModels {
    /// Tried before an operation's own model.
    pub(crate) elementwise: Rc<dyn OpModel>,
    /// Tried for ops without a model, unless its dialect was removed.
    pub(crate) by_upstream: Rc<dyn OpModel>,
    /// Tried last.
    pub(crate) by_interface: Rc<dyn OpModel>,
}

impl OpModels {
    /// Only models for operations of any name.
    pub(crate) fn with_general(general: GeneralModels) -> Self {
        Self { by_name: HashMap::new(), by_dialect: HashMap::new(), removed: HashSet::new(), general }
    }
    /// Adds or replaces the model of an operation.
    pub fn add(&mut self, name: &str, model: impl OpModel + 'static) {
        self.by_name.insert(name.to_owned(), Rc::new(model));
    }
    /// Adds or replaces the model of a dialect's operations without a model of their own.
    pub fn add_dialect(&mut self, dialect: &str, model: impl OpModel + 'static) {
        self.by_dialect.insert(dialect.to_owned(), Rc::new(model));
    }
    /// Removes the models of a dialect and of its operations, upstream's included: the
    /// destination-style interface remains.
    pub fn remove_dialect(&mut self, dialect: &str) {
        self.removed.insert(dialect.to_owned());
        self.by_dialect.remove(dialect);
        self.by_name.retain(|name, _| name.split('.').next() != Some(dialect));
    }
    /// The model of an operation that takes part under the options; others stay on tensors.
    pub(crate) fn taking_part(&self, op: Op, options: &Options) -> Option<&Rc<dyn OpModel>> {
        if !self.is_allowed(op, options) {
            return None;
        }
        let general = &self.general;
        if general.elementwise.describes(op, options) {
            return Some(&general.elementwise);
        }
        if let Some(known) = self.get(op, options) {
            return Some(known);
        }
        if !self.removed.contains(op.dialect()) && general.by_upstream.describes(op, options) {
            return Some(&general.by_upstream);
        }
        Some(&general.by_interface).filter(|model| model.describes(op, options))
    }
    /// Whether the options let the operation take part.
    pub(crate) fn is_allowed(&self, op: Op, options: &Options) -> bool {
        let filtered = !options.dialect_filter.is_empty() && !options.dialect_filter.iter().any(|d| d == op.dialect());
        let boundary = op.dialect() == "func" && !options.bufferize_function_boundaries;
        !filtered && !boundary
    }
    /// The model of an operation or of its dialect.
    pub fn get(&self, op: Op, options: &Options) -> Option<&Rc<dyn OpModel>> {
        let of_dialect = || self.by_dialect.get(op.dialect()).filter(|m| m.describes(op, options));
        self.by_name.get(op.name()).or_else(of_dialect)
    }
}
