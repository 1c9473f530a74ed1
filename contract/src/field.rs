//! Values of a dictionary attribute as plain data, which `monopour-ir` converts from and to attributes.

/// A value of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Field {
    /// A string.
    Text(String),
    /// An integer of 64 bits.
    Int(i64),
    /// `array<i64: ..>`. Arrays of narrower integers are read as this.
    Ints(Vec<i64>),
    /// `array<i32: ..>`, for writing.
    Ints32(Vec<i32>),
}

impl Field {
    /// The string.
    pub fn text(&self) -> Option<&str> {
        match self {
            Field::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer.
    pub fn int(&self) -> Option<i64> {
        match self {
            Field::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The array of integers.
    pub fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Field::Ints(values) => Some(values.clone()),
            Field::Ints32(values) => Some(values.iter().map(|v| i64::from(*v)).collect()),
            _ => None,
        }
    }
}
