//! Dense blocks: what is put together of the same parts and of more each time is one buffer, in which each part is computed.

use crate::host::{devices, raw};
use crate::minimal::{Case, Copies};
use monopour::program::DType;
use monopour::runtime::HostTensor;
use std::fmt::Write;

/// Elements of a part along the dimension in which parts are put together, and along the other one.
const PART: usize = 24;
const OTHER: usize = 40;

#[derive(Clone, Copy)]
struct Block {
    /// The dimension.
    axis: usize,
    /// Parts of the last tensor.
    parts: usize,
    /// Whether each tensor is put together of the one before, not of all parts.
    is_nested: bool,
    /// Whether the first tensor is a result, too.
    returns_first: bool,
}

impl Block {
    fn ty(self, parts: usize) -> String {
        let (rows, columns) = if self.axis == 0 { (PART * parts, OTHER) } else { (OTHER, PART * parts) };
        format!("tensor<{rows}x{columns}xf32>")
    }

    /// The weights by which a part is computed of `parts` before.
    fn weights(self, parts: usize) -> [usize; 2] {
        if self.axis == 0 { [PART, PART * parts] } else { [PART * parts, PART] }
    }

    /// `%p0 = -%x`, `%p1 = exp(%x)`, `%j2 = [%p0, %p1]`, and then each part a product of all before.
    fn text(self) -> String {
        let part = self.ty(1);
        let mut args = format!("%x: {part}");
        let mut body = format!(
            "  %z = arith.constant 0.0 : f32\n  %e0 = tensor.empty() : {part}\n  \
             %p0 = linalg.negf ins(%x : {part}) outs(%e0 : {part}) -> {part}\n  \
             %p1 = linalg.exp ins(%x : {part}) outs(%e0 : {part}) -> {part}\n"
        );
        for count in 2..=self.parts {
            let (ty, axis) = (self.ty(count), self.axis);
            let all: Vec<String> = match (self.is_nested, count) {
                (true, 3..) => vec![format!("%j{}", count - 1), format!("%p{}", count - 1)],
                _ => (0..count).map(|i| format!("%p{i}")).collect(),
            };
            let types: Vec<String> = match (self.is_nested, count) {
                (true, 3..) => vec![self.ty(count - 1), part.clone()],
                _ => vec![part.clone(); count],
            };
            let (values, types) = (all.join(", "), types.join(", "));
            writeln!(body, "  %j{count} = tensor.concat dim({axis}) {values} : ({types}) -> {ty}").unwrap();
            if count == self.parts {
                break;
            }
            let [rows, columns] = self.weights(count);
            let weights = format!("tensor<{rows}x{columns}xf32>");
            write!(args, ", %w{count}: {weights}").unwrap();
            let (left, right) = (format!("%w{count} : {weights}"), format!("%j{count} : {ty}"));
            let [(a, a_ty), (b, b_ty)] = if axis == 0 { [&left, &right] } else { [&right, &left] }
                .map(|operand| operand.split_once(" : ").unwrap());
            write!(
                body,
                "  %e{count} = tensor.empty() : {part}\n  %f{count} = linalg.fill ins(%z : f32) outs(%e{count} : {part}) -> {part}\n  \
                 %p{count} = linalg.matmul ins({a}, {b} : {a_ty}, {b_ty}) outs(%f{count} : {part}) -> {part}\n"
            )
            .unwrap();
        }
        let last = (format!("%j{}", self.parts), self.ty(self.parts));
        let results = if self.returns_first { vec![last, ("%j2".to_owned(), self.ty(2))] } else { vec![last] };
        let (values, types): (Vec<String>, Vec<String>) = results.into_iter().unzip();
        let (values, types) = (values.join(", "), types.join(", "));
        format!("func.func @main({args}) -> ({types}) {{\n{body}  return {values} : {types}\n}}\n")
    }

    fn inputs(self) -> Vec<HostTensor> {
        let shape = if self.axis == 0 { [PART, OTHER] } else { [OTHER, PART] };
        let ramp = |shape: [usize; 2], seed: usize| {
            let count = shape[0] * shape[1];
            let element = |i: usize| ((i * 37 + seed * 11) % 64) as f32 / 256.0 - 0.125;
            let bytes: Vec<u8> = (0..count).flat_map(|i| element(i).to_le_bytes()).collect();
            raw(DType::F32, &shape.map(|extent| extent as u64), &bytes)
        };
        let weights = (2..self.parts).map(|count| ramp(self.weights(count), count));
        std::iter::once(ramp(shape, 0)).chain(weights).collect()
    }

    fn check(self, copies: Copies) {
        let case = Case { text: self.text(), inputs: self.inputs(), donated: 0, copies, fresh_bytes: None };
        devices().iter().for_each(|device| case.check(device));
    }
}

#[test]
fn dense_blocks_are_computed_in_one_buffer() {
    for (axis, is_nested) in [(0, false), (1, false), (0, true), (1, true)] {
        for parts in [3, 6] {
            Block { axis, parts, is_nested, returns_first: false }.check(Copies::Exactly(0));
        }
    }
}

#[test]
fn a_tensor_that_is_returned_is_one_of_its_own() {
    Block { axis: 0, parts: 4, is_nested: false, returns_first: true }.check(Copies::Some);
}
