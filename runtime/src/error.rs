//! Errors of loading and running a program.

use monopour_contract::Trap;
use std::fmt;

/// An error of loading or running a program.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// R0001: a GPU was requested, and there is none.
    NoAdapter,
    /// R0002: no device has this name or index.
    NoSuchDevice {
        /// The requested name or index.
        asked: String,
        /// The names of the present devices.
        present: Vec<String>,
    },
    /// R0003: the adapter returned no device.
    DeviceRequest {
        /// The adapter's name.
        adapter: String,
        /// The driver's message.
        message: String,
    },
    /// R0004: no variant of the program can run on the device.
    NoVariant {
        /// The device.
        device: String,
        /// For each variant, its label and missing requirements.
        held: Vec<(String, Vec<String>)>,
    },
    /// R0005: native code that the loader does not support.
    NativeCode {
        /// The defect.
        what: String,
    },
    /// R0006: native code uses a symbol that the runtime does not provide.
    UndefinedSymbol {
        /// The symbol.
        symbol: String,
    },
    /// R0007: an input is missing, unknown or given twice.
    Inputs {
        /// The input and its fault.
        what: String,
    },
    /// R0008: an input has another type than in the program's signature.
    InputType {
        /// The input's name.
        name: String,
        /// Type in the signature.
        expected: String,
        /// Type of the input.
        found: String,
    },
    /// R0008: sizes of inputs do not match.
    InputSize {
        /// The wrong size.
        size: String,
        /// Its value.
        found: i64,
        /// The required value.
        expected: i64,
        /// The size that it has to equal; `None` if the program fixes the value.
        other: Option<String>,
    },
    /// R0009: the user's memory limit would be exceeded.
    MemoryLimit {
        /// Bytes requested now.
        asked_bytes: u64,
        /// Bytes in use.
        used_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// R0010: the device is out of memory.
    OutOfMemory {
        /// Bytes requested, if known.
        asked_bytes: u64,
    },
    /// R0011: the device rejects a kernel or a command.
    Rejected {
        /// The operation.
        doing: String,
        /// The device API's message.
        message: String,
    },
    /// R0012: the device is lost.
    DeviceLost {
        /// The driver's message.
        message: String,
    },
    /// R0013: host code violated the runtime's contract.
    HostCode {
        /// The call and its fault.
        what: String,
    },
    /// R0014: a dispatch would write a read-only buffer.
    Access {
        /// The kernel.
        kernel: String,
        /// The argument and its fault.
        what: String,
    },
    /// R0015: a limit of the device is exceeded.
    Limit {
        /// The kernel or operation.
        subject: String,
        /// The limit's name.
        limit: &'static str,
        /// The amount needed.
        needed: u64,
        /// The amount offered.
        offered: u64,
    },
    /// R0016: a tensor that was donated, or that belongs to another device.
    Tensor {
        /// The tensor, and the reason why it cannot be used.
        what: String,
    },
    /// R0019: a check of the program failed.
    Trap {
        /// The check's code, a [`Trap`].
        code: i64,
        /// The program's message; may be empty.
        message: String,
    },
    /// R0020: the program would run machine code, and no one vouched for it.
    Untrusted {
        /// What would run.
        what: String,
    },
    /// R0021: a kernel of a program that is not trusted is invalid, or not what the program says it is.
    Kernel {
        /// The kernel.
        kernel: String,
        /// Its defect.
        what: String,
    },
    /// R0022: a host function ran for longer than it may.
    Steps {
        /// The most steps of a run.
        limit: u64,
    },
    /// R0023: a run cannot be recorded into an encoder of the caller.
    Record {
        /// What stands in the way.
        what: String,
    },
    /// R0024: a run takes longer than the caller waits; it goes on.
    Timeout {
        /// The time waited.
        waited_ms: u64,
    },
    /// R0025: a run was cancelled.
    Cancelled,
    /// A P code: the program itself is invalid.
    Program(monopour_program::Error),
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::NoAdapter => "R0001",
            Error::NoSuchDevice { .. } => "R0002",
            Error::DeviceRequest { .. } => "R0003",
            Error::NoVariant { .. } => "R0004",
            Error::NativeCode { .. } => "R0005",
            Error::UndefinedSymbol { .. } => "R0006",
            Error::Inputs { .. } => "R0007",
            Error::InputType { .. } | Error::InputSize { .. } => "R0008",
            Error::MemoryLimit { .. } => "R0009",
            Error::OutOfMemory { .. } => "R0010",
            Error::Rejected { .. } => "R0011",
            Error::DeviceLost { .. } => "R0012",
            Error::HostCode { .. } => "R0013",
            Error::Access { .. } => "R0014",
            Error::Limit { .. } => "R0015",
            Error::Tensor { .. } => "R0016",
            Error::Trap { .. } => "R0019",
            Error::Untrusted { .. } => "R0020",
            Error::Kernel { .. } => "R0021",
            Error::Steps { .. } => "R0022",
            Error::Record { .. } => "R0023",
            Error::Timeout { .. } => "R0024",
            Error::Cancelled => "R0025",
            Error::Program(error) => error.code(),
        }
    }

    /// Advice for the user.
    pub fn help(&self) -> &'static str {
        match self {
            Error::NoAdapter => "install a Vulkan, Metal or DX12 driver, or run with `--device cpu`",
            Error::NoSuchDevice { .. } => "`monopour devices` lists what is there",
            Error::DeviceRequest { .. } => "check the driver, or take another device with `--device`",
            Error::NoVariant { .. } => "compile the model for this device: `monopour compile MODEL --target ...`",
            Error::NativeCode { .. } | Error::UndefinedSymbol { .. } => {
                "the artifact was not made for this version of monopour: compile the model again"
            }
            Error::Inputs { .. } | Error::InputType { .. } => {
                "`monopour inspect MODEL` lists the inputs and their types"
            }
            Error::InputSize { .. } => {
                "give inputs whose sizes fit together; `monopour inspect MODEL` lists what must be equal"
            }
            Error::MemoryLimit { .. } => "raise `--memory-limit`, or drop results of earlier runs",
            Error::OutOfMemory { .. } => "free device memory, or use a smaller model or another device",
            Error::Rejected { .. } => "the compiler made something that this device does not take: please report it",
            Error::DeviceLost { .. } => "open the device and load the program again",
            Error::HostCode { .. } | Error::Access { .. } => {
                "the program's host code is defective: compile the model again, and report it if that does not help"
            }
            Error::Limit { .. } => "compile the model for this device, or take another one",
            Error::Tensor { .. } => "give each donated tensor once, and to a session on its own device",
            Error::Trap { .. } => {
                "give inputs whose sizes fit together, and indices within their tensors; divide by no zero"
            }
            Error::Untrusted { .. } => {
                "vouch for the file with `unsafe { program.trust() }`, or on the command line without `--untrusted`; or compile the model for a GPU"
            }
            Error::Kernel { .. } => "the file was not written by monopour, or was changed: compile the model again",
            Error::Steps { .. } => {
                "raise `Options::host_steps`, or vouch for the program if you know where it comes from"
            }
            Error::Record { .. } => {
                "run it with `Session::submit` or `Session::execute`, which may wait for the device"
            }
            Error::Timeout { .. } => "wait again, for longer, or cancel the run",
            Error::Cancelled => "submit the run again; the session works on",
            Error::Program(error) => error.help(),
        }
    }

    /// Whether the device or the machine failed, not the input: exit status 3 of the command line.
    pub fn is_machine_failure(&self) -> bool {
        matches!(
            self,
            Error::NoAdapter
                | Error::NoSuchDevice { .. }
                | Error::DeviceRequest { .. }
                | Error::MemoryLimit { .. }
                | Error::OutOfMemory { .. }
                | Error::Rejected { .. }
                | Error::DeviceLost { .. }
        )
    }

    pub(crate) fn host_code(what: impl Into<String>) -> Error {
        Error::HostCode { what: what.into() }
    }

    pub(crate) fn native(what: impl Into<String>) -> Error {
        Error::NativeCode { what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoAdapter => write!(f, "no adapter: this machine has no GPU with a Vulkan, Metal or DX12 driver"),
            Error::NoSuchDevice { asked, present } => {
                write!(f, "no device `{asked}`; present: {}", present.join(", "))
            }
            Error::DeviceRequest { adapter, message } => write!(f, "adapter `{adapter}` gave no device: {message}"),
            Error::NoVariant { device, held } => {
                write!(f, "no variant of the program fits `{device}`")?;
                held.iter().try_for_each(|(label, missing)| write!(f, "; {label} needs {}", missing.join(", ")))
            }
            Error::NativeCode { what } => write!(f, "native code cannot be loaded: {what}"),
            Error::UndefinedSymbol { symbol } => {
                write!(f, "native code needs `{symbol}`, which the runtime does not offer")
            }
            Error::Inputs { what } => write!(f, "{what}"),
            Error::InputType { name, expected, found } => {
                write!(f, "input `{name}` has type {found}, expected {expected}")
            }
            Error::InputSize { size, found, expected, other: Some(other) } => {
                write!(f, "{size} is {found}, {other} is {expected}: the program needs them to be equal")
            }
            Error::InputSize { size, found, expected, other: None } => {
                write!(f, "{size} is {found}: the program needs it to be {expected}")
            }
            Error::MemoryLimit { asked_bytes, used_bytes, limit_bytes } => {
                write!(f, "memory limit exceeded: {asked_bytes} bytes asked for, {used_bytes} of {limit_bytes} in use")
            }
            Error::OutOfMemory { asked_bytes: 0 } => write!(f, "out of device memory"),
            Error::OutOfMemory { asked_bytes } => write!(f, "out of device memory: {asked_bytes} bytes asked for"),
            Error::Rejected { doing, message } => write!(f, "the device rejects {doing}: {message}"),
            Error::DeviceLost { message } => write!(f, "the device is lost: {message}"),
            Error::HostCode { what } => write!(f, "host code is defective: {what}"),
            Error::Access { kernel, what } => write!(f, "kernel `{kernel}`: {what}"),
            Error::Limit { subject, limit, needed, offered } => {
                write!(f, "{subject} exceeds the device's {limit}: {needed} needed, {offered} offered")
            }
            Error::Tensor { what } => write!(f, "{what}"),
            Error::Trap { code, message } if message.is_empty() => write!(f, "{}", trap_text(*code)),
            Error::Trap { message, .. } => write!(f, "a check of the program failed: {message}"),
            Error::Untrusted { what } => write!(f, "the program is not trusted, and {what}"),
            Error::Kernel { kernel, what } => write!(f, "kernel `{kernel}` is refused: {what}"),
            Error::Steps { limit } => write!(f, "the host function takes more than {limit} steps"),
            Error::Record { what } => write!(f, "the run cannot be recorded: {what}"),
            Error::Timeout { waited_ms } => write!(f, "the run is not done after {waited_ms} ms"),
            Error::Cancelled => write!(f, "the run was cancelled"),
            Error::Program(error) => write!(f, "{error}"),
        }
    }
}

/// The text of a trap without a message.
fn trap_text(code: i64) -> &'static str {
    match Trap::parse(code) {
        Some(Trap::Index) => "an index lies outside of its tensor",
        Some(Trap::Shape) => "sizes of tensors do not fit together",
        Some(Trap::Size) => "a size is negative, or a tensor larger than any memory",
        Some(Trap::Arithmetic) => "a division by zero, of the smallest number by -1, or a shift by too much",
        Some(Trap::Assertion) | None => "a check of the program failed",
    }
}

impl std::error::Error for Error {}

impl From<monopour_program::Error> for Error {
    fn from(error: monopour_program::Error) -> Self {
        Error::Program(error)
    }
}
