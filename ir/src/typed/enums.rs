//! Enum attributes as Rust enums: read by their value, never by their text.

use crate::{Attr, Context};
use mlir_sys::MlirAttribute;

/// Defines the enum of one kind of attribute: its values, with upstream's numbers and keywords.
macro_rules! enum_attr {
    ($(#[$doc:meta])* $name:ident, $read:path, $text:literal,
        { $($(#[$case_doc:meta])* $case:ident = $value:literal, $keyword:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $($(#[$case_doc])* $case,)*
        }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$case),*];

            /// The value of an attribute; `None` for one of another kind.
            pub fn of(attr: Attr) -> Option<Self> {
                // SAFETY: defined in the shim; attributes live as long as their context.
                match unsafe { $read(attr.raw()) } {
                    $($value => Some(Self::$case),)*
                    _ => None,
                }
            }
            /// The value in MLIR's text.
            pub fn keyword(self) -> &'static str {
                match self {
                    $(Self::$case => $keyword,)*
                }
            }
            /// The attribute, if its dialect can be loaded.
            pub fn to_attr<'c>(self, cx: Context<'c>) -> Option<Attr<'c>> {
                Attr::parse(cx, &format!($text, self.keyword()))
            }
        }
    };
}

enum_attr! {
    /// How the iterations of a loop of a structured op depend on each other.
    IteratorType, monopour_shim_iterator_type, "#linalg.iterator_type<{}>", {
        /// Independent.
        Parallel = 0, "parallel";
        /// Combined into one result.
        Reduction = 1, "reduction";
    }
}

enum_attr! {
    /// A dimension of a grid or workgroup.
    Dimension, monopour_shim_gpu_dimension, "#gpu<dim {}>", {
        /// The fastest.
        X = 0, "x";
        /// The second.
        Y = 1, "y";
        /// The slowest.
        Z = 2, "z";
    }
}

enum_attr! {
    /// The memory space of a GPU buffer.
    AddressSpace, monopour_shim_gpu_address_space, "#gpu.address_space<{}>", {
        /// Seen by all workgroups.
        Global = 1, "global";
        /// Shared by the invocations of a workgroup.
        Workgroup = 2, "workgroup";
        /// Of one invocation.
        Private = 3, "private";
    }
}

enum_attr! {
    /// The combining operation of a reduction over a workgroup or subgroup.
    AllReduceOperation, monopour_shim_gpu_all_reduce, "#gpu<all_reduce_op {}>", {
        /// Sum.
        Add = 0, "add";
        /// Product.
        Mul = 1, "mul";
        /// Minimum of unsigned integers.
        MinUI = 2, "minui";
        /// Minimum of signed integers.
        MinSI = 3, "minsi";
        /// Minimum of floats; of a NaN and a number the number.
        MinNumF = 4, "minnumf";
        /// Maximum of unsigned integers.
        MaxUI = 5, "maxui";
        /// Maximum of signed integers.
        MaxSI = 6, "maxsi";
        /// Maximum of floats; of a NaN and a number the number.
        MaxNumF = 7, "maxnumf";
        /// Bitwise and.
        And = 8, "and";
        /// Bitwise or.
        Or = 9, "or";
        /// Bitwise exclusive or.
        Xor = 10, "xor";
        /// Minimum of floats; of a NaN and a number the NaN.
        MinimumF = 11, "minimumf";
        /// Maximum of floats; of a NaN and a number the NaN.
        MaximumF = 12, "maximumf";
    }
}

enum_attr! {
    /// The lane that an invocation reads in `gpu.shuffle`.
    ShuffleMode, monopour_shim_gpu_shuffle_mode, "#gpu<shuffle_mode {}>", {
        /// Its own, with the bits of the offset flipped.
        Xor = 0, "xor";
        /// Its own plus the offset.
        Down = 1, "down";
        /// Its own minus the offset.
        Up = 2, "up";
        /// The offset.
        Idx = 3, "idx";
    }
}

unsafe extern "C" {
    // The number of an enum attribute's value; -1 for another kind of attribute.
    fn monopour_shim_iterator_type(attr: MlirAttribute) -> i64;
    fn monopour_shim_gpu_dimension(attr: MlirAttribute) -> i64;
    fn monopour_shim_gpu_address_space(attr: MlirAttribute) -> i64;
    fn monopour_shim_gpu_all_reduce(attr: MlirAttribute) -> i64;
    fn monopour_shim_gpu_shuffle_mode(attr: MlirAttribute) -> i64;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each value is read back from the attribute that upstream parses, and prints as that keyword.
    macro_rules! check {
        ($cx:expr, $($name:ident),*) => {{$(
            for value in $name::ALL {
                let attr = value.to_attr($cx).expect("upstream knows the keyword");
                assert_eq!($name::of(attr), Some(*value), "{attr}");
            }
            assert_eq!($name::of(Attr::unit($cx)), None);
        )*}};
    }

    #[test]
    fn values_are_those_of_upstream() {
        Context::scope(|cx| check!(cx, IteratorType, Dimension, AddressSpace, AllReduceOperation, ShuffleMode));
    }

    #[test]
    fn another_kind_of_attribute_has_no_value() {
        Context::scope(|cx| {
            let x = Dimension::X.to_attr(cx).expect("upstream knows the keyword");
            assert_eq!((IteratorType::of(x), ShuffleMode::of(x), AddressSpace::of(x)), (None, None, None));
        });
    }
}
