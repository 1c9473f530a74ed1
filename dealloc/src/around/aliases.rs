//! May-alias analysis of memrefs: views, branches, regions, selects, and integers that hold an address.
//!
//! ```text
//! %a = memref.alloc()                                   %a -> %v, %r, %p
//! %v = memref.subview %a[0] [4] [1]                     %v -> %r
//! %r = scf.if %c { yield %v } else { yield %b }         %b -> %r
//! %p = memref.extract_aligned_pointer_as_index %a       %p -> %q
//! %q = arith.addi %p, %n
//! ```
//!
//! [`Aliases::sum`] joins a fact over all aliases of a value, in one pass over the graph of flows: cycles are
//! collapsed to components first, so that a chain of N values with N buffers in it costs N steps and not N * N.
//! An unknown op may forward all its operands to all its results.

use monopour_ir::ops;
use std::cell::Cell;

use monopour_analysis::components::components;
use monopour_ir::control_flow::{Traits, region_flows, successor_operands, view_source};
use monopour_ir::interfaces::{EffectKind, is_pure, is_region_branch, memory_effects};
use monopour_ir::{HandleMap, Op, Type, Use, Value, WalkOrder};

/// Pure ops on a memref whose results are sizes, never addresses.
pub(crate) const MEASURES: &[&str] = &[ops::memref::DIM, ops::memref::RANK];
/// Ops that store an operand to memory: any later load may return it.
const STORES: &[&str] =
    &[ops::memref::STORE, ops::affine::STORE, ops::vector::STORE, ops::vector::TRANSFER_WRITE, ops::llvm::STORE];

/// The aliases of the buffers of one function.
pub(crate) struct Aliases<'c> {
    values: Vec<Value<'c>>,
    ids: HandleMap<Value<'c>, usize>,
    next: Vec<Vec<usize>>,
    /// Components of the graph, successors first, and the component of each value.
    groups: Vec<Vec<usize>>,
    group: Vec<usize>,
    steps: Cell<usize>,
}

/// A fact about each value, joined over its aliases.
pub(crate) struct Sums<'c, 'a, T> {
    aliases: &'a Aliases<'c>,
    of_group: Vec<T>,
}

impl<'c, T> Sums<'c, '_, T> {
    /// The fact about a value; `None` for one that is neither a memref nor an address.
    pub fn of(&self, value: Value<'c>) -> Option<&T> {
        self.aliases.ids.get(&value).map(|id| &self.of_group[self.aliases.group[*id]])
    }
}

impl<'c> Aliases<'c> {
    /// Analyses `function`.
    pub fn new(function: Op<'c>) -> Self {
        let mut this = Self {
            values: vec![],
            ids: HandleMap::default(),
            next: vec![],
            groups: vec![],
            group: vec![],
            steps: Cell::new(0),
        };
        let mut flows: HandleMap<Value, Vec<Value>> = HandleMap::default();
        function.walk(WalkOrder::Pre, |op| {
            for (from, to) in forwards(op) {
                flows.entry(from).or_default().push(to);
            }
            let args = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
            for value in op.results().into_iter().chain(args).filter(|v| v.ty().is_memref()) {
                this.id(value);
            }
        });
        let mut from = 0;
        // Addresses are appended to the values during this loop.
        while let Some(&value) = this.values.get(from) {
            let mut targets = flows.remove(&value).unwrap_or_default();
            targets.extend(value.uses().into_iter().flat_map(|used| made_by(used, value)));
            this.next[from] = targets.into_iter().map(|target| this.id(target)).collect();
            from += 1;
        }
        this.groups = components(this.next.len(), |n, at| this.next[n].get(at).copied());
        this.group = vec![0; this.values.len()];
        for (group, members) in this.groups.iter().enumerate() {
            members.iter().for_each(|m| this.group[*m] = group);
        }
        this
    }

    fn id(&mut self, value: Value<'c>) -> usize {
        if let Some(id) = self.ids.get(&value) {
            return *id;
        }
        let id = self.values.len();
        self.values.push(value);
        self.ids.insert(value, id);
        self.next.push(vec![]);
        id
    }

    /// Joins `own` over all aliases of each value. `join` must be commutative and idempotent.
    pub fn sum<T: Clone>(&self, own: impl Fn(Value<'c>) -> T, join: impl Fn(&mut T, &T)) -> Sums<'c, '_, T> {
        let mut of_group: Vec<T> = Vec::with_capacity(self.groups.len());
        for (group, members) in self.groups.iter().enumerate() {
            let mut all = own(self.values[members[0]]);
            for member in members {
                if *member != members[0] {
                    join(&mut all, &own(self.values[*member]));
                }
                for next in self.next[*member].iter().map(|n| self.group[*n]).filter(|next| *next != group) {
                    join(&mut all, &of_group[next]);
                    self.steps.set(self.steps.get() + 1);
                }
                self.steps.set(self.steps.get() + 1);
            }
            of_group.push(all);
        }
        Sums { aliases: self, of_group }
    }

    /// All memrefs and addresses.
    pub fn values(&self) -> &[Value<'c>] {
        &self.values
    }

    /// All pairs of a value and a direct alias, by positions in [`Self::values`].
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.next.iter().enumerate().flat_map(|(from, to)| to.iter().map(move |to| (from, *to)))
    }

    /// Number of values and flows that [`Self::sum`] has visited so far.
    #[cfg(test)]
    pub fn steps(&self) -> usize {
        self.steps.get()
    }
}

/// The values that the op forwards to blocks, or between its regions and results.
fn forwards<'c>(op: Op<'c>) -> Vec<(Value<'c>, Value<'c>)> {
    let mut out = region_flows(op).unwrap_or_default();
    for (index, block) in op.successors().into_iter().enumerate() {
        let operands = successor_operands(op, index).map(|range| range.of(op)).unwrap_or_default();
        out.extend(operands.into_iter().zip(block.args()));
    }
    out
}

/// The results that alias, or hold the address of, `value` by this use. Branches are in [`forwards`].
fn made_by<'c>(used: Use<'c>, value: Value<'c>) -> Vec<Value<'c>> {
    let op = used.op;
    if op.is_terminator() {
        // An op with unknown region results may return any yielded value.
        let around = op
            .parent()
            .filter(|p| op.successors().is_empty() && !is_region_branch(*p) && !Traits::of(*p).is_function());
        return around.map(unknown).unwrap_or_default();
    }
    if op.num_results() == 0 && op.num_regions() == 0 {
        return vec![];
    }
    // Bounds and conditions.
    if is_region_branch(op) || MEASURES.contains(&op.name()) {
        return vec![];
    }
    let memrefs = || op.results().into_iter().filter(|r| r.ty().is_memref()).collect();
    if let Some(source) = view_source(op) {
        return if source == value { memrefs() } else { vec![] };
    }
    if op.is(ops::arith::SELECT) {
        return if used.index > 0 { op.results() } else { vec![] };
    }
    if op.is(ops::memref::EXTRACT_ALIGNED_POINTER_AS_INDEX) {
        return op.results();
    }
    let effects = if Traits::of(op).is_call() { None } else { memory_effects(op) };
    let Some(effects) = effects else { return unknown(op) };
    let is_made = |r: &Value<'c>| effects.iter().any(|e| e.kind == EffectKind::Allocate && e.value == Some(*r));
    if op.dialect() == "memref" {
        // An index is an offset or a size here; a realloc may return its operand.
        let hands_on = used.index == 0 && (op.is(ops::memref::REALLOC) || effects.is_empty());
        return if hands_on { memrefs() } else { vec![] };
    }
    if value.ty().is_memref() && effects.iter().any(|e| e.value == Some(value)) {
        // Loaded values are data; a tensor may be the memory itself.
        let may_be = |r: &Value<'c>| (r.ty().is_memref() || r.ty().is_tensor()) && !is_made(r);
        return op.results().into_iter().filter(may_be).collect();
    }
    if !value.ty().is_memref() && !is_pure(op) {
        // The op reads through the address and does not return it.
        return memrefs();
    }
    op.results().into_iter().filter(|r| holds_address(r.ty()) && !is_made(r)).collect()
}

/// Whether a use lets the value escape: it is returned, or stored in memory.
pub(crate) fn is_escape(used: Use) -> bool {
    let op = used.op;
    let leaves = || op.is_terminator() && op.successors().is_empty() && !op.parent().is_some_and(is_region_branch);
    (STORES.contains(&op.name()) && used.index == 0) || leaves()
}

/// The values that an unknown op may forward to: all results and the arguments of its blocks.
fn unknown<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    // Named ops on elements have regions whose arguments are elements.
    let args =
        op.regions().into_iter().filter(|_| op.dialect() != "linalg").flat_map(|r| r.blocks()).flat_map(|b| b.args());
    op.results().into_iter().chain(args).filter(|v| holds_address(v.ty())).collect()
}

/// Whether a value of this type can hold an address: no float, and no integer of less than 32 bits.
fn holds_address(ty: Type) -> bool {
    let scalar = if ty.is_vector() { ty.element() } else { ty };
    !scalar.is_float() && scalar.integer_width().is_none_or(|bits| bits >= 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::around::facts::reaches;
    use crate::around::places::Places;
    use monopour_ir::{Context, Module};

    /// The steps of one fact over a function of this text; checks that its last buffer is known to be returned.
    fn steps(text: &str) -> usize {
        let module =
            Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"));
        let function = module.functions()[0];
        let (aliases, places) = (Aliases::new(function), Places::new(function));
        let reaches = reaches(&aliases, &places);
        let alloc = *function.find_all("memref.alloc").last().expect("allocates");
        assert!(reaches.of(alloc.result(0)).is_some_and(|reach| reach.escapes));
        aliases.steps()
    }

    /// Each buffer reaches the argument of every later block: N * N pairs.
    fn branches(n: usize) -> String {
        let mut text =
            String::from("func.func @f(%c: i1, %m: memref<4xf32>) -> memref<4xf32> {\ncf.br ^b0(%m : memref<4xf32>)\n");
        for i in 0..n {
            text += &format!(
                "^b{i}(%x{i}: memref<4xf32>):\n%a{i} = memref.alloc() : memref<4xf32>\n\
                 %s{i} = arith.select %c, %x{i}, %a{i} : memref<4xf32>\ncf.br ^b{}(%s{i} : memref<4xf32>)\n",
                i + 1
            );
        }
        text + &format!("^b{n}(%x{n}: memref<4xf32>):\nreturn %x{n} : memref<4xf32>\n}}")
    }

    /// The same around a loop: one component.
    fn rotation(n: usize) -> String {
        let list = |f: &dyn Fn(usize) -> String| (0..n).map(f).collect::<Vec<_>>().join(", ");
        let types = list(&|_| "memref<4xf32>".to_owned());
        let mut text = String::from("func.func @f(%c: i1) -> memref<4xf32> {\n");
        (0..n).for_each(|i| text += &format!("%a{i} = memref.alloc() : memref<4xf32>\n"));
        text += &format!("cf.br ^l({} : {types})\n", list(&|i| format!("%a{i}")));
        text += &format!("^l({}):\n", list(&|i| format!("%x{i}: memref<4xf32>")));
        text += &format!("cf.cond_br %c, ^l({} : {types}), ^e\n", list(&|i| format!("%x{}", (i + 1) % n)));
        text + "^e:\nreturn %x0 : memref<4xf32>\n}"
    }

    #[test]
    fn steps_grow_with_the_program() {
        for shape in [branches, rotation] {
            let (small, large) = (steps(&shape(100)), steps(&shape(200)));
            assert!(large * 10 < small * 21, "{small} steps, {large} for twice the size");
        }
    }
}
