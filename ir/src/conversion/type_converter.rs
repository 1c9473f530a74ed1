//! How types change: rules from a type, or a value, to the types that stand for it.

use super::ConversionRewriter;
use crate::{HandleMap, Location, Op, Region, Type, Value};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// How many types are remembered without a table.
const RECENT: usize = 16;

/// What a rule says of a type that it knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeConversion<'c> {
    /// One value of the old type becomes values of these types: one, several, or none. The type itself where it may stay.
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

/// Values in some types that are wanted in others, asked of a materialisation at the end of a conversion.
#[derive(Clone, Copy, Debug)]
pub struct Materialization<'c, 'a> {
    /// What there is.
    pub inputs: &'a [Value<'c>],
    /// What is wanted.
    pub types: &'a [Type<'c>],
    /// Where the values come from.
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

/// Rules for types, the last one that knows a type wins. Optional: the driver converts without one, and patterns may choose types themselves.
#[derive(Default)]
pub struct TypeConverter<'c, 't> {
    rules: Vec<Rule<'c, 't>>,
    reads_values: bool,
    source: Vec<Materialize<'c, 't>>,
    target: Vec<Materialize<'c, 't>>,
    known: RefCell<HandleMap<Type<'c>, Option<Rc<[Type<'c>]>>>>,
    /// Answers of one type, by a few bits of the address: there are few types, and each is asked for often.
    recent: [Cell<Option<(Type<'c>, Type<'c>)>>; RECENT],
}

impl fmt::Debug for TypeConverter<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeConverter").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}

impl<'c, 't> TypeConverter<'c, 't> {
    /// Knows no type: every type is illegal until a rule says otherwise.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a rule; `None` where it does not know the type.
    pub fn add(&mut self, rule: impl Fn(Type<'c>) -> Option<TypeConversion<'c>> + 't) -> &mut Self {
        self.rules.push(Rule::ByType(Box::new(rule)));
        self.forget();
        self
    }
    fn forget(&mut self) {
        self.known.get_mut().clear();
        self.recent = Default::default();
    }
    /// Adds a rule that looks at the value, not only at its type. Types without a value pass it by.
    pub fn add_for_values(&mut self, rule: impl Fn(Value<'c>) -> Option<TypeConversion<'c>> + 't) -> &mut Self {
        self.rules.push(Rule::ByValue(Box::new(rule)));
        self.reads_values = true;
        self
    }
    /// All types stay that no later rule takes.
    pub fn keep_others(&mut self) -> &mut Self {
        self.rules.insert(0, Rule::ByType(Box::new(|ty| Some(TypeConversion::one(ty)))));
        self.forget();
        self
    }
    /// How a value of an old type is made of converted ones, for the users that are not converted.
    /// Asked, the last one first, for what is left at the end of a conversion.
    pub fn add_source_materialization(
        &mut self,
        make: impl Fn(&mut ConversionRewriter<'c>, &Materialization<'c, '_>) -> Option<Vec<Value<'c>>> + 't,
    ) -> &mut Self {
        self.source.push(Box::new(make));
        self
    }
    /// How converted values are made of one that keeps its old type, for the users that are converted.
    pub fn add_target_materialization(
        &mut self,
        make: impl Fn(&mut ConversionRewriter<'c>, &Materialization<'c, '_>) -> Option<Vec<Value<'c>>> + 't,
    ) -> &mut Self {
        self.target.push(Box::new(make));
        self
    }

    /// The types that stand for this one; `None` for a type that cannot be converted.
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
    /// The types that stand for a value.
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
    /// The one type that stands for this one; `None` where there is none, or more.
    pub fn convert_to_one(&self, ty: Type<'c>) -> Option<Type<'c>> {
        let slot = &self.recent[(ty.raw().ptr as usize >> 4) % RECENT];
        if let Some((_, to)) = slot.get().filter(|(from, _)| *from == ty) {
            return Some(to);
        }
        let [to] = self.convert(ty)?[..] else { return None };
        slot.set(Some((ty, to)));
        Some(to)
    }
    /// As [`Self::convert_to_one`], where no rule looks at values.
    pub(super) fn convert_by_type(&self, ty: Type<'c>) -> Option<Type<'c>> {
        if self.reads_values { None } else { self.convert_to_one(ty) }
    }
    /// The types for a list of types, one after the other.
    pub fn convert_all(&self, types: &[Type<'c>]) -> Option<Vec<Type<'c>>> {
        let mut out = Vec::with_capacity(types.len());
        for ty in types {
            out.extend_from_slice(&self.convert(*ty)?);
        }
        Some(out)
    }
    /// Whether the type stays as it is.
    pub fn is_legal(&self, ty: Type<'c>) -> bool {
        self.convert_to_one(ty) == Some(ty)
    }
    /// Whether a value keeps its type.
    pub fn is_legal_value(&self, value: Value<'c>) -> bool {
        if !self.reads_values {
            return self.is_legal(value.ty());
        }
        self.convert_value(value).is_some_and(|types| *types == [value.ty()])
    }
    /// Whether the types of all operands and results stay.
    pub fn is_legal_op(&self, op: Op<'c>) -> bool {
        (0..op.num_operands()).all(|i| self.is_legal_value(op.operand(i)))
            && (0..op.num_results()).all(|i| self.is_legal_value(op.result(i)))
    }
    /// Whether the types of all block arguments stay.
    pub fn is_legal_region(&self, region: Region<'c>) -> bool {
        region.blocks().iter().all(|block| (0..block.num_args()).all(|i| self.is_legal_value(block.arg(i))))
    }
    /// Whether all inputs and results of a function stay.
    pub fn is_legal_signature(&self, function: Op<'c>) -> bool {
        let Some((inputs, results)) = function.function_type() else { return true };
        inputs.iter().chain(&results).all(|ty| self.is_legal(*ty))
    }

    /// Whether some cast may be replaced at the end.
    pub(super) fn materializes(&self) -> bool {
        !self.source.is_empty() || !self.target.is_empty()
    }
    /// Asks the materialisations of one direction.
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
