//! A `linalg.generic` on memrefs as data: its loops, and how each operand is indexed by them.

use super::merge;
use monopour_contract::{MAX_INTERLEAVED, attributes};
use monopour_ir::ops;
use monopour_ir::typed::linalg::{self, IteratorType, Structured};
use monopour_ir::{Block, DYNAMIC, LinearForm, Op, Type, Value};

/// An operand's stride along a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// Zero.
    Invariant,
    /// One element.
    Contiguous,
    /// A few elements in memory, at most [`MAX_INTERLEAVED`].
    Interleaved(i64),
    /// Any other.
    Strided,
}

/// What a panel holds of the vector loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Panel {
    /// Nothing: its elements are broadcast.
    Rows,
    /// A vector: the current position of this loop is the buffer's origin.
    Vector(usize),
    /// The whole line, and lanes behind it that fill its last register.
    Line,
}

/// A memref, or a scalar, that the op reads or writes.
#[derive(Clone, Debug)]
pub(super) struct Operand<'c> {
    /// The memref or scalar.
    pub(super) value: Value<'c>,
    /// Per dimension of the memref, over the loops; empty for a scalar.
    pub(super) subscripts: Vec<LinearForm>,
    /// Whether the last dimension has stride 1.
    pub(super) unit_stride: bool,
    /// What the buffer holds, if it is a panel.
    pub(super) panel: Option<Panel>,
    /// The value of the body that the elements are, where it is not the argument.
    pub(super) holds: Option<Value<'c>>,
}

impl<'c> Operand<'c> {
    fn of(value: Value<'c>, subscripts: Vec<LinearForm>) -> Option<Self> {
        if !value.ty().is_memref() {
            return subscripts.is_empty().then_some(Self {
                value,
                subscripts,
                unit_stride: false,
                panel: None,
                holds: None,
            });
        }
        let ty = value.ty().as_memref()?;
        let unit_stride = ty.strides.last() == Some(&1);
        Some(Self { value, subscripts, unit_stride, panel: None, holds: None })
    }

    /// A panel.
    pub(super) fn panel(value: Value<'c>, subscripts: Vec<LinearForm>, panel: Panel, holds: Option<Value<'c>>) -> Self {
        Self { value, subscripts, unit_stride: true, panel: Some(panel), holds }
    }

    /// Whether this is a memref.
    pub(super) fn is_memory(&self) -> bool {
        self.value.ty().is_memref()
    }

    /// Type of an element.
    pub(super) fn element(&self) -> Type<'c> {
        self.value.ty().element()
    }

    /// The operand's stride along `dim`.
    pub(super) fn access(&self, dim: usize) -> Access {
        let Some((last, rest)) = self.subscripts.split_last() else { return Access::Invariant };
        let outside = rest.iter().any(|s| s.factors[dim] != 0);
        match (outside, last.factors[dim]) {
            (false, 0) => Access::Invariant,
            (false, 1) if self.unit_stride => Access::Contiguous,
            (false, stride @ 2..=MAX_INTERLEAVED) if self.unit_stride => Access::Interleaved(stride),
            (true, _) if self.unit_stride && self.panel.is_none() => match self.stride(dim) {
                Some(stride @ 2..=MAX_INTERLEAVED) => Access::Interleaved(stride),
                _ => Access::Strided,
            },
            _ => Access::Strided,
        }
    }

    /// Elements in memory between those of two iterations of `dim`, where the layout is known.
    fn stride(&self, dim: usize) -> Option<i64> {
        let strides = self.value.ty().as_memref()?.strides;
        self.subscripts.iter().zip(strides).try_fold(0i64, |sum, (subscript, stride)| match subscript.factors[dim] {
            0 => Some(sum),
            factor => sum.checked_add(Some(stride).filter(|s| *s != DYNAMIC)?.checked_mul(factor)?),
        })
    }

    /// Bytes between the elements of two iterations of `dim`, where the layout is known.
    pub(super) fn stride_bytes(&self, dim: usize) -> Option<i64> {
        self.stride(dim)?.checked_mul(i64::try_from(self.element().element_size_bytes()?).ok()?)
    }

    /// Whether some subscript has `dim`.
    pub(super) fn uses(&self, dim: usize) -> bool {
        self.access(dim) != Access::Invariant
    }
}

/// Most iterations of a loop over few rows.
pub(super) const FEW_ROWS: i64 = 16;
/// Rows of a product, where it has many and their number is not known.
const MANY_ROWS: i64 = 64;

/// What is known of a loop's iterations where their number is not: the part of the code that they are in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Range {
    /// Nothing.
    Any,
    /// At most [`FEW_ROWS`].
    Few,
    /// More.
    Many,
}

/// One loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Loop<'c> {
    /// Iterations, where known.
    pub(super) extent: Option<i64>,
    /// How many they may be.
    pub(super) range: Range,
    /// Whether it is a reduction.
    pub(super) reduction: bool,
    /// An operand and its dimension with the loop's extent.
    pub(super) witness: (Value<'c>, usize),
}

impl Loop<'_> {
    /// Fewest iterations.
    pub(super) fn least(&self) -> i64 {
        self.extent.unwrap_or(if self.range == Range::Many { FEW_ROWS + 1 } else { 0 })
    }

    /// The iterations, as many as there may be where they are many; `None` if nothing is known of them.
    pub(super) fn likely(&self) -> Option<i64> {
        self.extent.or(Some(MANY_ROWS).filter(|_| self.range == Range::Many))
    }
}

/// A generic.
#[derive(Clone, Debug)]
pub(super) struct Nest<'c> {
    /// The op.
    pub(super) op: Op<'c>,
    /// Outermost first.
    pub(super) loops: Vec<Loop<'c>>,
    /// Operands that are read.
    pub(super) inputs: Vec<Operand<'c>>,
    /// Operands that are updated.
    pub(super) outputs: Vec<Operand<'c>>,
    /// The body of an iteration.
    pub(super) body: Block<'c>,
    /// The scalar that fills the output, if one does.
    pub(super) start: Option<Value<'c>>,
    /// Epilogues: pointwise updates of the output, over the same loops.
    pub(super) after: Vec<Nest<'c>>,
    /// Inputs that are fetched to a cache and not read ([`super::rows`]).
    pub(super) fetched: Vec<usize>,
}

impl<'c> Nest<'c> {
    /// Reads a generic; `None` where a subscript is no sum of loops, or the body has other than elementwise scalar ops.
    pub(super) fn of(op: Op<'c>) -> Option<Self> {
        let types = linalg::iterator_types(op)?;
        let maps = op.attr("indexing_maps")?.as_array()?;
        let inputs = Structured::of(op)?.num_inputs();
        if op.num_results() != 0 || maps.len() != op.num_operands() {
            return None;
        }
        let mut operands = vec![];
        for (map, value) in maps.iter().zip(op.operands()) {
            let map = map.as_affine_map().filter(|m| m.num_symbols() == 0)?;
            let subscripts = map.results().into_iter().map(|e| e.linear(types.len())).collect::<Option<_>>()?;
            operands.push(Operand::of(value, subscripts)?);
        }
        let mut loops = vec![];
        for (d, ty) in types.iter().enumerate() {
            let witness = witness(&operands, d)?;
            let extent = Some(witness.0.ty().shape()?[witness.1]).filter(|e| *e != DYNAMIC);
            loops.push(Loop { extent, range: Range::Any, reduction: *ty == IteratorType::Reduction, witness });
        }
        let outputs = operands.split_off(inputs);
        let fetched = op.attr(attributes::FETCHED).and_then(|list| list.as_ints()).unwrap_or_default();
        let fetched = fetched.into_iter().filter_map(|input| usize::try_from(input).ok()).collect();
        let nest = Self { op, loops, inputs: operands, outputs, body: op.body()?, start: None, after: vec![], fetched };
        (nest.is_plain() && nest.outputs.iter().all(Operand::is_memory)).then_some(nest)
    }

    /// Whether each op of the body has a vector form, and each element type is laid out in vectors as in memory.
    fn is_plain(&self) -> bool {
        let scalar =
            |ty: Type<'c>| ty.is_float() || ty.is_index() || matches!(ty.integer_width(), Some(1 | 8 | 16 | 32 | 64));
        let stored = |o: &Operand<'c>| scalar(o.element()) && o.element().integer_width() != Some(1);
        let plain = |op: &Op<'c>| {
            let known = matches!(op.dialect(), "arith" | "math")
                || matches!(op.name(), ops::linalg::INDEX | ops::linalg::YIELD)
                || op.is(ops::memref::LOAD) && self.reductions().is_empty() && self.is_apart(*op);
            known && op.regions().is_empty() && op.results().iter().all(|r| scalar(r.ty()))
        };
        self.inputs.iter().chain(&self.outputs).all(stored) && self.body.ops().iter().all(plain)
    }

    /// Whether a load of the body reads no output, and elements that lie in vectors as in memory.
    fn is_apart(&self, load: Op<'c>) -> bool {
        let (source, ty) = (load.operand(0), load.result(0).ty());
        let apart = self.outputs.iter().all(|o| merge::in_other_buffers(source, o.value));
        apart && ty.integer_width() != Some(1) && source.block() != Some(self.body)
    }

    /// The loop over rows whose number is not known: iterations of it share elements of an input, as those of a product.
    pub(super) fn unknown_rows(&self) -> Option<usize> {
        let rows = |d: &usize| {
            let by_row = |o: &Operand<'c>| o.uses(*d);
            let shares = self.inputs.iter().any(|o| !by_row(o) && o.is_memory()) && self.inputs.iter().any(by_row);
            self.loops[*d].extent.is_none() && !self.loops[*d].reduction && shares
        };
        (0..self.loops.len()).find(rows).filter(|_| !self.reductions().is_empty())
    }

    /// The same, where loop `dim` has few iterations, or many.
    pub(super) fn with_range(&self, dim: usize, range: Range) -> Self {
        let mut nest = self.clone();
        nest.loops[dim].range = range;
        nest
    }

    /// Reductions, outermost first.
    pub(super) fn reductions(&self) -> Vec<usize> {
        (0..self.loops.len()).filter(|d| self.loops[*d].reduction).collect()
    }

    /// The body's argument for an output.
    pub(super) fn output_arg(&self, output: usize) -> Value<'c> {
        self.body.arg(self.inputs.len() + output)
    }

    /// The yielded values.
    pub(super) fn yielded(&self) -> Vec<Value<'c>> {
        self.body.terminator().map(Op::operands).unwrap_or_default()
    }
}

fn witness<'c>(operands: &[Operand<'c>], dim: usize) -> Option<(Value<'c>, usize)> {
    operands.iter().find_map(|o| Some((o.value, o.subscripts.iter().position(|s| s.as_dim() == Some(dim))?)))
}
