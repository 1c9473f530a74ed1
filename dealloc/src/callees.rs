//! Functions that return indicators beside their memref results.

use monopour_ir::ops;
use std::collections::{HashMap, HashSet};

use monopour_ir::control_flow::callee;
use monopour_ir::{Op, WalkOrder};

/// The private functions with a body that are only used by calls, by symbol.
#[derive(Debug, Default)]
pub(crate) struct Callees<'c> {
    /// By symbol table.
    by_table: HashMap<Op<'c>, HashMap<String, Op<'c>>>,
    dynamic: HashSet<Op<'c>>,
}

impl<'c> Callees<'c> {
    /// Those in an operation and around it.
    pub(crate) fn dynamic_in(root: Op<'c>) -> Self {
        let top = std::iter::successors(Some(root), |op| op.parent()).last().unwrap_or(root);
        let mut found = Self::default();
        let mut named: HashMap<Op, HashSet<&str>> = HashMap::new();
        top.walk(WalkOrder::Pre, |op| {
            if op.is(ops::func::FUNC) {
                if let (Some(table), Some(name)) = (op.parent(), op.symbol_name()) {
                    found.by_table.entry(table).or_default().insert(name, op);
                }
                return;
            }
            // Other symbol uses must not see the function's type change.
            if callee(op).is_none() {
                let table = op.ancestor(ops::builtin::MODULE);
                for (_, attr) in op.attrs() {
                    attr.each_symbol(&mut |name| {
                        if let Some(table) = table {
                            named.entry(table).or_default().insert(name);
                        }
                    });
                }
            }
        });
        for (table, functions) in &found.by_table {
            for (name, function) in functions {
                let is_named = named.get(table).is_some_and(|names| names.contains(name.as_str()));
                if function.body().is_some() && !function.is_public() && !is_named {
                    found.dynamic.insert(*function);
                }
            }
        }
        found
    }
    /// The callee, if it is one of these functions.
    pub(crate) fn callee_of(&self, call: Op<'c>) -> Option<Op<'c>> {
        let symbol = callee(call)?;
        let name = symbol.as_symbol()?;
        let mut table = call.parent();
        while let Some(op) = table {
            if let Some(functions) = self.by_table.get(&op) {
                return functions.get(name).copied();
            }
            table = op.parent();
        }
        None
    }
    /// Whether calls of the function return an indicator for each memref result.
    pub(crate) fn passes_indicators(&self, function: Op<'c>) -> bool {
        self.dynamic.contains(&function)
    }
}
