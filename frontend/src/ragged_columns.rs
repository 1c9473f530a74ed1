//! Takes apart products of rows and constant weights whose columns no register divides, for CPUs: whole panels, and the rest.
//!
//! Before / after (dispatch 3; 50,257 columns, registers of 16):
//!
//! ```text
//! %p = generic {dispatch = 3} (m, n, k)           %l = generic {dispatch = 3} (m, n, k)
//!      %x[m, k], %w[n, k] : [50257, 768]               %x[m, k], extract_slice %w [0, 0] [50240, 768]
//!                                                 %a = insert_slice %l into %e [0, 0] [128, 50240]
//!                                                 %r = generic {dispatch = 9} (m, n, k)
//!                                                      %x[m, k], extract_slice %w [50240, 0] [17, 768]
//!                                                 %p = insert_slice %r into %a [0, 50240] [128, 17]
//! ```
//!
//! The columns of such a product are a loop of unknown extent in each task, and its weights are copied to panels by each run:
//! GPT-2's logits took a third of a prefill. [`crate::panels`] lays out the weights of the first part. Both parts are made where
//! they are inserted.
//!
//! Requires: what [`crate::fuse`] ensures. Ensures: the same.
//! Limits: known sizes; weights of floats (bytes gain nothing by panels); what finishes the product is pointwise, and has the columns as a dimension.

use crate::dispatch::{self, Dispatch};
use crate::layouts::REGISTERS;
use crate::narrow::constants::stored;
use crate::panels::{Member, members};
use crate::{kernel_cpu, linalg, products};
use monopour_contract::{KernelClass, attributes};
use monopour_ir::typed::{Slice, tensor};
use monopour_ir::{Attr, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Rewriter, Type, Value, ops};
use monopour_program::CpuTarget;
use std::collections::HashMap;
use tracing::trace;

/// Fewest rows for which weights are copied to panels in each run.
const FEWEST_ROWS: i64 = 16;
/// Fewest panels for which a dispatch more is little (196 rows, 728 x 728: 1.28 ms and 0.12 for the rest, 1.77 in one).
const FEWEST_PANELS: i64 = 16;

/// Takes apart the products of a module.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run(module: &Module, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    let dispatches = dispatch::collect(module);
    let mut next = dispatches.iter().map(|dispatch| dispatch.number + 1).max().unwrap_or(0);
    let mut rw = Rewriter::new(module.context());
    for dispatch in &dispatches {
        if let Some(ragged) = Ragged::of(dispatch, cpu) {
            trace!(target: "fuse", "{}: columns from {} apart", dispatch.root.location(), ragged.cut);
            ragged.rewrite(dispatch, next, &mut rw)?;
            next += 1;
        }
    }
    Ok(())
}

/// A product whose columns are taken apart.
struct Ragged<'c> {
    members: Vec<Member<'c>>,
    columns: i64,
    /// Columns of whole panels.
    cut: i64,
}

impl<'c> Ragged<'c> {
    fn of(dispatch: &Dispatch<'c>, cpu: &CpuTarget) -> Option<Self> {
        let main = Some(dispatch.main()).filter(|_| dispatch.class() == KernelClass::Contraction)?;
        let found = products::contraction_loops(main).filter(|_| linalg::num_inputs(main) == 2)?;
        let (maps, extents) = (linalg::indexing_maps(main)?, linalg::loop_extents(main)?);
        let columns = found.n.last().map(|d| extents[*d])?;
        let lanes = kernel_cpu::lanes(main, cpu);
        let cut = columns - columns % (REGISTERS * lanes);
        let rows = found.m.iter().map(|d| extents[*d]).fold(1, i64::saturating_mul);
        let is_known = extents.iter().all(|extent| *extent > 0);
        let is_ragged = columns % lanes != 0 && cut >= FEWEST_PANELS * REGISTERS * lanes && rows >= FEWEST_ROWS;
        let weights = main.operand(1 - found.lhs);
        let is_stored = stored(weights).is_some();
        let is_float = weights.ty().element().is_float();
        let members = members(dispatch, &maps, *found.n.last()?).filter(|_| is_known && is_ragged && is_float)?;
        // Only the last op is read elsewhere.
        let inside = |value: Value<'c>| value.uses().iter().all(|use_| members.iter().any(|m| m.op == use_.op));
        let own = members.iter().all(|m| m.op == dispatch.root || inside(m.op.result(0)));
        (is_stored && own).then_some(Self { members, columns, cut })
    }

    fn rewrite(&self, dispatch: &Dispatch<'c>, number: i64, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let root = dispatch.root;
        rw.set_point(InsertionPoint::Before(root));
        // The op whose destination becomes the result: a fill, where the others overwrite it.
        let mut writer = root;
        while let Some(def) = linalg::destination(writer, 0).defining_op().filter(|def| self.has(*def)) {
            writer = def;
        }
        let mut whole = linalg::destination(writer, 0);
        let own = self.members.iter().find(|member| member.op == root).expect("invariant: the root is a member");
        let place = own.places.last().copied().flatten().expect("invariant: results have columns");
        for (number, part) in [(None, (0, self.cut)), (Some(number), (self.cut, self.columns - self.cut))] {
            let made = self.part(part, (writer, whole), rw)?;
            if let Some(number) = number {
                let number = Attr::i64(rw.context(), number);
                made.values().for_each(|op| rw.set_attr(*op, attributes::DISPATCH, number));
            }
            let slice = sliced(whole.ty(), place, part);
            whole = rw.create(tensor::insert_slice(root.location(), made[&root].result(0), whole, &slice))?.result(0);
        }
        rw.replace_op(root, &[whole]);
        for member in self.members.iter().rev().filter(|member| member.op != root) {
            rw.erase(member.op);
        }
        Ok(())
    }

    fn has(&self, op: Op<'c>) -> bool {
        self.members.iter().any(|member| member.op == op)
    }

    /// The ops on some columns, by the old ones; `writer` writes to those of `whole`.
    fn part(
        &self,
        part: (i64, i64),
        (writer, whole): (Op<'c>, Value<'c>),
        rw: &mut Rewriter<'c>,
    ) -> Result<HashMap<Op<'c>, Op<'c>>, Diagnostics> {
        let mut made: HashMap<Op, Op> = HashMap::new();
        for Member { op, places, .. } in &self.members {
            let mut operands = vec![];
            for (index, place) in places.iter().enumerate() {
                let value = op.operand(index);
                let known = value.defining_op().and_then(|def| made.get(&def));
                operands.push(match (known, place) {
                    (Some(def), _) => def.result(0),
                    (None, None) => value,
                    (None, Some(place)) if is_empty(value) => empty(value.ty(), *place, part, op.location(), rw)?,
                    (None, Some(place)) if *op == writer && index + 1 == places.len() => {
                        extracted(whole, *place, part, rw)?
                    }
                    (None, Some(place)) => extracted(value, *place, part, rw)?,
                });
            }
            let copy = rw.clone_op(*op, |value| value);
            rw.insert(copy);
            rw.set_operands(copy, &operands);
            let ty = operands.last().expect("invariant: an op has a destination").ty();
            rw.set_type(copy.result(0), ty);
            made.insert(*op, copy);
        }
        Ok(made)
    }
}

/// Some elements of one dimension of a tensor.
fn sliced<'c>(ty: Type<'c>, dim: usize, (first, count): (i64, i64)) -> Slice<'c> {
    let mut sizes = ty.shape().unwrap_or_default();
    let mut offsets = vec![0; sizes.len()];
    (offsets[dim], sizes[dim]) = (first, count);
    Slice::fixed(&offsets, &sizes)
}

/// These elements of a value.
fn extracted<'c>(
    value: Value<'c>,
    dim: usize,
    part: (i64, i64),
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let loc = value.defining_op().map_or_else(|| Location::unknown(rw.context()), Op::location);
    let ty = resized(value.ty(), dim, part.1);
    Ok(rw.create(tensor::extract_slice(loc, value, &sliced(value.ty(), dim, part), ty))?.result(0))
}

fn is_empty(value: Value) -> bool {
    value.defining_op().is_some_and(|def| def.is(ops::tensor::EMPTY))
}

/// A tensor for these elements, which are inserted where bufferization makes it.
fn empty<'c>(
    ty: Type<'c>,
    dim: usize,
    part: (i64, i64),
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    Ok(rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[resized(ty, dim, part.1)]))?.result(0))
}

fn resized<'c>(ty: Type<'c>, dim: usize, extent: i64) -> Type<'c> {
    let mut shape = ty.shape().unwrap_or_default();
    shape[dim] = extent;
    Type::tensor(&shape, ty.element(), None)
}
