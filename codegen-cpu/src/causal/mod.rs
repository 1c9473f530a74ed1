//! Leaves out the keys that no row of an attention's task sees: its ops run over blocks of keys, as many as there are before
//! the last row's own.
//!
//! Before / after; `i` are the task's rows, `j` keys:
//!
//! ```text
//! s[i, j] = 0; s += q k; s = j <= i + first ? s : least        for blocks of keys, up to that of the last row's own:
//! m[i] = max(m[i], s)                                            s = 0; s += q k; s = j <= i + first ? s : least; m = max(m, s)
//! s = exp(s - m); d[i] += s                                    for the same blocks: s = exp(s - m); d += s
//! s = s / d; o[i, c] += s v                                    for the same blocks: s = s / d; o += s v
//! ```
//!
//! Requires: kernels of class attention, on memrefs, as `frontend/src/attention.rs` joins them; their buffers on the stack.
//! Ensures: the same values. With `least` of negative infinity the powers of keys that are left out would be 0. With another
//! constant they would be 0 where each row's largest score is above it by [`UNDERFLOW`]; where one's is not, the task
//! computes all keys. One block is computed at least, so that rows which see no key are NaN.
//! Limits: values that are infinite or no numbers at keys that are left out do not show; their products with 0 would be NaN,
//! as would sums of such scores with a mask that is added.
//! A mask that is not the last op on the scores, or leaves out few keys of the first task, stays as it is.
//!
//! [`UNDERFLOW`]: monopour_ir::causal::UNDERFLOW

mod blocks;

use crate::abi;
use monopour_contract::{KernelClass, attributes};
use monopour_ir::bodies::{self, MultiplyAdd, Power, Quotient};
use monopour_ir::causal::CausalMask;
use monopour_ir::typed::Slice;
use monopour_ir::typed::linalg::{IteratorType, Structured, iterator_types};
use monopour_ir::{Block, Diagnostics, Module, Op, Rewriter, Value, ops};

/// Keys of a block, best first: two vectors of a register tile or more. Measured, 128 take as long, and longer for few keys.
const BLOCKS: [i64; 3] = [64, 80, 96];
/// Fewest keys behind the last whole block that are a vector.
const FEWEST_LAST: i64 = 16;
/// The part of the first task's keys that it leaves out at least: blocks cost something, too.
const FEWEST_LEFT_OUT: i64 = 8;

/// Rewrites the causal attentions of all kernels.
///
/// # Errors
/// None on verified IR.
pub(crate) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    for kernel in module.functions().into_iter().filter(|f| abi::is_kernel(*f)) {
        let class = kernel.attr(attributes::KERNEL).and_then(|choice| choice.get("class")?.as_string());
        if class == Some(KernelClass::Attention.as_str())
            && let Some(attention) = kernel.body().and_then(Attention::of)
        {
            blocks::rewrite(&attention, &mut rw)?;
        }
    }
    Ok(())
}

/// The ops of a task, of which each runs over all keys before the next one.
struct Attention<'c> {
    /// The product of queries and keys, and pointwise ops on it.
    scores: Vec<Op<'c>>,
    /// The maximum of each row.
    most_of_row: Op<'c>,
    /// Powers, their sum, and the weights.
    weights: [Op<'c>; 3],
    /// The product of weights and values.
    values: Op<'c>,
    /// The fill of the scores.
    fill: Op<'c>,
    /// The scores, which later ops overwrite: `[rows.., keys]`; their maxima: `[rows..]`.
    buffer: Value<'c>,
    most: Value<'c>,
    mask: CausalMask<'c>,
    keys: i64,
    /// Number of rows, and the one of their loops that has them.
    rows: i64,
    row: usize,
}

impl<'c> Attention<'c> {
    /// The attention of a kernel's body, if it is causal and leaves enough keys out.
    fn of(body: Block<'c>) -> Option<Self> {
        let (linalg, others): (Vec<Op>, Vec<Op>) = body.ops().into_iter().partition(|op| op.dialect() == "linalg");
        let (fills, generics): (Vec<Op>, Vec<Op>) = linalg.into_iter().partition(|op| op.is(ops::linalg::FILL));
        let first = (1..generics.len()).find(|i| reduces(generics[*i]))?;
        let [powers, sum, weights, values, ..] = *generics.get(first + 1..)? else { return None };
        let [buffer, most, total] = [generics[0], generics[first], sum].map(output);
        let shape = buffer?.ty().shape()?;
        let (keys, of_rows) = shape.split_last()?;
        let rows = of_rows.iter().try_fold(1i64, |all, extent| all.checked_mul(*extent))?;
        let row = of_rows.iter().position(|extent| *extent == rows && rows > 1)?;
        let found = Self {
            scores: generics[..first].to_vec(),
            most_of_row: generics[first],
            weights: [powers, sum, weights],
            values,
            fill: *fills.iter().find(|fill| output(**fill) == buffer)?,
            buffer: buffer?,
            most: most?,
            mask: CausalMask::of(generics[first - 1].body()?, of_rows.len(), row)?,
            keys: *keys,
            rows,
            row,
        };
        let fits = others.iter().all(|op| touches_nothing(*op))
            && found.ops().all(|op| op.is(ops::linalg::GENERIC) && found.is_plain(op))
            && found.is_linked(total?)
            && found.is_softmax()
            && found.is_private([found.buffer, found.most, total?])
            && found.knows_places(body)
            && found.leaves_out_enough();
        fits.then_some(found)
    }

    /// All ops but the fill, in order.
    fn ops(&self) -> impl Iterator<Item = Op<'c>> {
        self.scores.iter().chain([&self.most_of_row]).chain(&self.weights).chain([&self.values]).copied()
    }

    /// The loop over the keys: that after the rows, or after the elements of a value.
    fn key_loop(&self, op: Op<'c>) -> usize {
        let rows = self.most.ty().shape().map_or(0, |shape| shape.len());
        rows + usize::from(op == self.values)
    }

    /// The keys of a block.
    fn block(&self) -> i64 {
        let is_even = |block: &i64| matches!(self.keys % block, 0 | FEWEST_LAST..);
        BLOCKS.into_iter().find(is_even).unwrap_or(BLOCKS[0])
    }

    /// Whether an op can run over a block: the keys are a dimension of their own in each operand that has them, and the
    /// scores have all loops in order.
    fn is_plain(&self, op: Op<'c>) -> bool {
        let key = self.key_loop(op);
        let plain = |inner: &Op| {
            let calls = matches!(inner.name(), ops::linalg::INDEX | ops::linalg::YIELD);
            (calls || matches!(inner.dialect(), "arith" | "math")) && inner.regions().is_empty()
        };
        let Some(maps) = op.attr("indexing_maps").and_then(|maps| maps.as_array()) else { return false };
        let fits = |(map, value): (&monopour_ir::Attr<'c>, Value<'c>)| {
            let Some(map) = map.as_affine_map() else { return false };
            let at: Vec<usize> = (0..map.results().len()).filter(|i| map.results()[*i].dims().contains(&key)).collect();
            let rows = key - usize::from(op == self.values);
            let scores = || map.dim_positions().is_some_and(|dims| dims.into_iter().eq((0..rows).chain([key])));
            let cut = |at: usize| {
                let bare = map.results()[at].linear(map.num_dims()).and_then(|form| form.as_dim()) == Some(key);
                let ty = value.ty().as_memref();
                bare && ty.is_some_and(|ty| ty.shape[at] == self.keys)
            };
            at.len() < 2 && at.into_iter().all(cut) && (value != self.buffer || scores())
        };
        op.body().is_some_and(|body| body.ops().iter().all(plain)) && maps.iter().zip(op.operands()).all(fits)
    }

    /// Whether each op reads and writes what it does in an attention with these sums of powers.
    fn is_linked(&self, total: Value<'c>) -> bool {
        let (most, [powers, sum, weights], values) = (self.most_of_row, self.weights, self.values);
        let reads_once = |op: Op<'c>, value| inputs(op).iter().filter(|read| **read == value).count() == 1;
        let in_place = |op: &Op<'c>| output(*op) == Some(self.buffer) && !inputs(*op).contains(&self.buffer);
        let along = |op: Op<'c>| iterator_types(op).and_then(|types| types.get(self.key_loop(op)).copied());
        self.scores.iter().chain([&powers, &weights]).all(in_place)
            && self.scores[1..].iter().chain([&powers, &weights]).all(|op| !reduces(*op))
            && along(self.scores[0]) == Some(IteratorType::Parallel)
            && [most, sum, values].iter().all(|op| along(*op) == Some(IteratorType::Reduction))
            && [most, sum].iter().all(|op| inputs(*op) == [self.buffer])
            && inputs(powers) == [self.most]
            && inputs(weights) == [total]
            && reads_once(values, self.buffer)
            && output(values).is_some_and(|result| ![self.buffer, self.most, total].contains(&result))
    }

    /// Whether the ops compute what their names say, so that scores of negative infinity add nothing.
    fn is_softmax(&self) -> bool {
        let [powers, sum, weights] = self.weights;
        let combines = |op: Op<'c>, names: &[&str]| {
            let by = op.body().and_then(|body| bodies::combination(body, 0));
            by.is_some_and(|by| names.contains(&by.name()) && op.body().is_some_and(|body| body.ops().len() == 2))
        };
        let last = self.values.body().and_then(MultiplyAdd::of);
        let is_weight = |position: &usize| self.values.operand(*position) == self.buffer;
        let weighs = |factor: Value<'c>| {
            let read = self.values.body().and_then(|body| bodies::arguments(body, factor));
            read.is_some_and(|read| read.len() == 1 && read.iter().all(is_weight))
        };
        combines(self.most_of_row, &[ops::arith::MAXIMUMF, ops::arith::MAXNUMF])
            && combines(sum, &[ops::arith::ADDF])
            && powers.body().and_then(Power::of).is_some_and(|found| (found.score, found.most) == (1, 0))
            && weights.body().and_then(Quotient::of).is_some_and(|found| (found.power, found.sum) == (1, 0))
            && last.is_some_and(|product| product.factors.into_iter().any(weighs))
    }

    /// Whether these buffers are apart, on the stack, filled before the reductions, and nobody else's.
    fn is_private(&self, buffers: [Value<'c>; 3]) -> bool {
        let own: Vec<Op> = self.ops().collect();
        let reductions = [self.scores[0], self.most_of_row, self.weights[1]];
        let apart = (0..3).all(|i| !buffers[..i].contains(&buffers[i]));
        apart
            && buffers.iter().zip(reductions).all(|(buffer, reduction)| {
                let others: Vec<Op> = buffer.uses().iter().map(|u| u.op).filter(|user| !own.contains(user)).collect();
                let is_filled =
                    matches!(others[..], [fill] if fill.is(ops::linalg::FILL) && fill.is_before_in_block(reduction));
                is_filled && buffer.defining_op().is_some_and(|op| op.is(ops::memref::ALLOCA))
            })
    }

    /// Whether no place of the mask wraps around: rows begin at 0, or where a slice of as many rows does.
    fn knows_places(&self, body: Block<'c>) -> bool {
        let begins = |offset: Value<'c>| {
            body.ops().into_iter().filter(|op| op.is(ops::memref::SUBVIEW)).find_map(|op| {
                let (slice, extents) = (Slice::of(op)?, op.operand(0).ty().shape()?);
                let at = slice.offsets.iter().position(|first| first.value() == Some(offset))?;
                (slice.sizes[at].number() == self.rows && slice.strides[at].number() == 1).then_some(extents[at])
            })
        };
        let most = match self.mask.offsets[..] {
            [] => Some(self.rows),
            [first] => begins(first),
            _ => None,
        };
        most.is_some_and(|most| most >= self.rows && self.mask.holds_places(most.max(self.keys)))
    }

    /// Whether the task of the first rows leaves out enough.
    fn leaves_out_enough(&self) -> bool {
        let block = self.block();
        let seen = self.first_unseen().max(1);
        let computed = (seen.saturating_add(block - 1) / block).saturating_mul(block);
        self.keys.saturating_sub(computed) >= self.keys / FEWEST_LEFT_OUT
    }

    /// The key behind those that the last row sees, where the first one is row 0.
    fn first_unseen(&self) -> i64 {
        self.rows.saturating_add(self.mask.constant) - i64::from(!self.mask.sees_own)
    }
}

/// Whether an op reads and writes no memory.
fn touches_nothing(op: Op) -> bool {
    let views = [
        ops::memref::ALLOCA,
        ops::memref::SUBVIEW,
        ops::memref::CAST,
        ops::memref::EXPAND_SHAPE,
        ops::memref::COLLAPSE_SHAPE,
    ];
    let is_plain = matches!(op.dialect(), "arith" | "affine") && op.regions().is_empty();
    is_plain || views.contains(&op.name()) || op.is_terminator()
}

fn inputs(op: Op<'_>) -> Vec<Value<'_>> {
    let count = Structured::of(op).map_or(0, Structured::num_inputs);
    op.operands().into_iter().take(count).collect()
}

/// The only output.
fn output(op: Op<'_>) -> Option<Value<'_>> {
    let count = Structured::of(op)?.num_inputs();
    (op.num_operands() == count + 1).then(|| op.operand(count))
}

fn reduces(op: Op) -> bool {
    iterator_types(op).is_some_and(|types| types.contains(&IteratorType::Reduction))
}
