//! Rules and patterns by op name, looked up once per name.

use super::target::{Rule, legality_by};
use super::{ConversionTarget, Legality, PatternSet};
use crate::{HandleMap, Op};

/// Size of the direct-mapped cache of names.
const RECENT: usize = 64;

/// The rules and patterns for ops of one name.
pub(super) struct Kind<'c, 'a> {
    pub(super) name: &'c str,
    is_always_legal: bool,
    rule: &'a Rule<'c, 'a>,
    recursive: Option<&'a (dyn Fn(Op<'c>) -> bool + 'a)>,
    /// Patterns in the order in which they are tried.
    pub(super) patterns: Vec<u32>,
    /// Whether one of them reads the converted operands.
    pub(super) reads_adaptor: bool,
}

impl<'c> Kind<'c, '_> {
    /// Legal unconditionally.
    pub(super) fn is_always_legal(&self) -> bool {
        self.is_always_legal
    }
    /// Has a rule of recursive legality.
    pub(super) fn may_be_recursively_legal(&self) -> bool {
        self.recursive.is_some()
    }
    pub(super) fn legality(&self, op: Op<'c>) -> Legality {
        legality_by(self.rule, op)
    }
    pub(super) fn is_recursively_legal(&self, op: Op<'c>) -> bool {
        self.recursive.is_some_and(|holds| self.legality(op) == Legality::Legal && holds(op))
    }
}

/// Kinds by the address of the name, which MLIR uniques per context.
pub(super) struct Kinds<'c, 'a> {
    target: &'a ConversionTarget<'c, 'a>,
    patterns: &'a PatternSet<'c, 'a>,
    by_name: HandleMap<usize, u32>,
    kinds: Vec<Kind<'c, 'a>>,
    /// Direct-mapped cache by a few bits of the address.
    recent: [(usize, u32); RECENT],
}

impl<'c, 'a> Kinds<'c, 'a> {
    pub(super) fn new(target: &'a ConversionTarget<'c, 'a>, patterns: &'a PatternSet<'c, 'a>) -> Self {
        Self { target, patterns, by_name: HandleMap::default(), kinds: vec![], recent: [(0, 0); RECENT] }
    }
    /// The index of the op's kind.
    #[inline]
    pub(super) fn of(&mut self, op: Op<'c>) -> u32 {
        self.of_name(op.name_address(), op)
    }
    /// As [`Self::of`], with the address of the name.
    #[inline]
    pub(super) fn of_name(&mut self, address: usize, op: Op<'c>) -> u32 {
        let slot = (address >> 4) % RECENT;
        if self.recent[slot].0 != address {
            self.recent[slot] = (address, self.find(address, op));
        }
        self.recent[slot].1
    }
    #[cold]
    fn find(&mut self, address: usize, op: Op<'c>) -> u32 {
        if let Some(known) = self.by_name.get(&address) {
            return *known;
        }
        let name = op.name();
        let number = u32::try_from(self.kinds.len()).expect("names fit 32 bits");
        let rule = self.target.rule(name);
        let patterns = self.patterns.of(name);
        self.kinds.push(Kind {
            name,
            is_always_legal: matches!(rule, Rule::Always(Legality::Legal)),
            rule,
            recursive: self.target.recursive_rule(name),
            // Without a pattern, the diagnostic is that an operand has no converted type.
            reads_adaptor: patterns.is_empty() || patterns.iter().any(|i| self.patterns.get(*i).reads_adaptor()),
            patterns,
        });
        self.by_name.insert(address, number);
        number
    }
    #[inline]
    pub(super) fn get(&self, kind: u32) -> &Kind<'c, 'a> {
        &self.kinds[kind as usize]
    }
}
