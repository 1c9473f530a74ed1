//! The ownership of a memref in a block, as upstream's form decides it.

use monopour_ir::Value;

/// Whether a block frees a memref that it does not forward: upstream's lattice, which knows ownership by values of the IR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlockOwnership<'c> {
    /// Not set yet.
    #[default]
    Uninitialized,
    /// The block does if this `i1`, the indicator, is set.
    Unique(Value<'c>),
    /// By one of several indicators; which one is unknown.
    Unknown,
}

impl<'c> BlockOwnership<'c> {
    /// The ownership of a memref that is one of two.
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Uninitialized, known) | (known, Self::Uninitialized) => known,
            (Self::Unique(a), Self::Unique(b)) if a == b || is_same_constant(a, b) => self,
            _ => Self::Unknown,
        }
    }
    /// The indicator, if there is one.
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

/// Whether an indicator is the constant true.
pub fn is_true(indicator: Value) -> bool {
    indicator.constant_int().is_some_and(|v| v != 0)
}

/// Whether an indicator is the constant false.
pub fn is_false(indicator: Value) -> bool {
    indicator.constant_int() == Some(0)
}
