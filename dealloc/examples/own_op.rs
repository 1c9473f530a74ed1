//! Deallocation with a model for an operation of another dialect: whose memory its results are.
//!
//! ```text
//! %q = "acme.queue"(%n) : (index) -> memref<?xf32>         a fresh buffer
//! %s = "acme.slot"(%q)  : .. -> memref<4xf32>              a part of it
//! linalg.fill .. outs(%s)
//! ```
//!
//! `cargo run -p monopour-dealloc --example own_op` prints two forms: a free right after the last use of `%s`,
//! and upstream's, which decides at the end of the block.

use monopour_dealloc::models::{OwnershipModel, OwnershipModels, ResultMemory};
use monopour_dealloc::ownership::BlockOwnership;
use monopour_dealloc::state::State;
use monopour_dealloc::{Options, run_ownership_with};
use monopour_ir::{Context, Diagnostics, Module, Op};

/// Allocates its result.
pub struct Queue;

impl OwnershipModel for Queue {
    /// Upstream's form: the block owns the result, and frees it at its end unless it forwards it.
    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        if let Some(block) = op.block() {
            let always = state.constant(block, true);
            state.set(op.result(0), block, BlockOwnership::Unique(always));
            state.add_candidate(op.result(0), block);
        }
        Ok(op)
    }
    fn result_memory(&self, _op: Op) -> Option<ResultMemory> {
        Some(ResultMemory::Fresh)
    }
}

/// Its result is a part of its operand.
pub struct Slot;

impl OwnershipModel for Slot {
    /// No ownership to set: the result then belongs to the owner of the operands.
    fn process<'c>(&self, op: Op<'c>, _state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        Ok(op)
    }
    fn result_memory(&self, _op: Op) -> Option<ResultMemory> {
        Some(ResultMemory::Operands)
    }
}

/// Upstream's interfaces, and the two models.
pub fn models() -> OwnershipModels {
    let mut models = OwnershipModels::upstream();
    models.add("acme.queue", Queue);
    models.add("acme.slot", Slot);
    models
}

/// Deallocates the text of a module.
///
/// # Errors
/// The diagnostics of the parser or the pass.
pub fn deallocate(cx: Context, text: &str, extensions: bool) -> Result<String, Diagnostics> {
    cx.allow_unregistered_dialects(true);
    let module = Module::parse(cx, text.as_bytes(), "own_op.mlir")?;
    run_ownership_with(module.op(), &Options { extensions, ..Options::default() }, &models())?;
    module.op().verify_with_diagnostics()?;
    Ok(module.op().to_string())
}

/// A queue of which one slot is used.
pub const PROGRAM: &str = r#"func.func @f(%n: index, %x: f32, %other: memref<4xf32>) {
  %q = "acme.queue"(%n) : (index) -> memref<?xf32>
  %s = "acme.slot"(%q) : (memref<?xf32>) -> memref<4xf32>
  linalg.fill ins(%x : f32) outs(%s : memref<4xf32>)
  linalg.fill ins(%x : f32) outs(%other : memref<4xf32>)
  return
}
"#;

#[allow(dead_code, reason = "the test of this example calls the functions above")]
fn main() -> Result<(), Diagnostics> {
    for extensions in [true, false] {
        println!("{}", deallocate(Context::new(), PROGRAM, extensions)?);
    }
    Ok(())
}
