//! Which new tensors are made in a buffer that has served its purpose.
//!
//! ```text
//! block(%x)                       %x: donated
//! %0<never alloc> = empty
//! %1 = mul r%x, rw%0>%1
//! %2<never alloc> = empty
//! %3 = mul r%1, rw%2>%3           %2: the buffer of %x, which nothing uses from here on
//! %4<never alloc> = empty
//! %5 = mul r%3, rw%4>%5           %4: the buffer of %1
//! return r%5
//! ```
//!
//! The planner of transients shares memory among them, but not with buffers that a run has anyhow: donated inputs behind their
//! last use, loops' arguments in an iteration, and results before their first write. Those are *slots* here; a
//! value is made in one if nothing uses it from the operation on. What is chosen is an ordinary destination: the in-place analysis
//! judges it as any other.
//!
//! Operations are visited first to last, or those first whose value is returned; results take in the first values or the last
//! ones. Of these four plans one is taken that leaves the fewest bytes of results and of transients alive at once. Values of
//! one type only are exchanged.
//!
//! A value may also be made in a buffer that its own operation reads, if each part of that reads only what it writes:
//! the caller knows ([`OwnParts`]). Transients are handed over in this way, too, which the planner cannot.
//!
//! Limits: blocks that are alone in their region, outside of parallel regions.
//! Time O(operations * slots of a type).

use std::collections::{BTreeMap, HashMap};

use crate::dominance::{Structure, is_within};
use crate::facts::{Definition, Facts, Relation, ValueDef};
use crate::index::{BlockId, IndexVec, Lists, OpId, OperandId, ValueId};
use crate::one_shot::Decisions;

/// The operand, which uses a tensor of undefined contents, may use the value instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    /// The destination of the operation that makes a value.
    pub operand: OperandId,
    /// What nothing uses from that operation on.
    pub value: ValueId,
}

/// An operation of parts (a dispatch of tiles), each of which reads of a value only the elements that it writes through
/// the operand, and reads them before. The value is used by no other operand of the operation, nor within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnParts {
    /// The destination of the operation.
    pub operand: OperandId,
    /// What it reads.
    pub value: ValueId,
}

/// The new tensors of a function to make elsewhere. `kinds`: the type of each value, by a number, if its size is known.
pub fn reuses(
    facts: &Facts,
    decisions: &Decisions,
    kinds: &IndexVec<ValueId, Option<u32>>,
    own: &[OwnParts],
) -> Vec<Reuse> {
    let structure = Structure::new(facts);
    let classes = Classes::new(facts, decisions);
    let own = Lists::group(facts.operands().len(), &own.iter().map(|own| (own.operand, own.value)).collect::<Vec<_>>());
    let mut found = Vec::new();
    for region in facts.regions().ids().filter(|region| structure.parallel[*region].is_none()) {
        let [block] = facts.blocks_of(region) else { continue };
        let finder = Finder { facts, decisions, kinds, own: &own, classes: &classes, block: *block };
        let makers = finder.makers();
        let in_order: Vec<usize> = (0..makers.len()).collect();
        let mut returned_first = in_order.clone();
        returned_first.sort_by_key(|&maker| makers[maker].end != NEVER);
        let orders = [(&in_order, false), (&in_order, true), (&returned_first, false), (&returned_first, true)];
        let plans = orders.map(|(order, from_last)| finder.plan(&makers, order, from_last));
        found.extend(plans.into_iter().min_by_key(|plan| plan.0).map(|plan| plan.1).unwrap_or_default());
    }
    found
}

/// The end of what is returned.
const NEVER: u32 = u32::MAX;

/// The values of each alias class.
struct Classes {
    members: HashMap<ValueId, Vec<ValueId>>,
}

impl Classes {
    fn new(facts: &Facts, decisions: &Decisions) -> Self {
        let mut members: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
        for value in facts.values().ids() {
            members.entry(decisions.alias_class(value)).or_default().push(value);
        }
        Self { members }
    }

    fn of(&self, decisions: &Decisions, value: ValueId) -> &[ValueId] {
        self.members.get(&decisions.alias_class(value)).map_or(&[], |members| members)
    }
}

/// An operation that makes a value in a new tensor.
#[derive(Clone, Copy, Debug)]
struct Maker {
    op: OpId,
    operand: OperandId,
    result: ValueId,
    kind: u32,
    bytes: u64,
    /// Its position.
    at: u32,
    /// The position of the last use of its value.
    end: u32,
}

/// A buffer that a run has anyhow, and what occupies it.
struct Slot {
    kind: u32,
    /// The value in it, with the positions between which it is in use. First to last.
    taken: Vec<(u32, u32, Occupant)>,
}

#[derive(Clone, Copy, Debug)]
enum Occupant {
    /// A value that is there.
    Own(ValueId),
    /// The result of a maker.
    Made(usize),
}

struct Finder<'a> {
    facts: &'a Facts,
    decisions: &'a Decisions,
    kinds: &'a IndexVec<ValueId, Option<u32>>,
    /// By destination, what the operation reads in parts.
    own: &'a Lists<OperandId, ValueId>,
    classes: &'a Classes,
    block: BlockId,
}

impl Finder<'_> {
    fn is_empty(&self, value: ValueId) -> bool {
        let buffer = self.facts.values()[value].info.buffer;
        buffer.definition == Definition::Never && buffer.allocates
    }

    /// The last position that uses a value of the class; `None` if a value is not of this block's region, or not to be written.
    fn last_use(&self, value: ValueId) -> Option<u32> {
        self.last_use_besides(value, None)
    }

    /// As [`Self::last_use`], without the uses of one value by an operation, and what that makes of it inside.
    fn last_use_besides(&self, value: ValueId, besides: Option<(OpId, ValueId)>) -> Option<u32> {
        let region = self.facts.blocks()[self.block].region;
        let mut last = 0;
        let is_left_out = |member: ValueId, user: OpId| {
            besides.is_some_and(|(op, value)| {
                let span = self.facts.span(op);
                let within = |op: OpId| span.contains(self.facts.span(op).first);
                within(user) && (member == value || self.facts.defining_op(member).is_some_and(within))
            })
        };
        for &member in self.classes.of(self.decisions, value) {
            let is_inside = is_within(self.facts, self.facts.defining_region(member), region);
            if !is_inside || !self.facts.values()[member].info.buffer.writable {
                return None;
            }
            for &used in self.facts.uses(member) {
                let op = self.facts.operands()[used].op;
                if is_left_out(member, op) {
                    continue;
                }
                let leaves =
                    self.facts.ops()[op].block == self.block && self.facts.ops_of(self.block).last() == Some(&op);
                last = last.max(if leaves { NEVER } else { self.facts.span(op).last });
            }
        }
        Some(last)
    }

    /// The operations that make a value in a new tensor, in order.
    fn makers(&self) -> Vec<Maker> {
        let mut found = Vec::new();
        for &op in self.facts.ops_of(self.block) {
            for &operand in self.facts.operands_of(op) {
                let used = self.facts.operands()[operand];
                let [alias] = self.facts.aliasing_values(operand) else { continue };
                let makes = used.writes && self.is_empty(used.value) && alias.relation == Relation::Equivalent;
                let is_own = self.facts.values()[alias.value].def == ValueDef::Result(op);
                if !makes || !is_own || self.kinds[used.value] != self.kinds[alias.value] {
                    continue;
                }
                let Some(kind) = self.kinds[used.value] else { continue };
                let Some(bytes) = self.facts.values()[used.value].info.size_bytes else { continue };
                let Some(end) = self.last_use(alias.value) else { continue };
                let at = self.facts.span(op).first;
                found.push(Maker { op, operand, result: alias.value, kind, bytes, at, end });
            }
        }
        found
    }

    /// The slots of the block's arguments: in use until their last use.
    fn argument_slots(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        for &argument in self.facts.arguments_of(self.block) {
            let (Some(kind), Some(end)) = (self.kinds[argument], self.last_use(argument)) else { continue };
            // Of a class of several arguments it is not known which one a value is.
            let others = self.classes.of(self.decisions, argument).iter().filter(|other| {
                **other != argument && matches!(self.facts.values()[**other].def, ValueDef::Argument(_))
            });
            if others.count() == 0 && end != NEVER {
                slots.push(Slot { kind, taken: vec![(0, end, Occupant::Own(argument))] });
            }
        }
        slots
    }

    /// The reuses if makers are visited in this order, and the bytes that are left: of results, and of transients at once.
    /// `from_last`: results take in the last makers first.
    fn plan(&self, makers: &[Maker], order: &[usize], from_last: bool) -> (u64, Vec<Reuse>) {
        let mut slots = self.argument_slots();
        let mut placed = vec![false; makers.len()];
        for &number in order {
            placed[number] = self.take(&mut slots, makers, number);
        }
        // What is returned and has no slot is one, until it is made.
        let mut results = Vec::new();
        for (number, maker) in makers.iter().enumerate().filter(|(_, maker)| maker.end == NEVER) {
            if !placed[number] {
                results.push(Slot { kind: maker.kind, taken: vec![(maker.at, NEVER, Occupant::Made(number))] });
            }
        }
        let own = results.iter().map(|slot| match slot.taken[0].2 {
            Occupant::Made(number) => makers[number].bytes,
            Occupant::Own(_) => 0,
        });
        let result_bytes: u64 = own.sum();
        let mut waiting: Vec<usize> =
            (0..makers.len()).filter(|number| !placed[*number] && makers[*number].end != NEVER).collect();
        if from_last {
            waiting.reverse();
        }
        for number in waiting {
            placed[number] = self.take(&mut results, makers, number);
        }
        slots.extend(results);
        let mut alive = Vec::new();
        let left = |number: &usize| !placed[*number] && makers[*number].end != NEVER;
        for slot in self.transients(makers, &(0..makers.len()).filter(left).collect::<Vec<_>>()) {
            if let Some(bytes) = slot.taken.iter().find_map(|(.., occupant)| match occupant {
                Occupant::Made(number) => Some(makers[*number].bytes),
                Occupant::Own(_) => None,
            }) {
                let ends = |of: fn(&(u32, u32, Occupant)) -> u32| slot.taken.iter().map(of);
                alive.push((ends(|t| t.0).min().unwrap_or(0), ends(|t| t.1).max().unwrap_or(0), bytes));
            }
            slots.push(slot);
        }
        (result_bytes + most_alive(&alive), self.chains(makers, &slots))
    }

    /// The transients, in one slot those that are handed over.
    fn transients(&self, makers: &[Maker], numbers: &[usize]) -> Vec<Slot> {
        let mut slots: Vec<Slot> = Vec::new();
        // By the position to which they are in use.
        let mut ends: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for &number in numbers {
            let maker = makers[number];
            let span = self.facts.span(maker.op);
            let hands_over = |slot: &usize| {
                let last = slots[*slot].taken.last();
                last.is_some_and(|(_, to, occupant)| self.hands_over(makers, (*to, *occupant), number))
            };
            let before =
                ends.range(span.first..=span.last).flat_map(|(_, ended)| ended).copied().filter(hands_over).min();
            let taken = (maker.at, maker.end, Occupant::Made(number));
            let slot = match before {
                Some(slot) => {
                    let end = slots[slot].taken.last().map_or(0, |(_, to, _)| *to);
                    ends.get_mut(&end).into_iter().for_each(|ended| ended.retain(|other| *other != slot));
                    slots[slot].taken.push(taken);
                    slot
                }
                None => {
                    slots.push(Slot { kind: maker.kind, taken: vec![taken] });
                    slots.len() - 1
                }
            };
            ends.entry(maker.end).or_default().push(slot);
        }
        slots
    }

    /// Whether what is in use to a position is read last by the maker, part by part.
    fn hands_over(&self, makers: &[Maker], (to, occupant): (u32, Occupant), number: usize) -> bool {
        let maker = makers[number];
        let span = self.facts.span(maker.op);
        let value = match occupant {
            Occupant::Own(value) => value,
            Occupant::Made(number) => makers[number].result,
        };
        let class = self.decisions.alias_class(value);
        let is_handed_over = |own: &ValueId| {
            self.decisions.alias_class(*own) == class
                && self.kinds[*own] == Some(maker.kind)
                && self.latest(value, maker) == Some(*own)
                && self.last_use_besides(value, Some((maker.op, *own))).is_some_and(|last| last < span.first)
        };
        span.contains(to) && self.own.of(maker.operand).iter().any(is_handed_over)
    }

    /// Whether one buffer can hold both, each while it is in use.
    fn are_apart(&self, makers: &[Maker], a: &(u32, u32, Occupant), b: &(u32, u32, Occupant)) -> bool {
        let (first, second) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        match second.2 {
            _ if first.1 < second.0 => true,
            Occupant::Made(number) => self.hands_over(makers, (first.1, first.2), number),
            Occupant::Own(_) => false,
        }
    }

    /// Puts a value into a slot that is free while it is needed; whether there is one.
    fn take(&self, slots: &mut [Slot], makers: &[Maker], number: usize) -> bool {
        let maker = makers[number];
        let own = (maker.at, maker.end, Occupant::Made(number));
        // Those in a slot are apart: of those before and behind one is next to the value.
        let place = |slot: &Slot| slot.taken.partition_point(|(from, ..)| *from < maker.at);
        let is_free = |slot: &&mut Slot| {
            let next = place(slot);
            let around = slot.taken[next.saturating_sub(1)..].iter().take(2);
            slot.kind == maker.kind && around.into_iter().all(|taken| self.are_apart(makers, taken, &own))
        };
        // The one that was in use most recently leaves the others to values that need them longer.
        let before = |slot: &&mut Slot| place(slot).checked_sub(1).map_or(0, |last| slot.taken[last].1);
        let Some(slot) = slots.iter_mut().filter(is_free).max_by_key(before) else { return false };
        let next = place(slot);
        slot.taken.insert(next, own);
        true
    }

    /// Each value of a slot in place of the new tensor of the next one.
    fn chains(&self, makers: &[Maker], slots: &[Slot]) -> Vec<Reuse> {
        let mut found = Vec::new();
        for slot in slots {
            for pair in slot.taken.windows(2) {
                let ((.., before), (.., Occupant::Made(number))) = (&pair[0], &pair[1]) else { continue };
                let maker = makers[*number];
                let value = match before {
                    Occupant::Own(value) => *value,
                    Occupant::Made(number) => makers[*number].result,
                };
                if let Some(value) = self.latest(value, maker) {
                    found.push(Reuse { operand: maker.operand, value });
                }
            }
        }
        found.sort_unstable_by_key(|reuse| reuse.operand);
        found
    }

    /// The value that holds the buffer last before the maker: an earlier one may be another buffer by then.
    fn latest(&self, value: ValueId, maker: Maker) -> Option<ValueId> {
        let place = |value: &ValueId| match self.facts.values()[*value].def {
            ValueDef::Argument(_) => 0,
            ValueDef::Result(op) => self.facts.span(op).first + 1,
        };
        let members = self.classes.of(self.decisions, value).iter().copied();
        // Parts of it, and values inside of regions, are not what is handed on.
        let whole = |member: &ValueId| {
            self.kinds[*member] == Some(maker.kind) && self.facts.defining_block(*member) == self.block
        };
        let known = members.filter(whole).filter(|member| self.facts.defining_op(*member) != Some(maker.op));
        known.max_by_key(place).filter(|member| place(member) <= maker.at && !self.is_empty(*member))
    }
}

/// The most bytes that are needed at once, of what is alive from a position to another one.
fn most_alive(spans: &[(u32, u32, u64)]) -> u64 {
    // Frees come behind the position that they are for.
    let made = spans.iter().map(|(at, _, bytes)| (*at, false, *bytes));
    let freed = spans.iter().map(|(at, end, bytes)| (*end.max(at), true, *bytes));
    let mut events: Vec<_> = made.chain(freed).collect();
    events.sort_unstable();
    let (mut alive, mut most) = (0u64, 0);
    for (_, is_free, bytes) in events {
        alive = if is_free { alive.saturating_sub(bytes) } else { alive.saturating_add(bytes) };
        most = most.max(alive);
    }
    most
}
