//! Turns vectors outside of kernels into tensors, transfers into slices.
//!
//! Before / after:
//!
//! ```text
//! %v = vector.transfer_read %x[%i], %pad {in_bounds}    %v = tensor.extract_slice %x[%i] [8] [1]
//! %v = vector.transfer_read %x[%i], %pad                %v = tensor.generate { %x[%i + %j] where that is in %x, else %pad }
//! %w = arith.addf %v, %v : vector<8xf32>                %w = arith.addf %v, %v : tensor<8xf32>
//! %y = vector.transfer_write %w, %t[%i]                 %y = tensor.insert_slice of the part of %w that is in %t
//! ```
//!
//! Ensures: all of a function's vectors are gone, or none is.
//! Limits: masks, scalable vectors, writes that transpose, vectors in the bodies of linalg ops, and other ops of the dialect
//! `vector` than transfers and broadcasts of numbers: `verify` refuses them (F0002).

use super::checks::is_on_host;
use super::guards::Guard;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::typed::{Index, Slice, tensor, vector};
use monopour_ir::{
    Block, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value, WalkOrder,
};

/// Makes tensors of the vectors of `entry`.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(super) fn run(module: &Module, entry: Op) -> Result<(), Diagnostics> {
    let ops: Vec<Op> = entry.nested(WalkOrder::Pre).into_iter().filter(|op| values(*op).any(is_vector)).collect();
    if ops.is_empty() || !ops.iter().all(|op| is_known(*op)) {
        return Ok(());
    }
    let mut guard = Guard { rw: Rewriter::new(module.context()) };
    for op in &ops {
        let made: Vec<Value> = op.results().into_iter().chain(arguments(*op)).filter(|v| is_vector(*v)).collect();
        made.into_iter().for_each(|value| guard.rw.set_type(value, tensor_of(value.ty())));
        if op.is(ops::arith::CONSTANT)
            && let Some(plain) = op.attr("value").and_then(|v| v.elements_with_type(op.result(0).ty()))
        {
            guard.rw.set_attr(*op, "value", plain);
        }
    }
    for op in ops {
        guard.rw.set_point(InsertionPoint::Before(op));
        match op.name() {
            ops::vector::TRANSFER_READ => read(&mut guard, op)?,
            ops::vector::TRANSFER_WRITE => write(&mut guard, op)?,
            ops::vector::BROADCAST => {
                let splat = guard.op(ops::tensor::SPLAT, op.location(), &[op.operand(0)], op.result(0).ty())?;
                guard.rw.replace_op(op, &[splat]);
            }
            _ => {}
        }
    }
    module.op().verify_with_diagnostics()
}

fn arguments<'c>(op: Op<'c>) -> impl Iterator<Item = Value<'c>> {
    op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args())
}

fn values<'c>(op: Op<'c>) -> impl Iterator<Item = Value<'c>> {
    op.operands().into_iter().chain(op.results()).chain(arguments(op))
}

fn is_vector(value: Value) -> bool {
    value.ty().is_vector()
}

fn tensor_of<'c>(ty: Type<'c>) -> Type<'c> {
    Type::tensor(&ty.shape().unwrap_or_default(), ty.element(), None)
}

/// Whether an op on vectors has a form on tensors.
fn is_known(op: Op) -> bool {
    const AROUND: [&str; 6] =
        [ops::scf::CONDITION, ops::scf::EXECUTE_REGION, ops::scf::FOR, ops::scf::IF, ops::scf::WHILE, ops::scf::YIELD];
    let is_plain = !values(op).any(|v| v.ty().is_scalable_vector());
    is_plain
        && is_on_host(op)
        && match op.name() {
            ops::vector::TRANSFER_READ => Transfer::of(op).is_some(),
            ops::vector::TRANSFER_WRITE => Transfer::of(op).is_some_and(|t| t.along.is_sorted()),
            ops::vector::BROADCAST => !is_vector(op.operand(0)),
            name => matches!(op.dialect(), "arith" | "math") || AROUND.contains(&name),
        }
}

/// A transfer's indices, and the tensor's dimension of each of the vector's.
struct Transfer<'c> {
    tensor: Value<'c>,
    first: Vec<Value<'c>>,
    along: Vec<usize>,
    /// By dimension of the vector.
    in_bounds: Vec<bool>,
}

impl<'c> Transfer<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let transfer = vector::Transfer::of(op)?;
        if transfer.mask_position().is_some() || !transfer.base().ty().is_tensor() {
            return None;
        }
        let along = transfer.permutation_map()?.dim_positions()?;
        let in_bounds = transfer.in_bounds(along.len());
        Some(Self { tensor: transfer.base(), first: transfer.indices(), along, in_bounds })
    }

    /// A slice of one element along the dimensions that the vector does not have.
    fn sizes(&self, guard: &mut Guard<'c>, op: Op<'c>, of_vector: &[Value<'c>]) -> Result<Vec<Value<'c>>, Diagnostics> {
        let one = guard.constant(op.location(), Type::index(op.context()), 1)?;
        let mut sizes = vec![one; self.first.len()];
        for (dim, size) in self.along.iter().zip(of_vector) {
            sizes[*dim] = *size;
        }
        Ok(sizes)
    }
}

fn constants<'c>(guard: &mut Guard<'c>, op: Op<'c>, numbers: &[i64]) -> Result<Vec<Value<'c>>, Diagnostics> {
    numbers.iter().map(|n| guard.constant(op.location(), Type::index(op.context()), *n)).collect()
}

fn read<'c>(guard: &mut Guard<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let transfer = Transfer::of(op).expect("checked: the transfer is known");
    let ty = op.result(0).ty();
    let result = if transfer.in_bounds.iter().all(|known| *known) && transfer.along.is_sorted() {
        let shape = constants(guard, op, &ty.shape().unwrap_or_default())?;
        let sizes = transfer.sizes(guard, op, &shape)?;
        let slice = slice(&transfer.first, &sizes);
        guard.rw.create(tensor::extract_slice(op.location(), transfer.tensor, &slice, ty))?.result(0)
    } else {
        generated(guard, op, &transfer, ty)?
    };
    guard.rw.replace_op(op, &[result]);
    Ok(())
}

/// Reads element by element, with padding out of bounds.
fn generated<'c>(
    guard: &mut Guard<'c>,
    op: Op<'c>,
    transfer: &Transfer<'c>,
    ty: Type<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc) = (op.context(), op.location());
    let index = Type::index(cx);
    let mut sizes = vec![];
    for dim in &transfer.along {
        sizes.push(guard.size(loc, transfer.tensor, *dim)?);
    }
    let block = Block::new(&vec![(index, loc); transfer.along.len()]);
    let region = Region::new();
    region.append(block);
    let made = guard.rw.create(OpSpec::new(ops::tensor::GENERATE, loc).results(&[ty]).region(region))?;
    guard.rw.set_point(InsertionPoint::End(block));
    let (mut at, mut inside) = (transfer.first.clone(), None);
    for ((dim, size), lane) in transfer.along.iter().zip(sizes).zip(block.args()) {
        at[*dim] = guard.op(ops::arith::ADDI, loc, &[at[*dim], lane], index)?;
        let fits = guard.compare(loc, CmpIPredicate::Ult, at[*dim], size)?;
        inside = Some(match inside {
            Some(others) => guard.op(ops::arith::ANDI, loc, &[others, fits], fits.ty())?,
            None => fits,
        });
    }
    let operands = [&[transfer.tensor][..], &at].concat();
    let mut element = guard.op(ops::tensor::EXTRACT, loc, &operands, ty.element())?;
    if let Some(inside) = inside {
        let padding = op.operand(1 + transfer.first.len());
        element = guard.op(ops::arith::SELECT, loc, &[inside, element, padding], ty.element())?;
    }
    guard.rw.create(OpSpec::new(ops::tensor::YIELD, loc).operands(&[element]))?;
    guard.rw.set_point(InsertionPoint::Before(op));
    Ok(made.result(0))
}

/// Writes the part of the vector that is within the tensor.
fn write<'c>(guard: &mut Guard<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let loc = op.location();
    let index = Type::index(op.context());
    let mut transfer = Transfer::of(op).expect("checked: the transfer is known");
    let mut vector = op.operand(0);
    let shape = vector.ty().shape().unwrap_or_default();
    let mut sizes = constants(guard, op, &shape)?;
    let zero = guard.constant(loc, index, 0)?;
    for (at, dim) in transfer.along.clone().into_iter().enumerate() {
        if !transfer.in_bounds[at] {
            let size = guard.size(loc, transfer.tensor, dim)?;
            let first = guard.op(ops::arith::MINSI, loc, &[transfer.first[dim], size], index)?;
            let rest = guard.op(ops::arith::SUBI, loc, &[size, first], index)?;
            sizes[at] = guard.op(ops::arith::MINSI, loc, &[rest, sizes[at]], index)?;
            transfer.first[dim] = first;
        }
    }
    if !transfer.in_bounds.iter().all(|known| *known) {
        let known: Vec<i64> = sizes.iter().map(|s| s.constant_int().unwrap_or(DYNAMIC)).collect();
        let ty = Type::tensor(&known, vector.ty().element(), None);
        let slice = slice(&vec![zero; shape.len()], &sizes);
        vector = guard.rw.create(tensor::extract_slice(loc, vector, &slice, ty))?.result(0);
    }
    let sizes = transfer.sizes(guard, op, &sizes)?;
    let slice = slice(&transfer.first, &sizes);
    let result = guard.rw.create(tensor::insert_slice(loc, vector, transfer.tensor, &slice))?;
    guard.rw.replace_op(op, &result.results());
    Ok(())
}

/// A slice of unit strides; constants are static.
fn slice<'c>(offsets: &[Value<'c>], sizes: &[Value<'c>]) -> Slice<'c> {
    let list = |values: &[Value<'c>]| values.iter().copied().map(Index::of).collect();
    Slice::new(list(offsets), list(sizes))
}
