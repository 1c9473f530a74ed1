//! Conversion patterns, and sets of them ordered by benefit and registration.

use super::{ConversionRewriter, TypeConverter};
use crate::{Diagnostic, Diagnostics, Op, Value};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

/// The converted operands of a pattern's op; the original ones are `op.operand(i)`.
///
/// With a type converter, they have the types that it gives them. Without, each is the newest value that replaced the operand.
#[derive(Clone, Copy, Debug)]
pub struct Adaptor<'c, 'a> {
    values: &'a [Value<'c>],
    /// Where the values of each operand end; empty where each operand has one.
    ends: &'a [usize],
}

impl<'c, 'a> Adaptor<'c, 'a> {
    pub(super) fn new(values: &'a [Value<'c>], ends: &'a [usize]) -> Self {
        Self { values, ends }
    }
    /// The converted value of an operand, behind the driver's casts.
    ///
    /// # Panics
    /// If the operand converted 1:N, which only a pattern that [accepts](ConversionPattern::accepts_one_to_many) those meets.
    pub fn operand(&self, index: usize) -> Value<'c> {
        let values = self.operand_values(index);
        assert!(values.len() == 1, "one value stands for operand {index}: the pattern does not accept several");
        values[0]
    }
    /// The converted values of an operand: one, several, or none.
    pub fn operand_values(&self, index: usize) -> &'a [Value<'c>] {
        if self.ends.is_empty() {
            return &self.values[index..=index];
        }
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[index]]
    }
    /// The converted values of all operands, in order.
    pub fn operands(&self) -> &'a [Value<'c>] {
        self.values
    }
    /// Whether every operand converted 1:1.
    pub fn is_one_to_one(&self) -> bool {
        self.ends.is_empty()
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
pub trait ConversionPattern<'c> {
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
    /// Whether the pattern reads [`Adaptor::operand_values`]. One that does not is skipped for ops with an operand that converted
    /// 1:N or 1:0.
    fn accepts_one_to_many(&self) -> bool {
        false
    }
    /// Whether the pattern reads the adaptor. If no tried pattern does, no operand is cast to its new type and none need exist:
    /// the adaptor is empty then.
    fn reads_adaptor(&self) -> bool {
        true
    }
    /// Replaces, erases or modifies `op`, through `rw` only; new ops go before `op` unless the pattern moves the insertion point.
    /// It may erase `op`, ops nested in it, and ops that it created; no others.
    ///
    /// # Errors
    /// [`Declined::NoMatch`] with the IR untouched, or [`Declined::Failed`].
    fn rewrite(&self, op: Op<'c>, adaptor: &Adaptor<'c, '_>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined>;
}

struct FnPattern<F> {
    root: String,
    rewrite: F,
    accepts_one_to_many: bool,
}

impl<'c, F: Fn(Op<'c>, &Adaptor<'c, '_>, &mut ConversionRewriter<'c>) -> Result<(), Declined>> ConversionPattern<'c>
    for FnPattern<F>
{
    fn root(&self) -> &str {
        &self.root
    }
    fn name(&self) -> String {
        format!("convert {}", self.root)
    }
    fn accepts_one_to_many(&self) -> bool {
        self.accepts_one_to_many
    }
    fn rewrite(&self, op: Op<'c>, adaptor: &Adaptor<'c, '_>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
        (self.rewrite)(op, adaptor, rw)
    }
}

/// A function that reads the op but no adaptor.
struct OpPattern<F> {
    root: String,
    rewrite: F,
}

impl<'c, F: Fn(Op<'c>, &mut ConversionRewriter<'c>) -> Result<(), Declined>> ConversionPattern<'c> for OpPattern<F> {
    fn root(&self) -> &str {
        &self.root
    }
    fn name(&self) -> String {
        format!("convert {}", self.root)
    }
    fn accepts_one_to_many(&self) -> bool {
        true
    }
    fn reads_adaptor(&self) -> bool {
        false
    }
    fn rewrite(&self, op: Op<'c>, _: &Adaptor<'c, '_>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
        (self.rewrite)(op, rw)
    }
}

/// Patterns by root, and the type converter that they share.
#[derive(Default)]
pub struct PatternSet<'c, 'p> {
    patterns: Vec<Box<dyn ConversionPattern<'c> + 'p>>,
    by_root: HashMap<String, Vec<u32>>,
    converter: Option<&'p TypeConverter<'c, 'p>>,
    is_confined: bool,
}

impl fmt::Debug for PatternSet<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.patterns.iter().map(|p| p.name())).finish()
    }
}

impl<'c, 'p> PatternSet<'c, 'p> {
    /// No patterns.
    pub fn new() -> Self {
        Self::default()
    }
    /// No patterns; adaptors have operands in the types that the converter gives.
    pub fn with_converter(converter: &'p TypeConverter<'c, 'p>) -> Self {
        Self { converter: Some(converter), ..Self::default() }
    }
    /// The type converter, if there is one.
    pub fn converter(&self) -> Option<&'p TypeConverter<'c, 'p>> {
        self.converter
    }
    /// Promises that each pattern reads and changes only the op of the root's blocks that holds its own op: one function of a module.
    /// The driver then collects illegal ops one such op at a time, which keeps them in the caches until they are converted: on a
    /// million ops that saves a tenth to a fifth. A broken promise leaves illegal ops behind, which debug builds report (I0012).
    pub fn confine(&mut self) -> &mut Self {
        self.is_confined = true;
        self
    }
    pub(super) fn is_confined(&self) -> bool {
        self.is_confined
    }
    /// Adds a pattern.
    pub fn add(&mut self, pattern: impl ConversionPattern<'c> + 'p) -> &mut Self {
        let of_root = self.by_root.entry(pattern.root().to_owned()).or_default();
        of_root.push(u32::try_from(self.patterns.len()).expect("patterns fit 32 bits"));
        self.patterns.push(Box::new(pattern));
        // Stable: equal benefits keep the order of registration.
        of_root.sort_by_key(|i| Reverse(self.patterns[*i as usize].benefit()));
        self
    }
    /// Adds a function as a pattern of benefit 1.
    pub fn add_fn<F>(&mut self, root: &str, rewrite: F) -> &mut Self
    where
        F: Fn(Op<'c>, &Adaptor<'c, '_>, &mut ConversionRewriter<'c>) -> Result<(), Declined> + 'p,
    {
        self.add(FnPattern { root: root.to_owned(), rewrite, accepts_one_to_many: false })
    }
    /// As [`Self::add_fn`], for a function that reads [`Adaptor::operand_values`].
    pub fn add_one_to_many_fn<F>(&mut self, root: &str, rewrite: F) -> &mut Self
    where
        F: Fn(Op<'c>, &Adaptor<'c, '_>, &mut ConversionRewriter<'c>) -> Result<(), Declined> + 'p,
    {
        self.add(FnPattern { root: root.to_owned(), rewrite, accepts_one_to_many: true })
    }
    /// As [`Self::add_fn`], for a function that reads the op's original operands and no adaptor.
    pub fn add_op_fn<F>(&mut self, root: &str, rewrite: F) -> &mut Self
    where
        F: Fn(Op<'c>, &mut ConversionRewriter<'c>) -> Result<(), Declined> + 'p,
    {
        self.add(OpPattern { root: root.to_owned(), rewrite })
    }
    pub(super) fn get(&self, index: u32) -> &(dyn ConversionPattern<'c> + 'p) {
        &*self.patterns[index as usize]
    }
    /// The patterns for ops of this name, in the order in which they are tried.
    pub(super) fn of(&self, op_name: &str) -> Vec<u32> {
        let of_root = |root: &str| self.by_root.get(root).map_or(&[][..], Vec::as_slice);
        let mut all: Vec<u32> = of_root(op_name).iter().chain(of_root("*")).copied().collect();
        all.sort_by_key(|i| (Reverse(self.get(*i).benefit()), *i));
        all
    }
}
