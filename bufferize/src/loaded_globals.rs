//! Copies of tensors loaded from a global that is stored to while they are still used.
//!
//! ```text
//! %l = ml_program.global_load @g : tensor<4xf32>          %l = ml_program.global_load @g : tensor<4xf32>
//!                                                         %c = bufferization.alloc_tensor() copy(%l)
//! ml_program.global_store @g = %w : tensor<4xf32>   ==>   ml_program.global_store @g = %w : tensor<4xf32>
//! %u = tensor.extract %l[%i] : tensor<4xf32>              %u = tensor.extract %c[%i] : tensor<4xf32>
//! ```
//!
//! Requires: the decisions, whose alias classes include the global's memory; copies for writes are inserted already.
//! Ensures: a load stays a view of the global if each store comes before the load or after the last use of its result.
//! A call stores to the globals of the functions that it may reach; an unknown function may reach all of the module's.
//! Differs from upstream: LLVM 22 lets such a tensor see later stores.
//! Cost: operands once, and per load its uses and the stores of its function.

use monopour_ir::ops;
use std::collections::{HashMap, HashSet};

use monopour_analysis::index::ValueId;
use monopour_analysis::one_shot::Decisions;
use monopour_ir::{Block, Diagnostic, Diagnostics, Op, Rewriter, WalkOrder};

use crate::collect::Collected;
use crate::insert_copies::copy_result;
use crate::options::Options;
use crate::remarks::{Remarks, bytes};
use crate::scope::functions_of;

/// The globals that an operation may store to.
#[derive(Clone, Default)]
struct Stored {
    globals: HashSet<String>,
    anything: bool,
}

impl Stored {
    fn has(&self, global: &str) -> bool {
        self.anything || self.globals.contains(global)
    }
}

/// The stores of a module.
pub(crate) struct GlobalStores<'c> {
    functions: HashMap<String, Op<'c>>,
    /// Every global with a store in the module.
    all: HashSet<String>,
    reached: HashMap<String, Stored>,
}

impl<'c> GlobalStores<'c> {
    /// The stores of a module; `None` if it has none.
    pub(crate) fn of(module: Op<'c>) -> Option<Self> {
        let all: HashSet<String> =
            module.find_all(ops::ml_program::GLOBAL_STORE).into_iter().filter_map(global_of).collect();
        let named = functions_of(module).into_iter().filter_map(|f| Some((f.symbol_name()?, f)));
        (!all.is_empty()).then(|| Self { functions: named.collect(), all, reached: HashMap::new() })
    }

    /// Whether the operation, or a function that it calls, may store to the global.
    fn may_store(&mut self, op: Op<'c>, global: &str) -> bool {
        if op.is(ops::ml_program::GLOBAL_STORE) {
            return global_of(op).is_none_or(|stored| stored == global);
        }
        match called(op) {
            Called::Nothing => false,
            Called::Unknown => true,
            Called::Function(name) => {
                if !self.reached.contains_key(&name) {
                    let stored = self.reached_from(&name);
                    self.reached.insert(name.clone(), stored);
                }
                self.reached[&name].has(global)
            }
        }
    }

    fn reached_from(&self, name: &str) -> Stored {
        let mut stored = Stored::default();
        let (mut met, mut open) = (HashSet::from([name.to_owned()]), vec![name.to_owned()]);
        while let Some(name) = open.pop() {
            let Some(function) = self.functions.get(&name).filter(|f| f.body().is_some()) else {
                stored.anything = true;
                continue;
            };
            for op in function.nested(WalkOrder::Pre) {
                match called(op) {
                    Called::Function(callee) if met.insert(callee.clone()) => open.push(callee),
                    Called::Unknown => stored.anything = true,
                    _ if op.is(ops::ml_program::GLOBAL_STORE) => stored.globals.extend(global_of(op)),
                    _ => {}
                }
            }
        }
        stored
    }
}

enum Called {
    Nothing,
    Function(String),
    Unknown,
}

fn called(op: Op) -> Called {
    match op.name() {
        ops::func::CALL => op.callee().map_or(Called::Unknown, |name| Called::Function(name.to_owned())),
        ops::func::CALL_INDIRECT => Called::Unknown,
        _ => Called::Nothing,
    }
}

fn may_store_at_all(op: Op) -> bool {
    op.is(ops::ml_program::GLOBAL_STORE) || !matches!(called(op), Called::Nothing)
}

fn global_of(op: Op) -> Option<String> {
    op.attr("global")?.as_symbol().map(str::to_owned)
}

/// Inserts the copies of one function, or of ops outside of functions.
pub(crate) fn copy<'c>(
    root: Op<'c>,
    collected: &Collected<'c>,
    decisions: &Decisions,
    options: &Options,
    stores: &mut GlobalStores<'c>,
) -> Result<Remarks, Diagnostics> {
    let mut remarks = Remarks::default();
    let loads: Vec<Op> = collected.ops.iter().filter(|op| op.is(ops::ml_program::GLOBAL_LOAD)).copied().collect();
    let mut users: HashMap<ValueId, Vec<Op>> = HashMap::new();
    for load in &loads {
        users.extend(collected.id(load.result(0)).map(|id| (decisions.alias_class(id), vec![])));
    }
    for (id, used) in collected.operands.iter_enumerated().filter(|_| !loads.is_empty()) {
        let class = decisions.alias_class(collected.facts.operands()[id].value);
        if let Some(users) = users.get_mut(&class) {
            users.push(used.op);
        }
    }
    if loads.is_empty() {
        return Ok(remarks);
    }
    let storing: Vec<Op> = root.nested(WalkOrder::Pre).into_iter().filter(|op| may_store_at_all(*op)).collect();
    for load in loads {
        let (Some(id), Some(global)) = (collected.id(load.result(0)), global_of(load)) else { continue };
        let users = &users[&decisions.alias_class(id)];
        if !stores.all.contains(&global) {
            continue;
        }
        let stored: Vec<Op> = storing.iter().filter(|op| stores.may_store(**op, &global)).copied().collect();
        if !is_stored_between(load, users, &stored) {
            continue;
        }
        let ty = load.result(0).ty();
        copy_result(&mut Rewriter::new(load.context()), load.result(0), true, options)?;
        let message = format!("copied {} loaded from @{global}: it is stored to while they are still used", bytes(ty));
        let help = "use the tensor before the store, or load it again";
        remarks.push(Diagnostic::remark("B0201", load.location(), message).with_help(help), ty.static_size_bytes());
    }
    Ok(remarks)
}

/// The operation of the block that is or contains the given one.
fn place<'c>(op: Op<'c>, block: Block<'c>) -> Option<Op<'c>> {
    let mut at = Some(op);
    while let Some(op) = at.filter(|op| op.block() != Some(block)) {
        at = op.parent();
    }
    at
}

/// Whether one of the stores may come between a load and a use of its result.
fn is_stored_between(load: Op, users: &[Op], stored: &[Op]) -> bool {
    let mut at = load;
    loop {
        let Some(block) = at.block().filter(|_| !at.is(ops::func::FUNC)) else {
            // Used in other blocks, or by the caller.
            return users.iter().any(|op| op.is(ops::func::RETURN)) || stored.iter().any(|op| op.is_inside(at));
        };
        // A result used only in its block is not affected by stores elsewhere.
        let places: Option<Vec<Op>> = users.iter().map(|op| place(*op, block)).collect();
        let leaves = |place: &Op| block.terminator() == Some(*place);
        if let Some(places) = places.filter(|places| !places.iter().any(leaves)) {
            let is_after_uses = |store: Op, at: Op| {
                // A store reads its operand before it writes.
                let is_own = |user: Op| user == store && store.is(ops::ml_program::GLOBAL_STORE);
                users.iter().zip(&places).all(|(user, place)| place.is_before_in_block(at) || is_own(*user))
            };
            let is_apart = |store: Op, place: Op| place.is_before_in_block(at) || is_after_uses(store, place);
            return stored.iter().any(|op| place(*op, block).is_some_and(|place| !is_apart(*op, place)));
        }
        let Some(parent) = block.parent_op() else { return true };
        at = parent;
    }
}
