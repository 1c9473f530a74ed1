//! Which functions tell their callers at run time whether they give away what they return.

use monopour_ir::ops;
use std::collections::{HashMap, HashSet};

use monopour_ir::control_flow::callee;
use monopour_ir::{Attr, Op, WalkOrder};

/// The private functions with a body that nothing but calls names, by symbol.
#[derive(Debug, Default)]
pub(crate) struct Callees<'c> {
    /// By the operation whose symbols they are.
    by_table: HashMap<Op<'c>, HashMap<String, Op<'c>>>,
    dynamic: HashSet<Op<'c>>,
}

impl<'c> Callees<'c> {
    /// Those around and in an operation.
    pub(crate) fn dynamic_in(root: Op<'c>) -> Self {
        let top = std::iter::successors(Some(root), |op| op.parent()).last().unwrap_or(root);
        let mut found = Self::default();
        let mut named: HashMap<Op, HashSet<String>> = HashMap::new();
        top.walk(WalkOrder::Pre, |op| {
            if op.is(ops::func::FUNC) {
                if let (Some(table), Some(name)) = (op.parent(), op.symbol_name()) {
                    found.by_table.entry(table).or_default().insert(name, op);
                }
                return;
            }
            // What is no call keeps the type that the function has: whoever names it that way must not see it change.
            if callee(op).is_none() {
                let table = op.ancestor(ops::builtin::MODULE);
                for (_, attr) in op.attrs() {
                    symbols(&attr, &mut |name| {
                        if let Some(table) = table {
                            named.entry(table).or_default().insert(name.to_owned());
                        }
                    });
                }
            }
        });
        for (table, functions) in &found.by_table {
            for (name, function) in functions {
                let is_named = named.get(table).is_some_and(|names| names.contains(name));
                if function.body().is_some() && !function.is_public() && !is_named {
                    found.dynamic.insert(*function);
                }
            }
        }
        found
    }
    /// The function that a call names, if it is near.
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
    /// Whether calls of the function get an indicator for each memref that it returns.
    pub(crate) fn passes_indicators(&self, function: Op<'c>) -> bool {
        self.dynamic.contains(&function)
    }
}

/// The symbols that an attribute names.
fn symbols(attr: &Attr, each: &mut impl FnMut(&str)) {
    if let Some(name) = attr.as_symbol() {
        each(name);
    }
    for inner in attr.as_array().unwrap_or_default() {
        symbols(&inner, each);
    }
    for (_, inner) in attr.as_dict().unwrap_or_default() {
        symbols(&inner, each);
    }
}
