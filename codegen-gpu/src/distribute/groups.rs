//! Splits a kernel body into groups of ops that one invocation can compute element by element.
//!
//! Two ops share a group when their outputs have the same extents and no op reads or overwrites, at another element, what an
//! op before it wrote or read: then intermediates stay in registers. Groups are separated by barriers.

use super::model::{Base, Model, Operand, Size, Source, TileOp};
use monopour_ir::Block;
use std::ops::Range;

/// Ops with one iteration space.
#[derive(Clone, Debug)]
pub(super) struct Group<'c> {
    /// Positions in [`Model::ops`], in order.
    pub(super) ops: Vec<usize>,
    /// Extents of the outputs; empty for a serial group.
    pub(super) sizes: Vec<Size<'c>>,
    /// A single op whose output indices are not distinct loops: invocation 0 runs it.
    pub(super) serial: bool,
    /// The block that the ops lie in.
    pub(super) block: Block<'c>,
    touched: Vec<Touch>,
}

#[derive(Clone, Copy, Debug)]
struct Touch {
    slice: usize,
    base: Base,
    pointwise: bool,
    written: bool,
    gathered: bool,
}

/// One op with reductions, and the ops of its group, which have none.
#[derive(Clone, Debug)]
pub(super) struct Fused<'c, 'm> {
    pub(super) before: Vec<&'m TileOp<'c>>,
    pub(super) op: &'m TileOp<'c>,
    pub(super) after: Vec<&'m TileOp<'c>>,
}

impl<'c, 'm> Fused<'c, 'm> {
    /// The ops of a group; `None` unless exactly one of them has reductions.
    pub(super) fn of(model: &'m Model<'c>, group: &Group<'c>) -> Option<Self> {
        let ops: Vec<&TileOp> = group.ops.iter().map(|i| &model.ops[*i]).collect();
        let mut reductions = ops.iter().enumerate().filter(|(_, op)| !op.inner().is_empty());
        let (Some((at, op)), None) = (reductions.next(), reductions.next()) else { return None };
        Some(Self { before: ops[..at].to_vec(), op, after: ops[at + 1..].to_vec() })
    }

    /// All ops, in order.
    pub(super) fn ops(&self) -> Vec<&'m TileOp<'c>> {
        self.before.iter().chain([&self.op]).chain(&self.after).copied().collect()
    }

    /// The op that writes the results.
    pub(super) fn last(&self) -> &'m TileOp<'c> {
        self.after.last().unwrap_or(&self.op)
    }

    /// The buffers that the ops before the reductions write.
    pub(super) fn written_before(&self, model: &Model<'c>) -> Vec<Base> {
        self.before.iter().flat_map(|op| op.outputs()).filter_map(|output| model.base(output.source)).collect()
    }

    /// The operands, with their ops, that are accessed once per point: all but the inputs of the reductions.
    pub(super) fn pointwise(&self) -> impl Iterator<Item = (&'m TileOp<'c>, &'m Operand<'c>)> {
        let around = self.before.iter().chain(&self.after).flat_map(|op| op.operands.iter().map(|o| (*op, o)));
        around.chain(self.op.outputs().iter().map(|o| (self.op, o)))
    }
}

/// Groups of all ops in program order.
pub(super) fn split<'c>(model: &Model<'c>) -> Vec<Group<'c>> {
    split_run(model, 0..model.ops.len())
}

/// Groups of a run of ops in program order.
pub(super) fn split_run<'c>(model: &Model<'c>, run: Range<usize>) -> Vec<Group<'c>> {
    let mut groups: Vec<Group> = Vec::new();
    for i in run {
        let op = &model.ops[i];
        let touched = touches(model, op);
        let sizes: Option<Vec<Size>> = op.outer.as_ref().map(|o| o.iter().map(|l| op.sizes[*l]).collect());
        if let (Some(last), Some(sizes)) = (groups.last_mut(), &sizes)
            && joins(last, sizes, &touched)
        {
            last.ops.push(i);
            last.touched.extend(touched);
            continue;
        }
        let block = op.op.block().expect("invariant: a tile op lies in a block");
        groups.push(Group { ops: vec![i], serial: sizes.is_none(), sizes: sizes.unwrap_or_default(), block, touched });
    }
    groups
}

impl<'c> Group<'c> {
    /// Whether any op of the group accesses a buffer.
    pub(super) fn touches(&self, base: Base) -> bool {
        self.touched.iter().any(|t| t.base == base)
    }

    /// Whether any op reads a buffer at computed indices, so that registers cannot hold it.
    pub(super) fn gathers(&self, base: Base) -> bool {
        self.touched.iter().any(|t| t.base == base && t.gathered)
    }

    /// Whether a RAW, WAR or WAW dependence on `earlier` requires a barrier.
    pub(super) fn depends_on(&self, earlier: &Group<'c>) -> bool {
        let clash = |a: &Touch, b: &Touch| a.base == b.base && (a.written || b.written);
        self.touched.iter().any(|new| earlier.touched.iter().any(|old| clash(old, new)))
    }
}

fn touches(model: &Model, op: &TileOp) -> Vec<Touch> {
    let pointwise = |o: &Operand| {
        op.outer.as_ref().is_some_and(|outer| {
            o.map.len() == outer.len()
                && o.map
                    .iter()
                    .zip(outer)
                    .all(|(e, l)| matches!(e.kind(), monopour_ir::AffineExprKind::Dim(p) if p == *l))
        })
    };
    let mut out = Vec::new();
    for (i, operand) in op.operands.iter().enumerate() {
        let Source::Slice(slice) = operand.source else { continue };
        let written = i >= op.num_inputs;
        if written || op.reads(i) {
            out.push(Touch {
                slice,
                base: model.slices[slice].base,
                pointwise: pointwise(operand),
                written,
                gathered: false,
            });
        }
    }
    for slice in &op.gathered {
        out.push(Touch {
            slice: *slice,
            base: model.slices[*slice].base,
            pointwise: false,
            written: false,
            gathered: true,
        });
    }
    out
}

fn joins(group: &Group, sizes: &[Size], touched: &[Touch]) -> bool {
    let same_space =
        !group.serial && group.sizes.len() == sizes.len() && group.sizes.iter().zip(sizes).all(|(a, b)| a.same(b));
    same_space && touched.iter().all(|new| group.touched.iter().all(|old| is_independent(*old, *new)))
}

fn is_independent(old: Touch, new: Touch) -> bool {
    // Different buffers, or two reads.
    if old.base != new.base || !(old.written || new.written) {
        return true;
    }
    // The same element is accessed by the same invocation.
    old.slice == new.slice && old.pointwise && new.pointwise
}
