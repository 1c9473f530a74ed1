//! Host code as text, for people.

use std::fmt;

use super::{BlockId, HostCode, HostOp, HostType, Register};

impl fmt::Display for HostType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostType::Int(bits) => write!(f, "i{bits}"),
            HostType::F16 => f.write_str("f16"),
            HostType::Bf16 => f.write_str("bf16"),
            HostType::F32 => f.write_str("f32"),
            HostType::F64 => f.write_str("f64"),
        }
    }
}

impl fmt::Display for HostCode {
    /// One op per line; constants are numbers, where an op reads them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() { Ok(()) } else { Text { code: self, f }.block(0, 0) }
    }
}

struct Text<'a, 'b, 'c> {
    code: &'a HostCode,
    f: &'b mut fmt::Formatter<'c>,
}

impl Text<'_, '_, '_> {
    /// Prints a block that exists, and those in it; deeper ones than the verifier allows are left out.
    fn block(&mut self, id: BlockId, depth: usize) -> fmt::Result {
        let code = self.code;
        let Some(block) = code.blocks.get(id as usize).filter(|_| depth <= super::MAX_HOST_DEPTH) else {
            return Ok(());
        };
        for op in &block.ops {
            write!(self.f, "{:1$}", "", 2 * depth)?;
            self.op(op, depth)?;
        }
        if block.condition.is_some() || !block.results.is_empty() {
            write!(self.f, "{:1$}", "", 2 * depth)?;
            match block.condition {
                Some(condition) => {
                    writeln!(self.f, "while {} give {}", self.read(condition), self.list(&block.results))
                }
                None => writeln!(self.f, "give {}", self.list(&block.results)),
            }?;
        }
        Ok(())
    }

    fn op(&mut self, op: &HostOp, depth: usize) -> fmt::Result {
        match op {
            HostOp::Call { function, arguments, result } => {
                let name = function.name().trim_start_matches("monopour_rt_");
                let arguments = self.list(arguments);
                writeln!(self.f, "{}{name}({arguments})", self.sets(result.as_slice()))
            }
            HostOp::Scalar { op, operands, result, location } => {
                let at = self.code.location(*location);
                let at = if at.is_empty() { String::new() } else { format!("  // {at}") };
                writeln!(self.f, "{}{} {}{at}", self.sets(&[*result]), op.name(), self.list(operands))
            }
            HostOp::If { condition, then, otherwise, results } => {
                writeln!(self.f, "{}if {} {{", self.sets(results), self.read(*condition))?;
                self.block(*then, depth + 1)?;
                if let Some(otherwise) = otherwise {
                    writeln!(self.f, "{:1$}}} else {{", "", 2 * depth)?;
                    self.block(*otherwise, depth + 1)?;
                }
                writeln!(self.f, "{:1$}}}", "", 2 * depth)
            }
            HostOp::For { is_unsigned, lower, upper, step, inits, body, results, .. } => {
                let sign = if *is_unsigned { " unsigned" } else { "" };
                let arguments =
                    self.code.blocks.get(*body as usize).map_or(String::new(), |b| self.typed(&b.arguments));
                let bounds = format!("{} to {} step {}", self.read(*lower), self.read(*upper), self.read(*step));
                let inits = self.list(inits);
                writeln!(self.f, "{}for{sign} {bounds} with ({arguments}) from ({inits}) {{", self.sets(results))?;
                self.block(*body, depth + 1)?;
                writeln!(self.f, "{:1$}}}", "", 2 * depth)
            }
            HostOp::While { inits, before, after, results } => {
                let arguments = |id: &BlockId| self.code.blocks.get(*id as usize).map(|b| self.typed(&b.arguments));
                let first = arguments(before).unwrap_or_default();
                let second = arguments(after).unwrap_or_default();
                let inits = self.list(inits);
                writeln!(self.f, "{}while with ({first}) from ({inits}) {{", self.sets(results))?;
                self.block(*before, depth + 1)?;
                writeln!(self.f, "{:1$}}} do ({second}) {{", "", 2 * depth)?;
                self.block(*after, depth + 1)?;
                writeln!(self.f, "{:1$}}}", "", 2 * depth)
            }
        }
    }

    /// `%4:i64 = `, or nothing.
    fn sets(&self, results: &[Register]) -> String {
        if results.is_empty() { String::new() } else { format!("{} = ", self.typed(results)) }
    }

    fn typed(&self, registers: &[Register]) -> String {
        let each = registers.iter().map(|r| match self.code.type_of(*r) {
            Some(ty) => format!("%{r}:{ty}"),
            None => format!("%{r}"),
        });
        each.collect::<Vec<_>>().join(", ")
    }

    fn list(&self, registers: &[Register]) -> String {
        registers.iter().map(|r| self.read(*r)).collect::<Vec<_>>().join(", ")
    }

    /// A register, or the number of a constant.
    fn read(&self, register: Register) -> String {
        let Some(constant) = self.code.constants.get(register as usize) else { return format!("%{register}") };
        let bits = constant.bits;
        match constant.ty {
            HostType::BOOL => (bits != 0).to_string(),
            HostType::Int(width @ 1..=64) => {
                let unused = 64 - u32::from(width);
                ((bits << unused) as i64 >> unused).to_string()
            }
            HostType::F32 => format!("{:?}", f32::from_bits(bits as u32)),
            HostType::F64 => format!("{:?}", f64::from_bits(bits)),
            HostType::Int(_) | HostType::F16 | HostType::Bf16 => format!("{bits:#x}:{}", constant.ty),
        }
    }
}
