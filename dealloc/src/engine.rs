//! Upstream's form: one `bufferization.dealloc` at the end of each block, retaining live-out and forwarded memrefs.
//!
//! ```text
//! %a = memref.alloc() : memref<8xf32>           %base, .. = memref.extract_strided_metadata %a
//! cf.br ^next(%a : memref<8xf32>)          ==>  %own = bufferization.dealloc (%base) if (%true) retain (%a)
//!                                               cf.br ^next(%a, %own : memref<8xf32>, i1)
//! ```
//!
//! Every memref of a block has an indicator there, an `i1`: true for allocations and results of calls, false for arguments of
//! the function, globals, and captured memrefs. Results of region operations and arguments of blocks and regions
//! come with one. A returned memref is cloned unless its indicator is true.
//! Requires: a function without cycles of blocks and explicit frees: [`crate::preconditions`].
//! Ensures: each block frees the memrefs that it owns and does not forward.
//! Source: MLIR's ownership-based buffer deallocation, LLVM 22; equal to it after canonicalization.
//! Differs: unreachable blocks are processed too; constants are made once per block; private functions used
//! other than by calls keep their type.

use monopour_ir::{Attr, Block, Diagnostics, Op, Region, Type, Value};

use crate::callees::Callees;
use crate::control_flow::in_dominance_order;
use crate::models::OwnershipModels;
use crate::ownership::BlockOwnership;
use crate::state::State;
use crate::{Options, Stats};

/// Gives owners to the memrefs of a function that [`crate::preconditions::check`] passed.
pub(crate) fn run(
    function: Op,
    models: &OwnershipModels,
    options: &Options,
    callees: &Callees,
    stats: &mut Stats,
) -> Result<(), Diagnostics> {
    let mut engine = Engine { models, state: State::new(function, models, options, callees, stats) };
    for region in function.regions() {
        engine.region(region, true)?;
    }
    engine.update_signature(function);
    Ok(())
}

struct Engine<'c, 'a> {
    models: &'a OwnershipModels,
    state: State<'c, 'a>,
}

impl<'c> Engine<'c, '_> {
    fn region(&mut self, region: Region<'c>, is_function: bool) -> Result<(), Diagnostics> {
        let entry = region.entry();
        for block in in_dominance_order(region) {
            self.live_ins(block);
            self.arguments(block, is_function && Some(block) == entry);
            for op in block.ops() {
                for inner in op.regions() {
                    self.region(inner, false)?;
                }
                let op = self.models.process(op, &mut self.state)?;
                self.rest(op, block);
            }
        }
        Ok(())
    }

    /// A memref that is live into a block has the ownership of its definition.
    fn live_ins(&mut self, block: Block<'c>) {
        for value in self.state.live_in(block) {
            let Some(defined_in) = value.block().filter(|d| d.region() == block.region()) else { continue };
            let ownership = self.state.ownership(value, defined_in);
            // In an unreachable block the definition may have no ownership.
            let ownership = match ownership {
                BlockOwnership::Uninitialized => BlockOwnership::Unique(self.state.constant(block, false)),
                known => known,
            };
            self.state.set(value, block, ownership);
            self.state.add_candidate(value, block);
        }
    }

    /// Arguments come with an indicator; those of functions belong to the caller.
    fn arguments(&mut self, block: Block<'c>, is_of_function: bool) {
        for arg in block.args().into_iter().filter(|a| a.ty().is_memref()) {
            let indicator = if is_of_function {
                self.state.constant(block, false)
            } else {
                let bit = self.state.bit();
                let loc = block.parent_op().map_or_else(|| monopour_ir::Location::unknown(bit.context()), Op::location);
                self.state.rewriter().add_block_arg(block, bit, loc)
            };
            self.state.set(arg, block, BlockOwnership::Unique(indicator));
            self.state.add_candidate(arg, block);
        }
    }

    /// A result without ownership from a model may alias any operand.
    fn rest(&mut self, op: Op<'c>, block: Block<'c>) {
        let results = op.results();
        for result in results.into_iter().filter(|r| r.ty().is_memref()) {
            if self.state.ownership(result, block) != BlockOwnership::Uninitialized {
                continue;
            }
            let operands: Vec<Value> = op.operands().into_iter().filter(|v| v.ty().is_memref()).collect();
            let mut joined = BlockOwnership::Uninitialized;
            for operand in operands {
                joined = joined.join(self.state.ownership(operand, block));
            }
            if joined == BlockOwnership::Uninitialized {
                joined = BlockOwnership::Unique(self.state.constant(block, false));
            }
            self.state.set(result, block, joined);
        }
    }

    /// A function with dynamic ownership returns the indicators after its results.
    fn update_signature(&mut self, function: Op<'c>) {
        if self.state.promises_results(function) {
            return;
        }
        let Some((inputs, mut results)) = function.function_type() else { return };
        let count = results.iter().filter(|ty| ty.is_memref()).count();
        if count == 0 {
            return;
        }
        let cx = function.context();
        results.extend(std::iter::repeat_n(self.state.bit(), count));
        let ty = Attr::ty(Type::function(cx, &inputs, &results));
        self.state.rewriter().set_attr(function, "function_type", ty);
        if let Some(mut attrs) = function.attr("res_attrs").and_then(|a| a.as_array()) {
            attrs.resize(results.len(), Attr::dict(cx, &[]));
            let attrs = Attr::array(cx, &attrs);
            self.state.rewriter().set_attr(function, "res_attrs", attrs);
        }
    }
}
