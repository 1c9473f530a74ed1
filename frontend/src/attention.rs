//! Joins the dispatches of an attention to one, for GPUs: no scores in memory.
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
//! sum, weights, the values' product, and at most one epilogue. All have the rows as their first loops.
//! Limits: other readers of an intermediate, results other than f32, heads larger than `MAX_SIZE`, and more tensors than a
//! kernel binds leave three dispatches.

use crate::dispatch::{self, Dispatch, Role};
use crate::linalg;
use monopour_contract::{KernelClass, attributes};
use monopour_ir::bodies::{self, MultiplyAdd, Power, Quotient};
use monopour_ir::{Attr, DYNAMIC, Module, Op, Rewriter, Type, Value, WalkOrder, ops};
use monopour_program::GpuDescription;
use std::collections::{BTreeSet, HashMap, HashSet};
use tracing::trace;

/// Largest head, of keys and of values: an invocation holds its part of a row in registers.
const MAX_SIZE: i64 = 256;
/// Most keys: a loop over blocks of them has an iteration each 32.
const MAX_KEYS: i64 = 1 << 18;

/// Joins every attention of `module`.
pub fn run(module: &Module, gpu: &GpuDescription) {
    let mut rw = Rewriter::new(module.context());
    let dispatches = dispatch::collect(module);
    let owners: HashMap<Op, usize> =
        dispatches.iter().enumerate().flat_map(|(i, d)| d.ops.iter().map(move |(op, _)| (*op, i))).collect();
    for last in &dispatches {
        if let Some(found) = Attention::of(last, &dispatches, &owners).filter(|a| a.fits(gpu)) {
            trace!(target: "fuse", "{}: attention, one dispatch {}", last.root.location(), last.number);
            found.mark(last.number, &mut rw);
        }
    }
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
        let epilogue = Some(last.root).filter(|root| *root != values);
        let owner = |value: Value<'c>| value.defining_op().and_then(|op| owners.get(&op)).map(|i| &dispatches[*i]);
        let is_softmax = |value: &Value<'c>| {
            let found = owner(*value).filter(|d| d.class() == KernelClass::Row);
            found.is_some_and(|d| value.defining_op() == Some(d.root))
        };
        let inputs = &values.operands()[..linalg::num_inputs(values)];
        let read = inputs.iter().position(is_softmax)?;
        let softmax = owner(inputs[read])?;
        let weights = softmax.root;
        let quotient = Quotient::of(body_of(weights)?)?;
        let (sum, powers) =
            (weights.operand(quotient.sum).defining_op()?, weights.operand(quotient.power).defining_op()?);
        let power = Power::of(body_of(powers)?)?;
        // A row without keys is NaN, which other quotients may not keep.
        if !power.guarded && !quotient.is_plain {
            return None;
        }
        let most = powers.operand(power.most).defining_op()?;
        let (pointwise, scores) = Self::pointwise(powers.operand(power.score), owners)?;
        let first = owner(scores.result(0))?;
        let found = Self { scores, pointwise, most, powers, sum, weights, values, epilogue };
        let rows = Shape::between(scores, values, read)?.rows.len();
        let whole = |op: Op<'c>| {
            owners.get(&op).is_some_and(|i| [first, softmax, last].iter().any(|d| d.number == dispatches[*i].number))
        };
        let joined: HashSet<Op> = [first, softmax, last]
            .iter()
            .flat_map(|d| &d.ops)
            .filter(|(_, role)| *role != Role::Init)
            .map(|(op, _)| *op)
            .collect();
        let ops = found.ops();
        let complete = ops.len() == joined.len() && ops.iter().all(|op| joined.contains(op) && whole(*op));
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
            && self.epilogue.is_none_or(|op| is_pointwise(op) && op.find_all(ops::linalg::INDEX).is_empty())
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

    /// Whether sums begin at 0, and all reductions at a constant.
    fn starts_well(&self) -> bool {
        let start = |op: Op<'c>| fill_of(op).and_then(|fill| bodies::constant(fill.operand(0)));
        start(self.scores) == Some(0.0)
            && start(self.sum) == Some(0.0)
            && start(self.values) == Some(0.0)
            && start(self.most).is_some()
    }

    /// Whether a kernel of the device can hold and bind it.
    fn fits(&self, gpu: &GpuDescription) -> bool {
        let read = (0..linalg::num_inputs(self.values)).find(|i| self.values.operand(*i) == self.weights.result(0));
        let Some(shape) = read.and_then(|read| Shape::between(self.scores, self.values, read)) else { return false };
        let known = |size: i64| size != DYNAMIC && size >= 1;
        let ops = self.ops();
        let inside =
            |value: &Value<'c>| value.defining_op().is_some_and(|def| ops.contains(&def) || def.is(ops::linalg::FILL));
        let bound: HashSet<Value> =
            ops.iter().flat_map(|op| op.operands()).filter(|v| v.ty().is_tensor() && !inside(v)).collect();
        known(shape.size)
            && known(shape.width)
            && shape.size.max(shape.width) <= MAX_SIZE
            && (1..=MAX_KEYS).contains(&shape.keys)
            && shape.rows.iter().all(|extent| known(*extent))
            && bound.len() as u64 <= u64::from(gpu.limits.max_storage_buffers)
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

/// Whether all loops are parallel, the result is written in their order, and the body is arithmetic.
fn is_pointwise(op: Op) -> bool {
    let (Some(maps), Some(parallel)) = (linalg::indexing_maps(op), linalg::parallel_loops(op)) else { return false };
    let plain = |op: &Op| {
        matches!(op.dialect(), "arith" | "math") || matches!(op.name(), ops::linalg::INDEX | ops::linalg::YIELD)
    };
    let body = op.nested(WalkOrder::Pre);
    op.num_results() == 1
        && parallel.iter().all(|p| *p)
        && maps.last().is_some_and(|m| m.is_identity())
        && maps.iter().all(|m| m.is_projected_permutation())
        && body.iter().filter(|inner| **inner != op).all(plain)
}
