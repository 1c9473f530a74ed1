//! The call graph of `func.call`: which functions call which.

use crate::ops;
use crate::{HandleMap, Op, WalkOrder};
use std::collections::HashMap;

/// The functions of a symbol table, by position, and their direct calls of each other.
#[derive(Clone, Debug, Default)]
pub struct CallGraph<'c> {
    functions: Vec<Op<'c>>,
    by_name: HashMap<String, usize>,
    by_call: HandleMap<Op<'c>, usize>,
    /// Callees of each function, one entry per call, in pre-order.
    callees: Vec<Vec<usize>>,
}

impl<'c> CallGraph<'c> {
    /// The calls in these functions, which are walked once; `visit` sees each op of them.
    pub fn new(functions: &[Op<'c>], mut visit: impl FnMut(Op<'c>)) -> Self {
        let by_name = functions.iter().enumerate().filter_map(|(i, f)| Some((f.symbol_name()?, i))).collect();
        let mut this = Self { functions: functions.to_vec(), by_name, ..Self::default() };
        for function in functions {
            let mut callees = Vec::new();
            function.walk(WalkOrder::Pre, |op| {
                visit(op);
                let callee =
                    if op.is(ops::func::CALL) { op.callee().and_then(|name| this.position(name)) } else { None };
                if let Some(callee) = callee {
                    this.by_call.insert(op, callee);
                    callees.push(callee);
                }
            });
            this.callees.push(callees);
        }
        this
    }
    /// The functions, in the order given.
    pub fn functions(&self) -> &[Op<'c>] {
        &self.functions
    }
    /// The position of the function of a name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
    /// The position of a call's callee, without comparing names unless the call was created later.
    pub fn callee_of(&self, call: Op<'c>) -> Option<usize> {
        self.by_call.get(&call).copied().or_else(|| self.position(call.callee()?))
    }
    /// The callees of a function, one entry per call, in pre-order.
    pub fn callees(&self, function: usize) -> &[usize] {
        &self.callees[function]
    }
    /// For each function its callers, one entry per call.
    pub fn callers(&self) -> Vec<Vec<usize>> {
        let mut callers = vec![Vec::new(); self.functions.len()];
        for (caller, callees) in self.callees.iter().enumerate() {
            callees.iter().for_each(|callee| callers[*callee].push(caller));
        }
        callers
    }
}
