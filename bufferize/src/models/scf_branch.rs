//! `scf` without loops: the results are the memrefs that one of several regions yields.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Diagnostic, Diagnostics, InsertionPoint, Op, Region, Type, Value};

use crate::blocks::terminators;
use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{AliasModel, Buffers, OpModel, OpModels, UseModel};
use crate::options::Options;
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    for name in BRANCHES {
        models.add(name, Branch);
    }
    models.add(ops::scf::YIELD, Yield);
}

/// Operations that run one of their regions, once.
const BRANCHES: &[&str] = &[ops::scf::IF, ops::scf::INDEX_SWITCH, EXECUTE_REGION];
const EXECUTE_REGION: &str = ops::scf::EXECUTE_REGION;

struct Branch;

impl OpModel for Branch {
    super::no_uses!();
    fn region_branches(&self, _op: Op) -> Option<Vec<(usize, usize)>> {
        Some(vec![])
    }
    fn are_arguments_writable(&self, op: Op, _region: usize) -> bool {
        op.is(EXECUTE_REGION)
    }
    fn refuse(&self, op: Op, options: &Options) -> Option<Diagnostic> {
        if options.extensions || !op.is(EXECUTE_REGION) || yields(op).len() == 1 {
            return None;
        }
        let message = format!("'{EXECUTE_REGION}' op op without unique scf.yield is not supported");
        let help = "branch to one block that yields, or set the option 'extensions'";
        Some(Diagnostic::error("B0104", op.location(), message).with_help(help))
    }
    fn has_several_blocks(&self, op: Op) -> bool {
        op.is(EXECUTE_REGION)
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let mut joined: Vec<Option<Type>> = vec![None; op.num_results()];
        for (position, region) in op.regions().into_iter().enumerate() {
            if position > 0 && types.is_upstream() && !types.is_early() {
                types.early(|types| {
                    types.walk_region(op, region)?;
                    join(op, region, &mut joined, types)
                })?;
                types.walk_region(op, region)?;
            } else {
                types.walk_region(op, region)?;
                join(op, region, &mut joined, types)?;
            }
        }
        for (result, ty) in op.results().into_iter().zip(joined).filter(|(r, _)| r.ty().is_tensor()) {
            let ty = ty.unwrap_or_else(|| types.identity(result.ty()));
            types.set(result, ty);
        }
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let types: Vec<_> = op.results().into_iter().map(|r| pass.types.of(r)).collect();
        let new = rw.recreate(op, buffers.operands(), &types)?;
        for region in new.regions() {
            // The entry block has no operands; `scf.index_switch` may still have arguments there.
            if let Some(entry) = region.entry().filter(|entry| entry.num_args() > 0) {
                let types: Vec<Type> = entry.args().into_iter().map(|a| pass.types.of(a)).collect();
                rw.convert_block_args(entry, &types);
            }
            pass.convert_blocks(rw, region);
        }
        rw.replace_op(op, &new.results());
        Ok(())
    }
}

/// Joins the types of an operation's results with those that a region yields.
fn join<'c>(
    op: Op<'c>,
    region: Region<'c>,
    joined: &mut [Option<Type<'c>>],
    types: &BufferTypes<'c, '_>,
) -> Result<(), Diagnostics> {
    for yielded in terminators(region).filter(|t| t.is(ops::scf::YIELD)) {
        for (ty, value) in joined.iter_mut().zip(yielded.operands()).filter(|(_, v)| v.ty().is_tensor()) {
            let new = types.of(value);
            *ty = Some(match *ty {
                None => new,
                Some(old) => types.unify(op, old, new)?,
            });
        }
    }
    Ok(())
}

/// The yields of an operation, in all blocks of its regions.
fn yields<'c>(op: Op<'c>) -> Vec<Op<'c>> {
    op.regions().into_iter().flat_map(terminators).filter(|t| t.is(ops::scf::YIELD)).collect()
}

/// The values that receive a yielded operand: results, and the iteration argument of a loop.
fn targets<'c>(op: Op<'c>, operand: usize) -> Vec<Value<'c>> {
    let Some(parent) = op.parent() else { return vec![] };
    let argument = |region: usize, skip: usize| {
        let entry = parent.regions().get(region).and_then(|r| r.entry());
        entry.filter(|e| operand + skip < e.num_args()).map(|e| e.arg(operand + skip))
    };
    let result = parent.get_result(operand);
    match parent.name() {
        ops::scf::FOR => argument(0, 1).into_iter().chain(result).collect(),
        // The yield of a while loop returns no results: only its condition does.
        ops::scf::WHILE => argument(0, 0).into_iter().collect(),
        _ => result.into_iter().collect(),
    }
}

/// The types that a yield's operands must have: of the results, or of the next iteration's arguments.
fn wanted_types<'c>(parent: Op<'c>) -> Vec<Type<'c>> {
    let values = match parent.is(ops::scf::WHILE) {
        true => parent.body().map(|entry| entry.args()).unwrap_or_default(),
        false => parent.results(),
    };
    values.into_iter().map(Value::ty).collect()
}

struct Yield;

impl OpModel for Yield {
    super::uses!(UseModel::TERMINATOR, op, operand => {
        let Some(parent) = op.parent().filter(|p| BRANCHES.contains(&p.name())) else { return vec![] };
        let certain = parent.is(EXECUTE_REGION) && yields(parent).len() == 1;
        let result = parent.result(operand);
        vec![if certain { AliasModel::equivalent(result) } else { AliasModel::maybe_equivalent(result) }]
    });
    fn flows<'c>(&self, op: Op<'c>, operand: usize) -> Vec<Value<'c>> {
        targets(op, operand)
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let Some(parent) = op.parent() else { return Err(Declined::no_match("a yield without a parent")) };
        rw.set_point(InsertionPoint::Before(op));
        let wanted = wanted_types(parent);
        let mut values = Vec::with_capacity(op.num_operands());
        for (i, value) in buffers.operands().iter().enumerate() {
            values.push(match wanted.get(i).filter(|t| t.is_memref()) {
                Some(ty) => pass.cast_or_copy(rw, op, *value, *ty)?,
                None => *value,
            });
        }
        rw.set_operands(op, &values);
        Ok(())
    }
}
