//! The scheduled host function as data.
//!
//! Before / after:
//!
//! ```text
//! %c0 = arith.constant 0 : i64
//! %x = call @monopour_rt_input(%cx, %c0) : (i64, i64) -> i64      %4:i64 = input(0)
//! call @monopour_rt_dispatch(%cx, %c0, %c4, %c1, %c1) : ..        dispatch(0, 4, 1, 1)
//! ```
//!
//! Requires: a scheduled host function. Ensures: code that [`HostCode::verify`] accepts, with the same calls in the same order.
//! Casts that change no bit are left out, and values that nothing can read: of vectors, and poison, which is 0.
//! Limits: scalar ops outside of the closed set, integers of more than 64 bits (S0006).

use crate::error;
use monopour_contract::RuntimeFunction;
use monopour_ir::ops;
use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::{Block, Diagnostics, Op, Region, Type, Value};
use monopour_program::HostCode;
use monopour_program::host::{
    BlockId, HostBlock, HostConstant, HostOp, HostType, MAX_HOST_DEPTH, Register, Rule, ScalarOp,
};
use std::collections::HashMap;

/// Marks the register of a constant until the number of constants is known.
const CONSTANT: Register = 1 << 31;

/// Translates `host`.
///
/// # Errors
/// S0006.
pub fn run(host: Op) -> Result<HostCode, Diagnostics> {
    let mut translation =
        Translation { code: HostCode::default(), registers: HashMap::new(), constants: HashMap::new(), depth: 0 };
    if let Some(body) = host.body() {
        translation.block(body, &[])?;
    }
    let mut code = translation.code;
    let constants = code.constants.len() as Register;
    for block in &mut code.blocks {
        each_register(block, |register| {
            *register = if *register & CONSTANT == 0 { *register + constants } else { *register & !CONSTANT };
        });
    }
    Ok(code)
}

struct Translation<'c> {
    code: HostCode,
    registers: HashMap<Value<'c>, Register>,
    constants: HashMap<HostConstant, Register>,
    depth: usize,
}

impl<'c> Translation<'c> {
    /// Translates a block with these arguments, which have a register each.
    fn block(&mut self, block: Block<'c>, arguments: &[Value<'c>]) -> Result<BlockId, Diagnostics> {
        let id = self.code.blocks.len();
        self.code.blocks.push(HostBlock::default());
        let mut new = HostBlock::default();
        for argument in arguments {
            let op = block.parent_op().or(block.first_op());
            let ty = op.map_or(Ok(HostType::WORD), |op| host_type(op, argument.ty()))?;
            new.arguments.push(self.define(*argument, ty));
        }
        self.depth += 1;
        for op in block.ops() {
            if self.depth > MAX_HOST_DEPTH {
                return Err(error::no_data_form(op, "it is nested too deeply").into());
            }
            self.op(op, &mut new)?;
        }
        self.depth -= 1;
        self.code.blocks[id] = new;
        Ok(id as BlockId)
    }

    fn op(&mut self, op: Op<'c>, into: &mut HostBlock) -> Result<(), Diagnostics> {
        match op.name() {
            ops::func::CALL => self.call(op, into),
            ops::func::RETURN => Ok(()),
            ops::scf::YIELD => {
                into.results = self.reads(op, &op.operands())?;
                Ok(())
            }
            ops::scf::CONDITION => {
                into.condition = Some(self.read(op, op.operand(0))?);
                into.results = self.reads(op, &op.operands()[1..])?;
                Ok(())
            }
            ops::scf::IF => self.branch(op, into),
            ops::scf::FOR => self.count(op, into),
            ops::scf::WHILE => self.repeat(op, into),
            // A vector that only vectors read.
            _ if op.results().iter().all(|result| result.ty().is_vector()) => Ok(()),
            ops::arith::CONSTANT => self.constant(op),
            ops::ub::POISON => self.set_constant(op, 0),
            _ => self.compute(op, into),
        }
    }

    fn call(&mut self, op: Op<'c>, into: &mut HostBlock) -> Result<(), Diagnostics> {
        let function = op.callee().and_then(RuntimeFunction::parse);
        let function = function.ok_or_else(|| error::no_data_form(op, "it is no call of the runtime"))?;
        let arguments = self.reads(op, &op.operands()[1..])?;
        let result = op.get_result(0).map(|result| self.define(result, HostType::WORD));
        into.ops.push(HostOp::Call { function, arguments, result });
        Ok(())
    }

    fn branch(&mut self, op: Op<'c>, into: &mut HostBlock) -> Result<(), Diagnostics> {
        let condition = self.read(op, op.operand(0))?;
        let mut blocks = op.regions().into_iter().map(Region::entry).collect::<Vec<_>>().into_iter().flatten();
        let then = blocks.next().ok_or_else(|| error::no_data_form(op, "it has no block"))?;
        let then = self.block(then, &[])?;
        let otherwise = blocks.next().map(|block| self.block(block, &[])).transpose()?;
        let results = self.results(op)?;
        into.ops.push(HostOp::If { condition, then, otherwise, results });
        Ok(())
    }

    fn count(&mut self, op: Op<'c>, into: &mut HostBlock) -> Result<(), Diagnostics> {
        let operands = self.reads(op, &op.operands())?;
        let body = op.body().ok_or_else(|| error::no_data_form(op, "it has no block"))?;
        let body = self.block(body, &body.args())?;
        let results = self.results(op)?;
        let location = self.location(op);
        into.ops.push(HostOp::For {
            is_unsigned: op.attr("unsignedCmp").is_some(),
            lower: operands[0],
            upper: operands[1],
            step: operands[2],
            inits: operands[3..].to_vec(),
            body,
            results,
            location,
        });
        Ok(())
    }

    fn repeat(&mut self, op: Op<'c>, into: &mut HostBlock) -> Result<(), Diagnostics> {
        let inits = self.reads(op, &op.operands())?;
        let mut blocks = vec![];
        for block in op.regions().into_iter().filter_map(Region::entry) {
            blocks.push(self.block(block, &block.args())?);
        }
        let [before, after] = blocks[..] else { return Err(error::no_data_form(op, "it has no two blocks").into()) };
        let results = self.results(op)?;
        into.ops.push(HostOp::While { inits, before, after, results });
        Ok(())
    }

    fn constant(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let value = op.attr("value");
        let ty = host_type(op, op.result(0).ty())?;
        let int = value.and_then(|value| value.as_int()).map(|value| value as u64);
        let bits = int.or_else(|| Some(ty.bits_of(value?.as_float()?)));
        let bits = bits.ok_or_else(|| error::no_data_form(op, "its value is no number"))?;
        self.set_constant(op, bits & ty.mask())
    }

    fn set_constant(&mut self, op: Op<'c>, bits: u64) -> Result<(), Diagnostics> {
        let constant = HostConstant { ty: host_type(op, op.result(0).ty())?, bits };
        let known = &mut self.code.constants;
        let register = *self.constants.entry(constant).or_insert_with(|| {
            known.push(constant);
            (known.len() - 1) as Register | CONSTANT
        });
        self.registers.insert(op.result(0), register);
        Ok(())
    }

    /// A scalar op as one of the set, or as several.
    fn compute(&mut self, op: Op<'c>, into: &mut HostBlock) -> Result<(), Diagnostics> {
        let mut operands = self.reads(op, &op.operands())?;
        let results = op.results();
        let types = results.iter().map(|result| host_type(op, result.ty())).collect::<Result<Vec<_>, _>>()?;
        let first = operands.first().map(|operand| self.type_of(*operand));
        let named: &[ScalarOp] = match op.name() {
            ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI | ops::arith::BITCAST
                if first == types.first().copied() =>
            {
                self.registers.insert(results[0], operands[0]);
                return Ok(());
            }
            ops::arith::CMPF => match CmpFPredicate::of(op) {
                Some(CmpFPredicate::AlwaysFalse) => return self.set_constant(op, 0),
                Some(CmpFPredicate::AlwaysTrue) => return self.set_constant(op, 1),
                predicate => &predicate.and_then(|p| comparison(op, &format!("{p:?}"))).map_or(vec![], |op| vec![op]),
            },
            ops::arith::CMPI => {
                &CmpIPredicate::of(op).and_then(|p| comparison(op, &format!("{p:?}"))).map_or(vec![], |op| vec![op])
            }
            name @ (ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI) => {
                let widens = first.is_some_and(|from| from.bits() < types[0].bits());
                match (widens, name) {
                    (false, _) => &[ScalarOp::TruncI],
                    (true, ops::arith::INDEX_CAST) => &[ScalarOp::ExtS],
                    (true, _) => &[ScalarOp::ExtU],
                }
            }
            ops::arith::MULSI_EXTENDED => &[ScalarOp::MulI, ScalarOp::MulHighS],
            ops::arith::MULUI_EXTENDED => &[ScalarOp::MulI, ScalarOp::MulHighU],
            // It carries where the sum is less than an operand.
            ops::arith::ADDUI_EXTENDED => {
                self.scalar(op, ScalarOp::AddI, &operands, (results[0], types[0]), into)?;
                let sum = self.read(op, results[0])?;
                return self.scalar(op, ScalarOp::CmpUlt, &[sum, operands[0]], (results[1], types[1]), into);
            }
            ops::math::SINCOS => &[ScalarOp::Sin, ScalarOp::Cos],
            name => &ScalarOp::parse(name).map_or(vec![], |op| vec![op]),
        };
        if named.len() != results.len() {
            return Err(error::no_data_form(op, "the set of its ops is closed").into());
        }
        if named[0].rule() == Rule::FloatPower && self.type_of(operands[1]) != HostType::WORD {
            operands[1] = self.fresh(HostType::WORD);
            let exponent = self.read(op, op.operand(1))?;
            let result = operands[1];
            into.ops.push(HostOp::Scalar { op: ScalarOp::ExtS, operands: vec![exponent], result, location: None });
        }
        for ((scalar, result), ty) in named.iter().zip(results).zip(types) {
            self.scalar(op, *scalar, &operands, (result, ty), into)?;
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        op: Op<'c>,
        scalar: ScalarOp,
        operands: &[Register],
        (result, ty): (Value<'c>, HostType),
        into: &mut HostBlock,
    ) -> Result<(), Diagnostics> {
        let types: Vec<HostType> = operands.iter().map(|operand| self.type_of(*operand)).collect();
        if !scalar.rule().allows(&types, ty) {
            return Err(error::no_data_form(op, "its types are not those of its set").into());
        }
        let location = if scalar.may_trap() { self.location(op) } else { None };
        let result = self.define(result, ty);
        into.ops.push(HostOp::Scalar { op: scalar, operands: operands.to_vec(), result, location });
        Ok(())
    }

    /// The line and column of an op.
    fn location(&mut self, op: Op<'c>) -> Option<u32> {
        let (_, line, column) = op.location().position()?;
        let text = format!("{line}:{column}");
        let known = &mut self.code.locations;
        // Ops of one source op follow each other.
        if known.last() != Some(&text) {
            known.push(text);
        }
        Some(known.len() as u32 - 1)
    }

    fn results(&mut self, op: Op<'c>) -> Result<Vec<Register>, Diagnostics> {
        op.results().into_iter().map(|result| Ok(self.define(result, host_type(op, result.ty())?))).collect()
    }

    fn reads(&self, op: Op<'c>, values: &[Value<'c>]) -> Result<Vec<Register>, Diagnostics> {
        values.iter().map(|value| self.read(op, *value)).collect()
    }

    fn read(&self, op: Op<'c>, value: Value<'c>) -> Result<Register, Diagnostics> {
        let register = self.registers.get(&value).copied();
        register.ok_or_else(|| error::no_data_form(op, &format!("it reads a value of type {}", value.ty())).into())
    }

    fn type_of(&self, register: Register) -> HostType {
        let at = (register & !CONSTANT) as usize;
        if register & CONSTANT == 0 { self.code.registers[at] } else { self.code.constants[at].ty }
    }

    fn define(&mut self, value: Value<'c>, ty: HostType) -> Register {
        let register = self.fresh(ty);
        self.registers.insert(value, register);
        register
    }

    fn fresh(&mut self, ty: HostType) -> Register {
        self.code.registers.push(ty);
        self.code.registers.len() as Register - 1
    }
}

/// The comparison of this predicate.
fn comparison(op: Op, predicate: &str) -> Option<ScalarOp> {
    ScalarOp::parse(&format!("{}.{}", op.name(), predicate.to_lowercase()))
}

fn host_type(op: Op, ty: Type) -> Result<HostType, Diagnostics> {
    let int = if ty.is_index() { Some(64) } else { ty.integer_width() };
    let found = match (int, ty.float_width()) {
        (Some(bits @ 1..=64), _) => Some(HostType::Int(bits as u8)),
        (None, Some(64)) => Some(HostType::F64),
        (None, Some(32)) => Some(HostType::F32),
        (None, Some(16)) if ty == Type::f16(ty.context()) => Some(HostType::F16),
        (None, Some(16)) => Some(HostType::Bf16),
        _ => None,
    };
    found.ok_or_else(|| error::no_data_form(op, &format!("it has a value of type {ty}")).into())
}

/// Calls `f` with every register that a block names.
fn each_register(block: &mut HostBlock, mut f: impl FnMut(&mut Register)) {
    block.arguments.iter_mut().chain(&mut block.results).chain(&mut block.condition).for_each(&mut f);
    for op in &mut block.ops {
        match op {
            HostOp::Call { arguments, result, .. } => arguments.iter_mut().chain(result).for_each(&mut f),
            HostOp::Scalar { operands, result, .. } => operands.iter_mut().chain([result]).for_each(&mut f),
            HostOp::If { condition, results, .. } => results.iter_mut().chain([condition]).for_each(&mut f),
            HostOp::For { lower, upper, step, inits, results, .. } => {
                inits.iter_mut().chain(results).chain([lower, upper, step]).for_each(&mut f);
            }
            HostOp::While { inits, results, .. } => inits.iter_mut().chain(results).for_each(&mut f),
        }
    }
}
