//! Tensors of which each tile of a dispatch reads what it writes, and nothing else.
//!
//! ```text
//! scf.forall (%i) in (4) shared_outs(%o = %e) {          scf.forall (%i) in (4) shared_outs(%o = %x) {
//!   %s = tensor.extract_slice %x[%i * 8] [8] [1]           %s = tensor.extract_slice %o[%i * 8] [8] [1]
//!   %d = tensor.extract_slice %o[%i * 8] [8] [1]           %t = tensor.empty() : tensor<8xf32>
//!   %a = "product"(..) outs(%d)                     ==>    %a = "product"(..) outs(%t)
//!   %r = linalg.generic ins(%s) outs(%a) {add}             %r = linalg.generic ins(%a) outs(%s) {add}
//!     tensor.parallel_insert_slice %r into %o[%i * 8]        tensor.parallel_insert_slice %r into %o[%i * 8]
//! ```
//!
//! The right side computes the result in the buffer of `%x`. It means the same: a tile's part of `%o` has the contents
//! of `%x` until the tile ends. On memory other tiles have written by then, but no element that this tile reads:
//! * the slices of two tiles have no element in common: each tile id moves the offset of one dimension, which nothing
//!   else moves, by at least the slice's size there;
//! * every op that reads the slice reads an element once, at the point of its loops that has the element's indices. So
//!   an element is read and written by one point, however the points are spread over invocations;
//! * the last of them is elementwise, and makes the tile's result or what ops in place make the result of.
//!
//! What the result was accumulated in before that op is a new tensor, for a tile's sums kept in registers or on a
//! task's stack.
//!
//! A dispatch of one tile may read the tensor without a slice.
//!
//! Limits: one slice of the tensor per tile, `linalg.generic` ops, new tensors of at most [`MOST_TASK_BUFFER_BYTES`].

use monopour_analysis::facts::Affine;
use monopour_contract::{MOST_TASK_BUFFER_BYTES, MOST_TASK_BYTES};
use monopour_ir::typed::linalg::{self, IteratorType, Structured};
use monopour_ir::typed::scf::ForAll;
use monopour_ir::typed::{Index, Slice, tensor};
use monopour_ir::{
    Block, DYNAMIC, Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Type, Use, Value, WalkOrder, ops,
};

use crate::slices::{Key, Symbols, key, slice_of};

/// A dispatch that can make a result in the buffer of a tensor that it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnTile<'c> {
    /// The operand that is the destination.
    pub(crate) used: Use<'c>,
    /// The tensor that it reads.
    pub(crate) value: Value<'c>,
    /// The destination as an argument of the body.
    shared: Value<'c>,
    read: Read<'c>,
    last: Last<'c>,
    /// What the result is accumulated in before the last reader, if that is the slice of the destination.
    sums: Option<Sums<'c>>,
}

/// How tiles read the tensor.
#[derive(Clone, Copy, Debug)]
enum Read<'c> {
    /// By this slice alone.
    Slice(Op<'c>),
    /// As a whole: there is one tile.
    Whole,
}

/// The only use of the slice of the destination.
#[derive(Clone, Copy, Debug)]
struct Sums<'c> {
    used: Use<'c>,
    slice: Op<'c>,
}

/// The last reader of a slice.
#[derive(Clone, Copy, Debug)]
struct Last<'c> {
    op: Op<'c>,
    /// The input that is the slice.
    input: usize,
    /// The value of its output before.
    output: Value<'c>,
}

/// The tensors that may be the destination of an `scf.forall` instead of a new tensor.
pub(crate) fn own_tiles<'c>(forall: Op<'c>) -> Vec<OwnTile<'c>> {
    let (Some(view), Some(body)) = (ForAll::of(forall), forall.body()) else { return vec![] };
    let positions = view.output_positions();
    let first = body.num_args() - positions.len().min(body.num_args());
    let mut found = Vec::new();
    for (number, index) in positions.enumerate() {
        let used = Use { op: forall, index };
        let is_new = forall.operand(index).defining_op().is_some_and(|op| op.is(ops::tensor::EMPTY));
        let Some(place) = Destination::of(view, body, body.arg(first + number)).filter(|_| is_new) else { continue };
        found.extend(place.values().into_iter().filter_map(|value| place.own(used, value)));
    }
    found
}

/// A shared output of which each tile writes a part of its own.
struct Destination<'c> {
    forall: Op<'c>,
    body: Block<'c>,
    shared: Value<'c>,
    insertion: Op<'c>,
    /// The part, as normal forms.
    part: Key,
    /// The slice of the output before the tile, if an op computes in it.
    slice: Option<Op<'c>>,
}

impl<'c> Destination<'c> {
    fn of(view: ForAll<'c>, body: Block<'c>, shared: Value<'c>) -> Option<Self> {
        let (mut insertion, mut slice) = (None, None);
        for used in shared.uses() {
            let known = match used.op.name() {
                ops::tensor::PARALLEL_INSERT_SLICE if used.index == 1 => insertion.replace(used.op),
                ops::tensor::EXTRACT_SLICE if used.op.block() == Some(body) => slice.replace(used.op),
                _ => return None,
            };
            if known.is_some() {
                return None;
            }
        }
        let mut symbols = Symbols::default();
        let insertion: Op = insertion?;
        let part = key(&mut symbols, &slice_of(insertion)?);
        if let Some(slice) = slice
            && key(&mut symbols, &slice_of(slice)?) != part
        {
            return None;
        }
        let forall = insertion.ancestor(ops::scf::FORALL)?;
        let this = Self { forall, body, shared, insertion, part, slice };
        this.are_tiles_apart(view, &mut symbols).then_some(this)
    }

    /// Whether the parts of two tiles have no element in common.
    fn are_tiles_apart(&self, view: ForAll<'c>, symbols: &mut Symbols<'c>) -> bool {
        let (Some(bounds), Some(slice)) = (view.bounds(), Slice::of(self.insertion)) else { return false };
        let symbol_of = |symbols: &mut Symbols<'c>, number: usize| {
            symbols.affine(Index::Dynamic(self.body.arg(number))).terms.first().map(|(symbol, _)| *symbol)
        };
        let ids: Vec<Option<u32>> = (0..bounds.upper.len()).map(|number| symbol_of(symbols, number)).collect();
        let [offsets, _, strides] = &self.part;
        let is_dense = strides.iter().all(|stride| stride.as_constant() == Some(1));
        let moves = |id: &Option<u32>| {
            offsets.iter().zip(&slice.sizes).any(|(offset, size)| {
                let most = match size {
                    Index::Static(size) => Some(*size),
                    Index::Dynamic(size) => size.upper_bound(),
                };
                // Steps are at least 1.
                match (&offset.terms[..], most, id) {
                    ([(symbol, by)], Some(most), Some(id)) => symbol == id && *by >= most,
                    _ => false,
                }
            })
        };
        let is_single = |number: usize| {
            let of = |list: &[Index<'c>]| list[number].constant();
            matches!((of(&bounds.lower), of(&bounds.upper)), (Some(low), Some(high)) if high.saturating_sub(low) <= 1)
        };
        is_dense && ids.iter().enumerate().all(|(number, id)| is_single(number) || moves(id))
    }

    /// The tensors from outside that tiles read, in order.
    fn values(&self) -> Vec<Value<'c>> {
        let mut found: Vec<Value> = Vec::new();
        for value in self.body.ops().into_iter().flat_map(Op::operands) {
            let is_outside = value.block() != Some(self.body) && value.ty() == self.shared.ty();
            if is_outside && !found.contains(&value) {
                found.push(value);
            }
        }
        found
    }

    fn own(&self, used: Use<'c>, value: Value<'c>) -> Option<OwnTile<'c>> {
        // Not from the value's uses: many dispatches may read it.
        let within = self.forall.nested(WalkOrder::Pre).into_iter().filter(|op| *op != self.forall);
        let reads = |op: Op<'c>| (0..op.num_operands()).map(move |index| Use { op, index });
        let inside: Vec<Use> = within.flat_map(reads).filter(|used| used.op.operand(used.index) == value).collect();
        let slice = |used: &Use<'c>| used.op.is(ops::tensor::EXTRACT_SLICE) && used.op.block() == Some(self.body);
        let (read, readers, ty) = match inside[..] {
            [only] if slice(&only) => {
                let mut symbols = Symbols::default();
                let part = key(&mut symbols, &slice_of(self.insertion)?);
                if key(&mut symbols, &slice_of(only.op)?) != part {
                    return None;
                }
                (Read::Slice(only.op), only.op.result(0).uses(), only.op.result(0).ty())
            }
            _ if self.is_whole() => (Read::Whole, inside, value.ty()),
            _ => return None,
        };
        let last = self.last_reader(readers, ty).filter(|_| ty == self.insertion.operand(0).ty())?;
        let sums = self.sums(&last)?;
        Some(OwnTile { used, value, shared: self.shared, read, last, sums })
    }

    /// Whether the part is all of the tensor. No two tiles have an element in common: then there is one tile.
    fn is_whole(&self) -> bool {
        let [offsets, sizes, _] = &self.part;
        let constants = |list: &[Affine]| list.iter().map(Affine::as_constant).collect::<Option<Vec<_>>>();
        let is_all = |sizes: Vec<i64>| self.shared.ty().shape() == Some(sizes);
        constants(offsets).is_some_and(|o| o.iter().all(|o| *o == 0)) && constants(sizes).is_some_and(is_all)
    }

    /// The last op that reads the slice, if it is elementwise, makes the result, and all others read each element once.
    fn last_reader(&self, readers: Vec<Use<'c>>, ty: Type<'c>) -> Option<Last<'c>> {
        if !readers.iter().all(|used| used.op.block() == Some(self.body) && reads_each_once(*used)) {
            return None;
        }
        let mut last = *readers.first()?;
        for &used in &readers {
            if last.op.is_before_in_block(used.op) {
                last = used;
            }
        }
        let (op, count) = (last.op, Structured::of(last.op)?.num_inputs());
        let is_elementwise = op.num_operands() == count + 1
            && linalg::iterator_types(op)?.iter().all(|ty| *ty == IteratorType::Parallel)
            && has_identity(op, count)
            && op.operand(count).ty() == ty;
        let mut inputs = readers.iter().filter(|used| used.op == op).map(|used| used.index);
        let (Some(input), None) = (inputs.next(), inputs.next()) else { return None };
        let made = self.is_in_place(op.result(0)) && is_elementwise;
        made.then(|| Last { op, input, output: op.operand(count) })
    }

    /// Whether the result is made of a value in place, which nothing else uses.
    fn is_in_place(&self, value: Value<'c>) -> bool {
        let mut at = value;
        loop {
            let Some(used) = at.only_use() else {
                // Ops between may read what was made so far: the last one is reached by the output.
                let mut next = at.uses().into_iter().filter(|used| updated(*used).is_some());
                match (next.next(), next.next()) {
                    (Some(used), None) => at = used.op.result(0),
                    _ => return false,
                }
                continue;
            };
            if used.op == self.insertion {
                return used.index == 0;
            }
            let Some(next) = updated(used) else { return false };
            at = next;
        }
    }

    /// The slice of the destination in which sums are, if the last reader goes on from them; `None` if they are
    /// elsewhere and cannot be moved.
    fn sums(&self, last: &Last<'c>) -> Option<Option<Sums<'c>>> {
        let slice = self.slice.map(|slice| slice.result(0));
        if last.is_output_unused() {
            // What the output was is not read: nothing else may be computed in it.
            let is_free = slice.is_none_or(|slice| slice.only_use().is_some_and(|used| used.op == last.op));
            return (is_free && (slice == Some(last.output) || is_new(last.output))).then_some(None);
        }
        let mut at = last.output;
        while Some(at) != slice && !is_new(at) {
            let op = at.defining_op().filter(|op| op.block() == Some(self.body) && op.num_results() == 1)?;
            let output = op.num_operands().checked_sub(1)?;
            updated(Use { op, index: output })?;
            at = op.operand(output);
        }
        let Some(slice) = self.slice else { return Some(None) };
        let used = slice.result(0).only_use()?;
        (at == slice.result(0) && self.has_room(slice)).then_some(Some(Sums { used, slice }))
    }

    /// Whether a task can have a tensor of a tile more.
    fn has_room(&self, slice: Op<'c>) -> bool {
        let bytes = |value: Value<'c>, sizes: &[Value<'c>]| {
            let mut sizes = sizes.iter();
            let shape = value.ty().shape()?;
            let each =
                shape.into_iter().map(|size| if size == DYNAMIC { sizes.next()?.upper_bound() } else { Some(size) });
            let first = value.ty().element_size_bytes()?;
            each.into_iter().try_fold(first, |bytes, size| bytes.checked_mul(u64::try_from(size?).ok()?))
        };
        let empties = self.forall.find_all(ops::tensor::EMPTY);
        let others = empties.into_iter().map(|op| bytes(op.result(0), &op.operands()));
        let more = bytes(slice.result(0), &sizes_of(slice)).filter(|bytes| *bytes <= MOST_TASK_BUFFER_BYTES);
        let all = others.chain([more]).try_fold(0u64, |sum, bytes| sum.checked_add(bytes?));
        all.is_some_and(|all| all <= MOST_TASK_BYTES)
    }
}

impl<'c> Last<'c> {
    fn is_output_unused(&self) -> bool {
        self.op.body().is_some_and(|body| body.arg(self.op.num_operands() - 1).is_unused())
    }
}

/// Whether an op reads each element of an operand at the point of its loops with the element's indices, and at no
/// other.
fn reads_each_once(used: Use) -> bool {
    let inputs = Structured::of(used.op).map(Structured::num_inputs);
    used.op.is(ops::linalg::GENERIC)
        && inputs.is_some_and(|inputs| used.index < inputs)
        && has_identity(used.op, used.index)
        // Loads of the body are of other elements.
        && used.op.body().is_some_and(|body| body.ops().iter().all(|op| !op.operands().iter().any(|v| v.ty().is_tensor())))
}

/// Whether the map of an operand is the identity of all loops.
fn has_identity(op: Op, index: usize) -> bool {
    let maps = op.attr("indexing_maps").and_then(|maps| maps.as_array()).unwrap_or_default();
    maps.get(index).and_then(|map| map.as_affine_map()).is_some_and(|map| map.is_identity())
}

/// The result of an op whose only output is this operand.
fn updated(used: Use) -> Option<Value> {
    let inputs = Structured::of(used.op)?.num_inputs();
    (used.index == inputs && used.op.num_operands() == inputs + 1).then(|| used.op.get_result(0)).flatten()
}

fn is_new(value: Value) -> bool {
    value.defining_op().is_some_and(|op| op.is(ops::tensor::EMPTY))
}

/// The dynamic sizes of a slice's type.
fn sizes_of<'c>(slice: Op<'c>) -> Vec<Value<'c>> {
    let shape = slice.result(0).ty().shape().unwrap_or_default();
    let dynamic = shape.iter().filter(|size| **size == DYNAMIC).count();
    let sizes: Vec<Value> =
        Slice::of(slice).map(|s| s.sizes).unwrap_or_default().iter().filter_map(|s| s.value()).collect();
    // Sizes of 1 that the type leaves out are static.
    if sizes.len() == dynamic { sizes } else { vec![] }
}

/// A change that was made.
pub(crate) struct Made<'c> {
    tile: OwnTile<'c>,
    old: Value<'c>,
    fresh: Option<Op<'c>>,
    /// The slice that was made, and what reads it.
    slice: Option<(Op<'c>, Vec<Use<'c>>)>,
}

impl<'c> OwnTile<'c> {
    /// Lets the dispatch compute in the buffer of the tensor.
    ///
    /// # Errors
    /// MLIR's, for an op that does not build.
    pub(crate) fn make(self, rw: &mut Rewriter<'c>) -> Result<Made<'c>, Diagnostics> {
        let old = self.used.op.operand(self.used.index);
        let mut fresh = None;
        if let Some(Sums { used, slice }) = self.sums {
            rw.set_point(InsertionPoint::After(slice));
            let ty = slice.result(0).ty();
            let spec = OpSpec::new(ops::tensor::EMPTY, slice.location()).operands(&sizes_of(slice)).results(&[ty]);
            let empty = rw.create(spec)?;
            rw.set_operand(used.op, used.index, empty.result(0));
            fresh = Some(empty);
        }
        let slice = match self.read {
            Read::Slice(slice) => {
                rw.set_operand(slice, 0, self.shared);
                None
            }
            Read::Whole => Some(self.make_slice(rw)?),
        };
        rw.set_operand(self.used.op, self.used.index, self.value);
        self.swap(rw);
        Ok(Made { tile: self, old, fresh, slice })
    }

    /// A slice of all of the destination, which is read instead of the tensor.
    fn make_slice(&self, rw: &mut Rewriter<'c>) -> Result<(Op<'c>, Vec<Use<'c>>), Diagnostics> {
        let (forall, ty) = (self.used.op, self.value.ty());
        let readers: Vec<Use> = self.value.uses().into_iter().filter(|used| used.op.is_inside(forall)).collect();
        let shape = ty.shape().expect("invariant: a tensor of static size has a shape");
        let body = forall.body().expect("invariant: a loop has a body");
        rw.set_point(InsertionPoint::Start(body));
        let all = Slice::fixed(&vec![0; shape.len()], &shape);
        let slice = rw.create(tensor::extract_slice(self.last.op.location(), self.shared, &all, ty))?;
        readers.iter().for_each(|used| rw.set_operand(used.op, used.index, slice.result(0)));
        Ok((slice, readers))
    }

    /// Exchanges the slice and the output of the last reader, and the arguments of its body.
    fn swap(&self, rw: &mut Rewriter<'c>) {
        let Last { op, input, .. } = self.last;
        let output = op.num_operands() - 1;
        let (a, b) = (op.operand(input), op.operand(output));
        rw.set_operand(op, input, b);
        rw.set_operand(op, output, a);
        let Some(body) = op.body() else { return };
        let (reads_a, reads_b) = (body.arg(input).uses(), body.arg(output).uses());
        reads_a.into_iter().for_each(|used| rw.set_operand(used.op, used.index, body.arg(output)));
        reads_b.into_iter().for_each(|used| rw.set_operand(used.op, used.index, body.arg(input)));
    }
}

impl<'c> Made<'c> {
    /// Takes the change back.
    pub(crate) fn undo(self, rw: &mut Rewriter<'c>) {
        let tile = &self.tile;
        tile.swap(rw);
        if let Read::Slice(slice) = tile.read {
            rw.set_operand(slice, 0, tile.value);
        }
        if let Some((slice, readers)) = self.slice {
            readers.into_iter().for_each(|used| rw.set_operand(used.op, used.index, tile.value));
            rw.erase(slice);
        }
        rw.set_operand(tile.used.op, tile.used.index, self.old);
        if let (Some(Sums { used, slice }), Some(empty)) = (tile.sums, self.fresh) {
            rw.set_operand(used.op, used.index, slice.result(0));
            rw.erase(empty);
        }
    }

    /// Ends the change: an input that the last reader does not read any more is left out.
    ///
    /// # Errors
    /// MLIR's, for an op that does not build.
    pub(crate) fn keep(self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let Last { op, input, .. } = self.tile.last;
        let Some(body) = op.body().filter(|body| body.arg(input).is_unused()) else { return Ok(()) };
        let count = op.num_operands() - 1;
        let inputs: Vec<Value> = (0..count).filter(|i| *i != input).map(|i| op.operand(i)).collect();
        let maps = op.attr("indexing_maps").and_then(|maps| maps.as_array()).unwrap_or_default();
        let maps: Vec<_> =
            maps.iter().enumerate().filter(|(i, _)| *i != input).filter_map(|(_, map)| map.as_affine_map()).collect();
        let types = op.attr("iterator_types").expect("invariant: a generic has iterator types");
        let operands = linalg::Operands { inputs: &inputs, outputs: &[op.operand(count)] };
        rw.set_point(InsertionPoint::Before(op));
        let new = rw.create(linalg::generic(op.location(), operands, &maps, types, Region::new()))?;
        rw.erase_block_arg(body, input);
        rw.take_region(new.region(0), op.region(0));
        rw.replace_op(op, &new.results());
        Ok(())
    }
}
