//! The forall of a row group, or of a dispatch that cannot be tiled.
//!
//! Before / after, with 8 rows per tile:
//!
//! ```text
//! %m = linalg.generic max ins(%x) outs(%f)        %r = scf.forall (%i) in (512) shared_outs(%o = %e) {
//! %e = linalg.generic exp ins(%x, %m) outs(%t)      %xs = tensor.extract_slice %x[%i * 8, 0] [8, 1024] [1, 1]
//!                                                   %l = tensor.empty() : tensor<8xf32>
//!                                                   %f = linalg.fill ... outs(%l)
//!                                                   %m = linalg.generic max ins(%xs) outs(%f)
//!                                                   %os = tensor.extract_slice %o[%i * 8, 0] [8, 1024] [1, 1]
//!                                                   %e = linalg.generic exp ins(%xs, %m) outs(%os)
//!                                                   tensor.parallel_insert_slice %e into %o[..]
//!                                                 }
//! ```
//!
//! Requires: [`crate::rows`]' form; without row loops, any ops.
//! Ensures: one forall, from 0 by 1, with a dimension per row loop (one iteration without any; the first ones merged where
//! there are more than three); every value with uses outside is a result; the destination of any other is a temporary of the
//! tile.

use crate::dispatch::Dispatch;
use crate::grid::MAX_GRID_RANK;
use crate::rows_slice::{Cut, Slicer};
use crate::{grid, linalg};
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::Index;
use monopour_ir::typed::scf::{self, Bounds};
use monopour_ir::{
    Attr, Block, Builder, Context, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value,
};
use std::collections::HashMap;

/// Puts the dispatch into a forall of tiles of these sizes, one per row loop; each op keeps its markers.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(
    dispatch: &Dispatch<'c>,
    tile: &[i64],
    kernel: Attr<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Op<'c>, Diagnostics> {
    let root = dispatch.root;
    let (cx, loc) = (root.context(), root.location());
    let outputs = dispatch.outputs();
    let inits: Vec<Value> = outputs.iter().map(|value| base(dispatch, *value)).collect();
    let grid = tile.len().clamp(1, MAX_GRID_RANK);
    let mut args = vec![(Type::index(cx), loc); grid];
    args.extend(inits.iter().map(|v| (v.ty(), loc)));
    let body = Block::new(&args);
    let cuts = cuts(dispatch, tile, body, rw)?;
    let (cuts, bounds) = onto_grid(cuts, body, root, rw)?;
    let starts = body.args().split_off(grid).into_iter().zip(inits.iter().copied()).collect();
    let mut slicer = Slicer::new(root, cuts, body, starts);
    let results = fill_body(dispatch, &outputs, body, &mut slicer, rw)?;
    terminate(&results, body, &mut slicer, rw)?;
    let region = Region::new();
    region.append(body);
    let spec = scf::forall(loc, &Bounds::upto(bounds), &inits, region).attr(attributes::KERNEL, kernel);
    rw.set_point(InsertionPoint::Before(root));
    let forall = rw.create(spec)?;
    for (value, result) in outputs.into_iter().zip(forall.results()) {
        rw.replace_all_uses(value, result);
    }
    for (op, _) in dispatch.ops.iter().rev() {
        rw.erase(*op);
    }
    Ok(forall)
}

/// The first destination of the chain that ends in a value.
fn base<'c>(dispatch: &Dispatch<'c>, value: Value<'c>) -> Value<'c> {
    let mut value = value;
    while let (Some(def), Some(result)) = (value.defining_op(), value.result_index()) {
        if !dispatch.ops.iter().any(|(op, _)| *op == def) {
            break;
        }
        value = linalg::destination(def, result);
    }
    value
}

fn cuts<'c>(
    dispatch: &Dispatch<'c>,
    tile: &[i64],
    body: Block<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Vec<Cut<'c>>, Diagnostics> {
    let mut cuts = vec![];
    for (row, size) in tile.iter().enumerate() {
        // Every row loop is a dimension of some operand.
        let source = dispatch.ops.iter().find_map(|(op, _)| {
            let maps = linalg::indexing_maps(*op)?;
            let at = |i: usize| maps[i].dim_positions()?.iter().position(|d| *d == row);
            (0..maps.len()).find_map(|i| at(i).map(|dim| (op.operand(i), dim)))
        });
        let (value, dim) = source.expect("invariant: a row loop is a dimension of some operand");
        cuts.push(Cut::new(body.arg(0), value, dim, *size, dispatch.root, rw)?);
    }
    Ok(cuts)
}

/// The row loops at the tile ids of the grid, and the grid's trip counts, which are computed before `root`.
fn onto_grid<'c>(
    cuts: Vec<Cut<'c>>,
    body: Block<'c>,
    root: Op<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<(Vec<Cut<'c>>, Vec<Index<'c>>), Diagnostics> {
    let merged = (cuts.len() + 1).saturating_sub(MAX_GRID_RANK);
    if cuts.is_empty() {
        return Ok((cuts, vec![Index::Static(1)]));
    }
    if merged < 2 {
        let bounds = cuts.iter().map(trip_count).collect();
        let ids = body.args().into_iter();
        return Ok((cuts.into_iter().zip(ids).map(|(cut, id)| cut.counted_by(id)).collect(), bounds));
    }
    let counts: Vec<i64> = cuts[..merged].iter().map(|c| c.count().0).collect();
    let loc = Location::unknown(rw.context());
    let ids = grid::decompose(body.arg(0), &counts, InsertionPoint::End(body), loc, rw)?;
    rw.set_point(InsertionPoint::Before(root));
    let mut bounds = vec![grid::merged_count(trip_count(&cuts[0]), &counts[1..], loc, rw)?];
    let mut placed: Vec<Cut> = cuts.iter().zip(ids).map(|(cut, id)| cut.counted_by(id)).collect();
    for (i, cut) in cuts[merged..].iter().enumerate() {
        placed.push(cut.counted_by(body.arg(1 + i)));
        bounds.push(trip_count(cut));
    }
    Ok((placed, bounds))
}

fn trip_count<'c>(cut: &Cut<'c>) -> Index<'c> {
    let (count, value) = cut.count();
    value.map_or(Index::Static(count), Index::Dynamic)
}

/// Clones the ops into the body, onto slices; returns each output's value there with its shared output.
fn fill_body<'c>(
    dispatch: &Dispatch<'c>,
    outputs: &[Value<'c>],
    body: Block<'c>,
    slicer: &mut Slicer<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Vec<(Value<'c>, Value<'c>)>, Diagnostics> {
    let shared = body.args().split_off(body.num_args() - outputs.len());
    let mut inner: HashMap<Value, Value> = HashMap::new();
    // The shared output at the end of the chain that starts at a destination of an op.
    let chain_of = |op: Op<'c>, result: usize| {
        let mut end = op.result(result);
        loop {
            if let Some(i) = outputs.iter().position(|o| *o == end) {
                return Some(shared[i]);
            }
            let next = end.uses().into_iter().find(|u| {
                let member = dispatch.ops.iter().any(|(o, _)| *o == u.op);
                member && u.index >= linalg::num_inputs(u.op)
            });
            let reader = next?;
            end = reader.op.result(reader.index - linalg::num_inputs(reader.op));
        }
    };
    for (op, _) in &dispatch.ops {
        let inputs = linalg::num_inputs(*op);
        let mut operands = vec![];
        for (i, value) in op.operands().into_iter().enumerate() {
            operands.push(match inner.get(&value) {
                Some(tiled) => *tiled,
                None if i < inputs => slicer.read(*op, i, rw)?,
                None => match chain_of(*op, i - inputs) {
                    Some(output) => slicer.slice(*op, i, output, rw)?,
                    None => slicer.temporary(*op, i, rw)?,
                },
            });
        }
        let copy = slicer.clone_onto(*op, &operands, rw)?;
        inner.extend(op.results().into_iter().zip(copy.results()));
    }
    Ok(outputs.iter().map(|o| inner[o]).zip(shared).collect())
}

fn terminate<'c>(
    results: &[(Value<'c>, Value<'c>)],
    body: Block<'c>,
    slicer: &mut Slicer<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    let inner = Block::new(&[]);
    let mut inserts = vec![];
    for (value, output) in results {
        inserts.push(slicer.insertion(*value, *output, rw)?);
    }
    let cx: Context = rw.context();
    let loc = Location::unknown(cx);
    let mut b = Builder::new(cx, InsertionPoint::End(inner));
    for spec in inserts {
        b.create(spec)?;
    }
    let region = Region::new();
    region.append(inner);
    Builder::new(cx, InsertionPoint::End(body))
        .create(OpSpec::new(ops::scf::FORALL_IN_PARALLEL, loc).region(region))?;
    Ok(())
}
