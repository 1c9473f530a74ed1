//! Products of narrow integers: several terms of the reduction at a time, by instructions for groups of 32 bits.
//!
//! ```text
//! for g (two or four iterations of k; a block at a time):
//!   for i, g: left[i, g] = a[i, 4g .. 4g + 4]
//!   for j (W lanes at a time):
//!     for g: right[g, 0 .. W] = (b[4g, j ..], .. b[4g + 3, j ..]), interleaved
//!     for i, g: acc[i, 0 .. W] += dot(left[i, g], right[g, 0 .. W])
//! ```
//!
//! `pmaddwd` adds two products of 16 bits, `vpdpbusd` (VNNI) four of 8, one factor of which has a sign, and Arm's `sdot`, `udot` and
//! `usdot` four of 8 too. All are exact modulo 2^32, as the sum of extended factors is. They do two and four times the work of a
//! product of floats; on x86 a product of 32-bit integers alone takes two instructions. The groups of a panel are in one lane
//! each, so that a group of the left operand is broadcast as one number; where its groups lie side by side in memory, it is read
//! there.
//! Where the target has tile registers, most rows are theirs (`tiles`).
//! Limits: x86-64, and aarch64 with FEAT_DotProd; factors of 8 bits, or on x86-64 of 16 with a sign; known reductions; at least
//! [`MIN_ROWS`] rows.

use super::byte_dots::ByteDots;
use super::choose::{Choice, Pack};
use super::combine;
use super::emit::{Emit, Position, Width};
use super::nest::{Access, Nest, Operand};
use super::pack::{self, Fill, OTHER_POSITIONS};
use monopour_ir::ops;
use monopour_ir::{Attr, LinearForm, Op, Type, Value};
use monopour_program::CpuTarget;

/// Fewest rows that share a packed vector.
const MIN_ROWS: i64 = 4;
/// Registers of the widest panel.
const MAX_REGISTERS: i64 = 2;
/// Largest panel, which lies on the stack of a task.
const MAX_PANEL_BYTES: i64 = 64 << 10;
/// Bits of a group, and of a sum.
const GROUP_BITS: i64 = 32;
/// Factors of a group of bytes.
pub(super) const BYTES: i64 = 4;

/// The loops and operands of such a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dots {
    /// The reduction of which several iterations are one.
    pub(super) dim: usize,
    /// How many.
    pub(super) per: i64,
    /// Iterations of its last group, if that has fewer.
    rest: i64,
    /// The input that is read in vectors.
    pub(super) right: usize,
    /// The input whose groups are broadcast.
    pub(super) left: usize,
    /// The vector loop.
    pub(super) vector: usize,
    /// The loop over groups: `dim`, or another where `dim` has but one.
    pub(super) groups: usize,
    /// Whether the right input's groups lie side by side in memory, column by column.
    pub(super) is_grouped: bool,
    /// Whether they are read there: those of two, which are widened besides, are copied where the next step of a tile does not lie
    /// behind this one.
    pub(super) in_place: bool,
    /// What adds groups of bytes, in vectors.
    instruction: Option<ByteDots>,
}

/// Factors of a group of a product of narrow integers, the best first, and whether vectors have an instruction for it; none
/// for any other op.
pub(super) fn sizes(nest: &Nest, cpu: &CpuTarget) -> Vec<(i64, bool)> {
    if !is_sum_of_products(nest) {
        return vec![];
    }
    let bytes = nest.inputs.iter().all(|o| o.element().integer_width() == Some(8));
    let vectors = bytes && cpu.adds_bytes(is_unsigned(nest, 0) == is_unsigned(nest, 1));
    let tiles = bytes && cpu.has("amx-int8");
    let pairs = !vectors && cpu.arch == "x86_64";
    let groups = (vectors || tiles).then_some((BYTES, vectors));
    groups.into_iter().chain(pairs.then_some((2, true))).collect()
}

/// Chooses for a product of narrow integers in groups of `per`.
pub(super) fn choose(nest: &Nest, per: i64, cpu: &CpuTarget) -> Option<Choice> {
    let parallel = |d: usize| !nest.loops[d].reduction;
    let (vector, right) = (0..nest.loops.len()).rev().filter(|d| parallel(*d)).find_map(|d| {
        let long = nest.loops[d].extent.is_none_or(|extent| extent >= MIN_ROWS);
        let reads = [0, 1].map(|input| nest.inputs[input].uses(d));
        let right = if reads[0] { 0 } else { 1 };
        (long && reads[0] != reads[1] && nest.outputs[0].access(d) == Access::Contiguous).then_some((d, right))
    })?;
    let left = 1 - right;
    let alone = |d: &usize| parallel(*d) && nest.inputs[left].uses(*d) && !nest.inputs[right].uses(*d);
    let row = (0..nest.loops.len()).filter(alone).max_by_key(|d| nest.loops[*d].extent.unwrap_or(64).min(64))?;
    let few = nest.loops[row].extent.is_some_and(|extent| extent < MIN_ROWS);
    let both = |d: &usize| nest.inputs.iter().all(|o| o.uses(*d));
    if few || !nest.reductions().iter().all(|d| nest.loops[*d].extent.is_some() && both(d)) {
        return None;
    }
    let choice = Choice::vectors(vector, i64::from(cpu.vector_bits) / GROUP_BITS, MAX_REGISTERS, cpu);
    // Whole groups, of those such that lie side by side and are loaded at once.
    let side_by_side = |input: usize, d: usize| nest.inputs[input].access(d) == Access::Contiguous;
    let mut dims = nest.reductions();
    dims.sort_by_key(|d| {
        let extent = nest.loops[*d].extent.unwrap_or(0);
        std::cmp::Reverse((extent % per == 0, side_by_side(left, *d), side_by_side(right, *d), extent))
    });
    dims.into_iter().find_map(|dim| {
        let rest = nest.loops[dim].extent? % per;
        let bytes = per * nest.inputs[left].element().element_size_bytes()? as i64;
        let next = |d: &usize| *d != dim && nest.inputs[left].stride_bytes(*d) == Some(bytes);
        let single = nest.loops[dim].extent == Some(per);
        let groups = nest.reductions().into_iter().find(next).filter(|_| single).unwrap_or(dim);
        let is_grouped = single && is_grouped(&nest.inputs[right], per, dim, vector);
        let step = nest.inputs[right].stride_bytes(groups).filter(|_| groups != dim);
        let in_place =
            is_grouped && (per == BYTES || step.is_none_or(|step| step <= per * choice.registers * choice.lanes));
        let instruction = ByteDots::of(cpu);
        let dots = Dots { dim, per, rest, right, left, vector, groups, is_grouped, in_place, instruction };
        let pack = dots.pack(nest, &choice, row)?;
        Some(Choice { dots: Some(dots), pack: Some(pack), ..choice.clone() })
    })
}

/// Whether the last two subscripts of bytes are columns and the terms of a group, next to each other.
fn is_grouped(operand: &Operand, per: i64, dim: usize, vector: usize) -> bool {
    let [rest @ .., columns, terms] = &operand.subscripts[..] else { return false };
    let apart = rest.iter().all(|s| s.factors[dim] == 0 && s.factors[vector] == 0);
    let bytes = operand.element().integer_width() == Some(8);
    let near = operand.unit_stride && operand.stride_bytes(vector) == Some(per);
    apart && bytes && near && columns.as_dim() == Some(vector) && terms.as_dim() == Some(dim)
}

/// Whether the only output sums products of both inputs, extended.
fn is_sum_of_products(nest: &Nest) -> bool {
    let Some(Some(&[sum])) = combine::of(nest).as_deref().map(|all| <&[_; 1]>::try_from(all).ok()) else {
        return false;
    };
    let product = sum.term.defining_op().filter(|op| op.is(ops::arith::MULI) && op.block() == Some(nest.body));
    let factors = [0, 1].map(|input| extension(nest, input).map(|op| op.result(0)));
    let both = product.is_some_and(|op| {
        let found = [Some(op.operand(0)), Some(op.operand(1))];
        found == factors || found == [factors[1], factors[0]]
    });
    both && nest.inputs.len() == 2
        && sum.op.is(ops::arith::ADDI)
        && sum.ty().integer_width().map(i64::from) == Some(GROUP_BITS)
}

fn is_unsigned(nest: &Nest, input: usize) -> bool {
    extension(nest, input).is_some_and(|op| op.is(ops::arith::EXTUI))
}

/// The extension of an input's element from at most 16 bits, as its only reader.
fn extension<'c>(nest: &Nest<'c>, input: usize) -> Option<Op<'c>> {
    let operand = nest.inputs.get(input).filter(|o| o.is_memory() && o.unit_stride)?;
    let [only] = nest.body.arg(input).uses()[..] else { return None };
    let fits = match operand.element().integer_width()? {
        8 => matches!(only.op.name(), ops::arith::EXTSI | ops::arith::EXTUI),
        16 => only.op.is(ops::arith::EXTSI),
        _ => false,
    };
    Some(only.op).filter(|op| fits && op.block() == Some(nest.body))
}

/// Is told a position, the groups from there on, and how many elements each of them has.
type Groups<'c, 'a> = &'a mut dyn FnMut(&mut Emit<'c>, &[Position<'c>], (i64, i64));

impl Dots {
    /// What is packed, and in which blocks.
    fn pack(&self, nest: &Nest, choice: &Choice, row: usize) -> Option<Pack> {
        let operand = &nest.inputs[self.left];
        let side_by_side = operand.access(self.dim) == Access::Contiguous && self.rest == 0;
        let in_place = side_by_side && operand.element().integer_width().map(i64::from) == Some(self.bits());
        let rows = nest.loops[row].extent;
        let left = Some(self.left).filter(|_| !in_place && (rows.is_some() || !side_by_side));
        if left.is_none() && self.in_place {
            return Some(Pack { right: None, left, block: None });
        }
        let rows = if left.is_some() { rows? } else { 0 };
        let counted = self.counted(nest);
        let room = MAX_PANEL_BYTES * 8 / GROUP_BITS / rows.max(choice.registers * choice.lanes);
        let block = pack::block(&counted, &counted.inputs[self.right], room)?;
        // The last group of a block would have to be looked for.
        let whole = self.rest == 0 || block.is_none_or(|(dim, _)| dim != self.dim);
        let right = Some(self.right).filter(|_| !self.in_place);
        whole.then_some(Pack { right, left, block })
    }

    /// Whether the last group has all its factors.
    pub(super) fn is_whole(&self) -> bool {
        self.rest == 0
    }

    /// Whether the factors of an input have no sign.
    pub(super) fn is_unsigned(&self, nest: &Nest, input: usize) -> bool {
        is_unsigned(nest, input)
    }

    /// Bits of a factor.
    fn bits(&self) -> i64 {
        GROUP_BITS / self.per
    }

    /// Type of a factor.
    pub(super) fn element<'c>(&self, e: &Emit<'c>) -> Type<'c> {
        Type::integer(e.cx, self.bits() as u32)
    }

    /// The nest whose loop counts groups.
    pub(super) fn counted<'c>(&self, nest: &Nest<'c>) -> Nest<'c> {
        let mut counted = nest.clone();
        let extent = &mut counted.loops[self.dim].extent;
        *extent = extent.map(|extent| (extent + self.per - 1) / self.per);
        let subscripts = counted.inputs.iter_mut().flat_map(|operand| &mut operand.subscripts);
        subscripts.for_each(|subscript| subscript.factors[self.dim] *= self.per);
        counted
    }

    /// Whether groups lie side by side, in a nest that counts them.
    fn is_side_by_side(&self, operand: &Operand) -> bool {
        let Some((last, rest)) = operand.subscripts.split_last() else { return false };
        operand.unit_stride && last.factors[self.dim] == self.per && rest.iter().all(|s| s.factors[self.dim] == 0)
    }

    /// The subscripts of a panel of `loops`, whose positions are those of `dims`; after the loops the lanes of the right one.
    pub(super) fn subscripts(&self, input: usize, dims: &[usize], loops: &[usize], count: usize) -> Vec<LinearForm> {
        let of = |(d, l): (&usize, &usize)| {
            let mut form = LinearForm::dim(*d, count + OTHER_POSITIONS);
            form.factors[*d] = if input == self.left && *l == self.dim { self.per } else { 1 };
            form
        };
        let mut lanes = LinearForm::dim(count + 1, count + OTHER_POSITIONS);
        lanes.factors[count + 1] = self.per;
        dims.iter().zip(loops).map(of).chain((input == self.right).then_some(lanes)).collect()
    }

    /// Fills the left panel: as many groups as a register has lanes where they lie side by side.
    pub(super) fn fill_left<'c>(&self, e: &mut Emit<'c>, fill: &Fill<'c, '_>, at: &[Position<'c>]) {
        let source = fill.source().clone();
        let side_by_side = self.is_side_by_side(&source);
        let sizes = if side_by_side { vec![fill.lanes, 1] } else { vec![1] };
        let last = fill.panel.loops.iter().rev().copied().find(|d| *d != self.dim);
        let along = if last == Some(self.groups) { self.groups } else { self.dim };
        self.each(e, (fill, along), at, &sizes, &mut |e, at, (step, present)| {
            let value = if side_by_side && present == self.per {
                self.line(e, fill.nest, (self.left, &source), at, step)
            } else {
                self.group(e, fill, at, (1, 1), present)
            };
            e.store_panel(value, &fill.panel.buffer, at);
        });
    }

    /// Fills the right panel for the lanes at the position; of a single register `used` lanes lie in memory.
    pub(super) fn fill_right<'c>(&self, e: &mut Emit<'c>, fill: &Fill<'c, '_>, at: &[Position<'c>], used: Width) {
        let source = fill.source();
        let lanes = fill.lanes.min(fill.width);
        let crosses = self.is_side_by_side(source) && source.access(self.vector) != Access::Contiguous;
        let whole = used == fill.width && fill.width % fill.lanes == 0;
        let sizes = if crosses && whole { vec![fill.lanes, 1] } else { vec![1] };
        self.each(e, (fill, self.dim), at, &sizes, &mut |e, at, (step, present)| {
            for first in (0..fill.width).step_by(lanes as usize) {
                let mut at = at.to_vec();
                at[self.vector] = at[self.vector].plus(first);
                at[fill.nest.loops.len() + 1] = Position::at(first);
                if self.is_grouped {
                    let value = self.line(e, fill.nest, (self.right, source), &at, lanes);
                    e.store_panel(value, &fill.panel.buffer, &at);
                } else if step == 1 {
                    let value = self.group(e, fill, &at, (lanes, used.min(lanes)), present);
                    e.store_panel(value, &fill.panel.buffer, &at);
                } else {
                    self.square(e, fill, &at);
                }
            }
        });
    }

    /// The iterations of the panel's loops; those of `along`, a loop over groups, in steps of `sizes`. `body` is told the step, and
    /// how many elements its groups have.
    fn each<'c>(
        &self,
        e: &mut Emit<'c>,
        (fill, along): (&Fill<'c, '_>, usize),
        at: &[Position<'c>],
        sizes: &[i64],
        body: Groups<'c, '_>,
    ) {
        let outer = fill.panel.loops.iter().rev().copied().filter(|d| *d != along).collect();
        fill.outer(e, outer, at.to_vec(), &mut |e, at| {
            let partial = i64::from(self.rest > 0);
            let mut whole = |e: &mut Emit<'c>, at: Vec<Position<'c>>, step| body(e, &at, (step, self.per));
            fill.each_but(e, (along, partial), sizes, &at, &mut whole);
            if let (true, Some(extent)) = (partial > 0, fill.nest.loops[self.dim].extent) {
                let mut at = at.clone();
                at[self.dim] = Position::at(extent - 1);
                body(e, &at, (1, self.rest));
            }
        });
    }

    /// A group in each of `width` lanes, of which `used` lie in memory, and of whose elements `present` do; 0 stands for the
    /// others.
    fn group<'c>(
        &self,
        e: &mut Emit<'c>,
        fill: &Fill<'c, '_>,
        at: &[Position<'c>],
        (width, used): (Width, Width),
        present: i64,
    ) -> Value<'c> {
        let element = self.element(e);
        let part = |e: &mut Emit<'c>, n: i64| {
            if n >= present {
                return e.constant(Attr::int(element, 0), element, width);
            }
            let mut source = fill.source().clone();
            source.subscripts.iter_mut().for_each(|s| s.constant += s.factors[self.dim] / self.per * n);
            let value = e.load_short(&source, at, self.vector, (width, used));
            self.narrowed(e, fill.nest, fill.panel.input, value)
        };
        let mut parts: Vec<Value> = (0..self.per).map(|n| part(e, n)).collect();
        if width == 1 {
            return e.op(ops::vector::FROM_ELEMENTS, &parts, Type::vector(&[self.per], element));
        }
        while parts.len() > 1 {
            let half = parts.len() / 2;
            parts = (0..half).map(|n| e.interleave([parts[n], parts[n + half]])).collect();
        }
        parts[0]
    }

    /// `groups` neighbouring groups of an operand in one vector.
    fn line<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        (input, source): (usize, &Operand<'c>),
        at: &[Position<'c>],
        groups: i64,
    ) -> Value<'c> {
        let loaded = e.load_line(source, at, self.per * groups);
        self.narrowed(e, nest, input, loaded)
    }

    /// Elements of an input as factors.
    fn narrowed<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, input: usize, value: Value<'c>) -> Value<'c> {
        let element = self.element(e);
        let ty = value.ty().as_vector().map_or(element, |ty| Type::vector(&ty.shape, element));
        let extension = extension(nest, input).filter(|_| value.ty() != ty);
        extension.map_or(value, |op| e.op(op.name(), &[value], ty))
    }

    /// Groups of as many columns: a transposed operand has them side by side.
    fn square<'c>(&self, e: &mut Emit<'c>, fill: &Fill<'c, '_>, at: &[Position<'c>]) {
        let (lanes, sum) = (fill.lanes, Type::integer(e.cx, GROUP_BITS as u32));
        let rows = (0..lanes).map(|row| {
            let mut at = at.to_vec();
            at[self.vector] = at[self.vector].plus(row);
            let groups = self.line(e, fill.nest, (self.right, fill.source()), &at, lanes);
            e.op(ops::vector::BITCAST, &[groups], Type::vector(&[lanes], sum))
        });
        let rows: Vec<Value> = rows.collect();
        let (row, ty) = (fill.relative(self.dim), Type::vector(&[self.per * lanes], self.element(e)));
        for (k, column) in pack::transpose(e, rows).into_iter().enumerate() {
            let mut to = at.to_vec();
            to[row] = to[row].plus(k as i64);
            let groups = e.op(ops::vector::BITCAST, &[column], ty);
            e.store_panel(groups, &fill.panel.buffer, &to);
        }
    }

    /// The group of the left operand, in all lanes.
    pub(super) fn left<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, at: &[Position<'c>], width: Width) -> Value<'c> {
        let group = self.line(e, nest, (self.left, &nest.inputs[self.left]), at, 1);
        if width == 1 {
            return group;
        }
        let sum = Type::integer(e.cx, GROUP_BITS as u32);
        let one = e.op(ops::vector::BITCAST, &[group], Type::vector(&[1], sum));
        let number = e.lanes(one, 0, 1);
        let all = e.splat(number, width);
        e.op(ops::vector::BITCAST, &[all], Type::vector(&[self.per * width], self.element(e)))
    }

    /// The groups of the right panel, or of memory where they lie in groups there.
    pub(super) fn right<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, at: &[Position<'c>], width: Width) -> Value<'c> {
        self.line(e, nest, (self.right, &nest.inputs[self.right]), at, width)
    }

    /// `sum` plus, in each lane, the sum of the products of a group; `factors` are the left one and the right one.
    pub(super) fn add<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        factors: [Value<'c>; 2],
        sum: Value<'c>,
        width: Width,
    ) -> Value<'c> {
        let signs = [self.left, self.right].map(|input| self.per == BYTES && is_unsigned(nest, input));
        let by_bytes = self.instruction.filter(|_| self.per == BYTES);
        if let Some(added) = by_bytes.and_then(|by| by.add(e, sum, factors, signs)) {
            return added;
        }
        match (self.per, width) {
            (2, 4) => self.add_pairs(e, "llvm.x86.sse2.pmadd.wd", factors, sum),
            (2, 8) => self.add_pairs(e, "llvm.x86.avx2.pmadd.wd", factors, sum),
            (2, 16) => self.add_pairs(e, "llvm.x86.avx512.pmaddw.d.512", factors, sum),
            _ => self.add_each(e, (factors, signs), sum, width),
        }
    }

    /// Where the target has it, LLVM makes one instruction of both.
    fn add_pairs<'c>(&self, e: &mut Emit<'c>, name: &str, factors: [Value<'c>; 2], sum: Value<'c>) -> Value<'c> {
        let products = e.intrinsic(name, &factors, sum.ty());
        e.op(ops::arith::ADDI, &[sum, products], sum.ty())
    }

    /// For other widths than those of registers.
    fn add_each<'c>(
        &self,
        e: &mut Emit<'c>,
        (factors, unsigned): ([Value<'c>; 2], [bool; 2]),
        sum: Value<'c>,
        width: Width,
    ) -> Value<'c> {
        let wide = Type::vector(&[self.per * width], sum.ty().element());
        let extend = |e: &mut Emit<'c>, n: usize| {
            e.op(if unsigned[n] { ops::arith::EXTUI } else { ops::arith::EXTSI }, &[factors[n]], wide)
        };
        let both = [extend(e, 0), extend(e, 1)];
        let products = e.op(ops::arith::MULI, &both, wide);
        (0..self.per).fold(sum, |sum, n| {
            let lanes: Vec<i64> = (0..width).map(|lane| self.per * lane + n).collect();
            let part = e.shuffle(products, products, &lanes);
            let part = if width == 1 { e.lanes(part, 0, 1) } else { part };
            e.op(ops::arith::ADDI, &[sum, part], sum.ty())
        })
    }
}
