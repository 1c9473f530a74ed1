//! Device kernels as data: text and words, independent of compiler types.

use serde::{Deserialize, Serialize};

use crate::target::GpuFeature;

/// A kernel's access to one of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Only loads.
    Read,
    /// Only stores; on the device it is bound read_write, which WGSL's storage class requires.
    Write,
    /// Loads and stores.
    ReadWrite,
}

impl Access {
    /// Whether it lets the kernel store through the argument.
    pub const fn is_written(self) -> bool {
        matches!(self, Access::Write | Access::ReadWrite)
    }
}

/// One kernel argument: `@group(0) @binding(position)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The access of the binding: the kernel's own, except that a buffer of the arena is never bound as `Read`.
    pub access: Access,
    /// Whether the kernel stores through the argument. A writable binding need not be written: one dispatch of a kernel may read
    /// the arena where another one reads a read-only input.
    pub is_written: bool,
}

impl Binding {
    /// An argument bound with the kernel's own access.
    pub const fn of(access: Access) -> Self {
        Self { access, is_written: access.is_written() }
    }
}

/// A number of bytes that a run decides: a product of a number and of scalar arguments of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedSize {
    /// Bytes where each of the scalars is 1.
    pub bytes: u64,
    /// Scalars by number.
    pub scalars: Vec<u32>,
}

impl CopiedSize {
    /// A list of the bytes and the scalars, as the IR has it; `None` for another one.
    pub fn from_list(list: &[i64]) -> Option<Self> {
        let (bytes, scalars) = list.split_first()?;
        let scalars = scalars.iter().map(|number| u32::try_from(*number).ok()).collect::<Option<_>>()?;
        Some(Self { bytes: u64::try_from(*bytes).ok()?, scalars })
    }

    /// The bytes, by the scalars of a dispatch; `None` where one is not known.
    pub fn of(&self, scalars: &[Option<u64>]) -> Option<u64> {
        let factor = |number: &u32| scalars.get(*number as usize).copied().flatten();
        self.scalars.iter().map(factor).try_fold(self.bytes, |bytes, factor| Some(bytes.saturating_mul(factor?)))
    }
}

/// Copies between two device buffers that one dispatch of a kernel performs; none for a computing kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchCopies {
    /// Their number, layout changes included.
    pub count: u32,
    /// Bytes that those of known size write.
    pub bytes: u64,
    /// Of each other one, sizes of what is read and written: the least is copied.
    pub sizes: Vec<Vec<CopiedSize>>,
}

impl DispatchCopies {
    /// Bytes that a dispatch with these scalars copies; `None` where one that matters is not known.
    pub fn bytes_by(&self, scalars: &[Option<u64>]) -> Option<u64> {
        let least = |sizes: &Vec<CopiedSize>| {
            let known: Option<Vec<u64>> = sizes.iter().map(|size| size.of(scalars)).collect();
            Some(known?.into_iter().min().unwrap_or(0))
        };
        self.sizes.iter().map(least).try_fold(self.bytes, |sum, bytes| Some(sum.saturating_add(bytes?)))
    }

    /// Bytes that a dispatch copies.
    pub fn bytes_of(&self, scalars: &[u64]) -> u64 {
        if self.sizes.is_empty() {
            return self.bytes;
        }
        let known: Vec<Option<u64>> = scalars.iter().copied().map(Some).collect();
        self.bytes_by(&known).unwrap_or(self.bytes)
    }
}

/// A compute shader in both languages, with the data for its pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuKernel {
    /// The entry point's name in `wgsl` and in `spirv`.
    pub name: String,
    /// WGSL source, always present.
    pub wgsl: String,
    /// SPIR-V words for Vulkan; empty if there is only WGSL.
    pub spirv: Vec<u32>,
    /// Invocations per workgroup.
    pub workgroup_size: [u32; 3],
    /// Arguments in order, bound at `@group(0) @binding(0..)`.
    pub bindings: Vec<Binding>,
    /// Device features that the code uses.
    pub features: Vec<GpuFeature>,
    /// What a dispatch copies.
    pub copies: DispatchCopies,
    /// Scalar arguments, which follow the buffers: bytes of each, 4 or 8. They are immediates, or in a uniform buffer
    /// ([`GpuKernel::takes_number_buffer`]), laid out by [`GpuKernel::numbers`].
    #[serde(default)]
    pub scalars: Vec<u8>,
}

impl GpuKernel {
    /// Lays out the bits of the scalar arguments: in order, little-endian, each aligned to its size.
    /// A scalar of 4 bytes takes the low half of its bits; missing scalars are 0.
    pub fn numbers(&self, bits: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        for (i, size) in self.scalars.iter().enumerate() {
            let size = usize::from(*size);
            out.resize(out.len().next_multiple_of(size), 0);
            out.extend_from_slice(&bits.get(i).copied().unwrap_or(0).to_le_bytes()[..size]);
        }
        out
    }

    /// Bytes of the scalar arguments as laid out by [`GpuKernel::numbers`].
    pub fn number_bytes(&self) -> u32 {
        self.numbers(&[]).len() as u32
    }

    /// Whether the scalar arguments are in a uniform buffer after the other bindings, not immediates: on devices
    /// without immediates, and if the numbers exceed the immediates.
    pub fn takes_number_buffer(&self) -> bool {
        !self.scalars.is_empty() && !self.features.contains(&GpuFeature::Immediates)
    }

    /// Bytes of the immediates that a dispatch must set.
    pub fn immediate_bytes(&self) -> u32 {
        if self.takes_number_buffer() { 0 } else { self.number_bytes() }
    }
}

/// Most bytes of scalars of one kernel: the size that the runtime's number buffer has for one dispatch.
pub const MAX_NUMBER_BYTES: u32 = 16 << 10;

/// Most workgroups in one row of a folded grid, which every device offers.
pub const GRID_ROW: u64 = 65_535;

/// Folds `workgroups` into the grid of a kernel with linear workgroup numbers: `id.x + id.y * grid.x`.
///
/// The grid has at least `workgroups` workgroups; kernels of folded grids ignore the surplus.
/// `None` for no workgroups, and for more than two dimensions hold.
pub const fn fold_grid(workgroups: u64) -> Option<[u32; 3]> {
    let y = workgroups.div_ceil(GRID_ROW);
    if y == 0 || y > GRID_ROW {
        return None;
    }
    Some([workgroups.div_ceil(y) as u32, y as u32, 1])
}

/// A native function `void symbol(void *const *args, const int64_t *ids)` in the variant's object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuKernel {
    /// The symbol in one of [`crate::NativeCode::objects`].
    pub symbol: String,
    /// Number of base pointers in `args`.
    pub args: u32,
    /// Number of scalars in `args`, after the pointers: 8 bytes each, the value in the low ones.
    pub scalars: u32,
    /// Number of tile ids in `ids`, outermost dimension first; at most 3.
    pub ids: u32,
    /// What a dispatch copies.
    pub copies: DispatchCopies,
}

/// A device kernel of one variant; all of a variant's kernels are of its target's kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// A compute shader.
    Gpu(GpuKernel),
    /// A native function over one task.
    Cpu(CpuKernel),
}

impl Kernel {
    /// The name in reports and traces.
    pub fn name(&self) -> &str {
        match self {
            Kernel::Gpu(kernel) => &kernel.name,
            Kernel::Cpu(kernel) => &kernel.symbol,
        }
    }

    /// Number of arguments that a dispatch must push.
    pub fn args_len(&self) -> usize {
        match self {
            Kernel::Gpu(kernel) => kernel.bindings.len(),
            Kernel::Cpu(kernel) => kernel.args as usize,
        }
    }

    /// Number of scalars that a dispatch must push.
    pub fn scalars_len(&self) -> usize {
        match self {
            Kernel::Gpu(kernel) => kernel.scalars.len(),
            Kernel::Cpu(kernel) => kernel.scalars as usize,
        }
    }

    /// What a dispatch copies.
    pub fn copies(&self) -> &DispatchCopies {
        match self {
            Kernel::Gpu(kernel) => &kernel.copies,
            Kernel::Cpu(kernel) => &kernel.copies,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_to_their_size() {
        let features = vec![GpuFeature::Immediates];
        let kernel = GpuKernel { scalars: vec![4, 8, 4], features, ..GpuKernel::default() };
        let expected =
            [&7u32.to_le_bytes()[..], &[0; 4], &(1u64 << 40).to_le_bytes(), &u32::MAX.to_le_bytes()].concat();
        assert_eq!(kernel.numbers(&[7, 1 << 40, u64::MAX]), expected);
        assert_eq!((kernel.immediate_bytes(), kernel.takes_number_buffer()), (20, false));
        let in_a_buffer = GpuKernel { features: vec![], ..kernel };
        assert_eq!((in_a_buffer.immediate_bytes(), in_a_buffer.number_bytes()), (0, 20));
        assert!(in_a_buffer.takes_number_buffer() && !GpuKernel::default().takes_number_buffer());
    }

    #[test]
    fn folded_grids_hold_all_workgroups() {
        assert_eq!(fold_grid(0), None);
        assert_eq!(fold_grid(1), Some([1, 1, 1]));
        assert_eq!(fold_grid(65_535), Some([65_535, 1, 1]));
        assert_eq!(fold_grid(65_536), Some([32_768, 2, 1]));
        assert_eq!(fold_grid(GRID_ROW * GRID_ROW), Some([65_535, 65_535, 1]));
        assert_eq!(fold_grid(GRID_ROW * GRID_ROW + 1), None);
    }
}
