//! Grids that a device cannot launch as they are: dynamic ones, too long ones, and those with too much scratch.
//!
//! Before: tile ids `%i`, `%j` are arguments of the kernel.
//! After: `gpu.block_id y` and `gpu.block_id x`; or, on a folded grid, the coordinates of workgroup `id.x + id.y * grid.x`,
//! in an `scf.if` that skips workgroups beyond the grid. With a bound on the workgroups in flight, an `scf.for` instead of
//! the `scf.if` takes several tiles in turn.
//! Ensures: a kernel of a folded grid has the attribute `monopour.linear_grid`; its last arguments are the dynamic extents.

use super::boundary::Signature;
use super::code::Code;
use crate::error;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{Attr, Block, DYNAMIC, Diagnostics, Module, Op, Rewriter, Value};
use monopour_program::{GRID_ROW, GpuDescription};
use std::collections::HashMap;

/// The source of a workgroup's tile ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Extents of the dispatch, outermost first; [`DYNAMIC`] where only the host has them.
    pub(super) extents: Vec<i64>,
    /// Whether tile ids are computed from a linear workgroup id.
    pub(super) folded: bool,
    /// Most workgroups in flight.
    pub(super) most: Option<i64>,
}

/// Extents of the grid of each kernel that the module calls; all dispatches of one kernel have one grid.
pub(super) fn extents(module: &Module) -> HashMap<String, Vec<i64>> {
    let mut found = HashMap::new();
    for call in module.op().find_all(ops::func::CALL) {
        let callee = call.callee();
        let forall = call.parent().filter(|p| p.is(ops::scf::FORALL));
        let extents = forall.and_then(|f| f.attr("staticUpperBound")).and_then(|a| a.as_ints());
        if let (Some(callee), Some(extents)) = (callee, extents) {
            found.entry(callee.to_owned()).or_insert(extents);
        }
    }
    found
}

impl Grid {
    /// The grid of a dispatch with these extents; `most` bounds the workgroups in flight.
    pub(super) fn read(
        func: Op,
        extents: Option<&Vec<i64>>,
        rank: usize,
        most: Option<i64>,
        device: &GpuDescription,
    ) -> Result<Self, Diagnostics> {
        let extents = extents.filter(|e| e.len() == rank).cloned().unwrap_or_else(|| vec![1; rank]);
        let offered = i64::from(device.limits.max_workgroups_per_dimension.max(1));
        let dynamic = extents.contains(&DYNAMIC);
        let total = extents.iter().try_fold(1i64, |t, e| t.checked_mul((*e).max(0)));
        if !dynamic {
            // Workgroup ids are i32 on the device.
            let most = (GRID_ROW * GRID_ROW).min(i32::MAX as u64);
            match total.map(|t| t as u64) {
                Some(total) if total <= most => {}
                other => return Err(error::over_limit(func, "workgroups", other.unwrap_or(u64::MAX), most)),
            }
        }
        let most = most.filter(|m| dynamic || total.is_none_or(|t| t > *m));
        let folded = dynamic || rank > 3 || most.is_some() || extents.iter().any(|e| *e > offered);
        Ok(Self { extents, folded, most })
    }

    /// Number of workgroups in flight, if static.
    pub(super) fn at_once(&self) -> Option<i64> {
        let total = (!self.extents.contains(&DYNAMIC)).then(|| self.extents.iter().product::<i64>());
        match (total, self.most) {
            (Some(total), Some(most)) => Some(total.min(most)),
            (total, most) => total.or(most),
        }
    }

    /// Number of extents that the call passes.
    pub(super) fn num_dynamic(&self) -> usize {
        self.extents.iter().filter(|e| **e == DYNAMIC).count()
    }

    /// Replaces the tile ids; returns the block for the tile's ops, and the workgroup id.
    pub(super) fn enter<'c>(
        &self,
        rw: &mut Rewriter<'c>,
        func: Op<'c>,
        signature: &Signature,
    ) -> Result<(Block<'c>, Value<'c>), Diagnostics> {
        let body = func.body().ok_or_else(|| error::not_a_tile(func, "the function has no body"))?;
        let first = body.first_op().ok_or_else(|| error::not_a_tile(func, "the function is empty"))?;
        let ids: Vec<Value> = signature.ids.clone().map(|i| body.arg(i)).collect();
        if !self.folded {
            let mut code = Code::before(rw, first);
            let mut found: Vec<Value> = (0..ids.len()).map(|d| code.id(ops::gpu::BLOCK_ID, d)).collect();
            found.reverse();
            let mut linear = code.c(0);
            for (id, extent) in found.iter().zip(&self.extents) {
                linear = code.mul_const(linear, *extent);
                linear = code.add(linear, *id);
            }
            replace(rw, &ids, &found);
            return Ok((body, linear));
        }
        let extents: Vec<Option<i64>> = self.extents.iter().map(|e| (*e != DYNAMIC).then_some(*e)).collect();
        let mut passed = Vec::new();
        for _ in extents.iter().filter(|e| e.is_none()) {
            passed.push(rw.add_block_arg(body, monopour_ir::Type::index(func.context()), func.location()));
        }
        let rest = body.ops();
        let mut code = Code::before(rw, first);
        let mut passed = passed.into_iter();
        let extents: Vec<Value> = extents
            .into_iter()
            .map(|e| {
                e.map_or_else(|| passed.next().expect("invariant: one argument per dynamic extent"), |e| code.c(e))
            })
            .collect();
        let (block, tile, worker) = self.wrap(&mut code, &extents)?;
        let end = block.terminator().expect("invariant: the block was closed");
        for op in rest.into_iter().filter(|op| !op.is_terminator()) {
            code.rw.move_before(op, end);
        }
        code.at(monopour_ir::InsertionPoint::Before(block.first_op().unwrap_or(end)));
        let mut found = vec![tile; ids.len()];
        let mut rest = tile;
        for (d, extent) in extents.iter().enumerate().rev() {
            found[d] = if d > 0 { code.rem(rest, *extent) } else { rest };
            rest = code.div(rest, *extent);
        }
        replace(code.rw, &ids, &found);
        let most = self.most.unwrap_or((GRID_ROW * GRID_ROW) as i64);
        code.rw.set_attr(func, attributes::LINEAR_GRID, Attr::i64(func.context(), most));
        Ok((block, worker))
    }

    /// Creates the empty guard or loop: its block, the linear tile id, the workgroup id.
    fn wrap<'c>(
        &self,
        code: &mut Code<'c, '_>,
        extents: &[Value<'c>],
    ) -> Result<(Block<'c>, Value<'c>, Value<'c>), Diagnostics> {
        let mut total = code.c(1);
        for extent in extents {
            total = code.mul(total, *extent);
        }
        let (x, y) = (code.id(ops::gpu::BLOCK_ID, 0), code.id(ops::gpu::BLOCK_ID, 1));
        let row = code.id(ops::gpu::GRID_DIM, 0);
        let above = code.mul(y, row);
        let worker = code.add(x, above);
        let mut block = None;
        let mut tile = worker;
        match self.most {
            None => {
                let inside = code.less(worker, total);
                code.guarded(Some(inside), |code| {
                    block = code.block();
                    Ok(())
                })?;
            }
            Some(most) => {
                // Workgroups beyond the bound skip the loop.
                let step = code.c(most);
                let works = code.less(worker, step);
                let start = code.op1(ops::arith::SELECT, &[works, worker, total], code.index);
                code.for_loop([start, total, step], &[], |code, i, _| {
                    block = code.block();
                    tile = i;
                    Ok(vec![])
                })?;
            }
        }
        Ok((block.expect("invariant: the body was written"), tile, worker))
    }
}

fn replace<'c>(rw: &mut Rewriter<'c>, ids: &[Value<'c>], found: &[Value<'c>]) {
    for (id, value) in ids.iter().zip(found) {
        rw.replace_all_uses(*id, *value);
    }
}
