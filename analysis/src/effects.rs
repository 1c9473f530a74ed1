//! Memory effects of an operation on tensors: how it uses an operand, which values alias it, which slice it reads or
//! overwrites.
//!
//! Generic over the value: facts name values by their ids, a caller's op models name those of its IR.

use crate::index::{OperandId, SliceId, ValueId};

/// Whether a value is a definition: determines the contents of its buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Definition {
    /// By the general rule: no aliasing operand, or one that writes, or contents made inside the operation.
    #[default]
    Inferred,
    /// Always, whatever its operands do.
    Always,
    /// Never: the contents are undefined (`tensor.empty`).
    Never,
}

/// Properties of the buffer of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferInfo {
    /// May be stored to. False for constants and for inputs that are not donated.
    pub writable: bool,
    /// Whether the value is a definition of the contents.
    pub definition: Definition,
    /// Is fresh (`bufferizes_to_allocation`).
    pub allocates: bool,
}

impl Default for BufferInfo {
    fn default() -> Self {
        Self { writable: true, definition: Definition::Inferred, allocates: false }
    }
}

/// Properties of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionInfo {
    /// May run several times for one execution of its operation.
    pub repetitive: bool,
    /// May run concurrently with itself.
    pub parallel: bool,
    /// A graph region: its operations are not ordered (`scf.forall.in_parallel`).
    pub graph: bool,
    /// How often it runs, when known. A cost, never used for safety.
    pub trip_count: Option<u64>,
}

/// Whether an operand's contents may be loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads<V = ValueId> {
    /// Never.
    #[default]
    No,
    /// Possibly.
    Yes,
    /// Possibly, if anything reads this value (`scf.for`: an init is read if its iteration argument is).
    IfRead(V),
}

impl<V> Reads<V> {
    /// The same over ids; possibly a read if the value has none.
    pub fn with_ids<W>(self, id: impl Fn(V) -> Option<W>) -> Reads<W> {
        match self {
            Self::No => Reads::No,
            Self::Yes => Reads::Yes,
            Self::IfRead(value) => id(value).map_or(Reads::Yes, Reads::IfRead),
        }
    }
}

/// The use of one tensor operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use<V = ValueId> {
    /// The contents may be loaded (`bufferizes_to_memory_read`).
    pub reads: Reads<V>,
    /// The buffer may be stored to (`bufferizes_to_memory_write`).
    pub writes: bool,
    /// Cannot be copied: in place before anything else is decided. Terminators' operands, and the destination of a
    /// `tensor.parallel_insert_slice`, whose write would be lost in a copy.
    pub must_in_place: bool,
    /// The operation reads and writes this operand position by position.
    /// Among all operands of the operation with this flag, each load of a position precedes each store to it.
    pub elementwise: bool,
}

impl<V: Copy> Use<V> {
    /// Forwards the buffer.
    pub const NONE: Self = Self { reads: Reads::No, writes: false, must_in_place: false, elementwise: false };
    /// Loads.
    pub const READ: Self = Self { reads: Reads::Yes, ..Self::NONE };
    /// Stores.
    pub const WRITE: Self = Self { writes: true, ..Self::NONE };
    /// Loads and stores.
    pub const READ_WRITE: Self = Self { reads: Reads::Yes, writes: true, ..Self::NONE };
    /// A terminator's: loaded behind the operation, and not copied.
    pub const TERMINATOR: Self = Self { must_in_place: true, ..Self::READ };

    /// A read if `reads`, nothing else.
    pub const fn reading(reads: bool) -> Self {
        if reads { Self::READ } else { Self::NONE }
    }
}

impl<V: Copy> Default for Use<V> {
    fn default() -> Self {
        Self::NONE
    }
}

/// The relation between the buffers of an operand in place and of its aliasing value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation<V = ValueId> {
    /// Same base, offset, sizes and strides.
    Equivalent,
    /// Equivalent if these pairs of values are (`scf.for`: iteration argument and yielded value).
    EquivalentIf {
        /// The first pair.
        first: (V, V),
        /// A second pair (`scf.while` has two).
        second: Option<(V, V)>,
    },
    /// They may share memory.
    Unknown,
}

impl<V> Relation<V> {
    /// The same over ids; unknown if a value has none.
    pub fn with_ids<W>(self, id: impl Fn(V) -> Option<W>) -> Relation<W> {
        let both = |(a, b)| Some((id(a)?, id(b)?));
        match self {
            Self::Equivalent => Relation::Equivalent,
            Self::Unknown => Relation::Unknown,
            Self::EquivalentIf { first, second } => match (both(first), second.map(both)) {
                (Some(first), None) => Relation::EquivalentIf { first, second: None },
                (Some(first), Some(Some(second))) => Relation::EquivalentIf { first, second: Some(second) },
                _ => Relation::Unknown,
            },
        }
    }
}

/// A value that aliases an operand in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias<V = ValueId> {
    /// The aliasing value: a result or block argument, of this operation or another.
    pub value: V,
    /// The relation between the buffers.
    pub relation: Relation<V>,
    /// The value always aliases this operand (not one of several).
    pub definite: bool,
    /// The types differ and the operation is not a cast.
    pub retypes: bool,
}

impl<V: Copy> Alias<V> {
    /// The value is equivalent to the operand, of the same type.
    pub const fn equivalent(value: V) -> Self {
        Self { value, relation: Relation::Equivalent, definite: true, retypes: false }
    }

    /// The value may be equivalent to the operand or to another one, of the same type (`arith.select`).
    pub const fn maybe_equivalent(value: V) -> Self {
        Self { value, relation: Relation::Equivalent, definite: false, retypes: false }
    }

    /// The value aliases the operand in an unknown way (a slice, a call).
    pub const fn unknown(value: V) -> Self {
        Self { value, relation: Relation::Unknown, definite: true, retypes: true }
    }

    /// The value is equivalent to the operand if the two values of `pair` are equivalent (`scf.for`).
    pub const fn equivalent_if(value: V, pair: (V, V)) -> Self {
        let relation = Relation::EquivalentIf { first: pair, second: None };
        Self { value, relation, definite: true, retypes: false }
    }
}

/// A number in a slice: `constant + sum(coefficient * symbol)`, symbols strictly increasing.
///
/// Two equal forms are equal numbers; symbols are the caller's SSA index values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Affine {
    /// The constant part.
    pub constant: i64,
    /// Symbols with their coefficients, none zero.
    pub terms: Vec<(u32, i64)>,
}

impl Affine {
    /// A constant.
    pub const fn constant(constant: i64) -> Self {
        Self { constant, terms: Vec::new() }
    }

    /// One symbol.
    pub fn symbol(symbol: u32) -> Self {
        Self { constant: 0, terms: vec![(symbol, 1)] }
    }

    /// The same number with sorted, merged, non-zero terms.
    /// Terms whose merged coefficient overflows are kept apart, which only hides an equality.
    pub fn normalised(mut self) -> Self {
        self.terms.sort_unstable();
        let mut merged: Vec<(u32, i64)> = Vec::with_capacity(self.terms.len());
        for (symbol, coefficient) in self.terms {
            match merged.last_mut() {
                Some(last) if last.0 == symbol && last.1.checked_add(coefficient).is_some() => last.1 += coefficient,
                _ => merged.push((symbol, coefficient)),
            }
        }
        merged.retain(|&(_, coefficient)| coefficient != 0);
        self.terms = merged;
        self
    }

    /// The number, if it has no symbols.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The sum, normalised; `None` if a number overflows.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let constant = self.constant.checked_add(other.constant)?;
        let terms = self.terms.iter().chain(&other.terms).copied().collect();
        let sum = Self { constant, terms }.normalised();
        // Terms that could not be merged would look like two symbols.
        let is_merged = sum.terms.windows(2).all(|pair| pair[0].0 != pair[1].0);
        is_merged.then_some(sum)
    }

    /// The product, if one factor is a constant; `None` also if a number overflows.
    pub fn times(&self, other: &Self) -> Option<Self> {
        let (number, factor) = match (self.as_constant(), other.as_constant()) {
            (_, Some(factor)) => (self, factor),
            (Some(factor), None) => (other, factor),
            (None, None) => return None,
        };
        let constant = number.constant.checked_mul(factor)?;
        let scaled = |&(symbol, coefficient): &(u32, i64)| Some((symbol, coefficient.checked_mul(factor)?));
        let terms = number.terms.iter().map(scaled).collect::<Option<_>>()?;
        Some(Self { constant, terms }.normalised())
    }
}

/// A hyper-rectangle of a tensor. Equal slices (after normalisation) get one [`SliceId`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slice<N = Affine> {
    /// First index, by dimension.
    pub offsets: Vec<N>,
    /// Number of elements, by dimension.
    pub sizes: Vec<N>,
    /// Distance between elements, by dimension.
    pub strides: Vec<N>,
}

/// How an operation reads or overwrites a part of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset<O = OperandId, V = ValueId, S = SliceId> {
    /// `result` is the slice of the tensor of `container`.
    Extraction {
        /// The tensor that is read from.
        container: O,
        /// The slice as a value.
        result: V,
        /// Which slice.
        slice: S,
    },
    /// The slice of `destination` is overwritten with `source`.
    Insertion {
        /// The new contents, if they are a tensor (`vector.transfer_write` has a vector).
        source: Option<O>,
        /// The tensor that is written to.
        destination: O,
        /// Which slice; none: the whole destination.
        slice: Option<S>,
    },
}
