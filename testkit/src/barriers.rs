//! Race check: barriers between the accesses of a workgroup's invocations to shared memory.
//!
//! Checks distributed kernels only, and shares no code with the distribution. Shared memory is workgroup memory, and an
//! allocation that only one dispatch uses (scratch). On every path through a kernel, back edges included, a barrier must
//! separate a store to such memory from a load, in either order. Which invocation owns an element is considered in two cases
//! only (`are_apart`, `stretch`): kernels keep their own elements in registers.

use monopour_ir::ops;
use monopour_ir::typed::gpu::AddressSpace;
use monopour_ir::{Block, Module, Op, Value};
use std::collections::BTreeMap;

/// The accesses of a buffer since the last barrier.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Since<'c> {
    stores: Vec<Op<'c>>,
    loads: Vec<Op<'c>>,
}

/// By index in the list of shared buffers.
type State<'c> = BTreeMap<usize, Since<'c>>;

/// The result of [`check`].
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Kernels with shared memory.
    pub kernels: usize,
    /// `kernel: access`: accesses without a barrier after an earlier, conflicting one.
    pub races: Vec<String>,
}

/// Checks all kernels of a distributed module.
pub fn check(module: &Module) -> Found {
    let mut found = Found::default();
    for func in module.functions().into_iter().filter(|f| f.attr("monopour.workgroup_size").is_some()) {
        let shared = shared_buffers(module, func);
        let Some(body) = func.body().filter(|_| !shared.is_empty()) else { continue };
        found.kernels += 1;
        let name = func.symbol_name().unwrap_or_default();
        let mut walk = Walk { shared: &shared, races: vec![] };
        walk.block(body, State::new());
        found.races.extend(walk.races.into_iter().map(|race| format!("{name}: {race}")));
    }
    found
}

/// Workgroup memory, and arguments for which every caller passes its own allocation.
fn shared_buffers<'c>(module: &Module<'c>, func: Op<'c>) -> Vec<Value<'c>> {
    let is_workgroup =
        |v: &Value<'c>| v.ty().memref_space().and_then(AddressSpace::of) == Some(AddressSpace::Workgroup);
    let local = func.find_all(ops::memref::ALLOCA).into_iter().map(|op| op.result(0)).filter(is_workgroup);
    let calls: Vec<Op> = module
        .op()
        .find_all(ops::func::CALL)
        .into_iter()
        .filter(|c| c.callee() == func.symbol_name().as_deref())
        .collect();
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    let scratch = args.into_iter().enumerate().filter(|(i, arg)| {
        arg.ty().is_memref() && !calls.is_empty() && calls.iter().all(|call| is_own(*call, call.operand(*i)))
    });
    let scratch = scratch.map(|(_, arg)| arg).collect::<Vec<_>>();
    local.chain(scratch).collect()
}

/// Whether the value is an allocation that only `call` accesses.
fn is_own(call: Op, value: Value) -> bool {
    value.defining_op().is_some_and(|op| op.is(ops::memref::ALLOC))
        && value.uses().iter().all(|u| u.op == call || u.op.is(ops::memref::DEALLOC))
}

struct Walk<'c, 'a> {
    shared: &'a [Value<'c>],
    races: Vec<String>,
}

impl<'c> Walk<'c, '_> {
    /// The state at the end of a block that is entered with `state`.
    fn block(&mut self, block: Block<'c>, mut state: State<'c>) -> State<'c> {
        for op in block.ops() {
            match op.name() {
                ops::gpu::BARRIER => state.clear(),
                ops::memref::LOAD | ops::vector::LOAD => self.access(op, op.operand(0), false, &mut state),
                ops::memref::STORE | ops::vector::STORE => self.access(op, op.operand(1), true, &mut state),
                ops::scf::IF => {
                    let branches = op.regions().into_iter().map(|r| r.entry());
                    let ends: Vec<State> =
                        branches.map(|b| b.map_or_else(|| state.clone(), |b| self.block(b, state.clone()))).collect();
                    state = ends.into_iter().fold(State::new(), join);
                }
                ops::scf::FOR | ops::scf::WHILE => state = self.looped(op, state),
                _ => assert!(op.regions().is_empty(), "the distributed op set has no other op with code inside: {op}"),
            }
        }
        state
    }

    /// The join over no iteration, one, and two in a row.
    fn looped(&mut self, op: Op<'c>, before: State<'c>) -> State<'c> {
        let mut state = before;
        loop {
            let mut end = state.clone();
            for block in op.regions().into_iter().filter_map(|r| r.entry()) {
                end = self.block(block, end);
            }
            let joined = join(state.clone(), end);
            if joined == state {
                return state;
            }
            state = joined;
        }
    }

    fn access(&mut self, op: Op<'c>, buffer: Value<'c>, stores: bool, state: &mut State<'c>) {
        let Some(at) = self.shared.iter().position(|b| *b == buffer) else { return };
        let since = state.entry(at).or_default();
        let others = if stores { &since.loads } else { &since.stores };
        if others.iter().any(|other| !are_apart(op, *other)) {
            let race = op.to_string();
            if !self.races.contains(&race) {
                self.races.push(race);
            }
        }
        let own = if stores { &mut since.stores } else { &mut since.loads };
        if !own.contains(&op) {
            own.push(op);
        }
    }
}

/// The index of a load or store.
fn index_of<'c>(op: Op<'c>) -> Value<'c> {
    op.operand(if op.name().ends_with(".store") { 2 } else { 1 })
}

/// Whether two accesses, one of them a store, never meet at an element from different invocations: one after the other, at
/// the invocation's own element, or at an element that only invocations excluded by the condition around store to. So works
/// a tree of partial results: the first `w` invocations each add the element `w` behind their own.
fn are_apart(a: Op, b: Op) -> bool {
    let (store, load) = if a.name().ends_with(".store") { (a, b) } else { (b, a) };
    let (own, other) = (index_of(store), index_of(load));
    if stretch(own).is_some_and(|own| stretch(other) == Some(own)) {
        return true;
    }
    let (Some((own, lanes)), Some((other, of_other))) = (vector(store), vector(load)) else { return false };
    if lanes != of_other {
        return false;
    }
    if store.block() != load.block() || !own.defining_op().is_some_and(|op| op.is(ops::gpu::THREAD_ID)) {
        return false;
    }
    let behind = other.defining_op().filter(|op| op.is(ops::arith::ADDI) && op.operand(0) == own);
    let behind = behind.and_then(|op| op.operand(1).constant_int());
    let working = store.parent().filter(|op| op.is(ops::scf::IF)).and_then(|op| op.operand(0).defining_op());
    let working = working.filter(|op| op.is(ops::arith::CMPI)).and_then(|op| op.operand(1).constant_int());
    own == other || behind.zip(working).is_some_and(|(behind, working)| behind >= working)
}

/// The position of an access among the vectors of its lanes, and these; that of an element, and 1.
fn vector<'c>(op: Op<'c>) -> Option<(Value<'c>, i64)> {
    let value = if op.name().ends_with(".store") { op.operand(0) } else { op.result(0) };
    let lanes = if value.ty().is_vector() { value.ty().shape()?.iter().product() } else { 1 };
    let index = index_of(op);
    if lanes == 1 {
        return Some((index, 1));
    }
    let scaled = index.defining_op().filter(|op| op.is(ops::arith::MULI))?;
    (scaled.operand(1).constant_int() == Some(lanes)).then(|| (scaled.operand(0), lanes))
}

/// The invocation and the length of its own stretch of a buffer, if the index lies in that: `thread * length + i` with `i` from
/// a loop of at most so many iterations.
fn stretch(index: Value) -> Option<(Value, i64)> {
    let sum = index.defining_op().filter(|op| op.is(ops::arith::ADDI))?;
    let start = sum.operand(0).defining_op().filter(|op| op.is(ops::arith::MULI))?;
    let (thread, length) = (start.operand(0), start.operand(1).constant_int()?);
    let (block, position) = sum.operand(1).as_block_arg()?;
    let around = block.parent_op().filter(|op| op.is(ops::scf::FOR) && position == 0)?;
    let [first, end] = [0, 1].map(|bound| around.operand(bound).constant_int());
    let is_thread = thread.defining_op().is_some_and(|op| op.is(ops::gpu::THREAD_ID));
    (is_thread && first? >= 0 && end? <= length).then_some((thread, length))
}

/// The join of two paths.
fn join<'c>(mut a: State<'c>, b: State<'c>) -> State<'c> {
    for (at, since) in b {
        let entry = a.entry(at).or_default();
        add(&mut entry.stores, since.stores);
        add(&mut entry.loads, since.loads);
    }
    a
}

fn add<'c>(to: &mut Vec<Op<'c>>, from: Vec<Op<'c>>) {
    for op in from {
        if !to.contains(&op) {
            to.push(op);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use monopour_ir::{Context, Module};

    const SPACE: &str = "#gpu.address_space<workgroup>";

    /// Number of races of a kernel whose body uses `%m`, workgroup memory.
    fn races(body: &str) -> usize {
        let text = format!(
            "func.func private @k(%i: index, %n: index, %v: f32, %c: i1) attributes {{monopour.workgroup_size = array<i32: 8, 1, 1>}} {{\n\
             %c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%m = memref.alloca() : memref<8xf32, {SPACE}>\n{body}\nreturn\n}}"
        );
        let module =
            Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"));
        let found = check(&module);
        assert_eq!(found.kernels, 1);
        found.races.len()
    }

    #[test]
    fn stores_and_loads_are_separated_by_barriers() {
        let store = format!("memref.store %v, %m[%i] : memref<8xf32, {SPACE}>\n");
        let load = format!("memref.load %m[%n] : memref<8xf32, {SPACE}>\n");
        let barrier = "gpu.barrier\n";
        assert_eq!(races(&format!("{store}{barrier}{load}")), 0);
        assert_eq!(races(&format!("{store}{load}")), 1);
        assert_eq!(races(&format!("{load}{store}")), 1);
        let looped = |body: &str| format!("scf.for %j = %c0 to %n step %c1 {{\n{body}}}\n");
        assert_eq!(races(&looped(&format!("{store}{barrier}{load}{barrier}"))), 0);
        // The next iteration stores an element that a slow invocation still loads.
        assert_eq!(races(&looped(&format!("{store}{barrier}{load}"))), 1);
        let either = |a: &str, b: &str| format!("scf.if %c {{\n{a}}} else {{\n{b}}}\n");
        assert_eq!(races(&format!("{}{load}", either(&store, ""))), 1);
        assert_eq!(races(&format!("{}{load}", either(barrier, &store))), 1);
        assert_eq!(races(&format!("{}{barrier}{load}", either(&load, &store))), 0);
    }

    #[test]
    fn an_invocation_changes_its_own_stretch() {
        let stretch = |length: u32, end: u32| {
            format!(
                "%t = gpu.thread_id x\n%l = arith.constant {length} : index\n%e = arith.constant {end} : index\n\
                 %s = arith.muli %t, %l : index\nscf.for %j = %c0 to %e step %c1 {{\n%a = arith.addi %s, %j : index\n\
                 %x = memref.load %m[%a] : memref<8xf32, {SPACE}>\nmemref.store %x, %m[%a] : memref<8xf32, {SPACE}>\n}}\n"
            )
        };
        assert_eq!(races(&stretch(4, 4)), 0);
        // The last element of one is the first of the next.
        assert!(races(&stretch(4, 5)) > 0);
    }

    #[test]
    fn a_step_of_a_tree_reads_what_no_other_one_writes() {
        let step = |working: u32, behind: u32| {
            format!(
                "%t = gpu.thread_id x\n%w = arith.constant {working} : index\n%b = arith.constant {behind} : index\n\
                 %o = arith.cmpi slt, %t, %w : index\nscf.if %o {{\n%x = memref.load %m[%t] : memref<8xf32, {SPACE}>\n\
                 %a = arith.addi %t, %b : index\n%y = memref.load %m[%a] : memref<8xf32, {SPACE}>\n\
                 %s = arith.addf %x, %y : f32\nmemref.store %s, %m[%t] : memref<8xf32, {SPACE}>\n}}\n"
            )
        };
        assert_eq!(races(&step(4, 4)), 0);
        assert_eq!(races(&step(4, 3)), 1);
        // Two steps without a barrier.
        let twice = format!("{}{}", step(4, 4), step(2, 2).replace('%', "%z").replace("%zm", "%m"));
        assert!(races(&twice) > 0);
    }

    #[test]
    fn a_step_of_a_tree_of_vectors_reads_what_no_other_one_writes() {
        let step = |scale: u32, behind: u32| {
            format!(
                "%t = gpu.thread_id x\n%w = arith.constant 2 : index\n%b = arith.constant {behind} : index\n\
                 %l = arith.constant {scale} : index\n%o = arith.cmpi slt, %t, %w : index\nscf.if %o {{\n\
                 %p = arith.muli %t, %l : index\n%x = vector.load %m[%p] : memref<8xf32, {SPACE}>, vector<2xf32>\n\
                 %a = arith.addi %t, %b : index\n%q = arith.muli %a, %l : index\n\
                 %y = vector.load %m[%q] : memref<8xf32, {SPACE}>, vector<2xf32>\n\
                 %s = arith.addf %x, %y : vector<2xf32>\n\
                 vector.store %s, %m[%p] : memref<8xf32, {SPACE}>, vector<2xf32>\n}}\n"
            )
        };
        assert_eq!(races(&step(2, 2)), 0);
        assert_eq!(races(&step(2, 1)), 1);
        // Vectors of neighbours overlap.
        assert!(races(&step(1, 2)) > 0);
    }
}
