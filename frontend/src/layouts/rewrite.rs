//! Gives images their layouts: types, maps, slices and filters follow.

use super::copies::{self, behind};
use super::groups::{Decided, channel_loop};
use super::{Layout, parts};
use crate::collapse_lines::{collapsed, dynamic_sizes, expanded};
use crate::import::WeightTable;
use crate::narrow::constants::{constant, permuted};
use crate::{linalg, products};
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::linalg::{IteratorType, iterator_types, iterator_types_attr};
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, Context, Diagnostics, InsertionPoint, Location, Op, OpSpec, Rewriter,
    Type, Value,
};
use monopour_program::DType;
use std::collections::HashMap;

/// Fewest output channels that code generation takes for the lanes of a vector.
const FEWEST_LANES: i64 = 4;

/// Rewrites what was decided.
pub(super) fn run<'c>(
    decided: &Decided<'c>,
    weights: &mut WeightTable,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    let layouts: HashMap<Value, Layout> = decided.layouts.iter().copied().collect();
    let mut rewrite = Rewrite { decided, layouts, weights, rw, filters: HashMap::new() };
    rewrite.borders()?;
    let ops = decided.ops.iter().filter(|op| op.is(ops::linalg::GENERIC));
    ops.copied().try_for_each(|op| rewrite.generic(op))?;
    rewrite.retype();
    Ok(())
}

struct Rewrite<'c, 'a> {
    decided: &'a Decided<'c>,
    layouts: HashMap<Value<'c>, Layout>,
    weights: &'a mut WeightTable,
    rw: &'a mut Rewriter<'c>,
    /// Constants in another layout, by the one they are of, their new shape and order.
    filters: HashMap<(Attr<'c>, Vec<i64>, Vec<usize>), Attr<'c>>,
}

/// A loop after the rewrite: one of before, or the blocks of one, or the channels of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Loop {
    old: usize,
    part: Part,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Whole,
    Blocks,
    Inner,
}

impl<'c> Rewrite<'c, '_> {
    /// Copies where one side of a value keeps the plain layout.
    fn borders(&mut self) -> Result<(), Diagnostics> {
        for (value, layout) in &self.decided.layouts {
            let uses = value.uses();
            let (plain, following): (Vec<_>, Vec<_>) =
                uses.into_iter().partition(|u| self.decided.plain_uses.contains(&(u.op, u.index)));
            if self.decided.plain_results.contains(value) {
                if !following.is_empty() {
                    let copy = self.copy_of(*value, *layout, true)?;
                    following.into_iter().for_each(|u| self.rw.set_operand(u.op, u.index, copy));
                    self.layouts.insert(copy, *layout);
                }
                self.layouts.remove(value);
            } else if !plain.is_empty() {
                let copy = self.copy_of(*value, *layout, false)?;
                if plain.iter().any(|u| reads_windows(u.op)) {
                    self.keep(copy);
                }
                plain.into_iter().for_each(|u| self.rw.set_operand(u.op, u.index, copy));
            }
        }
        let mut copies: HashMap<Value, Value> = HashMap::new();
        for (op, index, layout) in &self.decided.copied_uses {
            let plain = op.operand(*index);
            let copy = match copies.get(&plain) {
                Some(copy) => *copy,
                None => self.copied(plain, *layout)?,
            };
            copies.insert(plain, copy);
            self.layouts.insert(copy, *layout);
            self.rw.set_operand(*op, *index, copy);
        }
        Ok(())
    }

    /// A copy for convolutions, which fusion would make a part of them: they would read a page for each channel, or take each group of
    /// four bytes apart.
    fn copied(&mut self, plain: Value<'c>, layout: Layout) -> Result<Value<'c>, Diagnostics> {
        let copy = self.copy_of(plain, layout, true)?;
        self.keep(copy);
        Ok(copy)
    }

    /// Keeps fusion from making a copy a part of what reads it.
    fn keep(&mut self, mut copy: Value<'c>) {
        let reshapes = |op: &Op| op.is(ops::tensor::COLLAPSE_SHAPE) || op.is(ops::tensor::EXPAND_SHAPE);
        while let Some(op) = copy.defining_op().filter(reshapes) {
            copy = op.operand(0);
        }
        if let Some(op) = copy.defining_op().filter(|op| linalg::is_data_movement(*op)) {
            self.rw.set_attr(op, attributes::UNFOLDED, Attr::unit(op.context()));
        }
    }

    /// A copy of a value in its layout, which it has not yet (`into`), or out of it.
    fn copy_of(&mut self, value: Value<'c>, layout: Layout, into: bool) -> Result<Value<'c>, Diagnostics> {
        let cx = self.rw.context();
        behind(value, self.rw);
        let (plain, rank) = (value.ty().shape().unwrap_or_default(), value.ty().shape().map_or(0, |s| s.len()));
        if parts(&plain).1[1..] == [1, 1] {
            let stored = layout.shape(&plain);
            return if into { self.reshaped(value, &plain, &stored) } else { self.reshaped(value, &stored, &plain) };
        }
        // The plain image with its channels in blocks is a reshape of it.
        let front = rank - 3;
        let (open, inside) = match layout {
            Layout::Last => (plain.clone(), vec![front + 1, front + 2, front]),
            Layout::Blocks(size) => {
                let (_, [channels, height, width]) = parts(&plain);
                let open = plain[..front].iter().copied().chain([channels / size, size, height, width]).collect();
                (open, vec![front, front + 2, front + 3, front + 1])
            }
        };
        let inner: Vec<usize> = (0..front).chain(inside).collect();
        let maps = [AffineMap::identity(cx, open.len()), AffineMap::select(cx, open.len(), &inner)];
        let source = if into { self.opened(value, &open, front)? } else { value };
        let shape = if into { layout.shape(&plain) } else { open.clone() };
        let maps = if into { maps } else { [maps[1], maps[0]] };
        let copy = copies::copy(source, &shape, &maps, value, self.rw)?;
        if into { Ok(copy) } else { self.closed(copy, value.ty(), front) }
    }

    /// An image of one pixel with its dimensions in another order: its channels lie as they did.
    fn reshaped(&mut self, value: Value<'c>, from: &[i64], to: &[i64]) -> Result<Value<'c>, Diagnostics> {
        let (cx, element) = (self.rw.context(), value.ty().element());
        let loc = value.defining_op().map_or(Location::unknown(cx), Op::location);
        let front = value.ty().shape().map_or(0, |plain| plain.len() - 3);
        let groups = |rank: usize| linalg::groups_around(cx, &(0..=front).collect::<Vec<_>>(), rank);
        let flat: Vec<i64> = from[..front].iter().copied().chain([from[front..].iter().product()]).collect();
        let sizes = dynamic_sizes(value, self.rw)?;
        let collapse = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, loc).operands(&[value]);
        let flat = self.rw.create(
            collapse.results(&[Type::tensor(&flat, element, None)]).attr("reassociation", groups(from.len())),
        )?;
        let expand = OpSpec::new(ops::tensor::EXPAND_SHAPE, loc).operands(&[flat.result(0)]).operands(&sizes);
        let expand = expand.results(&[Type::tensor(to, element, None)]).attr("reassociation", groups(to.len()));
        Ok(self.rw.create(expand.attr("static_output_shape", Attr::dense_i64(cx, to)))?.result(0))
    }

    /// A value with one dimension as two.
    fn opened(&mut self, value: Value<'c>, shape: &[i64], at: usize) -> Result<Value<'c>, Diagnostics> {
        let ty = Type::tensor(shape, value.ty().element(), None);
        if ty == value.ty() {
            return Ok(value);
        }
        expanded(value, ty, at, self.rw)
    }

    /// A value with two dimensions as one.
    fn closed(&mut self, value: Value<'c>, ty: Type<'c>, at: usize) -> Result<Value<'c>, Diagnostics> {
        if ty == value.ty() { Ok(value) } else { collapsed(value, at, self.rw) }
    }

    fn generic(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let maps = linalg::indexing_maps(op).expect("invariant: a generic has maps");
        let inputs = linalg::num_inputs(op);
        let layout = |i: usize| self.layouts.get(&op.operand(i)).copied();
        let layouts: Vec<Option<Layout>> = (0..op.num_operands()).map(layout).collect();
        let mut channels: HashMap<usize, Layout> = HashMap::new();
        for (map, layout) in maps.iter().zip(&layouts) {
            channels.extend(channel_loop(*map).zip(*layout));
        }
        if channels.is_empty() {
            return Ok(());
        }
        let kinds = iterator_types(op).unwrap_or_default();
        let loops = new_loops(&maps, &kinds, &channels, inputs);
        let context = Renaming { cx: op.context(), loops: &loops, old: maps[0].num_dims() };
        let mut new_maps = vec![];
        for (i, map) in maps.iter().enumerate() {
            let exprs = context.exprs(*map);
            let exprs = match layouts[i] {
                Some(_) => moved(&exprs),
                None => self.other(op, i, *map, &channels, &kinds, exprs)?,
            };
            let flat: Vec<AffineExpr> = exprs.into_iter().flatten().collect();
            new_maps.push(AffineMap::of(op.context(), loops.len(), &flat).to_attr());
        }
        let new_kinds: Vec<IteratorType> = loops.iter().map(|l| kinds[l.old]).collect();
        self.rw.set_attr(op, "indexing_maps", Attr::array(op.context(), &new_maps));
        self.rw.set_attr(op, "iterator_types", iterator_types_attr(op.context(), &new_kinds));
        for r in 0..op.num_results() {
            let (result, init) = (op.result(r), op.operand(inputs + r));
            if layouts[inputs + r].is_none() && result.ty() != init.ty() {
                self.close_result(result, init.ty(), &maps[inputs + r], &channels)?;
            }
        }
        Ok(())
    }

    /// Gives an operand that is no image of another layout a dimension for each loop: constants in the order in which they
    /// are read, others as a reshape.
    fn other(
        &mut self,
        op: Op<'c>,
        index: usize,
        map: AffineMap<'c>,
        channels: &HashMap<usize, Layout>,
        kinds: &[IteratorType],
        exprs: Vec<Vec<AffineExpr<'c>>>,
    ) -> Result<Vec<Vec<AffineExpr<'c>>>, Diagnostics> {
        let value = op.operand(index);
        let Some(shape) = value.ty().shape().filter(|_| value.ty().is_tensor()) else { return Ok(exprs) };
        let size = |expr: &AffineExpr<'c>| match expr.kind() {
            AffineExprKind::Dim(d) => channels.get(&d).map(|layout| (d, *layout)),
            _ => None,
        };
        let parts: Vec<Option<(usize, Layout)>> = map.results().iter().map(size).collect();
        let may_sum_in_lanes = self.decided.on_cpu && products::convolution_loops(op).is_some();
        if let (Some((stored, attr)), Some(dims)) = (constant(value), map.dim_positions()) {
            // (new size, class, expression) of each new dimension: blocks, others, channels that are summed, channels.
            // Few of these fill no vector: vectors are then of what is summed.
            let mut new: Vec<(i64, u8, AffineExpr<'c>)> = vec![];
            for (d, extent) in shape.iter().enumerate() {
                let few = *extent < FEWEST_LANES && may_sum_in_lanes;
                let last = if kinds[dims[d]] == IteratorType::Reduction { 2 } else { 3 - 2 * u8::from(few) };
                match parts[d] {
                    Some((_, Layout::Blocks(size))) => {
                        new.extend([(extent / size, 0, exprs[d][0]), (size, last, exprs[d][1])]);
                    }
                    Some((_, Layout::Last)) => new.push((*extent, last, exprs[d][0])),
                    None => new.push((*extent, 1, exprs[d][0])),
                }
            }
            let mut order: Vec<usize> = (0..new.len()).collect();
            order.sort_by_key(|d| new[*d].1);
            let open: Vec<i64> = new.iter().map(|(size, ..)| *size).collect();
            if let Some(laid_out) = self.constant_in_order(attr, &open, &order) {
                if laid_out != attr {
                    self.rw.set_point(InsertionPoint::Before(stored));
                    let spec = OpSpec::new(ops::arith::CONSTANT, stored.location()).results(&[laid_out.value_type()]);
                    let made = self.rw.create(spec.attr("value", laid_out))?.result(0);
                    self.rw.set_operand(op, index, made);
                }
                return Ok(order.iter().map(|d| vec![new[*d].2]).collect());
            }
        }
        let mut value = value;
        let mut at = 0;
        let mut shape = shape;
        for part in parts {
            if let Some((_, Layout::Blocks(size))) = part {
                shape.splice(at..=at, [shape[at] / size, size]);
                self.rw.set_point(InsertionPoint::Before(op));
                value = self.opened(value, &shape, at)?;
                at += 1;
            }
            at += 1;
        }
        self.rw.set_operand(op, index, value);
        Ok(exprs)
    }

    /// A constant's elements under the shape `open`, its dimensions in another order.
    fn constant_in_order(&mut self, attr: Attr<'c>, open: &[i64], order: &[usize]) -> Option<Attr<'c>> {
        let ty = attr.value_type();
        let shape: Vec<i64> = order.iter().map(|d| open[*d]).collect();
        if order.is_sorted() && ty.shape()? == shape {
            return Some(attr);
        }
        let key = (attr, open.to_vec(), order.to_vec());
        if let Some(known) = self.filters.get(&key) {
            return Some(*known);
        }
        let dtype = DType::parse(&ty.element().to_string())?;
        let size = usize::try_from(ty.element().element_size_bytes()?).ok()?;
        let bytes = permuted(&self.weights.bytes_of(attr)?, open, order, size);
        let made =
            self.weights.derive(attr, "channels_last", dtype, Type::tensor(&shape, ty.element(), None), bytes)?;
        self.filters.insert(key, made);
        Some(made)
    }

    /// A result whose channels are in blocks, but that is no image: its readers get it as it was.
    fn close_result(
        &mut self,
        result: Value<'c>,
        open: Type<'c>,
        map: &AffineMap<'c>,
        channels: &HashMap<usize, Layout>,
    ) -> Result<(), Diagnostics> {
        let (op, uses) = (result.defining_op().expect("invariant: a result"), result.uses());
        self.rw.set_type(result, open);
        self.rw.set_point(InsertionPoint::After(op));
        let mut value = result;
        for (d, expr) in map.results().iter().enumerate() {
            let blocks =
                matches!(expr.kind(), AffineExprKind::Dim(l) if matches!(channels.get(&l), Some(Layout::Blocks(_))));
            if blocks {
                value = collapsed(value, d, self.rw)?;
            }
        }
        uses.into_iter().for_each(|u| self.rw.set_operand(u.op, u.index, value));
        Ok(())
    }

    /// Types of the values, and the slices of them.
    fn retype(&mut self) {
        let layouts = self.decided.layouts.to_vec();
        for op in &self.decided.ops {
            let Some(layout) = op.get_result(0).and_then(|result| self.layouts.get(&result)).copied() else { continue };
            match op.name() {
                ops::tensor::INSERT_SLICE | ops::tensor::EXTRACT_SLICE => self.slice(*op, layout),
                ops::tensor::EXPAND_SHAPE | ops::tensor::COLLAPSE_SHAPE => self.reshape(*op, layout),
                _ => (),
            }
        }
        for (value, layout) in layouts {
            if self.layouts.contains_key(&value) {
                let shape = layout.shape(&value.ty().shape().unwrap_or_default());
                self.rw.set_type(value, Type::tensor(&shape, value.ty().element(), None));
            }
        }
    }

    /// The offsets, sizes and strides of a slice.
    fn slice(&mut self, op: Op<'c>, layout: Layout) {
        for name in ["static_offsets", "static_sizes", "static_strides"] {
            let list = op.attr(name).and_then(|a| a.as_ints()).unwrap_or_default();
            let (front, [channels, height, width]) = parts(&list);
            let image = match (layout, name) {
                (Layout::Last, _) => vec![height, width, channels],
                (Layout::Blocks(_), "static_strides") => vec![1, height, width, 1],
                (Layout::Blocks(size), "static_offsets") => vec![channels / size, height, width, 0],
                (Layout::Blocks(size), _) => vec![channels / size, height, width, size],
            };
            let list: Vec<i64> = front.iter().copied().chain(image).collect();
            self.rw.set_attr(op, name, Attr::dense_i64(op.context(), &list));
        }
    }

    /// The dimensions of a reshape in front of an image; its result is still plain, its operand where that is not a copy.
    fn reshape(&mut self, op: Op<'c>, layout: Layout) {
        let shape = layout.shape(&op.result(0).ty().shape().unwrap_or_default());
        let groups = op.attr("reassociation").and_then(|a| a.as_array()).unwrap_or_default();
        if let Layout::Blocks(_) = layout {
            let dims: i64 = groups.iter().map(|group| group.as_array().map_or(0, |dims| dims.len() as i64)).sum();
            let last = Attr::array(op.context(), &[Attr::i64(op.context(), dims)]);
            let groups: Vec<Attr> = groups.into_iter().chain([last]).collect();
            self.rw.set_attr(op, "reassociation", Attr::array(op.context(), &groups));
        }
        if op.is(ops::tensor::EXPAND_SHAPE) {
            self.rw.set_attr(op, "static_output_shape", Attr::dense_i64(op.context(), &shape));
        }
    }
}

/// The loops in the order of the first result, then the others: blocks, whole ones, the channels of blocks.
fn new_loops(
    maps: &[AffineMap],
    kinds: &[IteratorType],
    channels: &HashMap<usize, Layout>,
    inputs: usize,
) -> Vec<Loop> {
    let cut = |d: &usize| matches!(channels.get(d), Some(Layout::Blocks(_)));
    let whole = |d: &usize| !cut(d) && !channels.contains_key(d);
    let with = |part: Part| move |old: usize| Loop { old, part };
    let arrange = |dims: &[usize]| -> Vec<Loop> {
        let blocks = dims.iter().copied().filter(cut).map(with(Part::Blocks));
        let rest = dims.iter().copied().filter(whole).map(with(Part::Whole));
        let last = dims.iter().copied().filter(|d| !cut(d) && channels.contains_key(d)).map(with(Part::Whole));
        let inner = dims.iter().copied().filter(cut).map(with(Part::Inner));
        blocks.chain(rest).chain(last).chain(inner).collect()
    };
    let out = maps.get(inputs).and_then(|map| map.dim_positions()).unwrap_or_default();
    let channel = maps.get(inputs).and_then(|map| channel_loop(*map)).filter(|d| channels.contains_key(d));
    // Dimensions in front of the image stay in front.
    let at = out.iter().position(|d| Some(*d) == channel).unwrap_or(0);
    let front: Vec<Loop> = out[..at].iter().copied().flat_map(|d| arrange(&[d])).collect();
    let mut loops: Vec<Loop> = front.into_iter().chain(arrange(&out[at..])).collect();
    let rest: Vec<usize> = (0..kinds.len()).filter(|d| !out.contains(d)).collect();
    loops.extend(arrange(&rest));
    loops
}

/// Old loops as new ones.
struct Renaming<'c, 'a> {
    cx: Context<'c>,
    loops: &'a [Loop],
    old: usize,
}

impl<'c> Renaming<'c, '_> {
    fn dim(&self, old: usize, part: Part) -> Option<AffineExpr<'c>> {
        let at = self.loops.iter().position(|l| l.old == old && l.part == part)?;
        Some(AffineExpr::dim(self.cx, at))
    }

    /// Per result of a map one expression, or that of the block and that within it.
    fn exprs(&self, map: AffineMap<'c>) -> Vec<Vec<AffineExpr<'c>>> {
        let whole = |old| self.dim(old, Part::Whole).or_else(|| self.dim(old, Part::Blocks));
        let names: Vec<AffineExpr> =
            (0..self.old).map(|old| whole(old).expect("invariant: every loop is kept")).collect();
        let renamed = map.compose(AffineMap::of(self.cx, self.loops.len(), &names));
        let of = |(old, new): (AffineExpr<'c>, AffineExpr<'c>)| match old.kind() {
            AffineExprKind::Dim(d) => [Some(new), self.dim(d, Part::Inner)].into_iter().flatten().collect(),
            _ => vec![new],
        };
        map.results().into_iter().zip(renamed.results()).map(of).collect()
    }
}

/// Whether an op, or what reads a reshape, reads windows of an image: elements several times.
fn reads_windows(op: Op) -> bool {
    match op.name() {
        ops::tensor::EXPAND_SHAPE | ops::tensor::COLLAPSE_SHAPE => {
            op.result(0).uses().into_iter().any(|used| reads_windows(used.op))
        }
        _ => products::convolution_loops(op).is_some(),
    }
}

/// The expressions of an image, channels last or in blocks.
fn moved<'c>(exprs: &[Vec<AffineExpr<'c>>]) -> Vec<Vec<AffineExpr<'c>>> {
    let (front, image) = exprs.split_at(exprs.len() - 3);
    let [channels, height, width] = image else { unreachable!("invariant: an image has three dimensions") };
    let (blocks, last) = match &channels[..] {
        [blocks, inner] => (vec![vec![*blocks]], vec![*inner]),
        _ => (vec![], channels.clone()),
    };
    let image = blocks.into_iter().chain([height.clone(), width.clone(), last]);
    front.iter().cloned().chain(image).collect()
}
