//! Bufferizes an operation of another dialect by a model of its memory effects and its rewrite.
//!
//! ```text
//! %r = "acme.axpy"(%a, %x, %y)                        "acme.axpy"(%a, %x, %y)
//!        : (f32, tensor<8xf32>, tensor<8xf32>)    =>         : (f32, memref<8xf32>, memref<8xf32>) -> ()
//!       -> tensor<8xf32>                                     // and %y for every use of %r
//! ```
//!
//! `cargo run -p monopour-bufferize --example own_op` prints both. With the model below the analysis
//! knows that `%y` must be copied if it is read later, and that `%x` may be `%y`.

use monopour_bufferize::op_model::{AliasModel, Buffers, OpModel, OpModels, UseModel};
use monopour_bufferize::{Callees, Options, Rewriting, Stats, run_with_models};
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Context, Diagnostics, Module, Op, OpSpec};

/// `y + a * x`, element by element, in place of `y`.
pub struct Axpy;

/// Positions of the tensor operands.
const X: usize = 1;
const Y: usize = 2;

impl OpModel for Axpy {
    /// It loads both tensors and stores to `y`; each element is loaded before it is stored (`elementwise`),
    /// so both may be one buffer.
    fn use_of<'c>(&self, _op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        let used = if operand == X { UseModel::READ } else { UseModel::READ_WRITE };
        UseModel { elementwise: true, ..used }
    }

    /// The result is equivalent to `y`.
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        if operand == Y { vec![AliasModel::equivalent(op.result(0))] } else { vec![] }
    }

    /// The same operation on memrefs, without a result.
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        rw.create(OpSpec::new("acme.axpy", op.location()).operands(buffers.operands()))?;
        rw.replace_op(op, &[buffers.operand(Y)]);
        Ok(())
    }
}

/// Upstream's dialects, and the model.
pub fn models() -> OpModels {
    let mut models = OpModels::upstream();
    models.add("acme.axpy", Axpy);
    models
}

/// Bufferizes the text of a module, function boundaries included.
///
/// # Errors
/// The diagnostics of the parser or the pass.
pub fn bufferize(cx: Context, text: &str) -> Result<(String, Stats), Diagnostics> {
    cx.allow_unregistered_dialects(true);
    let module = Module::parse(cx, text.as_bytes(), "own_op.mlir")?;
    let options = Options { bufferize_function_boundaries: true, ..Options::default() };
    let stats = run_with_models(module.op(), &options, &models())?;
    Ok((module.op().to_string(), stats))
}

/// Twice in a row: the first result is the second one's destination.
pub const PROGRAM: &str = r#"func.func @f(%a: f32, %x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "acme.axpy"(%a, %x, %y) : (f32, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = "acme.axpy"(%a, %0, %0) : (f32, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
"#;

#[allow(dead_code, reason = "the test of this example calls the functions above")]
fn main() -> Result<(), Diagnostics> {
    let (text, stats) = bufferize(Context::new(), PROGRAM)?;
    println!("{text}\n// {} operands in place, {} copied", stats.in_place, stats.out_of_place);
    Ok(())
}
