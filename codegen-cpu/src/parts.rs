//! Splits a module into parts for compilation on all cores: the host function, and groups of kernels.
//!
//! Before / after:
//!
//! ```text
//! module { @main, @k0, .., @k99, @weights }      module { @main }    module { @k0, .., @k3 }    module { @k4, .. }  ..
//! ```
//!
//! Requires: kernels that call nothing but functions of the module.
//! Ensures: each part defines or imports what it uses. The parts depend on the module alone, not on the machine: the same input
//! gives the same objects.

use crate::abi;
use monopour_ir::ops;
use monopour_ir::parallel::{module_of, part_of};
use monopour_ir::{Attr, Module, Op, WalkOrder};
use std::collections::{BTreeSet, HashMap};

/// Ops per group of kernels. A part costs about 3 ms besides its kernels, which take some 30 µs per op.
const GROUP_OPS: usize = 500;

/// A module as one part, or as several.
pub(crate) enum Parts<'c> {
    /// Too small to split.
    Whole,
    /// The module without the kernels, and the groups of kernels as bytecode.
    Split(Module<'c>, Vec<Vec<u8>>),
}

/// Splits `module`.
pub(crate) fn split<'c>(module: &'c Module<'c>) -> Parts<'c> {
    let groups = groups(module);
    if groups.len() < 2 {
        return Parts::Whole;
    }
    let symbols = module.symbols();
    let rest = module.body().ops().into_iter().filter(|op| !abi::is_kernel(*op)).collect::<Vec<_>>();
    let parts = groups.iter().map(|kernels| part_of(module, &with_references(kernels, &symbols)));
    Parts::Split(module_of(module, &rest), parts.collect())
}

/// The kernels in groups of about [`GROUP_OPS`], in their order.
fn groups<'c>(module: &'c Module<'c>) -> Vec<Vec<Op<'c>>> {
    let mut groups: Vec<Vec<Op>> = vec![];
    let mut ops = GROUP_OPS;
    for kernel in module.functions().into_iter().filter(|f| abi::is_kernel(*f)) {
        if ops >= GROUP_OPS {
            groups.push(vec![]);
            ops = 0;
        }
        groups.last_mut().expect("invariant: the first kernel opens a group").push(kernel);
        kernel.walk(WalkOrder::Pre, |_| ops += 1);
    }
    groups
}

/// Ops and the symbols that they reference, transitively.
pub(crate) fn with_references<'c>(ops: &[Op<'c>], symbols: &HashMap<String, Op<'c>>) -> Vec<Op<'c>> {
    let mut all = ops.to_vec();
    let mut seen: BTreeSet<String> = ops.iter().filter_map(|op| op.symbol_name()).collect();
    let mut next = 0;
    while let Some(op) = all.get(next).copied() {
        next += 1;
        op.walk(WalkOrder::Pre, |nested| {
            let name = match nested.name() {
                ops::func::CALL => nested.callee(),
                ops::memref::GET_GLOBAL => nested.attr("name").and_then(Attr::as_symbol),
                _ => None,
            };
            if let Some((name, found)) = name.and_then(|name| symbols.get(name).map(|op| (name, *op)))
                && seen.insert(name.to_owned())
            {
                all.push(found);
            }
        });
    }
    all
}
