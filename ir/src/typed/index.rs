//! Numbers that are static or dynamic: upstream's `OpFoldResult`, an array attribute beside operands.

use crate::{Attr, Context, DYNAMIC, Op, Value};
use std::ops::Range;

/// A static or dynamic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index<'c> {
    /// A constant.
    Static(i64),
    /// An SSA value.
    Dynamic(Value<'c>),
}

impl<'c> Index<'c> {
    /// The constant that a value is, or the value.
    pub fn of(value: Value<'c>) -> Self {
        value.constant_int().map_or(Self::Dynamic(value), Self::Static)
    }
    /// The constant, or [`DYNAMIC`].
    pub fn number(self) -> i64 {
        match self {
            Self::Static(number) => number,
            Self::Dynamic(_) => DYNAMIC,
        }
    }
    /// The constant, also of a value that is one.
    pub fn constant(self) -> Option<i64> {
        match self {
            Self::Static(number) => Some(number),
            Self::Dynamic(value) => value.constant_int(),
        }
    }
    /// The value, if it is dynamic.
    pub fn value(self) -> Option<Value<'c>> {
        match self {
            Self::Static(_) => None,
            Self::Dynamic(value) => Some(value),
        }
    }
    /// The numbers of a list in which [`DYNAMIC`] stands for the next one of `values`; `None` if there are too few.
    pub fn mixed(numbers: &[i64], values: impl IntoIterator<Item = Value<'c>>) -> Option<Vec<Self>> {
        let mut values = values.into_iter();
        let index = |number: &i64| match *number {
            DYNAMIC => values.next().map(Self::Dynamic),
            number => Some(Self::Static(number)),
        };
        numbers.iter().map(index).collect()
    }
}

/// An op's numbers: an attribute, beside the operands of a segment.
pub(super) fn read<'c>(op: Op<'c>, name: &str, segment: usize) -> Option<Vec<Index<'c>>> {
    Index::mixed(&op.attr(name)?.as_ints()?, op.segment_operands(segment))
}

/// `array<i64: ..>` of the numbers, [`DYNAMIC`] for values.
pub(super) fn numbers<'c>(cx: Context<'c>, list: &[Index<'c>]) -> Attr<'c> {
    Attr::dense_i64(cx, &list.iter().map(|index| index.number()).collect::<Vec<_>>())
}

/// The values of the dynamic numbers.
pub(super) fn values<'c>(list: &[Index<'c>]) -> Vec<Value<'c>> {
    list.iter().filter_map(|index| index.value()).collect()
}

/// The operands of a range.
pub(super) fn operands<'c>(op: Op<'c>, range: Range<usize>) -> Vec<Value<'c>> {
    range.map(|i| op.operand(i)).collect()
}
