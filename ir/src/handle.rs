//! Handles: melior's references, with the traits that passes need and melior lacks.
//!
//! An op names its blocks, and a block its ops: all handles are defined here, below the files of their methods.

use melior::ContextRef;

/// Defines handles, each of one of melior's kinds of reference: `Copy`, compared and hashed by address, bound to its context.
///
/// melior's own references compare by a call, print the whole IR for `Debug`, cannot be keys of a map, and are not laid out
/// like the C API's handles.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident($melior:ty), $raw:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        // Lists of handles are passed to MLIR, and filled by it, as lists of its own.
        #[repr(transparent)]
        pub struct $name<'c>(mlir_sys::$raw, std::marker::PhantomData<$melior>);

        impl<'c> $name<'c> {
            /// Whether objects of this kind are erased individually, which debug builds track.
            const IS_ERASED: bool = matches!(stringify!($raw).as_bytes(), b"MlirOperation");
            /// The handle of an object that is live for `'c` (crate invariant).
            pub(crate) fn from_raw(raw: mlir_sys::$raw) -> Self {
                if Self::IS_ERASED {
                    $crate::erased::made(raw.ptr as usize);
                }
                Self(raw, std::marker::PhantomData)
            }
            /// As [`Self::from_raw`], none for null.
            #[allow(dead_code, reason = "not every kind of handle may be null")]
            pub(crate) fn non_null(raw: mlir_sys::$raw) -> Option<Self> {
                (!raw.ptr.is_null()).then(|| Self::from_raw(raw))
            }
            /// The C API's handle, to read the object by.
            pub(crate) fn raw(self) -> mlir_sys::$raw {
                if Self::IS_ERASED {
                    $crate::erased::check(self.0.ptr as usize);
                }
                self.0
            }
            /// The C API's handle, to compare with: the object may be gone.
            #[allow(dead_code, reason = "only ops are erased")]
            pub(crate) fn raw_to_compare(self) -> mlir_sys::$raw {
                self.0
            }
            /// The address of the object in MLIR, also after it was erased.
            pub(crate) fn address(self) -> usize {
                self.0.ptr as usize
            }
            /// melior's reference to the same object.
            pub fn to_melior(self) -> $melior {
                // SAFETY: the object is live for `'c` (crate invariant).
                unsafe { <$melior>::from_raw(self.raw()) }
            }
        }
        impl<'c> From<$name<'c>> for $melior {
            fn from(handle: $name<'c>) -> Self {
                handle.to_melior()
            }
        }
        impl<'c> From<$melior> for $name<'c> {
            fn from(melior: $melior) -> Self {
                #[allow(unused_imports, reason = "what gives the raw handle is a method here and a trait's there")]
                use melior::ir::{AttributeLike, BlockLike, RegionLike, TypeLike, ValueLike, operation::OperationLike};
                Self::from_raw(melior.to_raw())
            }
        }
        impl PartialEq for $name<'_> {
            fn eq(&self, other: &Self) -> bool {
                self.address() == other.address()
            }
        }
        impl Eq for $name<'_> {}
        impl std::hash::Hash for $name<'_> {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.address().hash(state);
            }
        }
        impl std::fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({:#x})", stringify!($name), self.address())
            }
        }
    )*};
}

handles! {
    /// An operation.
    Op(melior::ir::OperationRef<'c, 'c>), MlirOperation;
    /// A basic block.
    Block(melior::ir::BlockRef<'c, 'c>), MlirBlock;
    /// A region of an op.
    Region(melior::ir::RegionRef<'c, 'c>), MlirRegion;
    /// An SSA value: an op result or a block argument.
    Value(melior::ir::Value<'c, 'c>), MlirValue;
    /// A uniqued MLIR type.
    Type(melior::ir::Type<'c>), MlirType;
    /// A uniqued MLIR attribute.
    Attr(melior::ir::Attribute<'c>), MlirAttribute;
    /// A uniqued affine map.
    AffineMap(melior::ir::AffineMap<'c>), MlirAffineMap;
    /// A uniqued affine expression.
    AffineExpr(melior::ir::AffineExpr<'c>), MlirAffineExpr;
    /// A source location of the IR.
    Location(melior::ir::Location<'c>), MlirLocation;
}

/// A reference to an MLIR context: `Copy`, and bound to the context that [`Context::scope`] frees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context<'c>(ContextRef<'c>);

impl Context<'_> {
    pub(crate) fn from_raw(raw: mlir_sys::MlirContext) -> Self {
        // SAFETY: the context is live for `'c` (crate invariant).
        Self(unsafe { ContextRef::from_raw(raw) })
    }

    pub(crate) fn raw(self) -> mlir_sys::MlirContext {
        // SAFETY: the context is borrowed for this expression only.
        unsafe { self.0.to_ref() }.to_raw()
    }
}
