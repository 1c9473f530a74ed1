//! Type conversion: rules from a type, or a value, to its converted types.

use super::ConversionRewriter;
use crate::{HandleMap, Location, Op, Region, Type, Value};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// Size of the direct-mapped cache of types.
const RECENT: usize = 16;

/// The conversion of a type by a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeConversion<'c> {
    /// One value of the old type becomes values of these types: one, several, or none. A legal type converts to itself.
    To(Vec<Type<'c>>),
    /// No value of this type can be converted.
    Illegal,
}

impl<'c> TypeConversion<'c> {
    /// To one type.
    pub fn one(ty: Type<'c>) -> Self {
        Self::To(vec![ty])
    }
}

/// A request to a materialization callback, at the end of a conversion.
#[derive(Clone, Copy, Debug)]
pub struct Materialization<'c, 'a> {
    /// The values at hand.
    pub inputs: &'a [Value<'c>],
    /// The requested types.
    pub types: &'a [Type<'c>],
    /// The location for new ops.
    pub location: Location<'c>,
}

type ByType<'c, 't> = Box<dyn Fn(Type<'c>) -> Option<TypeConversion<'c>> + 't>;
type ByValue<'c, 't> = Box<dyn Fn(Value<'c>) -> Option<TypeConversion<'c>> + 't>;
type Materialize<'c, 't> =
    Box<dyn Fn(&mut ConversionRewriter<'c>, &Materialization<'c, '_>) -> Option<Vec<Value<'c>>> + 't>;

enum Rule<'c, 't> {
    ByType(ByType<'c, 't>),
    ByValue(ByValue<'c, 't>),
}

/// Conversion rules; the last rule that knows a type wins. Optional: the driver converts without one, and patterns may choose types themselves.
#[derive(Default)]
pub struct TypeConverter<'c, 't> {
    rules: Vec<Rule<'c, 't>>,
    reads_values: bool,
    source: Vec<Materialize<'c, 't>>,
    target: Vec<Materialize<'c, 't>>,
    known: RefCell<HandleMap<Type<'c>, Option<Rc<[Type<'c>]>>>>,
    /// Direct-mapped cache of 1:1 conversions, by a few bits of the address.
    recent: [Cell<Option<(Type<'c>, Type<'c>)>>; RECENT],
}

impl fmt::Debug for TypeConverter<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeConverter").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}

impl<'c, 't> TypeConverter<'c, 't> {
    /// Without rules every type is illegal.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a rule; it returns `None` for a type that it does not know.
    pub fn add(&mut self, rule: impl Fn(Type<'c>) -> Option<TypeConversion<'c>> + 't) -> &mut Self {
        self.rules.push(Rule::ByType(Box::new(rule)));
        self.forget();
        self
    }
    fn forget(&mut self) {
        self.known.get_mut().clear();
        self.recent = Default::default();
    }
    /// Adds a rule that reads the value, not only its type. It is skipped for types without a value.
    pub fn add_for_values(&mut self, rule: impl Fn(Value<'c>) -> Option<TypeConversion<'c>> + 't) -> &mut Self {
        self.rules.push(Rule::ByValue(Box::new(rule)));
        self.reads_values = true;
        self
    }
    /// Makes all types legal that no later rule converts.
    pub fn keep_others(&mut self) -> &mut Self {
        self.rules.insert(0, Rule::ByType(Box::new(|ty| Some(TypeConversion::one(ty)))));
        self.forget();
        self
    }
    /// Builds a value of an old type from converted ones, for users that are not converted.
    /// The last callback is tried first, for the casts left at the end of a conversion.
    pub fn add_source_materialization(
        &mut self,
        make: impl Fn(&mut ConversionRewriter<'c>, &Materialization<'c, '_>) -> Option<Vec<Value<'c>>> + 't,
    ) -> &mut Self {
        self.source.push(Box::new(make));
        self
    }
    /// Builds converted values from one that keeps its old type, for users that are converted.
    pub fn add_target_materialization(
        &mut self,
        make: impl Fn(&mut ConversionRewriter<'c>, &Materialization<'c, '_>) -> Option<Vec<Value<'c>>> + 't,
    ) -> &mut Self {
        self.target.push(Box::new(make));
        self
    }

    /// The converted types; `None` for a type that cannot be converted.
    pub fn convert(&self, ty: Type<'c>) -> Option<Rc<[Type<'c>]>> {
        if let Some(known) = self.known.borrow().get(&ty) {
            return known.clone();
        }
        let mut by_type = self.rules.iter().rev().filter_map(|rule| match rule {
            Rule::ByType(rule) => rule(ty),
            Rule::ByValue(_) => None,
        });
        let types = types_of(by_type.next());
        self.known.borrow_mut().insert(ty, types.clone());
        types
    }
    /// The converted types of a value.
    pub fn convert_value(&self, value: Value<'c>) -> Option<Rc<[Type<'c>]>> {
        if !self.reads_values {
            return self.convert(value.ty());
        }
        let mut rules = self.rules.iter().rev().filter_map(|rule| match rule {
            Rule::ByType(rule) => rule(value.ty()),
            Rule::ByValue(rule) => rule(value),
        });
        types_of(rules.next())
    }
    /// The one converted type; `None` unless there is exactly one.
    pub fn convert_to_one(&self, ty: Type<'c>) -> Option<Type<'c>> {
        let slot = &self.recent[(ty.raw().ptr as usize >> 4) % RECENT];
        if let Some((_, to)) = slot.get().filter(|(from, _)| *from == ty) {
            return Some(to);
        }
        let [to] = self.convert(ty)?[..] else { return None };
        slot.set(Some((ty, to)));
        Some(to)
    }
    /// As [`Self::convert_to_one`]; `None` if a rule reads values.
    pub(super) fn convert_by_type(&self, ty: Type<'c>) -> Option<Type<'c>> {
        if self.reads_values { None } else { self.convert_to_one(ty) }
    }
    /// The converted types of a list, concatenated.
    pub fn convert_all(&self, types: &[Type<'c>]) -> Option<Vec<Type<'c>>> {
        let mut out = Vec::with_capacity(types.len());
        for ty in types {
            out.extend_from_slice(&self.convert(*ty)?);
        }
        Some(out)
    }
    /// Whether the type converts to itself.
    pub fn is_legal(&self, ty: Type<'c>) -> bool {
        self.convert_to_one(ty) == Some(ty)
    }
    /// Whether the value's type converts to itself.
    pub fn is_legal_value(&self, value: Value<'c>) -> bool {
        if !self.reads_values {
            return self.is_legal(value.ty());
        }
        self.convert_value(value).is_some_and(|types| *types == [value.ty()])
    }
    /// Whether the types of all operands and results are legal.
    pub fn is_legal_op(&self, op: Op<'c>) -> bool {
        (0..op.num_operands()).all(|i| self.is_legal_value(op.operand(i)))
            && (0..op.num_results()).all(|i| self.is_legal_value(op.result(i)))
    }
    /// Whether the types of all block arguments are legal.
    pub fn is_legal_region(&self, region: Region<'c>) -> bool {
        region.blocks().iter().all(|block| (0..block.num_args()).all(|i| self.is_legal_value(block.arg(i))))
    }
    /// Whether all inputs and results of a function are legal.
    pub fn is_legal_signature(&self, function: Op<'c>) -> bool {
        let Some((inputs, results)) = function.function_type() else { return true };
        inputs.iter().chain(&results).all(|ty| self.is_legal(*ty))
    }

    /// Whether there are materialization callbacks.
    pub(super) fn materializes(&self) -> bool {
        !self.source.is_empty() || !self.target.is_empty()
    }
    /// Calls the materialization callbacks of one direction.
    pub(super) fn materialize(
        &self,
        rw: &mut ConversionRewriter<'c>,
        to_old: bool,
        wanted: &Materialization<'c, '_>,
    ) -> Option<Vec<Value<'c>>> {
        let all = if to_old { &self.source } else { &self.target };
        all.iter().rev().find_map(|make| make(rw, wanted))
    }
}

fn types_of<'c>(conversion: Option<TypeConversion<'c>>) -> Option<Rc<[Type<'c>]>> {
    match conversion? {
        TypeConversion::To(types) => Some(types.into()),
        TypeConversion::Illegal => None,
    }
}
