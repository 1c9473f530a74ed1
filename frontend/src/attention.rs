//! Joins the dispatches of an attention to one: no scores in memory.
//!
//! Before / after, in dispatches; `i` are rows of queries, `j` keys:
//!
//! ```text
//! 0: %s = sum over d of q[i, d] * k[j, d], scaled and masked     0: all of it; the first product has the role "scores"
//! 1: %p = softmax of %s over j
//! 2: %o = sum over j of %p[i, j] * v[j, c], with its epilogue
//! ```
//!
//! Requires: what [`crate::fuse`] ensures.
//! Ensures: [`crate::fuse`]'s postconditions; the joined dispatch has the class attention, and the form that
//! `distribute/attention` takes: its ops in order are the scores' product, pointwise ops on `[rows.., j]`, maximum, powers,
//! sum, weights, the values' product, and at most one epilogue. All have the rows as their first loops. On a CPU powers and
//! pointwise ops overwrite the scores, so that a task of some rows holds one tile of them on its stack.
//! Limits: other readers of an intermediate, results other than f32, heads larger than `MAX_SIZE`, and more tensors than a
//! kernel binds leave three dispatches; on a CPU also sizes that are known at run time only, and rows that
//! `Shape::task_rows` cannot cut.

use crate::dispatch::{self, Dispatch, Role};
use crate::grid::{self, MAX_GRID_RANK};
use crate::target::TargetDescription;
use crate::{fuse_form, linalg};
use monopour_contract::{KernelClass, MOST_ATTENTION_BYTES, MOST_ATTENTION_KEYS, MOST_TASK_BUFFER_BYTES, attributes};
use monopour_ir::bodies::{self, MultiplyAdd, Power, Quotient};
use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::{
    Attr, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, Value, WalkOrder, ops,
};
use monopour_program::GpuDescription;
use std::collections::{BTreeSet, HashMap, HashSet};
use tracing::trace;

/// Largest head, of keys and of values: an invocation holds its part of a row in registers.
const MAX_SIZE: i64 = 256;
/// Most scores of a task on a CPU: they lie on its stack, and in the second-level cache.
const MOST_SCORES: i64 = (MOST_TASK_BUFFER_BYTES / 4) as i64;
/// Most rows of queries of a task on a CPU, and the fewest of which several tasks are made.
const MOST_ROWS: i64 = 64;
const FEWEST_ROWS: i64 = 16;

/// Joins every attention of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run(module: &Module, target: &TargetDescription) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let dispatches = dispatch::collect(module);
    let owners: HashMap<Op, usize> =
        dispatches.iter().enumerate().flat_map(|(i, d)| d.ops.iter().map(move |(op, _)| (*op, i))).collect();
    let found = dispatches.iter().filter_map(|last| Some((last, Attention::of(last, &dispatches, &owners)?)));
    let fitting: Vec<(&Dispatch, Attention)> = found.filter(|(_, attention)| attention.fits(target)).collect();
    for (last, mut attention) in fitting {
        trace!(target: "fuse", "{}: attention, one dispatch {}", last.root.location(), last.number);
        attention.test_sums(&mut rw)?;
        match target {
            TargetDescription::Cpu(_) => attention.overwrite_scores(&mut rw)?,
            TargetDescription::Gpu(gpu) if gpu.is_cpu_adapter() => attention.check_keys(&mut rw)?,
            TargetDescription::Gpu(_) => (),
        }
        attention.mark(last.number, &mut rw);
    }
    Ok(())
}

/// The ops of an attention but for the fills.
struct Attention<'c> {
    scores: Op<'c>,
    /// Pointwise ops on the scores, in order.
    pointwise: Vec<Op<'c>>,
    most: Op<'c>,
    powers: Op<'c>,
    sum: Op<'c>,
    weights: Op<'c>,
    values: Op<'c>,
    epilogue: Option<Op<'c>>,
}

/// The loops of an attention by their roles, and their extents.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Extents of the row loops.
    pub rows: Vec<i64>,
    /// The row loop that neither keys nor values have; `None`: each row has its own keys.
    pub query: Option<usize>,
    /// Number of keys.
    pub keys: i64,
    /// Size of a key, and of a value.
    pub size: i64,
    pub width: i64,
}

impl Shape {
    /// The shape of a dispatch that [`run`] joined.
    pub fn of(dispatch: &Dispatch) -> Option<Self> {
        let scores = dispatch.find(Role::Scores)?;
        let reduces = |op: &Op| linalg::parallel_loops(*op).is_some_and(|p| p.contains(&false));
        let values = dispatch.ops.iter().rev().map(|(op, _)| *op).find(reduces)?;
        let read = (0..linalg::num_inputs(values)).find(|i| {
            values.operand(*i).defining_op().is_some_and(|def| dispatch.ops.iter().any(|(op, _)| *op == def))
        })?;
        Self::between(scores, values, read)
    }

    /// Rows of queries of a task on a CPU: a divisor, so that its scores have a static size. `None` where a size is unknown, or
    /// where so few rows would share the keys, which each task packs, that scores in memory cost less.
    pub fn task_rows(&self) -> Option<i64> {
        let sizes = [self.keys, self.size, self.width];
        if sizes.iter().chain(&self.rows).any(|size| *size == DYNAMIC || *size < 1) {
            return None;
        }
        let queries = self.query.map_or(1, |query| self.rows[query]);
        let held = |rows: &i64| rows.saturating_mul(self.keys) <= MOST_SCORES;
        let rows = (1..=queries.min(MOST_ROWS)).rev().find(|rows| queries % rows == 0 && held(rows));
        let whole = Some(queries).filter(held);
        rows.filter(|rows| *rows == queries || *rows >= FEWEST_ROWS).or(whole)
    }

    /// The shape of two products; operand `read` of the second one are the weights.
    fn between(scores: Op, values: Op, read: usize) -> Option<Self> {
        let (first, second) = (Product::of(scores)?, Product::of(values)?);
        let rows = first.extents.len().checked_sub(2)?;
        let (key, size, width, weight) = (rows, rows + 1, rows, rows + 1);
        if rows == 0 || second.extents.len() != rows + 2 || second.extents[..rows] != first.extents[..rows] {
            return None;
        }
        let own: Vec<usize> = (0..rows).chain([weight]).collect();
        if second.maps[read] != own {
            return None;
        }
        let [a, b] = &second.factors;
        let values_of = if *a == BTreeSet::from([read]) { b } else { a };
        let weighs = [a, b].iter().any(|f| **f == BTreeSet::from([read])) && !values_of.contains(&read);
        let reads = |product: &Product, factor: &BTreeSet<usize>, l: usize| {
            factor.iter().any(|i| product.maps[*i].contains(&l))
        };
        let query_of = |keys: &BTreeSet<usize>| {
            let shared = |row: &usize| !reads(&first, keys, *row) && !reads(&second, values_of, *row);
            (0..rows).filter(shared).max_by_key(|row| linalg::known(first.extents[*row]))
        };
        let [a, b] = &first.factors;
        let sides = [(a, b), (b, a)].into_iter().filter(|(queries, _)| !reads(&first, queries, key));
        let query = sides.map(|(_, keys)| query_of(keys)).max().filter(|_| weighs)?;
        let extent = |product: &Product, l: usize| product.extents[l];
        Some(Self {
            rows: first.extents[..rows].to_vec(),
            query,
            keys: extent(&first, key),
            size: extent(&first, size),
            width: extent(&second, width),
        })
    }
}

/// Whether queries, keys and values of a dispatch that [`run`] joined are f16 numbers, contiguous along a head, and extended
/// in the products.
pub(crate) fn is_of_halves(dispatch: &Dispatch) -> bool {
    let reduces = |op: &Op| linalg::parallel_loops(*op).is_some_and(|p| p.contains(&false));
    let values = dispatch.ops.iter().rev().map(|(op, _)| *op).find(reduces);
    let Some((scores, values)) = dispatch.find(Role::Scores).zip(values) else { return false };
    // The loop of a head's elements is the last one of the scores, and the last but one of the values.
    let halves = |op: Op, from_end: usize| -> Option<usize> {
        let (body, maps) = (op.body()?, linalg::indexing_maps(op)?);
        let along = maps.first()?.num_dims().checked_sub(from_end)?;
        let of_halves = |factor: &&Value| {
            let map = bodies::extended_half(body, **factor).and_then(|position| maps.get(position));
            map.and_then(|map| map.dim_positions()).is_some_and(|dims| dims.last() == Some(&along))
        };
        Some(MultiplyAdd::of(body)?.factors.iter().filter(of_halves).count())
    };
    halves(scores, 1) == Some(2) && halves(values, 2) == Some(1)
}

/// A generic whose last loop sums products of two factors; its result has the other loops, in order.
struct Product {
    extents: Vec<i64>,
    /// Loops of each input.
    maps: Vec<Vec<usize>>,
    /// The inputs of each factor.
    factors: [BTreeSet<usize>; 2],
}

impl Product {
    fn of(op: Op) -> Option<Self> {
        let (parallel, maps) = (linalg::parallel_loops(op)?, linalg::indexing_maps(op)?);
        let (last, outer) = parallel.split_last()?;
        let inputs = linalg::num_inputs(op);
        if !op.is(ops::linalg::GENERIC) || op.num_results() != 1 || *last || !outer.iter().all(|p| *p) {
            return None;
        }
        if !maps.iter().all(|map| map.is_projected_permutation())
            || op.result(0).ty().element() != Type::f32(op.context())
        {
            return None;
        }
        let maps: Vec<Vec<usize>> = maps.iter().map(|m| m.dim_positions()).collect::<Option<_>>()?;
        let body = op.body()?;
        let factors = MultiplyAdd::of(body)?.factors.map(|f| bodies::arguments(body, f));
        let [Some(a), Some(b)] = factors else { return None };
        let in_order = maps[inputs].iter().copied().eq(0..outer.len());
        in_order.then_some(Self { extents: linalg::loop_extents(op)?, maps: maps[..inputs].to_vec(), factors: [a, b] })
    }
}

impl<'c> Attention<'c> {
    /// The attention whose values' product is in `last`.
    fn of(last: &Dispatch<'c>, dispatches: &[Dispatch<'c>], owners: &HashMap<Op<'c>, usize>) -> Option<Self> {
        let values = last.main();
        let inputs = 0..linalg::num_inputs(values);
        inputs.into_iter().find_map(|read| Self::with(read, last, dispatches, owners))
    }

    /// The attention whose weights are operand `read` of the values' product.
    fn with(
        read: usize,
        last: &Dispatch<'c>,
        dispatches: &[Dispatch<'c>],
        owners: &HashMap<Op<'c>, usize>,
    ) -> Option<Self> {
        let values = last.main();
        let epilogue = Some(last.root).filter(|root| *root != values);
        let owner = |value: Value<'c>| value.defining_op().and_then(|op| owners.get(&op)).map(|i| &dispatches[*i]);
        let weights = values.operand(read).defining_op()?;
        let softmax = owner(weights.result(0)).filter(|d| d.class() == KernelClass::Row && d.root == weights)?;
        let quotient = Quotient::of(body_of(weights)?)?;
        let (sum, powers) =
            (weights.operand(quotient.sum).defining_op()?, weights.operand(quotient.power).defining_op()?);
        let power = Power::of(body_of(powers)?)?;
        // A row without keys is NaN, which other quotients may not keep.
        if !(power.guarded || quotient.is_plain || quotient.drops_nan) {
            return None;
        }
        let most = powers.operand(power.most).defining_op()?;
        let (pointwise, scores) = Self::pointwise(powers.operand(power.score), owners)?;
        let first = owner(scores.result(0))?;
        let found = Self { scores, pointwise, most, powers, sum, weights, values, epilogue };
        let rows = Shape::between(scores, values, read)?.rows.len();
        let of_all = [first, softmax, last].into_iter().flat_map(|d| &d.ops).filter(|(_, role)| *role != Role::Init);
        let all: HashSet<Op> = of_all.map(|(op, _)| *op).collect();
        let ops = found.ops();
        let complete = ops.len() == all.len() && ops.iter().all(|op| all.contains(op) && op.block() == values.block());
        (complete && found.is_softmax(rows, quotient, power) && found.is_private() && found.starts_well())
            .then_some(found)
    }

    /// The pointwise ops between scores and a value, in order, and the op that computes the scores.
    fn pointwise(value: Value<'c>, owners: &HashMap<Op<'c>, usize>) -> Option<(Vec<Op<'c>>, Op<'c>)> {
        let op = value.defining_op().filter(|op| owners.contains_key(op) && op.num_results() == 1)?;
        if value.ty().element() != Type::f32(op.context()) {
            return None;
        }
        if Product::of(op).is_some() {
            return Some((vec![], op));
        }
        let maps = linalg::indexing_maps(op).filter(|_| is_pointwise(op))?;
        let mut read = (0..op.num_operands()).filter(|i| maps[*i].is_identity());
        let (mut before, scores) = read.find_map(|i| Self::pointwise(op.operand(i), owners))?;
        before.push(op);
        Some((before, scores))
    }

    /// All ops, in order.
    fn ops(&self) -> Vec<Op<'c>> {
        let mut ops = vec![self.scores];
        ops.extend(&self.pointwise);
        ops.extend([self.most, self.powers, self.sum, self.weights, self.values]);
        ops.extend(self.epilogue);
        ops
    }

    /// The last op that writes scores.
    fn last_scores(&self) -> Op<'c> {
        self.pointwise.last().copied().unwrap_or(self.scores)
    }

    /// Whether the ops between the products are a softmax over the loop after the rows.
    fn is_softmax(&self, rows: usize, quotient: Quotient, power: Power) -> bool {
        let scores = self.last_scores().result(0);
        let reduces = |op: Op<'c>, of: Value<'c>, names: &[&str]| {
            let combine = op.body().and_then(|b| b.terminator()).and_then(|end| end.operand(0).defining_op());
            let own = combine.zip(op.body()).is_some_and(|(c, body)| {
                let mut read: Vec<Value> = c.operands();
                read.sort_by_key(|v| v.as_block_arg().map(|(_, i)| i));
                names.contains(&c.name()) && read == body.args()
            });
            own && op.num_operands() == 2 && op.operand(0) == of && reads(op, 0, rows + 1) && reads(op, 1, rows)
        };
        let pointwise = |op: Op<'c>, full: usize, row: usize| {
            is_pointwise(op) && op.operands().len() <= 3 && reads(op, full, rows + 1) && reads(op, row, rows)
        };
        reduces(self.most, scores, &[ops::arith::MAXIMUMF, ops::arith::MAXNUMF])
            && reduces(self.sum, self.powers.result(0), &[ops::arith::ADDF])
            && self.powers.operand(power.score) == scores
            && pointwise(self.powers, power.score, power.most)
            && pointwise(self.weights, quotient.power, quotient.sum)
            && self.ops().iter().all(|op| op.num_results() == 1)
            && [self.most, self.powers, self.sum, self.weights]
                .iter()
                .all(|op| op.result(0).ty().element() == Type::f32(op.context()))
            && self.epilogue.is_none_or(is_epilogue)
    }

    /// Whether each intermediate is read by its own ops alone.
    fn is_private(&self) -> bool {
        let only = |op: Op<'c>, readers: &[Op<'c>]| {
            let uses = op.result(0).uses();
            uses.len() == readers.len() && uses.iter().all(|u| readers.contains(&u.op))
        };
        let scored = std::iter::once(self.scores).chain(self.pointwise.iter().copied()).collect::<Vec<_>>();
        scored.windows(2).all(|pair| only(pair[0], &pair[1..]))
            && only(self.last_scores(), &[self.most, self.powers])
            && only(self.most, &[self.powers])
            && only(self.powers, &[self.sum, self.weights])
            && only(self.sum, &[self.weights])
            && only(self.weights, &[self.values])
            && self.epilogue.is_none_or(|epilogue| only(self.values, &[epilogue]))
    }

    /// Whether sums begin at 0, and all reductions at a constant: a maximum that drops NaNs also at NaN.
    fn starts_well(&self) -> bool {
        let start = |op: Op<'c>| fill_of(op).and_then(|fill| bodies::constant(fill.operand(0)));
        start(self.scores) == Some(0.0)
            && start(self.sum) == Some(0.0)
            && start(self.values) == Some(0.0)
            && start(self.most).is_some_and(|most| !most.is_nan() || combines_by(self.most, ops::arith::MAXNUMF))
    }

    /// Whether a kernel of the target can hold and bind it.
    fn fits(&self, target: &TargetDescription) -> bool {
        let read = (0..linalg::num_inputs(self.values)).find(|i| self.values.operand(*i) == self.weights.result(0));
        let Some(shape) = read.and_then(|read| Shape::between(self.scores, self.values, read)) else { return false };
        match target {
            TargetDescription::Gpu(gpu) => self.fits_gpu(&shape, gpu),
            TargetDescription::Cpu(_) => shape.size <= MAX_SIZE && shape.task_rows().is_some(),
        }
    }

    fn fits_gpu(&self, shape: &Shape, gpu: &GpuDescription) -> bool {
        let known = |size: i64| size != DYNAMIC && size >= 1;
        let merged = match (shape.rows.len() + 1).saturating_sub(MAX_GRID_RANK) {
            several @ 2.. => &shape.rows[..several],
            _ => &[],
        };
        let most_keys = if gpu.is_cpu_adapter() { MOST_ATTENTION_KEYS } else { i64::MAX };
        // The result is bound too.
        let bound = self.read().len() + 1;
        known(shape.size)
            && known(shape.width)
            && shape.size.max(shape.width) <= MAX_SIZE
            && (shape.keys == DYNAMIC || (1..=most_keys).contains(&shape.keys))
            && shape.rows.iter().all(|extent| *extent != 0)
            && grid::may_merge(merged)
            && bound as u64 <= u64::from(gpu.limits.max_storage_buffers)
            && gpu.limits.max_workgroup_storage_bytes >= MOST_ATTENTION_BYTES
    }

    /// Weights that are 0 where they would be NaN test their sum: it is NaN, or 0 of no keys, wherever one of them is. (PyTorch
    /// exports attentions with masks so.) A kernel has the sum alone, and divides the products' sums, in which a NaN stays.
    fn test_sums(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let body = self.weights.body().expect("invariant: a generic has one");
        let quotient = Quotient::of(body).filter(|quotient| quotient.drops_nan);
        let select = body.terminator().and_then(|end| end.operand(0).defining_op());
        let Some((quotient, select)) = quotient.zip(select) else { return Ok(()) };
        rw.set_point(InsertionPoint::Before(select));
        let (cx, sum) = (rw.context(), body.arg(quotient.sum));
        let zero = OpSpec::new(ops::arith::CONSTANT, select.location()).results(&[sum.ty()]);
        let zero = rw.create(zero.attr("value", Attr::float(sum.ty(), 0.0)))?.result(0);
        let test = OpSpec::new(ops::arith::CMPF, select.location()).operands(&[sum, zero]);
        let test = test.results(&[Type::integer(cx, 1)]).attr("predicate", CmpFPredicate::Ule.to_attr(cx));
        let test = rw.create(test)?.result(0);
        rw.set_operand(select, 0, test);
        Ok(())
    }

    /// Has the pointwise ops and the powers overwrite the scores, where their type allows it.
    fn overwrite_scores(&mut self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let mut scores = self.scores;
        for op in self.pointwise.iter_mut().chain([&mut self.powers]) {
            let inputs = linalg::num_inputs(*op);
            let writes_only = op.body().is_some_and(|body| body.arg(inputs).is_unused());
            let same = |i: &usize| op.operand(*i) == scores.result(0) && scores.result(0).ty() == op.result(0).ty();
            if let Some(input) = (0..inputs).find(same).filter(|_| writes_only) {
                *op = fuse_form::chain_destination(*op, input, rw)?;
            }
            scores = *op;
        }
        Ok(())
    }

    /// Has the host check a number of keys that is known at run time only.
    fn check_keys(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let weights = self.weights.result(0);
        let Some(last) = weights.ty().shape().filter(|s| s.last() == Some(&DYNAMIC)).map(|s| s.len() - 1) else {
            return Ok(());
        };
        let (cx, loc) = (rw.context(), self.values.location());
        let maps = linalg::indexing_maps(self.scores).unwrap_or_default();
        let dim = |i: usize| maps[i].dim_positions()?.iter().position(|l| *l == last);
        let inputs = 0..linalg::num_inputs(self.scores);
        let found = inputs.into_iter().find_map(|i| Some((self.scores.operand(i), dim(i)?)));
        let (tensor, dim) = found.expect("invariant: the keys are a dimension of an input");
        rw.set_point(InsertionPoint::Before(self.values));
        let dim = rw.const_index(i64::try_from(dim).unwrap_or(0), loc);
        let most = rw.const_index(MOST_ATTENTION_KEYS, loc);
        let count =
            rw.create(OpSpec::new(ops::tensor::DIM, loc).operands(&[tensor, dim]).results(&[Type::index(cx)]))?;
        let fits = OpSpec::new(ops::arith::CMPI, loc)
            .operands(&[count.result(0), most])
            .results(&[Type::integer(cx, 1)])
            .attr("predicate", CmpIPredicate::Ule.to_attr(cx));
        let fits = rw.create(fits)?.result(0);
        let message = format!("attention on a software adapter takes at most {MOST_ATTENTION_KEYS} keys");
        rw.create(OpSpec::new(ops::cf::ASSERT, loc).operands(&[fits]).attr("msg", Attr::string(cx, &message)))?;
        Ok(())
    }

    /// The tensors that are read and not computed here.
    fn read(&self) -> HashSet<Value<'c>> {
        let ops = self.ops();
        let made = |value: &Value<'c>| value.defining_op().is_some_and(|def| ops.contains(&def));
        let inputs = ops.iter().flat_map(|op| op.operands().into_iter().take(linalg::num_inputs(*op)));
        inputs.filter(|v| v.ty().is_tensor() && !made(v)).collect()
    }

    /// Makes the ops one dispatch of this number.
    fn mark(&self, number: i64, rw: &mut Rewriter<'c>) {
        let cx = rw.context();
        let ops = self.ops();
        let roles = ops.iter().enumerate().flat_map(|(i, op)| {
            let own = match i {
                0 => Role::Scores,
                _ if i + 1 == ops.len() => Role::Root,
                _ => Role::Member,
            };
            fill_of(*op).map(|fill| (fill, Role::Init)).into_iter().chain([(*op, own)])
        });
        for (position, (op, role)) in (0i64..).zip(roles) {
            rw.set_attr(op, attributes::DISPATCH, Attr::i64(cx, number));
            rw.set_attr(op, attributes::ROLE, Attr::string(cx, role.as_str()));
            rw.set_attr(op, attributes::MEMBER, Attr::i64(cx, position));
        }
    }
}

/// Whether a reduction's result is that of an op of this name.
fn combines_by(op: Op, name: &str) -> bool {
    let end = op.body().and_then(|b| b.terminator());
    end.and_then(|end| end.operand(0).defining_op()).is_some_and(|combine| combine.is(name))
}

/// The fill that a reduction accumulates on.
fn fill_of(op: Op<'_>) -> Option<Op<'_>> {
    linalg::destination(op, 0).defining_op().filter(|def| def.is(ops::linalg::FILL))
}

fn body_of(op: Op<'_>) -> Option<monopour_ir::Block<'_>> {
    op.body().filter(|_| op.is(ops::linalg::GENERIC))
}

/// Whether an operand is read or written by the first `loops` loops, in order.
fn reads(op: Op, operand: usize, loops: usize) -> bool {
    let map = linalg::indexing_maps(op).and_then(|maps| maps.get(operand)?.dim_positions());
    map.is_some_and(|dims| dims.into_iter().eq(0..loops))
}

/// Whether an op may follow the values' product: it may write them in another order (`turned.rs`).
fn is_epilogue(op: Op) -> bool {
    let result = linalg::indexing_maps(op).and_then(|maps| maps.last().copied());
    computes(op) && result.is_some_and(|map| map.is_permutation()) && op.find_all(ops::linalg::INDEX).is_empty()
}

/// Whether all loops are parallel, the result is written in their order, and the body is arithmetic.
fn is_pointwise(op: Op) -> bool {
    let result = linalg::indexing_maps(op).and_then(|maps| maps.last().copied());
    computes(op) && result.is_some_and(|map| map.is_identity())
}

/// Whether all loops are parallel, and the body is arithmetic.
fn computes(op: Op) -> bool {
    let (Some(maps), Some(parallel)) = (linalg::indexing_maps(op), linalg::parallel_loops(op)) else { return false };
    let plain = |op: &Op| {
        matches!(op.dialect(), "arith" | "math") || matches!(op.name(), ops::linalg::INDEX | ops::linalg::YIELD)
    };
    let body = op.nested(WalkOrder::Pre);
    op.num_results() == 1
        && parallel.iter().all(|p| *p)
        && maps.iter().all(|m| m.is_projected_permutation())
        && body.iter().filter(|inner| **inner != op).all(plain)
}
