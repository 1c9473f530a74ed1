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
//! A task calls no allocator. The alloca stands at the start of the task: in a loop it would take new stack each time.
//! Requires: no iteration hands the buffer on, which is checked.
//! Limits: sizes known at compile time, [`MAX_BUFFER_BYTES`] for one buffer and [`MAX_TASK_BYTES`] for all of a task (D0104).

use monopour_ir::{Block, Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Value};

use crate::collect::is_dispatch;

/// Largest buffer that goes to the stack: a fraction of the smallest stack of a worker thread.
pub const MAX_BUFFER_BYTES: u64 = 64 * 1024;
/// Most stack that the buffers of one task take; worker threads have 2 MiB by default.
pub const MAX_TASK_BYTES: u64 = 512 * 1024;

/// Promotes the buffers of all dispatches, and returns how many.
///
/// # Errors
/// D0104 for a buffer that cannot go to the stack.
pub fn run(module: Op) -> Result<u32, Diagnostics> {
    let mut plan = Vec::new();
    let mut errors = Diagnostics::default();
    for dispatch in module.find_all("scf.forall").into_iter().filter(|op| is_dispatch(*op)) {
        let mut task_bytes = 0u64;
        for alloc in dispatch.find_all("memref.alloc") {
            match stack_bytes(dispatch, alloc).and_then(|bytes| add(&mut task_bytes, bytes)) {
                Ok(()) => plan.push((dispatch, alloc)),
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
    for (dispatch, alloc) in plan {
        promote(dispatch, alloc)?;
        promoted += 1;
    }
    Ok(promoted)
}

fn add(task_bytes: &mut u64, bytes: u64) -> Result<(), String> {
    *task_bytes = task_bytes.saturating_add(bytes);
    if *task_bytes > MAX_TASK_BYTES {
        return Err(format!("the buffers of this task take more than {MAX_TASK_BYTES} bytes together"));
    }
    Ok(())
}

/// How much stack the buffer takes, or why it cannot have it.
fn stack_bytes(dispatch: Op, alloc: Op) -> Result<u64, String> {
    let ty = alloc.result(0).ty();
    let Some(bytes) = ty.static_size_bytes() else { return Err(format!("the size of {ty} is not known")) };
    if bytes > MAX_BUFFER_BYTES {
        return Err(format!("{ty} takes {bytes} bytes, more than {MAX_BUFFER_BYTES}"));
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
    for used in alloc.result(0).uses().into_iter().filter(|u| u.op.is("memref.dealloc")) {
        rw.erase(used.op);
    }
    rw.set_point(InsertionPoint::Start(body));
    let attrs = alloc.attrs();
    let mut spec = OpSpec::new("memref.alloca", alloc.location()).results(&[alloc.result(0).ty()]);
    for (name, value) in &attrs {
        spec = spec.attr(name, *value);
    }
    let new = rw.create(spec)?;
    rw.replace_op(alloc, &new.results());
    Ok(())
}
