//! Which ops may remain after a conversion.

use crate::Op;
use std::collections::HashMap;
use std::fmt;

/// What a target says of an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Legality {
    /// May remain; no pattern is tried.
    Legal,
    /// Must go.
    Illegal,
    /// Nobody said. Patterns are tried; what none of them converts remains in partial mode and is an error in full mode.
    Unknown,
}

type Predicate<'t> = Box<dyn Fn(Op) -> bool + 't>;

enum Rule<'t> {
    Always(Legality),
    Dynamic(Predicate<'t>),
}

/// Legal and illegal ops and dialects. A rule for an op wins over one for its dialect; the last rule for a name wins.
pub struct ConversionTarget<'t> {
    ops: HashMap<String, Rule<'t>>,
    dialects: HashMap<String, Rule<'t>>,
    unknown: Rule<'t>,
}

impl Default for ConversionTarget<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ConversionTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.ops.keys().chain(self.dialects.keys()).collect();
        names.sort();
        f.debug_tuple("ConversionTarget").field(&names).finish()
    }
}

impl<'t> ConversionTarget<'t> {
    /// A target that leaves every op alone until told otherwise.
    pub fn new() -> Self {
        Self { ops: HashMap::new(), dialects: HashMap::new(), unknown: Rule::Always(Legality::Legal) }
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
    pub fn dynamically_legal_dialect(&mut self, dialect: &str, is_legal: impl Fn(Op) -> bool + 't) -> &mut Self {
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
    /// The op may remain where the predicate holds, and must go elsewhere. The predicate reads the op and what it holds only.
    pub fn dynamically_legal_op(&mut self, name: &str, is_legal: impl Fn(Op) -> bool + 't) -> &mut Self {
        self.ops.insert(name.to_owned(), Rule::Dynamic(Box::new(is_legal)));
        self
    }
    /// Whether ops that no rule names are legal (the default) or [`Legality::Unknown`].
    pub fn unknown_is_legal(&mut self, legal: bool) -> &mut Self {
        self.unknown = Rule::Always(if legal { Legality::Legal } else { Legality::Unknown });
        self
    }
    /// Ops that no rule names may remain where the predicate holds, and must go elsewhere.
    pub fn unknown_dynamically_legal(&mut self, is_legal: impl Fn(Op) -> bool + 't) -> &mut Self {
        self.unknown = Rule::Dynamic(Box::new(is_legal));
        self
    }
    /// What the target says of this op.
    pub fn legality(&self, op: Op) -> Legality {
        let rule = self.ops.get(op.name()).or_else(|| self.dialects.get(op.dialect())).unwrap_or(&self.unknown);
        match rule {
            Rule::Always(legality) => *legality,
            Rule::Dynamic(is_legal) if is_legal(op) => Legality::Legal,
            Rule::Dynamic(_) => Legality::Illegal,
        }
    }
}
