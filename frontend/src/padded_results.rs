//! Results in collapsed lines that are padded next, on CPUs: the last op of each tile writes them as lines of an image.
//!
//! ```text
//! %r = scf.forall .. shared_outs(%o = %e : [64, 196]) {     %r = scf.forall .. shared_outs(%o = %e : [64, 14, 14]) {
//!   %m = product outs(slice of %o : [16, 196])                %m = product outs(%tile : [16, 196])
//!   %y = generic (c, p) outs(%m[c, p])                        %y = generic (c, y, x) ins(%m[c, 14 y + x]) outs(slice of %o)
//! }                                                         }
//! %i = tensor.expand_shape %r [[0], [1, 2]]                 %p = tensor.insert_slice %r into %f[0, 1, 1] [64, 14, 14]
//! %p = tensor.insert_slice %i into %f[0, 1, 1] [64, 14, 14]
//! ```
//!
//! [`crate::collapse_lines`] makes a product's columns of short lines, which are contiguous in an image but not within a
//! padded one, so that the image would be copied there. The tile of the product stays in the cache, and what is written to
//! the padded image has been computed.
//!
//! Requires: what [`crate::tile`] ensures. Ensures: the same.
//! Limits: tiles of whole lines, of at most [`MOST_ELEMENTS`]; a pointwise op behind the product; no other reader of the image.

use crate::linalg;
use crate::rows_slice::affine;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types_attr};
use monopour_ir::typed::tensor::{extract_slice, parallel_insert_slice};
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{AffineMap, Attr, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value};

/// Most elements of a tile, which lies on the stack of a task.
const MOST_ELEMENTS: i64 = 24 << 10;

/// Rewrites the dispatches of a module.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    for dispatch in module.op().find_all(ops::scf::FORALL) {
        if let Some(lines) = Lines::of(dispatch) {
            lines.write(&mut rw)?;
        }
    }
    Ok(())
}

/// A dispatch whose result is lines in a row.
struct Lines<'c> {
    dispatch: Op<'c>,
    /// The op that takes its result as an image.
    image: Op<'c>,
    /// The elements of a line.
    width: i64,
    /// The slice of the shared output that a tile begins with.
    begun: Op<'c>,
    /// The pointwise op that ends the tile, and the insertion of its result.
    last: Op<'c>,
    inserted: Op<'c>,
}

impl<'c> Lines<'c> {
    fn of(dispatch: Op<'c>) -> Option<Self> {
        let image = padded(dispatch)?;
        let [.., width] = image.result(0).ty().shape()?[..] else { return None };
        let init = dispatch.operands().last().copied()?.defining_op()?;
        let output = dispatch.body()?.args().last().copied()?;
        let uses = output.uses();
        let find = |name| uses.iter().find(|u| u.op.is(name)).map(|u| u.op);
        let (begun, inserted) = (find(ops::tensor::EXTRACT_SLICE)?, find(ops::tensor::PARALLEL_INSERT_SLICE)?);
        let last = inserted.operand(0).defining_op()?;
        let found = Self { dispatch, image, width, begun, last, inserted };
        (init.is(ops::tensor::EMPTY) && uses.len() == 2 && found.ends_pointwise() && found.is_of_lines())
            .then_some(found)
    }

    /// Whether a pointwise op ends the tile, and does not read what the tile began with.
    fn ends_pointwise(&self) -> bool {
        let (last, begun) = (self.last, self.begun.result(0));
        let single = |value: Value| value.uses().len() == 1;
        let maps = linalg::indexing_maps(last).unwrap_or_default();
        linalg::is_elementwise(last)
            && last.num_results() == 1
            && single(last.result(0))
            && single(begun)
            && maps.last().is_some_and(|map| map.is_identity())
            && last.block() == self.dispatch.body()
            && (!self.begins_with_last() || linalg::destination(last, 0) == begun && !self.reads_destination())
    }

    /// Whether the last op has another type than the product, and so is the first to write to the tile.
    fn begins_with_last(&self) -> bool {
        self.begun.result(0).uses().iter().any(|u| u.op == self.last)
    }

    fn reads_destination(&self) -> bool {
        let inputs = linalg::num_inputs(self.last);
        self.last.body().is_some_and(|body| !body.arg(inputs).is_unused())
    }

    /// Whether tiles are whole lines of known number.
    fn is_of_lines(&self) -> bool {
        let (Some(slice), Some(shape)) = (Slice::of(self.inserted), self.last.result(0).ty().shape()) else {
            return false;
        };
        let unit = slice.strides.iter().all(|stride| *stride == Index::Static(1));
        let tile = shape.iter().try_fold(1i64, |all, size| all.checked_mul(*size).filter(|_| *size > 0));
        let whole = |size: &Index| matches!(size, Index::Static(size) if size % self.width == 0);
        let begins = |offset: &Index<'c>| match offset {
            Index::Static(offset) => offset % self.width == 0,
            Index::Dynamic(offset) => is_multiple(*offset, self.width),
        };
        let same = Slice::of(self.begun).as_ref() == Some(&slice);
        unit && same
            && slice.sizes.len() == shape.len()
            && tile.is_some_and(|elements| elements <= MOST_ELEMENTS)
            && slice.sizes.last().is_some_and(whole)
            && slice.offsets.last().is_some_and(begins)
    }

    fn write(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let loc = self.last.location();
        let writes = self.begins_with_last();
        if !writes {
            // What the tile begins with is its own.
            rw.set_point(InsertionPoint::Before(self.begun));
            let own = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[self.begun.result(0).ty()]))?;
            rw.replace_op(self.begun, &own.results());
        }
        // The shared output is the image.
        let whole = self.image.result(0).ty();
        rw.set_point(InsertionPoint::Before(self.dispatch));
        let image = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[whole]))?.result(0);
        rw.set_operand(self.dispatch, self.dispatch.num_operands() - 1, image);
        rw.set_type(self.dispatch.result(0), whole);
        let output = self.inserted.operand(1);
        rw.set_type(output, whole);
        rw.replace_op(self.image, &self.dispatch.results());
        // Its slice at the tile.
        rw.set_point(InsertionPoint::Before(self.last));
        let place = self.place(rw)?;
        let sizes: Vec<i64> = place.sizes.iter().map(|size| size.number()).collect();
        let ty = Type::tensor(&sizes, whole.element(), None);
        let slice = rw.create(extract_slice(loc, output, &place, ty))?.result(0);
        let written = self.as_lines(slice, rw)?;
        rw.set_point(InsertionPoint::Before(self.inserted));
        rw.create(parallel_insert_slice(loc, written, output, &place))?;
        rw.erase(self.inserted);
        rw.erase(self.last);
        if writes {
            rw.erase(self.begun);
        }
        Ok(())
    }

    /// The tile's slice of the image.
    fn place(&self, rw: &mut Rewriter<'c>) -> Result<Slice<'c>, Diagnostics> {
        let Slice { mut offsets, mut sizes, .. } = Slice::of(self.inserted).unwrap_or_default();
        let (at, length) = (offsets.pop(), sizes.pop().map_or(0, |size| size.number()));
        offsets.push(match at {
            Some(Index::Dynamic(at)) => {
                let map = format!("affine_map<(d0) -> (d0 floordiv {})>", self.width);
                Index::Dynamic(affine(ops::affine::APPLY, &map, &[at], self.last.location(), rw)?)
            }
            at => Index::Static(at.map_or(0, |at| at.number()) / self.width),
        });
        offsets.push(Index::Static(0));
        sizes.extend([length / self.width, self.width].map(Index::Static));
        Ok(Slice::new(offsets, sizes))
    }

    /// The last op with a loop over lines and one within a line, on `slice`.
    fn as_lines(&self, slice: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let (cx, op) = (rw.context(), self.last);
        let rank = slice.ty().shape().map_or(0, |shape| shape.len());
        let inputs = linalg::num_inputs(op);
        let mut maps = linalg::indexing_maps(op).expect("invariant: a generic has maps");
        let body = op.body().expect("invariant: a generic has a body");
        // A destination that is read becomes an input.
        let read = usize::from(self.reads_destination());
        let operands = &op.operands()[..inputs + read];
        maps.truncate(inputs + read);
        if read == 1 {
            rw.add_block_arg(body, slice.ty().element(), op.location());
        }
        let dims: Vec<String> = (0..rank).map(|d| format!("d{d}")).collect();
        let (line, within) = (&dims[rank - 2], &dims[rank - 1]);
        let outer: String = dims[..rank - 2].iter().map(|d| format!("{d}, ")).collect();
        let text = format!("affine_map<({}) -> ({outer}{line} * {} + {within})>", dims.join(", "), self.width);
        let loops = Attr::parse(cx, &text).and_then(|map| map.as_affine_map()).expect("invariant: the map parses");
        let mut maps: Vec<AffineMap> = maps.into_iter().map(|map| map.compose(loops)).collect();
        maps.push(AffineMap::identity(cx, rank));
        let region = Region::new();
        rw.take_region(region, op.region(0));
        let kinds = iterator_types_attr(cx, &vec![IteratorType::Parallel; rank]);
        let spec = generic(op.location(), Operands { inputs: operands, outputs: &[slice] }, &maps, kinds, region);
        Ok(rw.create(spec)?.result(0))
    }
}

/// The op that makes an image of a dispatch's result, to be inserted into a larger one, and only for that.
fn padded<'c>(dispatch: Op<'c>) -> Option<Op<'c>> {
    let only = |value: Value<'c>| {
        let uses = value.uses();
        uses.first().copied().filter(|_| uses.len() == 1)
    };
    if dispatch.attr(attributes::KERNEL).is_none() || dispatch.num_results() != 1 {
        return None;
    }
    let image = only(dispatch.result(0)).map(|u| u.op).filter(|op| op.is(ops::tensor::EXPAND_SHAPE))?;
    let inserted = only(image.result(0)).filter(|u| u.op.is(ops::tensor::INSERT_SLICE) && u.index == 0)?;
    let (from, to) = (dispatch.result(0).ty().shape()?, image.result(0).ty().shape()?);
    let [.., height, width] = to[..] else { return None };
    if from.iter().chain(&to).any(|size| *size <= 0) {
        return None;
    }
    let lines = from.len() + 1 == to.len()
        && from.split_last().is_some_and(|(last, outer)| outer == &to[..outer.len()] && *last == height * width);
    (lines && inserted.op.block() == dispatch.block()).then_some(image)
}

/// Whether an offset that tiling computes is a multiple.
fn is_multiple(value: Value, of: i64) -> bool {
    let map = value.defining_op().filter(|op| op.is(ops::affine::APPLY)).and_then(|op| op.attr("map")?.as_affine_map());
    let linear = map.and_then(|map| map.results().first()?.linear(map.num_dims() + map.num_symbols()));
    linear.is_some_and(|form| form.constant % of == 0 && form.factors.iter().all(|factor| factor % of == 0))
}
