//! Packed buffers: elements of 8 or 16 bits, several to a word.
//!
//! A store of whole words writes them; a store of one element clears its bits and sets them by atomics.

use super::module::{Ex, Kernel, Lowered, Shape, plane_size};
use super::short_float::ShortFloat;
use super::{narrow, vector};
use crate::error;
use monopour_ir::{Diagnostics, Op};
use naga::{AtomicFunction, BinaryOperator as B, Expression, Scalar, ScalarKind, Statement, UnaryOperator as U};

/// Where an access begins: the element at `index` of an array of words.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) array: Ex,
    pub(super) index: Ex,
    /// Bits of an element.
    pub(super) bits: u32,
    /// Words of an array entry: more than one where all accesses are so wide.
    pub(super) words: u32,
}

/// Loads the elements at `at`.
pub(super) fn load<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    at: Place,
    (shape, short): (Shape, Option<ShortFloat>),
) -> Result<Lowered, Diagnostics> {
    let bits = at.bits;
    if shape.lanes == 1 {
        let word = word_pointer(kernel, at, 0);
        let word = kernel.load(word);
        let shift = bit_position(kernel, at);
        let element = kernel.binary(B::ShiftRight, word, shift);
        return Ok(Lowered::One(match short {
            Some(short) => short.of_word(kernel, element, 1),
            None => element_of(kernel, element, (bits, narrow::takes_bits(op.result(0))), shape, 1),
        }));
    }
    let count = word_count(op, bits, shape)?;
    let words = load_words(kernel, at, count);
    if let Some(short) = short {
        return Ok(of_halves(kernel, short, &words, shape));
    }
    let per_word = 32 / bits;
    let lane = |i: u32| (words[(i / per_word) as usize], (i % per_word) * bits);
    let mut plane = |lanes: Vec<u32>| {
        let count = lanes.len() as u32;
        let sources: Vec<Ex> = lanes.iter().map(|i| lane(*i).0).collect();
        let shifts: Vec<Ex> = lanes.iter().map(|i| kernel.u32(lane(*i).1)).collect();
        let ty = kernel.plane_type(Shape { scalar: Scalar::U32, lanes: count });
        let source = kernel.add(Expression::Compose { ty, components: sources });
        let shift = kernel.add(Expression::Compose { ty, components: shifts });
        let elements = kernel.binary(B::ShiftRight, source, shift);
        element_of(kernel, elements, (bits, narrow::takes_bits(op.result(0))), shape, count)
    };
    Ok(match shape.lanes {
        8 => Lowered::Planes([plane(vec![0, 2, 4, 6]), plane(vec![1, 3, 5, 7])]),
        n => Lowered::One(plane((0..n).collect())),
    })
}

/// The words of an access.
fn load_words(kernel: &mut Kernel, at: Place, count: u32) -> Vec<Ex> {
    if at.words > 1 {
        let pointer = word_pointer(kernel, at, 0);
        let entry = kernel.load(pointer);
        return (0..count).map(|index| kernel.add(Expression::AccessIndex { base: entry, index })).collect();
    }
    (0..count)
        .map(|w| {
            let pointer = word_pointer(kernel, at, w);
            kernel.load(pointer)
        })
        .collect()
}

/// Two floats of each word: the even lanes are the low halves.
fn of_halves(kernel: &mut Kernel, short: ShortFloat, words: &[Ex], shape: Shape) -> Lowered {
    let [low, high] = short.of_words(kernel, words);
    let mut plane = |components: Vec<Ex>| {
        let ty = kernel.plane_type(Shape { lanes: components.len() as u32, ..shape });
        kernel.add(Expression::Compose { ty, components })
    };
    match shape.lanes {
        8 => Lowered::Planes([plane(low), plane(high)]),
        _ => Lowered::One(plane(low.into_iter().zip(high).flat_map(|(low, high)| [low, high]).collect())),
    }
}

/// Stores the elements at `at`.
pub(super) fn store<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    at: Place,
    value: Lowered,
    (shape, short): (Shape, Option<ShortFloat>),
) -> Result<(), Diagnostics> {
    let bits = at.bits;
    let mask = (1u32 << bits) - 1;
    let bits_of = |kernel: &mut Kernel<'c>, lane: Ex| match short {
        Some(short) => short.to_word(kernel, lane, 1),
        None => bits_of(kernel, lane, mask, Shape { lanes: 1, ..shape }),
    };
    if let (1, Lowered::One(element)) = (shape.lanes, value) {
        let pointer = word_pointer(kernel, at, 0);
        let shift = bit_position(kernel, at);
        let ones = kernel.u32(mask);
        let hole = kernel.binary(B::ShiftLeft, ones, shift);
        let keep = kernel.unary(U::BitwiseNot, hole);
        let element = bits_of(kernel, element);
        let set = kernel.binary(B::ShiftLeft, element, shift);
        for (fun, value) in [(AtomicFunction::And, keep), (AtomicFunction::InclusiveOr, set)] {
            kernel.push(Statement::Atomic { pointer, fun, value, result: None });
        }
        return Ok(());
    }
    let words = word_count(op, bits, shape)?;
    let lanes = vector::lanes(kernel, op, op.operand(0))?;
    let per_word = (32 / bits) as usize;
    let word_of = |kernel: &mut Kernel<'c>, lanes: &[Ex]| {
        if let (Some(short), [low, high]) = (short, lanes) {
            return short.pair_to_word(kernel, *low, *high);
        }
        let first = bits_of(kernel, lanes[0]);
        lanes.iter().enumerate().skip(1).fold(first, |word, (i, lane)| {
            let element = bits_of(kernel, *lane);
            let shift = kernel.u32(i as u32 * bits);
            let part = kernel.binary(B::ShiftLeft, element, shift);
            kernel.binary(B::InclusiveOr, word, part)
        })
    };
    let words: Vec<Ex> = lanes.chunks(per_word).take(words as usize).map(|lanes| word_of(kernel, lanes)).collect();
    store_words(kernel, at, words);
    Ok(())
}

fn store_words(kernel: &mut Kernel, at: Place, words: Vec<Ex>) {
    if at.words > 1 {
        let ty = kernel.plane_type(Shape { scalar: Scalar::U32, lanes: at.words });
        let entry = kernel.add(Expression::Compose { ty, components: words });
        let pointer = word_pointer(kernel, at, 0);
        kernel.store(pointer, entry);
        return;
    }
    for (w, word) in (0..).zip(words) {
        let pointer = word_pointer(kernel, at, w);
        kernel.store(pointer, word);
    }
}

/// Words of an access of several lanes, which starts at a word.
fn word_count(op: Op, bits: u32, shape: Shape) -> Result<u32, Diagnostics> {
    let covered = bits * shape.lanes;
    if !covered.is_multiple_of(32) {
        let ty = op.operand(0).ty();
        return Err(error::unsupported_type(op, ty, "an access to packed elements covers one of them or whole words"));
    }
    Ok(covered / 32)
}

/// The array entry `further` words behind that of an element.
fn word_pointer(kernel: &mut Kernel, at: Place, further: u32) -> Ex {
    let shift = kernel.u32((at.words * 32 / at.bits).trailing_zeros());
    let mut index = kernel.binary(B::ShiftRight, at.index, shift);
    if further > 0 {
        let further = kernel.i32(further as i32);
        index = kernel.binary(B::Add, index, further);
    }
    kernel.add(Expression::Access { base: at.array, index })
}

/// Where in its word the element at `at` begins.
fn bit_position(kernel: &mut Kernel, at: Place) -> Ex {
    let index = kernel.bitcast(at.index, ScalarKind::Uint);
    let last = kernel.u32(32 / at.bits - 1);
    let within = kernel.binary(B::And, index, last);
    let width = kernel.u32(at.bits);
    kernel.binary(B::Multiply, within, width)
}

/// The value in the low bits of a word; `are_taken`: of it only these are read.
fn element_of(kernel: &mut Kernel, word: Ex, (bits, are_taken): (u32, bool), shape: Shape, lanes: u32) -> Ex {
    if shape.scalar.kind == ScalarKind::Bool {
        return narrow::bit(kernel, word, lanes);
    }
    let signed = kernel.bitcast(word, ScalarKind::Sint);
    if are_taken { signed } else { narrow::sign_extend(kernel, signed, bits, lanes) }
}

/// The bits of a value in the low bits of a word.
fn bits_of(kernel: &mut Kernel, value: Ex, mask: u32, shape: Shape) -> Ex {
    debug_assert!(plane_size(shape.lanes).is_none(), "lanes are packed one by one");
    if shape.scalar.kind == ScalarKind::Bool {
        return kernel.convert(value, ScalarKind::Uint, 4);
    }
    let word = kernel.bitcast(value, ScalarKind::Uint);
    let mask = kernel.u32(mask);
    kernel.binary(B::And, word, mask)
}
