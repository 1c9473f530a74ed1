//! The choice that tiling makes for a dispatch, and that distribution and code generation obey: `monopour.kernel`.
//!
//! ```mlir
//! monopour.kernel = {class = "contraction", reduction_step = 8 : i64, register_tile = array<i64: 16, 8>, share = "subgroup",
//!                    subgroup_size = 8 : i64, tile = array<i64: 16, 64>, vector_width = 8 : i64,
//!                    workgroup_size = array<i32: 8, 1, 1>}
//! ```
//!
//! Every entry but `workgroup_size` may be missing and then has its value of [`KernelChoice::default`].

use crate::Field;
use std::fmt;

/// Largest stride of a line that native code reads by vectors: all elements are loaded, and those of the loop picked.
pub const MAX_INTERLEAVED: i64 = 4;

/// Most keys of an attention on a software adapter, which leaves loops after 65,535 iterations: 29 for each 32 keys.
pub const MOST_ATTENTION_KEYS: i64 = 1 << 16;
/// Most workgroup memory of an attention's tile: 64 rows, each of the scores of 32 keys and one more, and three numbers.
pub const MOST_ATTENTION_BYTES: u32 = 64 * (33 + 3) * 4;

/// Registers side by side in the widest register tile of a product, on CPUs of registers of [`WIDE_TILE_BITS`] bits or more:
/// tasks have multiples of as many columns.
pub const WIDE_TILE_REGISTERS: i64 = 3;
/// Bits of a register from which on there are enough of them.
pub const WIDE_TILE_BITS: u32 = 512;

/// Most stack for one buffer of a task on a CPU: the scores of 64 rows of an attention over 640 keys.
pub const MOST_TASK_BUFFER_BYTES: u64 = 160 << 10;
/// Most bytes of the panel that holds the windows of a convolution's line on a task's stack; the second-level cache holds it.
pub const MOST_LINE_PANEL_BYTES: i64 = 160 << 10;
/// Most stack for all buffers of a task on a CPU: an eighth of the 2 MiB stack of a worker thread.
pub const MOST_TASK_BYTES: u64 = 256 << 10;

/// Most invocations of a workgroup in one dimension.
const MAX_WORKGROUP_DIMENSION: i64 = 1024;

/// Declares an enum whose values are texts of the attribute.
macro_rules! texts {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub enum $name { $($(#[$value_doc])* $value),* }

        impl $name {
            /// All values.
            pub const ALL: &[$name] = &[$($name::$value),*];

            /// The text in the attribute.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$value => $text),* }
            }

            /// The value of a text.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.as_str() == text)
            }
        }
    };
}

texts! {
    /// The computation of a dispatch, which decides the strategy that distribution tries first.
    KernelClass {
        /// Pointwise ops.
        Elementwise = "elementwise",
        /// Sums of products over shared loops.
        Contraction = "contraction",
        /// Reductions along rows, and pointwise ops on the same rows.
        Row = "row",
        /// Reductions whose results are neighbours in memory, split over the invocations of a workgroup.
        Column = "column",
        /// Sums of products over windows.
        Convolution = "convolution",
        /// A softmax of products, and sums of products with it.
        Attention = "attention",
        /// Any other body. An unknown text is read as this.
        #[default]
        Generic = "generic",
    }
}

texts! {
    /// The memory in which invocations share operands.
    Sharing {
        /// Each invocation loads its own. An unknown text is read as this.
        #[default]
        None = "none",
        /// Registers of the subgroup, by shuffles.
        Subgroup = "subgroup",
        /// Workgroup memory, between barriers.
        Workgroup = "workgroup",
        /// Workgroup memory, from which subgroups load cooperative matrices.
        Cooperative = "cooperative",
    }
}

/// The choice for one dispatch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelChoice {
    /// The computation.
    pub class: KernelClass,
    /// Tile size per dimension of the grid.
    pub tile: Vec<i64>,
    /// Invocations per workgroup: x, y, z.
    pub workgroup_size: [i32; 3],
    /// Elements that one invocation holds per dimension of the tile; empty: the strategy's default.
    pub register_tile: Vec<i64>,
    /// Iterations of a reduction in one pass of its loop.
    pub reduction_step: i64,
    /// Lanes of the widest access.
    pub vector_width: i64,
    /// The memory in which operands are shared.
    pub sharing: Sharing,
    /// Lanes of a subgroup, if the choice depends on them.
    pub subgroup_size: Option<i64>,
    /// The name of the dispatch's structure, while its time is measured.
    pub measured_as: Option<String>,
}

impl Default for KernelChoice {
    fn default() -> Self {
        Self {
            class: KernelClass::default(),
            tile: vec![],
            workgroup_size: [1, 1, 1],
            register_tile: vec![],
            // Each carried value costs a store and a load per pass on software adapters, which eight products outweigh.
            reduction_step: 8,
            vector_width: 1,
            sharing: Sharing::default(),
            subgroup_size: None,
            measured_as: None,
        }
    }
}

/// An error of [`KernelChoice::decode`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidChoice {
    /// `workgroup_size` is missing, is no array of one to three integers, or one of them is out of range.
    WorkgroupSize,
}

impl fmt::Display for InvalidChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidChoice::WorkgroupSize => f.write_str("workgroup_size is not an array of one to three sizes"),
        }
    }
}

impl KernelChoice {
    /// The entries of the attribute, by name.
    pub fn encode(&self) -> Vec<(&'static str, Field)> {
        let mut entries = vec![
            ("class", Field::Text(self.class.as_str().to_owned())),
            ("reduction_step", Field::Int(self.reduction_step)),
            ("register_tile", Field::Ints(self.register_tile.clone())),
            ("share", Field::Text(self.sharing.as_str().to_owned())),
            ("tile", Field::Ints(self.tile.clone())),
            ("vector_width", Field::Int(self.vector_width)),
            ("workgroup_size", Field::Ints32(self.workgroup_size.to_vec())),
        ];
        entries.extend(self.subgroup_size.map(|size| ("subgroup_size", Field::Int(size))));
        entries.extend(self.measured_as.clone().map(|name| ("measured_as", Field::Text(name))));
        entries
    }

    /// The choice of a dictionary; `get` returns an entry by name. Entries of another type count as missing.
    ///
    /// # Errors
    /// [`InvalidChoice`].
    pub fn decode(get: impl Fn(&str) -> Option<Field>) -> Result<Self, InvalidChoice> {
        let int = |name: &str| get(name).and_then(|f| f.int());
        let ints = |name: &str| get(name).and_then(|f| f.ints());
        let default = Self::default();
        Ok(Self {
            class: get("class").and_then(|f| KernelClass::parse(f.text()?)).unwrap_or_default(),
            tile: ints("tile").unwrap_or_default(),
            workgroup_size: ints("workgroup_size")
                .and_then(|s| workgroup_size(&s))
                .ok_or(InvalidChoice::WorkgroupSize)?,
            register_tile: ints("register_tile").unwrap_or_default(),
            reduction_step: int("reduction_step").unwrap_or(default.reduction_step),
            vector_width: int("vector_width").unwrap_or(default.vector_width),
            sharing: get("share").and_then(|f| Sharing::parse(f.text()?)).unwrap_or_default(),
            subgroup_size: int("subgroup_size"),
            measured_as: get("measured_as").and_then(|f| f.text().map(str::to_owned)),
        })
    }

    /// Invocations of a workgroup.
    pub fn invocations(&self) -> i64 {
        self.workgroup_size.iter().map(|size| i64::from(*size)).product()
    }
}

/// Missing sizes are 1.
fn workgroup_size(sizes: &[i64]) -> Option<[i32; 3]> {
    let known = (1..=3).contains(&sizes.len()) && sizes.iter().all(|d| (1..=MAX_WORKGROUP_DIMENSION).contains(d));
    let size = |i: usize| sizes.get(i).map_or(Some(1), |d| i32::try_from(*d).ok());
    if known { Some([size(0)?, size(1)?, size(2)?]) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(entries: &[(&str, Field)]) -> Result<KernelChoice, InvalidChoice> {
        KernelChoice::decode(|name| entries.iter().find(|(n, _)| *n == name).map(|(_, f)| f.clone()))
    }

    #[test]
    fn a_choice_reads_back() {
        for class in KernelClass::ALL {
            for sharing in Sharing::ALL {
                for subgroup_size in [None, Some(8)] {
                    let choice = KernelChoice {
                        class: *class,
                        tile: vec![16, 64],
                        workgroup_size: [8, 2, 1],
                        register_tile: vec![16, 8],
                        reduction_step: 4,
                        vector_width: 2,
                        sharing: *sharing,
                        subgroup_size,
                        measured_as: subgroup_size.map(|_| "a name".to_owned()),
                    };
                    assert_eq!(decode(&choice.encode()), Ok(choice));
                }
            }
        }
    }

    #[test]
    fn missing_and_foreign_entries_have_defaults() {
        let size = ("workgroup_size", Field::Ints(vec![64]));
        let expected = KernelChoice { workgroup_size: [64, 1, 1], ..KernelChoice::default() };
        assert_eq!(decode(std::slice::from_ref(&size)), Ok(expected.clone()));
        let foreign = [size, ("class", Field::Text("spiral".into())), ("vector_width", Field::Text("4".into()))];
        assert_eq!(decode(&foreign), Ok(expected));
    }

    #[test]
    fn sizes_of_a_workgroup_are_checked() {
        for sizes in [vec![], vec![1, 1, 1, 1], vec![0], vec![1025], vec![-8, 1, 1]] {
            assert_eq!(decode(&[("workgroup_size", Field::Ints(sizes))]), Err(InvalidChoice::WorkgroupSize));
        }
        assert_eq!(decode(&[]), Err(InvalidChoice::WorkgroupSize));
    }
}
