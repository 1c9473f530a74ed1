//! The function that upstream's form calls to compare pointers, one per module that needs it.

use monopour_ir::ops;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use monopour_ir::{Attr, Block, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Type};

use super::Dealloc;
use super::general::{Earlier, Lists, compare_all};

const NAME: &str = "dealloc_helper";

/// The helper functions of the modules, by name.
#[derive(Debug, Default)]
pub(crate) struct Helpers<'c> {
    by_module: HashMap<Op<'c>, String>,
    uses_registers: bool,
}

impl<'c> Helpers<'c> {
    /// Creates those that the deallocs in an operation need.
    ///
    /// # Errors
    /// D0112 where a dealloc has no module to put one into.
    pub(crate) fn needed_in(root: Op<'c>, uses_registers: bool) -> Result<Self, Diagnostics> {
        let mut helpers = Self { by_module: HashMap::new(), uses_registers };
        if uses_registers {
            return Ok(helpers);
        }
        let general: Vec<Op> = root
            .find_all(ops::bufferization::DEALLOC)
            .into_iter()
            .filter(|op| Dealloc::of(*op).memrefs.len() > 1)
            .collect();
        for op in general {
            // A pass that runs on a function must not add a sibling.
            let Some(module) = module_of(op).filter(|module| module.is_inside(root)) else { return Err(no_place(op)) };
            if let Entry::Vacant(empty) = helpers.by_module.entry(module) {
                empty.insert(build(module)?);
            }
        }
        Ok(helpers)
    }
    /// The helper function for a dealloc.
    pub(super) fn of(&self, op: Op<'c>) -> Option<&str> {
        module_of(op).and_then(|module| self.by_module.get(&module)).map(String::as_str)
    }
    /// Whether no helper is used.
    pub(super) fn uses_registers(&self) -> bool {
        self.uses_registers
    }
}

fn module_of<'c>(op: Op<'c>) -> Option<Op<'c>> {
    op.ancestor(ops::builtin::MODULE)
}

fn no_place(op: Op) -> Diagnostics {
    let message = "library function required for generic lowering, but cannot be automatically inserted when operating on functions";
    let first = Diagnostic::error("D0112", op.location(), message)
        .with_help("run the pass on the module, or turn on `extensions`");
    let message = "failed to legalize operation 'bufferization.dealloc' that was explicitly marked illegal";
    let second = Diagnostic::error("D0112", op.location(), message)
        .with_help("run the pass on the module, or turn on `extensions`");
    Diagnostics(vec![first, second])
}

/// Adds the function at the end of a module, under an unused name.
fn build(module: Op) -> Result<String, Diagnostics> {
    let (cx, loc) = (module.context(), module.location());
    let Some(body) = module.body() else { return Ok(NAME.to_owned()) };
    let taken: HashSet<String> = body.ops().into_iter().filter_map(Op::symbol_name).collect();
    let numbered = (0..).map(|i| format!("{NAME}_{i}"));
    let name =
        std::iter::once(NAME.to_owned()).chain(numbered).find(|n| !taken.contains(n)).unwrap_or_else(|| NAME.into());
    let list = |element| Type::memref(&[DYNAMIC], element, None);
    let (pointers, flags) = (list(Type::index(cx)), list(Type::integer(cx, 1)));
    let inputs = [pointers, pointers, flags, flags, flags];
    let block = Block::new(&inputs.map(|ty| (ty, loc)));
    let region = Region::new();
    region.append(block);
    let mut rw = Rewriter::new(cx);
    rw.set_point(InsertionPoint::End(body));
    let spec = OpSpec::new(ops::func::FUNC, loc)
        .attr("sym_name", Attr::string(cx, &name))
        .attr("sym_visibility", Attr::string(cx, "private"))
        .attr("function_type", Attr::ty(Type::function(cx, &inputs, &[])))
        .region(region);
    rw.create(spec)?;
    rw.set_point(InsertionPoint::End(block));
    let args = block.args();
    let lists = Lists { pointers: args[0], retained: args[1], conditions: args[2], frees: args[3], owned: args[4] };
    compare_all(loc, lists, Earlier::Keeps, &mut rw)?;
    rw.set_point(InsertionPoint::End(block));
    rw.create(OpSpec::new(ops::func::RETURN, loc))?;
    Ok(name)
}
