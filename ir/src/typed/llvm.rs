//! Ops of the dialect `llvm`.

use crate::{Attr, Location, OpSpec, Value, ops};

/// `llvm.call` of a symbol, without results.
pub fn call<'c, 'a>(loc: Location<'c>, callee: &str, operands: &[Value<'c>]) -> OpSpec<'c, 'a> {
    let cx = loc.context();
    OpSpec::new(ops::llvm::CALL, loc)
        .operand_segments(&[operands, &[]])
        .attr("callee", Attr::symbol(cx, callee))
        .attr("op_bundle_sizes", Attr::dense_i32(cx, &[]))
}
