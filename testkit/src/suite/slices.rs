//! Parts of tensors: slices out of and into others, concatenation, padding, single elements.

use super::case::{Case, by};
use super::contract::product;
use crate::host_tensor::Dtype;
use crate::text::{Program, Value, list};

/// Offsets, sizes, strides.
type Slice<'a> = (&'a [usize], &'a [usize], &'a [usize]);

/// Shapes and slices of them.
const SLICES: [(&[usize], Slice<'_>); 9] = [
    (&[100], (&[7], &[31], &[1])),
    (&[100], (&[1], &[33], &[3])),
    (&[17, 33], (&[0, 0], &[17, 10], &[1, 1])),
    (&[17, 33], (&[3, 0], &[7, 33], &[1, 1])),
    (&[17, 33], (&[2, 5], &[5, 7], &[3, 4])),
    (&[17, 33], (&[16, 32], &[1, 1], &[1, 1])),
    (&[3, 5, 7], (&[1, 0, 2], &[1, 5, 3], &[1, 1, 1])),
    (&[4, 6, 8], (&[0, 1, 0], &[2, 3, 4], &[2, 2, 2])),
    (&[64, 128], (&[32, 64], &[32, 64], &[1, 1])),
];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for (shape, slice) in SLICES {
        out.push(extracted(shape, slice, false));
        out.push(extracted(shape, slice, true));
        out.push(inserted(shape, slice, false));
        out.push(inserted(shape, slice, true));
    }
    for dtype in [Dtype::F16, Dtype::Int(32), Dtype::Int(8), Dtype::Int(1), Dtype::Index] {
        out.push(typed_insert(dtype));
        out.push(concat(dtype, &[&[3, 5], &[4, 5]], 0));
    }
    out.push(concat(Dtype::F32, &[&[7], &[9], &[1]], 0));
    out.push(concat(Dtype::F32, &[&[3, 5], &[3, 9]], 1));
    out.push(concat(Dtype::F32, &[&[2, 3, 4], &[2, 3, 7], &[2, 3, 1]], 2));
    out.push(concat(Dtype::F32, &[&[2, 3, 4], &[2, 5, 4]], 1));
    out.push(concat_of_computed());
    for (shape, low, high, value) in [
        (&[7][..], &[1][..], &[2][..], "0.0"),
        (&[7, 9], &[0, 3], &[2, 0], "1.5"),
        (&[3, 5, 7], &[1, 1, 1], &[1, 1, 1], "0.0"),
        (&[64, 60], &[0, 0], &[0, 4], "-2.0"),
        (&[1, 8, 8, 3], &[0, 1, 1, 0], &[0, 1, 1, 0], "0.0"),
        (&[5, 5], &[0, 0], &[0, 0], "3.0"),
    ] {
        out.push(pad(shape, low, high, value, false));
        out.push(pad(shape, low, high, value, true));
    }
    out.push(pad_by_index());
    out.push(pad_argument());
    out.extend([
        reduced_rank(),
        row_of_matrix(),
        insert_row(),
        halves_swapped(),
        overlapping(),
        from_elements(),
        splat(),
        token_and_patches(),
        streams(),
        kept_stream(),
    ]);
    out.extend([
        generate(),
        element_in(),
        element_out(),
        slice_of_slice(),
        sum_of_slices(),
        dynamic_offset(),
        strided_sum(),
    ]);
    out.extend([insert_twice(), insert_computed(), rows_shifted(), split_and_join()]);
    out
}

fn brackets((offsets, sizes, strides): Slice<'_>) -> String {
    format!("[{}] [{}] [{}]", list(offsets), list(sizes), list(strides))
}

/// `tensor.extract_slice`.
pub(super) fn extract(p: &mut Program, x: &Value, slice: Slice<'_>) -> Value {
    let to = crate::text::tensor(x.dtype, slice.1);
    p.op(x.dtype, slice.1, &format!("tensor.extract_slice {}{} : {} to {to}", x.name, brackets(slice), x.ty()))
}

/// `tensor.insert_slice`.
pub(super) fn insert(p: &mut Program, x: &Value, into: &Value, slice: Slice<'_>) -> Value {
    let text =
        format!("tensor.insert_slice {} into {}{} : {} into {}", x.name, into.name, brackets(slice), x.ty(), into.ty());
    p.op(into.dtype, into.shape(), &text)
}

/// A function of a tensor, as producer or consumer of a slice.
fn doubled(p: &mut Program, x: &Value) -> Value {
    p.pointwise(Dtype::F32, &[x], "%s = arith.addf %a, %a : f32")
}

fn extracted(shape: &[usize], slice: Slice<'_>, computed: bool) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    let part = extract(&mut p, &x, slice);
    let r = if computed { doubled(&mut p, &part) } else { part };
    let name = if computed { "doubled" } else { "plain" };
    let case = Case::new(format!("slices/extract_{name}/{}/{}_{}", by(shape), by(slice.1), by(slice.2)), p, &[&r]);
    // A result is a buffer of its own.
    if computed { case.dispatches(1) } else { case.may_copy() }
}

fn inserted(shape: &[usize], slice: Slice<'_>, computed: bool) -> Case {
    let mut p = Program::new();
    let (x, into) = (p.f32(slice.1), p.f32(shape));
    let (part, into) = if computed { (doubled(&mut p, &x), doubled(&mut p, &into)) } else { (x, into) };
    let r = insert(&mut p, &part, &into, slice);
    let name = if computed { "doubled" } else { "plain" };
    Case::new(format!("slices/insert_{name}/{}/{}_{}", by(shape), by(slice.1), by(slice.2)), p, &[&r]).may_copy()
}

fn typed_insert(dtype: Dtype) -> Case {
    let mut p = Program::new();
    let (x, y) = (p.input(dtype, &[3, 5]), p.input(dtype, &[7, 13]));
    let r = insert(&mut p, &x, &y, (&[2, 3], &[3, 5], &[1, 2]));
    Case::new(format!("slices/insert/{dtype}"), p, &[&r]).may_copy().within(0.0, 0.0)
}

/// `tensor.concat`.
pub(super) fn joined(p: &mut Program, parts: &[&Value], dim: usize) -> Value {
    let mut shape = parts[0].shape().to_vec();
    shape[dim] = parts.iter().map(|v| v.shape()[dim]).sum();
    let names: Vec<_> = parts.iter().map(|v| v.name.clone()).collect();
    let types: Vec<_> = parts.iter().map(|v| v.ty()).collect();
    let ty = crate::text::tensor(parts[0].dtype, &shape);
    p.op(
        parts[0].dtype,
        &shape,
        &format!("tensor.concat dim({dim}) {} : ({}) -> {ty}", names.join(", "), types.join(", ")),
    )
}

fn concat(dtype: Dtype, shapes: &[&[usize]], dim: usize) -> Case {
    let mut p = Program::new();
    let parts: Vec<_> = shapes.iter().map(|s| p.input(dtype, s)).collect();
    let r = joined(&mut p, &parts.iter().collect::<Vec<_>>(), dim);
    Case::new(format!("slices/concat/{dtype}/{dim}/{}", by(r.shape())), p, &[&r]).may_copy().within(0.0, 0.0)
}

fn concat_of_computed() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[6, 9]), p.f32(&[6, 11]));
    let (a, b) = (doubled(&mut p, &x), doubled(&mut p, &y));
    let j = joined(&mut p, &[&a, &b], 1);
    let r = doubled(&mut p, &j);
    Case::new("slices/concat_of_computed", p, &[&r]).may_copy()
}

/// `tensor.pad` with one value.
pub(super) fn padded(p: &mut Program, x: &Value, low: &[usize], high: &[usize], literal: &str) -> Value {
    let shape: Vec<_> = x.shape().iter().zip(low).zip(high).map(|((d, l), h)| d + l + h).collect();
    let value = p.constant(x.dtype, literal);
    let args: Vec<_> = (0..shape.len()).map(|d| format!("%i{d}: index")).collect();
    let text = format!(
        "tensor.pad {} low[{}] high[{}] {{\n  ^bb0({}):\n    tensor.yield {} : {}\n  }} : {} to {}",
        x.name,
        list(low),
        list(high),
        args.join(", "),
        value.name,
        x.dtype,
        x.ty(),
        crate::text::tensor(x.dtype, &shape)
    );
    p.op(x.dtype, &shape, &text)
}

fn pad(shape: &[usize], low: &[usize], high: &[usize], value: &str, computed: bool) -> Case {
    let mut p = Program::new();
    let x = p.f32(shape);
    let x = if computed { doubled(&mut p, &x) } else { x };
    let y = padded(&mut p, &x, low, high, value);
    let r = if computed { doubled(&mut p, &y) } else { y };
    let name = if computed { "doubled" } else { "plain" };
    Case::new(format!("slices/pad_{name}/{}", by(shape)), p, &[&r]).may_copy()
}

fn pad_by_index() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[5, 6]);
    let text = format!(
        "tensor.pad {} low[1, 2] high[3, 0] {{\n  ^bb0(%i: index, %j: index):\n    %n = arith.addi %i, %j : index\n    \
         %m = arith.index_cast %n : index to i32\n    %f = arith.sitofp %m : i32 to f32\n    tensor.yield %f : f32\n  }} \
         : tensor<5x6xf32> to tensor<9x8xf32>",
        x.name
    );
    let r = p.op(Dtype::F32, &[9, 8], &text);
    Case::new("slices/pad_by_index", p, &[&r]).may_copy()
}

/// The padding is an argument.
fn pad_argument() -> Case {
    let mut p = Program::new();
    let (x, v) = (p.f32(&[4, 7]), p.scalar(Dtype::F32, -1.0, 1.0));
    let text = format!(
        "tensor.pad {} low[0, 1] high[2, 1] {{\n  ^bb0(%i: index, %j: index):\n    tensor.yield {} : f32\n  }} : tensor<4x7xf32> to tensor<6x9xf32>",
        x.name, v.name
    );
    let r = p.op(Dtype::F32, &[6, 9], &text);
    Case::new("slices/pad_argument", p, &[&r]).may_copy()
}

fn reduced_rank() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[4, 5, 6]);
    let text =
        format!("tensor.extract_slice {}[2, 0, 0] [1, 5, 6] [1, 1, 1] : tensor<4x5x6xf32> to tensor<5x6xf32>", x.name);
    let part = p.op(Dtype::F32, &[5, 6], &text);
    let r = doubled(&mut p, &part);
    Case::new("slices/reduced_rank", p, &[&r])
}

fn row_of_matrix() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[9, 33]);
    let text = format!("tensor.extract_slice {}[4, 0] [1, 33] [1, 1] : tensor<9x33xf32> to tensor<33xf32>", x.name);
    let row = p.op(Dtype::F32, &[33], &text);
    let e = p.empty(Dtype::F32, &[9, 33]);
    let r = p.generic("i j", &[(&x, "i, j"), (&row, "j")], (&e, "i, j"), "%s = arith.subf %a, %b : f32");
    Case::new("slices/row_of_matrix", p, &[&r])
}

fn insert_row() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[33]), p.f32(&[9, 33]));
    let d = doubled(&mut p, &x);
    let text = format!(
        "tensor.insert_slice {} into {}[8, 0] [1, 33] [1, 1] : tensor<33xf32> into tensor<9x33xf32>",
        d.name, y.name
    );
    let r = p.op(Dtype::F32, &[9, 33], &text);
    Case::new("slices/insert_row", p, &[&r]).may_copy()
}

/// Swaps both halves of a tensor in place: at least one must be copied.
fn halves_swapped() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[10, 8]);
    let (low, high): (Slice<'_>, Slice<'_>) = ((&[0, 0], &[5, 8], &[1, 1]), (&[5, 0], &[5, 8], &[1, 1]));
    let (a, b) = (extract(&mut p, &x, low), extract(&mut p, &x, high));
    let y = insert(&mut p, &b, &x, low);
    let r = insert(&mut p, &a, &y, high);
    Case::new("slices/halves_swapped", p, &[&r]).may_copy()
}

fn overlapping() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[40]);
    let d = doubled(&mut p, &x);
    let part = extract(&mut p, &d, (&[0], &[30], &[1]));
    let r = insert(&mut p, &part, &d, (&[7], &[30], &[1]));
    Case::new("slices/overlapping", p, &[&r]).may_copy()
}

fn from_elements() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[6]);
    let elements: Vec<_> = [5, 0, 3]
        .iter()
        .map(|i| {
            let at = p.index(*i);
            p.scalar_op(Dtype::F32, &format!("tensor.extract {}[{}] : tensor<6xf32>", x.name, at.name)).name
        })
        .collect();
    let r = p.op(Dtype::F32, &[3], &format!("tensor.from_elements {} : tensor<3xf32>", elements.join(", ")));
    Case::new("slices/from_elements", p, &[&r]).may_copy()
}

fn splat() -> Case {
    let mut p = Program::new();
    let v = p.scalar(Dtype::F32, -1.0, 1.0);
    let r = p.op(Dtype::F32, &[7, 9], &format!("tensor.splat {} : tensor<7x9xf32>", v.name));
    Case::new("slices/splat", p, &[&r])
}

fn generate() -> Case {
    let mut p = Program::new();
    let r = p.op(
        Dtype::F32,
        &[11, 13],
        "tensor.generate {\n  ^bb0(%i: index, %j: index):\n    %n = arith.muli %i, %j : index\n    %m = arith.index_cast %n : index to i32\n    \
         %f = arith.sitofp %m : i32 to f32\n    tensor.yield %f : f32\n  } : tensor<11x13xf32>",
    );
    Case::new("slices/generate", p, &[&r])
}

fn element_in() -> Case {
    let mut p = Program::new();
    let (x, v) = (p.f32(&[5, 7]), p.scalar(Dtype::F32, -1.0, 1.0));
    let d = doubled(&mut p, &x);
    let (i, j) = (p.index(3), p.index(6));
    let r = p.op(
        Dtype::F32,
        &[5, 7],
        &format!("tensor.insert {} into {}[{}, {}] : tensor<5x7xf32>", v.name, d.name, i.name, j.name),
    );
    Case::new("slices/element_in", p, &[&r]).may_copy()
}

fn element_out() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[5, 7]);
    let d = doubled(&mut p, &x);
    let (i, j) = (p.index(2), p.index(5));
    let v = p.scalar_op(Dtype::F32, &format!("tensor.extract {}[{}, {}] : tensor<5x7xf32>", d.name, i.name, j.name));
    Case::new("slices/element_out", p, &[&v]).may_copy()
}

fn slice_of_slice() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[30, 40]);
    let part = extract(&mut p, &x, (&[2, 4], &[20, 30], &[1, 1]));
    let inner = extract(&mut p, &part, (&[1, 3], &[9, 9], &[2, 3]));
    let r = doubled(&mut p, &inner);
    Case::new("slices/slice_of_slice", p, &[&r]).dispatches(1)
}

fn sum_of_slices() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[12, 20]);
    let a = extract(&mut p, &x, (&[0, 0], &[12, 10], &[1, 1]));
    let b = extract(&mut p, &x, (&[0, 10], &[12, 10], &[1, 1]));
    let r = p.pointwise(Dtype::F32, &[&a, &b], "%s = arith.mulf %a, %b : f32");
    Case::new("slices/sum_of_slices", p, &[&r]).dispatches(1)
}

/// The offset of the slice is an argument.
fn dynamic_offset() -> Case {
    let mut p = Program::new();
    let (x, at) = (p.f32(&[50, 9]), p.scalar(Dtype::Index, 0.0, 40.0));
    let text = format!(
        "tensor.extract_slice {}[{}, 0] [10, 9] [1, 1] : tensor<50x9xf32> to tensor<10x9xf32>",
        x.name, at.name
    );
    let part = p.op(Dtype::F32, &[10, 9], &text);
    let r = doubled(&mut p, &part);
    Case::new("slices/dynamic_offset", p, &[&r])
}

fn strided_sum() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[33]);
    let even = extract(&mut p, &x, (&[0], &[16], &[2]));
    let odd = extract(&mut p, &x, (&[1], &[16], &[2]));
    let r = p.pointwise(Dtype::F32, &[&even, &odd], "%s = arith.addf %a, %b : f32");
    Case::new("slices/strided_sum", p, &[&r]).dispatches(1)
}

fn insert_twice() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[4, 6]), p.f32(&[4, 6]));
    let zero = p.zeros(Dtype::F32, &[9, 14]);
    let (a, b) = (doubled(&mut p, &x), doubled(&mut p, &y));
    let first = insert(&mut p, &a, &zero, (&[0, 1], &[4, 6], &[1, 1]));
    let r = insert(&mut p, &b, &first, (&[5, 8], &[4, 6], &[1, 1]));
    Case::new("slices/insert_twice", p, &[&r]).may_copy()
}

/// A part of a tensor is recomputed and inserted again.
fn insert_computed() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[20, 20]);
    let all = doubled(&mut p, &x);
    let at: Slice<'_> = (&[5, 5], &[10, 10], &[1, 1]);
    let part = extract(&mut p, &all, at);
    let t = p.pointwise(Dtype::F32, &[&part], "%s = math.tanh %a : f32");
    let r = insert(&mut p, &t, &all, at);
    Case::new("slices/insert_computed", p, &[&r]).may_copy()
}

fn rows_shifted() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[17, 10]);
    let body = extract(&mut p, &x, (&[0, 0], &[16, 10], &[1, 1]));
    let zero = p.zeros(Dtype::F32, &[17, 10]);
    let shifted = insert(&mut p, &body, &zero, (&[1, 0], &[16, 10], &[1, 1]));
    let r = p.pointwise(Dtype::F32, &[&x, &shifted], "%s = arith.subf %a, %b : f32");
    Case::new("slices/rows_shifted", p, &[&r]).may_copy()
}

fn split_and_join() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[6, 16]);
    let a = extract(&mut p, &x, (&[0, 0], &[6, 8], &[1, 1]));
    let b = extract(&mut p, &x, (&[0, 8], &[6, 8], &[1, 1]));
    let n = p.pointwise(Dtype::F32, &[&b], "%s = arith.negf %a : f32");
    let r = joined(&mut p, &[&n, &a], 1);
    Case::new("slices/split_and_join", p, &[&r]).may_copy()
}

/// A token in front of what a product makes, and places that are added: neither is copied.
fn token_and_patches() -> Case {
    let mut p = Program::new();
    let (token, x, y, places) = (p.f32(&[1, 40]), p.f32(&[16, 24]), p.f32(&[24, 40]), p.f32(&[17, 40]));
    let patches = product(&mut p, &x, &y);
    let j = joined(&mut p, &[&token, &patches], 0);
    let r = p.pointwise(Dtype::F32, &[&j, &places], "%s = arith.addf %a, %b : f32");
    Case::new("slice/token_and_patches", p, &[&r]).dispatches(2)
}

/// Two streams that are put together, scaled and turned, and scaled again by what differs along them.
fn streams() -> Case {
    let mut p = Program::new();
    let parts = [5, 9].map(|tokens| p.f32(&[3, tokens, 8]));
    let parts = parts.map(|part| p.pointwise(Dtype::F32, &[&part], "%s = math.exp %a : f32"));
    let j = joined(&mut p, &[&parts[0], &parts[1]], 1);
    let (to, by_token, by_head) = (p.empty(Dtype::F32, &[14, 8, 3]), p.f32(&[14]), p.f32(&[3]));
    let maps = [(&j, "h, t, c"), (&by_token, "t"), (&by_head, "h")];
    let body = "%m = arith.mulf %a, %b : f32; %s = arith.addf %m, %c : f32";
    let r = p.generic("t c h", &maps, (&to, "t, c, h"), body);
    let r = p.pointwise(Dtype::F32, &[&r], "%s = arith.negf %a : f32");
    Case::new("slice/streams", p, &[&r]).dispatches(2)
}

/// One of the streams is a result, too.
fn kept_stream() -> Case {
    let mut p = Program::new();
    let parts = [5, 9].map(|tokens| p.f32(&[tokens, 8]));
    let [a, b] = parts.map(|part| p.pointwise(Dtype::F32, &[&part], "%s = math.exp %a : f32"));
    let j = joined(&mut p, &[&a, &b], 0);
    let r = p.pointwise(Dtype::F32, &[&j], "%s = arith.negf %a : f32");
    Case::new("slice/kept_stream", p, &[&r, &a]).may_copy()
}
