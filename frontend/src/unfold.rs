//! Unfolds the windows of convolutions whose lines fill vectors badly (im2col), for CPUs.
//!
//! Before / after:
//!
//! ```text
//! %r = generic (n, o, y, x, c, i, j)                 %u = generic (n, c, i, j, y, x)
//!        image[n, c, 2 y + i, 2 x + j], filter         -> image[n, c, 2 y + i, 2 x + j], u[n, c, i, j, y, x]
//!                                                    %r = generic (n, o, y, x, c, i, j)
//!                                                           u[n, c, i, j, y, x], filter
//! ```
//!
//! The product's columns are all elements of a channel, those of several lines in one vector; the convolution's are those of
//! one line, which may be shorter than half a vector, or strided: a strided vector is read element by element, or picked from
//! several. The unfolded image holds each element as often as windows read it, about window / stride times per dimension: it
//! is written once, and read by all output channels.
//! Windows of one element are the image as it lies, with dimensions of size 1.
//! A strided line of more than half a vector whose windows fit a panel is left alone: code generation picks them for all
//! channels of a task at once.
//! Limits: known sizes; at least `MIN_WORK` multiplications, of at least `MIN_CHANNELS` output channels where vectors can be
//! picked; an unfolded image of at most `MAX_ELEMENTS`.

use crate::{kernel_cpu, linalg, products};
use monopour_contract::{MAX_INTERLEAVED, attributes};
use monopour_ir::ops;
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types_attr};
use monopour_ir::{
    AffineMap, Attr, Block, Builder, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value,
    run_passes,
};
use monopour_program::CpuTarget;

/// Fewest multiplications of a convolution that is worth a dispatch more.
const MIN_WORK: i64 = 1 << 18;
/// Fewest output channels that share an unfolded image.
const MIN_CHANNELS: i64 = 16;
/// Vectors of a strided line that is long enough to be picked in the convolution itself.
const LONG: i64 = 3;
/// Most elements of an unfolded image.
const MAX_ELEMENTS: i64 = 1 << 26;

/// Unfolds the convolutions whose lines are strided or short.
///
/// # Errors
/// None of its own; what MLIR reports.
pub fn run(module: &Module, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    run_passes(module.op(), "builtin.module(func.func(linalg-generalize-named-ops))")?;
    let mut rw = Rewriter::new(module.context());
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if let Some(windows) = Windows::of(op, cpu) {
            windows.unfold(op, &mut rw)?;
        }
    }
    Ok(())
}

/// How a convolution reads its image.
struct Windows<'c> {
    /// The operand that is the image.
    input: usize,
    map: AffineMap<'c>,
    /// The loops that index the image, in the order of the unfolded one: lines last.
    order: Vec<usize>,
    /// Their trip counts.
    sizes: Vec<i64>,
}

impl<'c> Windows<'c> {
    fn of(op: Op<'c>, cpu: &CpuTarget) -> Option<Self> {
        let found = products::convolution_loops(op)?;
        let extents = linalg::loop_extents(op)?;
        let map = linalg::indexing_maps(op)?[found.input];
        let (line, lanes) = (*found.image.last()?, kernel_cpu::lanes(op, cpu));
        let channels: i64 = found.channels.iter().map(|d| extents[*d]).product();
        // Lines behind which there are channels have vectors of these.
        let last = linalg::indexing_maps(op)?.last()?.dim_positions()?.last().copied();
        let pays = match kernel_cpu::line_stride(op, &found)? {
            _ if last.is_some_and(|d| found.channels.contains(&d) || found.depth.contains(&d)) => false,
            // Lines of channels.
            0 => false,
            1 => found.image.len() > 1 && channels >= MIN_CHANNELS && (1..lanes / 2).contains(&extents[line]),
            2..=MAX_INTERLEAVED => {
                let packed = extents[line] > lanes / 2 && kernel_cpu::packs_line(op, &found, &extents, cpu);
                channels >= MIN_CHANNELS && extents[line] < LONG * lanes && !packed
            }
            _ => true,
        };
        let work = extents.iter().try_fold(1i64, |all, extent| all.checked_mul(*extent).filter(|_| *extent > 0))?;
        let order = [&found.batch, &found.depth, &found.k, &found.window, &found.image].into_iter().flatten();
        let order: Vec<usize> = order.copied().collect();
        let sizes: Vec<i64> = order.iter().map(|d| extents[*d]).collect();
        let elements = sizes.iter().try_fold(1i64, |all, size| all.checked_mul(*size).filter(|_| *size > 0));
        let fits = pays && work >= MIN_WORK && elements.is_some_and(|elements| elements <= MAX_ELEMENTS);
        fits.then_some(Self { input: found.input, map, order, sizes })
    }

    fn unfold(&self, op: Op<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        rw.set_point(InsertionPoint::Before(op));
        let unfolded = match self.groups(op.operand(self.input).ty()) {
            Some(groups) => self.expand(op, &groups, rw)?,
            None => self.gather(op, rw)?,
        };
        rw.set_operand(op, self.input, unfolded);
        let mut maps = linalg::indexing_maps(op).unwrap_or_default();
        maps[self.input] = AffineMap::select(op.context(), self.map.num_dims(), &self.order);
        let maps: Vec<_> = maps.into_iter().map(AffineMap::to_attr).collect();
        rw.set_attr(op, "indexing_maps", Attr::array(op.context(), &maps));
        Ok(())
    }

    /// The dimensions of the unfolded image that each of the image becomes, where windows are of one element: the others are of
    /// size 1.
    fn groups(&self, image: Type) -> Option<Vec<Vec<i64>>> {
        let (results, image) = (self.map.results(), image.shape()?);
        let mut groups = vec![vec![]];
        for (place, (d, size)) in self.order.iter().zip(&self.sizes).enumerate() {
            let dim = groups.len() - 1;
            groups.last_mut()?.push(place as i64);
            if results.get(dim)?.linear(self.map.num_dims())?.factors[*d] == 1 && image[dim] == *size {
                groups.push(vec![]);
            } else if *size != 1 {
                return None;
            }
        }
        let rest = groups.pop()?;
        (rest.is_empty() && groups.len() == image.len()).then_some(groups)
    }

    /// The image with dimensions of size 1.
    fn expand(&self, op: Op<'c>, groups: &[Vec<i64>], rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let (cx, image) = (op.context(), op.operand(self.input));
        let ty = Type::tensor(&self.sizes, image.ty().element(), None);
        let groups: Vec<Attr> = groups
            .iter()
            .map(|group| Attr::array(cx, &group.iter().map(|d| Attr::i64(cx, *d)).collect::<Vec<_>>()))
            .collect();
        let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, op.location()).operands(&[image]).results(&[ty]);
        let spec = spec.attr("reassociation", Attr::array(cx, &groups));
        Ok(rw.create(spec.attr("static_output_shape", Attr::dense_i64(cx, &self.sizes)))?.result(0))
    }

    /// The image with a dimension for each loop that indexes it.
    fn gather(&self, op: Op<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let (cx, loc, image) = (op.context(), op.location(), op.operand(self.input));
        let element = image.ty().element();
        let ty = Type::tensor(&self.sizes, element, None);
        let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0);
        let body = Block::new(&[(element, loc), (element, loc)]);
        let mut b = Builder::new(cx, InsertionPoint::End(body));
        b.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[body.arg(0)]))?;
        let region = Region::new();
        region.append(body);
        // The loops of the convolution as those of the gather.
        let rank = self.order.len();
        let mut inverse = vec![0; self.map.num_dims()];
        self.order.iter().enumerate().for_each(|(new, old)| inverse[*old] = new);
        let maps = [self.map.compose(AffineMap::select(cx, rank, &inverse)), AffineMap::identity(cx, rank)];
        let kinds = iterator_types_attr(cx, &vec![IteratorType::Parallel; rank]);
        let spec = generic(loc, Operands { inputs: &[image], outputs: &[empty] }, &maps, kinds, region);
        Ok(rw.create(spec.attr(attributes::UNFOLDED, Attr::unit(cx)))?.result(0))
    }
}
