//! Defects planted in a right module, to see that they are found.

use spirv::Op;

use super::error::Error;
use super::module::Module;
use super::reader::{Instruction, instructions};
use super::types::{Scalar, Type};

/// A kind of defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A barrier is missing.
    Barrier,
    /// A barrier orders no memory.
    Semantics,
    /// The last index of an access is one too large.
    Index,
    /// One component of a vector is taken for its neighbour: of an id another axis, of a register tile another column.
    /// Of a cooperative matrix, rows are taken for columns.
    Layout,
    /// Lines of a cooperative matrix are two entries of the array further apart.
    Stride,
}

impl Defect {
    /// All kinds.
    pub const ALL: [Defect; 5] = [Defect::Barrier, Defect::Semantics, Defect::Index, Defect::Layout, Defect::Stride];
}

/// The modules with one defect of this kind each, in the order of their places.
///
/// # Errors
/// Those of [`Module::parse`].
pub fn planted(words: &[u32], defect: Defect) -> Result<Vec<Vec<u32>>, Error> {
    let module = Module::parse(words)?;
    let (_, list) = instructions(words)?;
    let one = |instruction: &Instruction| match (instruction.op, defect) {
        (Op::ControlBarrier, Defect::Barrier) => Some(without(words, instruction)),
        (Op::ControlBarrier, Defect::Semantics) => replaced(words, &module, (instruction, 2), |_| 0),
        (Op::AccessChain, Defect::Index) => shifted(words, &module, instruction),
        (Op::CompositeExtract, Defect::Layout) => swapped(words, &module, instruction),
        (Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixStoreKHR, _) => {
            of_matrix(words, &module, instruction, defect)
        }
        _ => None,
    };
    Ok(list.iter().filter_map(one).collect())
}

/// A word of an instruction without words beside the first.
fn nop() -> u32 {
    1 << 16 | Op::Nop as u32
}

fn without(words: &[u32], instruction: &Instruction) -> Vec<u32> {
    let mut out = words.to_vec();
    let count = (words[instruction.word] >> 16) as usize;
    out[instruction.word..instruction.word + count].fill(nop());
    out
}

/// An access of a matrix in the other order, or with other lines.
fn of_matrix(words: &[u32], module: &Module, instruction: &Instruction, defect: Defect) -> Option<Vec<u32>> {
    let layout = if instruction.op == Op::CooperativeMatrixLoadKHR { 1 } else { 2 };
    match defect {
        Defect::Layout => replaced(words, module, (instruction, layout), |layout| layout ^ 1),
        Defect::Stride => replaced(words, module, (instruction, layout + 1), |stride| stride.wrapping_add(2)),
        _ => None,
    }
}

/// Another constant in place of an operand that is one.
fn replaced(
    words: &[u32],
    module: &Module,
    (instruction, operand): (&Instruction, usize),
    change: impl Fn(u32) -> u32,
) -> Option<Vec<u32>> {
    let old = *instruction.operands.get(operand)?;
    let value = module.constant(old, instruction.word).ok()? as u32;
    let ty = *module.type_of.get(old as usize)?;
    let mut out = words.to_vec();
    let id = words[3];
    out[3] += 1;
    let ids = usize::from(instruction.ty != 0) + usize::from(instruction.result != 0);
    out[instruction.word + 1 + ids + operand] = id;
    insert(&mut out, before_functions(words), &[4 << 16 | Op::Constant as u32, ty, id, change(value)]);
    Some(out)
}

/// An access chain whose last index is not a constant, with that index plus one.
fn shifted(words: &[u32], module: &Module, instruction: &Instruction) -> Option<Vec<u32>> {
    let index = *instruction.operands.last().filter(|_| instruction.operands.len() > 1)?;
    let is_constant = module.slots.get(index as usize)?.is_constant;
    let ty = *module.type_of.get(index as usize)?;
    let is_word = matches!(module.types.get(&ty)?.ty, Type::Scalar(Scalar::Int(32)));
    if is_constant || !is_word {
        return None;
    }
    let mut out = words.to_vec();
    let (one, sum) = (words[3], words[3] + 1);
    out[3] += 2;
    let count = (words[instruction.word] >> 16) as usize;
    out[instruction.word + count - 1] = sum;
    insert(&mut out, instruction.word, &[5 << 16 | Op::IAdd as u32, ty, sum, index, one]);
    insert(&mut out, before_functions(words), &[4 << 16 | Op::Constant as u32, ty, one, 1]);
    Some(out)
}

/// A component of a vector, taken for the next one, or of the last for the first.
fn swapped(words: &[u32], module: &Module, instruction: &Instruction) -> Option<Vec<u32>> {
    let [from, index] = instruction.operands[..] else { return None };
    let Type::Array(_, count, _) = module.types.get(module.type_of.get(from as usize)?)?.ty else { return None };
    let mut out = words.to_vec();
    out[instruction.word + 4] = (index + 1) % count;
    Some(out)
}

fn insert(words: &mut Vec<u32>, at: usize, instruction: &[u32]) {
    words.splice(at..at, instruction.iter().copied());
}

/// Where constants may still be declared.
fn before_functions(words: &[u32]) -> usize {
    let list = instructions(words).map_or(vec![], |(_, list)| list);
    list.iter().find(|i| i.op == Op::Function).map_or(words.len(), |i| i.word)
}
