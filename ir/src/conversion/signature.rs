//! Block signatures that change in place, with the branches that feed them.
//!
//! ```text
//! cf.br ^bb1(%x : index)                     %y = builtin.unrealized_conversion_cast %x : index to i64
//! ^bb1(%a: index):                  ==>      cf.br ^bb1(%y : i64)
//!   "use"(%a) : (index) -> ()                ^bb1(%a: i64):
//!                                              %b = builtin.unrealized_conversion_cast %a : i64 to index
//!                                              "use"(%b) : (index) -> ()
//! ```
//!
//! So a branch is valid whichever is converted first, the block or the branch: functions and branches may be lowered in any order.

use super::{ConversionRewriter, Declined, TypeConverter, plain};
use crate::{Block, Op, Region, Type, Value, control_flow};

/// The forwarded operands of one successor; `None` if unknown, or if the branch produces some of them itself.
fn successor_operands<'c>(branch: Op<'c>, successor: usize) -> Option<Vec<Value<'c>>> {
    control_flow::successor_operands(branch, successor).map(|operands| operands.of(branch))
}

/// The branches to a block, each with the index of that successor.
fn branches_to<'c>(block: Block<'c>) -> Vec<(Op<'c>, usize)> {
    let mut out: Vec<(Op, usize)> = Vec::new();
    for i in 0..c!(mlirBlockGetNumPredecessors(block.raw())) {
        let from = Block::from_raw(c!(mlirBlockGetPredecessor(block.raw(), i)));
        // An unregistered op is not known to be a terminator.
        let last = || from.ops().last().copied();
        let branch = from.terminator().or_else(last).expect("a block that branches has an op");
        for (successor, _) in branch.successors().into_iter().enumerate().filter(|(_, to)| *to == block) {
            if !out.contains(&(branch, successor)) {
                out.push((branch, successor));
            }
        }
    }
    out
}

pub(super) fn convert_block<'c>(
    rw: &mut ConversionRewriter<'c>,
    block: Block<'c>,
    types: &[Vec<Type<'c>>],
) -> Result<(), Declined> {
    let args = block.args();
    assert_eq!(args.len(), types.len(), "a list of types per block argument");
    if args.iter().zip(types).all(|(arg, types)| types[..] == [arg.ty()]) {
        return Ok(());
    }
    check_branches(block)?;
    convert_args(rw, block, &args, types);
    for (branch, successor) in branches_to(block) {
        // Arguments of the block itself that it forwards have been converted by now.
        let operands = successor_operands(branch, successor).unwrap_or_default();
        let values: Vec<Value> =
            operands.iter().zip(types).flat_map(|(value, types)| rw.cast_to_many(*value, types)).collect();
        rw.set_successor_operands(branch, successor, &values);
    }
    Ok(())
}

/// Checks, before anything changes, that every branch to the block names its successor operands.
fn check_branches(block: Block) -> Result<(), Declined> {
    for (branch, successor) in branches_to(block) {
        let operands = successor_operands(branch, successor);
        if operands.is_none_or(|list| list.len() != block.num_args()) {
            let text = format!("'{}' does not say what it hands to a block whose signature changes", branch.name());
            return Err(Declined::no_match(text));
        }
    }
    Ok(())
}

/// Argument by argument: retyped in place, or replaced by several.
fn convert_args<'c>(rw: &mut ConversionRewriter<'c>, block: Block<'c>, args: &[Value<'c>], types: &[Vec<Type<'c>>]) {
    let mut at = 0;
    for (arg, types) in args.iter().zip(types) {
        if let [ty] = types[..] {
            if arg.ty() != ty {
                rw.retype(*arg, ty);
            }
            at += 1;
            continue;
        }
        let location = block.parent_op().map_or_else(|| crate::Location::unknown(rw.context()), Op::location);
        let new: Vec<Value> =
            types.iter().enumerate().map(|(i, ty)| rw.insert_block_arg(block, at + 1 + i, *ty, location)).collect();
        rw.replace_all_uses_with_many(*arg, &new);
        rw.erase_block_arg(block, at);
        at += types.len();
    }
}

/// Changes all arguments, if each becomes one, and then the successor operands of the branches; whether it could. If not, nothing changed.
fn convert_region_plainly<'c>(
    rw: &mut ConversionRewriter<'c>,
    region: Region<'c>,
    converter: &TypeConverter<'c, '_>,
) -> bool {
    if !rw.is_plain() || !plain::branches_are_plain(region) {
        return false;
    }
    let mut changed = Vec::new();
    for arg in region.block_list().flat_map(Block::arg_list) {
        let ty = arg.ty();
        match converter.convert_by_type(ty) {
            None => return false,
            Some(to) if to == ty => {}
            Some(to) => changed.push((arg, ty, to)),
        }
    }
    if changed.is_empty() {
        return true;
    }
    region.entry().and_then(Block::parent_op).into_iter().for_each(|op| rw.note_modified(op));
    for (arg, ty, to) in changed {
        if !rw.retype_plainly(arg, ty, to) {
            rw.retype(arg, to);
        }
    }
    for mismatch in plain::branch_mismatches(region) {
        let value = rw.cast(mismatch.value, mismatch.ty);
        c!(mlirOperationSetOperand(mismatch.branch.raw(), mismatch.index as isize, value.raw()));
        rw.release(mismatch.value);
        rw.note_modified(mismatch.branch);
    }
    true
}

pub(super) fn convert_region<'c>(
    rw: &mut ConversionRewriter<'c>,
    region: Region<'c>,
    converter: &TypeConverter<'c, '_>,
) -> Result<(), Declined> {
    if convert_region_plainly(rw, region, converter) {
        return Ok(());
    }
    let blocks = region.blocks();
    let mut signatures = Vec::with_capacity(blocks.len());
    for block in &blocks {
        let mut types = Vec::with_capacity(block.num_args());
        for arg in block.args() {
            let Some(to) = converter.convert_value(arg) else {
                return Err(Declined::no_match(format!(
                    "a block argument has type {}, which is not converted",
                    arg.ty()
                )));
            };
            types.push(to.to_vec());
        }
        if block.args().iter().zip(&types).any(|(arg, types)| types[..] != [arg.ty()]) {
            check_branches(*block)?;
        }
        signatures.push(types);
    }
    for (block, types) in blocks.into_iter().zip(signatures) {
        convert_block(rw, block, &types)?;
    }
    Ok(())
}
