//! The only place that erases or replaces IR, with a journal of what it did.

use crate::{Attr, Block, Builder, Context, Diagnostics, InsertionPoint, Op, OpSpec, Region, Type, Value, string};

/// One entry of the journal. Erased handles stand for identity only: they must not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// An op came into being.
    Created(Op),
    /// An op's operands, attributes, types or regions changed in place.
    Modified(Op),
    /// An op moved.
    Moved(Op),
    /// An op is gone.
    Erased(Op),
}

/// All changes of a pass go through this; see [`Rewriter::journal`].
#[derive(Debug)]
pub struct Rewriter {
    cx: Context,
    builder: Option<Builder>,
    journal: Vec<Change>,
    releases: Option<Vec<Op>>,
}

impl Rewriter {
    /// A rewriter without an insertion point.
    pub fn new(cx: Context) -> Self {
        Self { cx, builder: None, journal: vec![], releases: None }
    }
    /// The context.
    pub fn context(&self) -> Context {
        self.cx
    }
    /// Everything changed so far, in order.
    pub fn journal(&self) -> &[Change] {
        &self.journal
    }
    /// Empties the journal and returns it.
    pub fn take_journal(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.journal)
    }
    /// Empties the journal and keeps its memory.
    pub(crate) fn clear_journal(&mut self) {
        self.journal.clear();
    }
    /// From now on notes each `builtin.unrealized_conversion_cast` that loses a use; the conversion driver drops those that end unused.
    pub(crate) fn track_released_casts(&mut self) {
        self.releases = Some(vec![]);
    }
    /// The casts that lost a use since the last call; some of them may be erased by now.
    pub(crate) fn take_released_casts(&mut self) -> Vec<Op> {
        self.releases.as_mut().map(std::mem::take).unwrap_or_default()
    }
    fn release(&mut self, value: Value) {
        let Some(releases) = &mut self.releases else { return };
        if let Some(op) = value.defining_op().filter(|op| op.is("builtin.unrealized_conversion_cast")) {
            releases.push(op);
        }
    }
    /// Inserts a detached op right after the definition of `value`, so that it dominates whatever `value` dominates.
    /// The insertion point stays behind the new op where it was right behind the definition.
    pub(crate) fn insert_after_definition(&mut self, op: Op, value: Value) {
        let (point, moves) = match (value.defining_op(), value.as_block_arg()) {
            (Some(def), _) => {
                (InsertionPoint::After(def), matches!(self.point(), Some(InsertionPoint::After(at)) if at == def))
            }
            (None, Some((block, _))) => {
                (InsertionPoint::Start(block), matches!(self.point(), Some(InsertionPoint::Start(at)) if at == block))
            }
            (None, None) => unreachable!("a value is an op result or a block argument"),
        };
        Builder::new(self.cx, point).insert(op);
        self.journal.push(Change::Created(op));
        if moves {
            self.set_point(InsertionPoint::After(op));
        }
    }
    /// Inserts a detached op elsewhere; the insertion point stays.
    pub(crate) fn insert_at(&mut self, op: Op, point: InsertionPoint) {
        Builder::new(self.cx, point).insert(op);
        self.journal.push(Change::Created(op));
    }
    /// Takes over what other code did to the IR.
    pub fn note(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.journal.extend(changes);
    }
    fn point(&self) -> Option<InsertionPoint> {
        self.builder.as_ref().map(Builder::point)
    }
    /// Sets where new ops go.
    pub fn set_point(&mut self, point: InsertionPoint) {
        self.builder = Some(Builder::new(self.cx, point));
    }
    /// Creates an op at the insertion point.
    ///
    /// # Errors
    /// As [`OpSpec::build`].
    pub fn create(&mut self, spec: OpSpec<'_>) -> Result<Op, Diagnostics> {
        let op = spec.build(self.cx)?;
        self.insert(op);
        Ok(op)
    }
    /// Inserts a detached op at the insertion point.
    pub fn insert(&mut self, op: Op) {
        self.builder.as_mut().expect("insertion point was set").insert(op);
        self.journal.push(Change::Created(op));
    }
    /// `arith.constant` of an index.
    pub fn const_index(&mut self, value: i64, loc: crate::Location) -> Value {
        let ty = Type::index(self.cx);
        let spec = OpSpec::new("arith.constant", loc).results(&[ty]).attr("value", Attr::index(self.cx, value));
        self.create(spec).expect("arith.constant of a matching type always builds").result(0)
    }
    /// A detached deep copy whose operands are replaced by `map`.
    pub fn clone_op(&mut self, op: Op, mut map: impl FnMut(Value) -> Value) -> Op {
        let copy = Op { raw: c!(mlirOperationClone(op.raw)) };
        for inner in copy.nested(crate::WalkOrder::Pre) {
            for i in 0..inner.num_operands() {
                let old = inner.operand(i);
                let new = map(old);
                if new != old {
                    c!(mlirOperationSetOperand(inner.raw, i as isize, new.raw));
                }
            }
        }
        copy
    }
    /// Replaces all uses of `old`.
    pub fn replace_all_uses(&mut self, old: Value, new: Value) {
        for u in old.uses() {
            self.journal.push(Change::Modified(u.op));
        }
        c!(mlirValueReplaceAllUsesOfWith(old.raw, new.raw));
        self.release(old);
    }
    /// Replaces the op's results by `values` and erases it.
    pub fn replace_op(&mut self, op: Op, values: &[Value]) {
        assert_eq!(op.num_results(), values.len(), "one replacement per result of {}", op.name());
        for (old, new) in op.results().into_iter().zip(values) {
            self.replace_all_uses(old, *new);
        }
        self.erase(op);
    }
    /// Erases an op (and what it contains). Its results must be unused.
    pub fn erase(&mut self, op: Op) {
        debug_assert!(op.results().iter().all(|r| r.is_unused()), "erased op {} is unused", op.name());
        op.walk(crate::WalkOrder::Post, |o| {
            for i in 0..o.num_operands() {
                self.release(o.operand(i));
            }
            self.journal.push(Change::Erased(o));
        });
        c!(mlirOperationDestroy(op.raw));
    }
    /// Sets an operand.
    pub fn set_operand(&mut self, op: Op, index: usize, value: Value) {
        self.release(op.operand(index));
        c!(mlirOperationSetOperand(op.raw, index as isize, value.raw));
        self.journal.push(Change::Modified(op));
    }
    /// Replaces the whole operand list.
    pub fn set_operands(&mut self, op: Op, values: &[Value]) {
        for old in op.operands() {
            self.release(old);
        }
        let raw: Vec<_> = values.iter().map(|v| v.raw).collect();
        c!(mlirOperationSetOperands(op.raw, raw.len() as isize, raw.as_ptr()));
        self.journal.push(Change::Modified(op));
    }
    /// Sets an attribute, inherent or discardable.
    pub fn set_attr(&mut self, op: Op, name: &str, value: Attr) {
        c!(mlirOperationSetAttributeByName(op.raw, string::to_ref(name), value.raw));
        self.journal.push(Change::Modified(op));
    }
    /// Removes an attribute; whether it was there.
    pub fn remove_attr(&mut self, op: Op, name: &str) -> bool {
        let removed = c!(mlirOperationRemoveAttributeByName(op.raw, string::to_ref(name)));
        self.journal.push(Change::Modified(op));
        removed
    }
    /// Changes the type of a value in place; users must be fixed by the caller.
    pub fn set_type(&mut self, value: Value, ty: Type) {
        c!(mlirValueSetType(value.raw, ty.raw));
        if let Some(op) = value.defining_op().or_else(|| value.as_block_arg().and_then(|(b, _)| b.parent_op())) {
            self.journal.push(Change::Modified(op));
        }
    }
    /// Moves an op before another.
    pub fn move_before(&mut self, op: Op, anchor: Op) {
        c!(mlirOperationMoveBefore(op.raw, anchor.raw));
        self.journal.push(Change::Moved(op));
    }
    /// Moves an op after another.
    pub fn move_after(&mut self, op: Op, anchor: Op) {
        c!(mlirOperationMoveAfter(op.raw, anchor.raw));
        self.journal.push(Change::Moved(op));
    }
    /// Takes an op out of its block without destroying it, and appends it to another block.
    pub fn move_to_end(&mut self, op: Op, block: Block) {
        c!(mlirOperationRemoveFromParent(op.raw));
        c!(mlirBlockAppendOwnedOperation(block.raw, op.raw));
        self.journal.push(Change::Moved(op));
    }
    /// Adds a block argument at the end.
    pub fn add_block_arg(&mut self, block: Block, ty: Type, loc: crate::Location) -> Value {
        self.note_signature(block);
        Value { raw: c!(mlirBlockAddArgument(block.raw, ty.raw, loc.raw)) }
    }
    /// Adds a block argument at a position.
    pub fn insert_block_arg(&mut self, block: Block, index: usize, ty: Type, loc: crate::Location) -> Value {
        assert!(index <= block.num_args(), "block argument {index} can be inserted");
        self.note_signature(block);
        Value { raw: c!(mlirBlockInsertArgument(block.raw, index as isize, ty.raw, loc.raw)) }
    }
    /// Erases an unused block argument.
    pub fn erase_block_arg(&mut self, block: Block, index: usize) {
        debug_assert!(block.arg(index).is_unused(), "erased block argument is unused");
        c!(mlirBlockEraseArgument(block.raw, index as u32));
        self.note_signature(block);
    }
    fn note_signature(&mut self, block: Block) {
        if let Some(op) = block.parent_op() {
            self.journal.push(Change::Modified(op));
        }
    }
    /// Moves all blocks of `from` into the empty region `to`.
    pub fn take_region(&mut self, to: Region, from: Region) {
        for region in [to, from] {
            // An empty or detached region has no block through which its op could be named.
            if let Some(op) = region.entry().and_then(Block::parent_op) {
                self.journal.push(Change::Modified(op));
            }
        }
        c!(mlirRegionTakeBody(to.raw, from.raw));
    }
}
