//! Bodies of structured ops, compiled to straight-line code over registers so that they run millions of times.

use super::scalar::{Scalar, ScalarOp, divided_by_one};
use super::{Datum, Interpreter, Precision, nearest, rounded};
use crate::host_tensor::{Dtype, HostTensor};
use monopour_ir::ops;
use monopour_ir::{AffineMap, Block, Op, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// A compiled block: its arguments come first among the registers.
pub(super) struct Body<'c> {
    registers: Vec<Scalar>,
    steps: Vec<Step<'c>>,
    precision: Precision,
    /// Registers of the terminator's operands.
    pub(super) yields: Vec<usize>,
}

struct Step<'c> {
    op: Op<'c>,
    kind: Kind<'c>,
    to: usize,
    rounded_to: Option<Dtype>,
}

enum Kind<'c> {
    Scalar(ScalarOp, [usize; 3]),
    Index(usize),
    Affine(AffineMap<'c>, Vec<usize>, Pick),
    Extract(Rc<HostTensor>, Vec<usize>),
}

#[derive(Clone, Copy)]
enum Pick {
    First,
    Least,
    Greatest,
}

impl<'c> Body<'c> {
    /// Compiles a block of scalar ops; `None` for one with other ops, such as nested regions.
    pub(super) fn compile(interpreter: &Interpreter<'c, '_>, block: Block<'c>) -> Option<Self> {
        let mut c = Compiler { interpreter, slots: HashMap::new(), registers: vec![], steps: vec![] };
        for arg in block.args() {
            c.slot(arg);
        }
        let ops = block.ops();
        let (terminator, ops) = ops.split_last()?;
        for op in ops {
            c.op(*op)?;
        }
        let yields = terminator.operands().into_iter().map(|v| c.read(v)).collect::<Option<Vec<_>>>()?;
        Some(Self { registers: c.registers, steps: c.steps, precision: interpreter.precision, yields })
    }

    /// Runs the body at one iteration; arguments were written with [`Body::set`]. The error is the op with undefined behaviour.
    pub(super) fn run(&mut self, iteration: &[i64]) -> Result<(), Op<'c>> {
        let registers = &mut self.registers;
        for step in &self.steps {
            let value = match &step.kind {
                Kind::Scalar(f, args) => f
                    .apply(registers[args[0]], registers[args[1]], registers[args[2]])
                    .or_else(|| divided_by_one(step.op, registers[args[0]])),
                Kind::Index(dim) => iteration.get(*dim).map(|i| Scalar::Int(*i)),
                Kind::Affine(map, args, pick) => affine(*map, args, *pick, registers),
                Kind::Extract(tensor, args) => {
                    let index: Vec<i64> = args.iter().map(|a| registers[*a].int()).collect();
                    Some(nearest(tensor, &index))
                }
            };
            registers[step.to] = rounded(value.ok_or(step.op)?, step.rounded_to);
        }
        Ok(())
    }
    pub(super) fn set(&mut self, argument: usize, value: Scalar) {
        self.registers[argument] = value;
    }
    pub(super) fn get(&self, register: usize) -> Scalar {
        self.registers[register]
    }

    /// For a body `acc + a * b` of floats (either order), whose factors may be extended: the arguments `a` and `b`; `acc`
    /// is the last argument.
    pub(super) fn as_multiply_add(&self, arguments: usize) -> Option<(usize, usize)> {
        let ([extensions @ .., multiply, add], Precision::Double) = (self.steps.as_slice(), self.precision) else {
            return None;
        };
        let (Kind::Scalar(_, [a, b, _]), Kind::Scalar(_, [x, y, _])) = (&multiply.kind, &add.kind) else { return None };
        let acc = arguments.checked_sub(1)?;
        let sums = (*x == multiply.to && *y == acc) || (*y == multiply.to && *x == acc);
        let shape = multiply.op.is(ops::arith::MULF) && add.op.is(ops::arith::ADDF) && sums && self.yields == [add.to];
        let is_extended = extensions.iter().all(|step| step.op.is(ops::arith::EXTF));
        // An extension changes no value.
        let argument = |register: usize| match extensions.iter().find(|step| step.to == register).map(|step| &step.kind)
        {
            Some(Kind::Scalar(_, [of, ..])) => *of,
            _ => register,
        };
        let (a, b) = (argument(*a), argument(*b));
        (shape && is_extended && a < acc && b < acc).then_some((a, b))
    }
}

struct Compiler<'c, 'i, 'm> {
    interpreter: &'i Interpreter<'c, 'm>,
    slots: HashMap<Value<'c>, usize>,
    registers: Vec<Scalar>,
    steps: Vec<Step<'c>>,
}

impl<'c> Compiler<'c, '_, '_> {
    fn slot(&mut self, value: Value<'c>) -> usize {
        self.registers.push(Scalar::Int(0));
        self.slots.insert(value, self.registers.len() - 1);
        self.registers.len() - 1
    }

    /// The register of a value, which may be captured from outside of the block.
    fn read(&mut self, value: Value<'c>) -> Option<usize> {
        if let Some(slot) = self.slots.get(&value) {
            return Some(*slot);
        }
        let Some(Datum::Scalar(captured)) = self.interpreter.value(value) else { return None };
        let slot = self.slot(value);
        self.registers[slot] = captured;
        Some(slot)
    }

    fn op(&mut self, op: Op<'c>) -> Option<()> {
        if op.num_results() == 0 || !op.regions().is_empty() {
            return None;
        }
        if op.is(ops::arith::CONSTANT) {
            let Ok(Datum::Scalar(value)) = self.interpreter.constant(op) else { return None };
            let slot = self.slot(op.result(0));
            self.registers[slot] = value;
            return Some(());
        }
        for result in 0..op.num_results() {
            let kind = self.kind(op, result)?;
            let to = self.slot(op.result(result));
            let rounded_to = self.interpreter.precision.type_of(op);
            self.steps.push(Step { op, kind, to, rounded_to });
        }
        Some(())
    }

    fn kind(&mut self, op: Op<'c>, result: usize) -> Option<Kind<'c>> {
        match op.name() {
            ops::linalg::INDEX => Some(Kind::Index(op.attr("dim")?.as_int()? as usize)),
            ops::tensor::EXTRACT => {
                let Some(Datum::Tensor(tensor)) = self.interpreter.value(op.operand(0)) else { return None };
                Some(Kind::Extract(tensor, self.read_all(&op.operands()[1..])?))
            }
            ops::affine::APPLY => self.affine(op, Pick::First),
            ops::affine::MIN => self.affine(op, Pick::Least),
            ops::affine::MAX => self.affine(op, Pick::Greatest),
            _ => {
                let semantics = ScalarOp::of(op, result)?;
                let mut args = [0; 3];
                for (slot, operand) in args.iter_mut().zip(op.operands()) {
                    *slot = self.read(operand)?;
                }
                Some(Kind::Scalar(semantics, args))
            }
        }
    }

    fn affine(&mut self, op: Op<'c>, pick: Pick) -> Option<Kind<'c>> {
        Some(Kind::Affine(op.attr("map")?.as_affine_map()?, self.read_all(&op.operands())?, pick))
    }
    fn read_all(&mut self, values: &[Value<'c>]) -> Option<Vec<usize>> {
        values.iter().map(|v| self.read(*v)).collect()
    }
}

fn affine(map: AffineMap, args: &[usize], pick: Pick, registers: &[Scalar]) -> Option<Scalar> {
    let operands: Vec<i64> = args.iter().map(|a| registers[*a].int()).collect();
    let (dims, symbols) = operands.split_at_checked(map.num_dims())?;
    let values = map.eval(dims, symbols).into_iter();
    let value = match pick {
        Pick::First => values.take(1).next(),
        Pick::Least => values.min(),
        Pick::Greatest => values.max(),
    };
    value.map(Scalar::Int)
}
