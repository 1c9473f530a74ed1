//! Errors as upstream's pass reports them, and locations of values.

use monopour_ir::{Diagnostic, Diagnostics, Location, Op, Value};

use crate::options::Options;

/// Upstream's second error, after the cause: the op that could not be bufferized.
pub(crate) fn failed_to_bufferize(errors: &mut Diagnostics, location: Location, options: &Options) {
    const MESSAGE: &str = "failed to bufferize op";
    if !options.extensions && errors.0.last().is_none_or(|last| last.message != MESSAGE) {
        let help = "bufferize the rest with allow-unknown-ops, or change the operation as the error before says";
        errors.0.push(Diagnostic::error("B0120", location, MESSAGE).with_help(help));
    }
}

/// The location of a value: of its op, or of its block's parent op.
pub(crate) fn location_of<'c>(value: Value<'c>) -> Option<Location<'c>> {
    let op = value.defining_op().or_else(|| value.as_block_arg().and_then(|(b, _)| b.parent_op()));
    op.map(Op::location)
}
