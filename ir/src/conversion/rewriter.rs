//! The rewriter of conversion patterns: values may be replaced by values of other types.

use super::casts::Casts;
use super::{TypeConverter, signature};
use crate::rewriter::Watch;
use crate::{Block, Change, Context, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value};
use smallvec::SmallVec;
use std::ops::{Deref, DerefMut};

mod plainly;

/// Names of the ops that bridge a value's old and new type where the driver's casts are not wanted.
///
/// ```text
/// %m = "new"() : () -> memref<4xf32>
/// %t = "to_old"(%m) : (memref<4xf32>) -> tensor<4xf32>          in the place of the op that was replaced
/// %n = "to_new"(%u) : (tensor<4xf32>) -> memref<4xf32>          right after %u, one for each request
/// ```
///
/// They are never shared, folded or dropped here.
#[derive(Clone, Copy, Debug)]
pub struct Bridges {
    /// From the new type to the old one.
    pub to_old: &'static str,
    /// From the old type to the new one.
    pub to_new: &'static str,
}

/// A [`Rewriter`] that bridges types with casts. See the module documentation of [`crate::conversion`].
#[derive(Debug)]
pub struct ConversionRewriter<'c> {
    bridges: Option<Bridges>,
    rewriter: Rewriter<'c>,
}

impl<'c> Deref for ConversionRewriter<'c> {
    type Target = Rewriter<'c>;
    fn deref(&self) -> &Rewriter<'c> {
        &self.rewriter
    }
}

impl<'c> DerefMut for ConversionRewriter<'c> {
    fn deref_mut(&mut self) -> &mut Rewriter<'c> {
        &mut self.rewriter
    }
}

impl<'c> ConversionRewriter<'c> {
    pub(super) fn new(root: Op<'c>) -> Self {
        Self { bridges: None, rewriter: Rewriter::watching(root) }
    }

    /// A rewriter of the driver that makes no casts.
    pub(super) fn bridging(root: Op<'c>, bridges: Bridges) -> Self {
        let mut rewriter = Rewriter::watching(root);
        if let Some(watch) = rewriter.watch_mut() {
            watch.casts.make_none();
        }
        Self { bridges: Some(bridges), rewriter }
    }
    pub(super) fn is_bridging(&self) -> bool {
        self.bridges.is_some()
    }

    /// A rewriter outside the driver: old and new types meet in ops of these names.
    pub fn with_bridges(cx: Context<'c>, bridges: Bridges) -> Self {
        Self { bridges: Some(bridges), rewriter: Rewriter::new(cx) }
    }

    pub(super) fn state(&self) -> &Watch<'c> {
        self.rewriter.watch().expect("a rewriter of the driver's watches")
    }
    pub(super) fn state_mut(&mut self) -> &mut Watch<'c> {
        self.rewriter.watch_mut().expect("a rewriter of the driver's watches")
    }
    fn casts(&self) -> &Casts<'c> {
        &self.state().casts
    }

    /// The value in its newest type, behind the driver's casts.
    pub fn converted(&mut self, value: Value<'c>) -> Value<'c> {
        match self.bridges {
            Some(bridges) => value.defining_op().filter(|op| op.is(bridges.to_old)).map_or(value, |op| op.operand(0)),
            None => self.casts().behind_one(value),
        }
    }

    /// `value` as a `ty`: itself, its source behind a cast, or a cast right after its definition, shared with earlier requests.
    pub fn cast(&mut self, value: Value<'c>, ty: Type<'c>) -> Value<'c> {
        if value.ty() == ty {
            return value;
        }
        if let Some(bridges) = self.bridges {
            let op = bridge(bridges.to_new, value, ty);
            self.rewriter.insert_after_definition(op, value);
            return op.result(0);
        }
        let source = self.casts().behind_one(value);
        if source.ty() == ty {
            return source;
        }
        if let Some(op) = self.casts().find(source, ty) {
            return op.result(0);
        }
        self.make_cast(source, ty, false)
    }

    /// One value as values of these types: the sources behind its cast if they fit, else casts.
    pub fn cast_to_many(&mut self, value: Value<'c>, types: &[Type<'c>]) -> Vec<Value<'c>> {
        if let [ty] = types {
            return vec![self.cast(value, *ty)];
        }
        if let Some(parts) = self.casts().parts(value, types.len()) {
            return self.cast_each(&parts, types);
        }
        let source = self.casts().behind_one(value);
        let found = self.casts().find_many(source, types);
        let op = found.unwrap_or_else(|| {
            let op = self.state_mut().casts.make_many(source, types);
            self.rewriter.insert_cast(op, source);
            op
        });
        op.results()
    }

    fn cast_each(&mut self, values: &[Value<'c>], types: &[Type<'c>]) -> Vec<Value<'c>> {
        values.iter().zip(types).map(|(value, ty)| self.cast(*value, *ty)).collect()
    }

    /// An N:1 cast to an old type, inserted at the definition of `at`, the value that it replaces.
    fn join(&mut self, values: &[Value<'c>], ty: Type<'c>, at: Value<'c>) -> Value<'c> {
        let op = self.state_mut().casts.make_join(values, ty, at);
        // For a block argument, after all new arguments; for a result, all new values are defined before the replaced op.
        self.rewriter.insert_cast(op, at);
        op.result(0)
    }

    /// Replaces the op's results and erases it. A replacement may have another type than the result.
    pub fn replace_op(&mut self, op: Op<'c>, values: &[Value<'c>]) {
        if self.bridges.is_none() && self.rewriter.replace_and_erase(op, values) {
            return;
        }
        if self.replace_plainly(op, values) {
            return self.rewriter.erase(op);
        }
        if !self.is_one_per_result(op, values.len()) {
            return;
        }
        for (i, new) in values.iter().enumerate() {
            self.replace_all_uses(op.result(i), *new);
        }
        self.rewriter.erase(op);
    }

    /// As [`Self::replace_op`], with any number of values for each result.
    pub fn replace_op_with_many(&mut self, op: Op<'c>, values: &[Vec<Value<'c>>]) {
        if !self.is_one_per_result(op, values.len()) {
            return;
        }
        for (i, new) in values.iter().enumerate() {
            self.replace_all_uses_with_many(op.result(i), new);
        }
        self.rewriter.erase(op);
    }

    /// Whether there is a replacement per result; if not, the pattern breaks its contract, and nothing is replaced.
    fn is_one_per_result(&mut self, op: Op<'c>, count: usize) -> bool {
        let expected = op.num_results();
        if count != expected {
            let plural = if expected == 1 { "" } else { "s" };
            let text = format!("gives {count} replacements for {expected} result{plural} of '{}'", op.name());
            let watch = self.rewriter.watch_mut();
            watch.expect("one replacement per result, where no driver says so").violations.push(text);
        }
        count == expected
    }

    /// Replaces all uses of `old` by `new`, which may have another type.
    pub fn replace_all_uses(&mut self, old: Value<'c>, new: Value<'c>) {
        if let Some(bridges) = self.bridges {
            return self.bridge_all_uses(bridges, old, new);
        }
        if old.is_unused() || self.casts().behind_one(new) == old {
            return;
        }
        self.recast_users(old, new);
        if !old.is_unused() {
            let stand_in = self.cast(new, old.ty());
            self.rewriter.redirect_uses(old, stand_in);
        }
    }

    /// Replaces all uses of `old` by several values, or none: remaining users read an N:1 cast.
    pub fn replace_all_uses_with_many(&mut self, old: Value<'c>, new: &[Value<'c>]) {
        if let [new] = new {
            return self.replace_all_uses(old, *new);
        }
        if old.is_unused() {
            return;
        }
        // Through all casts, so that the order of replacing and joining does not matter.
        let parts: Vec<Value> = new.iter().map(|part| self.casts().behind_one(*part)).collect();
        if let Some(whole) = self.casts().split_of(&parts).filter(|whole| whole.ty() == old.ty()) {
            return self.replace_all_uses(old, whole);
        }
        for cast in self.cast_users(old) {
            if cast.num_operands() == 1 && cast.num_results() == parts.len() {
                self.fit_cast(cast, &parts);
            }
        }
        if !old.is_unused() {
            let joined = self.join(&parts, old.ty(), old);
            self.replace_all_uses(old, joined);
        }
    }
    /// Replaces a 1:N cast by its parts.
    fn fit_cast(&mut self, cast: Op<'c>, parts: &[Value<'c>]) {
        let types: Vec<Type> = cast.results().iter().map(|r| r.ty()).collect();
        let values = self.cast_each(parts, &types);
        self.replace_cast(cast, &values);
    }

    /// Casts of the old value become casts of the new one, or are dropped if the types are equal: casts never stack.
    fn recast_users(&mut self, old: Value<'c>, new: Value<'c>) {
        for cast in self.cast_users(old) {
            if cast.num_operands() != 1 {
                self.rejoin(cast, old, new);
                continue;
            }
            if cast.num_results() == 1 {
                let again = self.cast(new, cast.result(0).ty());
                self.replace_cast(cast, &[again]);
                continue;
            }
            let types: Vec<Type> = cast.results().iter().map(|r| r.ty()).collect();
            let again = self.cast_to_many(new, &types);
            self.replace_cast(cast, &again);
        }
    }
    /// Replaces one input of an N:1 cast, whatever the type of the new value.
    fn rejoin(&mut self, join: Op<'c>, old: Value<'c>, new: Value<'c>) {
        let new = self.casts().behind_one(new);
        for i in (0..join.num_operands()).filter(|i| join.operand(*i) == old) {
            c!(mlirOperationSetOperand(join.raw(), i as isize, new.raw()));
        }
        self.rewriter.release(old);
        self.state_mut().redirections += 1;
        self.refit(join);
    }
    /// After the inputs of an N:1 cast changed: it may be redundant now, or its 1:N casts may match the inputs.
    fn refit(&mut self, join: Op<'c>) {
        let whole = self.casts().split_of(&join.operands());
        if let Some(whole) = whole.filter(|whole| whole.ty() == join.result(0).ty()) {
            return self.replace_all_uses(join.result(0), whole);
        }
        for cast in self.cast_users(join.result(0)) {
            match (cast.num_operands(), cast.num_results()) {
                (1, 1) => {}
                (1, count) => {
                    if let Some(parts) = self.casts().parts(join.result(0), count) {
                        self.fit_cast(cast, &parts);
                    }
                }
                _ => self.refit(cast),
            }
        }
    }
    pub(super) fn replace_cast(&mut self, cast: Op<'c>, values: &[Value<'c>]) {
        if let [value] = values
            && self.casts().are_all_one_to_one()
        {
            let result = cast.result(0);
            c!(mlirValueReplaceAllUsesOfWith(result.raw(), value.raw()));
            self.state_mut().redirections += 1;
            self.state_mut().casts.note_replaced(result, *value);
            if self.retire_plainly(cast) != Some(true) {
                self.rewriter.retire_cast(cast);
            }
            return;
        }
        for (result, value) in cast.results().into_iter().zip(values) {
            // It may have further casts, or be an input of an N:1 cast.
            self.replace_all_uses(result, *value);
            self.state_mut().casts.note_replaced(result, *value);
        }
        self.rewriter.retire_cast(cast);
    }

    /// The driver's casts that use a value.
    fn cast_users(&self, value: Value<'c>) -> SmallVec<[Op<'c>; 4]> {
        let mut out = SmallVec::new();
        if self.casts().live() == 0 {
            return out;
        }
        let mut operand = c!(mlirValueGetFirstUse(value.raw()));
        while !c!(mlirOpOperandIsNull(operand)) {
            let op = Op::from_raw(c!(mlirOpOperandGetOwner(operand)));
            if self.casts().is_own(op) {
                out.push(op);
            }
            operand = c!(mlirOpOperandGetNextUse(operand));
        }
        out.reverse();
        out
    }

    /// Changes the types of a block's arguments in place, one type per argument; users of the old types read casts.
    pub fn convert_block_args(&mut self, block: Block<'c>, types: &[Type<'c>]) {
        assert_eq!(block.num_args(), types.len(), "one type per block argument");
        if let Some(bridges) = self.bridges {
            // Each bridge is inserted at the start of the block, so the last comes first.
            for (arg, ty) in block.args().into_iter().zip(types).rev().filter(|(arg, ty)| arg.ty() != **ty) {
                self.bridge_value(bridges, arg, *ty);
            }
            return;
        }
        for (arg, ty) in block.args().into_iter().zip(types) {
            if arg.ty() != *ty {
                self.retype(arg, *ty);
            }
        }
    }

    /// Changes a block's signature: argument `i` becomes arguments of `types[i]`, and every branch to the block forwards casts.
    ///
    /// # Errors
    /// [`super::Declined::NoMatch`], with nothing changed, if a branch has unknown successor operands, or produces the argument itself.
    pub fn convert_block_signature(
        &mut self,
        block: Block<'c>,
        types: &[Vec<Type<'c>>],
    ) -> Result<(), super::Declined> {
        signature::convert_block(self, block, types)
    }

    /// Changes the signatures of all blocks of a region by the converter.
    ///
    /// # Errors
    /// As [`Self::convert_block_signature`], or a type that the converter does not know.
    pub fn convert_region_types(
        &mut self,
        region: Region<'c>,
        converter: &TypeConverter<'c, '_>,
    ) -> Result<(), super::Declined> {
        signature::convert_region(self, region, converter)
    }

    /// Replaces uses; a bridge to the old type is inserted at the definition of the old value.
    fn bridge_all_uses(&mut self, bridges: Bridges, old: Value<'c>, new: Value<'c>) {
        if old == new || old.is_unused() {
            return;
        }
        if old.ty() == new.ty() {
            self.rewriter.redirect_uses(old, new);
            return;
        }
        let op = bridge(bridges.to_old, new, old.ty());
        // As upstream: the bridges of several results stand in reverse order.
        self.rewriter.insert_at(op, super::casts::behind_definition(old));
        self.rewriter.redirect_uses(old, op.result(0));
    }

    /// Retypes a block argument; its users read it in its old type.
    fn bridge_value(&mut self, bridges: Bridges, arg: Value<'c>, ty: Type<'c>) {
        let (old_ty, uses) = (arg.ty(), arg.uses());
        self.rewriter.set_type(arg, ty);
        let Some((block, _)) = arg.as_block_arg().filter(|_| !uses.is_empty()) else { return };
        let op = bridge(bridges.to_old, arg, old_ty);
        self.rewriter.insert_at(op, InsertionPoint::Start(block));
        for user in uses {
            self.rewriter.set_operand(user.op, user.index, op.result(0));
        }
    }

    /// Retypes a value in place. Its casts to other types stay casts of it; one to the new type goes.
    pub(super) fn retype(&mut self, value: Value<'c>, ty: Type<'c>) {
        let old_ty = value.ty();
        let casts = self.cast_users(value);
        self.rewriter.set_type(value, ty);
        if value.uses().iter().any(|u| !casts.contains(&u.op)) {
            let stand_in = self.cast(value, old_ty);
            let own = stand_in.defining_op().expect("another type means a cast");
            self.rewriter.redirect_uses(value, stand_in);
            for cast in casts.into_iter().chain([own]) {
                // Only one operand of a 1:1 cast reads it; the table already has the cast under this key.
                for i in 0..cast.num_operands() {
                    if cast.operand(i) == stand_in {
                        c!(mlirOperationSetOperand(cast.raw(), i as isize, value.raw()));
                    }
                }
            }
        }
        // Last: users of the new type are not users of the stand-in.
        if let Some(cast) = self.casts().find(value, ty) {
            self.replace_cast(cast, &[value]);
        }
    }

    /// After a pattern: drops the casts that are unused.
    #[inline]
    pub(super) fn settle(&mut self) {
        if !self.casts().is_settled() {
            self.settle_casts();
        }
    }
    fn settle_casts(&mut self) {
        let replaced = self.state_mut().casts.take_replaced();
        for (result, value) in &replaced {
            // The pattern read the adaptor, or a cast of its own, after it had replaced the cast's source.
            if !result.is_unused() {
                self.rewriter.redirect_uses(*result, *value);
            }
        }
        self.drop_idle_casts();
        self.state_mut().casts.end_pattern(replaced);
    }
    fn drop_idle_casts(&mut self) {
        loop {
            let mut released = self.state_mut().casts.take_released();
            if released.is_empty() {
                return self.state_mut().casts.reuse_released(released);
            }
            let is_plain = self.is_plain();
            for op in released.drain(..) {
                if is_plain && self.retire_plainly(op).is_some() {
                    continue;
                }
                let is_idle = op.block().is_some()
                    && self.casts().is_own(op)
                    && ((0..op.num_results()).all(|i| op.result(i).is_unused()) || self.see_through(op));
                if is_idle {
                    self.rewriter.retire_cast(op);
                }
            }
            self.state_mut().casts.reuse_released(released);
        }
    }

    /// Redirects the users of a cast of a type to itself to its operand; whether it is such a cast.
    fn see_through(&mut self, cast: Op<'c>) -> bool {
        let is_identity =
            cast.num_operands() == 1 && cast.num_results() == 1 && cast.operand(0).ty() == cast.result(0).ty();
        if is_identity {
            self.rewriter.redirect_uses(cast.result(0), cast.operand(0));
        }
        is_identity
    }

    /// Live casts in the order of the IR: most often all are below `root`, but a value from outside is cast at its definition.
    pub(super) fn live_casts(&self, root: Option<Op<'c>>) -> Vec<Op<'c>> {
        let live = self.casts().live();
        if live == 0 {
            return vec![];
        }
        let found = root.map_or_else(Vec::new, |root| self.casts_below(root));
        if found.len() < live { self.casts_below(self.state().top) } else { found }
    }
    fn casts_below(&self, root: Op<'c>) -> Vec<Op<'c>> {
        let mut out = Vec::new();
        root.walk(crate::WalkOrder::Pre, |op| {
            if self.casts().is_own(op) {
                out.push(op);
            }
        });
        out
    }

    /// Whether neither the journal nor the other records show a change.
    pub(super) fn is_untouched(&self) -> bool {
        self.journal().is_empty() && self.state().redirections == 0 && self.state().violations.is_empty()
    }
    /// Whether the op was erased or changed.
    pub(super) fn touched(&self, op: Op<'c>) -> bool {
        self.journal().iter().rev().any(|c| matches!(c, Change::Erased(o) | Change::Modified(o) if *o == op))
    }
    /// Whether the regions of an op hold only ops that existed before the pattern.
    pub(super) fn holds_what_was_there(&self, op: Op<'c>) -> bool {
        self.state().taken_into.iter().filter(|o| **o == op).count() == op.num_regions()
    }
    /// Resets the records for the pattern of an op.
    pub(super) fn begin(&mut self, op: Op<'c>) {
        let watch = self.state_mut();
        watch.root = Some(op);
        watch.adopted.clear();
        watch.taken_into.clear();
        watch.redirections = 0;
        watch.aftermath.begin();
    }
}

/// A detached bridge op from a value to another type.
fn bridge<'c>(name: &str, source: Value<'c>, ty: Type<'c>) -> Op<'c> {
    let cx = source.ty().context();
    let loc = source.defining_op().or_else(|| source.as_block_arg().and_then(|(b, _)| b.parent_op()));
    let loc = loc.map_or_else(|| Location::unknown(cx), Op::location);
    OpSpec::new(name, loc).operands(&[source]).results(&[ty]).build(cx).expect("a cast between two types builds")
}
