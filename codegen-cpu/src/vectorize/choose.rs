//! Chooses the vector loop and the register tile of accumulators.

use super::block_dots::BlockDots;
use super::combine;
use super::dots::{self, Dots};
use super::emit::CACHE_LINE_BYTES;
use super::lookups::Lookup;
use super::nest::{Access, Nest};
use super::pack;
use super::tiles::{self, Tiles};
use super::windows;
use monopour_contract::{WIDE_TILE_BITS, WIDE_TILE_REGISTERS};
use monopour_ir::{Op, Type, Value, ops};
use monopour_program::CpuTarget;
use std::fmt;

/// Registers for a product's accumulators: of 32 or 16, less those for operands.
const ACCUMULATORS: [i64; 2] = [28, 12];
/// Independent chains of additions that hide their latency.
const CHAINS: i64 = 4;
/// Registers for what rows whose windows overlap read of an image.
const WINDOW_VECTORS: i64 = 3;
/// Registers of a vector of a pointwise op.
const POINTWISE: i64 = 2;
/// Bits of the longest register of which a half costs as much as the whole.
const HALF_BITS: i64 = 256;
/// Bytes after which addresses map to the same set of the first-level cache.
const CACHE_WAY_BYTES: i64 = 4096;
/// Lines of a set.
const CACHE_WAYS: i64 = 8;
/// Rows at a time where their number is not known: 14 are as fast (1024 x 2816), or slower where a task's rows and panels of 2816
/// terms fill the second-level cache (1.2 to 1.7 times, in a model).
const UNKNOWN_ROWS: i64 = 8;
/// Least iterations of a vector loop.
const MIN_EXTENT: i64 = 4;

/// The choice for one op.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    /// The vector loop.
    pub(super) dim: usize,
    /// Elements of one register.
    pub(super) lanes: i64,
    /// Elements of the shortest vector that costs less than a register.
    pub(super) least: i64,
    /// Registers per vector; where `dim` is a reduction, accumulators side by side.
    pub(super) registers: i64,
    /// A parallel loop of which several iterations share their loads along `dim`, and how many.
    pub(super) rows: Option<(usize, i64)>,
    /// Where these are all iterations: another such loop, of which several are in the tile, too.
    pub(super) more_rows: Option<(usize, i64)>,
    /// The tile for lines of an image.
    pub(super) line: Option<Line>,
    /// The inputs to pack.
    pub(super) pack: Option<Pack>,
    /// How a product of narrow integers takes several of its terms at once.
    pub(super) dots: Option<Dots>,
    /// The tiles that add them.
    pub(super) tiles: Option<Tiles>,
    /// How numbers of few bits are read.
    pub(super) numbers: Option<Numbers>,
}

/// How a sum reads numbers of few bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Numbers {
    /// What the body makes of them is looked up.
    Lookup(Lookup),
    /// They are multiplied as integers.
    Dots(BlockDots),
}

/// A register tile whose registers are vectors of their own: the last one of a line may begin in the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    /// Registers side by side.
    pub(super) vectors: i64,
    /// As [`Choice::rows`].
    pub(super) rows: (usize, i64),
    /// The input of which a panel holds the whole line: it is interleaved.
    pub(super) packed: Option<usize>,
}

/// Inputs to copy, a panel at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pack {
    /// The input that is read in vectors: its panels are contiguous along the vector loop.
    pub(super) right: Option<usize>,
    /// The input whose elements the rows of the register tile broadcast.
    pub(super) left: Option<usize>,
    /// A reduction cut into blocks of so many iterations where panels would be too large; the outputs are updated once per
    /// block.
    pub(super) block: Option<(usize, i64)>,
}

impl Choice {
    /// Vectors of so many registers along a loop, without a tile.
    pub(super) fn vectors(dim: usize, lanes: i64, registers: i64, cpu: &CpuTarget) -> Self {
        // The units of most 512-bit registers take two of half the size at once.
        let least = lanes * i64::min(HALF_BITS, cpu.vector_bits.into()) / i64::from(cpu.vector_bits);
        Self {
            dim,
            lanes,
            least,
            registers,
            rows: None,
            more_rows: None,
            line: None,
            pack: None,
            dots: None,
            tiles: None,
            numbers: None,
        }
    }

    /// Whether the inputs are read from memory, not from panels.
    pub(super) fn reads_memory(&self) -> bool {
        self.line.is_none() && self.pack.is_none_or(|pack| pack.right.is_none() && pack.left.is_none())
    }

    /// Whether nothing is packed, and no terms are grouped.
    pub(super) fn reads_plainly(&self) -> bool {
        self.pack.is_none() && self.dots.is_none() && self.line.is_none_or(|line| line.packed.is_none())
    }

    /// Vector widths, longest first; a static remainder gets ever shorter ones.
    pub(super) fn widths(&self, nest: &Nest) -> Vec<i64> {
        let mut widths = vec![self.registers * self.lanes];
        let shortest = if nest.loops[self.dim].extent.is_some() { 2 } else { self.lanes };
        let fewer = fitting(self.registers - 1, i64::MAX, 1);
        let mut width = if self.registers > 1 { fewer * self.lanes } else { self.lanes / 2 };
        while width >= shortest {
            widths.push(width);
            width /= 2;
        }
        widths.push(1);
        widths
    }
}

/// Why an op is left to scalar loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Declined {
    /// The vector loop belongs to another form.
    NotAsked,
    /// A register holds only one element of the widest type.
    NarrowRegisters,
    /// No loop is long enough and fits the outputs.
    NoVectorLoop,
    /// Every operand would be gathered along the best loop.
    Gathers,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Declined::NotAsked => "the vector loop asks for another form",
            Declined::NarrowRegisters => "a register holds one element of the widest type",
            Declined::NoVectorLoop => {
                "no loop is long enough and contiguous in the outputs, or sums them by one associative op"
            }
            Declined::Gathers => "along every loop all operands would be gathered element by element",
        })
    }
}

/// Chooses, or declines where vectors gain nothing.
pub(super) fn choose(nest: &Nest, cpu: &CpuTarget) -> Result<Choice, Declined> {
    for (per, by_vectors) in dots::sizes(nest, cpu) {
        let Some(mut choice) = dots::choose(nest, per, cpu) else { continue };
        tile(nest, &mut choice, cpu);
        choice.tiles = tiles::choose(nest, &choice, cpu);
        if by_vectors || choice.tiles.is_some() {
            return Ok(choice);
        }
    }
    let lanes = (i64::from(cpu.vector_bits) / widest_bits(nest)).max(1);
    if lanes < 2 {
        return Err(Declined::NarrowRegisters);
    }
    let (dim, pack) = vector_loop(nest, lanes)?;
    let sums = !nest.reductions().is_empty();
    let extent = nest.loops[dim].extent.unwrap_or(i64::MAX);
    let mut choice = Choice { pack, ..Choice::vectors(dim, lanes, POINTWISE, cpu) };
    if nest.loops[dim].reduction {
        choice.lanes = fitting((i64::from(cpu.vector_bits) / bits_along(nest, dim)).max(lanes), extent, 1);
        choice.registers = fitting(CHAINS, extent, choice.lanes);
    } else if sums {
        tile(nest, &mut choice, cpu);
        choice.pack = pack::widened(nest, &choice, cpu).or(choice.pack).or_else(|| pack::reused(nest, &choice));
        choice = wide(nest, &choice, cpu).unwrap_or(choice);
        // A block's panels are those of one vector.
        choice.line = choice.line.filter(|_| choice.pack.is_none_or(|p| p.right.is_none() && p.block.is_none()));
        choice.more_rows = more_rows(nest, &choice, cpu);
    } else {
        choice.registers = fitting(POINTWISE, extent, lanes);
    }
    Ok(choice)
}

/// The largest power of two of registers, at most `most`, that the extent fills.
fn fitting(most: i64, extent: i64, lanes: i64) -> i64 {
    let mut registers = 1 << most.max(1).ilog2();
    while registers > 1 && registers * lanes > extent {
        registers /= 2;
    }
    registers
}

/// Register tile of an op with reductions along other loops than the vector loop.
fn tile(nest: &Nest, choice: &mut Choice, cpu: &CpuTarget) {
    let extent = nest.loops[choice.dim].extent.unwrap_or(i64::MAX);
    let room = accumulators(nest, cpu);
    let shared = |d: &usize| {
        let reads = |o: &super::nest::Operand| o.uses(choice.dim) && !o.uses(*d);
        !nest.loops[*d].reduction && *d != choice.dim && nest.inputs.iter().any(reads)
    };
    let reads_panel = |d: &usize| match (choice.dots, choice.pack.and_then(|p| p.right)) {
        (Some(dots), _) => !nest.inputs[dots.right].uses(*d),
        (None, right) => right.is_none_or(|i| pack::is_row(nest, *d, choice.dim, &nest.inputs[i])),
    };
    let longest = |rows: &mut dyn Iterator<Item = usize>| {
        rows.filter(reads_panel).max_by_key(|d| nest.loops[*d].extent.unwrap_or(64).min(64))
    };
    // Rows that share no vectors still hide each other's latency: those of a depthwise convolution, or of a pool.
    let apart = |d: &usize| *d != choice.dim && !nest.loops[*d].reduction && nest.loops[*d].extent != Some(1);
    let shares = longest(&mut (0..nest.loops.len()).rev().filter(shared));
    let rows = shares.or_else(|| longest(&mut (0..nest.loops.len()).rev().filter(apart)));
    let room = if shares.is_some() { room } else { room.min(2 * CHAINS) };
    let available = rows.map_or(1, |d| nest.loops[d].extent.unwrap_or(UNKNOWN_ROWS));
    // The filter of overlapping windows is in registers besides, one of each step.
    let window = shares.filter(|d| choice.dots.is_none() && windows::overlapping(nest, *d).is_some());
    let filter = window.and_then(|_| windows::steps_of(nest));
    let room = filter.map_or(room, |steps| (room - steps - WINDOW_VECTORS).max(2 * CHAINS));
    // Fewer rows leave registers for wider vectors.
    let wanted = if available >= 4 || choice.pack.is_some() { 2 } else { 8.min(room) / available.max(1) };
    choice.registers = fitting(wanted.max(1), extent, choice.lanes);
    let most = rows.map_or(1, |d| (room / choice.registers).min(most_rows(nest, d, choice.dim)));
    // Of an unknown number they cannot be spread; the rest is half as many, and so on.
    let at_once = |d: usize| if nest.loops[d].extent.is_some() { even(available, most) } else { most.min(available) };
    choice.rows = rows.map(|d| (d, at_once(d))).filter(|(_, n)| *n > 1);
    if choice.dots.is_some() {
        return;
    }
    // Whole lines of an image: windows overlap. Of a matrix they would be more than the first-level cache holds.
    let windows = nest.inputs.iter().any(|o| o.subscripts.last().is_some_and(|s| is_window(&s.factors, choice.dim)));
    let interleaved = nest.inputs.iter().any(|o| matches!(o.access(choice.dim), Access::Interleaved(_)));
    let lines = nest.loops[choice.dim].extent.filter(|_| windows || interleaved);
    choice.line = choice.rows.zip(lines).map(|((d, _), extent)| {
        let vectors = (extent + choice.lanes - 1) / choice.lanes;
        if shares.is_none() && windows::is_small(nest) && windows::overlapping(nest, d).is_some() {
            return Line {
                vectors: 1,
                rows: (d, even(available, windows::most_rows(accumulators(nest, cpu)))),
                packed: None,
            };
        }
        let line = line((d, available.min(most_rows(nest, d, choice.dim))), available, vectors, room);
        Line { packed: pack::line(nest, choice, line.rows, vectors * choice.lanes), ..line }
    });
}

/// Another loop whose iterations share all vectors, where a tile of all rows leaves registers.
fn more_rows(nest: &Nest, choice: &Choice, cpu: &CpuTarget) -> Option<(usize, i64)> {
    let plain = choice.line.is_none() && choice.pack.is_none_or(|pack| pack.left.is_none());
    let (row, count) = choice.rows.filter(|(row, count)| plain && nest.loops[*row].extent == Some(*count))?;
    let vectors = |o: &&super::nest::Operand| o.uses(choice.dim);
    let shares =
        |d: usize| nest.inputs.iter().any(|o| vectors(&o)) && !nest.inputs.iter().filter(vectors).any(|o| o.uses(d));
    let others = |d: &usize| !nest.loops[*d].reduction && *d != row && *d != choice.dim && shares(*d);
    let (other, extent) = (0..nest.loops.len()).rev().filter(others).find_map(|d| Some((d, nest.loops[d].extent?)))?;
    let most = accumulators(nest, cpu) / (choice.registers * count);
    Some((other, even(extent, most))).filter(|(_, count)| shares(row) && *count > 1)
}

/// Registers for accumulators, per output.
fn accumulators(nest: &Nest, cpu: &CpuTarget) -> i64 {
    let room = if cpu.vector_bits >= 512 || cpu.arch == "aarch64" { ACCUMULATORS[0] } else { ACCUMULATORS[1] };
    (room / nest.outputs.len() as i64).max(1)
}

/// The choice with vectors of [`WIDE_TILE_REGISTERS`] registers of the right panel: a step loads less for each multiplication
/// than one of two (measured: a tenth less time). `None` where registers are few, or the rest of the loop is a short vector
/// that matters.
fn wide(nest: &Nest, choice: &Choice, cpu: &CpuTarget) -> Option<Choice> {
    let (row, _) =
        choice.rows.filter(|_| cpu.vector_bits >= WIDE_TILE_BITS && choice.registers == WIDE_TILE_REGISTERS - 1)?;
    choice.pack.and_then(|pack| pack.right)?;
    let (extent, available) = (nest.loops[choice.dim].extent?, nest.loops[row].extent?);
    let (width, rest) = (WIDE_TILE_REGISTERS * choice.lanes, extent % (WIDE_TILE_REGISTERS * choice.lanes));
    let fits = extent >= 2 * width && (rest == 0 || rest >= 2 * choice.lanes || extent >= 5 * width);
    if !fits || available < WIDE_TILE_REGISTERS {
        return None;
    }
    let most = (ACCUMULATORS[0] / WIDE_TILE_REGISTERS).min(most_rows(nest, row, choice.dim));
    let rows = Some((row, even(available, most)));
    let wide = Choice { registers: WIDE_TILE_REGISTERS, rows, more_rows: None, ..choice.clone() };
    let pack = pack::widened(nest, &wide, cpu)?;
    Some(Choice { pack: Some(pack), ..wide })
}

/// Whether a subscript is `dim` plus other loops.
fn is_window(factors: &[i64], dim: usize) -> bool {
    factors[dim] == 1 && factors.iter().filter(|factor| **factor != 0).count() > 1
}

/// The tile of at most `room` registers that loads the least for `vectors` registers of each of `available` rows.
fn line((dim, most): (usize, i64), available: i64, vectors: i64, room: i64) -> Line {
    let rows = |beside: i64| (dim, even(available, most.min(room / beside)));
    let tile = |beside: i64| Line { vectors: beside, rows: rows(beside), packed: None };
    let passes = |extent: i64, step: i64| std::iter::repeat_n(step, (extent / step) as usize).chain([extent % step]);
    let cost = |line: &Line| -> i64 {
        let tiles = passes(vectors, line.vectors).flat_map(|v| passes(available, line.rows.1).map(move |r| (v, r)));
        tiles.filter(|(v, r)| v * r > 0).map(|(v, r)| (v * r).max(2 * CHAINS) + v + r).sum()
    };
    (1..=vectors.min(room)).map(tile).min_by_key(cost).expect("invariant: there is a register")
}

/// As many rows as lines of the first-level cache that are in use at once: those of all sets that their distance maps them to.
fn most_rows(nest: &Nest, rows: usize, dim: usize) -> i64 {
    let alone = nest.inputs.iter().filter(|o| o.uses(rows) && !o.uses(dim));
    let strides = alone.filter_map(|o| o.stride_bytes(rows)).filter(|bytes| *bytes > 0);
    strides.map(sets).min().map_or(i64::MAX, |sets| sets * CACHE_WAYS)
}

/// Sets of the first-level cache that addresses at multiples of `bytes` map to.
fn sets(bytes: i64) -> i64 {
    let shared = 1 << bytes.trailing_zeros().min(CACHE_WAY_BYTES.trailing_zeros());
    CACHE_WAY_BYTES / shared.max(CACHE_LINE_BYTES)
}

/// At most `most` rows at a time, with the smallest partial tile.
pub(super) fn even(extent: i64, most: i64) -> i64 {
    let most = most.min(extent).max(1);
    let times = (extent + most - 1) / most;
    (extent + times - 1) / times
}

/// Bits of a lane.
fn bits(ty: Type) -> i64 {
    match ty.integer_width() {
        Some(1) => 8,
        Some(width) => i64::from(width),
        None => ty.float_width().map_or(64, i64::from),
    }
}

/// Bits of the widest element in memory or value of the body.
pub(super) fn widest_bits(nest: &Nest) -> i64 {
    let memory = nest.inputs.iter().chain(&nest.outputs).map(|o| bits(o.element()));
    let values = nest.body.ops().into_iter().flat_map(|op| op.results()).map(|r| bits(r.ty()));
    memory.chain(values).max().unwrap_or(64)
}

/// As [`widest_bits`], of what differs by lane along `dim`.
pub(super) fn bits_along(nest: &Nest, dim: usize) -> i64 {
    let uniform = |op: &Op| {
        let other = |op: &Op| op.attr("dim").and_then(|d| d.as_int()) != i64::try_from(dim).ok();
        if op.is(ops::linalg::INDEX) { other(op) } else { op.num_operands() > 0 && op.dialect() == "arith" }
    };
    let mut alike: Vec<Value> = vec![];
    let mut most = 0;
    for op in nest.body.ops() {
        let known = |v: &Value| v.block() != Some(nest.body) || alike.contains(v);
        if uniform(&op) && op.operands().iter().all(known) {
            alike.extend(op.results());
        } else {
            most = op.results().iter().map(|r| bits(r.ty())).max().unwrap_or(0).max(most);
        }
    }
    let memory = nest.inputs.iter().chain(&nest.outputs).map(|o| bits(o.element()));
    memory.chain([most]).max().unwrap_or(64)
}

/// The loop along which the fewest operands are strided; of equal ones a parallel one, then one along which fewer are
/// interleaved, then the last. And the input to pack for it, which counts as contiguous.
fn vector_loop(nest: &Nest, lanes: i64) -> Result<(usize, Option<Pack>), Declined> {
    let strided = |d: usize| nest.inputs.iter().filter(|o| o.access(d) == Access::Strided).count();
    let interleaved = |d: usize| nest.inputs.iter().filter(|o| matches!(o.access(d), Access::Interleaved(_))).count();
    let pack = |d: usize| if nest.loops[d].reduction { None } else { pack::strided(nest, d, lanes) };
    let candidates = (0..nest.loops.len()).filter(|d| is_candidate(nest, *d));
    let cost = |(d, pack): &(usize, Option<Pack>)| {
        let strided = strided(*d) - usize::from(pack.is_some());
        (strided, nest.loops[*d].reduction, interleaved(*d), pack.is_some(), std::cmp::Reverse(*d))
    };
    let (best, pack) = candidates.map(|d| (d, pack(d))).min_by_key(cost).ok_or(Declined::NoVectorLoop)?;
    // A gather costs what scalar loads cost.
    let reads = nest.inputs.iter().filter(|o| o.uses(best)).count();
    let pays = pack.is_some() || strided(best) == 0 || strided(best) < reads;
    if pays { Ok((best, pack)) } else { Err(Declined::Gathers) }
}

fn is_candidate(nest: &Nest, dim: usize) -> bool {
    let l = nest.loops[dim];
    let long = l.extent.is_none_or(|e| e >= MIN_EXTENT);
    let outputs = |access: Access| nest.outputs.iter().all(|o| o.access(dim) == access);
    if l.reduction {
        long && outputs(Access::Invariant) && combine::of(nest).is_some()
    } else {
        long && outputs(Access::Contiguous)
    }
}

#[cfg(test)]
mod tests {
    use super::{even, fitting, line};

    #[test]
    fn tiles_load_little() {
        let tile = |rows, vectors| {
            let line = line((0, rows), rows, vectors, 28);
            (line.vectors, line.rows.1)
        };
        // Lines of 112, 56 and 28 elements, and 16 rows.
        assert_eq!((tile(16, 7), tile(16, 4), tile(16, 2)), ((7, 4), (4, 6), (2, 8)));
    }

    #[test]
    fn rows_are_spread_evenly() {
        assert_eq!((even(56, 14), even(16, 14), even(3, 14), even(1, 14)), (14, 8, 3, 1));
    }

    #[test]
    fn vectors_fit_the_extent() {
        assert_eq!((fitting(4, 1024, 16), fitting(4, 40, 16), fitting(4, 7, 16)), (4, 2, 1));
    }
}
