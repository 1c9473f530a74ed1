//! Weights of 2, 4 or 8 bits with a scale for each block: floats that are computed of constants as a product reads them.
//!
//! ```text
//! bytes [columns, blocks, bytes of a block]    scales, zero points [columns, blocks]
//! generic (column, block, byte, place):  ((bytes >> bits * place) & mask - zero point) * scale
//! ```
//!
//! Blocks lie along a product's terms. ONNX stores such weights in this order (MatMulNBits), or as a matrix whose blocks lie along
//! any axis (DequantizeLinear): constants are laid out here. Zero points are a byte each: there are few of them.

use super::compare::convert;
use super::scalars::{Made, mul, sub};
use crate::narrow::constants::permuted;
use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::tensor::Tensor;
use crate::onnx::{Builder, DataType, Expr, Failure, LoopKind, NodeContext, Structured, fold, narrow};
use monopour_ir::{Type, Value, ops};
use std::rc::Rc;

/// Sizes of weights in blocks.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub columns: i64,
    /// Terms of a column.
    pub depth: i64,
    pub bits: i64,
    /// Terms of a block.
    pub block: i64,
    /// Whether elements of 8 bits are signed; those of fewer are not.
    pub signed: bool,
}

/// What is subtracted of each element.
pub(super) enum Zeros<'c> {
    /// A number.
    All(f64),
    /// Numbers for each column and block: floats, or integers of the weights' type, a byte each.
    Each(Operand<'c>),
    /// The same of a few bits, packed as the elements of a column.
    Packed(Operand<'c>),
}

impl<'c> Zeros<'c> {
    /// Those of integers of a byte each: one number, where all of them are the same.
    fn each(zeros: Operand<'c>) -> Self {
        let same = zeros.tensor().and_then(|tensor| {
            let (first, rest) = tensor.data.bytes().split_first()?;
            let number = match tensor.dtype {
                DataType::U8 => f64::from(*first),
                DataType::I8 => f64::from(*first as i8),
                _ => return None,
            };
            rest.iter().all(|byte| byte == first).then_some(number)
        });
        same.map_or(Self::Each(zeros), Self::All)
    }
}

impl Blocks {
    pub fn count(&self) -> i64 {
        self.depth / self.block + i64::from(self.depth % self.block != 0)
    }
    pub fn per_byte(&self) -> i64 {
        8 / self.bits
    }
    /// Bytes of a column's packed zero points.
    pub fn zero_bytes(&self) -> i64 {
        (self.count() + self.per_byte() - 1) / self.per_byte()
    }

    /// Zero points that are packed: a byte each, where they are known.
    pub fn zeros<'c>(&self, packed: &Operand<'c>) -> Zeros<'c> {
        if self.bits == 8 {
            return Zeros::each(packed.clone());
        }
        let fits =
            |tensor: &&Rc<Tensor>| tensor.data.bytes().len() as i64 == self.columns.saturating_mul(self.zero_bytes());
        let Some(tensor) = packed.tensor().filter(fits) else { return Zeros::Packed(packed.clone()) };
        let dtype = if self.bits == 2 { DataType::U2 } else { DataType::U4 };
        let columns = tensor.data.bytes().chunks_exact(self.zero_bytes() as usize);
        let bytes: Vec<u8> =
            columns.flat_map(|column| narrow::unpacked(dtype, column, self.count() as usize)).collect();
        let (name, shape) = (tensor.name.clone(), vec![self.columns, self.count()]);
        Zeros::each(Operand::constant(Rc::new(Tensor { name, dtype: DataType::U8, shape, data: bytes.into() })))
    }

    /// The weights as floats, columns first, whole blocks.
    pub fn floats<'c>(
        &self,
        b: &mut Builder<'c>,
        [bytes, scales]: [&Operand<'c>; 2],
        zeros: &Zeros<'c>,
        to: DataType,
    ) -> Result<Operand<'c>, Failure> {
        let (number, count, per_byte) = (Dim::constant, self.count(), self.per_byte());
        let shape = [self.columns, count, self.block / per_byte, per_byte].map(number);
        let loops = |n: usize| (0..n).map(Expr::Loop).collect::<Vec<_>>();
        let (bytes, scaled) = (b.reshaped(bytes, &shape[..3])?, b.reshaped(scales, &shape[..2])?);
        let mut inputs = vec![(b.value(&bytes)?, loops(3)), (b.value(&scaled)?, loops(2))];
        let mut packed = None;
        match zeros {
            Zeros::All(_) => (),
            Zeros::Each(zeros) => {
                let zeros = b.reshaped(zeros, &shape[..2])?;
                inputs.push((b.value(&zeros)?, loops(2)));
            }
            Zeros::Packed(zeros) => {
                let zeros = b.reshaped(zeros, &[number(self.columns), number(self.zero_bytes())])?;
                packed = Some(b.value(&zeros)?);
            }
        }
        let out = b.empty(to, &shape)?;
        let op = Structured { loops: vec![LoopKind::Parallel; 4], inputs, outputs: vec![(out, loops(4))] };
        let integer = if self.signed { DataType::I8 } else { DataType::U8 };
        let value = b.structured(&op, |b, e| {
            let zero = match (zeros, packed) {
                (Zeros::Each(zeros), _) => Some(convert(b, zeros.dtype, DataType::F32, e[2])?),
                (_, Some(packed)) => {
                    let zero = self.packed_zero(b, packed)?;
                    Some(convert(b, DataType::U8, DataType::F32, zero)?)
                }
                (Zeros::All(number), _) if *number != 0.0 => Some(b.number(Type::f32(b.context()), *number)),
                _ => None,
            };
            let place = b.loop_index(3)?;
            let element = self.element(b, e[0], place)?;
            let mut value = convert(b, integer, DataType::F32, element)?;
            if let Some(zero) = zero {
                value = sub(b, value, zero)?;
            }
            let scale = convert(b, scales.dtype, DataType::F32, e[1])?;
            let value = mul(b, value, scale)?;
            Ok(vec![convert(b, DataType::F32, to, value)?])
        })?[0];
        let apart = Operand::value(to, shape.to_vec(), value);
        b.reshaped(&apart, &[number(self.columns), number(count * self.block)])
    }

    /// The zero point of the column and block that the first loops are at.
    fn packed_zero<'c>(&self, b: &mut Builder<'c>, packed: Value<'c>) -> Made<'c> {
        let (column, block) = (b.loop_index(0)?, b.loop_index(1)?);
        let per_byte = b.int(block.ty(), self.per_byte());
        let (byte, place) =
            (b.binary(ops::arith::DIVUI, block, per_byte)?, b.binary(ops::arith::REMUI, block, per_byte)?);
        let byte = b.read(packed, &[column, byte])?;
        self.element(b, byte, place)
    }

    /// The integer at a place within a byte, the lowest bits first.
    fn element<'c>(&self, b: &mut Builder<'c>, byte: Value<'c>, place: Value<'c>) -> Made<'c> {
        if self.bits == 8 {
            return Ok(byte);
        }
        let place = b.op(ops::arith::INDEX_CAST, &[place], byte.ty())?;
        let width = b.int(byte.ty(), self.bits);
        let by = mul(b, place, width)?;
        let moved = b.binary(ops::arith::SHRUI, byte, by)?;
        let mask = b.int(byte.ty(), (1 << self.bits) - 1);
        b.binary(ops::arith::ANDI, moved, mask)
    }
}

/// Constants of DequantizeLinear as weights in blocks, `block` terms each along the axis, or one for all of them along another
/// one (`block` 0): `None` for other operands, numbers of whole bytes without blocks, and sizes that do not divide.
pub(super) fn dequantised<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    (axis, block): (usize, i64),
    to: DataType,
) -> Result<Option<Operand<'c>>, Failure> {
    let (x, scale, zero) = (cx.operand(0)?, cx.operand(1)?, cx.optional(2));
    let (Some(x), Some(scale)) = (x.tensor(), scale.tensor()) else { return Ok(None) };
    if zero.is_some_and(|zero| zero.tensor().is_none() || zero.dtype != x.dtype) {
        return Ok(None);
    }
    let Some(constants) = Constants::of(x, axis, block) else { return Ok(None) };
    constants.dequantised(b, scale, zero.and_then(Operand::tensor).map(|zero| &**zero), 0.0, to)
}

/// The table of GatherBlockQuantized: of bytes that hold several elements along the last dimension, or integers of few bits.
/// Bytes without zero points are less half of the range.
pub(super) fn table<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Result<Operand<'c>, Failure> {
    let (data, scale) = (cx.operand(0)?, cx.operand(2)?);
    let (bits, block) = (cx.int("bits", 4)?, cx.int("block_size", 128)?);
    let (Some(x), Some(scales)) = (data.tensor(), scale.tensor()) else {
        return Err("tables that are no constants are not supported".into());
    };
    let is_bytes = x.dtype == DataType::U8;
    let unsupported = || format!("tables of {} and {bits} bits in blocks of {block} are not supported", x.dtype);
    if block < 1 || !matches!(bits, 2 | 4 | 8) || !is_bytes && x.dtype.bits() != u32::try_from(bits).ok() {
        return Err(unsupported().into());
    }
    let apart = |tensor: &Tensor| {
        let mut tensor = tensor.clone();
        if is_bytes && bits < 8 {
            tensor.dtype = if bits == 2 { DataType::U2 } else { DataType::U4 };
            tensor.shape.last_mut().into_iter().for_each(|last| *last *= 8 / bits);
        }
        tensor
    };
    let x = apart(x);
    let axis = cx.axis(cx.int("quantize_axis", 1)?, x.shape.len())?;
    let constants = Constants::of(&x, axis, block).ok_or_else(unsupported)?;
    let zero = match cx.optional(3) {
        Some(zero) => {
            let zero = zero.tensor().ok_or("zero points that are no constants are not supported")?;
            if zero.dtype != data.dtype {
                return Err(format!("zero points of {} for elements of {}", zero.dtype, data.dtype).into());
            }
            Some(constants.first(&apart(zero)).ok_or("its zero points do not have the shape of its scales")?)
        }
        None => None,
    };
    let half = if is_bytes { 2f64.powi(bits as i32 - 1) } else { 0.0 };
    let table = constants.dequantised(b, scales, zero.as_ref(), half, scale.dtype)?;
    table.ok_or_else(|| unsupported().into())
}

/// Constant weights, and how they are laid out.
struct Constants<'a> {
    x: &'a Tensor,
    sizes: Blocks,
    /// The dimension that has scales of its own, where these are of rank 1.
    axis: usize,
    /// Dimensions, that of the terms last.
    order: Vec<usize>,
    /// The shape of scales, a number for each block.
    of_scales: Vec<i64>,
}

impl<'a> Constants<'a> {
    fn of(x: &'a Tensor, axis: usize, block: i64) -> Option<Self> {
        let (shape, rank) = (&x.shape, x.shape.len());
        let few_bits = matches!(x.dtype, DataType::U2 | DataType::I2 | DataType::U4 | DataType::I4);
        let bytes = matches!(x.dtype, DataType::U8 | DataType::I8) && block > 0;
        if !(few_bits || bytes) || rank < 2 || shape.contains(&0) {
            return None;
        }
        // Terms lie along blocks, or along the last dimension without scales of its own.
        let along = match block {
            0 if axis + 1 == rank => rank - 2,
            0 => rank - 1,
            _ => axis,
        };
        let depth = shape[along];
        let sizes = Blocks {
            columns: x.elements() as i64 / depth,
            depth,
            bits: i64::from(x.dtype.bits()?),
            block: if block > 0 { block } else { depth },
            signed: x.dtype == DataType::I8,
        };
        let divides = depth % sizes.block == 0 && sizes.block % sizes.per_byte() == 0;
        let order = (0..rank).filter(|d| *d != along).chain([along]).collect();
        let mut of_scales = shape.clone();
        of_scales[along] = sizes.count();
        divides.then_some(Self { x, sizes, axis, order, of_scales })
    }

    /// The weights as floats, in the order of the constant; without zero points less a number.
    fn dequantised<'c>(
        &self,
        b: &mut Builder<'c>,
        scale: &Tensor,
        zero: Option<&Tensor>,
        less: f64,
        to: DataType,
    ) -> Result<Option<Operand<'c>>, Failure> {
        let zeros = match zero {
            Some(zero) => self.spread(zero, self.integer(), self.flip()).map(Zeros::each),
            None => Some(Zeros::All(less + f64::from(self.flip()))),
        };
        let scales = self.spread(scale, scale.dtype, 0);
        let (Some(scales), Some(zeros)) = (scales, zeros) else { return Ok(None) };
        let weights = self.sizes.floats(b, [&self.bytes(), &scales], &zeros, to)?;
        let shape: Vec<Dim> = self.order.iter().map(|d| Dim::constant(self.x.shape[*d])).collect();
        let weights = b.reshaped(&weights, &shape)?;
        if self.order.is_sorted() {
            return Ok(Some(weights));
        }
        let mut back = vec![0; self.order.len()];
        self.order.iter().enumerate().for_each(|(position, d)| back[*d] = position);
        b.permuted(&weights, &back).map(Some)
    }

    /// The first elements of each line, as many as there are scales, as bytes: the last byte of a line may hold more.
    fn first(&self, packed: &Tensor) -> Option<Tensor> {
        let (last, outer) = packed.shape.split_last()?;
        let (count, same) = self.of_scales.split_last()?;
        if outer != same || last < count || *last < 1 {
            return None;
        }
        if last == count {
            return Some(packed.clone());
        }
        // Only bytes hold more, which have no sign.
        let each = integers(packed, 0);
        let lines = each.chunks_exact(usize::try_from(*last).ok()?);
        let bytes = lines.flat_map(|line| line[..*count as usize].iter().copied()).collect();
        let dtype = if packed.dtype.is_packed() { DataType::U8 } else { packed.dtype };
        Some(Tensor { name: packed.name.clone(), ..Tensor::new(dtype, self.of_scales.clone(), bytes) })
    }

    fn integer(&self) -> DataType {
        if self.sizes.signed { DataType::I8 } else { DataType::U8 }
    }

    /// The bit of the sign: elements of few bits with a sign are those without one, less half of the range.
    fn flip(&self) -> u8 {
        if matches!(self.x.dtype, DataType::I2 | DataType::I4) { 1 << (self.sizes.bits - 1) } else { 0 }
    }

    /// The bytes of the blocks: those of the file, where these are in order.
    fn bytes<'c>(&self) -> Operand<'c> {
        let (bits, per_byte) = (self.sizes.bits, self.sizes.per_byte());
        let shape = vec![self.sizes.columns, self.sizes.depth / per_byte];
        let made = |data| Tensor { name: self.x.name.clone(), dtype: self.integer(), shape, data };
        if self.order.is_sorted() && self.flip() == 0 {
            return Operand::constant(Rc::new(made(self.x.data.clone())));
        }
        let each = permuted(&integers(self.x, self.flip()), &self.x.shape, &self.order, 1);
        let packed = |bytes: &[u8]| bytes.iter().enumerate().fold(0, |byte, (at, e)| byte | e << (bits * at as i64));
        let bytes: Vec<u8> = each.chunks(per_byte as usize).map(packed).collect();
        Operand::constant(Rc::new(made(bytes.into())))
    }

    /// Scales or zero points, one for each block: those given, or one for all, or one for each index of the axis.
    fn spread<'c>(&self, given: &Tensor, to: DataType, flip: u8) -> Option<Operand<'c>> {
        let rank = self.of_scales.len();
        let size = to.size_bytes()?;
        let own: Vec<i64> = match given.shape[..] {
            _ if given.shape == self.of_scales => given.shape.clone(),
            [] | [1] => vec![1; rank],
            [count] if count == self.of_scales[self.axis] => {
                (0..rank).map(|d| if d == self.axis { count } else { 1 }).collect()
            }
            _ => return None,
        };
        let bytes = integers(given, flip);
        let at = fold::positions(&self.of_scales, &fold::broadcast_strides(&own, rank), 0);
        let whole: Vec<u8> = at.flat_map(|at| bytes[at * size..][..size].iter().copied()).collect();
        let bytes = permuted(&whole, &self.of_scales, &self.order, size);
        let shape = vec![self.sizes.columns, self.sizes.count()];
        Some(Operand::constant(Rc::new(Tensor { name: given.name.clone(), dtype: to, shape, data: bytes.into() })))
    }
}

/// The elements' bytes, those of few bits one to a byte, each with some bits flipped.
fn integers(tensor: &Tensor, flip: u8) -> Vec<u8> {
    if !tensor.dtype.is_packed() {
        return tensor.data.bytes().to_vec();
    }
    let each = narrow::unpacked(tensor.dtype, tensor.data.bytes(), tensor.elements());
    each.into_iter().map(|byte| byte ^ flip).collect()
}
