//! Tensors on the host, for the evaluator and the op suite.

/// Element types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dtype {
    /// IEEE half.
    F16,
    /// Brain float.
    Bf16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// Signless integer of this many bits, at most 64.
    Int(u32),
    /// Unsigned integer of this many bits: a type of the boundary, without arithmetic.
    Unsigned(u32),
    /// `index`, 64 bits here.
    Index,
}

impl Dtype {
    /// Bytes of one element in memory; `i1` takes one.
    pub fn size_bytes(self) -> usize {
        match self {
            Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::F32 => 4,
            Dtype::F64 | Dtype::Index => 8,
            Dtype::Int(bits) | Dtype::Unsigned(bits) => (bits.div_ceil(8) as usize).next_power_of_two(),
        }
    }
    /// Whether elements are floats.
    pub fn is_float(self) -> bool {
        matches!(self, Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64)
    }
    /// Bits of an integer or index.
    pub fn int_width(self) -> Option<u32> {
        match self {
            Dtype::Int(bits) | Dtype::Unsigned(bits) => Some(bits),
            Dtype::Index => Some(64),
            _ => None,
        }
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dtype::F16 => f.write_str("f16"),
            Dtype::Bf16 => f.write_str("bf16"),
            Dtype::F32 => f.write_str("f32"),
            Dtype::F64 => f.write_str("f64"),
            Dtype::Int(bits) => write!(f, "i{bits}"),
            Dtype::Unsigned(bits) => write!(f, "ui{bits}"),
            Dtype::Index => f.write_str("index"),
        }
    }
}

/// Elements in row-major order. Floats are held as f64 whatever their type; integers, unsigned ones too, sign-extended, `i1` as
/// 0 or 1.
#[derive(Clone, PartialEq, Debug)]
pub enum Data {
    /// Float elements.
    Float(Vec<f64>),
    /// Integer elements.
    Int(Vec<i64>),
}

/// A tensor value.
#[derive(Clone, PartialEq, Debug)]
pub struct HostTensor {
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions.
    pub shape: Vec<usize>,
    /// As many elements as the shape says.
    pub data: Data,
}

impl HostTensor {
    /// An `f32` tensor of these values; `None` when their number does not fit the shape.
    pub fn from_f32(shape: &[usize], values: &[f32]) -> Option<Self> {
        let data = Data::Float(values.iter().map(|v| f64::from(*v)).collect());
        Self { dtype: Dtype::F32, shape: shape.to_vec(), data }.checked()
    }
    /// Elements drawn uniformly from [-1, 1) (floats, rounded to f32) or [-8, 8) (integers) by a seeded generator.
    pub fn random(dtype: Dtype, shape: &[usize], seed: u64) -> Self {
        let count = shape.iter().product();
        let mut rng = crate::random::Rng::new(seed);
        let data = match dtype.int_width() {
            Some(1) => Data::Int((0..count).map(|_| rng.below(2) as i64).collect()),
            Some(_) => Data::Int((0..count).map(|_| rng.below(16) as i64 - 8).collect()),
            None => Data::Float((0..count).map(|_| f64::from(rng.symmetric() as f32)).collect()),
        };
        Self { dtype, shape: shape.to_vec(), data }
    }
    /// Elements drawn uniformly from `[low, high)`: floats rounded to their type, integers cut to whole numbers.
    pub fn random_within(dtype: Dtype, shape: &[usize], low: f64, high: f64, seed: u64) -> Self {
        let count = shape.iter().product();
        let mut rng = crate::random::Rng::new(seed);
        let mut next = || low + (high - low) * (rng.symmetric() + 1.0) / 2.0;
        let data = if dtype.is_float() {
            Data::Float((0..count).map(|_| decode_float(dtype, encode_float(dtype, next()))).collect())
        } else {
            let width = dtype.int_width().unwrap_or(64);
            Data::Int((0..count).map(|_| wrap(next().floor() as i64, width)).collect())
        };
        Self { dtype, shape: shape.to_vec(), data }
    }
    /// In place of some elements NaN, infinities, zeros and the least denormal, or the extreme integers: of none, of a few, or
    /// of one in six, by the seed.
    pub fn with_specials(mut self, seed: u64) -> Self {
        let (count, dtype) = (self.len() as u64, self.dtype);
        let mut rng = crate::random::Rng::new(!seed);
        let width = dtype.int_width().unwrap_or(64);
        let least = match dtype {
            Dtype::F16 => 2f64.powi(-24),
            Dtype::Bf16 => 2f64.powi(-133),
            Dtype::F32 => 2f64.powi(-149),
            _ => f64::from_bits(1),
        };
        let floats = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, least, -least];
        let integers = [0, 1, -1, i64::MIN >> (64 - width), i64::MAX >> (64 - width)];
        let some = match rng.below(4) {
            0 => 0,
            1 | 2 => 1 + rng.below(3),
            _ => count.div_ceil(6),
        };
        for _ in 0..if count == 0 { 0 } else { some } {
            let at = rng.below(count) as usize;
            match &mut self.data {
                Data::Float(values) => values[at] = *rng.pick(&floats),
                Data::Int(values) => values[at] = wrap(*rng.pick(&integers), width),
            }
        }
        self
    }
    /// Decodes little-endian elements; `None` when the length does not fit.
    pub fn from_bytes(dtype: Dtype, shape: &[usize], bytes: &[u8]) -> Option<Self> {
        let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
        if count.checked_mul(dtype.size_bytes())? != bytes.len() {
            return None;
        }
        let chunks = bytes.chunks_exact(dtype.size_bytes());
        let data = match dtype.int_width() {
            Some(width) => Data::Int(chunks.map(|c| wrap(little_endian(c) as i64, width)).collect()),
            None => Data::Float(chunks.map(|c| decode_float(dtype, little_endian(c))).collect()),
        };
        Some(Self { dtype, shape: shape.to_vec(), data })
    }
    /// Encodes the elements in little-endian order, floats rounded to the element type.
    pub fn to_bytes(&self) -> Vec<u8> {
        let width = self.dtype.size_bytes();
        let mut out = Vec::with_capacity(self.len() * width);
        match &self.data {
            Data::Float(values) => {
                for v in values {
                    out.extend_from_slice(&encode_float(self.dtype, *v).to_le_bytes()[..width]);
                }
            }
            Data::Int(values) => {
                for v in values {
                    out.extend_from_slice(&v.to_le_bytes()[..width]);
                }
            }
        }
        out
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.data {
            Data::Float(v) => v.len(),
            Data::Int(v) => v.len(),
        }
    }
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Elements as f64.
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.data {
            Data::Float(v) => v.clone(),
            Data::Int(v) => v.iter().map(|x| *x as f64).collect(),
        }
    }
    fn checked(self) -> Option<Self> {
        (self.shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)) == Some(self.len())).then_some(self)
    }
}

/// Keeps the low `width` bits: sign-extended, `i1` as 0 or 1.
pub(crate) fn wrap(value: i64, width: u32) -> i64 {
    match width {
        1 => value & 1,
        2..=63 => (value << (64 - width)) >> (64 - width),
        _ => value,
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |v, b| (v << 8) | u64::from(*b))
}

pub(crate) fn decode_float(dtype: Dtype, bits: u64) -> f64 {
    match dtype {
        Dtype::F16 => decode_half(bits as u16),
        Dtype::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
        Dtype::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

pub(crate) fn encode_float(dtype: Dtype, value: f64) -> u64 {
    match dtype {
        Dtype::F16 => u64::from(encode_half(value)),
        Dtype::Bf16 => u64::from(encode_bfloat(value as f32)),
        Dtype::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

fn decode_half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        e => (1.0 + fraction / 1024.0) * 2f64.powi(e - 15),
    }
}

fn encode_half(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let v = value.abs();
    if v.is_nan() {
        return 0x7e00;
    }
    if v >= 65520.0 {
        return sign | 0x7c00;
    }
    // The unit in the last place: 2^(e-10), or 2^-24 for subnormals. Rounding to it is to nearest even.
    let exponent = if v < 2f64.powi(-14) { -14 } else { v.log2().floor() as i32 };
    let steps = (v / 2f64.powi(exponent - 10)).round_ties_even() as u16;
    let base = if v < 2f64.powi(-14) { 0 } else { ((exponent + 15) as u16) << 10 };
    sign | if base == 0 { steps } else { base + (steps - 1024) }
}

fn encode_bfloat(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7fc0;
    }
    let bits = value.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_round_trips_every_finite_value() {
        for bits in 0..=u16::MAX {
            let value = decode_half(bits);
            if value.is_finite() {
                assert_eq!(encode_half(value), bits, "{value}");
            }
        }
    }

    #[test]
    fn integers_keep_their_width() {
        let t = HostTensor::from_bytes(Dtype::Int(8), &[3], &[0xff, 0x80, 5]).expect("fits");
        assert_eq!(t.data, Data::Int(vec![-1, -128, 5]));
        assert_eq!(t.to_bytes(), [0xff, 0x80, 5]);
        assert!(HostTensor::from_bytes(Dtype::F32, &[3], &[0; 11]).is_none());
    }
}
