//! Products of one input as one op with a result each, and what finishes them as one op behind it: the input is read once,
//! for all of them.
//!
//! Before / after:
//!
//! ```text
//! %q = matmul ins(%x, %wq)   %y = generic ins(%q, %bq)       %p:2 = generic ins(%x, %wq, %wk) { q + x * wq, k + x * wk }
//! %k = matmul ins(%x, %wk)   %z = generic ins(%k, %bk)       %r:2 = generic ins(%p#0, %bq, %p#1, %bk)
//! ```
//!
//! So too where one op reads both results: a gate and what passes it.
//!
//! Requires: what [`crate::products::normalize`] ensures.
//! Ensures: the ops between those of a group neither depend on it and are read by it.
//! Limits: products that are read together, equal static loops, and sums in f32. Three products at most, whose accumulators an invocation holds, and as many buffers as the
//! device binds. On hardware not products that fill the device alone: larger register tiles gain more there. On software
//! adapters not long ones, beside which a dispatch costs nothing.

use crate::block_graph::BlockGraph;
use crate::products::ContractionLoops;
use crate::{fuse_form, joined_op, kernel, kernel_matrices, large_tiles, linalg, products};
use monopour_ir::bodies::{self, MultiplyAdd};
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types_attr};
use monopour_ir::{
    AffineMap, Block, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value, ops,
};
use monopour_program::GpuDescription;
use std::collections::{HashMap, HashSet};
use tracing::trace;

/// Products of a group.
const MOST: usize = 3;
/// Readers of a product that are looked at.
const MOST_READERS: usize = 64;
/// Multiplications from which on products stay apart on software adapters, where a dispatch takes some tens of microseconds
/// and this many multiplications a third of a millisecond, and where subgroups multiply matrices, which do several products
/// in the time that a joined kernel takes for one.
const LONG_PRODUCT: i64 = 1 << 23;

/// Joins where possible; returns the number of groups.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(
    module: &'c Module<'c>,
    gpu: &GpuDescription,
    rw: &mut Rewriter<'c>,
) -> Result<usize, Diagnostics> {
    let mut count = 0;
    for block in fuse_form::blocks(module) {
        let mut graph = BlockGraph::new(block);
        let groups = find(&mut graph, gpu);
        if !groups.is_empty() {
            graph.order(rw);
        }
        for group in &groups {
            trace!(target: "fuse", "{}: {} products side by side", group.products[0].location(), group.products.len());
            group.join(rw)?;
            count += 1;
        }
    }
    Ok(count)
}

/// Products that become one, and the ops that finish them, in program order.
#[derive(Clone, Default)]
struct Group<'c> {
    products: Vec<Op<'c>>,
    finishers: Vec<Op<'c>>,
}

/// What products of a group have in common.
#[derive(PartialEq)]
struct Key<'c> {
    shared: (Value<'c>, AffineMap<'c>),
    loops: ContractionLoops,
    extents: Vec<i64>,
    result: (Type<'c>, AffineMap<'c>),
    /// Whether the shared input is in the first factor.
    is_first: bool,
}

fn find<'c>(graph: &mut BlockGraph<'c>, gpu: &GpuDescription) -> Vec<Group<'c>> {
    let all: Vec<(Op, Key)> = graph.ops().iter().filter_map(|op| Some((*op, Key::of(*op, gpu)?))).collect();
    let mut taken: HashSet<Op> = HashSet::new();
    let mut groups = vec![];
    for (i, (first, key)) in all.iter().enumerate() {
        if taken.contains(first) {
            continue;
        }
        let mut group = Group::default().with(*first);
        for (next, _) in all[i + 1..].iter().filter(|(op, other)| other == key && !taken.contains(op)) {
            let larger = group.with(*next);
            if larger.products.len() <= MOST && larger.buffers() <= gpu.limits.max_storage_buffers as usize {
                let members: HashSet<Op> = larger.members().into_iter().collect();
                group = if larger.is_independent() && graph.is_convex(&members) { larger } else { group };
            }
        }
        if group.products.len() > 1 && group.is_whole() && group.is_read_together() {
            taken.extend(group.members());
            graph.unite(&group.members());
            groups.push(group);
        }
    }
    groups
}

impl<'c> Key<'c> {
    fn of(op: Op<'c>, gpu: &GpuDescription) -> Option<Self> {
        let loops = products::contraction_loops(op).filter(|_| op.num_results() == 1)?;
        let extents = linalg::loops(op)?.extents;
        if extents.iter().any(|extent| *extent == DYNAMIC || *extent < 1) {
            return None;
        }
        let columns: i64 = loops.n.iter().map(|d| extents[*d]).product();
        let work = extents.iter().fold(1i64, |all, extent| all.saturating_mul(linalg::known(*extent)));
        // Where matrices multiply, a dispatch more costs less than what they save.
        let has_matrices = kernel_matrices::product(op, &loops, &extents, gpu).is_some();
        let is_long = (gpu.is_cpu_adapter() || has_matrices) && work > LONG_PRODUCT;
        let is_large = large_tiles::is_large_product(&loops, &extents, (gpu, large_tiles::MANY_PAIRS));
        let is_alone = columns <= kernel::FEW_COLUMNS || is_long || is_large;
        let is_f32 = op.result(0).ty().element().float_width() == Some(32);
        if is_alone || !is_f32 {
            return None;
        }
        let maps = maps_of(op)?;
        let term = *MultiplyAdd::chain_of(op.body()?)?.first()?;
        let is_first = bodies::arguments(op.body()?, term.factors[0])?.contains(&loops.lhs);
        Some(Self {
            shared: (op.operand(loops.lhs), maps[loops.lhs]),
            result: (op.result(0).ty(), *maps.last()?),
            loops,
            extents,
            is_first,
        })
    }
}

impl<'c> Group<'c> {
    /// With another product, and the op that finishes it.
    fn with(&self, product: Op<'c>) -> Self {
        let mut group = self.clone();
        group.products.push(product);
        let reader = product.result(0).only_use().map(|u| u.op);
        let finishes = |op: &Op<'c>| {
            let inputs = linalg::inputs_of_all_loops(*op);
            op.block() == product.block() && inputs.iter().any(|i| op.operand(*i) == product.result(0))
        };
        if let Some(finisher) = reader.filter(finishes).filter(|op| !group.finishers.contains(op)) {
            group.finishers.push(finisher);
        }
        group
    }

    /// Whether the finishers finish no other reduction, and read no result but by their loops.
    fn is_whole(&self) -> bool {
        let own: Vec<Value> = self.products.iter().map(|op| op.result(0)).collect();
        self.finishers.iter().all(|op| {
            let whole = linalg::inputs_of_all_loops(*op);
            (0..linalg::num_inputs(*op)).all(|i| {
                let value = op.operand(i);
                let reduces = |def: Op| {
                    def.is(ops::linalg::MATMUL)
                        || linalg::parallel_loops(def).is_some_and(|parallel| parallel.contains(&false))
                };
                let other = value.defining_op().is_some_and(|def| linalg::is_structured(def) && reduces(def));
                if own.contains(&value) { whole.contains(&i) } else { !(other && value.only_use().is_some()) }
            })
        })
    }

    /// Whether an op reads two of the products, or the program returns two. Else one may be dead before the next one is made, and
    /// together they take more memory.
    fn is_read_together(&self) -> bool {
        let mut readers: HashSet<Op> = HashSet::new();
        self.products.iter().any(|product| {
            let own = readers_of(product.result(0));
            let is_shared = own.iter().any(|op| readers.contains(op));
            readers.extend(own);
            is_shared
        })
    }

    /// Whether no product reads what the group makes.
    fn is_independent(&self) -> bool {
        let members = self.members();
        let reads = self.products.iter().flat_map(|op| op.operands()).filter_map(Value::defining_op);
        reads.into_iter().all(|def| !members.contains(&def))
    }

    fn members(&self) -> Vec<Op<'c>> {
        [&self.products[..], &self.finishers[..]].concat()
    }

    /// Buffers that the dispatch binds.
    fn buffers(&self) -> usize {
        let members = self.members();
        let inside = |v: &Value<'c>| v.defining_op().is_some_and(|def| members.contains(&def));
        let read: HashSet<Value> = members
            .iter()
            .flat_map(|op| op.operands().into_iter().take(linalg::num_inputs(*op)))
            .filter(|v| !inside(v) && v.ty().is_tensor())
            .collect();
        let results = members.iter().flat_map(|op| op.results());
        let is_read = |v: &Value<'c>| v.uses().iter().any(|u| !members.contains(&u.op));
        read.len() + results.filter(is_read).count()
    }

    fn join(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        // All that the group reads is in front of its first op.
        let mut ordered = self.members();
        ordered.sort_by(
            |a, b| if a.is_before_in_block(*b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater },
        );
        let finishers: Vec<Op> = ordered.iter().copied().filter(|op| self.finishers.contains(op)).collect();
        join_products(&self.products, InsertionPoint::Before(ordered[0]), rw)?;
        if let [_, .., last] = finishers[..] {
            joined_op::join(&finishers, InsertionPoint::Before(last), rw)?;
        }
        Ok(())
    }
}

/// The ops that read a value, also through reshapes and elementwise ops.
fn readers_of(value: Value<'_>) -> HashSet<Op<'_>> {
    let (mut found, mut values) = (HashSet::new(), vec![value]);
    while let Some(value) = values.pop() {
        for op in value.uses().into_iter().map(|used| used.op) {
            let passes = op.dialect() == "tensor" || linalg::is_elementwise(op);
            if found.len() < MOST_READERS && found.insert(op) && passes {
                values.extend(op.results());
            }
        }
    }
    found
}

/// The maps of a generic or a matmul.
pub(crate) fn maps_of<'c>(op: Op<'c>) -> Option<Vec<AffineMap<'c>>> {
    let cx = op.context();
    let plain = || [[0, 2], [2, 1], [0, 1]].map(|dims| AffineMap::select(cx, 3, &dims)).to_vec();
    linalg::indexing_maps(op).or_else(|| op.is(ops::linalg::MATMUL).then(plain))
}

/// Replaces the products by one op at `point`.
fn join_products<'c>(products: &[Op<'c>], point: InsertionPoint<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let (first, loc) = (products[0], products[0].location());
    let loops = products::contraction_loops(first).expect("invariant: found as a product");
    let mut inputs: Vec<(Value, AffineMap)> = vec![];
    let mut places: Vec<Vec<usize>> = vec![];
    let mut out = None;
    for op in products {
        let mut maps = maps_of(*op).expect("invariant: a product has maps");
        out = maps.pop();
        let own = op.operands().into_iter().zip(maps).map(|input| {
            let known = inputs.iter().position(|known| *known == input);
            known.unwrap_or_else(|| {
                inputs.push(input);
                inputs.len() - 1
            })
        });
        let own: Vec<usize> = own.collect();
        places.push(own);
    }
    let out = out.expect("invariant: a product has a result");
    let maps: Vec<AffineMap> = inputs.iter().map(|(_, map)| *map).chain(products.iter().map(|_| out)).collect();
    let inputs: Vec<Value> = inputs.into_iter().map(|(value, _)| value).collect();
    let outputs: Vec<Value> = products.iter().map(|op| linalg::destination(*op, 0)).collect();
    let arguments: Vec<_> = inputs.iter().chain(&outputs).map(|v| (v.ty().element(), loc)).collect();
    let (block, region) = (Block::new(&arguments), Region::new());
    region.append(block);
    rw.set_point(InsertionPoint::End(block));
    let mut sums = vec![];
    for (i, (op, places)) in products.iter().zip(&places).enumerate() {
        let body = op.body().expect("invariant: a product has a body");
        let mut map: HashMap<Value, Value> =
            places.iter().enumerate().map(|(arg, at)| (body.arg(arg), block.arg(*at))).collect();
        map.insert(body.arg(places.len()), block.arg(inputs.len() + i));
        sums.extend(joined_op::copy_body(body, &mut map, rw));
    }
    rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&sums))?;
    let count = loops.batch.len() + loops.m.len() + loops.n.len() + loops.k.len();
    let kind = |d: usize| if loops.k.contains(&d) { IteratorType::Reduction } else { IteratorType::Parallel };
    let kinds: Vec<IteratorType> = (0..count).map(kind).collect();
    let iterators = iterator_types_attr(first.context(), &kinds);
    rw.set_point(point);
    let joined = rw.create(generic(loc, Operands { inputs: &inputs, outputs: &outputs }, &maps, iterators, region))?;
    for (op, result) in products.iter().zip(joined.results()) {
        rw.replace_op(*op, &[result]);
    }
    Ok(())
}
