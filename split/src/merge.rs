//! Merges kernels of equal structure.
//!
//! Before:
//! ```mlir
//! func.func private @main_dispatch_0(%x: memref<32x64xf32>, %w: memref<64x64xf32>, %y: memref<32x64xf32>, %i: index) { .. }
//! func.func private @main_dispatch_1(%x: memref<32x64xf32>, %w: memref<64x64xf32>, %y: memref<32x64xf32>, %i: index) { .. }
//! scf.forall (%i) in (4) { func.call @main_dispatch_0(%a, %w0, %b, %i) }
//! scf.forall (%i) in (4) { func.call @main_dispatch_1(%b, %w1, %c, %i) }
//! ```
//! After:
//! ```mlir
//! func.func private @main_dispatch_0(..) { .. }
//! scf.forall (%i) in (4) { func.call @main_dispatch_0(%a, %w0, %b, %i) }
//! scf.forall (%i) in (4) { func.call @main_dispatch_0(%b, %w1, %c, %i) }
//! ```
//! Requires: outlined dispatches, one call per kernel.
//! Ensures: kernels differ in body, types, attributes or grid, which is part of a GPU's kernel. Names, locations and
//! operands of calls are ignored. The first kernel of each structure stays.

use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{Attr, Module, Op, Rewriter, StructuralKey};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Merges the kernels of `module`; returns how many are left.
pub(crate) fn run(module: &Module) -> usize {
    let calls = calls(module);
    let mut kept: HashMap<(StructuralKey, Option<Grid>), String> = HashMap::new();
    let mut rw = Rewriter::new(module.context());
    for kernel in module.functions().into_iter().filter(|f| f.attr(attributes::KERNEL).is_some()) {
        let name = kernel.symbol_name().unwrap_or_default();
        let call = calls.get(&name).copied();
        match kept.entry((StructuralKey::of(kernel, &["sym_name"]), call.and_then(grid))) {
            Entry::Vacant(new) => {
                new.insert(name);
            }
            Entry::Occupied(first) => {
                if let Some(call) = call {
                    rw.set_attr(call, "callee", Attr::symbol(module.context(), first.get()));
                }
                rw.erase(kernel);
            }
        }
    }
    kept.len()
}

/// Trip counts of a dispatch.
type Grid = Vec<i64>;

fn grid(call: Op) -> Option<Grid> {
    call.parent()?.attr("staticUpperBound")?.as_ints()
}

/// The call of each kernel.
fn calls<'c>(module: &'c Module<'c>) -> HashMap<String, Op<'c>> {
    let calls = module.op().find_all(ops::func::CALL).into_iter();
    calls.filter_map(|call| Some((call.callee()?.to_owned(), call))).collect()
}
