//! The driver's `builtin.unrealized_conversion_cast`s: shared, folded and pooled.
//!
//! ```text
//! %n = "new.op"(..) : i64
//! %c = builtin.unrealized_conversion_cast %n : i64 to index      right after the definition, one per value and type
//! "old.use"(%c) : (index) -> ()
//! ```
//!
//! Bound: there is at most one live cast per pair of a value and a requested type, so at most one per replaced value and per
//! (operand, type) of a converted op. A cast that loses its last use is detached after the pattern and pooled
//! (1:1 casts only); no clean-up is left.
//! Source: the discussion of the RFC asks for such a pool, because making and erasing casts costs more than the rewrite.

use crate::ops;
use crate::{Builder, Context, HandleMap, InsertionPoint, Op, OpSpec, Type, Value};
use std::collections::HashMap;
use std::ffi::c_void;

pub(crate) const CAST: &str = ops::builtin::UNREALIZED_CONVERSION_CAST;

/// One value as several types: shared like casts of one value to one type.
type Many<'c> = (Value<'c>, Vec<Type<'c>>);

/// The driver's casts of one conversion.
#[derive(Debug)]
pub(crate) struct Casts<'c> {
    cx: Context<'c>,
    /// A detached op with the casts' name; its result is the operand of pooled casts.
    nothing: Op<'c>,
    no_value: Value<'c>,
    name: usize,
    shared: HandleMap<(Value<'c>, Type<'c>), Op<'c>>,
    many: HashMap<Many<'c>, Op<'c>>,
    /// N:1 casts (zero or several inputs): each stands at the definition that it replaces, so none is shared.
    joins: usize,
    /// All casts are 1:1.
    is_simple: bool,
    /// Casts of the input and of patterns, treated as ordinary ops.
    foreign: HandleMap<Op<'c>, ()>,
    /// Casts that lost a use, examined after the pattern. None is destroyed before the end of the conversion.
    released: Vec<Op<'c>>,
    pool: Vec<Op<'c>>,
    /// Detached by the running pattern, which may still hold their results; pooled after it.
    resting: Vec<Op<'c>>,
    retired: Vec<Op<'c>>,
    /// Replacements of the running pattern's casts, in order, for results that it still reads.
    replaced: Vec<(Value<'c>, Value<'c>)>,
    created: usize,
    max_live: usize,
}

unsafe extern "C" {
    // The defining op, if its name is kept at this address; else null.
    fn monopour_shim_definition_named(value: mlir_sys::MlirValue, name: *const c_void) -> mlir_sys::MlirOperation;
    // Detaches a 1:1 cast and replaces its operand; returns the old operand and whether the cast has attributes.
    fn monopour_shim_take_out_cast(
        cast: mlir_sys::MlirOperation,
        nothing: mlir_sys::MlirValue,
        is_marked: *mut bool,
    ) -> mlir_sys::MlirValue;
}

impl Drop for Casts<'_> {
    fn drop(&mut self) {
        for op in self.pool.drain(..).chain(self.resting.drain(..)).chain(self.retired.drain(..)) {
            c!(mlirOperationDestroy(op.raw()));
        }
        c!(mlirOperationDestroy(self.nothing.raw()));
    }
}

impl<'c> Casts<'c> {
    pub(crate) fn new(cx: Context<'c>) -> Self {
        let spec = OpSpec::new(CAST, crate::Location::unknown(cx)).results(&[Type::index(cx)]);
        let nothing = spec.build(cx).expect("a cast of nothing builds");
        Self {
            cx,
            nothing,
            no_value: nothing.result(0),
            name: nothing.name_address(),
            shared: HandleMap::default(),
            many: HashMap::new(),
            joins: 0,
            is_simple: true,
            foreign: HandleMap::default(),
            released: vec![],
            pool: vec![],
            resting: vec![],
            retired: vec![],
            replaced: vec![],
            created: 0,
            max_live: 0,
        }
    }

    /// Disables casts: no op counts as the driver's.
    pub(crate) fn make_none(&mut self) {
        self.name = 0;
    }
    /// A cast that was in the input, or that a pattern created.
    pub(crate) fn note_foreign(&mut self, op: Op<'c>) {
        self.foreign.insert(op, ());
    }
    /// Forgets an op that is about to be erased: the driver's next cast may have its address.
    pub(crate) fn forget_foreign(&mut self, op: Op<'c>) {
        if !self.foreign.is_empty() && self.foreign.remove(&op).is_some() {
            self.released.retain(|released| *released != op);
        }
    }
    /// Whether all casts are the driver's and 1:1.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_simple && self.foreign.is_empty()
    }
    /// The address of the casts' name in MLIR.
    pub(crate) fn name_address(&self) -> usize {
        self.name
    }
    /// As [`Self::name_address`], null if no cast is live, which saves the comparison.
    pub(crate) fn name_if_live(&self) -> *const c_void {
        if self.live() == 0 { std::ptr::null() } else { self.name as *const c_void }
    }
    /// The operand of pooled casts.
    pub(crate) fn nothing(&self) -> Value<'c> {
        self.no_value
    }
    /// Whether only 1:1 casts were ever made: none of those reads another.
    pub(crate) fn are_all_one_to_one(&self) -> bool {
        self.is_simple
    }
    /// Whether this is a cast, of the driver's or of the input.
    pub(crate) fn is_cast(&self, op: Op<'c>) -> bool {
        op.name_address() == self.name
    }
    /// Whether this is a cast of the driver's.
    pub(crate) fn is_own(&self, op: Op<'c>) -> bool {
        op.name_address() == self.name && (self.foreign.is_empty() || !self.foreign.contains_key(&op))
    }
    /// The cast that defines a value, if any, by one call of the shim.
    fn cast_definition(&self, value: Value<'c>) -> Option<Op<'c>> {
        // SAFETY: defined in the shim; the value is live (crate invariant), and the name is only compared.
        Op::non_null(unsafe { monopour_shim_definition_named(value.raw(), self.name as *const c_void) })
    }
    /// As [`Self::cast_definition`], for casts of the driver's.
    fn own_definition(&self, value: Value<'c>) -> Option<Op<'c>> {
        if self.live() == 0 {
            return None;
        }
        self.cast_definition(value).filter(|op| !self.foreign.contains_key(op))
    }
    pub(crate) fn live(&self) -> usize {
        self.shared.len() + self.many.len() + self.joins
    }
    pub(crate) fn created(&self) -> usize {
        self.created
    }
    pub(crate) fn max_live(&self) -> usize {
        self.max_live
    }

    /// The original values behind the driver's casts of this value; several behind an N:1 cast.
    pub(crate) fn behind(&self, value: Value<'c>, out: &mut Vec<Value<'c>>) {
        let mut value = value;
        while let Some(op) = self.own_definition(value) {
            if op.num_results() != 1 {
                break;
            }
            if op.num_operands() != 1 {
                op.operands().into_iter().for_each(|part| self.behind(part, out));
                return;
            }
            value = op.operand(0);
        }
        out.push(value);
    }
    /// As [`Self::behind`], through 1:1 casts only.
    pub(crate) fn behind_one(&self, mut value: Value<'c>) -> Value<'c> {
        while let Some(op) = self.own_definition(value) {
            if op.num_results() != 1 || op.num_operands() != 1 {
                break;
            }
            value = op.operand(0);
        }
        value
    }

    /// The value whose 1:N cast has exactly these results.
    pub(crate) fn split_of(&self, values: &[Value<'c>]) -> Option<Value<'c>> {
        let op = self.own_definition(*values.first()?)?;
        let is_all = values.len() > 1 && op.num_operands() == 1 && op.results() == values;
        is_all.then(|| op.operand(0))
    }
    /// The inputs of the N:1 cast behind this value, expanded level by level until there are `count`.
    /// By number, not by types: which of them have been replaced yet must not matter.
    pub(crate) fn parts(&self, value: Value<'c>, count: usize) -> Option<Vec<Value<'c>>> {
        let mut level = vec![self.behind_one(value)];
        loop {
            let mut next = Vec::new();
            let mut is_split = false;
            for part in level {
                let join = self.own_definition(part).filter(|op| op.num_operands() != 1);
                is_split |= join.is_some();
                match join {
                    Some(join) => next.extend(join.operands().into_iter().map(|part| self.behind_one(part))),
                    None => next.push(part),
                }
            }
            if !is_split || next.len() == count {
                return is_split.then_some(next);
            }
            level = next;
        }
    }

    /// The cast of `source` to `ty`, if there is one.
    pub(crate) fn find(&self, source: Value<'c>, ty: Type<'c>) -> Option<Op<'c>> {
        self.shared.get(&(source, ty)).copied()
    }
    pub(crate) fn find_many(&self, source: Value<'c>, types: &[Type<'c>]) -> Option<Op<'c>> {
        if self.many.is_empty() { None } else { self.many.get(&(source, types.to_vec())).copied() }
    }

    /// A cast from the pool, or a new one for it.
    pub(crate) fn take_spare(&mut self) -> Op<'c> {
        self.pool.pop().unwrap_or_else(|| {
            let spec = OpSpec::new(CAST, crate::Location::unknown(self.cx)).operands(&[self.no_value]);
            spec.results(&[Type::index(self.cx)]).build(self.cx).expect("a cast between two types builds")
        })
    }
    /// Returns a cast to the pool.
    pub(crate) fn put_spare(&mut self, cast: Op<'c>) {
        self.pool.push(cast);
    }
    /// Registers a pooled cast that was inserted as one of `source` to `ty`. If it has no use yet, it may never get one.
    pub(crate) fn note_made(&mut self, cast: Op<'c>, source: Value<'c>, ty: Type<'c>, is_used: bool) {
        self.shared.insert((source, ty), cast);
        if !is_used {
            self.released.push(cast);
        }
        self.count(cast);
    }
    /// A detached 1:N cast.
    pub(crate) fn make_many(&mut self, source: Value<'c>, types: &[Type<'c>]) -> Op<'c> {
        let spec = OpSpec::new(CAST, location_of(source, self.cx)).operands(&[source]).results(types);
        let op = spec.build(self.cx).expect("a cast between types builds");
        self.many.insert((source, types.to_vec()), op);
        self.is_simple = false;
        // It may never be used.
        self.released.push(op);
        self.count(op);
        op
    }
    /// A detached N:1 cast; `like` is the value that it replaces.
    pub(crate) fn make_join(&mut self, sources: &[Value<'c>], ty: Type<'c>, like: Value<'c>) -> Op<'c> {
        let spec = OpSpec::new(CAST, location_of(like, self.cx)).operands(sources).results(&[ty]);
        let op = spec.build(self.cx).expect("a cast between types builds");
        self.joins += 1;
        self.is_simple = false;
        // It may never be used.
        self.released.push(op);
        self.count(op);
        op
    }
    fn count(&mut self, op: Op<'c>) {
        // It may have the address of an erased cast of the input.
        if !self.foreign.is_empty() {
            self.foreign.remove(&op);
        }
        self.created += 1;
        self.max_live = self.max_live.max(self.live());
    }

    /// Says that a value lost a use.
    pub(crate) fn release(&mut self, value: Value<'c>) {
        if self.live() == 0 {
            return;
        }
        if let Some(op) = self.cast_definition(value) {
            self.released.push(op);
        }
    }
    /// As [`Self::release`], of a cast that is known to define the value.
    pub(crate) fn release_cast(&mut self, op: Op<'c>) {
        self.released.push(op);
    }
    /// Drops from the list the released casts of the input that are erased with the enclosing op.
    pub(crate) fn forget_released_in(&mut self, op: Op<'c>) {
        self.released.retain(|released| !released.is_inside(op));
    }
    pub(crate) fn take_released(&mut self) -> Vec<Op<'c>> {
        std::mem::take(&mut self.released)
    }
    /// Takes the emptied list back, for its capacity.
    pub(crate) fn reuse_released(&mut self, mut list: Vec<Op<'c>>) {
        list.clear();
        if self.released.is_empty() {
            self.released = list;
        }
    }

    /// Removes the cast from the table; call before its operands or types change.
    pub(crate) fn forget(&mut self, op: Op<'c>) {
        if op.num_operands() != 1 {
            self.joins -= 1;
            return;
        }
        let source = op.operand(0);
        if op.num_results() == 1 {
            let key = (source, op.result(0).ty());
            if self.shared.get(&key) == Some(&op) {
                self.shared.remove(&key);
            }
            return;
        }
        let key = (source, op.results().iter().map(|r| r.ty()).collect());
        if self.many.get(&key) == Some(&op) {
            self.many.remove(&key);
        }
    }
    /// Registers a forgotten cast again by its current operands. Returns the values that make it redundant, if any.
    pub(crate) fn adopt(&mut self, op: Op<'c>) -> Option<Vec<Value<'c>>> {
        if op.num_operands() != 1 {
            self.joins += 1;
            return None;
        }
        let source = op.operand(0);
        let types: Vec<Type> = op.results().iter().map(|r| r.ty()).collect();
        let mut behind = Vec::new();
        self.behind(source, &mut behind);
        if behind.iter().map(|v| v.ty()).eq(types.iter().copied()) {
            return Some(behind);
        }
        let known = if let [ty] = types[..] {
            *self.shared.entry((source, ty)).or_insert(op)
        } else {
            *self.many.entry((source, types)).or_insert(op)
        };
        (known != op).then(|| known.results())
    }
    /// The result of a cast that is about to be detached is replaced by this value.
    pub(crate) fn note_replaced(&mut self, result: Value<'c>, value: Value<'c>) {
        self.replaced.push((result, value));
    }
    /// Whether the pattern left no cast to examine.
    pub(crate) fn is_settled(&self) -> bool {
        self.released.is_empty() && self.replaced.is_empty() && self.resting.is_empty()
    }
    pub(crate) fn take_replaced(&mut self) -> Vec<(Value<'c>, Value<'c>)> {
        std::mem::take(&mut self.replaced)
    }
    /// After a pattern: pools the casts that it detached. Takes the emptied list back, for its capacity.
    pub(crate) fn end_pattern(&mut self, mut replaced: Vec<(Value<'c>, Value<'c>)>) {
        self.pool.append(&mut self.resting);
        replaced.clear();
        self.replaced = replaced;
    }
    /// Registers a cast that [`super::plain::retire_idle`] detached.
    pub(super) fn note_retired(&mut self, op: Op<'c>, retired: super::plain::Retired<'c>) {
        if self.shared.get(&retired.key) == Some(&op) {
            self.shared.remove(&retired.key);
        }
        let list = if retired.is_marked { &mut self.retired } else { &mut self.resting };
        list.push(op);
        self.released.extend(retired.before);
    }
    /// Detaches a cast that is unused, or whose users are about to be erased.
    pub(crate) fn retire(&mut self, op: Op<'c>) {
        self.forget(op);
        if let (1, 1) = (op.num_operands(), op.num_results()) {
            // A pattern that sets attributes on all users of a value has set them on this cast too: it is not used again.
            let mut is_marked = false;
            // SAFETY: defined in the shim; the ops are live (crate invariant), and the cast has an operand.
            let source = unsafe { monopour_shim_take_out_cast(op.raw(), self.no_value.raw(), &raw mut is_marked) };
            let list = if is_marked { &mut self.retired } else { &mut self.resting };
            list.push(op);
            self.release(Value::from_raw(source));
            return;
        }
        c!(mlirOperationRemoveFromParent(op.raw()));
        let sources = op.operands();
        c!(mlirOperationSetOperands(op.raw(), 0, std::ptr::null()));
        self.retired.push(op);
        for source in sources {
            self.release(source);
        }
    }
}

fn location_of<'c>(value: Value<'c>, cx: Context<'c>) -> crate::Location<'c> {
    let op = value.defining_op().or_else(|| value.as_block_arg().and_then(|(block, _)| block.parent_op()));
    op.map_or_else(|| crate::Location::unknown(cx), Op::location)
}

/// The insertion point of a cast: right after the definition of the value.
pub(crate) fn behind_definition<'c>(value: Value<'c>) -> InsertionPoint<'c> {
    match (value.defining_op(), value.as_block_arg()) {
        (Some(def), _) => InsertionPoint::After(def),
        (None, Some((block, _))) => InsertionPoint::Start(block),
        (None, None) => unreachable!("a value is an op result or a block argument"),
    }
}

/// Inserts a detached op.
pub(crate) fn insert(cx: Context, op: Op, point: InsertionPoint) {
    Builder::new(cx, point).insert(op);
}
