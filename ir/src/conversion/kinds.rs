//! What a conversion knows of an op's name, looked up once per name and not once per op.

use super::target::{Rule, legality_by};
use super::{ConversionTarget, Legality, PatternSet};
use crate::{HandleMap, Op};

/// How many names are remembered without a table.
const RECENT: usize = 64;

/// The rules and patterns for ops of one name.
pub(super) struct Kind<'a> {
    pub(super) name: &'static str,
    rule: &'a Rule<'a>,
    recursive: Option<&'a (dyn Fn(Op) -> bool + 'a)>,
    /// Patterns in the order in which they are tried.
    pub(super) patterns: Vec<u32>,
}

impl Kind<'_> {
    /// Legal wherever it stands: nothing needs to be asked of the op.
    pub(super) fn is_always_legal(&self) -> bool {
        matches!(self.rule, Rule::Always(Legality::Legal))
    }
    /// May make what it holds legal.
    pub(super) fn may_be_recursively_legal(&self) -> bool {
        self.recursive.is_some()
    }
    pub(super) fn legality(&self, op: Op) -> Legality {
        legality_by(self.rule, op)
    }
    pub(super) fn is_recursively_legal(&self, op: Op) -> bool {
        self.recursive.is_some_and(|holds| self.legality(op) == Legality::Legal && holds(op))
    }
}

/// Kinds by the address of the name: MLIR keeps each name once per context.
pub(super) struct Kinds<'a> {
    target: &'a ConversionTarget<'a>,
    patterns: &'a PatternSet<'a>,
    by_name: HandleMap<usize, u32>,
    kinds: Vec<Kind<'a>>,
    /// Answers by a few bits of the address: there are few names, and each is asked for often.
    recent: [(usize, u32); RECENT],
}

impl<'a> Kinds<'a> {
    pub(super) fn new(target: &'a ConversionTarget<'a>, patterns: &'a PatternSet<'a>) -> Self {
        Self { target, patterns, by_name: HandleMap::default(), kinds: vec![], recent: [(0, 0); RECENT] }
    }
    /// The number of the op's kind.
    pub(super) fn of(&mut self, op: Op) -> u32 {
        self.of_name(op.name_address(), op)
    }
    /// As [`Self::of`], with the address of the name.
    pub(super) fn of_name(&mut self, address: usize, op: Op) -> u32 {
        let slot = (address >> 4) % RECENT;
        if self.recent[slot].0 != address {
            self.recent[slot] = (address, self.find(address, op));
        }
        self.recent[slot].1
    }
    fn find(&mut self, address: usize, op: Op) -> u32 {
        if let Some(known) = self.by_name.get(&address) {
            return *known;
        }
        let name = op.name();
        let number = u32::try_from(self.kinds.len()).expect("names fit 32 bits");
        self.kinds.push(Kind {
            name,
            rule: self.target.rule(name),
            recursive: self.target.recursive_rule(name),
            patterns: self.patterns.of(name),
        });
        self.by_name.insert(address, number);
        number
    }
    pub(super) fn get(&self, kind: u32) -> &Kind<'a> {
        &self.kinds[kind as usize]
    }
}
