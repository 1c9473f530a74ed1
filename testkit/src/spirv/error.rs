//! Errors of the interpreter: modules that it cannot read, and faults of kernels.

use std::fmt;

/// Why a dispatch has no result.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The words are no module, or break a rule that validation checks.
    Malformed {
        /// Position of the instruction, in words.
        word: usize,
        /// The broken rule.
        what: &'static str,
    },
    /// The interpreter does not know an instruction, or this form of it.
    Unsupported {
        /// Position of the instruction, in words.
        word: usize,
        /// Its name.
        instruction: String,
    },
    /// A launch that does not fit the module.
    Launch {
        /// What does not fit.
        what: &'static str,
    },
    /// More instructions than the launch allows.
    Steps {
        /// The limit, in instructions of a subgroup.
        limit: u64,
    },
    /// The kernel did what no kernel may do.
    Fault(Box<Fault>),
}

/// A defect of a kernel, at the instruction that shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The defect.
    pub kind: FaultKind,
    /// Position of the instruction, in words.
    pub word: usize,
    /// Its name.
    pub instruction: String,
    /// The workgroup.
    pub workgroup: [u32; 3],
    /// The invocation in its workgroup.
    pub invocation: u32,
}

/// The kind of a defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// Two invocations access a location without a barrier between, and one of them writes.
    Race {
        /// The memory.
        place: Place,
        /// Bytes from its beginning.
        offset: u64,
        /// The other invocation, counted over all workgroups.
        other: Option<u32>,
    },
    /// An access outside of its variable or binding.
    OutOfBounds {
        /// The memory.
        place: Place,
        /// Bytes from its beginning; an address before it wraps to a huge one.
        offset: u64,
        /// Bytes of the memory.
        size: u64,
    },
    /// A load of workgroup memory that no invocation of the workgroup wrote.
    Unwritten {
        /// Bytes from the variable's beginning.
        offset: u64,
    },
    /// A barrier that some invocations of the workgroup do not reach together.
    DivergentBarrier,
    /// A subgroup operation that some invocations of the subgroup do not reach together.
    DivergentSubgroup,
    /// A lane is asked for its value that does not exist.
    AbsentLane {
        /// The lane.
        lane: u64,
    },
    /// An operand of a matrix operation is not the same in all invocations of the subgroup.
    NotUniform,
    /// A line of a matrix does not begin at a multiple of sixteen bytes, or of its own size if that is less.
    Misaligned {
        /// The memory.
        place: Place,
        /// Bytes from its beginning.
        offset: u64,
    },
    /// A division by zero, or of the smallest integer by -1.
    Division,
}

/// Memory of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The buffer at a binding.
    Binding(u32),
    /// A variable of workgroup memory, by its position.
    Workgroup(u32),
    /// A variable of an invocation, by its position.
    Private(u32),
    /// Immediates.
    Immediates,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Binding(binding) => write!(f, "binding {binding}"),
            Place::Workgroup(variable) => write!(f, "workgroup variable {variable}"),
            Place::Private(variable) => write!(f, "private variable {variable}"),
            Place::Immediates => f.write_str("immediates"),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Race { place, offset, other } => {
                write!(f, "race at byte {offset} of {place}")?;
                other.map_or(Ok(()), |other| write!(f, " with invocation {other} of the grid"))
            }
            FaultKind::OutOfBounds { place, offset, size } => {
                write!(f, "access at byte {offset} of {place}, which has {size}")
            }
            FaultKind::Unwritten { offset } => write!(f, "load of unwritten workgroup memory at byte {offset}"),
            FaultKind::DivergentBarrier => f.write_str("barrier that not all invocations of the workgroup reach"),
            FaultKind::DivergentSubgroup => f.write_str("subgroup operation that not all invocations of it reach"),
            FaultKind::AbsentLane { lane } => write!(f, "lane {lane} does not exist"),
            FaultKind::NotUniform => {
                f.write_str("operand of a matrix that differs between invocations of the subgroup")
            }
            FaultKind::Misaligned { place, offset } => write!(f, "line of a matrix at byte {offset} of {place}"),
            FaultKind::Division => f.write_str("division without a result"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed { word, what } => write!(f, "malformed module at word {word}: {what}"),
            Error::Unsupported { word, instruction } => {
                write!(f, "unsupported instruction {instruction} at word {word}")
            }
            Error::Launch { what } => write!(f, "launch: {what}"),
            Error::Steps { limit } => write!(f, "more than {limit} instructions"),
            Error::Fault(fault) => {
                let Fault { kind, word, instruction, workgroup, invocation } = &**fault;
                write!(f, "{kind} ({instruction} at word {word}, workgroup {workgroup:?}, invocation {invocation})")
            }
        }
    }
}

impl std::error::Error for Error {}
