//! Runs host code that is data.
//!
//! The code was verified: types fit, a register is set before it is read, blocks nest. So nothing is checked here but what
//! depends on values, and an index out of range would be a defect of the verifier: a panic, never a wrong read.

use std::sync::Arc;

use monopour_contract::{RuntimeFunction, Trap};
use monopour_program::host::{BlockId, HostCode, HostOp, HostType, Register, ScalarOp};
use monopour_program::{Program, Variant};

use crate::error::Error;
use crate::host::HostCalls;
use crate::scalar;

/// Steps that a call of the runtime counts as, so that a limit on steps is one on time.
const CALL_STEPS: u64 = 16;

/// Steps between two looks whether the run is cancelled: some microseconds.
const CHECK_STEPS: u64 = 1 << 12;

/// The host function of a variant as data.
#[derive(Debug)]
pub(crate) struct Interpreter {
    program: Arc<Program>,
    variant: usize,
    /// Kept between runs: the constants stay.
    registers: Vec<u64>,
    /// The most steps of a run.
    limit: u64,
}

impl Interpreter {
    /// The host function of a variant of a verified program, for runs of at most `limit` steps.
    pub fn new(program: Arc<Program>, variant: usize, limit: Option<u64>) -> Interpreter {
        let code = &program.variants[variant].host_data;
        let mut registers: Vec<u64> = code.constants.iter().map(|constant| constant.bits).collect();
        registers.resize(code.registers_len(), 0);
        Interpreter { program, variant, registers, limit: limit.unwrap_or(u64::MAX) }
    }

    /// Runs the host function; its runtime calls go to `calls`.
    ///
    /// # Errors
    /// The first error of a runtime call; [`Error::Trap`], [`Error::Steps`].
    pub fn call(&mut self, calls: &mut dyn HostCalls) -> Result<(), Error> {
        let Variant { host_data: code, .. } = &self.program.variants[self.variant];
        let registers = &mut self.registers;
        Machine { code, registers, calls, passed: Vec::new(), left: self.limit, limit: self.limit }.block(0)
    }
}

struct Machine<'a> {
    code: &'a HostCode,
    registers: &'a mut [u64],
    calls: &'a mut dyn HostCalls,
    /// Values on their way between blocks.
    passed: Vec<u64>,
    left: u64,
    limit: u64,
}

type Done = Result<(), Error>;

impl<'a> Machine<'a> {
    /// Runs a block. Recurses as deep as the verifier allows.
    fn block(&mut self, id: BlockId) -> Done {
        let code = self.code;
        code.blocks[id as usize].ops.iter().try_for_each(|op| self.op(op))
    }

    fn op(&mut self, op: &'a HostOp) -> Done {
        match op {
            HostOp::Call { function, arguments, result } => {
                self.count(CALL_STEPS)?;
                let value = self.runtime(*function, arguments)?;
                if let Some(result) = result {
                    self.registers[*result as usize] = value as u64;
                }
                Ok(())
            }
            HostOp::Scalar { op, operands, result, location } => {
                self.count(1)?;
                let mut values = [0; 3];
                for (value, operand) in values.iter_mut().zip(operands) {
                    *value = self.registers[*operand as usize];
                }
                let types = (self.type_of(operands[0]), self.type_of(*result));
                let Some(bits) = scalar::compute(*op, types, &values) else {
                    return Err(self.trap(op.name(), *location, why(*op)));
                };
                self.registers[*result as usize] = bits;
                Ok(())
            }
            HostOp::If { condition, then, otherwise, results } => {
                self.count(1)?;
                let chosen = if self.read(*condition) != 0 { Some(*then) } else { *otherwise };
                let Some(chosen) = chosen else { return Ok(()) };
                self.block(chosen)?;
                self.pass(&self.code.blocks[chosen as usize].results, results);
                Ok(())
            }
            HostOp::For { .. } => self.count_up(op),
            HostOp::While { inits, before, after, results } => {
                let (first, second) = (&self.code.blocks[*before as usize], &self.code.blocks[*after as usize]);
                self.pass(inits, &first.arguments);
                loop {
                    self.count(1)?;
                    self.block(*before)?;
                    if first.condition.is_none_or(|condition| self.read(condition) == 0) {
                        self.pass(&first.results, results);
                        return Ok(());
                    }
                    self.pass(&first.results, &second.arguments);
                    self.block(*after)?;
                    self.pass(&second.results, &first.arguments);
                }
            }
        }
    }

    /// Runs a `for`.
    fn count_up(&mut self, op: &'a HostOp) -> Done {
        let HostOp::For { is_unsigned, lower, upper, step, inits, body, results, location } = op else {
            return Ok(());
        };
        let ty = self.type_of(*lower);
        let number = |bits: u64| {
            let unused = 64 - u32::from(ty.bits());
            if *is_unsigned { i128::from(bits) } else { i128::from((bits << unused) as i64 >> unused) }
        };
        let [mut at, end, step] = [*lower, *upper, *step].map(|register| number(self.read(register)));
        if step <= 0 {
            return Err(self.trap("for", *location, "has a step that is not positive"));
        }
        let block = &self.code.blocks[*body as usize];
        let (counter, carried) = block.arguments.split_at(1);
        self.pass(inits, carried);
        while at < end {
            self.count(1)?;
            self.registers[counter[0] as usize] = at as u64 & ty.mask();
            self.block(*body)?;
            self.pass(&block.results, carried);
            at += step;
        }
        self.pass(carried, results);
        Ok(())
    }

    fn read(&self, register: Register) -> u64 {
        self.registers[register as usize]
    }

    fn type_of(&self, register: Register) -> HostType {
        self.code.type_of(register).expect("invariant: the verifier has seen the register")
    }

    /// Sets `to` to the values of `from` at once: a loop may exchange what it carries.
    fn pass(&mut self, from: &[Register], to: &[Register]) {
        self.passed.clear();
        let registers = &mut *self.registers;
        self.passed.extend(from.iter().map(|register| registers[*register as usize]));
        for (register, value) in to.iter().zip(&self.passed) {
            registers[*register as usize] = *value;
        }
    }

    fn count(&mut self, steps: u64) -> Done {
        let Some(left) = self.left.checked_sub(steps) else { return Err(Error::Steps { limit: self.limit }) };
        // A loop without calls is cancelled too.
        let looks = left / CHECK_STEPS != self.left / CHECK_STEPS;
        self.left = left;
        if looks { self.calls.check() } else { Ok(()) }
    }

    fn trap(&self, op: &str, location: Option<u32>, what: &str) -> Error {
        let at = self.code.location(location);
        let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
        Error::Trap { code: Trap::Arithmetic.code(), message: format!("'{op}'{at} {what}") }
    }

    /// Calls a function of the runtime; 0 is the value of those without one.
    fn runtime(&mut self, function: RuntimeFunction, arguments: &[Register]) -> Result<i64, Error> {
        use RuntimeFunction as F;
        let registers = &*self.registers;
        let at = |index: usize| registers[arguments[index] as usize] as i64;
        let calls = &mut *self.calls;
        match function {
            F::Input => return calls.input(at(0)),
            F::Constant => return calls.constant(at(0)),
            F::Alloc => return calls.alloc(at(0)),
            F::Arena => return calls.arena(at(0)),
            F::Place => return calls.place(at(0)),
            F::InputScalar => return calls.input_scalar(at(0)),
            F::InputDim => return calls.input_dim(at(0), at(1)),
            F::Read => return calls.read(at(0), at(1), at(2)),
            // A call that fails ends the run.
            F::Ok => return Ok(1),
            F::Result => calls.result(at(0), at(1)),
            F::Request => calls.request(at(0), [at(1), at(2)]),
            F::Free => calls.free(at(0)),
            F::Arg => calls.args(&[[at(0), at(1), at(2)]]),
            F::Dispatch => calls.dispatch(at(0), [at(1), at(2), at(3)]),
            F::DispatchOnce => calls.dispatch_once(at(0), [at(1), at(2), at(3)]),
            F::Copy => calls.copy((at(0), at(1)), (at(2), at(3)), at(4)),
            F::Fill => calls.fill((at(0), at(1)), at(2), at(3) as u32),
            F::ResultScalar => calls.result_scalar(at(0), at(1)),
            F::ResultDim => calls.result_dim(at(0), at(1), at(2)),
            F::Scalar => calls.scalar(at(0)),
            F::Write => calls.write(at(0), at(1), at(2), at(3)),
            F::Message => calls.message(at(0)),
            F::Trap => calls.trap(at(0)),
        }?;
        Ok(0)
    }
}

/// Why an op has no result.
fn why(op: ScalarOp) -> &'static str {
    match op {
        ScalarOp::DivU | ScalarOp::RemU | ScalarOp::CeilDivU => "divides by zero",
        op if op.divides() => "divides by zero, or the smallest number by -1",
        _ => "shifts by its width or more",
    }
}
