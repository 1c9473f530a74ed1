//! The constants of a module, as private globals: one per value and type.

use monopour_ir::ops;
use std::collections::{HashMap, HashSet};

use monopour_ir::{Attr, Op, Type, WalkOrder};

use crate::options::Options;

/// Constants by value and type, and the used names.
#[derive(Default)]
pub(crate) struct Globals<'c> {
    /// By parent module, value and type.
    pub(crate) by_value: HashMap<(Op<'c>, Attr<'c>, Type<'c>), Attr<'c>>,
    names: HashSet<String>,
    /// By name without a number: the next number to try.
    next: HashMap<String, usize>,
}

impl<'c> Globals<'c> {
    /// Collects the names of the module's symbols, and its constants: a writable global (without `constant`) is
    /// no constant, nor is one in another memory space or of another alignment.
    pub(crate) fn new(module: Op<'c>, options: &Options) -> Self {
        let names = module.nested(WalkOrder::Pre).into_iter().filter_map(Op::symbol_name).collect();
        let mut globals = Self { names, ..Self::default() };
        for op in module.body().map(|b| b.ops()).unwrap_or_default().into_iter().filter(|op| op.is(ops::memref::GLOBAL))
        {
            let alignment = op.attr("alignment").and_then(|a| a.as_int()).unwrap_or(0);
            let fits = u64::try_from(alignment).is_ok_and(|bytes| bytes == options.buffer_alignment_bytes);
            let value = op.attr("initial_value").filter(|_| fits && op.attr("constant").is_some());
            if let (Some(value), Some(ty), Some(name)) =
                (value, op.attr("type").and_then(|a| a.as_type()), op.symbol_name())
            {
                let symbol = Attr::symbol(module.context(), &name);
                globals.by_value.entry((module, value, ty)).or_insert(symbol);
            }
        }
        globals
    }

    /// `__constant_4x4xf32`, with a number if that is used.
    pub(crate) fn free_name(&mut self, ty: Type<'c>) -> String {
        let dims: Vec<String> = ty.shape().unwrap_or_default().iter().map(i64::to_string).collect();
        let base = format!("__constant_{}x{}", dims.join("x"), ty.element());
        if self.names.insert(base.clone()) {
            return base;
        }
        let next = self.next.entry(base.clone()).or_default();
        loop {
            let name = format!("{base}_{next}");
            *next += 1;
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }
}
