//! Who frees a memref, as a block sees it.

use monopour_ir::Value;

/// Whether a block frees a memref that is not passed on. From one memref to another in the order of what is known least.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ownership<'c> {
    /// Nothing was said yet.
    #[default]
    Uninitialized,
    /// The block does where this `i1`, the indicator, is set.
    Unique(Value<'c>),
    /// One of several indicators says so, and nobody knows which.
    Unknown,
}

impl<'c> Ownership<'c> {
    /// The ownership of what is one of two memrefs.
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Uninitialized, known) | (known, Self::Uninitialized) => known,
            (Self::Unique(a), Self::Unique(b)) if a == b || is_same_constant(a, b) => self,
            _ => Self::Unknown,
        }
    }
    /// The indicator, where there is one.
    pub fn indicator(self) -> Option<Value<'c>> {
        match self {
            Self::Unique(indicator) => Some(indicator),
            _ => None,
        }
    }
    /// Whether the block always frees it.
    pub fn is_always(self) -> bool {
        self.indicator().is_some_and(is_true)
    }
}

fn is_same_constant(a: Value, b: Value) -> bool {
    a.constant_int().is_some_and(|value| b.constant_int() == Some(value))
}

/// Whether an indicator is the constant that is set.
pub fn is_true(indicator: Value) -> bool {
    indicator.constant_int().is_some_and(|v| v != 0)
}

/// Whether an indicator is the constant that is not set.
pub fn is_false(indicator: Value) -> bool {
    indicator.constant_int() == Some(0)
}
