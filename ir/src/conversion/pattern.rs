//! Conversion patterns, and sets of them ordered by benefit and registration.

use super::ConversionRewriter;
use crate::{Diagnostic, Diagnostics, Op, Value};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

/// The operands of a pattern's op in their new types; the original ones are `op.operand(i)`.
#[derive(Clone, Copy, Debug)]
pub struct Adaptor<'a> {
    operands: &'a [Value],
}

impl<'a> Adaptor<'a> {
    pub(super) fn new(operands: &'a [Value]) -> Self {
        Self { operands }
    }
    /// Operand by position, seen through the driver's casts.
    pub fn operand(&self, index: usize) -> Value {
        self.operands[index]
    }
    /// All operands.
    pub fn operands(&self) -> &'a [Value] {
        self.operands
    }
}

/// Why a pattern did not convert an op.
#[derive(Clone, Debug)]
pub enum Declined {
    /// The pattern does not apply, for this reason, and has not touched the IR; the next pattern is tried.
    NoMatch(String),
    /// The conversion stops with these diagnostics.
    Failed(Diagnostics),
}

impl Declined {
    /// The pattern does not apply.
    pub fn no_match(reason: impl Into<String>) -> Self {
        Self::NoMatch(reason.into())
    }
}

impl From<Diagnostics> for Declined {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Failed(diagnostics)
    }
}

impl From<Diagnostic> for Declined {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Failed(diagnostic.into())
    }
}

/// Rewrites one kind of illegal op.
pub trait ConversionPattern {
    /// Name of the ops that it rewrites, or `*` for any.
    fn root(&self) -> &str;
    /// Patterns of a higher benefit are tried first, those of equal benefit in the order of registration.
    fn benefit(&self) -> u32 {
        1
    }
    /// Name for diagnostics.
    fn name(&self) -> String {
        let path = std::any::type_name::<Self>();
        path.rsplit("::").next().unwrap_or(path).to_owned()
    }
    /// Replaces, erases or changes `op`, through `rw` only; new ops go before `op` unless the pattern moves the insertion point.
    ///
    /// # Errors
    /// [`Declined::NoMatch`] with the IR untouched, or [`Declined::Failed`].
    fn rewrite(&self, op: Op, adaptor: &Adaptor<'_>, rw: &mut ConversionRewriter) -> Result<(), Declined>;
}

struct FnPattern<F> {
    root: String,
    rewrite: F,
}

impl<F: Fn(Op, &Adaptor<'_>, &mut ConversionRewriter) -> Result<(), Declined>> ConversionPattern for FnPattern<F> {
    fn root(&self) -> &str {
        &self.root
    }
    fn name(&self) -> String {
        format!("convert {}", self.root)
    }
    fn rewrite(&self, op: Op, adaptor: &Adaptor<'_>, rw: &mut ConversionRewriter) -> Result<(), Declined> {
        (self.rewrite)(op, adaptor, rw)
    }
}

/// Patterns by root.
#[derive(Default)]
pub struct PatternSet<'p> {
    patterns: Vec<Box<dyn ConversionPattern + 'p>>,
    by_root: HashMap<String, Vec<usize>>,
}

impl fmt::Debug for PatternSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.patterns.iter().map(|p| p.name())).finish()
    }
}

impl<'p> PatternSet<'p> {
    /// No patterns.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a pattern.
    pub fn add(&mut self, pattern: impl ConversionPattern + 'p) -> &mut Self {
        let of_root = self.by_root.entry(pattern.root().to_owned()).or_default();
        of_root.push(self.patterns.len());
        self.patterns.push(Box::new(pattern));
        // Stable: equal benefits keep the order of registration.
        of_root.sort_by_key(|i| Reverse(self.patterns[*i].benefit()));
        self
    }
    /// Adds a function as a pattern of benefit 1.
    pub fn add_fn<F>(&mut self, root: &str, rewrite: F) -> &mut Self
    where
        F: Fn(Op, &Adaptor<'_>, &mut ConversionRewriter) -> Result<(), Declined> + 'p,
    {
        self.add(FnPattern { root: root.to_owned(), rewrite })
    }
    pub(super) fn get(&self, index: usize) -> &(dyn ConversionPattern + 'p) {
        &*self.patterns[index]
    }
    /// Indices of the patterns for ops of this name, in the order in which they are tried.
    pub(super) fn of(&self, op_name: &str) -> Vec<usize> {
        let own = self.by_root.get(op_name).map_or(&[][..], Vec::as_slice);
        let any = self.by_root.get("*").map_or(&[][..], Vec::as_slice);
        if any.is_empty() {
            return own.to_vec();
        }
        let mut all: Vec<_> = own.iter().chain(any).copied().collect();
        all.sort_by_key(|i| (Reverse(self.patterns[*i].benefit()), *i));
        all
    }
}
