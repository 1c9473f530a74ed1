//! Put small buffers of CPU tasks on the stack.
//!
//! ```text
//! scf.forall (%i) in (4) {                              scf.forall (%i) in (4) {
//!   scf.for .. {                                          %t = memref.alloca() : memref<8x32xf32>
//!     %t = memref.alloc() : memref<8x32xf32>     ==>      scf.for .. {
//!     "use"(%t)                                             "use"(%t)
//!   }                                                     }
//! } {monopour.kernel = ..}                              } {monopour.kernel = ..}
//! ```
//!
//! A task calls no allocator. The alloca is at the start of the task: in a loop it would take new stack each time.
//! A buffer of dynamic size with a constant bound (a tile at the edge) takes that much stack. One that is too large
//! for the stack becomes a slice of a host buffer with one slice per task, allocated around the dispatch.
//! Requires: no iteration forwards the buffer, which is checked.
//! Limits: [`MOST_TASK_BUFFER_BYTES`] of stack for one buffer and [`MOST_TASK_BYTES`] for all of a task; beyond, the size must be defined
//! before the dispatch (D0104).

use monopour_contract::{MOST_TASK_BUFFER_BYTES, MOST_TASK_BYTES};
use monopour_ir::ops;
use monopour_ir::typed::{Index, Slice, memref};
use monopour_ir::{
    Attr, Block, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, MemRefType, Op, OpSpec, Rewriter, Type, Value,
};

use crate::collect::is_dispatch;

/// Promotes the buffers of all dispatches, and returns their number.
///
/// # Errors
/// D0104 for a buffer that cannot be on the stack.
pub fn run(module: Op) -> Result<u32, Diagnostics> {
    let mut plan = Vec::new();
    let mut errors = Diagnostics::default();
    for dispatch in module.find_all(ops::scf::FORALL).into_iter().filter(|op| is_dispatch(*op)) {
        let mut task_bytes = 0u64;
        for alloc in dispatch.find_all(ops::memref::ALLOC) {
            let stacked = stack_bytes(dispatch, alloc).and_then(|bytes| add(&mut task_bytes, bytes));
            match stacked.or_else(|why| if can_hoist(dispatch, alloc) { Ok(false) } else { Err(why) }) {
                Ok(on_stack) => plan.push((dispatch, alloc, on_stack)),
                Err(why) => errors.0.push(
                    Diagnostic::error(
                        "D0104",
                        alloc.location(),
                        format!("a buffer of a task cannot go to the stack: {why}"),
                    )
                    .with_help("use smaller tiles, or let the dispatch write into a result"),
                ),
            }
        }
    }
    if errors.has_errors() {
        return Err(errors);
    }
    let mut promoted = 0;
    for (dispatch, alloc, on_stack) in plan {
        if on_stack {
            promote(dispatch, alloc)?;
        } else {
            hoist(dispatch, alloc)?;
        }
        promoted += 1;
    }
    Ok(promoted)
}

/// Reserves stack of a task, in whole cache lines; true if there is enough.
fn add(task_bytes: &mut u64, bytes: u64) -> Result<bool, String> {
    let total = task_bytes.saturating_add(bytes.next_multiple_of(64));
    if total > MOST_TASK_BYTES {
        return Err(format!("the buffers of this task take more than {MOST_TASK_BYTES} bytes together"));
    }
    *task_bytes = total;
    Ok(true)
}

/// Upper bounds of a buffer's sizes; `None` if one has no constant bound.
pub(crate) fn bounded_shape(alloc: Op) -> Option<Vec<i64>> {
    let mut dynamic = alloc.operands().into_iter();
    let shape = alloc.result(0).ty().shape()?;
    shape.into_iter().map(|size| if size == DYNAMIC { dynamic.next()?.upper_bound() } else { Some(size) }).collect()
}

/// Whether a host buffer can hold this one for every task: sizes are defined before the dispatch, and it is not forwarded.
fn can_hoist(dispatch: Op, alloc: Op) -> bool {
    let is_outside = |v: &Value| v.block().and_then(Block::parent_op).is_none_or(|o| !o.is_inside(dispatch));
    // Views get the slice's layout: plain subviews without further views can.
    let takes_layout = |u: monopour_ir::Use| {
        let views = u.op.results().into_iter().filter(|r| r.ty().is_memref()).collect::<Vec<_>>();
        views.is_empty()
            || (u.op.is(ops::memref::SUBVIEW)
                && u.op.result(0).ty().shape().map(|s| s.len()) == alloc.result(0).ty().shape().map(|s| s.len())
                && u.op.result(0).uses().iter().all(|u| u.op.results().iter().all(|r| !r.ty().is_memref())))
    };
    alloc.operands().iter().all(is_outside)
        && !is_handed_on(alloc.result(0))
        && alloc.result(0).uses().into_iter().all(takes_layout)
}

/// Makes the buffer a slice, by the tile ids, of a buffer around the dispatch.
fn hoist(dispatch: Op, alloc: Op) -> Result<(), Diagnostics> {
    let (cx, loc) = (alloc.context(), alloc.location());
    let (Some(body), Some(memref)) = (dispatch.body(), alloc.result(0).ty().as_memref()) else { return Ok(()) };
    let mut rw = Rewriter::new(cx);
    let grid = dispatch.attr("staticUpperBound").and_then(|a| a.as_ints()).unwrap_or_default();
    let ids: Vec<Value> = body.args().into_iter().take(grid.len()).collect();
    let mut sizes: Vec<Value> =
        dispatch.operands().into_iter().take(grid.iter().filter(|g| **g == DYNAMIC).count()).collect();
    sizes.extend(alloc.operands());
    let shape = [&grid[..], &memref.shape].concat();
    rw.set_point(InsertionPoint::Before(dispatch));
    let ty = Type::memref(&shape, memref.element, memref.memory_space);
    let all = rw.create(memref::alloc(loc, &sizes, ty).attr("alignment", Attr::i64(cx, 64)))?;
    rw.set_point(InsertionPoint::After(dispatch));
    rw.create(OpSpec::new(ops::memref::DEALLOC, loc).operands(&all.results()))?;
    erase_deallocs(&mut rw, alloc);

    let dense =
        Type::memref(&shape, memref.element, memref.memory_space).as_memref().map(|m| m.strides).unwrap_or_default();
    let strides = &dense[grid.len()..];
    let slice_ty = Type::strided_memref(&memref.shape, memref.element, DYNAMIC, strides, memref.memory_space);
    let zeros = std::iter::repeat_n(Index::Static(0), memref.shape.len());
    let offsets = ids.iter().copied().map(Index::Dynamic).chain(zeros).collect();
    let tile = [&vec![1; grid.len()][..], &memref.shape].concat();
    let tile = Index::mixed(&tile, alloc.operands()).expect("invariant: an allocation has its dynamic sizes");
    rw.set_point(InsertionPoint::Before(alloc));
    let slice = rw.create(memref::subview(loc, all.result(0), &Slice::new(offsets, tile), slice_ty))?;
    retype(&mut rw, alloc.result(0), slice.result(0));
    rw.erase(alloc);
    Ok(())
}

/// Replaces a buffer by a slice of the same sizes in another layout; its views are retyped.
fn retype<'c>(rw: &mut Rewriter<'c>, old: Value<'c>, new: Value<'c>) {
    rw.replace_all_uses(old, new);
    let views = new.uses().into_iter().filter(|u| u.op.is(ops::memref::SUBVIEW) && u.index == 0);
    for view in views {
        if let Some(ty) = subview_type(view.op) {
            rw.set_type(view.op.result(0), ty);
        }
    }
}

/// The type of a subview in terms of its source, if it drops no dimension.
fn subview_type<'c>(view: Op<'c>) -> Option<Type<'c>> {
    let source = view.operand(0).ty().as_memref()?;
    let result = view.result(0).ty().as_memref()?;
    let steps = view.attr("static_strides")?.as_ints()?;
    if result.shape.len() != source.shape.len() {
        return None;
    }
    let times = |a: i64, b: i64| if a == DYNAMIC || b == DYNAMIC { DYNAMIC } else { a * b };
    let strides: Vec<i64> = steps.iter().zip(&source.strides).map(|(a, b)| times(*a, *b)).collect();
    Some(Type::strided_memref(&result.shape, result.element, DYNAMIC, &strides, result.memory_space))
}

fn erase_deallocs<'c>(rw: &mut Rewriter<'c>, alloc: Op<'c>) {
    for used in alloc.result(0).uses().into_iter().filter(|u| u.op.is(ops::memref::DEALLOC)) {
        rw.erase(used.op);
    }
}

/// The stack that the buffer takes, or why it cannot be on the stack.
fn stack_bytes(dispatch: Op, alloc: Op) -> Result<u64, String> {
    let ty = alloc.result(0).ty();
    let bytes = bounded_shape(alloc).and_then(|shape| Type::memref(&shape, ty.element(), None).static_size_bytes());
    let Some(bytes) = bytes else { return Err(format!("the size of {ty} is not known")) };
    if bytes > MOST_TASK_BUFFER_BYTES {
        return Err(format!("{ty} takes {bytes} bytes, more than {MOST_TASK_BUFFER_BYTES}"));
    }
    if alloc.block() != dispatch.body() && is_handed_on(alloc.result(0)) {
        return Err("it outlives the iteration that made it".to_owned());
    }
    Ok(bytes)
}

/// Whether a terminator forwards the buffer or a view of it.
fn is_handed_on(value: Value) -> bool {
    value.uses().iter().any(|used| {
        let forwards = used.op.is_terminator() && used.op.num_operands() > 0;
        forwards || used.op.results().into_iter().any(|r| r.ty().is_memref() && is_handed_on(r))
    })
}

fn promote(dispatch: Op, alloc: Op) -> Result<(), Diagnostics> {
    let Some(body): Option<Block> = dispatch.body() else { return Ok(()) };
    let mut rw = Rewriter::new(alloc.context());
    erase_deallocs(&mut rw, alloc);
    rw.set_point(InsertionPoint::Start(body));
    let ty = alloc.result(0).ty();
    let Some(memref) = ty.as_memref() else { return Ok(()) };
    let shape = bounded_shape(alloc).unwrap_or_default();
    let stack_ty = Type::memref(&shape, memref.element, memref.memory_space);
    let mut spec = memref::alloca(alloc.location(), &[], stack_ty);
    if let Some(value) = alloc.attr("alignment") {
        spec = spec.attr("alignment", value);
    }
    let new = rw.create(spec)?;
    if stack_ty == ty {
        rw.replace_op(alloc, &new.results());
        return Ok(());
    }
    rw.set_point(InsertionPoint::Before(alloc));
    let view = dense_view(&mut rw, alloc, new.result(0), &memref)?;
    rw.replace_op(alloc, &[view]);
    Ok(())
}

/// The first elements of `stack` as the buffer of `alloc`.
pub(crate) fn dense_view<'c>(
    rw: &mut Rewriter<'c>,
    alloc: Op<'c>,
    stack: Value<'c>,
    ty: &MemRefType<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (loc, index) = (alloc.location(), Type::index(alloc.context()));
    let sizes = Index::mixed(&ty.shape, alloc.operands()).expect("invariant: an allocation has its dynamic sizes");
    // Strides of the dense layout: computed where an inner size is dynamic.
    let (mut strides, mut stride): (Vec<Index>, Option<Value>) = (vec![], None);
    for (size, known) in sizes.iter().zip(&ty.strides).rev() {
        strides.push(match stride {
            Some(stride) if *known == DYNAMIC => Index::Dynamic(stride),
            _ => Index::Static(*known),
        });
        let size = match size {
            Index::Static(size) => rw.const_index(*size, loc),
            Index::Dynamic(size) => *size,
        };
        stride = Some(match stride {
            None => size,
            Some(s) => rw.create(OpSpec::new(ops::arith::MULI, loc).operands(&[s, size]).results(&[index]))?.result(0),
        });
    }
    strides.reverse();
    let slice = Slice { offsets: vec![Index::Static(0)], sizes, strides };
    Ok(rw.create(memref::reinterpret_cast(loc, stack, &slice, alloc.result(0).ty()))?.result(0))
}
