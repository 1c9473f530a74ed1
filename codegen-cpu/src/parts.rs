//! A module in parts that are compiled apart from each other, on all cores: the host function, and the kernels in groups.
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
use monopour_ir::{Context, Diagnostics, InsertionPoint, Module, Op, Rewriter, WalkOrder};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Ops of a group's kernels. A part costs about 3 ms besides its kernels, which take some 30 µs per op.
const GROUP_OPS: usize = 500;

/// A module as one part, or as several.
pub(crate) enum Parts {
    /// Not worth a second part.
    Whole,
    /// What is left without the kernels, and the groups of kernels as bytecode.
    Split(Module, Vec<Vec<u8>>),
}

/// Splits `module`.
pub(crate) fn split(module: &Module) -> Parts {
    let groups = groups(module);
    if groups.len() < 2 {
        return Parts::Whole;
    }
    let symbols = module.symbols();
    let rest = module.body().ops().into_iter().filter(|op| !abi::is_kernel(*op)).collect::<Vec<_>>();
    let parts = groups.iter().map(|kernels| module_of(module, &with_references(kernels, &symbols)).op().to_bytecode());
    Parts::Split(module_of(module, &rest), parts.collect())
}

/// The kernels in groups of about [`GROUP_OPS`], in their order.
fn groups(module: &Module) -> Vec<Vec<Op>> {
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

/// Ops and the symbols that they name, directly or not.
fn with_references(ops: &[Op], symbols: &HashMap<String, Op>) -> Vec<Op> {
    let mut all = ops.to_vec();
    let mut seen: BTreeSet<String> = ops.iter().filter_map(|op| op.symbol_name()).collect();
    let mut next = 0;
    while let Some(op) = all.get(next).copied() {
        next += 1;
        op.walk(WalkOrder::Pre, |nested| {
            let named = match nested.name() {
                "func.call" => nested.attr("callee"),
                "memref.get_global" => nested.attr("name"),
                _ => None,
            };
            let name = named.and_then(|attr| attr.as_symbol().map(str::to_owned));
            if let Some((name, found)) = name.and_then(|name| symbols.get(&name).map(|op| (name, *op)))
                && seen.insert(name)
            {
                all.push(found);
            }
        });
    }
    all
}

fn module_of(module: &Module, ops: &[Op]) -> Module {
    let part = Module::empty(module.context());
    let mut rw = Rewriter::new(module.context());
    rw.set_point(InsertionPoint::End(part.body()));
    for op in ops {
        let copy = rw.clone_op(*op, |v| v);
        rw.insert(copy);
    }
    part
}

/// Compiles `first` here and the other parts, bytecode, on all cores, each thread in a context of its own; the objects in order.
///
/// # Errors
/// Those of the first part that has any.
pub(crate) fn compile(
    first: &Module,
    others: &[Vec<u8>],
    one: impl Fn(&Module) -> Result<Vec<u8>, Diagnostics> + Sync,
) -> Result<Vec<Vec<u8>>, Diagnostics> {
    let next = AtomicUsize::new(0);
    let work = || Context::scope(|cx| work(cx, &next, others, &one));
    let threads = thread::available_parallelism().map_or(1, |n| n.get()).min(others.len());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut objects = vec![one(first)];
        let mut done: Vec<(usize, Result<Vec<u8>, Diagnostics>)> = vec![];
        for worker in workers {
            done.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done.sort_by_key(|(index, _)| *index);
        objects.extend(done.into_iter().map(|(_, object)| object));
        objects.into_iter().collect()
    })
}

fn work(
    cx: Context,
    next: &AtomicUsize,
    parts: &[Vec<u8>],
    one: &impl Fn(&Module) -> Result<Vec<u8>, Diagnostics>,
) -> Vec<(usize, Result<Vec<u8>, Diagnostics>)> {
    cx.allow_unregistered_dialects(true);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < parts.len());
    std::iter::from_fn(take)
        .map(|index| (index, Module::parse(cx, &parts[index], "<kernels>").and_then(|module| one(&module))))
        .collect()
}
