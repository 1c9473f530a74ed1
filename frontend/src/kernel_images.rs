//! Tiles of convolutions on hardware: the positions of images are one dimension of a product, whose other one is the channels.
//!
//! ```text
//! generic (b, y, x, c, i, j, q), 32 images of 14 x 14, 256 channels    tile [16, 2, 2, 64]: 64 positions, 8 for each of
//!                                                                      8 x 16 invocations, with 4 channels
//! ```
//!
//! A tile is a box of images, rows and columns: of about one size, so that tiles at the ends leave little idle.
//! The choice is the one of least time by a model of a unit: its multiply-adds, what they load from workgroup memory, and how
//! many subgroups hide their latencies.

use crate::linalg::Loops;
use crate::products::{ContractionLoops, ConvolutionLoops};
use monopour_ir::DYNAMIC;

/// Units of the largest GPUs.
const UNITS: i64 = 132;
/// Registers of a unit, and those of an invocation beside its accumulators.
const REGISTERS: i64 = 65_536;
const OTHER_REGISTERS: i64 = 48;
/// Fewer channels leave most invocations idle.
const FEWEST_CHANNELS: i64 = 16;
/// Images of a batch of unknown size.
const USUAL_BATCH: i64 = 16;
/// Lines of a product's positions that are no tile by themselves.
const SHORT_LINE: i64 = 64;
/// Positions of a line that are most of a sector of memory.
const SHORTEST_LINE: i64 = 7;

/// Invocations along the positions and the channels, and what each of them has at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub invocations: [i64; 2],
    pub registers: [i64; 2],
}

/// The layouts to choose from.
const LAYOUTS: [Layout; 12] = [
    layout([16, 16], [8, 8]),
    layout([32, 8], [8, 8]),
    layout([16, 8], [8, 8]),
    layout([8, 16], [8, 8]),
    layout([8, 8], [8, 8]),
    layout([16, 16], [8, 4]),
    layout([32, 8], [8, 4]),
    layout([8, 16], [8, 4]),
    layout([32, 4], [8, 4]),
    layout([8, 8], [8, 4]),
    layout([16, 16], [4, 4]),
    layout([8, 8], [4, 4]),
];

const fn layout(invocations: [i64; 2], registers: [i64; 2]) -> Layout {
    Layout { invocations, registers }
}

/// A tile of a convolution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ImageTile {
    /// Per loop of the result; 0 for a loop that is not tiled.
    pub tile: Vec<i64>,
    pub layout: Layout,
}

impl ImageTile {
    /// Positions and channels of a tile that the invocations have together, at most.
    pub fn positions_and_channels(&self) -> [i64; 2] {
        [0, 1].map(|i| self.layout.invocations[i] * self.layout.registers[i])
    }
}

/// A product whose rows or columns are the positions of images, as a convolution by windows of one element: what is read or written
/// lies in lines too short for a tile. `None` for other products.
pub(crate) fn of_product(roles: &ContractionLoops, extents: &[i64]) -> Option<ConvolutionLoops> {
    let (positions, channels) = match (&roles.m[..], &roles.n[..]) {
        ([_], [_, .., _]) => (&roles.n, &roles.m),
        ([_, .., _], [_]) => (&roles.m, &roles.n),
        _ => return None,
    };
    let is_short = positions.last().is_some_and(|d| (1..SHORT_LINE).contains(&extents[*d]));
    is_short.then(|| ConvolutionLoops {
        input: if channels == &roles.m { 1 - roles.lhs } else { roles.lhs },
        batch: vec![],
        image: positions.clone(),
        channels: channels.clone(),
        depth: roles.batch.clone(),
        window: vec![],
        k: roles.k.clone(),
    })
}

/// The tile of a convolution of images of known sizes; `None` for other ones, and for few channels.
pub(crate) fn tile(roles: &ConvolutionLoops, loops: &Loops) -> Option<ImageTile> {
    let (last, others) = roles.channels.split_last()?;
    let channels = loops.extents[*last];
    // Parts of a reduction side by side are no channels of an image.
    let parts: i64 = roles.depth.iter().map(|d| loops.extents[*d].max(1)).product();
    let is_parted = roles.depth.iter().all(|d| *d < *last) && !roles.channels.is_empty() && roles.depth.len() < 2;
    let is_image = is_parted && roles.image.iter().all(|d| loops.extents[*d] != DYNAMIC);
    let tiled = roles.batch.iter().chain(&roles.image).chain(&roles.channels).all(|d| loops.tileable[*d]);
    if !is_image || !tiled || channels < FEWEST_CHANNELS {
        return None;
    }
    let positions: Vec<usize> = roles.batch.iter().chain(&roles.image).copied().collect();
    let extents: Vec<i64> = positions.iter().map(|d| loops.extents[*d]).collect();
    let others_count: i64 = parts * others.iter().map(|d| loops.extents[*d].max(1)).product::<i64>();
    // Channels in front of the image: neighbours in memory are those along a line.
    let line = if Some(last) < roles.image.last() { SHORTEST_LINE } else { 1 };
    let of_layout = |layout: &Layout| {
        let [down, across] = layout.invocations;
        let columns = div_up(channels, across * layout.registers[1]) * others_count;
        let sized = |boxed: Vec<i64>| {
            let registers = [div_up(boxed.iter().product(), down), layout.registers[1]];
            let fitted = Layout { registers, ..*layout };
            (time(&fitted, tiles(&extents, &boxed) * columns, is_ragged(&extents, &boxed)), boxed, fitted)
        };
        boxes(&extents, (down * layout.registers[0], line)).into_iter().map(sized).min_by_key(|(time, _, _)| *time)
    };
    let best = LAYOUTS.iter().filter_map(of_layout).min_by_key(|(time, _, _)| *time);
    let (_, boxed, layout) = best?;
    let mut tile = vec![0; loops.extents.len()];
    for (d, size) in positions.iter().zip(&boxed) {
        tile[*d] = *size;
    }
    others.iter().chain(&roles.depth).for_each(|d| tile[*d] = 1);
    tile[*last] = channels.min(layout.invocations[1] * layout.registers[1]);
    Some(ImageTile { tile, layout })
}

/// Time of the unit with the most tiles, in no unit of time.
fn time(layout: &Layout, tiles: i64, is_ragged: bool) -> i64 {
    let [rows, columns] = layout.registers;
    let subgroups = layout.invocations.iter().product::<i64>() / 32;
    // Of one subgroup and one term of the sums, in sixteenths of a cycle: multiply-adds, loads of vectors from workgroup
    // memory, half of which they hide, and the rest of a pass.
    let term = 4 * rows * columns + 2 * rows + 4 * columns + 24 + if is_ragged { 8 } else { 0 };
    // What a tile reads from the caches: two thirds of a cycle for eight elements, half of it hidden.
    let [down, across] = layout.invocations;
    let read = (down * rows + across * columns) * 4 / 3;
    let own = div_up(tiles, UNITS);
    let registers = 32 * subgroups * (rows * columns * 5 / 4 + OTHER_REGISTERS);
    let at_once = own.min(REGISTERS / registers).max(1) * subgroups;
    own * (subgroups * term + read) * (16 + 64 / at_once)
}

/// Boxes of at most `most` positions, at least one, those of the longest lines first. Lines have at least `least` positions where they
/// can; images of a batch of unknown size are alone.
pub(crate) fn boxes(extents: &[i64], (most, least): (i64, i64)) -> Vec<Vec<i64>> {
    let Some((last, others)) = extents.split_last() else { return vec![vec![]] };
    let last = if *last == DYNAMIC { 1 } else { (*last).max(1) };
    let mut size = last.min(most);
    // Of the outermost extent the largest size alone.
    let least = if others.is_empty() { size } else { least.min(last) };
    let mut out = vec![];
    loop {
        // Tiles of about one size.
        let count = div_up(last, size);
        size = div_up(last, count);
        for outer in boxes(others, (most / size, 1)) {
            out.push([outer, vec![size]].concat());
        }
        let next = div_up(last, count + 1).min(size - 1);
        if next < least {
            return out;
        }
        size = next;
    }
}

/// Boxes that cover these extents.
pub(crate) fn tiles(extents: &[i64], boxed: &[i64]) -> i64 {
    let known = |extent: i64| if extent == DYNAMIC { USUAL_BATCH } else { extent };
    extents.iter().zip(boxed).map(|(extent, size)| div_up(known(*extent), *size)).product()
}

/// Whether boxes at the ends of these extents are smaller.
fn is_ragged(extents: &[i64], boxed: &[i64]) -> bool {
    extents.iter().zip(boxed).any(|(extent, size)| *extent != DYNAMIC && extent % size != 0)
}

fn div_up(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loops of a convolution of batches, lines and columns to channels: those of the image, and of the channels.
    fn roles(image: [usize; 2], channels: usize) -> ConvolutionLoops {
        let (image, channels) = (image.to_vec(), vec![channels]);
        ConvolutionLoops { input: 0, batch: vec![0], image, channels, depth: vec![], window: vec![4, 5], k: vec![6] }
    }

    fn loops(extents: &[i64; 4]) -> Loops {
        Loops { extents: extents.to_vec(), tileable: vec![true; 4] }
    }

    /// The tile of a convolution of these batches, lines and columns to these channels, which are last.
    fn check(extents: &[i64; 4], expected: &[i64], (invocations, registers): ([i64; 2], [i64; 2])) {
        let expected = ImageTile { tile: expected.to_vec(), layout: layout(invocations, registers) };
        assert_eq!(tile(&roles([1, 2], 3), &loops(extents)), Some(expected), "{extents:?}");
    }

    #[test]
    fn tiles_of_images_are_full() {
        check(&[32, 56, 56, 64], &[4, 8, 8, 64], ([32, 8], [8, 8]));
        check(&[32, 28, 28, 128], &[8, 4, 4, 64], ([16, 8], [8, 8]));
        check(&[32, 14, 14, 256], &[16, 2, 2, 64], ([8, 16], [8, 4]));
        check(&[32, 7, 7, 512], &[32, 1, 1, 64], ([8, 16], [4, 4]));
        check(&[1, 7, 7, 512], &[1, 1, 7, 32], ([8, 8], [1, 4]));
        check(&[1, 13, 13, 100], &[1, 1, 7, 32], ([8, 8], [1, 4]));
        check(&[DYNAMIC, 7, 7, 512], &[1, 7, 7, 64], ([16, 16], [4, 4]));
        check(&[1, 200, 300, 32], &[1, 8, 20, 32], ([32, 8], [5, 4]));
    }

    #[test]
    fn lines_behind_channels_are_most_of_a_sector() {
        for size in [7, 8, 13, 14, 28, 30, 56] {
            let found = tile(&roles([2, 3], 1), &loops(&[32, 64, size, size])).expect("it has a tile");
            assert!(found.tile[3] >= SHORTEST_LINE, "lines of {size}: {:?}", found.tile);
        }
        let found = tile(&roles([2, 3], 1), &loops(&[32, 64, 5, 5])).expect("it has a tile");
        assert_eq!(found.tile[3], 5, "a whole line, if it is shorter");
    }

    #[test]
    fn other_convolutions_have_no_tile_of_images() {
        let images = roles([1, 2], 3);
        for extents in [[8, DYNAMIC, 14, 64], [8, 14, DYNAMIC, 64], [8, 14, 14, 15], [8, 14, 14, DYNAMIC]] {
            assert_eq!(tile(&images, &loops(&extents)), None, "{extents:?}");
        }
        let whole = Loops { tileable: vec![true, true, false, true], ..loops(&[8, 14, 14, 64]) };
        assert_eq!(tile(&images, &whole), None, "lines are not cut");
        let depthwise = ConvolutionLoops { depth: vec![3], channels: vec![], ..images };
        assert_eq!(tile(&depthwise, &loops(&[8, 14, 14, 64])), None, "depthwise");
    }
}
