//! Typed views and builders of the ops that have operand segments, mixed static and dynamic numbers, or enum attributes.
//!
//! A view is made by `of`, which gives none for another op; a builder gives an [`OpSpec`](crate::OpSpec), to which discardable attributes are added.

/// Defines a view of the ops of one name.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident, $op:path) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name<'c>($crate::Op<'c>);

        impl<'c> $name<'c> {
            /// The view of an op; `None` for an op of another name.
            pub fn of(op: $crate::Op<'c>) -> Option<Self> {
                op.is($op).then_some(Self(op))
            }
            /// The op.
            pub fn op(self) -> $crate::Op<'c> {
                self.0
            }
        }
    };
}

pub mod affine;
pub mod arith;
pub mod bufferization;
pub mod cf;
mod enums;
pub mod gpu;
mod index;
pub mod linalg;
pub mod llvm;
pub mod memref;
pub mod scf;
mod slice;
pub mod tensor;
pub mod vector;

pub use index::Index;
pub use slice::Slice;
