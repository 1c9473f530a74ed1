//! Names of our discardable attributes, each with its op and value.

/// Declares the names, and the list of them.
macro_rules! names {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)*) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*
        /// All names.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

names! {
    /// Module: path of the safetensors file or folder that holds the weights. Read by import.
    WEIGHTS = "monopour.weights";
    /// Argument or result of the entry function: its name, a string.
    NAME = "monopour.name";
    /// Argument or result of the entry function: the program's element type, if it is not the signless one of the IR.
    DTYPE = "monopour.dtype";
    /// Argument of a function: a unit, the callee may overwrite, free or return it. Call: numbers of such operands.
    DONATE = "monopour.donate";

    /// Linalg op: a unit, it unfolds the windows of a convolution, and is not fused into it.
    UNFOLDED = "monopour.unfolded";
    /// Linalg op: the number of its dispatch. From fusion to tiling.
    DISPATCH = "monopour.dispatch";
    /// Linalg op: its role in its dispatch, `root`, `producer`, `member`, `scores` or `init`.
    ROLE = "monopour.role";
    /// Linalg op: its position among the ops of its dispatch.
    MEMBER = "monopour.member";
    /// `scf.forall` of a dispatch, then its kernel function: the choice of tiling, a dictionary
    /// ([`KernelChoice`](crate::KernelChoice)).
    KERNEL = "monopour.kernel";

    /// `scf.forall` of a dispatch that fills a buffer: the `value`, and the `slices` (offsets, then sizes) that are overwritten
    /// in each run before they are read. After planning: the buffer keeps its border, and the dispatch runs once per arena.
    BORDER = "monopour.border";

    /// Memory space of a tensor in predictions, if unknown. A string attribute, not a name.
    UNKNOWN_SPACE = "monopour.unknown";

    /// Kernel function for rows of whole vectors: the name of the one for all sizes, which the host takes otherwise.
    GENERAL = "monopour.general";
    /// Kernel function: the number of its tile ids, which are its last arguments.
    GRID_RANK = "monopour.grid_rank";
    /// Kernel function: its workgroups are numbered linearly, `id.x + id.y * grid.x`, and at most so many work at once. The
    /// grid is folded when it is dispatched.
    LINEAR_GRID = "monopour.linear_grid";
    /// Argument of a kernel function: `"read"`, `"write"` or `"read_write"`.
    ACCESS = "monopour.access";
    /// `memref.dealloc` of the host function: it frees nothing; what the buffer holds is not to be read from here on.
    POISON = "monopour.poison";
    /// The one allocation of the arena.
    ARENA = "monopour.arena";
    /// `memref.alloc` before planned ones: what the runtime is asked to place, alive between ops of these two positions. A cast
    /// of it takes the place.
    REQUEST = "monopour.request";
    /// Copy in a kernel: bytes that all tiles of a dispatch copy together. Kernel function of a GPU: bytes of all its copies.
    COPIED_BYTES = "monopour.copied_bytes";
    /// Copy in a kernel whose bytes a run decides: lists of a number of bytes and of scalar arguments by number, of which the least
    /// product is copied. Kernel function of a GPU: such lists of all its copies.
    COPIED_SIZES = "monopour.copied_sizes";
    /// Kernel function: the number of its list of copies.
    COPY_SITES = "monopour.copy_sites";
    /// Generic of a CPU's kernel: positions of the inputs that are fetched to a cache and not read.
    FETCHED = "monopour.fetched";

    /// Product of a model that allows its rows to be rounded to integers of 8 bits, a block at a time. Until fusion.
    ROUNDED_ROWS = "monopour.rounded_rows";

    /// Product of an unknown number of rows in the branch of few: it computes its weights as it reads them. Until fusion.
    FEW_ROWS = "monopour.few_rows";

    /// Kernel function of a GPU that was distributed: invocations of a workgroup, `array<i32: x, y, z>`.
    WORKGROUP_SIZE = "monopour.workgroup_size";
    /// View passed to a kernel: it includes all elements from its base on, and its size is not read.
    WHOLE = "monopour.whole";
    /// Kernel function of a GPU: the number of its copies.
    COPIES = "monopour.copies";
    /// `scf.for` of a GPU kernel: the unroll factor of the emitted loop.
    UNROLL = "monopour.unroll";
    /// Kernel function of a GPU: a unit, f16 is f32 in registers, and every result is rounded.
    WIDE_HALVES = "monopour.wide_halves";
    /// Kernel function of a GPU: a unit, buffers of which single 16-bit floats are accessed are arrays of 16-bit integers.
    SHORT_ENTRIES = "monopour.short_entries";
    /// Kernel function of a GPU: scalars lie in a uniform buffer, because the device's immediates cannot hold them.
    NUMBER_BUFFER = "monopour.number_buffer";

    /// Logarithm: its argument is no denormal, so that upstream's polynomial is exact enough.
    NORMAL = "monopour.normal";
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_in_the_namespace() {
        assert_eq!(ALL.iter().collect::<HashSet<_>>().len(), ALL.len());
        for name in ALL {
            let rest = name.strip_prefix("monopour.").expect("the namespace");
            assert!(rest.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        }
    }
}
