//! Checks host code once, so that the interpreter needs no check of types, registers and blocks.

use monopour_contract::{Kind, RuntimeFunction};

use super::{BlockId, HostBlock, HostCode, HostOp, HostType, MAX_HOST_DEPTH, Register};

/// The things that host code names by their position.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostScope {
    /// Number of inputs.
    pub inputs: usize,
    /// Number of results.
    pub results: usize,
    /// Number of constants.
    pub constants: usize,
    /// Number of kernels.
    pub kernels: usize,
}

type Check = Result<(), String>;

impl HostCode {
    /// Checks types, definitions before uses, blocks, numbers of arguments, and positions that are constants.
    ///
    /// # Errors
    /// The defect, as text.
    pub fn verify(&self, scope: &HostScope) -> Check {
        if u32::try_from(self.registers_len()).is_err() || u32::try_from(self.blocks.len()).is_err() {
            return Err("too many registers or blocks".into());
        }
        let widths = self.registers.iter().copied().chain(self.constants.iter().map(|constant| constant.ty));
        if let Some(ty) = widths.into_iter().find(|ty| ty.bits() == 0 || ty.bits() > 64) {
            return Err(format!("a register of {} bits", ty.bits()));
        }
        if let Some(constant) = self.constants.iter().find(|constant| constant.bits & !constant.ty.mask() != 0) {
            return Err(format!("constant {} does not fit {} bits", constant.bits, constant.ty.bits()));
        }
        let Some(body) = self.blocks.first() else { return Err("it has no body".into()) };
        if !(body.arguments.is_empty() && body.results.is_empty() && body.condition.is_none()) {
            return Err("its body takes or gives values".into());
        }
        let mut verifier = Verifier {
            code: self,
            scope,
            state: vec![State::Unseen; self.registers.len()],
            entered: vec![false; self.blocks.len()],
        };
        verifier.block(0, 0)
    }
}

/// What is known of a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unseen,
    /// Defined before the op at hand.
    Defined,
    /// Defined in a block that has ended.
    Gone,
}

struct Verifier<'a> {
    code: &'a HostCode,
    scope: &'a HostScope,
    /// By register behind the constants.
    state: Vec<State>,
    /// By block: whether an op has it.
    entered: Vec<bool>,
}

impl<'a> Verifier<'a> {
    /// Checks a block, whose op has checked its arguments and results. Recurses at most [`MAX_HOST_DEPTH`] deep.
    fn block(&mut self, id: BlockId, depth: usize) -> Check {
        if depth > MAX_HOST_DEPTH {
            return Err(format!("blocks nest deeper than {MAX_HOST_DEPTH}"));
        }
        let code = self.code;
        let block = code.blocks.get(id as usize).ok_or_else(|| format!("block {id} does not exist"))?;
        if std::mem::replace(&mut self.entered[id as usize], true) {
            return Err(format!("block {id} has two ops"));
        }
        let mut defined = vec![];
        for argument in &block.arguments {
            self.define(*argument, &mut defined)?;
        }
        for op in &block.ops {
            self.op(op, depth, &mut defined)?;
        }
        for read in block.results.iter().chain(&block.condition) {
            self.read(*read)?;
        }
        for register in defined {
            self.state[register as usize - code.constants.len()] = State::Gone;
        }
        Ok(())
    }

    fn op(&mut self, op: &'a HostOp, depth: usize, defined: &mut Vec<Register>) -> Check {
        match op {
            HostOp::Call { function, arguments, result } => {
                self.call(*function, arguments)?;
                if function.result().is_some() != result.is_some() {
                    return Err(format!("the result of `{}` is missing, or one too many", function.name()));
                }
                result.iter().try_for_each(|result| self.define_as(*result, HostType::WORD, defined))
            }
            HostOp::Scalar { op, operands, result, location } => {
                let types = operands.iter().map(|operand| self.read(*operand)).collect::<Result<Vec<_>, _>>()?;
                self.location(*location)?;
                let ty = self.define(*result, defined)?;
                if !op.rule().allows(&types, ty) {
                    return Err(format!("`{}` of {types:?} to {ty:?}", op.name()));
                }
                Ok(())
            }
            HostOp::If { .. } => self.branch(op, depth, defined),
            HostOp::For { .. } => self.count(op, depth, defined),
            HostOp::While { .. } => self.repeat(op, depth, defined),
        }
    }

    fn branch(&mut self, op: &'a HostOp, depth: usize, defined: &mut Vec<Register>) -> Check {
        let HostOp::If { condition, then, otherwise, results } = op else { return Ok(()) };
        self.expect(*condition, HostType::BOOL)?;
        if otherwise.is_none() && !results.is_empty() {
            return Err("an `if` has results in one block only".into());
        }
        for id in std::iter::once(then).chain(otherwise) {
            let block = self.child(*id, &[], false)?;
            self.same_types(&block.results, results)?;
            self.block(*id, depth + 1)?;
        }
        self.define_all(results, defined)
    }

    fn count(&mut self, op: &'a HostOp, depth: usize, defined: &mut Vec<Register>) -> Check {
        let HostOp::For { lower, upper, step, inits, body, results, location, .. } = op else { return Ok(()) };
        let ty = self.read(*lower)?;
        self.expect(*upper, ty)?;
        self.expect(*step, ty)?;
        self.location(*location)?;
        if !ty.is_int() {
            return Err("a loop over floats".into());
        }
        inits.iter().try_for_each(|init| self.read(*init).map(|_| ()))?;
        let block = self.child(*body, &[&[*lower], inits], false)?;
        self.same_types(&block.results, inits)?;
        self.same_types(inits, results)?;
        self.block(*body, depth + 1)?;
        self.define_all(results, defined)
    }

    fn repeat(&mut self, op: &'a HostOp, depth: usize, defined: &mut Vec<Register>) -> Check {
        let HostOp::While { inits, before, after, results } = op else { return Ok(()) };
        inits.iter().try_for_each(|init| self.read(*init).map(|_| ()))?;
        let first = self.child(*before, &[inits], true)?;
        let second = self.child(*after, &[&first.results], false)?;
        self.same_types(&second.results, inits)?;
        self.same_types(&first.results, results)?;
        self.block(*before, depth + 1)?;
        if first.condition.is_some_and(|condition| self.code.type_of(condition) != Some(HostType::BOOL)) {
            return Err("the condition of a loop is no truth value".into());
        }
        self.block(*after, depth + 1)?;
        self.define_all(results, defined)
    }

    /// A block of an op: its arguments have the types of `given`.
    fn child(&self, id: BlockId, given: &[&[Register]], has_condition: bool) -> Result<&'a HostBlock, String> {
        let block = self.code.blocks.get(id as usize).ok_or_else(|| format!("block {id} does not exist"))?;
        if block.condition.is_some() != has_condition {
            return Err(format!("the condition of block {id} is missing, or one too many"));
        }
        self.same_types(&block.arguments, &given.concat())?;
        Ok(block)
    }

    fn call(&self, function: RuntimeFunction, arguments: &[Register]) -> Check {
        let kinds = &function.arguments()[1..];
        if kinds.len() != arguments.len() {
            return Err(format!("`{}` takes {} arguments, {} given", function.name(), kinds.len(), arguments.len()));
        }
        arguments.iter().try_for_each(|argument| self.expect(*argument, HostType::WORD))?;
        let positions = match function {
            RuntimeFunction::Input | RuntimeFunction::InputScalar | RuntimeFunction::InputDim => self.scope.inputs,
            RuntimeFunction::Result | RuntimeFunction::ResultScalar | RuntimeFunction::ResultDim => self.scope.results,
            RuntimeFunction::Constant => self.scope.constants,
            RuntimeFunction::Dispatch | RuntimeFunction::DispatchOnce => self.scope.kernels,
            _ => return Ok(()),
        };
        debug_assert_eq!(kinds[0], Kind::Index, "invariant: these functions take a position first");
        // One that is computed is checked when it is used.
        match self.code.constants.get(arguments[0] as usize) {
            Some(at) if at.bits >= positions as u64 => {
                Err(format!("`{}` of position {} of {positions}", function.name(), at.bits))
            }
            _ => Ok(()),
        }
    }

    fn location(&self, location: Option<u32>) -> Check {
        match location {
            Some(at) if at as usize >= self.code.locations.len() => Err(format!("location {at} does not exist")),
            _ => Ok(()),
        }
    }

    fn same_types(&self, left: &[Register], right: &[Register]) -> Check {
        let same = |(l, r): (&Register, &Register)| {
            let ty = self.code.type_of(*l);
            ty.is_some() && ty == self.code.type_of(*r)
        };
        if left.len() != right.len() || !left.iter().zip(right).all(same) {
            return Err("a block and its op pass values of other types".into());
        }
        Ok(())
    }

    /// The type of a register that is read.
    fn read(&self, register: Register) -> Result<HostType, String> {
        let ty = self.code.type_of(register).ok_or_else(|| format!("register {register} does not exist"))?;
        match (register as usize).checked_sub(self.code.constants.len()) {
            Some(at) if self.state[at] != State::Defined => {
                Err(format!("register {register} is read before it is set"))
            }
            _ => Ok(ty),
        }
    }

    fn expect(&self, register: Register, expected: HostType) -> Check {
        let found = self.read(register)?;
        if found == expected { Ok(()) } else { Err(format!("register {register} is {found:?}, expected {expected:?}")) }
    }

    fn define(&mut self, register: Register, defined: &mut Vec<Register>) -> Result<HostType, String> {
        let ty = self.code.type_of(register).ok_or_else(|| format!("register {register} does not exist"))?;
        let at = (register as usize).checked_sub(self.code.constants.len());
        match at.map(|at| &mut self.state[at]) {
            Some(state @ State::Unseen) => *state = State::Defined,
            _ => return Err(format!("register {register} is set twice")),
        }
        defined.push(register);
        Ok(ty)
    }

    fn define_as(&mut self, register: Register, expected: HostType, defined: &mut Vec<Register>) -> Check {
        let found = self.define(register, defined)?;
        if found == expected { Ok(()) } else { Err(format!("register {register} is {found:?}, expected {expected:?}")) }
    }

    fn define_all(&mut self, registers: &[Register], defined: &mut Vec<Register>) -> Check {
        registers.iter().try_for_each(|register| self.define(*register, defined).map(|_| ()))
    }
}
