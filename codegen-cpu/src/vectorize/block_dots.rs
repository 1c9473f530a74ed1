//! Sums of products of integers, of a few bits and of 8, with scales for each block of them.
//!
//! ```text
//! %out += sitofp(%x) * (uitofp(number) - zero[i, b]) * scale[i, b] * scale of x[m, b]
//!
//! for m, i (some of both), for b (as many blocks as a register of bytes holds):
//!   q[k] = (bytes[i, b, ..] >> 4 k) & 15            // each place of a byte
//!   dot  = dot(q[0], x[m, b, 0, ..]) + dot(q[1], x[m, b, 1, ..])       // 32 bits for each 8 products
//!   part[m, i] += (sitofp(dot) - zero * sitofp(dot(1, x))) * scale * scale of x
//! ```
//!
//! Integers are added before they are scaled: exact, and one multiplication for 8 products. `x` has the places of a byte apart,
//! each a line of the block, as the bytes have them when they are shifted.
//! Limits: bytes of whole vectors of 128 bits for each block; numbers of 2, 4 or 8 bits.

use super::body::{self, Place, Values};
use super::byte_dots::ByteDots;
use super::columns::{self, Known, place};
use super::combine;
use super::emit::{Emit, Position, Width};
use super::few_bits::{FewBits, Kind};
use super::nest::{Access, Nest};
use monopour_ir::bodies::constant;
use monopour_ir::{Attr, Type, Value, ops};
use monopour_program::CpuTarget;

/// Bytes of a word, which is a lane.
const WORD: i64 = 4;
/// `pmaddwd`, of 128, 256 and 512 bits.
const ADD_PAIRS: [&str; 3] = ["llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd", "llvm.x86.avx512.pmaddw.d.512"];
/// Most bytes of a block: sums of their products fit in 32 bits, less their zero points, too.
const MOST_BYTES: i64 = 1 << 15;
/// Half of the range of a byte.
const HALF: f64 = 128.0;
/// Bits of the shortest vector that is used.
const LEAST_BITS: i64 = 128;

/// The loops of such a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockDots {
    pub(super) few: FewBits,
    /// The loop over blocks, where a vector has several of them.
    pub(super) blocks: Option<usize>,
    /// Bytes of a block.
    block_bytes: i64,
    /// Lanes of a vector.
    pub(super) lanes: Width,
    instruction: Instruction,
}

/// What adds products of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Instruction {
    /// `vpdpbusd` and its like: four to a word.
    Groups(ByteDots),
    /// `pmaddubsw`: two to a half, and `pmaddwd`.
    Pairs,
    /// None: products of 16 bits.
    Plain,
}

/// The term as a product.
struct Factors<'c> {
    /// The input of 8 bits.
    row: usize,
    /// Whether numbers, of 8 bits, have a sign: those without one, less half of the range.
    signed: bool,
    /// What is subtracted of a number.
    zero: Option<Value<'c>>,
    /// What is the same for a block.
    scales: Vec<Value<'c>>,
}

impl Factors<'_> {
    /// What is subtracted of a number without a sign, if it is a constant.
    fn known(&self) -> Option<f64> {
        let half = if self.signed { HALF } else { 0.0 };
        let zero = self.zero.map_or(Some(0.0), constant)?;
        Some(zero + half).filter(|zero| zero.fract() == 0.0 && zero.abs() <= 2.0 * HALF)
    }
}

/// What rows and columns of a step share.
struct Shared<'c> {
    vectors: Known<'c, Vec<Value<'c>>>,
    sums: Known<'c, Value<'c>>,
    zeros: Known<'c, Value<'c>>,
    values: Known<'c, Value<'c>>,
}

/// The loops of such a sum; `None` for other ops.
pub(super) fn of(nest: &Nest, cpu: &CpuTarget) -> Option<BlockDots> {
    let instruction = Instruction::of(cpu);
    // Two products of bytes overflow a half.
    let bytes = if matches!(instruction, Instruction::Groups(_)) { FewBits::bytes(nest) } else { vec![] };
    FewBits::all(nest).into_iter().chain(bytes).find_map(|few| {
        let fits = |bytes: &i64| *bytes > 0 && bytes * 8 % LEAST_BITS == 0 && *bytes <= MOST_BYTES;
        let block_bytes = nest.loops[few.bytes].extent.filter(fits)?;
        let over_blocks = columns::blocks(nest, few.input, few.bytes);
        let vector = i64::from(cpu.vector_bits).max(LEAST_BITS) / 8;
        let (blocks, bytes) = match over_blocks {
            _ if block_bytes % vector == 0 => (None, vector),
            Some(blocks) if vector % block_bytes == 0 => (Some(blocks), vector),
            _ => (None, LEAST_BITS / 8),
        };
        let dots = BlockDots { few, blocks, block_bytes, lanes: bytes / WORD, instruction };
        dots.factors(nest).is_some().then_some(dots)
    })
}

impl Instruction {
    fn of(cpu: &CpuTarget) -> Self {
        let plain = if cpu.has("ssse3") { Self::Pairs } else { Self::Plain };
        ByteDots::of(cpu).map_or(plain, Self::Groups)
    }

    /// `sum`, of 32 bits, plus the products of bytes, those of a word in its lane: numbers without a sign of at most `most`, and such
    /// with one.
    fn add<'c>(self, e: &mut Emit<'c>, sum: Value<'c>, [q, x]: [&[Value<'c>]; 2], most: i64) -> Value<'c> {
        let each = || q.iter().zip(x);
        match self {
            Self::Groups(by) => {
                // Small numbers are the same with a sign.
                let unsigned = [by != ByteDots::DotProd || most > i64::from(i8::MAX), false];
                let known = "invariant: the lanes of a register";
                each().fold(sum, |sum, (q, x)| by.add(e, sum, [*q, *x], unsigned).expect(known))
            }
            Self::Pairs | Self::Plain => {
                let products: Vec<Value> = each().map(|(q, x)| self.halves(e, [*q, *x])).collect();
                let add = |e: &mut Emit<'c>, a: Value<'c>, b: Value<'c>| e.op(ops::arith::ADDI, &[a, b], a.ty());
                let halves = products[1..].iter().fold(products[0], |all, other| add(e, all, *other));
                let words = self.words(e, halves, sum.ty());
                add(e, sum, words)
            }
        }
    }

    /// Products of bytes without a sign and numbers of 16 bits with one, in words.
    fn multiply<'c>(self, e: &mut Emit<'c>, byte: Value<'c>, number: Value<'c>) -> Value<'c> {
        let (ty, lanes) = (number.ty(), number.ty().as_vector().map_or(1, |ty| ty.shape[0]));
        if !matches!(self, Self::Pairs | Self::Groups(ByteDots::Vnni)) {
            return e.op(ops::arith::MULI, &[byte, number], ty);
        }
        // On x86 a product of 32 bits is two instructions. The upper half of a byte is 0.
        let halves = Type::vector(&[2 * lanes], Type::integer(e.cx, 16));
        let both = [byte, number].map(|value| e.op(ops::vector::BITCAST, &[value], halves));
        e.intrinsic(ADD_PAIRS[lanes.ilog2() as usize - 2], &both, ty)
    }

    /// Sums of two products, of 16 bits: at most 4 numbers of 2 bits, or 2 of 4, times 127, whatever is added to them.
    fn halves<'c>(self, e: &mut Emit<'c>, [q, x]: [Value<'c>; 2]) -> Value<'c> {
        let bytes = q.ty().as_vector().map_or(1, |ty| ty.shape[0]);
        let half = Type::integer(e.cx, 16);
        let names = ["llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx512.pmaddubs.w.512"];
        if self == Self::Pairs {
            return e.intrinsic(names[bytes.ilog2() as usize - 4], &[q, x], Type::vector(&[bytes / 2], half));
        }
        let ty = Type::vector(&[bytes], half);
        let (q, x) = (e.op(ops::arith::EXTUI, &[q], ty), e.op(ops::arith::EXTSI, &[x], ty));
        let products = e.op(ops::arith::MULI, &[q, x], ty);
        pairs(e, products)
    }

    /// Sums of two halves.
    fn words<'c>(self, e: &mut Emit<'c>, halves: Value<'c>, ty: Type<'c>) -> Value<'c> {
        let (half, count) = (halves.ty().element(), halves.ty().as_vector().map_or(1, |ty| ty.shape[0]));
        if self == Self::Pairs {
            let ones = e.constant(Attr::int(half, 1), half, count);
            return e.intrinsic(ADD_PAIRS[count.ilog2() as usize - 3], &[halves, ones], ty);
        }
        let wide = e.op(ops::arith::EXTSI, &[halves], Type::vector(&[count], ty.element()));
        pairs(e, wide)
    }
}

/// Sums of neighbouring lanes.
fn pairs<'c>(e: &mut Emit<'c>, value: Value<'c>) -> Value<'c> {
    let lanes = value.ty().as_vector().map_or(1, |ty| ty.shape[0]);
    let [even, odd] = [0, 1].map(|from| e.shuffle(value, value, &(from..lanes).step_by(2).collect::<Vec<_>>()));
    e.op(ops::arith::ADDI, &[even, odd], even.ty())
}

impl BlockDots {
    /// Whether a reduction is one of those of the vectors.
    pub(super) fn has(&self, dim: usize) -> bool {
        self.few.has(dim) || self.blocks == Some(dim)
    }

    fn factors<'c>(&self, nest: &Nest<'c>) -> Option<Factors<'c>> {
        let &[sum] = <&[_; 1]>::try_from(&combine::of(nest)?[..]).ok()?;
        if !sum.op.is(ops::arith::ADDF) || sum.term.ty().float_width() != Some(32) {
            return None;
        }
        let number = self.few.number(nest)?;
        let kinds = self.few.kinds(nest, number);
        let kind = |value: &Value<'c>| kinds.get(value).copied().unwrap_or(Kind::Same);
        let signed = self.few.places.is_none() && number.uses().iter().any(|used| used.op.is(ops::arith::SITOFP));
        let is_number = |value: Value<'c>| {
            value.defining_op().is_some_and(|op| op.is(conversion(signed)) && op.operand(0) == number)
        };
        let (mut rows, mut zeros, mut scales, mut work) = (vec![], vec![], vec![], vec![sum.term]);
        while let Some(value) = work.pop() {
            let op = value.defining_op().filter(|op| op.block() == Some(nest.body));
            match op {
                _ if kind(&value) == Kind::Same => scales.push(value),
                _ if is_number(value) => zeros.push(None),
                Some(op) if op.is(ops::arith::MULF) => work.extend(op.operands()),
                Some(op)
                    if op.is(ops::arith::SUBF) && is_number(op.operand(0)) && kind(&op.operand(1)) == Kind::Same =>
                {
                    zeros.push(Some(op.operand(1)));
                }
                Some(op) if op.is(ops::arith::SITOFP) => rows.push(self.row(nest, op.operand(0))?),
                _ => return None,
            }
        }
        let (&[row], &[zero]) = (<&[_; 1]>::try_from(&rows[..]).ok()?, <&[_; 1]>::try_from(&zeros[..]).ok()?);
        inputs(nest, scales.iter().copied().chain(zero).collect())?;
        let factors = Factors { row, signed, zero, scales };
        // Zero points of numbers with a sign are integers.
        let fits =
            !signed || factors.known().is_some() || zero.is_some_and(|zero| self.byte(nest, zero, true).is_some());
        fits.then_some(factors)
    }

    /// The input of 8 bits that an argument of the body is, if its places lie apart.
    fn row(&self, nest: &Nest, value: Value) -> Option<usize> {
        let (block, input) = value.as_block_arg().filter(|(_, input)| *input < nest.inputs.len())?;
        let operand = &nest.inputs[input];
        let lines = block == nest.body
            && operand.element().integer_width() == Some(8)
            && operand.unit_stride
            && operand.stride_bytes(self.few.bytes) == Some(1)
            && self.few.places.is_none_or(|places| operand.stride_bytes(places) == Some(self.block_bytes));
        let next = self.block_bytes * self.few.per_byte();
        let follow = self.blocks.is_none_or(|blocks| operand.stride_bytes(blocks) == Some(next));
        (lines && follow).then_some(input)
    }

    /// Adds the terms of some rows to a partial sum of each, which a scalar follows.
    pub(super) fn along<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        rows: &[Vec<Position<'c>>],
        state: &[Value<'c>],
        add: &dyn Fn(&mut Emit<'c>, Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Vec<Value<'c>> {
        let factors = self.factors(nest).expect("invariant: the choice asked for them");
        let (dim, unit) = self.blocks.map_or((self.few.bytes, 1), |blocks| (blocks, self.block_bytes));
        let most = WORD * self.lanes / unit;
        let least = LEAST_BITS / 8 / unit;
        let sizes: Vec<i64> =
            std::iter::successors(Some(most), |size| Some(size / 2)).take_while(|size| *size >= least.max(1)).collect();
        let mut state = state.to_vec();
        for segment in e.segments(&nest.loops[dim], &sizes) {
            state = e.for_each(segment, &state, &mut |e, here, state| {
                self.fetch_ahead(e, nest, &factors, rows, (here, segment.step));
                let mut next = state.to_vec();
                let mut shared =
                    Shared { vectors: Known::new(), sums: Known::new(), zeros: Known::new(), values: Known::new() };
                for (row, at) in rows.iter().enumerate() {
                    let mut at = at.clone();
                    at[self.few.bytes] = Position::at(0);
                    self.few.set_place(&mut at, 0);
                    at[dim] = here;
                    let term = self.term(e, nest, &factors, (&at, segment.step * unit / WORD), &mut shared);
                    let term = self.widened(e, term);
                    next[2 * row] = add(e, next[2 * row], term);
                }
                next
            });
        }
        state
    }

    /// Fetches what the next columns read: numbers, and of several blocks what they are scaled by.
    fn fetch_ahead<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        factors: &Factors<'c>,
        rows: &[Vec<Position<'c>>],
        (here, step): (Position<'c>, i64),
    ) {
        let (few, mut at) = (self.few, rows[0].clone());
        let Some(blocks) = self.blocks else {
            return columns::fetch_bytes_ahead(e, (nest, few.input), rows, (few.bytes, here), step);
        };
        let count = columns::count(nest, few.input, rows);
        (at[few.bytes], at[blocks]) = (Position::at(0), Position::at(0));
        columns::fetch_ahead(e, (nest, few.input), &at, (few.bytes, here), [self.block_bytes, step, count]);
        let wanted = factors.scales.iter().copied().chain(factors.zero).collect();
        for input in inputs(nest, wanted).unwrap_or_default() {
            if nest.inputs[input].access(blocks) == Access::Contiguous {
                columns::fetch_ahead(e, (nest, input), &at, (blocks, here), [1, step, count]);
            }
        }
    }

    /// A term of fewer lanes: the others are 0.
    fn widened<'c>(&self, e: &mut Emit<'c>, term: Value<'c>) -> Value<'c> {
        let ty = term.ty();
        let lanes = ty.as_vector().map_or(1, |ty| ty.shape[0]);
        if lanes == self.lanes {
            return term;
        }
        let nothing = e.constant(Attr::float(ty.element(), 0.0), ty.element(), lanes);
        e.shuffle(term, nothing, &(0..self.lanes).map(|lane| lane.min(lanes)).collect::<Vec<_>>())
    }

    /// The sum of the terms of each word of some.
    fn term<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        factors: &Factors<'c>,
        (at, lanes): (&[Position<'c>], Width),
        shared: &mut Shared<'c>,
    ) -> Value<'c> {
        let [numbers, row] =
            [self.few.input, factors.row].map(|input| (nest.body.arg(input), place(nest, &[input], at)));
        let q = shared.vectors.at(e, numbers.0, numbers.1, |e| {
            let bytes = e.load_line(&nest.inputs[self.few.input], at, WORD * lanes);
            let bytes = if factors.signed { unsigned(e, bytes) } else { bytes };
            self.numbers(e, bytes, lanes)
        });
        let x = shared.vectors.at(e, row.0, row.1.clone(), |e| self.lines(e, nest, factors.row, (at, lanes)));
        let known = factors.known();
        let byte = factors.zero.and_then(|zero| self.byte(nest, zero, factors.signed)).filter(|_| known.is_none());
        // The sum of the row's numbers, times a zero point that is known; a dot of integers begins with it.
        let whole = shared.sums.at(e, row.0, row.1, |e| {
            let nothing = zeros(e, lanes);
            if known == Some(0.0) {
                return nothing;
            }
            let ones = ones(e, x[0].ty());
            let sum = self.instruction.add(e, nothing, [&vec![ones; x.len()], &x], 1);
            let Some(by) = known.map(|zero| -(zero as i64)).or(byte.map(|_| -1)) else { return sum };
            let by = e.constant(Attr::int(sum.ty().element(), by), sum.ty().element(), lanes);
            e.op(ops::arith::MULI, &[sum, by], sum.ty())
        });
        let single = Type::vector(&[lanes], Type::f32(e.cx));
        let is_later = known.is_none() && byte.is_none();
        let begin = match byte {
            Some(input) => {
                let arg = nest.body.arg(input);
                let zero = shared.zeros.at(e, arg, place(nest, &[input], at), |e| {
                    let zero = self.spread(e, nest, input, (at, lanes));
                    let zero = e.splat(zero, lanes);
                    let zero = if factors.signed { unsigned(e, zero) } else { zero };
                    e.op(ops::arith::EXTUI, &[zero], whole.ty())
                });
                self.instruction.multiply(e, zero, whole)
            }
            None if is_later => zeros(e, lanes),
            None => whole,
        };
        let dot = self.instruction.add(e, begin, [&q, &x], self.few.mask());
        let mut term = e.op(ops::arith::SITOFP, &[dot], single);
        if let Some(zero) = factors.zero.filter(|_| is_later) {
            let all = e.op(ops::arith::SITOFP, &[whole], single);
            let zero = self.same(e, nest, zero, (at, lanes), shared);
            let less = e.op(ops::arith::MULF, &[all, zero], single);
            term = e.op(ops::arith::SUBF, &[term, less], single);
        }
        for scale in &factors.scales {
            let scale = self.same(e, nest, *scale, (at, lanes), shared);
            term = e.op(ops::arith::MULF, &[term, scale], single);
        }
        term
    }

    /// The input of bytes whose numbers, with a sign or without one, a zero point is.
    fn byte(&self, nest: &Nest, zero: Value, signed: bool) -> Option<usize> {
        let op = zero.defining_op().filter(|op| op.is(conversion(signed)) && op.block() == Some(nest.body))?;
        let (block, input) = op.operand(0).as_block_arg()?;
        let is_byte = op.operand(0).ty().integer_width() == Some(8);
        Some(input).filter(|input| is_byte && block == nest.body && *input < nest.inputs.len())
    }

    /// The numbers of each place, a byte each.
    fn numbers<'c>(&self, e: &mut Emit<'c>, bytes: Value<'c>, lanes: Width) -> Vec<Value<'c>> {
        let (byte, word) = (Type::integer(e.cx, 8), Type::integer(e.cx, 32));
        let words = Type::vector(&[lanes], word);
        let all = e.op(ops::vector::BITCAST, &[bytes], words);
        let mask = e.constant(Attr::int(byte, self.few.mask()), byte, WORD * lanes);
        let place = |place: i64| {
            let by = e.constant(Attr::int(word, place * self.few.bits), word, lanes);
            let moved = e.op(ops::arith::SHRUI, &[all, by], words);
            let moved = e.op(ops::vector::BITCAST, &[moved], bytes.ty());
            e.op(ops::arith::ANDI, &[moved, mask], bytes.ty())
        };
        (0..self.few.per_byte()).map(place).collect()
    }

    /// The row's numbers for each place.
    fn lines<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        row: usize,
        (at, lanes): (&[Position<'c>], Width),
    ) -> Vec<Value<'c>> {
        let (places, bytes) = (self.few.per_byte(), WORD * lanes);
        if self.blocks.is_none() || bytes == self.block_bytes {
            let line = |place: i64| {
                let mut at = at.to_vec();
                self.few.set_place(&mut at, place);
                e.load_line(&nest.inputs[row], &at, bytes)
            };
            return (0..places).map(line).collect();
        }
        // Of several blocks each has a line.
        let all = e.load_line(&nest.inputs[row], at, places * bytes);
        let of_place = |place: i64| {
            let lane = |n: i64| (n / self.block_bytes * places + place) * self.block_bytes + n % self.block_bytes;
            e.shuffle(all, all, &(0..bytes).map(lane).collect::<Vec<_>>())
        };
        (0..places).map(of_place).collect()
    }

    /// A value that is the same for the numbers of a block, in the lanes of the block's words.
    fn same<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        value: Value<'c>,
        (at, lanes): (&[Position<'c>], Width),
        shared: &mut Shared<'c>,
    ) -> Value<'c> {
        let of = inputs(nest, vec![value]).expect("invariant: the factors have them");
        shared.values.at(e, value, place(nest, &of, at), |e| {
            let mut values = Values::new();
            for input in &of {
                values.insert(nest.body.arg(*input), self.spread(e, nest, *input, (at, lanes)));
            }
            let here = Place { at, dim: self.few.bytes, width: lanes };
            let all = body::emit(e, nest, here, &mut values, &[value]);
            e.splat(all[0], lanes)
        })
    }

    /// The element of an input for each word: of several blocks each in the lanes of its words.
    fn spread<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        input: usize,
        (at, lanes): (&[Position<'c>], Width),
    ) -> Value<'c> {
        let (operand, count) = (&nest.inputs[input], WORD * lanes / self.block_bytes);
        let Some(blocks) = self.blocks.filter(|blocks| count > 1 && operand.access(*blocks) != Access::Invariant)
        else {
            return e.load(operand, at, self.few.bytes, 1);
        };
        let each = e.load(operand, at, blocks, count);
        let words = self.block_bytes / WORD;
        e.shuffle(each, each, &(0..lanes).map(|lane| lane / words).collect::<Vec<_>>())
    }
}

/// The inputs that values of the body are computed of; `None` if of anything else than these and what is outside.
fn inputs<'c>(nest: &Nest<'c>, mut work: Vec<Value<'c>>) -> Option<Vec<usize>> {
    let mut found = vec![];
    while let Some(value) = work.pop() {
        match (value.as_block_arg(), value.defining_op()) {
            (Some((block, input)), _) if block == nest.body => found.push(input),
            (None, Some(op)) if op.block() == Some(nest.body) => {
                if op.is(ops::linalg::INDEX) {
                    return None;
                }
                work.extend(op.operands());
            }
            _ => (),
        }
    }
    found.sort_unstable();
    found.dedup();
    found.iter().all(|input| *input < nest.inputs.len()).then_some(found)
}

/// Of an integer to a float.
fn conversion(signed: bool) -> &'static str {
    if signed { ops::arith::SITOFP } else { ops::arith::UITOFP }
}

/// Numbers of 8 bits with a sign as those without one that are half of the range more.
fn unsigned<'c>(e: &mut Emit<'c>, bytes: Value<'c>) -> Value<'c> {
    let (byte, count) = (Type::integer(e.cx, 8), bytes.ty().as_vector().map_or(1, |ty| ty.shape[0]));
    let half = e.constant(Attr::int(byte, HALF as i64), byte, count);
    e.op(ops::arith::XORI, &[bytes, half], bytes.ty())
}

fn zeros<'c>(e: &mut Emit<'c>, lanes: Width) -> Value<'c> {
    let word = Type::integer(e.cx, 32);
    e.constant(Attr::int(word, 0), word, lanes)
}

fn ones<'c>(e: &mut Emit<'c>, ty: Type<'c>) -> Value<'c> {
    let lanes = ty.as_vector().map_or(1, |ty| ty.shape[0]);
    e.constant(Attr::int(ty.element(), 1), ty.element(), lanes)
}
