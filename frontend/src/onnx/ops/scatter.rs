//! Elements written to places that data decides, as gathers: every element of the result looks for its update.
//!
//! ```text
//! plain      the last update of a place wins: its number is a maximum over the updates, or found in their order
//! reduction  the updates of a place are combined, then with the operand's element
//! ```

use super::cumulative::lower_bound;
use super::indexing::as_index;
use super::movement::in_range;
use super::reductions::{Kind, combine, first};
use super::scalars::{both, clamped, is_inside};
use super::sorting::{Order, order_along};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured, structured};
use monopour_ir::{Type, Value, ops};

/// Beyond this number of updates they are sorted instead of compared with every place.
const MAX_COMPARED: i64 = 2048;

pub(super) fn register(registry: &mut Registry) {
    registry.op("Scatter", 9, scatter_elements, "");
    registry.op("ScatterElements", 11, scatter_elements, "");
    registry.op("ScatterND", 11, scatter_nd, "index tuples of unknown length");
    registry.op("TensorScatter", 24, tensor_scatter, "");
}

/// How updates of one place are combined; `None`: the last one wins.
fn reduction(cx: &NodeContext) -> Result<Option<Kind>, Failure> {
    Ok(match cx.string("reduction", "none")?.as_str() {
        "none" => None,
        "add" => Some(Kind::Sum),
        "mul" => Some(Kind::Product),
        "max" => Some(Kind::Max),
        "min" => Some(Kind::Min),
        other => return Err(format!("reduction '{other}' does not exist").into()),
    })
}

fn scatter_elements<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let [x, indices, updates] = [cx.operand(0)?, cx.operand(1)?, cx.operand(2)?];
    let (rank, axis) = (x.rank(), cx.axis_attribute(0, x.rank())?);
    if indices.rank() != rank || updates.rank() != rank || x.dtype != updates.dtype {
        return Err("its operands are of different ranks or types".into());
    }
    if indices.shape.iter().any(|d| d.is(0)) {
        return Ok(vec![x.clone()]);
    }
    // Along the axis as long as the operand, else as wide as the updates.
    let mut shape = indices.shape.clone();
    shape[axis] = x.shape[axis].clone();
    let along = |at: usize| (0..rank).map(|d| Expr::Loop(if d == axis { at } else { d })).collect::<Vec<_>>();
    let mut loops = vec![LoopKind::Parallel; rank];
    loops.push(LoopKind::Reduction);
    let (at, size) = (b.value(indices)?, b.index(&x.shape[axis])?);
    let kind = reduction(cx)?;
    let given = b.value(updates)?;
    let (dtype, start, mut inputs) = match kind {
        None => {
            let element = b.element(DataType::I32)?;
            (DataType::I32, b.int(element, -1), vec![])
        }
        Some(kind) => (x.dtype, first(b, kind, x.dtype)?, vec![(given, along(rank))]),
    };
    inputs.push((at, along(rank)));
    let out = b.filled_with(dtype, &shape, start)?;
    let op = Structured { loops, inputs, outputs: vec![(out, structured::identity(rank))] };
    let found = b.structured(&op, |b, e| {
        let (index, so_far) = (e[e.len() - 2], e[e.len() - 1]);
        let (place, own) = (in_range(b, index, size)?, b.loop_index(axis)?);
        let is_it = b.compare(CmpI::Eq, place, own)?;
        let Some(kind) = kind else {
            let number = b.loop_index(rank)?;
            let number = b.op(ops::arith::INDEX_CAST, &[number], so_far.ty())?;
            let number = b.select(is_it, number, so_far)?;
            return Ok(vec![b.binary(ops::arith::MAXSI, so_far, number)?]);
        };
        let update = b.select(is_it, e[0], start)?;
        Ok(vec![combine(b, kind, x.dtype, so_far, update)?])
    })?[0];
    let found = Found { value: found, shape, axis, kind };
    Ok(vec![found.written(b, x, given)?])
}

/// What is known of each place after a look at all updates: the number of its last one, or all of them combined.
struct Found<'c> {
    value: Value<'c>,
    /// Its shape: smaller than the operand where the updates are.
    shape: Vec<Dim>,
    axis: usize,
    kind: Option<Kind>,
}

impl<'c> Found<'c> {
    /// The operand with the updates.
    fn written(&self, b: &mut Builder<'c>, x: &Operand<'c>, given: Value<'c>) -> Result<Operand<'c>, Failure> {
        let source = b.value(x)?;
        let sizes: Vec<Value> = self.shape.iter().map(|d| b.index(d)).collect::<Result<_, _>>()?;
        let is_smaller = |d: &usize| *d != self.axis && x.shape[*d] != self.shape[*d];
        b.computed(x.dtype, &x.shape, |b, loops| {
            let old = b.read(source, loops)?;
            let (mut place, mut inside) = (loops.to_vec(), None);
            for d in (0..loops.len()).filter(is_smaller) {
                let (one, fits) = (b.int(sizes[d].ty(), 1), b.compare(CmpI::Slt, loops[d], sizes[d])?);
                let last = b.binary(ops::arith::SUBI, sizes[d], one)?;
                place[d] = b.binary(ops::arith::MINSI, loops[d], last)?;
                inside = Some(match inside {
                    Some(others) => b.binary(ops::arith::ANDI, others, fits)?,
                    None => fits,
                });
            }
            let found = b.read(self.value, &place)?;
            let new = match self.kind {
                Some(kind) => combine(b, kind, x.dtype, old, found)?,
                None => {
                    place[self.axis] = update_number(b, found)?;
                    let update = b.read(given, &place)?;
                    chosen(b, found, update, old)?
                }
            };
            inside.map_or(Ok(new), |inside| b.select(inside, new, old))
        })
    }
}

/// The number of an update as an index; 0 where there is none.
fn update_number<'c>(b: &mut Builder<'c>, found: Value<'c>) -> Result<Value<'c>, Failure> {
    let zero = b.int(found.ty(), 0);
    let number = b.binary(ops::arith::MAXSI, found, zero)?;
    as_index(b, number)
}

/// The update where there is one.
fn chosen<'c>(b: &mut Builder<'c>, found: Value<'c>, update: Value<'c>, old: Value<'c>) -> Result<Value<'c>, Failure> {
    let zero = b.int(found.ty(), 0);
    let is_some = b.compare(CmpI::Sge, found, zero)?;
    b.select(is_some, update, old)
}

fn scatter_nd<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let [x, indices, updates] = [cx.operand(0)?, cx.operand(1)?, cx.operand(2)?];
    let (last, outer) = indices.shape.split_last().ok_or("its indices have no dimension")?;
    let depth = last.as_constant().ok_or("the length of its index tuples is unknown")? as usize;
    if depth > x.rank() || x.dtype != updates.dtype {
        return Err(format!("{depth} indices do not fit an operand of rank {}", x.rank()).into());
    }
    let (places, width, count) =
        (Dim::product(&x.shape[..depth]), Dim::product(&x.shape[depth..]), Dim::product(outer));
    if updates.shape.iter().chain(outer).any(|d| d.is(0)) {
        return Ok(vec![x.clone()]);
    }
    let rows = b.reshaped(x, &[places.clone(), width.clone()])?;
    let given = b.reshaped(updates, &[count.clone(), width.clone()])?;
    let tuples = b.reshaped(indices, &[count.clone(), last.clone()])?;
    let flat = flat_places(b, &tuples, &x.shape[..depth], &count)?;
    let rows = match reduction(cx)? {
        None => last_updates(b, (&rows, &given), &flat)?,
        Some(kind) => combined_updates(b, (&rows, &given), &flat, kind)?,
    };
    Ok(vec![b.reshaped(&rows, &x.shape)?])
}

/// The row-major place of each index tuple, as i32; -1 of one with an index outside.
fn flat_places<'c>(
    b: &mut Builder<'c>,
    tuples: &Operand<'c>,
    shape: &[Dim],
    count: &Dim,
) -> Result<Operand<'c>, Failure> {
    let source = b.value(tuples)?;
    let sizes: Vec<Value> = shape.iter().map(|d| b.index(d)).collect::<Result<_, _>>()?;
    b.computed(DataType::I32, std::slice::from_ref(count), |b, at| {
        let (mut flat, mut is_place) = (b.int(at[0].ty(), 0), b.int(Type::integer(b.context(), 1), 1));
        for (k, size) in sizes.iter().enumerate() {
            let k = b.int(size.ty(), k as i64);
            let index = b.read(source, &[at[0], k])?;
            let index = in_range(b, index, *size)?;
            let inside = is_inside(b, index, *size)?;
            is_place = both(b, is_place, inside)?;
            let scaled = b.binary(ops::arith::MULI, flat, *size)?;
            flat = b.binary(ops::arith::ADDI, scaled, index)?;
        }
        let none = b.int(flat.ty(), -1);
        let flat = b.select(is_place, flat, none)?;
        b.op(ops::arith::INDEX_CAST, &[flat], Type::integer(b.context(), 32))
    })
}

/// Rows with the last update of each, whose places are i32; a place that is no row is dropped.
pub(super) fn last_updates<'c>(
    b: &mut Builder<'c>,
    (rows, given): (&Operand<'c>, &Operand<'c>),
    flat: &Operand<'c>,
) -> Result<Operand<'c>, Failure> {
    let many = flat.shape[0].as_constant().is_some_and(|n| n > MAX_COMPARED);
    let winners =
        if many { sorted_winners(b, flat, &rows.shape[0])? } else { compared_winners(b, flat, &rows.shape[0])? };
    let (winner_of, updates, source) = (b.value(&winners)?, b.value(given)?, b.value(rows)?);
    if given.shape[0].is(0) {
        return Ok(rows.clone());
    }
    b.computed(rows.dtype, &rows.shape, |b, at| {
        let (found, old) = (b.read(winner_of, &[at[0]])?, b.read(source, at)?);
        let number = update_number(b, found)?;
        let update = b.read(updates, &[number, at[1]])?;
        chosen(b, found, update, old)
    })
}

/// For each place the number of its last update, or -1: the maximum over all.
fn compared_winners<'c>(b: &mut Builder<'c>, flat: &Operand<'c>, places: &Dim) -> Result<Operand<'c>, Failure> {
    let (source, out) = (b.value(flat)?, b.filled(DataType::I32, std::slice::from_ref(places), -1.0)?);
    let op = Structured {
        loops: vec![LoopKind::Parallel, LoopKind::Reduction],
        inputs: vec![(source, vec![Expr::Loop(1)])],
        outputs: vec![(out, vec![Expr::Loop(0)])],
    };
    let value = b.structured(&op, |b, e| {
        let (own, number) = (b.loop_index(0)?, b.loop_index(1)?);
        let own = b.op(ops::arith::INDEX_CAST, &[own], e[0].ty())?;
        let number = b.op(ops::arith::INDEX_CAST, &[number], e[0].ty())?;
        let is_it = b.compare(CmpI::Eq, e[0], own)?;
        let number = b.select(is_it, number, e[1])?;
        Ok(vec![b.binary(ops::arith::MAXSI, e[1], number)?])
    })?[0];
    Ok(Operand::value(DataType::I32, vec![places.clone()], value))
}

/// The same by the order of the updates.
fn sorted_winners<'c>(b: &mut Builder<'c>, flat: &Operand<'c>, places: &Dim) -> Result<Operand<'c>, Failure> {
    let (n, one) = (flat.shape[0].clone(), Dim::constant(1));
    let apart = b.reshaped(flat, &[one.clone(), n.clone(), one])?;
    let sorted = order_along(b, &apart, Order { dtype: DataType::I32, descending: false }, &n)?;
    let sorted = b.reshaped(&sorted, std::slice::from_ref(&n))?;
    let (order, source) = (b.value(&sorted)?, b.value(flat)?);
    b.computed(DataType::I32, std::slice::from_ref(places), |b, at| {
        let (zero, one) = (b.int(at[0].ty(), 0), b.int(at[0].ty(), 1));
        let int = Type::integer(b.context(), 32);
        let own = b.op(ops::arith::INDEX_CAST, &[at[0]], int)?;
        // Behind the last update of this place.
        let end = lower_bound(b, &n, |b, place| {
            let number = b.read(order, &[place])?;
            let number = as_index(b, number)?;
            let place = b.read(source, &[number])?;
            b.compare(CmpI::Sle, place, own)
        })?;
        let last = b.binary(ops::arith::SUBI, end, one)?;
        let last = b.binary(ops::arith::MAXSI, last, zero)?;
        let number = b.read(order, &[last])?;
        let index = as_index(b, number)?;
        let place = b.read(source, &[index])?;
        let (is_it, none) = (b.compare(CmpI::Eq, place, own)?, b.int(int, -1));
        b.select(is_it, number, none)
    })
}

/// Rows combined with all their updates.
fn combined_updates<'c>(
    b: &mut Builder<'c>,
    (rows, given): (&Operand<'c>, &Operand<'c>),
    flat: &Operand<'c>,
    kind: Kind,
) -> Result<Operand<'c>, Failure> {
    let start = first(b, kind, rows.dtype)?;
    let (at, updates, out) = (b.value(flat)?, b.value(given)?, b.filled_with(rows.dtype, &rows.shape, start)?);
    let op = Structured {
        loops: vec![LoopKind::Parallel, LoopKind::Parallel, LoopKind::Reduction],
        inputs: vec![(at, vec![Expr::Loop(2)]), (updates, [2, 1].map(Expr::Loop).to_vec())],
        outputs: vec![(out, structured::identity(2))],
    };
    let value = b.structured(&op, |b, e| {
        let own = b.loop_index(0)?;
        let own = b.op(ops::arith::INDEX_CAST, &[own], e[0].ty())?;
        let is_it = b.compare(CmpI::Eq, e[0], own)?;
        let update = b.select(is_it, e[1], start)?;
        Ok(vec![combine(b, kind, rows.dtype, e[2], update)?])
    })?[0];
    let found = Operand::value(rows.dtype, rows.shape.clone(), value);
    b.elementwise(&[rows, &found], rows.dtype, |b, e| combine(b, kind, rows.dtype, e[0], e[1]))
}

/// A sequence written into a cache, from a position of each batch on.
fn tensor_scatter<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, updates) = (cx.operand(0)?, cx.operand(1)?);
    let axis = cx.axis_attribute(-2, x.rank())?;
    let circular = match cx.string("mode", "linear")?.as_str() {
        "linear" => false,
        "circular" => true,
        other => return Err(format!("mode '{other}' does not exist").into()),
    };
    if axis == 0 || updates.rank() != x.rank() || updates.dtype != x.dtype {
        return Err("its operands are of different ranks or types, or its axis is that of the batches".into());
    }
    if updates.shape.iter().any(|d| d.is(0)) {
        return Ok(vec![x.clone()]);
    }
    let (source, given) = (b.value(x)?, b.value(updates)?);
    let positions = cx.optional(2).map(|o| b.value(o)).transpose()?;
    let (size, count) = (b.index(&x.shape[axis])?, b.index(&updates.shape[axis])?);
    let result = b.computed(x.dtype, &x.shape, |b, at| {
        let zero = b.int(size.ty(), 0);
        let first = match positions {
            Some(positions) => {
                let first = b.read(positions, &[at[0]])?;
                as_index(b, first)?
            }
            None => zero,
        };
        let mut rest = b.binary(ops::arith::SUBI, at[axis], first)?;
        if circular {
            rest = b.binary(ops::arith::REMSI, rest, size)?;
            let around = b.binary(ops::arith::ADDI, rest, size)?;
            rest = b.where_less([rest, zero], [around, rest])?;
        }
        let (from, to) = (b.compare(CmpI::Sge, rest, zero)?, b.compare(CmpI::Slt, rest, count)?);
        let inside = b.binary(ops::arith::ANDI, from, to)?;
        let mut place = at.to_vec();
        place[axis] = clamped(b, rest, count)?;
        let (new, old) = (b.read(given, &place)?, b.read(source, at)?);
        b.select(inside, new, old)
    })?;
    Ok(vec![result])
}
