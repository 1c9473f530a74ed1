//! Packed buffers: elements of 8 or 16 bits, several to a word.
//!
//! A store of whole words writes them; a store of one element clears its bits and sets them by atomics.

use super::module::{Ex, Kernel, Lowered, Shape, plane_size};
use super::{brain, narrow, vector};
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
}

/// Loads the elements at `at`.
pub(super) fn load<'c>(kernel: &mut Kernel<'c>, op: Op<'c>, at: Place, shape: Shape) -> Result<Lowered, Diagnostics> {
    let bits = at.bits;
    if shape.lanes == 1 {
        let word = word_pointer(kernel, at, 0);
        let word = kernel.load(word);
        let shift = bit_position(kernel, at);
        let element = kernel.binary(B::ShiftRight, word, shift);
        return Ok(Lowered::One(element_of(kernel, element, bits, shape, 1)));
    }
    let words = word_count(op, bits, shape)?;
    let words: Vec<Ex> = (0..words)
        .map(|w| {
            let pointer = word_pointer(kernel, at, w);
            kernel.load(pointer)
        })
        .collect();
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
        element_of(kernel, elements, bits, shape, count)
    };
    Ok(match shape.lanes {
        8 => Lowered::Planes([plane(vec![0, 2, 4, 6]), plane(vec![1, 3, 5, 7])]),
        n => Lowered::One(plane((0..n).collect())),
    })
}

/// Stores the elements at `at`.
pub(super) fn store<'c>(
    kernel: &mut Kernel<'c>,
    op: Op<'c>,
    at: Place,
    value: Lowered,
    shape: Shape,
) -> Result<(), Diagnostics> {
    let bits = at.bits;
    let mask = (1u32 << bits) - 1;
    if let (1, Lowered::One(element)) = (shape.lanes, value) {
        let pointer = word_pointer(kernel, at, 0);
        let shift = bit_position(kernel, at);
        let ones = kernel.u32(mask);
        let hole = kernel.binary(B::ShiftLeft, ones, shift);
        let keep = kernel.unary(U::BitwiseNot, hole);
        let bits_of = bits_of(kernel, element, mask, shape);
        let set = kernel.binary(B::ShiftLeft, bits_of, shift);
        for (fun, value) in [(AtomicFunction::And, keep), (AtomicFunction::InclusiveOr, set)] {
            kernel.push(Statement::Atomic { pointer, fun, value, result: None });
        }
        return Ok(());
    }
    let words = word_count(op, bits, shape)?;
    let lanes = vector::lanes(kernel, op, op.operand(0))?;
    let per_word = (32 / bits) as usize;
    for (w, lanes) in lanes.chunks(per_word).enumerate().take(words as usize) {
        let mut word = None;
        for (i, lane) in lanes.iter().enumerate() {
            let element = bits_of(kernel, *lane, mask, Shape { lanes: 1, ..shape });
            let shift = kernel.u32(i as u32 * bits);
            let part = if i == 0 { element } else { kernel.binary(B::ShiftLeft, element, shift) };
            word = Some(word.map_or(part, |word| kernel.binary(B::InclusiveOr, word, part)));
        }
        let pointer = word_pointer(kernel, at, w as u32);
        kernel.store(pointer, word.expect("a word has lanes"));
    }
    Ok(())
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

fn word_pointer(kernel: &mut Kernel, at: Place, further: u32) -> Ex {
    let shift = kernel.u32((32 / at.bits).trailing_zeros());
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

/// The value in the low bits of a word.
fn element_of(kernel: &mut Kernel, word: Ex, bits: u32, shape: Shape, lanes: u32) -> Ex {
    if shape.scalar.kind == ScalarKind::Bool {
        return narrow::bit(kernel, word, lanes);
    }
    if shape.scalar.kind == ScalarKind::Float {
        return brain::from_word(kernel, word, lanes);
    }
    let signed = kernel.bitcast(word, ScalarKind::Sint);
    narrow::sign_extend(kernel, signed, bits, lanes)
}

/// The bits of a value in the low bits of a word.
fn bits_of(kernel: &mut Kernel, value: Ex, mask: u32, shape: Shape) -> Ex {
    debug_assert!(plane_size(shape.lanes).is_none(), "lanes are packed one by one");
    if shape.scalar.kind == ScalarKind::Bool {
        return kernel.convert(value, ScalarKind::Uint, 4);
    }
    if shape.scalar.kind == ScalarKind::Float {
        return brain::to_word(kernel, value, 1);
    }
    let word = kernel.bitcast(value, ScalarKind::Uint);
    let mask = kernel.u32(mask);
    kernel.binary(B::And, word, mask)
}
