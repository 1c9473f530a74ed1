//! What an operation does to the memory of its tensors, and what replaces it: one [`OpModel`] per operation name.
//!
//! The registry is open: [`OpModels::add`] takes models of other people's operations, and replaces ours.
//! Asked are, in this order:
//!
//! 1. the model of the operation's name ([`OpModels::add`]);
//! 2. the model of its dialect ([`OpModels::add_dialect`]);
//! 3. upstream's `BufferizableOpInterface`, if the operation implements it in C++;
//! 4. with [`Options::extensions`], upstream's `DestinationStyleOpInterface`, if the operation implements it: inputs
//!    are read, destinations are read and written, each result is the buffer of its destination, and the operation
//!    itself remains, on memrefs and without results. An operation that has no such form is refused (B0104).
//!
//! With `extensions`, an operation that is element-wise on tensors (`arith.addf`) becomes a loop over their elements.
//!
//! An operation on tensors that none of them describes is refused (B0101), never guessed.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use monopour_analysis::facts::Definition;
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Diagnostic, Diagnostics, Op, Value, bufferizable};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::models::elementwise::{self, Elementwise};
use crate::models::interface::DestinationStyle;
use crate::models::upstream::Upstream;
use crate::models::{self, interface};
use crate::options::Options;
use crate::rewrite::Rewriting;

/// Whether the contents of an operand may be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadModel {
    /// Never.
    No,
    /// Possibly.
    Yes,
    /// If anything reads this value.
    IfRead(Value),
}

/// What an operation does with one tensor operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UseModel {
    /// Whether the contents may be loaded.
    pub reads: ReadModel,
    /// Whether the buffer may be stored to.
    pub writes: bool,
    /// Cannot be copied.
    pub must_in_place: bool,
    /// Accessed position by position, each load before each store of a position.
    pub elementwise: bool,
}

impl UseModel {
    /// Passes the buffer on.
    pub const NONE: Self = Self { reads: ReadModel::No, writes: false, must_in_place: false, elementwise: false };
    /// Loads.
    pub const READ: Self = Self { reads: ReadModel::Yes, ..Self::NONE };
    /// Stores.
    pub const WRITE: Self = Self { writes: true, ..Self::NONE };
    /// Loads and stores.
    pub const READ_WRITE: Self = Self { reads: ReadModel::Yes, writes: true, ..Self::NONE };

    /// A read if `reads`, nothing else.
    pub fn reading(reads: bool) -> Self {
        Self { reads: if reads { ReadModel::Yes } else { ReadModel::No }, ..Self::NONE }
    }
}

/// How the buffers of an operand in place and of an aliasing value relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationModel {
    /// The same buffer, offset, sizes and strides.
    Equivalent,
    /// Equivalent if these two values are.
    EquivalentIf(Value, Value),
    /// Equivalent if the values of both pairs are.
    EquivalentIfBoth((Value, Value), (Value, Value)),
    /// They may share memory.
    Unknown,
}

/// A value whose buffer may be that of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliasModel {
    /// The value.
    pub value: Value,
    /// How the buffers relate.
    pub relation: RelationModel,
    /// Always this operand's buffer, not one of several.
    pub definite: bool,
    /// The types differ though the operation is not a cast.
    pub retypes: bool,
}

impl AliasModel {
    /// The operand's buffer.
    pub fn equivalent(value: Value) -> Self {
        Self { value, relation: RelationModel::Equivalent, definite: true, retypes: false }
    }
    /// The operand's buffer or another operand's.
    pub fn maybe(value: Value) -> Self {
        Self { definite: false, ..Self::equivalent(value) }
    }
    /// Some part of the operand's buffer.
    pub fn unknown(value: Value) -> Self {
        Self { value, relation: RelationModel::Unknown, definite: true, retypes: true }
    }
}

/// What is known about a tensor result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultModel {
    /// May be stored to.
    pub writable: bool,
    /// Whether it fixes the contents.
    pub definition: Definition,
    /// Is a fresh buffer.
    pub allocates: bool,
}

impl Default for ResultModel {
    fn default() -> Self {
        Self { writable: true, definition: Definition::Inferred, allocates: false }
    }
}

/// What is known about a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionModel {
    /// May run several times.
    pub repetitive: bool,
    /// May run at the same time as itself.
    pub parallel: bool,
    /// Its operations are not ordered.
    pub graph: bool,
    /// Its tensor arguments may be stored to.
    pub writable_arguments: bool,
    /// How often it runs, if known.
    pub trip_count: Option<u64>,
}

/// A number in a slice: written down or computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// Written down.
    Static(i64),
    /// Computed.
    Dynamic(Value),
}

/// Offsets, sizes and strides of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceModel {
    /// First index, by dimension.
    pub offsets: Vec<Index>,
    /// Number of elements, by dimension.
    pub sizes: Vec<Index>,
    /// Distance between elements, by dimension.
    pub strides: Vec<Index>,
}

/// How an operation reads or overwrites a part of a tensor; operands by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubsetModel {
    /// Result 0 is the slice of the operand.
    Extraction {
        /// The tensor that is read.
        container: usize,
        /// Which slice.
        slice: SliceModel,
    },
    /// The slice of the destination becomes the source.
    Insertion {
        /// The new contents.
        source: usize,
        /// The tensor that is written.
        destination: usize,
        /// Which slice; none for the whole.
        slice: Option<SliceModel>,
    },
}

/// The operands of an operation after the rewrite: memrefs where it has tensors.
#[derive(Clone, Debug)]
pub struct Buffers<'a> {
    values: &'a [Value],
}

impl<'a> Buffers<'a> {
    pub(crate) fn new(values: &'a [Value]) -> Self {
        Self { values }
    }
    /// Operand by position.
    pub fn operand(&self, index: usize) -> Value {
        self.values[index]
    }
    /// All operands.
    pub fn operands(&self) -> &'a [Value] {
        self.values
    }
}

/// What an operation does to the memory of its tensors, and what replaces it.
///
/// `operand` and `result` are positions among all operands and results; methods are asked about tensors only.
pub trait OpModel {
    /// Whether the model, registered for a whole dialect, describes this operation of it.
    fn describes(&self, _op: Op) -> bool {
        true
    }
    /// What the operation does with an operand.
    fn use_of(&self, op: Op, operand: usize, callees: &Callees) -> UseModel;
    /// The values whose buffer may be the operand's, when it is in place.
    fn aliases(&self, op: Op, operand: usize, callees: &Callees) -> Vec<AliasModel>;
    /// What is known about a result.
    fn result(&self, _op: Op, _result: usize) -> ResultModel {
        ResultModel::default()
    }
    /// Pairs of results that may share memory though they share it with no operand.
    fn shared_results(&self, _op: Op, _callees: &Callees) -> Vec<(usize, usize)> {
        vec![]
    }
    /// Whether what stands behind the operation lets a result be stored to.
    fn is_result_writable(&self, _op: Op, _result: usize, _callees: &Callees) -> bool {
        true
    }
    /// The arguments of regions and the results of the operation around it that take over an operand's contents.
    fn flows(&self, _op: Op, _operand: usize) -> Vec<Value> {
        vec![]
    }
    /// Whether the rewrite copies an operand, because its layout does not fit: results are no longer its buffer then.
    fn copies_for_layout(&self, _op: Op, _operand: usize, _types: &BufferTypes<'_>) -> bool {
        false
    }
    /// What is known about a region.
    fn region(&self, _op: Op, _region: usize) -> RegionModel {
        RegionModel::default()
    }
    /// Whether control enters and leaves the regions along these edges only: pairs of region positions.
    fn region_branches(&self, _op: Op) -> Option<Vec<(usize, usize)>> {
        None
    }
    /// An error for a form of the operation that cannot be bufferized, whatever is decided.
    fn refuse(&self, _op: Op, _options: &Options) -> Option<Diagnostic> {
        None
    }
    /// Whether its regions may hold several blocks, with branches between them.
    fn has_several_blocks(&self, _op: Op) -> bool {
        false
    }
    /// The operands that a branch passes to its successors, by position, each with the argument that takes it over.
    ///
    /// Each may be its argument's buffer, and its contents flow there; [`Self::aliases`] need not repeat it.
    fn passes_to_blocks(&self, _op: Op) -> Vec<(usize, Value)> {
        vec![]
    }
    /// Whether the operation stays on tensors where the arguments of the blocks around it do: branches.
    fn follows_blocks(&self, _op: Op) -> bool {
        false
    }
    /// How it reads or overwrites a part of a tensor.
    fn subset(&self, _op: Op) -> Option<SubsetModel> {
        None
    }
    /// Predicts the memref types of the results and of what its regions hold.
    ///
    /// # Errors
    /// When a type cannot be predicted.
    fn buffer_types(&self, op: Op, types: &mut BufferTypes<'_>) -> Result<(), Diagnostics> {
        let callees = types.callees();
        types.set_from_aliases(op, &|operand| self.aliases(op, operand, callees))
    }
    /// Whether the rewrite asks for its buffers itself: it is given operands as they are, tensors included.
    fn keeps_tensors(&self, _op: Op) -> bool {
        false
    }
    /// Replaces the operation by one on memrefs.
    ///
    /// # Errors
    /// `Declined` as the conversion driver defines it.
    fn rewrite(
        &self,
        op: Op,
        buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
    ) -> Result<(), Declined>;
}

/// The models by operation name, and by dialect for operations that have none of their own.
#[derive(Clone)]
pub struct OpModels {
    by_name: HashMap<String, Rc<dyn OpModel>>,
    by_dialect: HashMap<String, Rc<dyn OpModel>>,
    removed: HashSet<String>,
    by_upstream: Rc<dyn OpModel>,
    by_interface: Rc<dyn OpModel>,
    elementwise: Rc<dyn OpModel>,
}

impl Default for OpModels {
    fn default() -> Self {
        Self {
            by_name: HashMap::new(),
            by_dialect: HashMap::new(),
            removed: HashSet::new(),
            by_upstream: Rc::new(Upstream),
            by_interface: Rc::new(DestinationStyle),
            elementwise: Rc::new(Elementwise),
        }
    }
}

impl OpModels {
    /// No models.
    pub fn new() -> Self {
        Self::default()
    }
    /// The models of upstream's dialects.
    pub fn upstream() -> Self {
        let mut models = Self::new();
        models::add_all(&mut models);
        models
    }
    /// Adds or replaces the model of an operation.
    pub fn add(&mut self, name: &str, model: impl OpModel + 'static) {
        self.by_name.insert(name.to_owned(), Rc::new(model));
    }
    /// Adds or replaces the model of a dialect's operations that have none of their own.
    pub fn add_dialect(&mut self, dialect: &str, model: impl OpModel + 'static) {
        self.by_dialect.insert(dialect.to_owned(), Rc::new(model));
    }
    /// Removes the models of a dialect and of its operations, upstream's included: what is left is what its
    /// destination-style interface says.
    pub fn remove_dialect(&mut self, dialect: &str) {
        self.removed.insert(dialect.to_owned());
        self.by_dialect.remove(dialect);
        self.by_name.retain(|name, _| name.split('.').next() != Some(dialect));
    }
    /// The model of an operation that takes part under the options; what does not take part stays on tensors.
    pub(crate) fn taking_part(&self, op: Op, options: &Options) -> Option<&Rc<dyn OpModel>> {
        if !self.is_allowed(op, options) {
            return None;
        }
        if options.extensions && elementwise::describes(op) {
            return Some(&self.elementwise);
        }
        if let Some(known) = self.get(op) {
            return Some(known);
        }
        if !self.removed.contains(op.dialect()) && bufferizable::is_bufferizable(op) {
            return Some(&self.by_upstream);
        }
        (options.extensions && interface::describes(op, options)).then_some(&self.by_interface)
    }
    /// Whether the options let the operation take part.
    pub(crate) fn is_allowed(&self, op: Op, options: &Options) -> bool {
        let filtered = !options.dialect_filter.is_empty() && !options.dialect_filter.iter().any(|d| d == op.dialect());
        let boundary = op.dialect() == "func" && !options.bufferize_function_boundaries;
        !filtered && !boundary
    }
    /// The model of an operation or of its dialect.
    pub fn get(&self, op: Op) -> Option<&Rc<dyn OpModel>> {
        let of_dialect = || self.by_dialect.get(op.dialect()).filter(|m| m.describes(op));
        self.by_name.get(op.name()).or_else(of_dialect)
    }
}

/// Whether the operation has a tensor operand or result, or a block with a tensor argument.
pub fn has_tensors(op: Op) -> bool {
    // Every operation is asked this several times: without lists.
    (0..op.num_operands()).any(|i| op.operand(i).ty().is_tensor())
        || (0..op.num_results()).any(|i| op.result(i).ty().is_tensor())
        || op.regions().iter().flat_map(|r| r.blocks()).flat_map(|b| b.args()).any(|v| v.ty().is_tensor())
        || is_global_tensor(op)
}

/// A global names its tensor in an attribute only.
fn is_global_tensor(op: Op) -> bool {
    op.num_operands() == 0
        && op.is("ml_program.global")
        && op.attr("type").and_then(|a| a.as_type()).is_some_and(|ty| ty.is_tensor())
}
