//! Remarks about copies, with their sizes.

use monopour_ir::{Diagnostic, Diagnostics, Type};
use tracing::trace;

/// Remarks, each with the copied bytes: `None` if known at run time only, 0 for a new buffer without contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remarks {
    pub(crate) diagnostics: Diagnostics,
    pub(crate) bytes: Vec<Option<u64>>,
}

impl Remarks {
    pub(crate) fn push(&mut self, remark: Diagnostic, bytes: Option<u64>) {
        trace!(target: "bufferize", "{}", remark.one_line());
        self.diagnostics.0.push(remark);
        self.bytes.push(bytes);
    }
    pub(crate) fn append(&mut self, other: Self) {
        self.diagnostics.0.extend(other.diagnostics.0);
        self.bytes.extend(other.bytes);
    }
}

/// Number of bytes, in words.
pub(crate) fn bytes(ty: Type) -> String {
    ty.static_size_bytes().map_or_else(|| "a tensor of dynamic size".to_owned(), |n| format!("{n} bytes"))
}
