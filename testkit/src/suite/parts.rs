//! Parts of unknown sizes, copied into and out of tensors whose lines have gaps.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Input, list};

/// A part of a tensor.
struct Part {
    whole: &'static [usize],
    offsets: &'static [usize],
    sizes: &'static [usize],
    strides: &'static [usize],
    /// The dimensions of unknown size.
    unknown: &'static [usize],
}

const PARTS: [Part; 12] = [
    // Lines: all in one tile.
    part(&[100], &[1], &[33], &[3], &[0]),
    part(&[70_001], &[0], &[35_000], &[2], &[0]),
    part(&[9], &[4], &[0], &[2], &[0]),
    // Columns, by one tile and by tiles of rows.
    part(&[40, 7], &[3, 5], &[31, 1], &[1, 1], &[0]),
    part(&[40, 12], &[3, 5], &[31, 4], &[1, 1], &[0]),
    part(&[5, 90], &[2, 11], &[3, 70], &[1, 1], &[1]),
    part(&[5, 90], &[2, 11], &[1, 35], &[1, 2], &[1]),
    part(&[17, 33], &[2, 5], &[5, 7], &[3, 4], &[0, 1]),
    part(&[3, 11, 64], &[0, 2, 0], &[3, 7, 64], &[1, 1, 1], &[1]),
    part(&[2, 3, 11, 8], &[0, 0, 10, 0], &[2, 3, 1, 8], &[1, 1, 1, 1], &[0, 2]),
    part(&[4, 6, 8], &[0, 1, 0], &[0, 3, 4], &[2, 2, 2], &[0, 1, 2]),
    // More rows than a grid has workgroups along one dimension.
    part(&[66_000, 3], &[7, 1], &[65_990, 2], &[1, 1], &[0]),
];

const fn part(
    whole: &'static [usize],
    offsets: &'static [usize],
    sizes: &'static [usize],
    strides: &'static [usize],
    unknown: &'static [usize],
) -> Part {
    Part { whole, offsets, sizes, strides, unknown }
}

pub(super) fn cases() -> Vec<Case> {
    PARTS.iter().flat_map(|part| [inserted(part), extracted(part), moved(part)]).collect()
}

impl Part {
    /// The type of the part.
    fn ty(&self) -> String {
        let size = |d: usize| if self.unknown.contains(&d) { "?".to_owned() } else { self.sizes[d].to_string() };
        format!("tensor<{}xf32>", (0..self.sizes.len()).map(size).collect::<Vec<_>>().join("x"))
    }

    /// The unknown sizes, of a tensor.
    fn dims(&self, of: &str) -> String {
        let dim = |d: &usize| {
            format!("  %c{d} = arith.constant {d} : index\n  %d{d} = tensor.dim {of}, %c{d} : {}\n", self.ty())
        };
        self.unknown.iter().map(dim).collect()
    }

    /// `[offsets] [sizes] [strides]`.
    fn brackets(&self) -> String {
        let size = |d: usize| if self.unknown.contains(&d) { format!("%d{d}") } else { self.sizes[d].to_string() };
        let sizes = (0..self.sizes.len()).map(size).collect::<Vec<_>>().join(", ");
        format!("[{}] [{sizes}] [{}]", list(self.offsets), list(self.strides))
    }

    fn case(&self, what: &str, text: &str, shapes: &[&[usize]]) -> Case {
        let name = format!("parts/{what}/{}/{}_{}", by(self.whole), by(self.sizes), by(self.strides));
        Case::of_text(&name, text, shapes.iter().map(|shape| Input::new(Dtype::F32, shape)).collect())
    }
}

/// An argument of unknown size becomes a part of another.
fn inserted(part: &Part) -> Case {
    let (whole, ty, brackets) = (super::case::tensor(part.whole), part.ty(), part.brackets());
    let text = format!(
        "func.func @main(%x: {ty}, %into: {whole}) -> {whole} {{\n{}  \
         %r = tensor.insert_slice %x into %into{brackets} : {ty} into {whole}\n  return %r : {whole}\n}}\n",
        part.dims("%x")
    );
    part.case("inserted", &text, &[part.sizes, part.whole])
}

/// A part of an argument becomes a result; its sizes are those of another argument.
fn extracted(part: &Part) -> Case {
    let (whole, ty, brackets) = (super::case::tensor(part.whole), part.ty(), part.brackets());
    let text = format!(
        "func.func @main(%like: {ty}, %x: {whole}) -> {ty} {{\n{}  \
         %r = tensor.extract_slice %x{brackets} : {whole} to {ty}\n  return %r : {ty}\n}}\n",
        part.dims("%like")
    );
    part.case("extracted", &text, &[part.sizes, part.whole])
}

/// A part of an argument becomes the same part of another: both sides of the copy have gaps.
fn moved(part: &Part) -> Case {
    let (whole, ty, brackets) = (super::case::tensor(part.whole), part.ty(), part.brackets());
    let text = format!(
        "func.func @main(%like: {ty}, %x: {whole}, %into: {whole}) -> {whole} {{\n{}  \
         %p = tensor.extract_slice %x{brackets} : {whole} to {ty}\n  \
         %r = tensor.insert_slice %p into %into{brackets} : {ty} into {whole}\n  return %r : {whole}\n}}\n",
        part.dims("%like")
    );
    part.case("moved", &text, &[part.sizes, part.whole, part.whole])
}
