//! Predict the memref types of block arguments in regions with several blocks.
//!
//! ```text
//! cf.cond_br %c, ^a(%t : tensor<4xf32>), ^b           %t: memref<4xf32, strided<[?], offset: ?>>
//! ^b:
//!   %0 = tensor.empty() : tensor<4xf32>               %0: memref<4xf32>
//!   cf.br ^a(%0 : tensor<4xf32>)
//! ^a(%x: tensor<4xf32>):                              %x: memref<4xf32, strided<[?], offset: ?>>, both can be cast to it
//! ```
//!
//! Requires: the values that enter the region have their types. Ensures: an argument has the type of all its operands,
//! or one with dynamic strides and offset if they differ.
//! Limits: operands in different memory spaces (B0108), an argument that only forwards itself (B0110).
//!
//! Blocks are walked in an order in which definitions come before uses; operands without a type yet are ignored.
//! The walk repeats only if a back edge brought another type: each time some argument's layout becomes dynamic,
//! the widest, so it terminates.

use std::collections::{HashMap, HashSet};

use monopour_ir::{Block, Diagnostic, Diagnostics, Op, Region, Type, Value};

use crate::blocks::dominators_first;
use crate::buffer_type::BufferTypes;

impl<'c> BufferTypes<'c, '_> {
    /// Predicts all types in a region whose entry arguments are known; `op` is the parent operation.
    ///
    /// # Errors
    /// As [`Self::walk`]; B0110 for an argument that only forwards itself.
    pub fn walk_region(&mut self, op: Op<'c>, region: Region<'c>) -> Result<(), Diagnostics> {
        let order = dominators_first(region);
        let mut passed: HashMap<Value, Vec<Value>> = HashMap::new();
        let arguments: Vec<Value> =
            order.iter().skip(1).flat_map(|b| b.args()).filter(|a| a.ty().is_tensor()).collect();
        if arguments.is_empty() {
            return order.into_iter().try_for_each(|block| self.walk(block));
        }
        // Types of an earlier walk may be early ones.
        for argument in &arguments {
            self.forget(*argument);
        }
        for terminator in order.iter().filter_map(|b| b.terminator()) {
            for (index, argument) in self.passed_to_blocks(terminator) {
                passed.entry(argument).or_default().push(terminator.operand(index));
            }
        }
        loop {
            let mut walked = HashSet::new();
            for (position, block) in order.iter().enumerate() {
                for argument in block.args().into_iter().filter(|a| position > 0 && a.ty().is_tensor()) {
                    self.join(op, argument, &passed, |block| {
                        block.region() == Some(region) && !walked.contains(&block)
                    })?;
                }
                self.walk(*block)?;
                walked.insert(*block);
            }
            let mut changed = false;
            for argument in &arguments {
                changed |= self.join(op, *argument, &passed, |_| false)?;
            }
            if !changed {
                break;
            }
        }
        match arguments.iter().any(|a| !self.is_known(*a)) {
            true => Err(self.no_type(op)),
            false => Ok(()),
        }
    }

    /// Joins the types of an argument's operands; whether the argument's type changed.
    fn join(
        &mut self,
        op: Op<'c>,
        argument: Value<'c>,
        passed: &HashMap<Value<'c>, Vec<Value<'c>>>,
        is_later: impl Fn(Block<'c>) -> bool,
    ) -> Result<bool, Diagnostics> {
        let old: Option<Type> = self.is_known(argument).then(|| self.of(argument));
        let mut ty = old;
        for value in passed.get(&argument).into_iter().flatten() {
            let waits = |b: Block<'c>| {
                is_later(b)
                    || (value.as_block_arg().is_some() && b.region() == argument.block().and_then(Block::region))
            };
            if !self.is_known(*value) && value.block().is_some_and(waits) {
                continue;
            }
            let new = self.of(*value);
            ty = Some(match ty {
                None => new,
                Some(ty) => self.unify(op, ty, new)?,
            });
        }
        if let Some(ty) = ty {
            self.set(argument, ty);
        }
        Ok(ty != old)
    }

    fn no_type(&self, op: Op<'c>) -> Diagnostics {
        let text = "could not infer buffer type of block argument";
        let message = match self.is_upstream() {
            true => format!("'{}' op {text}", op.name()),
            false => format!("{text} of {}: it is passed nothing but itself", op.name()),
        };
        let error = Diagnostic::error("B0110", op.location(), message)
            .with_help("remove blocks that nothing reaches (canonicalize)");
        self.failed(error, op)
    }
}
