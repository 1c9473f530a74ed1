//! The rewriter: the only code that erases or replaces IR, with a journal of its changes.

use crate::conversion::casts::{self, Casts};
use crate::ops;
use aftermath::Aftermath;

use crate::conversion::plain;
use mlir_sys::{MlirBlock, MlirOperation};

use crate::{
    Attr, Block, Builder, Context, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Type, Value, string,
};

pub(crate) mod aftermath;
mod erase;

/// One entry of the journal. Erased handles stand for identity only: they must not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'c> {
    /// An op was created.
    Created(Op<'c>),
    /// An op's operands, attributes, types or regions changed in place.
    Modified(Op<'c>),
    /// An op moved.
    Moved(Op<'c>),
    /// An op was erased.
    Erased(Op<'c>),
}

impl<'c> Change<'c> {
    /// The changed op.
    pub fn op(self) -> Op<'c> {
        match self {
            Self::Created(op) | Self::Modified(op) | Self::Moved(op) | Self::Erased(op) => op,
        }
    }
}

/// All changes of a pass go through this; see [`Rewriter::journal`].
#[derive(Debug)]
pub struct Rewriter<'c> {
    cx: Context<'c>,
    builder: Option<Builder<'c>>,
    journal: Vec<Change<'c>>,
    watch: Option<Box<Watch<'c>>>,
}

/// Records of the conversion driver beyond the journal.
#[derive(Debug)]
pub(crate) struct Watch<'c> {
    pub(crate) casts: Casts<'c>,
    /// The top-level op of the conversion, which is in no block.
    pub(crate) top: Op<'c>,
    /// The op of the running pattern.
    pub(crate) root: Option<Op<'c>>,
    /// Blocks that the pattern moved out of its op.
    pub(crate) adopted: Vec<Block<'c>>,
    /// Parent ops of the regions that took all blocks of another one.
    pub(crate) taken_into: Vec<Op<'c>>,
    /// Contract violations of the pattern.
    pub(crate) violations: Vec<String>,
    /// How often uses were redirected to other values.
    pub(crate) redirections: usize,
    pub(crate) aftermath: Aftermath<'c>,
}

impl<'c> Rewriter<'c> {
    /// A rewriter without an insertion point.
    pub fn new(cx: Context<'c>) -> Self {
        Self { cx, builder: None, journal: vec![], watch: None }
    }
    /// A rewriter that bridges types with casts, and refuses to erase ops that do not belong to the running pattern.
    pub(crate) fn watching(root: Op<'c>) -> Self {
        let cx = root.context();
        let top = std::iter::successors(Some(root), |op| op.parent()).last().expect("an op begins its own chain");
        let casts = Casts::new(cx);
        let watch = Watch {
            casts,
            top,
            root: None,
            adopted: vec![],
            taken_into: vec![],
            violations: vec![],
            redirections: 0,
            aftermath: Aftermath::new(),
        };
        Self { watch: Some(Box::new(watch)), ..Self::new(cx) }
    }
    pub(crate) fn watch(&self) -> Option<&Watch<'c>> {
        self.watch.as_deref()
    }
    pub(crate) fn watch_mut(&mut self) -> Option<&mut Watch<'c>> {
        self.watch.as_deref_mut()
    }
    /// The context.
    pub fn context(&self) -> Context<'c> {
        self.cx
    }
    /// Everything changed so far, in order. The conversion driver's casts are left out.
    pub fn journal(&self) -> &[Change<'c>] {
        &self.journal
    }
    /// Empties the journal and returns it.
    pub fn take_journal(&mut self) -> Vec<Change<'c>> {
        std::mem::take(&mut self.journal)
    }
    /// Takes an emptied journal back, for its capacity.
    pub(crate) fn reuse_journal(&mut self, mut journal: Vec<Change<'c>>) {
        debug_assert!(self.journal.is_empty(), "nothing was changed meanwhile");
        journal.clear();
        self.journal = journal;
    }
    /// Says that a value lost a use.
    pub(crate) fn release(&mut self, value: Value<'c>) {
        if let Some(watch) = &mut self.watch {
            watch.casts.release(value);
        }
    }
    /// Inserts a cast of the driver's right after the definition of `value`, so that it dominates whatever `value` dominates.
    /// An insertion point right after the definition moves after the cast. The journal does not mention it.
    pub(crate) fn insert_cast(&mut self, op: Op<'c>, value: Value<'c>) {
        let point = casts::behind_definition(value);
        let moves = match (point, self.point()) {
            (InsertionPoint::After(def), Some(InsertionPoint::After(at))) => def == at,
            (InsertionPoint::Start(block), Some(InsertionPoint::Start(at))) => block == at,
            _ => false,
        };
        casts::insert(self.cx, op, point);
        if moves {
            self.set_point(InsertionPoint::After(op));
        }
    }
    /// Detaches a cast of the driver's. An insertion point right after it moves to its position.
    pub(crate) fn retire_cast(&mut self, op: Op<'c>) {
        self.step_over(op);
        if let Some(watch) = &mut self.watch {
            watch.casts.retire(op);
        }
    }
    /// Inserts a detached op right after the definition of `value`, so that it dominates whatever `value` dominates.
    /// An insertion point right after the definition moves after the new op.
    pub(crate) fn insert_after_definition(&mut self, op: Op<'c>, value: Value<'c>) {
        self.insert_cast(op, value);
        self.journal.push(Change::Created(op));
    }
    /// Inserts a detached op elsewhere; the insertion point stays.
    pub(crate) fn insert_at(&mut self, op: Op<'c>, point: InsertionPoint<'c>) {
        Builder::new(self.cx, point).insert(op);
        self.journal.push(Change::Created(op));
    }
    /// Adds changes that other code made to the IR.
    pub fn note(&mut self, changes: impl IntoIterator<Item = Change<'c>>) {
        self.journal.extend(changes);
    }
    pub(crate) fn point(&self) -> Option<InsertionPoint<'c>> {
        self.builder.as_ref().map(Builder::point)
    }
    /// Whether the insertion point is right before or right after this op.
    pub(crate) fn is_point_at(&self, op: Op<'c>) -> bool {
        matches!(self.point(), Some(InsertionPoint::After(at) | InsertionPoint::Before(at)) if at == op)
    }
    pub(crate) fn builder_mut(&mut self) -> &mut Builder<'c> {
        self.builder.as_mut().expect("insertion point was set")
    }
    /// Sets the insertion point.
    pub fn set_point(&mut self, point: InsertionPoint<'c>) {
        self.builder = Some(Builder::new(self.cx, point));
    }
    /// Creates an op at the insertion point.
    ///
    /// # Errors
    /// As [`OpSpec::build`].
    pub fn create(&mut self, spec: OpSpec<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let op = spec.build(self.cx)?;
        self.insert(op);
        Ok(op)
    }
    /// Inserts a detached op at the insertion point.
    pub fn insert(&mut self, op: Op<'c>) {
        self.disown_cast(op);
        self.builder_mut().insert(op);
        self.journal.push(Change::Created(op));
    }
    /// A cast that a pattern creates is an ordinary op, not the driver's.
    fn disown_cast(&mut self, op: Op<'c>) {
        if let Some(watch) = self.watch.as_mut().filter(|watch| watch.casts.is_cast(op)) {
            watch.casts.note_foreign(op);
        }
    }
    /// `arith.constant` of an index.
    pub fn const_index(&mut self, value: i64, loc: crate::Location<'c>) -> Value<'c> {
        let ty = Type::index(self.cx);
        let spec = OpSpec::new(ops::arith::CONSTANT, loc).results(&[ty]).attr("value", Attr::index(self.cx, value));
        self.create(spec).expect("arith.constant of a matching type always builds").result(0)
    }
    /// A detached deep copy whose operands are replaced by `map`.
    pub fn clone_op(&mut self, op: Op<'_>, mut map: impl FnMut(Value<'c>) -> Value<'c>) -> Op<'c> {
        let op = Op::from_raw(op.raw());
        let copy = Op::from_raw(c!(mlirOperationClone(op.raw())));
        let casts = self.copied_casts(op, copy);
        for inner in copy.nested(crate::WalkOrder::Pre) {
            for i in 0..inner.num_operands() {
                let old = inner.operand(i);
                let new = map(old);
                if new != old {
                    c!(mlirOperationSetOperand(inner.raw(), i as isize, new.raw()));
                }
            }
        }
        self.adopt_casts(casts);
        copy
    }
    /// The copies of the driver's casts. Copies of other casts, and of an op that is itself a cast, are ordinary ops.
    fn copied_casts(&mut self, op: Op<'c>, copy: Op<'c>) -> Vec<Op<'c>> {
        let Some(watch) = self.watch.as_mut().filter(|_| op.num_regions() > 0) else { return vec![] };
        let pairs = op.nested(crate::WalkOrder::Pre).into_iter().zip(copy.nested(crate::WalkOrder::Pre));
        let mut copies = Vec::new();
        for (from, to) in pairs {
            if watch.casts.is_own(from) {
                copies.push(to);
            } else if watch.casts.is_cast(from) {
                watch.casts.note_foreign(to);
            }
        }
        copies
    }
    /// Replaces all uses of `old`.
    pub fn replace_all_uses(&mut self, old: Value<'c>, new: Value<'c>) {
        let users = old.uses();
        let casts = self.forget_casts(users.iter().map(|u| u.op));
        self.journal.extend(users.iter().map(|u| Change::Modified(u.op)));
        c!(mlirValueReplaceAllUsesOfWith(old.raw(), new.raw()));
        self.release(old);
        self.adopt_casts(casts);
    }
    /// Forgets the driver's casts among these ops, whose operands are about to change.
    fn forget_casts(&mut self, ops: impl Iterator<Item = Op<'c>>) -> Vec<Op<'c>> {
        let Some(watch) = &mut self.watch else { return vec![] };
        let mut casts: Vec<Op> = Vec::new();
        for op in ops.filter(|op| watch.casts.is_own(*op)) {
            if !casts.contains(&op) {
                casts.push(op);
            }
        }
        casts.iter().for_each(|op| watch.casts.forget(*op));
        casts
    }
    /// Registers casts again: they never stack, and none exists twice.
    fn adopt_casts(&mut self, casts: Vec<Op<'c>>) {
        for op in casts {
            let Some(instead) = self.watch.as_mut().and_then(|watch| watch.casts.adopt(op)) else { continue };
            for (result, value) in op.results().into_iter().zip(instead) {
                self.redirect_uses(result, value);
                self.watch.iter_mut().for_each(|watch| watch.casts.note_replaced(result, value));
            }
            self.retire_cast(op);
        }
    }
    /// Replaces the op's results by `values` and erases it.
    pub fn replace_op(&mut self, op: Op<'c>, values: &[Value<'c>]) {
        assert_eq!(op.num_results(), values.len(), "one replacement per result of {}", op.name());
        for (old, new) in op.results().into_iter().zip(values) {
            self.replace_all_uses(old, *new);
        }
        self.erase(op);
    }
    /// Replaces all uses of `old`; the journal does not list the users, because their operand types are unchanged.
    pub(crate) fn redirect_uses(&mut self, old: Value<'c>, new: Value<'c>) {
        c!(mlirValueReplaceAllUsesOfWith(old.raw(), new.raw()));
        if let Some(watch) = &mut self.watch {
            watch.redirections += 1;
            watch.casts.release(old);
        }
    }
    /// Sets an operand. A cast of the driver's is never made a cast of itself.
    pub fn set_operand(&mut self, op: Op<'c>, index: usize, value: Value<'c>) {
        if value.defining_op() == Some(op) && self.watch.as_ref().is_some_and(|watch| watch.casts.is_own(op)) {
            return;
        }
        let casts = self.forget_casts(std::iter::once(op));
        self.release(op.operand(index));
        c!(mlirOperationSetOperand(op.raw(), index as isize, value.raw()));
        self.journal.push(Change::Modified(op));
        self.adopt_casts(casts);
    }
    /// Replaces the whole operand list.
    pub fn set_operands(&mut self, op: Op<'c>, values: &[Value<'c>]) {
        let casts = self.forget_casts(std::iter::once(op));
        for old in op.operands() {
            self.release(old);
        }
        let raw: Vec<_> = values.iter().map(|v| v.raw()).collect();
        c!(mlirOperationSetOperands(op.raw(), raw.len() as isize, raw.as_ptr()));
        self.journal.push(Change::Modified(op));
        self.adopt_casts(casts);
    }
    /// Sets an attribute, inherent or discardable.
    pub fn set_attr(&mut self, op: Op<'c>, name: &str, value: Attr<'c>) {
        c!(mlirOperationSetAttributeByName(op.raw(), string::to_ref(name), value.raw()));
        self.journal.push(Change::Modified(op));
    }
    /// Sets a property that is no attribute, such as the overflow flags of `llvm.add`, for which [`Self::set_attr`] and [`OpSpec::attr`]
    /// would add a discardable attribute. `value` is the property as the generic form of the op prints it.
    ///
    /// # Errors
    /// MLIR's diagnostics for a value that does not fit.
    pub fn set_property(&mut self, op: Op<'c>, name: &str, value: Attr<'c>) -> Result<(), Diagnostics> {
        let set = || {
            // SAFETY: defined in the shim; the handles are live (crate invariant).
            unsafe { monopour_shim_set_property(op.raw(), string::to_ref(name), value.raw()) }
        };
        let (ok, diagnostics) = self.cx.with_diagnostics(set);
        self.journal.push(Change::Modified(op));
        if ok { Ok(()) } else { Err(diagnostics) }
    }
    /// Removes an attribute; whether it was there.
    pub fn remove_attr(&mut self, op: Op<'c>, name: &str) -> bool {
        let removed = c!(mlirOperationRemoveAttributeByName(op.raw(), string::to_ref(name)));
        self.journal.push(Change::Modified(op));
        removed
    }
    /// Changes the type of a value in place; users must be fixed by the caller.
    pub fn set_type(&mut self, value: Value<'c>, ty: Type<'c>) {
        c!(mlirValueSetType(value.raw(), ty.raw()));
        if let Some(op) = value.defining_op().or_else(|| value.as_block_arg().and_then(|(b, _)| b.parent_op())) {
            self.journal.push(Change::Modified(op));
        }
    }
    /// Moves an op before another.
    pub fn move_before(&mut self, op: Op<'c>, anchor: Op<'c>) {
        c!(mlirOperationMoveBefore(op.raw(), anchor.raw()));
        self.journal.push(Change::Moved(op));
    }
    /// Moves an op after another.
    pub fn move_after(&mut self, op: Op<'c>, anchor: Op<'c>) {
        c!(mlirOperationMoveAfter(op.raw(), anchor.raw()));
        self.journal.push(Change::Moved(op));
    }
    /// Moves the top-level ops of a module to the end of a block, and frees the module. Returns the ops.
    pub fn absorb(&mut self, module: Module<'c>, block: Block<'c>) -> Vec<Op<'c>> {
        let ops: Vec<Op> = module.body().ops().into_iter().map(|op| Op::from_raw(op.raw())).collect();
        for op in &ops {
            self.move_to_end(*op, block);
        }
        ops
    }
    /// Takes an op out of its block without destroying it, and appends it to another block.
    pub fn move_to_end(&mut self, op: Op<'c>, block: Block<'c>) {
        c!(mlirOperationRemoveFromParent(op.raw()));
        c!(mlirBlockAppendOwnedOperation(block.raw(), op.raw()));
        self.journal.push(Change::Moved(op));
    }
    /// Adds a block argument at the end.
    pub fn add_block_arg(&mut self, block: Block<'c>, ty: Type<'c>, loc: crate::Location<'c>) -> Value<'c> {
        self.note_signature(block);
        Value::from_raw(c!(mlirBlockAddArgument(block.raw(), ty.raw(), loc.raw())))
    }
    /// Adds a block argument at a position.
    pub fn insert_block_arg(
        &mut self,
        block: Block<'c>,
        index: usize,
        ty: Type<'c>,
        loc: crate::Location<'c>,
    ) -> Value<'c> {
        assert!(index <= block.num_args(), "block argument {index} can be inserted");
        self.note_signature(block);
        Value::from_raw(c!(mlirBlockInsertArgument(block.raw(), index as isize, ty.raw(), loc.raw())))
    }
    /// Erases an unused block argument.
    pub fn erase_block_arg(&mut self, block: Block<'c>, index: usize) {
        debug_assert!(block.arg(index).is_unused(), "erased block argument is unused");
        c!(mlirBlockEraseArgument(block.raw(), index as u32));
        self.note_signature(block);
    }
    fn note_signature(&mut self, block: Block<'c>) {
        if let Some(op) = block.parent_op() {
            self.note_modified(op);
        }
    }
    /// As [`Self::note_signature`], for a block in this op, or in none if its handle is null.
    fn note_around(&mut self, op: Op<'c>) {
        if let Some(op) = Op::non_null(op.raw()) {
            self.note_modified(op);
        }
    }
    /// Consecutive changes of one op are noted once.
    pub(crate) fn note_modified(&mut self, op: Op<'c>) {
        if self.journal.last() != Some(&Change::Modified(op)) {
            self.journal.push(Change::Modified(op));
            if let Some(watch) = &mut self.watch {
                watch.aftermath.note_changed(op, watch.root);
            }
        }
    }
    /// Moves all blocks of `from` into the empty region `to`.
    /// A conversion pattern that would lose blocks of `to` breaks its contract, and nothing moves.
    pub fn take_region(&mut self, to: Region<'c>, from: Region<'c>) {
        if let (Some(watch), Some(lost)) = (&mut self.watch, to.entry()) {
            let holder = lost.parent_op().map_or("no op", |op| op.name());
            watch.violations.push(format!("moves blocks into a region of '{holder}' that is not empty"));
            return;
        }
        for region in [to, from] {
            // The op of an empty or detached region cannot be named.
            if let Some(op) = region.entry().and_then(Block::parent_op) {
                self.journal.push(Change::Modified(op));
            }
        }
        if let Some(watch) = &mut self.watch {
            watch.adopted.extend(from.block_list());
        }
        c!(mlirRegionTakeBody(to.raw(), from.raw()));
        if let (Some(watch), Some(op)) = (&mut self.watch, to.entry().and_then(Block::parent_op)) {
            watch.taken_into.push(op);
        }
    }
    /// Splits the block of an op: the block before the op, and the one right after it that begins with the op.
    /// The first keeps the arguments and predecessors. The shorter part moves, so either may be the
    /// new block: a block of loops that is split at each of them takes linear time, where upstream, which moves all ops
    /// after the split, takes quadratic time.
    ///
    /// # Panics
    /// If the op is in no block.
    pub fn split_block(&mut self, op: Op<'c>) -> (Block<'c>, Block<'c>) {
        let mut split = Split::NONE;
        // SAFETY: defined in the shim; the op is live (crate invariant).
        let is_done = unsafe { monopour_shim_split_block(op.raw(), &raw mut split) };
        assert!(is_done, "the op is in a block");
        let (before, rest) = (Block::from_raw(split.before), Block::from_raw(split.rest));
        let (old, made) = if split.is_before_new { (rest, before) } else { (before, rest) };
        self.note_around(Op::from_raw(split.around));
        if let Some(watch) = &mut self.watch
            && watch.adopted.contains(&old)
        {
            watch.adopted.push(made);
        }
        match self.point() {
            Some(InsertionPoint::Start(at)) if at == old => self.set_point(InsertionPoint::Start(before)),
            Some(InsertionPoint::End(at)) if at == old => self.set_point(InsertionPoint::End(before)),
            _ => {}
        }
        (before, rest)
    }
    /// Moves all blocks of a region before a block, in order. The region's op is the pattern's own.
    pub fn inline_region_before(&mut self, region: Region<'c>, before: Block<'c>) {
        self.inline_regions_before(&[region], before);
    }
    /// As [`Self::inline_region_before`], of several regions, one after the other.
    pub fn inline_regions_before(&mut self, regions: &[Region<'c>], before: Block<'c>) {
        let around = match &mut self.watch {
            Some(watch) => plain::inline_regions(regions, before, &mut watch.adopted),
            None => plain::inline_regions(regions, before, &mut vec![]),
        };
        self.note_around(around);
    }
    /// Redirects a branch to another block with the same argument types.
    pub fn set_successor(&mut self, branch: Op<'c>, index: usize, block: Block<'c>) {
        assert!(index < branch.successors().len(), "successor {index} of {} exists", branch.name());
        c!(mlirOperationSetSuccessor(branch.raw(), index as isize, block.raw()));
        self.journal.push(Change::Modified(branch));
    }
    /// Inserts a new block with arguments of these types before another.
    pub fn create_block_before(&mut self, before: Block<'c>, args: &[(Type<'c>, crate::Location<'c>)]) -> Block<'c> {
        let block = Block::new(args);
        let region = before.region().expect("the block is in a region");
        c!(mlirRegionInsertOwnedBlockBefore(region.raw(), before.raw(), block.raw()));
        self.note_signature(before);
        block
    }
}

/// The blocks of a split.
#[repr(C)]
struct Split {
    before: MlirBlock,
    rest: MlirBlock,
    /// The parent op; null if there is none.
    around: MlirOperation,
    is_before_new: bool,
}

impl Split {
    const NONE: Self = Self {
        before: MlirBlock { ptr: std::ptr::null_mut() },
        rest: MlirBlock { ptr: std::ptr::null_mut() },
        around: MlirOperation { ptr: std::ptr::null_mut() },
        is_before_new: false,
    };
}

unsafe extern "C" {
    // Merges one entry into the op's properties as a dictionary. False, with diagnostics, where it does not fit.
    fn monopour_shim_set_property(
        op: MlirOperation,
        name: mlir_sys::MlirStringRef,
        value: mlir_sys::MlirAttribute,
    ) -> bool;
    // Block::splitBlock before the op, or the same by moving the ops before it. False, and nothing done, if the op is in no block.
    fn monopour_shim_split_block(op: MlirOperation, out: *mut Split) -> bool;
}
