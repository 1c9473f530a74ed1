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
use super::combine;
use super::emit::{Emit, Position};
use super::instructions;
use super::nest::{Nest, Operand};
use monopour_ir::{Attr, Op, Type, Value, ops};
use monopour_program::CpuTarget;
use std::collections::{HashMap, HashSet};

/// Lanes of a register, and entries of a table.
pub(super) const LANES: i64 = 16;
/// Bits of a lane.
const WORD_BITS: i64 = 32;

/// The loops over numbers of a few bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lookup {
    /// The loop over bytes.
    pub(super) bytes: usize,
    /// The loop over the numbers of a byte.
    places: usize,
    /// Bits of a number.
    bits: i64,
    /// The input that has them.
    pub(super) input: usize,
}

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

/// How a value of the body depends on the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Not at all.
    Same,
    /// On a number alone.
    Table,
    /// On where it is, too.
    Apart,
}

/// The loops of a sum of products with numbers of few bits; `None` for other ops and targets.
pub(super) fn of(nest: &Nest, cpu: &CpuTarget) -> Option<Lookup> {
    Lookup::of(nest).filter(|_| instructions::has(cpu))
}

impl Lookup {
    fn of(nest: &Nest) -> Option<Self> {
        let reductions = nest.reductions();
        let is_bytes = |o: &Operand| o.element().integer_width() == Some(8) && o.unit_stride;
        reductions.iter().find_map(|places| {
            let bits = nest.loops[*places].extent.filter(|count| matches!(count, 2 | 4)).map(|count| 8 / count)?;
            let bytes = |input: usize| {
                let operand = &nest.inputs[input];
                let along = |d: &usize| operand.stride_bytes(*d) == Some(1) && is_bytes(operand);
                let bytes = reductions.iter().copied().find(along).filter(|_| !operand.uses(*places))?;
                Some(Self { bytes, places: *places, bits, input })
            };
            let whole = |lookup: &Self| {
                let extent = nest.loops[lookup.bytes].extent;
                extent.is_some_and(|extent| extent > 0 && extent % lookup.bytes_of_step() == 0)
            };
            let found = (0..nest.inputs.len()).filter_map(bytes).filter(whole);
            { found }.find(|lookup| lookup.split(nest).is_some())
        })
    }

    /// Whether a reduction is one of those over numbers.
    pub(super) fn has(&self, dim: usize) -> bool {
        dim == self.bytes || dim == self.places
    }

    /// Bytes of the numbers in a register.
    pub(super) fn bytes_of_step(&self) -> i64 {
        LANES * self.bits / 8
    }

    /// Numbers in a word of a lane.
    fn per_word(&self) -> i64 {
        WORD_BITS / self.bits
    }

    /// The body in its parts; `None` where it has no such form.
    fn split<'c>(&self, nest: &Nest<'c>) -> Option<Split<'c>> {
        let &[sum] = <&[_; 1]>::try_from(&combine::of(nest)?[..]).ok()?;
        let single = |value: &Value| value.ty().float_width() == Some(32);
        let number = nest.body.ops().into_iter().find(|op| self.is_number(nest, *op))?.result(0);
        let kinds = self.kinds(nest, number);
        let kind = |value: &Value<'c>| kinds.get(value).copied().unwrap_or(Kind::Same);
        let mut split = Split { number, tables: vec![], same: vec![], lines: vec![], term: sum.term };
        // What the term is computed of.
        let (mut work, mut seen) = (vec![(sum.term, Kind::Apart)], HashSet::new());
        while let Some((value, reader)) = work.pop() {
            let is_looked_up = reader == Kind::Apart && kind(&value) == Kind::Table;
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

    /// How the values of the body depend on the numbers.
    fn kinds<'c>(&self, nest: &Nest<'c>, number: Value<'c>) -> HashMap<Value<'c>, Kind> {
        let varies = |o: &Operand| o.uses(self.bytes) || o.uses(self.places);
        let of_input = |input: usize| if varies(&nest.inputs[input]) { Kind::Apart } else { Kind::Same };
        let mut kinds: HashMap<Value, Kind> =
            (0..nest.inputs.len()).map(|input| (nest.body.arg(input), of_input(input))).collect();
        for op in nest.body.ops() {
            let dim = op.attr("dim").and_then(|dim| usize::try_from(dim.as_int()?).ok());
            let own = if dim.is_some_and(|dim| self.has(dim)) { Kind::Apart } else { Kind::Same };
            let of = |value: &Value<'c>| kinds.get(value).copied().unwrap_or(Kind::Same);
            let kind = op.operands().iter().map(of).fold(own, Kind::max);
            for result in op.results() {
                kinds.insert(result, if result == number { Kind::Table } else { kind });
            }
        }
        kinds
    }

    /// Whether the numbers of a line of an input lie side by side, as they do in the bytes.
    fn is_line(&self, nest: &Nest, operand: &Operand) -> bool {
        let bytes = operand.element().element_size_bytes().and_then(|bytes| i64::try_from(bytes).ok());
        let per_byte = nest.loops[self.places].extent;
        operand.unit_stride
            && operand.stride_bytes(self.places) == bytes
            && operand.stride_bytes(self.bytes) == bytes.zip(per_byte).map(|(bytes, count)| bytes * count)
    }

    /// Whether an op takes the number out of its byte.
    fn is_number(&self, nest: &Nest, op: Op) -> bool {
        let per_byte = 8 / self.bits;
        let mask = (1 << self.bits) - 1;
        let takes = |byte: i64, place: i64| {
            let at = Bits { lookup: self, arg: nest.body.arg(self.input), byte, place };
            op.results().len() == 1 && at.of(op.result(0)) == Some(byte >> (self.bits * place) & mask)
        };
        op.dialect() == "arith" && (0..per_byte).all(|place| (0..256).all(|byte| takes(byte, place)))
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
        let mut known = Known::default();
        let blocks: Vec<Values> = rows.iter().map(|at| self.block(e, nest, &split, at, &mut known)).collect();
        let mut state = state.to_vec();
        for segment in e.segments(&nest.loops[self.bytes], &[registers * step, step]) {
            state = e.for_each(segment, &state, &mut |e, here, state| {
                let mut next = state.to_vec();
                for slot in 0..segment.step / step {
                    let mut known = Known::default();
                    for (row, at) in rows.iter().enumerate() {
                        let mut at = at.clone();
                        at[self.bytes] = here.plus(slot * step);
                        at[self.places] = Position::at(0);
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
        known: &mut Known<'c>,
    ) -> Values<'c> {
        let mut values = Values::new();
        for input in &split.same {
            let load = |e: &mut Emit<'c>| e.load(&nest.inputs[*input], at, self.bytes, 1);
            values.insert(nest.body.arg(*input), known.at(e, nest.body.arg(*input), place(nest, &[*input], at), load));
        }
        // The place of a table: that of whatever it may be computed of.
        let here = place(nest, &split.same, at);
        let mut of_tables = values.clone();
        for table in &split.tables {
            let made = |e: &mut Emit<'c>| {
                let numbers: Vec<i64> = (0..LANES).map(|number| number & ((1 << self.bits) - 1)).collect();
                of_tables.insert(split.number, constants(e, split.number.ty(), &numbers));
                let all = body::emit(e, nest, Place { at, dim: self.bytes, width: LANES }, &mut of_tables, &[*table]);
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
        known: &mut Known<'c>,
    ) -> Value<'c> {
        let mut values = block.clone();
        let here = place(nest, &[self.input], at);
        let words = known.at(e, nest.body.arg(self.input), here, |e| self.words(e, nest, at));
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
        let term = body::emit(e, nest, Place { at, dim: self.bytes, width: LANES }, &mut values, &[split.term]);
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
        let bytes = e.load_line(&nest.inputs[self.input], at, self.bytes_of_step());
        let one = e.op(ops::vector::BITCAST, &[bytes], Type::vector(&[1], step));
        let one = e.lanes(one, 0, 1);
        let all = e.splat(one, LANES * WORD_BITS / bits);
        let all = if all.ty() == ty { all } else { e.op(ops::vector::BITCAST, &[all], ty) };
        let by: Vec<i64> = (0..LANES).map(|lane| self.number_of(lane) % self.per_word() * self.bits).collect();
        let by = constants(e, word, &by);
        e.op(ops::arith::SHRUI, &[all, by], ty)
    }
}

/// Values that several rows read.
#[derive(Default)]
struct Known<'c>(Vec<(Value<'c>, Vec<Position<'c>>, Value<'c>)>);

impl<'c> Known<'c> {
    /// The value that stands for one of the body at a place, made where it is not known.
    fn at(
        &mut self,
        e: &mut Emit<'c>,
        of: Value<'c>,
        place: Vec<Position<'c>>,
        make: impl FnOnce(&mut Emit<'c>) -> Value<'c>,
    ) -> Value<'c> {
        if let Some((.., value)) = self.0.iter().find(|(known, at, _)| *known == of && *at == place) {
            return *value;
        }
        let value = make(e);
        self.0.push((of, place, value));
        value
    }
}

/// The positions of the loops that some inputs depend on.
fn place<'c>(nest: &Nest<'c>, inputs: &[usize], at: &[Position<'c>]) -> Vec<Position<'c>> {
    let uses = |d: &usize| inputs.iter().any(|input| nest.inputs[*input].uses(*d));
    (0..nest.loops.len()).filter(uses).map(|d| at[d]).collect()
}

/// A vector of integers.
fn constants<'c>(e: &mut Emit<'c>, ty: Type<'c>, values: &[i64]) -> Value<'c> {
    let values: Vec<Value> = values.iter().map(|value| e.constant(Attr::int(ty, *value), ty, 1)).collect();
    e.op(ops::vector::FROM_ELEMENTS, &values, Type::vector(&[values.len() as i64], ty))
}

/// A byte, and the place of a number in it: what integer ops of the body come to.
struct Bits<'c, 'a> {
    lookup: &'a Lookup,
    arg: Value<'c>,
    byte: i64,
    place: i64,
}

impl<'c> Bits<'c, '_> {
    /// The bits of a value; `None` where it depends on anything else.
    fn of(&self, value: Value<'c>) -> Option<i64> {
        if value == self.arg {
            return Some(self.byte);
        }
        let op = value.defining_op()?;
        let width = value.ty().integer_width().unwrap_or(64);
        let mask = if width < 64 { (1 << width) - 1 } else { i64::MAX };
        let operand = |n: usize| self.of(op.operand(n));
        let bits = match op.name() {
            ops::arith::CONSTANT => op.attr("value")?.as_int()?,
            ops::linalg::INDEX => {
                let dim = usize::try_from(op.attr("dim")?.as_int()?).ok();
                Some(self.place).filter(|_| dim == Some(self.lookup.places))?
            }
            ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI if value.ty().is_index() => return None,
            ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI | ops::arith::EXTUI | ops::arith::TRUNCI => operand(0)?,
            ops::arith::ANDI => operand(0)? & operand(1)?,
            ops::arith::SHRUI => operand(0)?.checked_shr(operand(1)?.try_into().ok()?)?,
            ops::arith::SHLI => operand(0)?.checked_shl(operand(1)?.try_into().ok()?)?,
            ops::arith::MULI => operand(0)?.checked_mul(operand(1)?)?,
            ops::arith::ADDI => operand(0)?.checked_add(operand(1)?)?,
            _ => return None,
        };
        Some(bits & mask)
    }
}
