//! The rewriter of conversion patterns: values may be replaced by values of other types.

use crate::{Block, Change, Context, InsertionPoint, Op, OpSpec, Rewriter, Type, Value};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::{Deref, DerefMut};

const CAST: &str = "builtin.unrealized_conversion_cast";

/// Hashes a pointer by one multiplication: the driver looks up every op that it visits.
#[derive(Clone, Debug, Default)]
pub struct PointerHasher(u64);

impl Hasher for PointerHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        // Fibonacci hashing; the rotation brings the mixed upper bits to where the table looks.
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A map by handles, for what is looked up for every op. Its order is that of addresses: never let it reach output.
pub type HandleMap<K, V> = HashMap<K, V, BuildHasherDefault<PointerHasher>>;
pub(super) type OpMap<V> = HandleMap<Op, V>;
type SharedCasts = HandleMap<(Value, Type), Op>;

/// A live cast of the driver's.
#[derive(Clone, Copy, Debug)]
struct Cast {
    /// Creation order, for reports.
    sequence: usize,
    source: Value,
    ty: Type,
}

/// Names of the ops that stand between a value's old and new type where the driver's casts are not wanted.
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
pub struct ConversionRewriter {
    bridges: Option<Bridges>,
    rewriter: Rewriter,
    casts: OpMap<Cast>,
    shared: SharedCasts,
    /// How much of the journal the tables above have seen. Erasures must be noticed before an address is used again.
    synced: usize,
    created: usize,
    max_live: usize,
}

impl Deref for ConversionRewriter {
    type Target = Rewriter;
    fn deref(&self) -> &Rewriter {
        &self.rewriter
    }
}

impl DerefMut for ConversionRewriter {
    fn deref_mut(&mut self) -> &mut Rewriter {
        &mut self.rewriter
    }
}

impl ConversionRewriter {
    pub(super) fn new(cx: Context) -> Self {
        let mut rewriter = Rewriter::new(cx);
        rewriter.track_released_casts();
        Self {
            bridges: None,
            rewriter,
            casts: OpMap::default(),
            shared: SharedCasts::default(),
            synced: 0,
            created: 0,
            max_live: 0,
        }
    }

    /// A rewriter of its own, without the driver: values of old and new types meet in ops of these names.
    pub fn with_bridges(cx: Context, bridges: Bridges) -> Self {
        Self { bridges: Some(bridges), rewriter: Rewriter::new(cx), ..Self::new(cx) }
    }

    /// The value in its newest type: what stands behind the driver's casts.
    pub fn converted(&mut self, value: Value) -> Value {
        if let Some(bridges) = self.bridges {
            return value.defining_op().filter(|op| op.is(bridges.to_old)).map_or(value, |op| op.operand(0));
        }
        self.sync();
        self.behind_casts(value)
    }

    /// `value` as a `ty`: itself, what it was cast from, or a cast right after its definition, shared with earlier requests.
    pub fn cast(&mut self, value: Value, ty: Type) -> Value {
        self.sync();
        if value.ty() == ty {
            return value;
        }
        if let Some(bridges) = self.bridges {
            let op = bridge(bridges.to_new, value, ty);
            self.rewriter.insert_after_definition(op, value);
            return op.result(0);
        }
        let source = self.behind_casts(value);
        if source.ty() == ty {
            return source;
        }
        if let Some(op) = self.shared.get(&(source, ty)).filter(|op| op.operand(0) == source) {
            return op.result(0);
        }
        self.create_cast(source, ty)
    }

    /// Replaces the op's results and erases it. A replacement may have another type than the result.
    pub fn replace_op(&mut self, op: Op, values: &[Value]) {
        assert_eq!(op.num_results(), values.len(), "one replacement per result of {}", op.name());
        for (old, new) in op.results().into_iter().zip(values) {
            self.replace_all_uses(old, *new);
        }
        self.rewriter.erase(op);
    }

    /// Replaces all uses of `old` by `new`, which may have another type.
    pub fn replace_all_uses(&mut self, old: Value, new: Value) {
        if let Some(bridges) = self.bridges {
            return self.bridge_all_uses(bridges, old, new);
        }
        self.sync();
        if self.behind_casts(new) == old {
            return;
        }
        for user in old.uses() {
            // A cast of the old value becomes a cast of the new one, or goes: casts never stack.
            if let Some(cast) = self.casts.get(&user.op).copied() {
                let again = self.cast(new, cast.ty);
                self.rewriter.replace_all_uses(user.op.result(0), again);
                self.rewriter.erase(user.op);
            }
        }
        if !old.is_unused() {
            let bridge = self.cast(new, old.ty());
            self.rewriter.replace_all_uses(old, bridge);
        }
    }

    /// Changes the types of a block's arguments in place, one type per argument; uses in old types read casts.
    pub fn convert_block_args(&mut self, block: Block, types: &[Type]) {
        assert_eq!(block.num_args(), types.len(), "one type per block argument");
        if let Some(bridges) = self.bridges {
            // Each goes to the start of the block, so the last comes first.
            for (arg, ty) in block.args().into_iter().zip(types).rev().filter(|(arg, ty)| arg.ty() != **ty) {
                self.bridge_value(bridges, arg, *ty);
            }
            return;
        }
        self.sync();
        for (arg, ty) in block.args().into_iter().zip(types) {
            if arg.ty() != *ty {
                self.convert_value(arg, *ty);
            }
        }
    }

    /// Replaces uses; a value of the old type is made of the new one where the old one is defined.
    fn bridge_all_uses(&mut self, bridges: Bridges, old: Value, new: Value) {
        if old == new || old.is_unused() {
            return;
        }
        if old.ty() == new.ty() {
            self.rewriter.replace_all_uses(old, new);
            return;
        }
        let op = bridge(bridges.to_old, new, old.ty());
        let point = match (old.defining_op(), old.as_block_arg()) {
            // As upstream: the bridges of several results stand in reverse order.
            (Some(def), _) => InsertionPoint::After(def),
            (None, Some((block, _))) => InsertionPoint::Start(block),
            (None, None) => unreachable!("a value is an op result or a block argument"),
        };
        self.rewriter.insert_at(op, point);
        self.rewriter.replace_all_uses(old, op.result(0));
    }

    /// Retypes a block argument; what uses it reads it in its old type.
    fn bridge_value(&mut self, bridges: Bridges, arg: Value, ty: Type) {
        let (old_ty, uses) = (arg.ty(), arg.uses());
        self.rewriter.set_type(arg, ty);
        let Some((block, _)) = arg.as_block_arg().filter(|_| !uses.is_empty()) else { return };
        let op = bridge(bridges.to_old, arg, old_ty);
        self.rewriter.insert_at(op, InsertionPoint::Start(block));
        for user in uses {
            self.rewriter.set_operand(user.op, user.index, op.result(0));
        }
    }

    fn convert_value(&mut self, value: Value, ty: Type) {
        let (old_ty, uses) = (value.ty(), value.uses());
        self.rewriter.set_type(value, ty);
        // Whatever was cast from this value keeps its type: those casts now start from the new one.
        let (casts, plain): (Vec<_>, Vec<_>) = uses.into_iter().partition(|u| self.casts.contains_key(&u.op));
        for user in casts.into_iter().filter(|u| u.op.result(0).ty() == ty) {
            self.rewriter.replace_all_uses(user.op.result(0), value);
            self.rewriter.erase(user.op);
        }
        if plain.is_empty() {
            return;
        }
        let bridge = self.cast(value, old_ty);
        for user in plain {
            self.rewriter.set_operand(user.op, user.index, bridge);
        }
    }

    fn create_cast(&mut self, source: Value, ty: Type) -> Value {
        let op = bridge(CAST, source, ty);
        self.rewriter.insert_after_definition(op, source);
        self.casts.insert(op, Cast { sequence: self.created, source, ty });
        self.shared.insert((source, ty), op);
        self.created += 1;
        self.max_live = self.max_live.max(self.casts.len());
        op.result(0)
    }

    fn behind_casts(&self, mut value: Value) -> Value {
        while let Some(op) = value.defining_op().filter(|op| self.casts.contains_key(op)) {
            value = op.operand(0);
        }
        value
    }

    /// Forgets the casts that the journal says are gone.
    fn sync(&mut self) {
        let journal = self.rewriter.journal();
        for change in &journal[self.synced.min(journal.len())..] {
            if let Change::Erased(op) = change {
                forget(&mut self.casts, &mut self.shared, *op);
            }
        }
        self.synced = journal.len();
    }

    /// After a pattern: folds casts whose operand it changed, and drops those that ended unused.
    pub(super) fn settle(&mut self) {
        self.sync();
        let changed: Vec<Op> = self
            .journal()
            .iter()
            .filter_map(|change| match change {
                Change::Modified(op) => Some(*op),
                _ => None,
            })
            .collect();
        for op in changed {
            self.fold(op);
        }
        let mut released = self.rewriter.take_released_casts();
        for change in self.rewriter.journal() {
            if let Change::Created(op) = change {
                released.push(*op);
            }
        }
        while let Some(op) = released.pop() {
            self.sync();
            if self.casts.contains_key(&op) && op.result(0).is_unused() {
                self.rewriter.erase(op);
                released.append(&mut self.rewriter.take_released_casts());
            }
        }
        self.sync();
    }

    /// A cast that now casts another value than the one it was made for.
    fn fold(&mut self, op: Op) {
        let Some(cast) = self.casts.get(&op).copied() else { return };
        let operand = op.operand(0);
        if operand == cast.source {
            return;
        }
        if self.shared.get(&(cast.source, cast.ty)) == Some(&op) {
            self.shared.remove(&(cast.source, cast.ty));
        }
        let again = self.cast(operand, cast.ty);
        self.rewriter.replace_all_uses(op.result(0), again);
        self.rewriter.erase(op);
        self.sync();
    }

    pub(super) fn is_cast(&self, op: Op) -> bool {
        self.casts.contains_key(&op)
    }
    /// Live casts, oldest first.
    pub(super) fn live_casts(&self) -> Vec<Op> {
        let mut casts: Vec<_> = self.casts.iter().map(|(op, cast)| (cast.sequence, *op)).collect();
        casts.sort_by_key(|c| c.0);
        casts.into_iter().map(|c| c.1).collect()
    }
    pub(super) fn casts_created(&self) -> usize {
        self.created
    }
    pub(super) fn max_live_casts(&self) -> usize {
        self.max_live
    }
    pub(super) fn forget_journal(&mut self) {
        self.sync();
        self.rewriter.clear_journal();
        self.synced = 0;
    }
}

/// A detached op from a value to another type.
fn bridge(name: &str, source: Value, ty: Type) -> Op {
    let cx = source.ty().context();
    let loc = source.defining_op().or_else(|| source.as_block_arg().and_then(|(b, _)| b.parent_op()));
    let loc = loc.map_or_else(|| crate::Location::unknown(cx), Op::location);
    OpSpec::new(name, loc).operands(&[source]).results(&[ty]).build(cx).expect("a cast between two types builds")
}

fn forget(casts: &mut OpMap<Cast>, shared: &mut SharedCasts, op: Op) {
    if let Some(cast) = casts.remove(&op) {
        let key = (cast.source, cast.ty);
        if shared.get(&key) == Some(&op) {
            shared.remove(&key);
        }
    }
}
