//! Modules as data: types, constants, variables, and functions as lists of blocks.

use std::collections::HashMap;

use spirv::{Decoration, ExecutionMode, Op, StorageClass};

use super::error::Error;
use super::reader::{Instruction, instructions};
use super::types::{Matrix, Scalar, Type, TypeInfo};

/// Bits of a pointer that hold the offset in its variable.
pub(super) const OFFSET_BITS: u32 = 40;

/// Where the values of an id are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Slot {
    /// The position of its first scalar among those of its file.
    pub base: u32,
    /// Its scalars; 0 for an id without values.
    pub scalars: u32,
    /// Whether it is a constant: the same for all invocations.
    pub is_constant: bool,
}

/// A variable outside of functions, or of one.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub id: u32,
    pub class: StorageClass,
    /// The type of its value.
    pub ty: u32,
    /// A constant with its first value.
    pub initializer: Option<u32>,
    /// The built-in that it is, or its binding; else 0.
    pub number: u32,
    /// Its first byte among the variables of its class.
    pub base: u32,
    /// Whether the module stores through it.
    pub is_written: bool,
    /// The position of its function; the largest number for a variable of none.
    pub function: usize,
}

/// Instructions up to the one that ends them.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub label: u32,
    pub code: Vec<Instruction>,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    pub id: u32,
    pub parameters: Vec<u32>,
    pub blocks: Vec<Block>,
    /// Positions of blocks by label.
    pub labels: HashMap<u32, u32>,
}

/// A module with one compute shader.
#[derive(Clone, Debug)]
pub struct Module {
    pub(super) types: HashMap<u32, TypeInfo>,
    /// The type of an id with values.
    pub(super) type_of: Vec<u32>,
    pub(super) slots: Vec<Slot>,
    /// Scalars of constants.
    pub(super) constants: Vec<u64>,
    /// Scalars of all other ids.
    pub(super) registers: u32,
    pub(super) variables: Vec<Variable>,
    /// Positions of variables by id.
    pub(super) variable_of: HashMap<u32, u32>,
    pub(super) functions: Vec<Function>,
    pub(super) entry: usize,
    pub(super) workgroup_size: [u32; 3],
    /// The id of the extended instructions.
    pub(super) extended: u32,
    /// Bytes of the variables of an invocation, and of a workgroup.
    pub(super) private_bytes: u32,
    pub(super) workgroup_bytes: u32,
    /// Lanes of the subgroups that hold its matrices; 0 without one.
    pub(super) matrix_lanes: u32,
    capabilities: Vec<u32>,
}

/// The parts of a module that later instructions refer to.
#[derive(Default)]
struct Parser {
    module: Option<Module>,
    /// Invocations of a subgroup.
    lanes: u32,
    entry: u32,
    decorations: HashMap<(u32, u32), u32>,
    members: HashMap<(u32, u32), u32>,
}

/// The size of subgroups that modules are read for where none is named.
const USUAL_LANES: u32 = 32;
/// The most ids of a module, a bound against modules that are nonsense.
const MOST_IDS: u32 = 1 << 20;
/// The most scalars of all ids, and bytes of all variables of an invocation or a workgroup.
const MOST_SCALARS: u32 = 1 << 20;
const MOST_VARIABLE_BYTES: u32 = 1 << 22;

impl Module {
    /// Reads a module of words in the order of this machine, for subgroups of 32 if it has cooperative matrices.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Unsupported`].
    pub fn parse(words: &[u32]) -> Result<Module, Error> {
        Module::parse_for(words, USUAL_LANES)
    }

    /// As [`Module::parse`], with cooperative matrices that subgroups of `subgroup_size` invocations hold.
    ///
    /// # Errors
    /// As [`Module::parse`].
    pub fn parse_for(words: &[u32], subgroup_size: u32) -> Result<Module, Error> {
        let (bound, list) = instructions(words)?;
        if bound > MOST_IDS {
            return Err(Error::Malformed { word: 3, what: "the bound on ids is too large" });
        }
        let mut parser =
            Parser { module: Some(Module::empty(bound)), lanes: subgroup_size.max(1), ..Parser::default() };
        let body = list.iter().position(|i| i.op == Op::Function).unwrap_or(list.len());
        for instruction in &list[..body] {
            parser.global(instruction)?;
        }
        let mut module = parser.module.take().expect("a parser holds its module until the end");
        module.read_functions(&list[body..])?;
        let entry = module.functions.iter().position(|f| f.id == parser.entry);
        module.entry = entry.ok_or(Error::Malformed { word: 5, what: "it has no entry point" })?;
        module.mark_written();
        Ok(module)
    }

    fn empty(bound: u32) -> Module {
        Module {
            types: HashMap::new(),
            type_of: vec![0; bound as usize],
            slots: vec![Slot::default(); bound as usize],
            constants: vec![],
            registers: 0,
            variables: vec![],
            variable_of: HashMap::new(),
            functions: vec![],
            entry: 0,
            workgroup_size: [1; 3],
            extended: 0,
            private_bytes: 0,
            workgroup_bytes: 0,
            matrix_lanes: 0,
            capabilities: vec![],
        }
    }

    /// Invocations of a workgroup: x, y, z.
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.workgroup_size
    }

    /// Whether it has cooperative matrices.
    pub fn has_matrices(&self) -> bool {
        self.matrix_lanes != 0
    }

    /// The capabilities that it declares, by number.
    pub fn capabilities(&self) -> &[u32] {
        &self.capabilities
    }

    /// The kind of each scalar that a module has a type for: whether it is a float, and its bits.
    pub fn scalar_types(&self) -> Vec<(bool, u32)> {
        let scalar = |info: &TypeInfo| match info.ty {
            Type::Scalar(Scalar::Float(bits)) => Some((true, bits)),
            Type::Scalar(Scalar::Int(bits)) => Some((false, bits)),
            _ => None,
        };
        let mut found: Vec<_> = self.types.values().filter_map(scalar).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    pub(super) fn info(&self, id: u32, word: usize) -> Result<&TypeInfo, Error> {
        self.types.get(&id).ok_or(Error::Malformed { word, what: "an id is no type" })
    }

    /// The type of the values of an id.
    pub(super) fn value_type(&self, id: u32, word: usize) -> Result<&TypeInfo, Error> {
        let ty = self.type_of.get(id as usize).copied().unwrap_or(0);
        self.types.get(&ty).ok_or(Error::Malformed { word, what: "an operand has no type" })
    }

    /// The value of a scalar constant.
    pub(super) fn constant(&self, id: u32, word: usize) -> Result<u64, Error> {
        let slot = self.slots.get(id as usize).filter(|slot| slot.is_constant && slot.scalars == 1);
        slot.map(|slot| self.constants[slot.base as usize])
            .ok_or(Error::Malformed { word, what: "an operand is no scalar constant" })
    }

    /// Gives an id a slot for values of a type.
    fn declare(&mut self, id: u32, ty: u32, word: usize) -> Result<(), Error> {
        let scalars = self.info(ty, word)?.leaves.len() as u32;
        let slot = self.slots.get_mut(id as usize).ok_or(Error::Malformed { word, what: "an id is over the bound" })?;
        *slot = Slot { base: self.registers, scalars, is_constant: false };
        self.type_of[id as usize] = ty;
        self.registers += scalars;
        if self.registers > MOST_SCALARS {
            return Err(Error::Malformed { word, what: "it has too many values" });
        }
        Ok(())
    }

    fn declare_constant(&mut self, instruction: &Instruction, values: &[u64]) -> Result<(), Error> {
        let Instruction { result, ty, word, .. } = *instruction;
        let scalars = self.info(ty, word)?.leaves.len();
        if scalars != values.len() {
            return Err(Error::Malformed { word, what: "a constant does not fit its type" });
        }
        let base = self.constants.len() as u32;
        let slot = self.slots.get_mut(result as usize);
        let slot = slot.ok_or(Error::Malformed { word, what: "an id is over the bound" })?;
        *slot = Slot { base, scalars: scalars as u32, is_constant: true };
        self.type_of[result as usize] = ty;
        self.constants.extend_from_slice(values);
        Ok(())
    }

    /// Reads the functions; their variables become the module's.
    fn read_functions(&mut self, list: &[Instruction]) -> Result<(), Error> {
        let mut function = Function::default();
        for instruction in list {
            let Instruction { op, result, ty, word, .. } = *instruction;
            match op {
                Op::Function => function = Function { id: result, ..Function::default() },
                Op::FunctionParameter => {
                    self.declare(result, ty, word)?;
                    function.parameters.push(result);
                }
                Op::FunctionEnd => self.functions.push(std::mem::take(&mut function)),
                Op::Label => {
                    function.labels.insert(result, function.blocks.len() as u32);
                    function.blocks.push(Block { label: result, code: vec![] });
                }
                Op::Variable => self.add_variable(instruction, 0, self.functions.len())?,
                _ => {
                    if result != 0 && !matches!(self.info(ty, word)?.ty, Type::Void) {
                        self.declare(result, ty, word)?;
                    }
                    let block = function.blocks.last_mut();
                    let block = block.ok_or(Error::Malformed { word, what: "an instruction is in no block" })?;
                    block.code.push(instruction.clone());
                }
            }
        }
        Ok(())
    }

    fn add_variable(&mut self, instruction: &Instruction, number: u32, function: usize) -> Result<(), Error> {
        let Instruction { result: id, ty: pointer, word, .. } = *instruction;
        let class = StorageClass::from_u32(instruction.operand(0)?);
        let class = class.ok_or(Error::Malformed { word, what: "a storage class is unknown" })?;
        let Type::Pointer(ty) = self.info(pointer, word)?.ty else {
            return Err(Error::Malformed { word, what: "a variable's type is no pointer" });
        };
        let bytes = self.info(ty, word)?.bytes.next_multiple_of(16);
        let base = match class {
            StorageClass::Function | StorageClass::Private => &mut self.private_bytes,
            StorageClass::Workgroup => &mut self.workgroup_bytes,
            _ => &mut 0,
        };
        let at = *base;
        *base += bytes;
        if *base > MOST_VARIABLE_BYTES {
            return Err(Error::Malformed { word, what: "variables are too large" });
        }
        let initializer = instruction.operands.get(1).copied();
        let position = self.variables.len() as u32;
        self.variables.push(Variable { id, class, ty, initializer, number, base: at, is_written: false, function });
        self.variable_of.insert(id, position);
        let pointer_value = u64::from(position) << OFFSET_BITS;
        let constant = Instruction { ty: pointer, ..instruction.clone() };
        self.declare_constant(&constant, &[pointer_value])
    }

    /// Finds the variables that some instruction stores through.
    fn mark_written(&mut self) {
        let mut root: HashMap<u32, u32> = self.variable_of.clone();
        let mut written = vec![];
        for instruction in self.functions.iter().flat_map(|f| &f.blocks).flat_map(|b| &b.code) {
            let first = instruction.operands.first().and_then(|id| root.get(id)).copied();
            match (instruction.op, first) {
                (Op::AccessChain | Op::InBoundsAccessChain | Op::CopyObject, Some(variable)) => {
                    root.insert(instruction.result, variable);
                }
                (Op::Load | Op::ArrayLength | Op::AtomicLoad | Op::CooperativeMatrixLoadKHR, _) => {}
                (_, Some(variable)) => written.push(variable),
                // A pointer may be an argument of a function.
                _ => written.extend(instruction.operands.iter().filter_map(|id| root.get(id)).copied()),
            }
        }
        written.into_iter().for_each(|variable| self.variables[variable as usize].is_written = true);
    }
}

impl Parser {
    fn module(&mut self) -> &mut Module {
        self.module.as_mut().expect("a parser holds its module until the end")
    }

    /// An instruction before the functions.
    fn global(&mut self, instruction: &Instruction) -> Result<(), Error> {
        let operand = |index: usize| instruction.operand(index);
        match instruction.op {
            Op::Capability => {
                let capability = operand(0)?;
                self.module().capabilities.push(capability);
            }
            Op::EntryPoint => self.entry = operand(1)?,
            Op::ExecutionMode if operand(1)? == ExecutionMode::LocalSize as u32 => {
                self.module().workgroup_size = [operand(2)?, operand(3)?, operand(4)?];
            }
            Op::ExtInstImport => self.module().extended = instruction.result,
            Op::Decorate => {
                let value = instruction.operands.get(2).copied().unwrap_or(0);
                self.decorations.insert((operand(0)?, operand(1)?), value);
            }
            Op::MemberDecorate if operand(2)? == Decoration::Offset as u32 => {
                self.members.insert((operand(0)?, operand(1)?), operand(3)?);
            }
            Op::Variable => {
                let number = self.decoration(instruction.result, Decoration::BuiltIn);
                let number = number.or(self.decoration(instruction.result, Decoration::Binding)).unwrap_or(0);
                self.module().add_variable(instruction, number, usize::MAX)?;
            }
            op if is_type(op) => {
                let info = self.type_info(instruction)?;
                self.module().types.insert(instruction.result, info);
            }
            op if is_constant(op) => {
                let values = self.constant_values(instruction)?;
                self.module().declare_constant(instruction, &values)?;
            }
            Op::ExecutionMode | Op::MemberDecorate | Op::Extension | Op::MemoryModel | Op::Nop => {}
            Op::Source | Op::SourceExtension | Op::String | Op::Name | Op::MemberName | Op::Line | Op::NoLine => {}
            _ => return Err(instruction.unsupported()),
        }
        Ok(())
    }

    fn decoration(&self, id: u32, decoration: Decoration) -> Option<u32> {
        self.decorations.get(&(id, decoration as u32)).copied()
    }

    fn type_info(&mut self, instruction: &Instruction) -> Result<TypeInfo, Error> {
        let (id, word) = (instruction.result, instruction.word);
        let operand = |index: usize| instruction.operand(index);
        let stride = self.decoration(id, Decoration::ArrayStride).unwrap_or(0);
        let module = self.module.as_ref().expect("a parser holds its module until the end");
        let element = |index: usize| operand(index).and_then(|id| Ok((id, module.info(id, word)?)));
        match instruction.op {
            Op::TypeVoid => Ok(TypeInfo::opaque(Type::Void)),
            Op::TypeFunction => Ok(TypeInfo::opaque(Type::Function)),
            Op::TypeBool => Ok(TypeInfo::scalar(Scalar::Bool)),
            Op::TypeInt if matches!(operand(0)?, 8 | 16 | 32 | 64) => Ok(TypeInfo::scalar(Scalar::Int(operand(0)?))),
            Op::TypeFloat if matches!(operand(0)?, 16 | 32 | 64) => Ok(TypeInfo::scalar(Scalar::Float(operand(0)?))),
            Op::TypeVector => TypeInfo::array(element(0)?, operand(1)?, 0, word),
            Op::TypeArray => {
                let count = u32::try_from(module.constant(operand(1)?, word)?);
                let count = count.map_err(|_| Error::Malformed { word, what: "an array is too long" })?;
                TypeInfo::array(element(0)?, count, stride, word)
            }
            Op::TypeRuntimeArray => {
                let (element, info) = element(0)?;
                let stride = if stride == 0 { info.bytes } else { stride };
                Ok(TypeInfo::opaque(Type::RuntimeArray(element, stride)))
            }
            Op::TypeStruct => {
                let mut members = vec![];
                let mut end = 0;
                for at in 0..instruction.operands.len() {
                    let (member, info) = element(at)?;
                    let offset = self.members.get(&(id, at as u32)).copied().unwrap_or(end);
                    end = offset.saturating_add(info.bytes);
                    members.push((member, offset, info));
                }
                TypeInfo::structure(&members, word)
            }
            Op::TypePointer => Ok(TypeInfo::pointer(operand(1)?)),
            Op::TypeCooperativeMatrixKHR => self.matrix_info(instruction),
            _ => Err(instruction.unsupported()),
        }
    }

    /// A matrix of a subgroup: scalar type, scope, rows, columns and use, the latter as constants.
    fn matrix_info(&mut self, instruction: &Instruction) -> Result<TypeInfo, Error> {
        let (word, lanes) = (instruction.word, self.lanes);
        let module = self.module();
        let constant = |index: usize| module.constant(instruction.operand(index)?, word).map(|value| value as u32);
        let Type::Scalar(scalar @ Scalar::Float(_)) = module.info(instruction.operand(0)?, word)?.ty else {
            return Err(instruction.unsupported());
        };
        if constant(1)? != spirv::Scope::Subgroup as u32 {
            return Err(instruction.unsupported());
        }
        let matrix = Matrix { scalar, rows: constant(2)?, columns: constant(3)?, role: constant(4)? };
        module.matrix_lanes = lanes;
        TypeInfo::matrix(matrix, lanes, word)
    }

    fn constant_values(&mut self, instruction: &Instruction) -> Result<Vec<u64>, Error> {
        let word = instruction.word;
        let module = self.module.as_ref().expect("a parser holds its module until the end");
        let info = module.info(instruction.ty, word)?;
        Ok(match instruction.op {
            Op::ConstantTrue => vec![1],
            Op::ConstantFalse => vec![0],
            Op::ConstantNull | Op::Undef => vec![0; info.leaves.len()],
            Op::Constant => {
                let high = instruction.operands.get(1).copied().unwrap_or(0);
                let mask = info.first().map_or(0, Scalar::mask);
                vec![(u64::from(instruction.operand(0)?) | u64::from(high) << 32) & mask]
            }
            _ => {
                let mut values = vec![];
                for id in &instruction.operands {
                    let slot = module.slots.get(*id as usize).filter(|slot| slot.is_constant);
                    let slot = slot.ok_or(Error::Malformed { word, what: "a part of a constant is none" })?;
                    let (from, count) = (slot.base as usize, slot.scalars as usize);
                    values.extend_from_slice(&module.constants[from..from + count]);
                }
                values
            }
        })
    }
}

fn is_type(op: Op) -> bool {
    let scalar = matches!(op, Op::TypeVoid | Op::TypeBool | Op::TypeInt | Op::TypeFloat | Op::TypeFunction);
    let list = matches!(op, Op::TypeVector | Op::TypeArray | Op::TypeRuntimeArray | Op::TypeStruct);
    scalar || list || matches!(op, Op::TypePointer | Op::TypeCooperativeMatrixKHR)
}

fn is_constant(op: Op) -> bool {
    let scalar = matches!(op, Op::Constant | Op::ConstantTrue | Op::ConstantFalse);
    scalar || matches!(op, Op::ConstantNull | Op::ConstantComposite | Op::Undef)
}
