//! Sums of products with numbers of a few bits: what the body computes of a number is looked up in a register.
//!
//! ```text
//! for i (some columns), for each block b:
//!   table[i] = body({0, 1, .. 15}, scale[i, b], zero point[i, b])     // all that a number of this block may become
//!   for 16 numbers of b:
//!     part[i] += x[b, ..] * table[i][bytes[i, b, ..] >> {0, 4, 8, ..}]
//! ```
//!
//! A register of AVX-512 holds 16 floats, of which `vpermps` picks one for each lane by the lowest four bits of another register:
//! three instructions for 16 products, where seven extend, mask, convert and scale the numbers. The values are the same.
//! Numbers lie in a word from its lowest bits on. Of eight bytes every second lane has the upper word: numbers 0, 8, 1, 9, and
//! so on, as which the other factor is read, once for all columns.
//! Limits: numbers of 2 or 4 bits; whole words; the other inputs lie as the numbers do, or are the same for all of a block.

use super::body::{self, Place, Values};
use super::columns::{self, Known, place};
use super::combine;
use super::emit::{Emit, Position};
use super::few_bits::{FewBits, Kind};
use super::instructions;
use super::nest::{Nest, Operand};
use monopour_ir::{Attr, Type, Value, ops};
use monopour_program::CpuTarget;
use std::collections::HashSet;

/// Lanes of a register, and entries of a table.
pub(super) const LANES: i64 = 16;
/// Most bytes of a column that are fetched before it is read.
const MOST_FETCHED: i64 = 256;
/// Bits of a lane.
const WORD_BITS: i64 = 32;

/// The loops over numbers that are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lookup(pub(super) FewBits);

/// What depends on a number alone, in the body.
struct Split<'c> {
    /// The number.
    number: Value<'c>,
    /// Values that are looked up.
    tables: Vec<Value<'c>>,
    /// Inputs that are the same for all numbers of a block.
    same: Vec<usize>,
    /// Inputs that lie as the numbers.
    lines: Vec<usize>,
    /// The term of the sum.
    term: Value<'c>,
}

/// The loops of a sum of products with numbers of few bits; `None` for other ops and targets.
pub(super) fn of(nest: &Nest, cpu: &CpuTarget) -> Option<Lookup> {
    Lookup::of(nest).filter(|_| instructions::has(cpu))
}

impl Lookup {
    fn of(nest: &Nest) -> Option<Self> {
        let whole = |lookup: &Self| {
            let extent = nest.loops[lookup.0.bytes].extent;
            extent.is_some_and(|extent| extent > 0 && extent % lookup.bytes_of_step() == 0)
        };
        FewBits::all(nest).into_iter().map(Self).filter(whole).find(|lookup| lookup.split(nest).is_some())
    }

    /// Bytes of the numbers in a register.
    pub(super) fn bytes_of_step(&self) -> i64 {
        LANES * self.0.bits / 8
    }

    /// Numbers in a word of a lane.
    fn per_word(&self) -> i64 {
        WORD_BITS / self.0.bits
    }

    /// The body in its parts; `None` where it has no such form.
    fn split<'c>(&self, nest: &Nest<'c>) -> Option<Split<'c>> {
        let &[sum] = <&[_; 1]>::try_from(&combine::of(nest)?[..]).ok()?;
        let single = |value: &Value| value.ty().float_width() == Some(32);
        let number = self.0.number(nest)?;
        let kinds = self.0.kinds(nest, number);
        let kind = |value: &Value<'c>| kinds.get(value).copied().unwrap_or(Kind::Same);
        let mut split = Split { number, tables: vec![], same: vec![], lines: vec![], term: sum.term };
        // What the term is computed of.
        let (mut work, mut seen) = (vec![(sum.term, Kind::Apart)], HashSet::new());
        while let Some((value, reader)) = work.pop() {
            let is_looked_up = reader == Kind::Apart && kind(&value) == Kind::Number;
            if is_looked_up && !split.tables.contains(&value) {
                split.tables.push(value);
            }
            if value == number || !seen.insert(value) {
                continue;
            }
            match (value.as_block_arg().filter(|(block, _)| *block == nest.body), value.defining_op()) {
                (Some((_, input)), _) if input >= nest.inputs.len() => return None,
                (Some((_, input)), _) if kind(&value) == Kind::Same => split.same.push(input),
                (Some((_, input)), _) if self.is_line(nest, &nest.inputs[input]) => split.lines.push(input),
                (None, Some(op)) if op.block() == Some(nest.body) => {
                    if op.is(ops::linalg::INDEX) && kind(&value) == Kind::Apart {
                        return None;
                    }
                    work.extend(op.operands().into_iter().map(|operand| (operand, kind(&value))));
                }
                (None, _) => (),
                _ => return None,
            }
        }
        let fits = sum.op.is(ops::arith::ADDF) && single(&sum.term) && split.tables.iter().all(single);
        (fits && !split.tables.is_empty()).then_some(split)
    }

    /// Whether the numbers of a line of an input lie side by side, as they do in the bytes.
    fn is_line(&self, nest: &Nest, operand: &Operand) -> bool {
        let bytes = operand.element().element_size_bytes().and_then(|bytes| i64::try_from(bytes).ok());
        let Some(places) = self.0.places else { return false };
        let per_byte = nest.loops[places].extent;
        operand.unit_stride
            && operand.stride_bytes(places) == bytes
            && operand.stride_bytes(self.0.bytes) == bytes.zip(per_byte).map(|(bytes, count)| bytes * count)
    }

    /// Adds the terms of a block, of each of some rows, to as many partial sums of each and a scalar.
    pub(super) fn along<'c>(
        &self,
        e: &mut Emit<'c>,
        (nest, registers): (&Nest<'c>, i64),
        rows: &[Vec<Position<'c>>],
        state: &[Value<'c>],
        add: &dyn Fn(&mut Emit<'c>, Value<'c>, Value<'c>) -> Value<'c>,
    ) -> Vec<Value<'c>> {
        let step = self.bytes_of_step();
        let split = self.split(nest).expect("invariant: the choice asked for it");
        let mut known = Known::new();
        let bytes = nest.loops[self.0.bytes].extent.unwrap_or(step);
        columns::fetch_bytes_ahead(
            e,
            (nest, self.0.input),
            rows,
            (self.0.bytes, Position::at(0)),
            bytes.min(MOST_FETCHED),
        );
        let blocks: Vec<Values> = rows.iter().map(|at| self.block(e, nest, &split, at, &mut known)).collect();
        let mut state = state.to_vec();
        for segment in e.segments(&nest.loops[self.0.bytes], &[registers * step, step]) {
            state = e.for_each(segment, &state, &mut |e, here, state| {
                let mut next = state.to_vec();
                for slot in 0..segment.step / step {
                    let mut known = Known::new();
                    for (row, at) in rows.iter().enumerate() {
                        let mut at = at.clone();
                        at[self.0.bytes] = here.plus(slot * step);
                        self.0.set_place(&mut at, 0);
                        let term = self.term(e, nest, &split, (&at, &blocks[row]), &mut known);
                        let part = &mut next[row * (registers as usize + 1) + slot as usize];
                        *part = add(e, *part, term);
                    }
                }
                next
            });
        }
        state
    }

    /// What is the same for the numbers of a block: elements of inputs, and the tables.
    fn block<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        split: &Split<'c>,
        at: &[Position<'c>],
        known: &mut Known<'c, Value<'c>>,
    ) -> Values<'c> {
        let mut values = Values::new();
        for input in &split.same {
            let load = |e: &mut Emit<'c>| e.load(&nest.inputs[*input], at, self.0.bytes, 1);
            values.insert(nest.body.arg(*input), known.at(e, nest.body.arg(*input), place(nest, &[*input], at), load));
        }
        // The place of a table: that of whatever it may be computed of.
        let here = place(nest, &split.same, at);
        let mut of_tables = values.clone();
        for table in &split.tables {
            let made = |e: &mut Emit<'c>| {
                let numbers: Vec<i64> = (0..LANES).map(|number| number & self.0.mask()).collect();
                of_tables.insert(split.number, constants(e, split.number.ty(), &numbers));
                let all = body::emit(e, nest, Place { at, dim: self.0.bytes, width: LANES }, &mut of_tables, &[*table]);
                e.splat(all[0], LANES)
            };
            values.insert(*table, known.at(e, *table, here.clone(), made));
        }
        values
    }

    /// The term of each of 16 numbers.
    fn term<'c>(
        &self,
        e: &mut Emit<'c>,
        nest: &Nest<'c>,
        split: &Split<'c>,
        (at, block): (&[Position<'c>], &Values<'c>),
        known: &mut Known<'c, Value<'c>>,
    ) -> Value<'c> {
        let mut values = block.clone();
        let here = place(nest, &[self.0.input], at);
        let words = known.at(e, nest.body.arg(self.0.input), here, |e| self.words(e, nest, at));
        for table in &split.tables {
            let found = e.intrinsic("llvm.x86.avx512.permvar.sf.512", &[block[table], words], block[table].ty());
            values.insert(*table, found);
        }
        for input in &split.lines {
            let line = |e: &mut Emit<'c>| {
                let line = e.load_line(&nest.inputs[*input], at, LANES);
                e.shuffle(line, line, &(0..LANES).map(|lane| self.number_of(lane)).collect::<Vec<_>>())
            };
            values.insert(nest.body.arg(*input), known.at(e, nest.body.arg(*input), place(nest, &[*input], at), line));
        }
        let term = body::emit(e, nest, Place { at, dim: self.0.bytes, width: LANES }, &mut values, &[split.term]);
        e.splat(term[0], LANES)
    }

    /// The number of a step that is in a lane.
    fn number_of(&self, lane: i64) -> i64 {
        let words = self.bytes_of_step() * 8 / WORD_BITS;
        lane % words * self.per_word() + lane / words
    }

    /// A number in the lowest bits of each lane.
    fn words<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, at: &[Position<'c>]) -> Value<'c> {
        let bits = 8 * self.bytes_of_step();
        let (word, step) = (Type::integer(e.cx, WORD_BITS as u32), Type::integer(e.cx, bits as u32));
        let ty = Type::vector(&[LANES], word);
        let bytes = e.load_line(&nest.inputs[self.0.input], at, self.bytes_of_step());
        let one = e.op(ops::vector::BITCAST, &[bytes], Type::vector(&[1], step));
        let one = e.lanes(one, 0, 1);
        let all = e.splat(one, LANES * WORD_BITS / bits);
        let all = if all.ty() == ty { all } else { e.op(ops::vector::BITCAST, &[all], ty) };
        let by: Vec<i64> = (0..LANES).map(|lane| self.number_of(lane) % self.per_word() * self.0.bits).collect();
        let by = constants(e, word, &by);
        e.op(ops::arith::SHRUI, &[all, by], ty)
    }
}

/// A vector of integers.
fn constants<'c>(e: &mut Emit<'c>, ty: Type<'c>, values: &[i64]) -> Value<'c> {
    let values: Vec<Value> = values.iter().map(|value| e.constant(Attr::int(ty, *value), ty, 1)).collect();
    e.op(ops::vector::FROM_ELEMENTS, &values, Type::vector(&[values.len() as i64], ty))
}
