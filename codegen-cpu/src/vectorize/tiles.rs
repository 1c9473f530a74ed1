//! Products of bytes on AMX's tile registers: up to 16 rows of 16 sums, 64 terms of each in one instruction.
//!
//! ```text
//! for j (32 columns at a time): pack right[g, j .. j + 32]          // as for `dots`, in groups of four bytes
//!   for i (2 R rows at a time):
//!     c[0..2, 0..2] = tilezero
//!     for g (G groups at a time):
//!       a[r] = tileload left[i + r R .., g ..]; b[v] = tileload right[g .., 16 v ..]
//!       c[r, v] = tdpb c[r, v], a[r], b[v]
//!     tilestore c to a buffer; epilogues read it row by row
//! ```
//!
//! All tiles of a kind have one shape: a function configures the registers once, and eight hold the sums of two by two tiles
//! and their factors. So `G` divides the groups of the reduction, or of its blocks, and `R` is even to the rows; the last rows
//! begin among those before them, or are left to vectors.
//! Limits: left factors whose groups lie side by side, in rows at a known distance; at least [`MIN_GROUPS`] groups and
//! [`MIN_ROWS`] rows. The target has `amx-int8`, for which a process asks its system.

use super::choose::Choice;
use super::dots::{BYTES, Dots};
use super::emit::{Emit, Position, Width};
use super::nest::{Loop, Nest, Operand};
use super::pack;
use super::segments::{Bound, Segment};
use monopour_ir::typed::memref;
use monopour_ir::{Attr, DYNAMIC, InsertionPoint, Op, OpSpec, Type, Value, ops};
use monopour_program::CpuTarget;

/// Rows of a register, and bytes of each.
const MAX_ROWS: i64 = 16;
const ROW_BYTES: i64 = 64;
/// Sums of a row.
pub(super) const COLUMNS: i64 = 16;
/// Tiles of sums side by side, each way.
const SIDE: i64 = 2;
/// Fewer fill too little of a register.
const MIN_GROUPS: i64 = 4;
const MIN_ROWS: i64 = 4;
/// Rows of the remainders that are left to vectors.
const FEW_ROWS: [i64; 4] = [8, 4, 2, 1];

/// The shape of a product's tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tiles {
    /// The loop over rows.
    row: usize,
    /// Rows of a tile.
    pub(super) rows: i64,
    /// Groups of four bytes in a row of the left tile.
    groups: i64,
}

/// The tiles of a product of bytes; `None` where vectors serve.
pub(super) fn choose(nest: &Nest, choice: &Choice, cpu: &CpuTarget) -> Option<Tiles> {
    let dots = choice.dots.filter(|dots| dots.per == BYTES && dots.is_whole() && cpu.has("amx-int8"))?;
    let ((row, _), pack, counted) = (choice.rows?, choice.pack?, dots.counted(nest));
    let known =
        |input: usize| counted.inputs[input].value.ty().as_memref().is_some_and(|ty| !ty.strides.contains(&DYNAMIC));
    let (left, right) = (pack.left.is_some() || known(dots.left), pack.right.is_some() || known(dots.right));
    // Groups of a packed left factor lie side by side along one loop alone.
    let beside = pack.left.is_none() || dots.groups == dots.dim;
    let groups = counted.loops[dots.groups].extent?;
    let size = match pack.block {
        Some((dim, size)) if dim == dots.groups => gcd(size, groups % size),
        _ => groups,
    };
    let groups = (MIN_GROUPS..=MAX_ROWS).rev().find(|groups| size % groups == 0)?;
    let rows = counted.loops[row].extent.map_or(MAX_ROWS, even);
    (rows >= MIN_ROWS && left && right && beside).then_some(Tiles { row, rows, groups })
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Rows of the fewest tiles that hold `extent`, spread evenly.
fn even(extent: i64) -> i64 {
    let tiles = (extent + MAX_ROWS - 1) / MAX_ROWS;
    (extent + tiles - 1) / tiles.max(1)
}

/// Where some tiles are: row by row, those of a row side by side.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) rows: i64,
    pub(super) columns: i64,
    /// Iterations of the block, if a reduction is cut.
    pub(super) length: i64,
}

/// Neighbouring sums of a row, in the buffer.
pub(super) struct Held<'c> {
    /// The buffer, the row and the first column.
    pub(super) place: [Value<'c>; 3],
    pub(super) width: Width,
}

impl<'c> Held<'c> {
    pub(super) fn load(&self, e: &mut Emit<'c>) -> Value<'c> {
        let element = self.place[0].ty().element();
        match self.width {
            1 => e.op(ops::memref::LOAD, &self.place, element),
            width => e.op(ops::vector::LOAD, &self.place, Type::vector(&[width], element)),
        }
    }

    pub(super) fn store(&self, e: &mut Emit<'c>, value: Value<'c>) {
        let name = if self.width == 1 { ops::memref::STORE } else { ops::vector::STORE };
        e.create(OpSpec::new(name, e.loc).operands(&[&[value], &self.place[..]].concat()));
    }
}

impl Tiles {
    /// The loop over rows: in steps of two tiles and of one, and shorter ones for vectors.
    pub(super) fn segments<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, l: &Loop<'c>) -> Vec<Segment<'c>> {
        let few = FEW_ROWS.into_iter().filter(|rows| *rows < self.rows);
        let sizes: Vec<i64> = [SIDE * self.rows, self.rows].into_iter().chain(few).collect();
        match nest.start {
            // Sums that begin here can be computed twice.
            Some(_) => e.segments_twice(l, &sizes, self.rows),
            None => e.segments(l, &sizes),
        }
    }

    /// A buffer for the sums of all tiles, row by row, in the kernel's entry block.
    pub(super) fn buffer<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>) -> Value<'c> {
        let entry = nest.op.ancestor(ops::func::FUNC).and_then(Op::body).expect("invariant: kernels are functions");
        let outside = e.b.point();
        e.b.set_point(InsertionPoint::Start(entry));
        let ty = Type::memref(&[SIDE * self.rows, SIDE * COLUMNS], Type::integer(e.cx, 32), None);
        let spec = memref::alloca(e.loc, &[], ty).attr("alignment", Attr::i64(e.cx, ROW_BYTES));
        let value = e.create(spec).result(0);
        e.b.set_point(outside);
        value
    }

    /// Writes the sums of the tiles at the position to `buffer`; they begin with what it holds, or with zero.
    pub(super) fn sum<'c>(
        &self,
        e: &mut Emit<'c>,
        (nest, choice): (&Nest<'c>, &Choice),
        at: &[Position<'c>],
        grid: Grid,
        (buffer, starts_at_zero): (Value<'c>, bool),
    ) {
        let dots = choice.dots.expect("invariant: tiles are of groups");
        let sums = Sums { tiles: self, nest, dots, block: choice.pack.and_then(|p| p.block), grid };
        let places: Vec<Value> = sums.each(|row, column| sums.place(e, buffer, row, column));
        let stride = long(e, SIDE * COLUMNS * 4);
        let (shape, tile) = (sums.shape(e, Kind::Sums), tile_type(e));
        let start = |e: &mut Emit<'c>, place: &Value<'c>| match starts_at_zero {
            true => e.intrinsic("llvm.x86.tilezero.internal", &shape, tile),
            false => sums.load(e, shape, *place, stride),
        };
        let state: Vec<Value> = places.iter().map(|place| start(e, place)).collect();
        let mut reductions = nest.reductions();
        reductions.sort_by_key(|d| *d == dots.groups);
        let state = sums.along(e, &reductions, at.to_vec(), &state);
        for (place, sum) in places.iter().zip(state) {
            let operands = [shape[0], shape[1], *place, stride, sum];
            e.call_intrinsic("llvm.x86.tilestored64.internal", &operands, &[]);
        }
    }
}

/// What a tile holds.
#[derive(Clone, Copy)]
enum Kind {
    Sums,
    Left,
    Right,
}

struct Sums<'c, 'a> {
    tiles: &'a Tiles,
    /// Counts groups; its inputs are the panels, where there are some.
    nest: &'a Nest<'c>,
    dots: Dots,
    block: Option<(usize, i64)>,
    grid: Grid,
}

impl<'c> Sums<'c, '_> {
    /// What `of` gives for the row and the column of each tile.
    fn each<T>(&self, mut of: impl FnMut(i64, i64) -> T) -> Vec<T> {
        let mut all = vec![];
        for row in 0..self.grid.rows {
            all.extend((0..self.grid.columns).map(|column| of(row, column)));
        }
        all
    }

    /// The reductions, outermost first, with the groups last.
    fn along(&self, e: &mut Emit<'c>, loops: &[usize], at: Vec<Position<'c>>, state: &[Value<'c>]) -> Vec<Value<'c>> {
        let Some((dim, inner)) = loops.split_first() else { return self.step(e, &at, state) };
        let blocked = self.block.is_some_and(|(cut, _)| cut == *dim);
        let mut segment = match blocked {
            true => Segment { from: Bound::Static(0), to: Bound::Static(self.grid.length), step: 1 },
            false => e.whole(&self.nest.loops[*dim]),
        };
        segment.step = if *dim == self.dots.groups { self.tiles.groups } else { 1 };
        e.for_each(segment, state, &mut |e, here, state| {
            let at = pack::within(e, &at, *dim, here, blocked);
            self.along(e, inner, at, state)
        })
    }

    /// One instruction for each tile of sums.
    fn step(&self, e: &mut Emit<'c>, at: &[Position<'c>], state: &[Value<'c>]) -> Vec<Value<'c>> {
        let (left, right) = (&self.nest.inputs[self.dots.left], &self.nest.inputs[self.dots.right]);
        let blocked = self.block.is_some_and(|(cut, _)| cut == self.dots.groups);
        let is_panel = right.panel.is_some();
        // A panel is indexed by the position in its block.
        let groups = if blocked && is_panel { self.nest.loops.len() } else { self.dots.groups };
        let lane = if is_panel { self.nest.loops.len() + 1 } else { self.dots.vector };
        let factor = |e: &mut Emit<'c>, operand: &Operand<'c>, kind, (dim, by, along): (usize, i64, usize)| {
            let mut at = at.to_vec();
            at[dim] = at[dim].plus(by);
            let (place, shape) = (e.address(operand, &at), self.shape(e, kind));
            let stride = operand.stride_bytes(along).expect("invariant: the choice asked for known distances");
            let stride = long(e, stride);
            self.load(e, shape, place, stride)
        };
        let row = self.tiles.row;
        let lefts = (0..self.grid.rows).map(|n| factor(e, left, Kind::Left, (row, n * self.tiles.rows, row)));
        let lefts: Vec<Value> = lefts.collect();
        let rights = (0..self.grid.columns).map(|n| factor(e, right, Kind::Right, (lane, n * COLUMNS, groups)));
        let rights: Vec<Value> = rights.collect();
        let [rows, columns] = self.shape(e, Kind::Sums);
        let [_, bytes] = self.shape(e, Kind::Left);
        let sign = |input: usize| if self.dots.is_unsigned(self.nest, input) { "u" } else { "s" };
        let name = format!("llvm.x86.tdpb{}{}d.internal", sign(self.dots.left), sign(self.dots.right));
        let (mut sums, tile) = (state.iter(), tile_type(e));
        self.each(|row, column| {
            let sum = *sums.next().expect("invariant: one for each tile");
            let operands = [rows, columns, bytes, sum, lefts[row as usize], rights[column as usize]];
            e.intrinsic(&name, &operands, tile)
        })
    }

    fn load(&self, e: &mut Emit<'c>, shape: [Value<'c>; 2], place: Value<'c>, stride: Value<'c>) -> Value<'c> {
        let (operands, tile) = ([shape[0], shape[1], place, stride], tile_type(e));
        e.intrinsic("llvm.x86.tileloadd64.internal", &operands, tile)
    }

    /// Rows, and bytes of each.
    fn shape(&self, e: &mut Emit<'c>, kind: Kind) -> [Value<'c>; 2] {
        let [rows, bytes] = match kind {
            Kind::Sums => [self.tiles.rows, ROW_BYTES],
            Kind::Left => [self.tiles.rows, self.tiles.groups * BYTES],
            Kind::Right => [self.tiles.groups, ROW_BYTES],
        };
        let ty = Type::integer(e.cx, 16);
        [rows, bytes].map(|n| e.constant(Attr::int(ty, n), ty, 1))
    }

    /// Where a tile of sums is in the buffer.
    fn place(&self, e: &mut Emit<'c>, buffer: Value<'c>, row: i64, column: i64) -> Value<'c> {
        let subscripts = [row * self.tiles.rows, column * COLUMNS].map(|n| e.index(n));
        e.address_of(buffer, &subscripts)
    }
}

fn long<'c>(e: &mut Emit<'c>, value: i64) -> Value<'c> {
    let ty = Type::integer(e.cx, 64);
    e.constant(Attr::int(ty, value), ty, 1)
}

fn tile_type<'c>(e: &Emit<'c>) -> Type<'c> {
    Type::parse(e.cx, "!llvm.x86_amx").expect("invariant: a type of the llvm dialect")
}
