//! Instructions from words.

use spirv::{MAGIC_NUMBER, Op};

use super::error::Error;

/// Words before the first instruction.
pub(super) const HEADER_WORDS: usize = 5;

/// An instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Instruction {
    pub op: Op,
    /// The id of the result's type; 0 without one.
    pub ty: u32,
    /// The id of the result; 0 without one.
    pub result: u32,
    /// The other words.
    pub operands: Vec<u32>,
    /// Its position in the module, in words.
    pub word: usize,
}

impl Instruction {
    pub fn operand(&self, index: usize) -> Result<u32, Error> {
        let missing = Error::Malformed { word: self.word, what: "an operand is missing" };
        self.operands.get(index).copied().ok_or(missing)
    }

    /// The error for an instruction that the interpreter does not know.
    pub fn unsupported(&self) -> Error {
        Error::Unsupported { word: self.word, instruction: format!("{:?}", self.op) }
    }
}

/// The bound on ids, and all instructions.
pub(super) fn instructions(words: &[u32]) -> Result<(u32, Vec<Instruction>), Error> {
    if words.len() < HEADER_WORDS || words[0] != MAGIC_NUMBER {
        return Err(Error::Malformed { word: 0, what: "the header is none of SPIR-V" });
    }
    let mut list = vec![];
    let mut word = HEADER_WORDS;
    while word < words.len() {
        let count = (words[word] >> 16) as usize;
        let Some(rest) = words.get(word + 1..word + count).filter(|_| count > 0) else {
            return Err(Error::Malformed { word, what: "an instruction has no end" });
        };
        let code = words[word] & 0xffff;
        let Some(op) = Op::from_u32(code) else {
            return Err(Error::Unsupported { word, instruction: format!("opcode {code}") });
        };
        let (has_type, has_result) = (has_type(op), has_result(op));
        let ids = usize::from(has_type) + usize::from(has_result);
        if rest.len() < ids {
            return Err(Error::Malformed { word, what: "an operand is missing" });
        }
        let ty = if has_type { rest[0] } else { 0 };
        let result = if has_result { rest[ids - 1] } else { 0 };
        list.push(Instruction { op, ty, result, operands: rest[ids..].to_vec(), word });
        word += count;
    }
    Ok((words[3], list))
}

/// Whether an instruction has the type of its result as its first word.
fn has_type(op: Op) -> bool {
    let name = matches!(op, Op::Label | Op::String | Op::ExtInstImport);
    let ty = (Op::TypeVoid as u32..=Op::TypeForwardPointer as u32).contains(&(op as u32))
        || op == Op::TypeCooperativeMatrixKHR;
    has_result(op) && !name && !ty
}

/// Whether an instruction has a result.
fn has_result(op: Op) -> bool {
    let debug = matches!(op, Op::Nop | Op::Source | Op::SourceExtension | Op::SourceContinued | Op::Name)
        || matches!(op, Op::MemberName | Op::Line | Op::NoLine);
    let mode = matches!(op, Op::Extension | Op::MemoryModel | Op::EntryPoint | Op::ExecutionMode | Op::Capability)
        || matches!(op, Op::Decorate | Op::MemberDecorate);
    let flow = matches!(op, Op::LoopMerge | Op::SelectionMerge | Op::Branch | Op::BranchConditional | Op::Switch)
        || matches!(op, Op::Kill | Op::Return | Op::ReturnValue | Op::Unreachable | Op::FunctionEnd);
    let memory = matches!(op, Op::Store | Op::CopyMemory | Op::AtomicStore | Op::ControlBarrier | Op::MemoryBarrier)
        || op == Op::CooperativeMatrixStoreKHR;
    !(debug || mode || flow || memory)
}
