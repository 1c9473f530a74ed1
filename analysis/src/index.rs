//! Typed indices and vectors indexed by them.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A newtype over `u32` that indexes one kind of table.
pub trait Id: Copy + Eq + Ord + fmt::Debug {
    /// The id with this index; indices beyond `u32` do not occur (an IR of that size does not fit in memory).
    fn from_index(index: usize) -> Self;
    /// The position in the table.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The id with this number.
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// The number of the id.
            pub const fn number(self) -> u32 {
                self.0
            }
        }

        impl Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }
    )*};
}

ids! {
    /// An SSA value: an op result or a block argument.
    ValueId, "v";
    /// An operation.
    OpId, "o";
    /// One operand slot of one operation (a *use*).
    OperandId, "u";
    /// A region.
    RegionId, "r";
    /// A block.
    BlockId, "b";
    /// A normalised slice (offsets, sizes, strides).
    SliceId, "s";
    /// A buffer to be placed in an arena.
    BufferId, "m";
}

/// A vector indexed by one kind of id.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IndexVec<I, T> {
    items: Vec<T>,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { items: Vec::new(), id: PhantomData }
    }

    /// A table with one copy of `value` for each of `len` ids.
    pub fn filled(value: T, len: usize) -> Self
    where
        T: Clone,
    {
        Self { items: vec![value; len], id: PhantomData }
    }

    /// Append an item and return its id.
    pub fn push(&mut self, item: T) -> I {
        let id = I::from_index(self.items.len());
        self.items.push(item);
        id
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item of `id`, if the id belongs to this table.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// The item of `id` to change, if the id belongs to this table.
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.items.get_mut(id.index())
    }

    /// All ids in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    /// All items in the order of their ids.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// All ids with their items.
    pub fn iter_enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(index, item)| (I::from_index(index), item))
    }

    /// The items as a slice.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }
}

impl<I: Id, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        Self { items: items.into_iter().collect(), id: PhantomData }
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.items).finish()
    }
}

/// A row-compressed table of lists: for each id of one table, a list of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists<I, T> {
    starts: Vec<u32>,
    items: Vec<T>,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T: Copy> Lists<I, T> {
    /// Group `pairs` by id, keeping their order, for a table of `len` ids.
    /// Pairs whose id lies outside the table are dropped.
    pub fn group(len: usize, pairs: &[(I, T)]) -> Self {
        let mut starts = vec![0_u32; len + 1];
        for (id, _) in pairs.iter().filter(|(id, _)| id.index() < len) {
            starts[id.index() + 1] += 1;
        }
        for index in 0..len {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut order = vec![0_usize; starts[len] as usize];
        for (position, (id, _)) in pairs.iter().enumerate().filter(|(_, (id, _))| id.index() < len) {
            order[next[id.index()] as usize] = position;
            next[id.index()] += 1;
        }
        let items = order.into_iter().map(|position| pairs[position].1).collect();
        Self { starts, items, id: PhantomData }
    }

    /// The list of `id`.
    pub fn of(&self, id: I) -> &[T] {
        let index = id.index();
        &self.items[self.starts[index] as usize..self.starts[index + 1] as usize]
    }
}

impl<I: Id, T: Copy> Default for Lists<I, T> {
    fn default() -> Self {
        Self { starts: vec![0], items: Vec::new(), id: PhantomData }
    }
}
