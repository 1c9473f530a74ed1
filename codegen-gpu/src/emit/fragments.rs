//! Elements of cooperative matrices that an invocation holds, and conversions of whole matrices, in SPIR-V.
//!
//! Before, as naga writes it: matrices are stored to and loaded from variables of the function, arrays of f32, or structs of
//! such an array and one of f16, whose members stand for one matrix in two types.
//! After: each such variable is a matrix of f32 sums; a store or a load of one is `OpStore` or `OpLoad`, with `OpFConvert` for
//! f16, and an element of the array is an element that the invocation holds.
//! Requires: no other use of the variables; as many elements in each invocation as the array has.
//!
//! Source: `SPV_KHR_cooperative_matrix`: a variable of a matrix is indexed by an access chain; conversions keep places.

use super::module::{Ex, Kernel};
use naga::{Scalar, StructMember, TypeInner};
use spirv::{CooperativeMatrixUse, Op, StorageClass};
use std::collections::{HashMap, HashSet};

/// Words before the first instruction; the bound of ids is in the fourth.
const HEADER_WORDS: usize = 5;
const BOUND: usize = 3;

/// A variable for one matrix of sums as f32 and as f16. The length does not matter.
pub(super) fn variable(kernel: &mut Kernel) -> Ex {
    let mut member = |scalar: Scalar, offset: u32| {
        let base = kernel.ty(TypeInner::Scalar(scalar));
        let width = u32::from(scalar.width);
        StructMember {
            name: Some(format!("f{}", 8 * width)),
            ty: kernel.array_type(base, width, 1),
            binding: None,
            offset,
        }
    };
    let members = vec![member(Scalar::F32, 0), member(Scalar::F16, 4)];
    let ty = kernel.named_ty("Sums", TypeInner::Struct { members, span: 8 });
    kernel.local(ty)
}

/// One instruction: its opcode and its words, the first one included.
#[derive(Clone, Copy)]
struct Instruction<'w> {
    op: u32,
    words: &'w [u32],
}

impl Instruction<'_> {
    fn is(&self, op: Op) -> bool {
        self.op == op as u32
    }
    fn word(&self, at: usize) -> u32 {
        self.words.get(at).copied().unwrap_or(0)
    }
}

fn instructions(words: &[u32]) -> Option<Vec<Instruction<'_>>> {
    let mut rest = words.get(HEADER_WORDS..)?;
    let mut out = vec![];
    while let Some(first) = rest.first() {
        let (words, after) = rest.split_at_checked((first >> 16) as usize).filter(|(words, _)| !words.is_empty())?;
        out.push(Instruction { op: first & 0xffff, words });
        rest = after;
    }
    Some(out)
}

/// What the pass needs to know of a module.
#[derive(Default)]
struct Found {
    /// Widths of float types, and of the elements of types of matrices of sums.
    floats: HashMap<u32, u32>,
    sums: HashMap<u32, u32>,
    /// Types of pointers into a function's memory, by what they point to.
    pointers: HashMap<u32, u32>,
    /// Types by value, of matrices of sums.
    values: HashMap<u32, u32>,
    /// Variables of the function, and by access chain the variable and the indices.
    variables: HashSet<u32>,
    chains: HashMap<u32, (u32, Vec<u32>)>,
    /// Variables that stand for a matrix, and those of two members.
    marked: HashSet<u32>,
    structs: HashSet<u32>,
}

impl Found {
    fn of(all: &[Instruction]) -> Self {
        let mut found = Self::default();
        let mut constants = HashMap::new();
        for i in all {
            let (ty, id) = (i.word(1), i.word(2));
            if i.is(Op::TypeFloat) {
                found.floats.insert(ty, id);
            } else if i.is(Op::Constant) {
                constants.insert(id, i.word(3));
            } else if i.is(Op::TypeCooperativeMatrixKHR) {
                let is_sums = constants.get(&i.word(6)) == Some(&(CooperativeMatrixUse::MatrixAccumulatorKHR as u32));
                if let Some(width) = found.floats.get(&id).filter(|_| is_sums) {
                    found.sums.insert(ty, *width);
                }
            } else if i.is(Op::TypePointer) && id == StorageClass::Function as u32 {
                found.pointers.insert(i.word(3), ty);
            } else if i.is(Op::Variable) && i.word(3) == StorageClass::Function as u32 {
                found.variables.insert(id);
            } else if i.is(Op::AccessChain) && found.variables.contains(&i.word(3)) {
                found.chains.insert(id, (i.word(3), i.words[4..].to_vec()));
            } else if found.sums.contains_key(&ty) {
                found.values.insert(id, ty);
            }
            let pointer = match i.op {
                op if op == Op::CooperativeMatrixLoadKHR as u32 => i.word(3),
                op if op == Op::CooperativeMatrixStoreKHR as u32 => ty,
                _ => continue,
            };
            if let Some((variable, indices)) = found.chains.get(&pointer) {
                found.marked.insert(*variable);
                if indices.len() == 2 {
                    found.structs.insert(*variable);
                }
            }
        }
        found
    }

    /// The variable of a matrix that a pointer points into.
    fn variable(&self, pointer: u32) -> Option<u32> {
        self.chains.get(&pointer).map(|(variable, _)| *variable).filter(|variable| self.marked.contains(variable))
    }
}

/// An instruction's first word, and the rest.
fn push(out: &mut Vec<u32>, op: Op, operands: &[u32]) {
    out.push((operands.len() as u32 + 1) << 16 | op as u32);
    out.extend(operands);
}

/// Makes the variables matrices.
///
/// # Errors
/// What is wrong with the module: a defect of the emitter.
pub(super) fn resolve(words: Vec<u32>) -> Result<Vec<u32>, String> {
    let all = instructions(&words).ok_or("an instruction of the SPIR-V has no words")?;
    let found = Found::of(&all);
    if found.marked.is_empty() {
        return Ok(words);
    }
    let wide = found.sums.iter().filter(|(_, width)| **width == 32).map(|(ty, _)| *ty).min();
    let wide = wide.ok_or("no matrix of sums has elements of f32")?;
    let mut out = words[..HEADER_WORDS].to_vec();
    let mut bound = words[BOUND];
    let mut fresh = || {
        bound += 1;
        bound - 1
    };
    let known = found.pointers.get(&wide).copied();
    let pointer = known.unwrap_or_else(&mut fresh);
    for i in &all {
        let (ty, id) = (i.word(1), i.word(2));
        if i.is(Op::Variable) && found.marked.contains(&id) {
            push(&mut out, Op::Variable, &[pointer, id, i.word(3)]);
        } else if i.is(Op::AccessChain) && found.variable(id).is_some() {
            // Of two members the indices stand in a load or a store of the whole only.
            if !found.structs.contains(&i.word(3)) {
                out.extend(i.words);
            }
        } else if let Some(variable) = found.variable(ty).filter(|_| i.is(Op::CooperativeMatrixStoreKHR)) {
            let mut object = id;
            if found.values.get(&id).ok_or("what is stored is no matrix of sums")? != &wide {
                object = fresh();
                push(&mut out, Op::FConvert, &[wide, object, id]);
            }
            push(&mut out, Op::Store, &[variable, object]);
        } else if let Some(variable) = found.variable(i.word(3)).filter(|_| i.is(Op::CooperativeMatrixLoadKHR)) {
            if ty == wide {
                push(&mut out, Op::Load, &[ty, id, variable]);
            } else {
                let loaded = fresh();
                push(&mut out, Op::Load, &[wide, loaded, variable]);
                push(&mut out, Op::FConvert, &[ty, id, loaded]);
            }
        } else {
            out.extend(i.words);
            if known.is_none() && i.is(Op::TypeCooperativeMatrixKHR) && ty == wide {
                push(&mut out, Op::TypePointer, &[pointer, StorageClass::Function as u32, wide]);
            }
        }
    }
    out[BOUND] = bound;
    Ok(out)
}
