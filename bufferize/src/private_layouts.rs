//! The layouts of a private function's arguments, from all of its calls.
//!
//! ```text
//! func.func private @f(%t: tensor<4x8xf32>)          func.func private @f(%t: memref<4x8xf32>)
//! call @f(%a)            %a: row-major          ==>  call @f(%a)
//! call @f(%b)            %b: row-major               call @f(%b)
//! ```
//!
//! A private function is called from its module alone. Where the buffers of all calls have one type, that is the argument's, and its
//! accesses need neither strides nor offset from a run; else the argument takes any layout, as without this.
//!
//! Arguments are assumed row-major, the types in all functions are predicted, and assumptions that a call refutes are replaced by
//! what all calls agree on; one that is refuted twice is any layout. So the last prediction fits all calls, also recursive ones.
//!
//! Limits: `infer-layout-map`, strategy `minimal`. A function on tensors that is a value is refused (`one_shot.rs`).

use std::collections::HashMap;

use monopour_ir::{Diagnostics, Op, Type, ops};

use crate::boundary::Callees;
use crate::buffer_type::{Assumed, BufferTypes};
use crate::op_model::OpModels;
use crate::options::{FunctionBoundaryTypeConversion, Options};

/// Predicts the types in all functions, callees first.
///
/// # Errors
/// As [`BufferTypes::function`].
pub(crate) fn predict<'c, 'a>(
    module: Op<'c>,
    functions: &[Op<'c>],
    (models, options, callees): (&'a OpModels, &'a Options, &'a Callees<'c>),
) -> Result<BufferTypes<'c, 'a>, Diagnostics> {
    let predicted = |assumed: &Assumed<'c>| {
        let mut types = BufferTypes::new(models, options, callees);
        types.assume(assumed.clone());
        functions.iter().try_for_each(|function| types.function(*function)).map(|()| types)
    };
    let calls = calls(module, functions, callees, options);
    let mut assumed: Assumed = Assumed::new();
    if !calls.is_empty() {
        let types = BufferTypes::new(models, options, callees);
        let tensors = calls.iter().flat_map(|(call, callee)| {
            let operands = call.operands().into_iter().enumerate();
            operands.filter(|(_, operand)| operand.ty().is_tensor()).map(|(at, operand)| ((*callee, at), operand.ty()))
        });
        assumed = tensors.map(|(key, ty)| (key, types.identity(ty))).collect();
    }
    let mut is_first = true;
    while !assumed.is_empty() {
        // Memory spaces that differ are reported without assumptions.
        let Ok(types) = predicted(&assumed) else { break };
        let found = agreed(&calls, &types);
        let before = assumed.len();
        let refuted: Vec<_> = assumed.iter().filter(|(key, ty)| found.get(key) != Some(&Some(**ty))).collect();
        if refuted.is_empty() {
            return Ok(types);
        }
        let refuted: Vec<_> = refuted.into_iter().map(|(key, _)| *key).collect();
        for key in refuted {
            match found.get(&key).copied().flatten().filter(|_| is_first) {
                Some(ty) => drop(assumed.insert(key, ty)),
                None => drop(assumed.remove(&key)),
            }
        }
        debug_assert!(is_first || assumed.len() < before, "invariant: each round but the first drops some");
        is_first = false;
    }
    predicted(&Assumed::new())
}

/// By argument: the type on which all calls agree, if they do.
fn agreed<'c>(calls: &[(Op<'c>, Op<'c>)], types: &BufferTypes<'c, '_>) -> HashMap<(Op<'c>, usize), Option<Type<'c>>> {
    let mut found: HashMap<(Op, usize), Option<Type>> = HashMap::new();
    for (call, callee) in calls {
        for (at, operand) in call.operands().into_iter().enumerate() {
            let ty = types.of(operand);
            found
                .entry((*callee, at))
                .and_modify(|known| *known = known.filter(|known| *known == ty))
                .or_insert(Some(ty));
        }
    }
    found
}

/// The calls of private functions that are called by functions that are bufferized alone, with what they call.
fn calls<'c>(module: Op<'c>, functions: &[Op<'c>], callees: &Callees<'c>, options: &Options) -> Vec<(Op<'c>, Op<'c>)> {
    let infers = options.function_boundary_type_conversion == FunctionBoundaryTypeConversion::Infer;
    if !options.is_minimal() || !options.bufferize_function_boundaries || !infers {
        return vec![];
    }
    let is_one = |callee: &Op<'c>| !callee.is_public() && functions.contains(callee);
    let all = module.find_all(ops::func::CALL).into_iter();
    let mut calls: Vec<_> = all.filter_map(|call| Some((call, callees.callee(call).filter(is_one)?))).collect();
    // A caller that stays on tensors has no buffers.
    let is_ours = |call: Op<'c>| functions.iter().any(|function| call.is_inside(*function));
    let foreign: Vec<Op> = calls.iter().filter(|(call, _)| !is_ours(*call)).map(|(_, callee)| *callee).collect();
    calls.retain(|(_, callee)| !foreign.contains(callee));
    calls
}
