//! Conversion targets: the legality of ops.

use crate::Op;
use std::collections::HashMap;
use std::fmt;

/// The legality of an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Legality {
    /// May remain; no pattern is tried.
    Legal,
    /// Must go.
    Illegal,
    /// No rule applies. Patterns are tried; ops that none converts remain in partial mode and are errors in full mode.
    Unknown,
}

type Predicate<'c, 't> = Box<dyn Fn(Op<'c>) -> bool + 't>;

/// The rule for an op or dialect name.
pub(super) enum Rule<'c, 't> {
    Always(Legality),
    Dynamic(Predicate<'c, 't>),
    Asked(Box<dyn Fn(Op<'c>) -> Legality + 't>),
}

/// Legal and illegal ops and dialects. A rule for an op wins over one for its dialect; the last rule for a name wins.
pub struct ConversionTarget<'c, 't> {
    ops: HashMap<String, Rule<'c, 't>>,
    dialects: HashMap<String, Rule<'c, 't>>,
    unknown: Rule<'c, 't>,
    /// Recursive legality: all ops nested in such an op are legal where it is legal and the predicate holds.
    recursive: HashMap<String, Predicate<'c, 't>>,
}

impl Default for ConversionTarget<'_, '_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ConversionTarget<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.ops.keys().chain(self.dialects.keys()).collect();
        names.sort();
        f.debug_tuple("ConversionTarget").field(&names).finish()
    }
}

impl<'c, 't> ConversionTarget<'c, 't> {
    /// A target for which every op is legal.
    pub fn new() -> Self {
        Self {
            ops: HashMap::new(),
            dialects: HashMap::new(),
            unknown: Rule::Always(Legality::Legal),
            recursive: HashMap::new(),
        }
    }
    /// All ops of the dialect may remain.
    pub fn legal_dialect(&mut self, dialect: &str) -> &mut Self {
        self.dialects.insert(dialect.to_owned(), Rule::Always(Legality::Legal));
        self
    }
    /// All ops of the dialect must go.
    pub fn illegal_dialect(&mut self, dialect: &str) -> &mut Self {
        self.dialects.insert(dialect.to_owned(), Rule::Always(Legality::Illegal));
        self
    }
    /// Ops of the dialect may remain where the predicate holds, and must go elsewhere.
    pub fn dynamically_legal_dialect(&mut self, dialect: &str, is_legal: impl Fn(Op<'c>) -> bool + 't) -> &mut Self {
        self.dialects.insert(dialect.to_owned(), Rule::Dynamic(Box::new(is_legal)));
        self
    }
    /// The op may remain.
    pub fn legal_op(&mut self, name: &str) -> &mut Self {
        self.ops.insert(name.to_owned(), Rule::Always(Legality::Legal));
        self
    }
    /// The op must go.
    pub fn illegal_op(&mut self, name: &str) -> &mut Self {
        self.ops.insert(name.to_owned(), Rule::Always(Legality::Illegal));
        self
    }
    /// The op may remain where the predicate holds, and must go elsewhere. The predicate reads only the op and its nested ops.
    pub fn dynamically_legal_op(&mut self, name: &str, is_legal: impl Fn(Op<'c>) -> bool + 't) -> &mut Self {
        self.ops.insert(name.to_owned(), Rule::Dynamic(Box::new(is_legal)));
        self
    }
    /// If an op of this name is legal, all ops nested in it are legal too, whatever the target's other rules.
    pub fn recursively_legal_op(&mut self, name: &str) -> &mut Self {
        self.recursively_legal_op_if(name, |_| true)
    }
    /// If an op of this name is legal and the predicate holds, all ops nested in it are legal too.
    pub fn recursively_legal_op_if(&mut self, name: &str, holds: impl Fn(Op<'c>) -> bool + 't) -> &mut Self {
        self.recursive.insert(name.to_owned(), Box::new(holds));
        self
    }
    /// Whether ops that no rule names are legal (the default) or [`Legality::Unknown`].
    pub fn unknown_is_legal(&mut self, legal: bool) -> &mut Self {
        self.unknown = Rule::Always(if legal { Legality::Legal } else { Legality::Unknown });
        self
    }
    /// Ops that no rule names may remain where the predicate holds, and must go elsewhere.
    pub fn unknown_dynamically_legal(&mut self, is_legal: impl Fn(Op<'c>) -> bool + 't) -> &mut Self {
        self.unknown = Rule::Dynamic(Box::new(is_legal));
        self
    }

    /// The legality of ops that no rule names, by a callback.
    pub fn unknown_is(&mut self, legality: impl Fn(Op<'c>) -> Legality + 't) -> &mut Self {
        self.unknown = Rule::Asked(Box::new(legality));
        self
    }

    /// The legality of this op, enclosing ops not considered.
    pub fn legality(&self, op: Op<'c>) -> Legality {
        legality_by(self.rule(op.name()), op)
    }
    /// Whether the op is legal together with all ops nested in it.
    pub fn is_recursively_legal(&self, op: Op<'c>) -> bool {
        self.recursive_rule(op.name()).is_some_and(|holds| self.legality(op) == Legality::Legal && holds(op))
    }
    /// Whether any rule gives recursive legality.
    pub(super) fn has_recursive_rules(&self) -> bool {
        !self.recursive.is_empty()
    }
    /// The enclosing op that makes this one recursively legal, if any.
    #[inline]
    pub(super) fn recursively_legal_around(&self, op: Op<'c>) -> Option<Op<'c>> {
        if self.recursive.is_empty() { None } else { self.find_around(op) }
    }
    fn find_around(&self, op: Op<'c>) -> Option<Op<'c>> {
        let mut around = op.parent();
        while let Some(op) = around.filter(|op| !self.is_recursively_legal(*op)) {
            around = op.parent();
        }
        around
    }
    pub(super) fn rule(&self, op_name: &str) -> &Rule<'c, 't> {
        let dialect = || op_name.split_once('.').map_or("builtin", |(dialect, _)| dialect);
        self.ops.get(op_name).or_else(|| self.dialects.get(dialect())).unwrap_or(&self.unknown)
    }
    pub(super) fn recursive_rule(&self, op_name: &str) -> Option<&(dyn Fn(Op<'c>) -> bool + 't)> {
        self.recursive.get(op_name).map(|holds| &**holds)
    }
}

pub(super) fn legality_by<'c>(rule: &Rule<'c, '_>, op: Op<'c>) -> Legality {
    match rule {
        Rule::Always(legality) => *legality,
        Rule::Dynamic(is_legal) if is_legal(op) => Legality::Legal,
        Rule::Dynamic(_) => Legality::Illegal,
        Rule::Asked(legality) => legality(op),
    }
}
