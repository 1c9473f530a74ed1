//! Operations with a model in C++ only: upstream's `BufferizableOpInterface` is queried, and rewrites.
//!
//! ```text
//! %r = "their.op"(%a) : (tensor<4xf32>) -> tensor<4xf32>   ==>   %r = "their.memref_op"(%a) : (memref<4xf32>) -> memref<4xf32>
//! ```
//!
//! Queries run without an analysis state.
//! Limits: `isNotConflicting`, `verifyAnalysis` and `resolveConflicts` of such an operation are not called.

use monopour_analysis::facts::Definition;
use monopour_ir::bufferizable::{self, InterfaceOptions};
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Diagnostics, Op, Type, Value};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{AliasModel, BufferInfo, Buffers, OpModel, ReadModel, RegionInfo, RelationModel, UseModel};
use crate::options::Options;
use crate::rewriting::Rewriting;

/// The model of upstream's interface.
pub(crate) struct Upstream;

/// Options for queries on uses and results, which depend on none.
fn any_options() -> InterfaceOptions {
    Options::default().for_interface()
}

fn own_buffer_type<'c>(tensor: Type<'c>, options: &InterfaceOptions) -> Type<'c> {
    bufferizable::buffer_like_type(tensor, options).unwrap_or(tensor)
}

/// Whether a result may alias an operand.
fn is_made_of_operands(op: Op, result: Value) -> bool {
    let tensors = (0..op.num_operands()).filter(|i| op.operand(*i).ty().is_tensor());
    tensors.flat_map(|i| bufferizable::aliasing_values(op, i, &any_options())).any(|alias| alias.value == result)
}

impl OpModel for Upstream {
    fn describes(&self, op: Op, _options: &Options) -> bool {
        bufferizable::is_bufferizable(op)
    }
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        let used = bufferizable::use_of(op, operand, &any_options());
        UseModel {
            reads: if used.reads { ReadModel::Yes } else { ReadModel::No },
            writes: used.writes,
            must_in_place: used.must_in_place,
            elementwise: used.elementwise,
        }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        let aliases = bufferizable::aliasing_values(op, operand, &any_options()).into_iter();
        let model = |alias: bufferizable::InterfaceAlias<'c>| AliasModel {
            value: alias.value,
            relation: if alias.equivalent { RelationModel::Equivalent } else { RelationModel::Unknown },
            definite: alias.definite,
            retypes: alias.retypes,
        };
        aliases.map(model).collect()
    }
    fn result(&self, op: Op, result: usize) -> BufferInfo {
        let known = bufferizable::result_of(op, result, &any_options());
        BufferInfo {
            writable: known.writable,
            definition: match known.defines {
                true => Definition::Always,
                // Whether it has contents depends on its operands.
                false if is_made_of_operands(op, op.result(result)) => Definition::Inferred,
                false => Definition::Never,
            },
            allocates: known.allocates,
        }
    }
    fn region(&self, op: Op, region: usize) -> RegionInfo {
        let known = bufferizable::region_of(op, region, &any_options());
        RegionInfo { repetitive: known.repetitive, parallel: known.parallel, ..RegionInfo::default() }
    }
    fn are_arguments_writable(&self, op: Op, region: usize) -> bool {
        bufferizable::region_of(op, region, &any_options()).writable_arguments
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let options = types.options().for_interface();
        // Upstream's own prediction covers builtin tensors only; other types give their buffer type by their interface.
        let predict = |value: Value<'c>| match value.ty().as_tensor().is_some() || value.ty().is_unranked_tensor() {
            true => bufferizable::buffer_type_of(value, &options),
            false => Ok(own_buffer_type(value.ty(), &options)),
        };
        for result in op.results().into_iter().filter(|r| r.ty().is_tensor()) {
            types.set(result, predict(result)?);
        }
        for block in op.regions().into_iter().flat_map(|r| r.blocks()) {
            for arg in block.args().into_iter().filter(|a| a.ty().is_tensor()) {
                types.set(arg, predict(arg)?);
            }
            types.walk(block)?;
        }
        Ok(())
    }
    /// The interface looks through `to_tensor`s, and creates the `to_buffer`s that it needs.
    fn keeps_tensors(&self, _op: Op) -> bool {
        true
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let changes = bufferizable::bufferize(op, &pass.options.for_interface())?;
        rw.note(changes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use monopour_ir::{Context, Module};

    use super::*;
    use crate::one_shot::run_with_models;
    use crate::op_model::OpModels;

    /// A slice has the strides of its tensor, which the function's result then has.
    #[test]
    fn results_have_the_types_that_upstream_predicts() {
        let text = "func.func @f(%t: tensor<8x8xf32>) -> tensor<4x4xf32> {
            %0 = bufferization.alloc_tensor() : tensor<8x8xf32>
            %1 = tensor.extract_slice %0[0, 4] [4, 4] [1, 1] : tensor<8x8xf32> to tensor<4x4xf32>
            return %1 : tensor<4x4xf32>
        }";
        let mut models = OpModels::new();
        crate::models::func::add(&mut models);
        let options = Options { bufferize_function_boundaries: true, ..Options::default() };
        let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("parses");
        run_with_models(module.op(), &options, &models).expect("the interface is enough");
        module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
        let result = "-> memref<4x4xf32, strided<[8, 1], offset: 4>> {";
        assert!(module.op().to_string().contains(result), "{}", module.op());
    }
}
