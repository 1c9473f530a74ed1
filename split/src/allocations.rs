//! Allocations of the host function as calls.
//!
//! Before / after:
//!
//! ```mlir
//! %0 = memref.alloc(%n) {monopour.request = array<i64: 3, 5>}     call @monopour_rt_request(%cx, %bytes, %c3, %c5)
//! %1 = memref.cast %0                                             %1 = call @monopour_rt_place(%cx, %c0)
//! %2 = memref.alloc(%m)                                           %2 = call @monopour_rt_alloc(%cx, %more_bytes)
//! memref.dealloc %2                                               call @monopour_rt_free(%cx, %2)
//! ```

use crate::buffers::{Buffer, number};
use crate::schedule::State;
use crate::{checks, error, poison};
use monopour_contract::{RuntimeFunction, attributes};
use monopour_ir::ops;
use monopour_ir::{Builder, Diagnostics, Op, OpSpec};

impl<'c> State<'c> {
    /// An allocation of the pool, the arena, or a request for the place of a transient.
    ///
    /// # Errors
    /// S0003, S0004 for sizes and layouts that host code cannot have.
    pub(crate) fn alloc(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        if let Some(lives) = op.attr(attributes::REQUEST).and_then(|lives| lives.as_ints()) {
            return self.request(b, op, &lives);
        }
        let (loc, ty) = (op.location(), op.result(0).ty());
        let memref = ty.as_memref().filter(|_| crate::views::lies_without_gaps(ty));
        let memref = memref.ok_or_else(|| error::not_contiguous(op, &ty.to_string()))?;
        let sizes = op.operands().into_iter().map(|v| self.num(b, op, v)).collect::<Result<Vec<_>, _>>()?;
        let mut buffer = Buffer::fresh(b, loc, self.cx_value.expect("set"), &memref, &sizes)?;
        checks::sizes(self, b, loc, &buffer.sizes)?;
        let bytes = buffer.bytes(b, op, ty)?.value(b, loc);
        let is_arena = op.attr(attributes::ARENA).is_some();
        let function = if is_arena { RuntimeFunction::Arena } else { RuntimeFunction::Alloc };
        buffer.handle = self.call(b, loc, function, &[bytes])?.result(0);
        if self.poison && !is_arena {
            poison::fill_all(self, b, loc, &buffer)?;
        }
        self.set_buffer(op.result(0), buffer);
        Ok(())
    }

    /// Asks for the place of a transient. Sizes that no buffer can have ask for none: the run ends where it would take its place.
    fn request(&mut self, b: &mut Builder<'c>, op: Op<'c>, lives: &[i64]) -> Result<(), Diagnostics> {
        let (loc, ty) = (op.location(), op.result(0).ty());
        let memref = ty.as_memref().ok_or_else(|| error::not_contiguous(op, &ty.to_string()))?;
        let sizes = op.operands().into_iter().map(|v| self.num(b, op, v)).collect::<Result<Vec<_>, _>>()?;
        let buffer = Buffer::fresh(b, loc, self.cx_value.expect("set"), &memref, &sizes)?;
        let mut bytes = buffer.bytes(b, op, ty)?.value(b, loc);
        if let Some(impossible) = checks::are_impossible(b, loc, &buffer.sizes)? {
            let operands = [impossible, number(b, 0, loc), bytes];
            let spec = OpSpec::new(ops::arith::SELECT, loc).operands(&operands).results(&[bytes.ty()]);
            bytes = b.create(spec)?.result(0);
        }
        let mut args = vec![bytes];
        args.extend(lives.iter().map(|position| number(b, *position, loc)));
        self.call(b, loc, RuntimeFunction::Request, &args)?;
        self.requests.insert(op.result(0), self.requests.len() as i64);
        self.set_buffer(op.result(0), buffer);
        Ok(())
    }

    /// The place of a transient that was asked for.
    ///
    /// # Errors
    /// S0004, for a value that is no buffer.
    pub(crate) fn place(&mut self, b: &mut Builder<'c>, op: Op<'c>, request: i64) -> Result<(), Diagnostics> {
        let loc = op.location();
        let mut buffer = self.buffer(op, op.operand(0))?;
        checks::sizes(self, b, loc, &buffer.sizes)?;
        let request = number(b, request, loc);
        buffer.handle = self.call(b, loc, RuntimeFunction::Place, &[request])?.result(0);
        self.set_buffer(op.result(0), buffer);
        Ok(())
    }

    /// Frees an allocation, or fills what is not to be read any more.
    ///
    /// # Errors
    /// S0004, for a value that is no buffer.
    pub(crate) fn dealloc(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        if op.attr(attributes::POISON).is_some() {
            return poison::fill_place(self, b, op);
        }
        // The runtime keeps the arena between runs.
        if op.operand(0).defining_op().is_some_and(|alloc| alloc.attr(attributes::ARENA).is_some()) {
            return Ok(());
        }
        let buffer = self.buffer(op, op.operand(0))?;
        if self.poison {
            poison::fill_all(self, b, op.location(), &buffer)?;
        }
        self.call(b, op.location(), RuntimeFunction::Free, &[buffer.handle])?;
        Ok(())
    }
}
