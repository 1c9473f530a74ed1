//! Pads a part of a tensor: only what surrounds the part is filled, and its lines begin where registers are stored at once.
//!
//! Before / after (a part of 7 x 7 with pads of one, registers of 16 lanes):
//!
//! ```text
//! tensor.empty() : 9x9                          %e = tensor.empty() : 9x32
//! fill                                          fill of [0, 15] [9, 1], [0, 23] [9, 1], [0, 15] [1, 9], [8, 15] [1, 9]
//! insert the part at [1, 1]                     insert the part at [1, 16]
//!                                               extract [0, 15] [9, 9]
//! ```
//!
//! A tile of a depthwise convolution takes as long to be filled and copied as to be read. A store that is not aligned takes twice
//! as long: the pitch of 32 above costs memory that nothing touches.

use crate::rows_slice::affine;
use crate::specialize;
use monopour_ir::typed::tensor::{extract_slice, insert_slice};
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{Diagnostics, Location, OpSpec, Rewriter, Type, Value, ops};

/// A part, and where it lies in the tensor that it is padded to.
pub(crate) struct Padded<'c> {
    pub(crate) part: Value<'c>,
    pub(crate) place: Slice<'c>,
    /// The sizes of the padded tensor, and what the pads are.
    pub(crate) shape: Vec<i64>,
    pub(crate) value: Value<'c>,
    /// Elements of a register.
    pub(crate) lanes: i64,
}

impl<'c> Padded<'c> {
    /// Creates the padded tensor.
    ///
    /// # Errors
    /// What MLIR's op builders report.
    pub(crate) fn create(mut self, loc: Location<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let (rank, element) = (self.shape.len(), self.part.ty().element());
        let (shape, shift) = self.aligned();
        let ty = Type::tensor(&shape, element, None);
        let mut tensor = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0);
        for d in 0..rank {
            let (at, size) = (self.place.offsets[d], self.place.sizes[d]);
            let behind = sum(&[at, size], None, loc, rw)?;
            let rest = sum(&[at, size], Some(self.shape[d]), loc, rw)?;
            for (offset, size) in [(Index::Static(0), at), (behind, rest)] {
                if size != Index::Static(0) {
                    tensor = self.filled(tensor, (d, offset, size), shift, loc, rw)?;
                }
            }
        }
        if let Some(Index::Static(at)) = self.place.offsets.last_mut() {
            *at += shift;
        }
        let inserted = rw.create(insert_slice(loc, self.part, tensor, &self.place))?.result(0);
        if shape == self.shape {
            return Ok(inserted);
        }
        let view = Slice::fixed(&self.origin(shift), &self.shape);
        let ty = Type::tensor(&self.shape, element, None);
        Ok(rw.create(extract_slice(loc, inserted, &view, ty))?.result(0))
    }

    /// The sizes of a tensor whose lines are whole registers and in which a line of the part begins one, and the elements in front of
    /// the padded line.
    fn aligned(&self) -> (Vec<i64>, i64) {
        let mut shape = self.shape.clone();
        let (Some(Index::Static(low)), Some(last)) = (self.place.offsets.last().copied(), shape.last_mut()) else {
            return (shape, 0);
        };
        if low == 0 || *last < self.lanes {
            return (shape, 0);
        }
        let whole = |size: i64| (size + self.lanes - 1) / self.lanes * self.lanes;
        let shift = whole(low) - low;
        *last = whole(shift + *last);
        (shape, shift)
    }

    fn origin(&self, shift: i64) -> Vec<i64> {
        let mut origin = vec![0; self.shape.len()];
        origin.last_mut().into_iter().for_each(|last| *last = shift);
        origin
    }

    /// A tensor, of which some iterations of dimension `d` of the padded one are filled.
    fn filled(
        &self,
        tensor: Value<'c>,
        (d, at, size): (usize, Index<'c>, Index<'c>),
        shift: i64,
        loc: Location<'c>,
        rw: &mut Rewriter<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let mut offsets: Vec<Index> = self.origin(shift).into_iter().map(Index::Static).collect();
        let mut sizes: Vec<Index> = self.shape.iter().copied().map(Index::Static).collect();
        offsets[d] = match (at, offsets[d]) {
            (Index::Static(at), Index::Static(origin)) => Index::Static(at + origin),
            (at, _) => at,
        };
        sizes[d] = size;
        let numbers: Vec<i64> = sizes.iter().map(|size| size.number()).collect();
        let slice = Slice::new(offsets, sizes);
        let ty = Type::tensor(&numbers, tensor.ty().element(), None);
        let part = rw.create(extract_slice(loc, tensor, &slice, ty))?.result(0);
        let filled = specialize::fill(self.value, part, loc, rw)?.result(0);
        Ok(rw.create(insert_slice(loc, filled, tensor, &slice))?.result(0))
    }
}

/// The sum of some sizes, or what is left of a number without them.
fn sum<'c>(
    sizes: &[Index<'c>],
    of: Option<i64>,
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Index<'c>, Diagnostics> {
    let known: i64 = sizes.iter().filter_map(|size| size.constant()).sum();
    let values: Vec<Value> = sizes.iter().filter(|size| size.constant().is_none()).filter_map(|s| s.value()).collect();
    if values.is_empty() {
        return Ok(Index::Static(of.map_or(known, |of| of - known)));
    }
    let dims: Vec<String> = (0..values.len()).map(|d| format!("d{d}")).collect();
    let sum = format!("{} + {known}", dims.join(" + "));
    let expr = of.map_or(sum.clone(), |of| format!("{of} - ({sum})"));
    let map = format!("affine_map<({}) -> ({expr})>", dims.join(", "));
    Ok(Index::Dynamic(affine(ops::affine::APPLY, &map, &values, loc, rw)?))
}
