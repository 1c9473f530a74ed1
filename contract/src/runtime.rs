//! The functions that native code calls: one closed table for schedule, code generation and runtime.
//!
//! Every argument and result is an `i64` of the C calling convention; [`Kind`] gives its meaning. A new function is one
//! entry of the table: then `monopour-runtime` does not build until it has one of this signature.

/// Most places for transients that a run may ask for.
pub const MOST_REQUESTS: usize = 1 << 14;

/// The meaning of an argument or a result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Address of the run's context: the argument of the entry function. The first argument of every function.
    Context,
    /// Position of an input, result, constant, kernel or dimension.
    Index,
    /// A logical buffer of the run.
    Handle,
    /// Number of bytes, or an offset in bytes.
    Bytes,
    /// Number of elements or of workgroups along a dimension.
    Extent,
    /// Value of a scalar, in the low bits.
    Bits,
    /// A [`Trap`].
    Code,
    /// 0 or 1.
    Bool,
}

/// Declares the functions once: the enum, their signatures, and the table of their addresses.
macro_rules! runtime_functions {
    ($($(#[$doc:meta])* $function:ident $field:ident = $name:literal ($($argument:ident),+) $(-> $result:ident)?;)*) => {
        /// A function of the runtime.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum RuntimeFunction { $($(#[$doc])* $function),* }

        impl RuntimeFunction {
            /// All functions, in the order in which host code declares them. Their positions are the artifact's names
            /// for them: new ones are added at the end.
            pub const ALL: &[RuntimeFunction] = &[$(RuntimeFunction::$function),*];

            /// The symbol.
            pub const fn name(self) -> &'static str {
                match self { $(RuntimeFunction::$function => $name),* }
            }

            /// The arguments, the context first.
            pub const fn arguments(self) -> &'static [Kind] {
                match self { $(RuntimeFunction::$function => &[$(Kind::$argument),+]),* }
            }

            /// The result.
            pub const fn result(self) -> Option<Kind> {
                match self { $(RuntimeFunction::$function => result!($($result)?)),* }
            }
        }

        /// An implementation of each function.
        #[derive(Clone, Copy, Debug)]
        pub struct RuntimeTable {
            $($(#[$doc])* pub $field: extern "C" fn($(word!($argument)),+) $(-> word!($result))?),*
        }

        impl RuntimeTable {
            /// The address of a function.
            pub fn address(&self, function: RuntimeFunction) -> usize {
                match function { $(RuntimeFunction::$function => self.$field as *const () as usize),* }
            }
        }
    };
}

/// The type in which an argument or a result is passed.
macro_rules! word {
    ($kind:ident) => {
        i64
    };
}

macro_rules! result {
    () => {
        None
    };
    ($kind:ident) => {
        Some(Kind::$kind)
    };
}

runtime_functions! {
    /// The buffer of an input.
    Input input = "monopour_rt_input" (Context, Index) -> Handle;
    /// Hands a buffer over as a result.
    Result result = "monopour_rt_result" (Context, Index, Handle);
    /// The buffer of a constant.
    Constant constant = "monopour_rt_constant" (Context, Index) -> Handle;
    /// Allocates a buffer.
    Alloc alloc = "monopour_rt_alloc" (Context, Bytes) -> Handle;
    /// The arena, of at least this size.
    Arena arena = "monopour_rt_arena" (Context, Bytes) -> Handle;
    /// Frees a buffer.
    Free free = "monopour_rt_free" (Context, Handle);
    /// Pushes a range of a buffer as an argument of the next dispatch: buffer, offset, bytes.
    Arg arg = "monopour_rt_arg" (Context, Handle, Bytes, Bytes);
    /// Dispatches a kernel over a grid with the pushed arguments.
    Dispatch dispatch = "monopour_rt_dispatch" (Context, Index, Extent, Extent, Extent);
    /// As `dispatch`, in the first run on an arena only: every later run finds there what it wrote.
    DispatchOnce dispatch_once = "monopour_rt_dispatch_once" (Context, Index, Extent, Extent, Extent);
    /// Copies bytes: source and its offset, destination and its offset, bytes.
    Copy copy = "monopour_rt_copy" (Context, Handle, Bytes, Handle, Bytes, Bytes);
    /// Fills bytes with a pattern of 32 bits: destination, offset, bytes (-1: all whole patterns up to the end), pattern.
    Fill fill = "monopour_rt_fill" (Context, Handle, Bytes, Bytes, Bits);
    /// The value of a scalar input.
    InputScalar input_scalar = "monopour_rt_input_scalar" (Context, Index) -> Bits;
    /// The extent of an input along a dimension.
    InputDim input_dim = "monopour_rt_input_dim" (Context, Index, Index) -> Extent;
    /// Hands a scalar over as a result.
    ResultScalar result_scalar = "monopour_rt_result_scalar" (Context, Index, Bits);
    /// States the extent of a result along a dimension.
    ResultDim result_dim = "monopour_rt_result_dim" (Context, Index, Index, Extent);
    /// Pushes a scalar as an argument of the next dispatch.
    Scalar scalar = "monopour_rt_scalar" (Context, Bits);
    /// Waits for the device and reads an element: buffer, offset, bytes.
    Read read = "monopour_rt_read" (Context, Handle, Bytes, Bytes) -> Bits;
    /// Writes an element: buffer, offset, bytes, value.
    Write write = "monopour_rt_write" (Context, Handle, Bytes, Bytes, Bits);
    /// Appends up to eight bytes to the message of the next trap.
    Message message = "monopour_rt_message" (Context, Bits);
    /// Ends the run: every later call does nothing.
    Trap trap = "monopour_rt_trap" (Context, Code);
    /// Whether the run goes on: no call has failed so far, and no one has cancelled it.
    Ok ok = "monopour_rt_ok" (Context) -> Bool;
    /// Asks for the place of a transient: bytes, and the positions of the first and the last op that use it.
    Request request = "monopour_rt_request" (Context, Bytes, Extent, Extent);
    /// The buffer of a request, by the order of the requests. The first call plans them all; none may follow.
    Place place = "monopour_rt_place" (Context, Index) -> Handle;
}

impl RuntimeFunction {
    /// The function of a symbol.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| f.name() == name)
    }
}

/// A function of the C library that LLVM generates from plain loops; the runtime provides it too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LibraryFunction {
    /// `memcpy`.
    Memcpy,
    /// `memmove`.
    Memmove,
    /// `memset`.
    Memset,
}

impl LibraryFunction {
    /// The function of a symbol.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "memcpy" => Some(LibraryFunction::Memcpy),
            "memmove" => Some(LibraryFunction::Memmove),
            "memset" => Some(LibraryFunction::Memset),
            _ => None,
        }
    }
}

/// The reason why host code ends a run; the argument of [`RuntimeFunction::Trap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trap {
    /// An index outside of its tensor.
    Index = 1,
    /// Sizes of tensors that do not match.
    Shape = 2,
    /// A `cf.assert`, whose message was sent before.
    Assertion = 3,
    /// A negative size, or a tensor larger than any memory.
    Size = 4,
    /// A division or a shift without a result.
    Arithmetic = 5,
}

impl Trap {
    /// The argument.
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// The reason of an argument.
    pub fn parse(code: i64) -> Option<Self> {
        [Trap::Index, Trap::Shape, Trap::Assertion, Trap::Size, Trap::Arithmetic].into_iter().find(|t| t.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn functions_have_distinct_symbols_and_take_the_context_first() {
        let all = RuntimeFunction::ALL;
        assert_eq!(all.iter().map(|f| f.name()).collect::<HashSet<_>>().len(), all.len());
        for function in all {
            assert_eq!(RuntimeFunction::parse(function.name()), Some(*function));
            assert!(function.name().starts_with("monopour_rt_"));
            assert_eq!(function.arguments()[0], Kind::Context, "{function:?}");
            assert!(!function.arguments()[1..].contains(&Kind::Context), "{function:?}");
        }
        assert_eq!(RuntimeFunction::parse("monopour_rt_nothing"), None);
    }

    #[test]
    fn traps_read_back() {
        assert_eq!(Trap::parse(Trap::Size.code()), Some(Trap::Size));
        assert_eq!(Trap::parse(0), None);
    }
}
