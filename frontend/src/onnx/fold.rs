//! Known elements: moved, and computed with, at import.

use super::DataType;
use super::operand::{Known, MAX_FOLDED, Operand};
use super::symbolic::Dim;
use super::tensor::{Tensor, count};
use std::rc::Rc;

/// The same elements under another shape.
pub fn reshape<'c>(operand: &Operand<'c>, shape: &[Dim]) -> Option<Operand<'c>> {
    let numbers: Vec<i64> = shape.iter().map(Dim::as_constant).collect::<Option<_>>()?;
    let known = match operand.known.as_ref()? {
        Known::Elements(tensor) => Known::Elements(Rc::new(Tensor { shape: numbers, ..(**tensor).clone() })),
        sizes @ Known::Sizes(_) => sizes.clone(),
        _ => return None,
    };
    Some(Operand { dtype: operand.dtype, shape: shape.to_vec(), value: None, known: Some(known) })
}

/// The known elements at these positions under a shape; `None` where they are unknown or many.
pub fn pick<'c>(operand: &Operand<'c>, shape: &[i64], positions: impl Iterator<Item = usize>) -> Option<Operand<'c>> {
    let count = count(shape).filter(|n| *n <= MAX_FOLDED)?;
    match operand.known.as_ref()? {
        Known::Sizes(sizes) => {
            let picked: Option<Vec<Dim>> = positions.map(|p| sizes.get(p).cloned()).collect();
            Some(Operand::sizes(operand.dtype, shape.to_vec(), picked.filter(|p| p.len() == count)?))
        }
        Known::Elements(tensor) => {
            let (width, bytes) = (tensor.dtype.size_bytes()?, tensor.data.bytes());
            let mut out = Vec::with_capacity(count * width);
            for position in positions {
                out.extend_from_slice(bytes.get(position * width..(position + 1) * width)?);
            }
            let picked = Tensor::new(tensor.dtype, shape.to_vec(), out);
            (picked.data.bytes().len() == count * width).then(|| Operand::constant(Rc::new(picked)))
        }
        _ => None,
    }
}

/// The elements of a tensor at these strides from `offset` on, under a shape; `None` where one is not of it.
pub fn picked(tensor: &Tensor, shape: &[i64], strides: &[i64], offset: i64) -> Option<Tensor> {
    let width = tensor.dtype.size_bytes()?;
    let elements = positions(shape, strides, offset).map(|at| tensor.data.bytes().get(at * width..(at + 1) * width));
    let bytes = elements.collect::<Option<Vec<_>>>()?.concat();
    Some(Tensor::new(tensor.dtype, shape.to_vec(), bytes))
}

/// Whether all operands are known, and their elements few.
pub fn all_known(operands: &[&Operand], shape: &[Dim]) -> bool {
    let numbers: Option<Vec<i64>> = shape.iter().map(Dim::as_constant).collect();
    numbers.and_then(|n| count(&n)).is_some_and(|n| n <= MAX_FOLDED) && operands.iter().all(|o| o.known.is_some())
}

/// Row-major positions of the elements of `shape` in a tensor of the strides `strides`, from `offset` on.
pub fn positions(shape: &[i64], strides: &[i64], offset: i64) -> impl Iterator<Item = usize> + use<> {
    // A shape without a number of elements is not folded.
    let count = count(shape).unwrap_or(0) as i64;
    let (shape, strides) = (shape.to_vec(), strides.to_vec());
    (0..count).map(move |mut at| {
        let mut position = offset;
        for (size, stride) in shape.iter().zip(&strides).rev() {
            position += at % size * stride;
            at /= size;
        }
        usize::try_from(position).unwrap_or(usize::MAX)
    })
}

/// Row-major strides of a shape.
pub fn strides(shape: &[i64]) -> Vec<i64> {
    let mut out = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        out[at - 1] = i64::wrapping_mul(out[at], shape[at]);
    }
    out
}

/// Strides with which an operand is read under a shape that it broadcasts to.
pub fn broadcast_strides(shape: &[i64], to: usize) -> Vec<i64> {
    let own = strides(shape).into_iter().zip(shape).map(|(stride, size)| if *size == 1 { 0 } else { stride });
    let mut out = vec![0; to - shape.len()];
    out.extend(own);
    out
}

/// Applies a function of sizes elementwise; `None` where operands or results are unknown, of many parts, or unsigned and not
/// known to be below 2^63.
pub fn sizes<'c>(
    operands: &[&Operand<'c>],
    dtype: DataType,
    shape: &[Dim],
    f: impl Fn(&[Dim]) -> Option<Dim>,
) -> Option<Operand<'c>> {
    let numbers: Vec<i64> = shape.iter().map(Dim::as_constant).collect::<Option<_>>()?;
    let elements = rows(operands, &numbers, |o| o.as_sizes())?;
    let unsigned: Vec<bool> = operands.iter().map(|o| o.dtype.is_unsigned()).collect();
    let is_signed = |row: &[Dim]| row.iter().zip(&unsigned).all(|(x, unsigned)| !unsigned || x.is_not_negative());
    let result = |row: &Vec<Dim>| {
        let out = f(row).filter(|out| is_signed(row) && out.is_small())?;
        // A number wraps as the type does.
        (!dtype.is_unsigned() || out.as_constant().is_some() || out.is_not_negative()).then_some(out)
    };
    let out: Vec<Dim> = elements.iter().map(result).collect::<Option<_>>()?;
    Some(Operand::sizes(dtype, numbers, out))
}

/// Applies a function of floats elementwise.
pub fn floats<'c>(
    operands: &[&Operand<'c>],
    dtype: DataType,
    shape: &[Dim],
    f: impl Fn(&[f64]) -> f64,
) -> Option<Operand<'c>> {
    let numbers: Vec<i64> = shape.iter().map(Dim::as_constant).collect::<Option<_>>()?;
    let elements = rows(operands, &numbers, |o| o.as_floats())?;
    let out: Vec<f64> = elements.iter().map(|row| f(row)).collect();
    Some(Operand::constant(Rc::new(Tensor::from_f64(dtype, numbers, &out)?)))
}

/// The elements of all operands for each element of a shape.
fn rows<'c, T: Clone>(
    operands: &[&Operand<'c>],
    shape: &[i64],
    elements: impl Fn(&Operand<'c>) -> Option<Vec<T>>,
) -> Option<Vec<Vec<T>>> {
    let count = count(shape).filter(|n| *n <= MAX_FOLDED)?;
    let mut out = vec![Vec::with_capacity(operands.len()); count];
    for operand in operands {
        let own = operand.static_shape()?;
        let values = elements(operand)?;
        let strides = broadcast_strides(&own, shape.len());
        let at = positions(shape, &strides, 0);
        for (row, position) in out.iter_mut().zip(at) {
            row.push(values.get(position)?.clone());
        }
    }
    Some(out)
}
