//! Deviations from the cost model, for measurements.
//!
//! The cost model is right about most kernels on most devices. Where a device is at hand, what the model says is compared with its
//! neighbours ([`crate::tuning`]): kernels of the same strategies in other sizes, and the plain strategy in place of a special one.

/// A deviation; none is the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Deviation {
    /// No strategy for few rows or columns, for images, for transposed inputs or on cooperative matrices.
    pub is_plain: bool,
    /// Of what one workgroup has: tiles, rows of one team.
    pub size: Scale,
    /// Of one pass of a reduction; for rows of their invocations.
    pub step: Scale,
}

/// None, then all that are measured.
pub(crate) const ALL: [Deviation; 8] = [
    Deviation { is_plain: false, size: Scale::AsIs, step: Scale::AsIs },
    Deviation { is_plain: true, size: Scale::AsIs, step: Scale::AsIs },
    Deviation { is_plain: false, size: Scale::Less, step: Scale::AsIs },
    Deviation { is_plain: false, size: Scale::More, step: Scale::AsIs },
    Deviation { is_plain: false, size: Scale::AsIs, step: Scale::Less },
    Deviation { is_plain: false, size: Scale::AsIs, step: Scale::More },
    Deviation { is_plain: false, size: Scale::More, step: Scale::More },
    Deviation { is_plain: true, size: Scale::More, step: Scale::AsIs },
];

/// A size beside the cost model's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Scale {
    /// Half.
    Less,
    /// The cost model's.
    #[default]
    AsIs,
    /// Twice.
    More,
}

impl Scale {
    /// A positive number, scaled.
    pub fn of(self, number: i64) -> i64 {
        self.choose([(number / 2).max(1), number, number.saturating_mul(2)])
    }

    /// One of three, for less, the cost model's and more.
    pub fn choose<T: Copy>(self, [less, as_is, more]: [T; 3]) -> T {
        match self {
            Scale::Less => less,
            Scale::AsIs => as_is,
            Scale::More => more,
        }
    }
}
