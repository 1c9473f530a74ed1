//! Memory of ops on memrefs: buffers with an identity, reused addresses, and views.
//!
//! An address is reused as soon as its buffer is freed, most recent first, as an allocator does: so a program that compares
//! the pointer of a freed buffer with another one goes wrong visibly.

use super::scalar::Scalar;
use super::{EvalError, Result, element, filled, poison_of, set_element, undefined};
use crate::host_tensor::{Dtype, HostTensor};
use monopour_ir::{DYNAMIC, Op, Type};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// Address of the first buffer; 0 is none.
const FIRST_ADDRESS: i64 = 4096;
/// Alignment of buffers.
const ALIGNMENT: i64 = 64;

/// Defects of a buffer's lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Defect {
    /// An access to a buffer that was freed.
    UseAfterFree,
    /// A second free.
    DoubleFree,
    /// A free of memory that does not come from the heap: an argument of the entry function, a global, the stack.
    ForeignFree,
    /// A buffer that is neither freed nor returned.
    Leak,
    /// A public function returns memory that its caller cannot own: an argument's, a global's, freed memory.
    ResultNotOwned,
    /// A public function returns one buffer twice.
    ResultShared,
    /// A public function frees its caller's memory.
    ArgumentFreed,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UseAfterFree => "use after free",
            Self::DoubleFree => "double free",
            Self::ForeignFree => "free of memory that is not from the heap",
            Self::Leak => "leak",
            Self::ResultNotOwned => "result that is not owned",
            Self::ResultShared => "buffer returned twice",
            Self::ArgumentFreed => "argument freed by a public function",
        })
    }
}

/// The origin of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// The caller, or a global.
    Foreign,
    /// `memref.alloc` and other heap allocations.
    Heap,
    /// `memref.alloca`.
    Stack,
}

pub(super) struct Buffer {
    pub(super) contents: HostTensor,
    pub(super) origin: Origin,
    pub(super) is_alive: bool,
    address: i64,
    /// Location of its allocation.
    location: String,
}

/// A memref at run time: a view of a buffer.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct View {
    pub(super) buffer: usize,
    pub(super) offset: i64,
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<i64>,
}

impl View {
    /// Position in the buffer; `None` outside of the view.
    pub(super) fn position(&self, index: &[i64]) -> Option<i64> {
        let inside = index.len() == self.sizes.len() && index.iter().zip(&self.sizes).all(|(i, n)| (0..*n).contains(i));
        inside.then(|| self.offset + index.iter().zip(&self.strides).map(|(i, s)| i * s).sum::<i64>())
    }

    /// Whether a memref of this type may have this layout.
    pub(super) fn fits(&self, ty: Type) -> bool {
        let Some(memref) = ty.as_memref() else { return ty.is_memref() };
        let same = |wanted: &i64, found: &i64| *wanted == DYNAMIC || wanted == found;
        let counts = memref.strides.iter().zip(&self.strides).zip(&self.sizes);
        memref.shape.len() == self.sizes.len()
            && memref.shape.iter().zip(&self.sizes).all(|(w, f)| same(w, f))
            && same(&memref.offset, &self.offset)
            && counts.into_iter().all(|((wanted, found), size)| *size <= 1 || same(wanted, found))
    }
}

/// Row-major strides.
pub(super) fn dense_strides(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    for i in (1..sizes.len()).rev() {
        strides[i - 1] = strides[i] * sizes[i];
    }
    strides
}

/// All buffers of a run.
#[derive(Default)]
pub(super) struct Memory<'c> {
    pub(super) buffers: Vec<Buffer>,
    /// Addresses of freed buffers by size in bytes.
    free: BTreeMap<i64, Vec<i64>>,
    next_address: i64,
    /// Heap bytes now, and their peak.
    pub(super) live_bytes: u64,
    pub(super) peak_bytes: u64,
    pub(super) allocations: u64,
    pub(super) copied_elements: u64,
    pub(super) clones: u64,
    /// Each `memref.dealloc` that freed a buffer.
    pub(super) freeing: Vec<Op<'c>>,
    pub(super) globals: BTreeMap<String, usize>,
}

impl<'c> Memory<'c> {
    /// A new buffer of this many elements, filled with poison.
    pub(super) fn allocate(&mut self, dtype: Dtype, sizes: &[i64], origin: Origin, location: String) -> Result<View> {
        let count = sizes.iter().try_fold(1usize, |n, d| n.checked_mul(usize::try_from(*d).ok()?));
        let count = super::element_count(&[count.unwrap_or(usize::MAX)])?;
        let contents = filled(dtype, vec![count], poison_of(dtype));
        Ok(self.adopt(contents, sizes, origin, location))
    }

    /// A new buffer with contents.
    pub(super) fn adopt(&mut self, contents: HostTensor, sizes: &[i64], origin: Origin, location: String) -> View {
        let bytes = byte_count(&contents);
        let rounded = bytes.max(1).next_multiple_of(ALIGNMENT as u64) as i64;
        let address = self.free.get_mut(&rounded).and_then(Vec::pop).unwrap_or_else(|| {
            let address = self.next_address.max(FIRST_ADDRESS);
            self.next_address = address + rounded;
            address
        });
        if origin == Origin::Heap {
            self.allocations += 1;
            self.live_bytes += bytes;
            self.peak_bytes = self.peak_bytes.max(self.live_bytes);
        }
        self.buffers.push(Buffer { contents, origin, is_alive: true, address, location });
        View { buffer: self.buffers.len() - 1, offset: 0, sizes: sizes.to_vec(), strides: dense_strides(sizes) }
    }

    /// Ends the lifetime of a buffer of any origin.
    pub(super) fn release(&mut self, buffer: usize) {
        let it = &mut self.buffers[buffer];
        it.is_alive = false;
        let bytes = byte_count(&it.contents);
        if it.origin == Origin::Heap {
            self.live_bytes -= bytes;
        }
        let rounded = bytes.max(1).next_multiple_of(ALIGNMENT as u64) as i64;
        self.free.entry(rounded).or_default().push(it.address);
    }

    /// Frees a buffer for an op.
    pub(super) fn free(&mut self, op: Op<'c>, buffer: usize) -> Result<()> {
        let it = &self.buffers[buffer];
        let defect = match (it.origin, it.is_alive) {
            (Origin::Heap, true) => None,
            (Origin::Heap, false) => Some(Defect::DoubleFree),
            (Origin::Foreign | Origin::Stack, _) => Some(Defect::ForeignFree),
        };
        if let Some(defect) = defect {
            return Err(self.defect(defect, buffer, op));
        }
        self.freeing.push(op);
        self.release(buffer);
        Ok(())
    }

    /// The address of the first element of a buffer.
    pub(super) fn address(&self, buffer: usize) -> i64 {
        self.buffers[buffer].address
    }

    pub(super) fn defect(&self, defect: Defect, buffer: usize, op: Op<'c>) -> EvalError {
        let what = format!("of the buffer made at {}", self.buffers[buffer].location);
        EvalError::Lifetime { defect, what, location: format!("{} ({op})", op.location()) }
    }

    /// The buffer of an access, if it is live.
    fn alive(&self, op: Op<'c>, view: &View) -> Result<&Buffer> {
        let buffer = &self.buffers[view.buffer];
        if buffer.is_alive { Ok(buffer) } else { Err(self.defect(Defect::UseAfterFree, view.buffer, op)) }
    }

    fn at(&self, op: Op<'c>, view: &View, index: &[i64]) -> Result<usize> {
        let length = self.alive(op, view)?.contents.len() as i64;
        let position = view.position(index).filter(|p| (0..length).contains(p));
        position.map(|p| p as usize).ok_or_else(|| undefined(&format!("index {index:?} of {view:?}"), op))
    }

    pub(super) fn load(&self, op: Op<'c>, view: &View, index: &[i64]) -> Result<Scalar> {
        let at = self.at(op, view, index)?;
        Ok(element(&self.buffers[view.buffer].contents, at))
    }

    pub(super) fn store(&mut self, op: Op<'c>, view: &View, index: &[i64], value: Scalar) -> Result<()> {
        let at = self.at(op, view, index)?;
        set_element(&mut self.buffers[view.buffer].contents, at, value);
        Ok(())
    }

    /// All elements of a view, in row-major order.
    pub(super) fn read(&self, op: Op<'c>, view: &View) -> Result<HostTensor> {
        let dtype = self.alive(op, view)?.contents.dtype;
        let shape = super::checked_shape(op, &view.sizes)?;
        let mut out = filled(dtype, shape.clone(), Scalar::Int(0));
        let mut index = vec![0i64; shape.len()];
        for at in 0..out.len() {
            set_element(&mut out, at, self.load(op, view, &index)?);
            super::advance(&mut index, &shape);
        }
        Ok(out)
    }

    /// Sets all elements of a view to one value.
    pub(super) fn fill(&mut self, op: Op<'c>, view: &View, value: Scalar) -> Result<()> {
        let dtype = self.alive(op, view)?.contents.dtype;
        let shape = super::checked_shape(op, &view.sizes)?;
        self.write(op, view, &filled(dtype, shape, value))
    }

    /// Overwrites all elements of a view.
    pub(super) fn write(&mut self, op: Op<'c>, view: &View, values: &HostTensor) -> Result<()> {
        self.alive(op, view)?;
        let shape = super::checked_shape(op, &view.sizes)?;
        if shape.iter().product::<usize>() != values.len() {
            return Err(undefined(&format!("{} elements written to {:?}", values.len(), view.sizes), op));
        }
        let mut index = vec![0i64; shape.len()];
        for at in 0..values.len() {
            self.store(op, view, &index, element(values, at))?;
            super::advance(&mut index, &shape);
        }
        Ok(())
    }
}

fn byte_count(contents: &HostTensor) -> u64 {
    (contents.len() * contents.dtype.size_bytes()) as u64
}

/// A memref as a value.
pub(super) fn datum(view: View) -> super::Datum {
    super::Datum::MemRef(Rc::new(view))
}
