//! Patterns as data, and their interpretation by the driver's rewriter. Each reads its op and adaptor only.

use super::model::{TYPES, Ty, ty_of};
use monopour_ir::conversion::{
    Adaptor, ConversionPattern, ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet, TypeConversion,
    TypeConverter,
};
use monopour_ir::{Attr, Block, Context, InsertionPoint, Op, OpSpec, Region, Type, Value};

/// Values for a new op or as replacements of a result. Indices wrap around; from an empty list there is none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pick {
    /// The adaptor's values of an operand.
    New(usize),
    /// An original operand.
    Old(usize),
    /// A result of an op that the pattern made.
    Step(usize, usize),
}

#[derive(Clone, Debug)]
pub(super) enum Types {
    Fixed(Vec<Ty>),
    /// The types of the op's results.
    Like,
    /// The converted types of the op's results.
    Converted,
}

/// An op that a pattern makes.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) k: i64,
    pub(super) operands: Vec<Pick>,
    pub(super) types: Types,
    /// Ops in a region of it.
    pub(super) inner: Vec<Step>,
}

/// The replacements of the results.
#[derive(Clone, Debug)]
pub(super) enum With {
    /// The results of the last step, which has the types `Like` or `Converted`.
    Last,
    /// One pick per result, in turn.
    Picks(Vec<Pick>),
}

/// The new owner of the op's regions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Regions {
    Drop,
    /// To the first step.
    Move,
    /// To the first step, with the types of block arguments converted.
    Convert,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Build {
        steps: Vec<Step>,
        with: With,
        regions: Regions,
    },
    /// Counts the attribute `k` down; sets operands on the way.
    InPlace(Vec<(usize, Pick)>),
    /// Converts the signatures of a function and its blocks, and counts `k` down: a converter may change its own results.
    Signature,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    Always,
    KIs(i64),
    FirstOperandIs(Ty),
    Results(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) name: String,
    pub(super) root: String,
    pub(super) benefit: u32,
    pub(super) accepts_one_to_many: bool,
    pub(super) when: When,
    pub(super) action: Action,
}

/// The legality of an op.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    Legal,
    Illegal,
    /// Where `k` is 0 or missing.
    Counted,
    /// Where no operand has this type.
    NoOperand(Ty),
}

/// The conversion of each type; `None` for one that cannot be converted.
pub(super) type Conversions = Vec<Option<Vec<Ty>>>;

#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The converter keeps its result types, every op can be converted, and all results get the converter's types.
    pub(super) is_tame: bool,
    pub(super) conversions: Option<Conversions>,
    pub(super) rules: Vec<(String, Rule)>,
    /// The rule for the dialect of the random ops.
    pub(super) dialect: Option<Rule>,
    pub(super) unknown_is_legal: bool,
    pub(super) recipes: Vec<Recipe>,
    pub(super) mode: Mode,
}

/// Ops of this name are recursively legal where they are legal.
pub(super) const RECURSIVE: &str = "t.recursive";

/// The properties of an op that rules and conditions read.
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) k: i64,
    pub(super) operands: Vec<Ty>,
    pub(super) results: Vec<Ty>,
    /// Types of the block arguments in its regions.
    pub(super) args: Vec<Ty>,
}

impl Case {
    pub(super) fn convert(&self, ty: Ty) -> Option<Vec<Ty>> {
        let Some(conversions) = &self.conversions else { return Some(vec![ty]) };
        conversions[TYPES.iter().position(|t| *t == ty).expect("a type of the table")].clone()
    }
    fn convert_all(&self, types: &[Ty]) -> Option<Vec<Ty>> {
        Some(types.iter().map(|ty| self.convert(ty)).collect::<Option<Vec<_>>>()?.concat())
    }
    pub(super) fn holds(&self, rule: Rule, facts: &Facts) -> bool {
        match rule {
            Rule::Legal => true,
            Rule::Illegal => false,
            Rule::Counted => facts.k <= 0,
            Rule::NoOperand(ty) => !facts.operands.contains(&ty),
        }
    }
    /// The reason why a recipe does not apply.
    pub(super) fn declines(&self, recipe: &Recipe, facts: &Facts) -> Option<String> {
        let is_met = match recipe.when {
            When::Always => true,
            When::KIs(k) => facts.k == k,
            When::FirstOperandIs(ty) => facts.operands.first() == Some(&ty),
            When::Results(n) => facts.results.len() == n,
        };
        if !is_met {
            return Some(format!("not {:?}", recipe.when));
        }
        if recipe.root == "*" && !facts.name.starts_with("t.op") {
            return Some("none of its ops".to_owned());
        }
        let must_convert = |types: &[Ty]| self.convert_all(types).is_none().then(|| "a type is illegal".to_owned());
        match &recipe.action {
            Action::InPlace(_) => (facts.k <= 0).then(|| "k is down".to_owned()),
            Action::Signature => must_convert(&facts.args),
            Action::Build { steps, with, regions } => {
                if steps.iter().any(|step| step.name == facts.name) {
                    return Some("makes itself".to_owned());
                }
                let converts_results = steps.iter().any(|step| matches!(step.types, Types::Converted));
                let results = must_convert(&facts.results).filter(|_| converts_results);
                let illegal = results.or_else(|| must_convert(&facts.args).filter(|_| *regions == Regions::Convert));
                // Without a converter, replacements keep the type.
                let changes = self.conversions.is_none() && !keeps_types(with, facts);
                illegal.or_else(|| changes.then(|| "another type".to_owned()))
            }
        }
    }
}

fn keeps_types(with: &With, facts: &Facts) -> bool {
    let With::Picks(picks) = with else { return true };
    facts.results.iter().enumerate().all(|(i, ty)| match picks.get(i % picks.len().max(1)) {
        Some(Pick::New(n) | Pick::Old(n)) if !facts.operands.is_empty() => {
            facts.operands[n % facts.operands.len()] == *ty
        }
        _ => false,
    })
}

fn facts(op: Op) -> Facts {
    let types = |values: Vec<Value>| values.into_iter().map(|v| ty_of(v.ty())).collect();
    let blocks = op.regions().into_iter().flat_map(Region::blocks);
    Facts {
        name: op.name().to_owned(),
        k: op.attr("k").and_then(|k| k.as_int()).unwrap_or(0),
        operands: types(op.operands()),
        results: types(op.results()),
        args: types(blocks.flat_map(Block::args).collect()),
    }
}

fn parse<'c>(cx: Context<'c>, types: &[Ty]) -> Vec<Type<'c>> {
    types.iter().map(|ty| Type::parse(cx, ty).expect("a type of the table")).collect()
}

/// The case's type converter.
pub(super) fn converter<'c>(case: &Case) -> TypeConverter<'c, '_> {
    let mut out = TypeConverter::new();
    out.add(|ty| {
        Some(match case.convert(ty_of(ty)) {
            Some(types) => TypeConversion::To(parse(ty.context(), &types)),
            None => TypeConversion::Illegal,
        })
    });
    out
}

pub(super) fn target<'c>(case: &Case) -> ConversionTarget<'c, '_> {
    let mut out = ConversionTarget::new();
    for dialect in ["builtin", "func", "cf", "scf"] {
        out.legal_dialect(dialect);
    }
    out.unknown_is_legal(case.unknown_is_legal);
    match case.dialect {
        None => {}
        Some(Rule::Legal) => drop(out.legal_dialect("t")),
        Some(Rule::Illegal) => drop(out.illegal_dialect("t")),
        Some(rule) => drop(out.dynamically_legal_dialect("t", move |op| case.holds(rule, &facts(op)))),
    }
    for (name, rule) in &case.rules {
        match *rule {
            Rule::Legal => drop(out.legal_op(name)),
            Rule::Illegal => drop(out.illegal_op(name)),
            rule => drop(out.dynamically_legal_op(name, move |op| case.holds(rule, &facts(op)))),
        }
    }
    out.recursively_legal_op(RECURSIVE);
    out
}

pub(super) fn patterns<'c, 'w>(case: &'w Case, converter: &'w TypeConverter<'c, 'w>) -> PatternSet<'c, 'w> {
    let with_types = case.conversions.is_some();
    let mut out = if with_types { PatternSet::with_converter(converter) } else { PatternSet::new() };
    for recipe in &case.recipes {
        out.add(Cook { case, recipe, converter });
    }
    out
}

struct Cook<'c, 'w> {
    case: &'w Case,
    recipe: &'w Recipe,
    converter: &'w TypeConverter<'c, 'w>,
}

impl<'c> ConversionPattern<'c> for Cook<'c, '_> {
    fn root(&self) -> &str {
        &self.recipe.root
    }
    fn benefit(&self) -> u32 {
        self.recipe.benefit
    }
    fn name(&self) -> String {
        self.recipe.name.clone()
    }
    fn accepts_one_to_many(&self) -> bool {
        self.recipe.accepts_one_to_many
    }
    fn rewrite(&self, op: Op<'c>, adaptor: &Adaptor<'c, '_>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
        if let Some(reason) = self.case.declines(self.recipe, &facts(op)) {
            return Err(Declined::no_match(reason));
        }
        match &self.recipe.action {
            Action::InPlace(sets) => {
                count_down(op, rw);
                for (i, pick) in sets.iter().filter(|_| op.num_operands() > 0) {
                    if let Some(value) = picked(&[*pick], op, adaptor, &[]).first() {
                        rw.set_operand(op, i % op.num_operands(), *value);
                    }
                }
                Ok(())
            }
            Action::Signature => {
                count_down(op, rw);
                rw.convert_region_types(op.region(0), self.converter)?;
                let (inputs, results) = op.function_type().expect("a function");
                let inputs = self.converter.convert_all(&inputs).expect("checked");
                rw.set_attr(op, "function_type", Attr::ty(Type::function(op.context(), &inputs, &results)));
                Ok(())
            }
            Action::Build { steps, with, regions } => self.build(op, adaptor, rw, steps, with, *regions),
        }
    }
}

impl<'c> Cook<'c, '_> {
    fn build(
        &self,
        op: Op<'c>,
        adaptor: &Adaptor<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        steps: &[Step],
        with: &With,
        regions: Regions,
    ) -> Result<(), Declined> {
        let mut made: Vec<Op> = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let takes = if i == 0 && regions != Regions::Drop { op.regions() } else { vec![] };
            let new = self.step(op, adaptor, rw, step, &made, &takes)?;
            if i == 0 && regions == Regions::Convert {
                for region in new.regions().into_iter().take(takes.len()) {
                    rw.convert_region_types(region, self.converter)?;
                }
            }
            if !step.inner.is_empty() {
                let body = new.region(takes.len()).entry().expect("made with a block");
                rw.set_point(InsertionPoint::End(body));
                for inner in &step.inner {
                    self.step(op, adaptor, rw, inner, &made, &[])?;
                }
                rw.set_point(InsertionPoint::Before(op));
            }
            made.push(new);
        }
        let lists: Vec<Vec<Value>> = match with {
            With::Last => {
                let all = made.last().expect("a step").results();
                let is_converted = matches!(steps.last().map(|s| &s.types), Some(Types::Converted));
                let mut rest = all.into_iter();
                let width = |v: &Value<'c>| {
                    if is_converted { self.case.convert(ty_of(v.ty())).map_or(0, |t| t.len()) } else { 1 }
                };
                op.results().iter().map(|r| rest.by_ref().take(width(r)).collect()).collect()
            }
            With::Picks(picks) => (0..op.num_results())
                .map(|i| picks.get(i % picks.len().max(1)).map_or(vec![], |p| picked(&[*p], op, adaptor, &made)))
                .collect(),
        };
        if lists.iter().all(|list| list.len() == 1) {
            rw.replace_op(op, &lists.concat());
        } else {
            rw.replace_op_with_many(op, &lists);
        }
        Ok(())
    }

    fn step(
        &self,
        op: Op<'c>,
        adaptor: &Adaptor<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        step: &Step,
        made: &[Op<'c>],
        takes: &[Region<'c>],
    ) -> Result<Op<'c>, Declined> {
        let cx = op.context();
        let like: Vec<Type> = op.results().iter().map(|r| r.ty()).collect();
        let types = match &step.types {
            Types::Fixed(types) => parse(cx, types),
            Types::Like => like,
            Types::Converted => self.converter.convert_all(&like).expect("checked"),
        };
        let mut spec = OpSpec::new(&step.name, op.location())
            .operands(&picked(&step.operands, op, adaptor, made))
            .results(&types)
            .attr("k", Attr::i64(cx, step.k));
        for from in takes {
            let region = Region::new();
            rw.take_region(region, *from);
            spec = spec.region(region);
        }
        if !step.inner.is_empty() {
            let region = Region::new();
            region.append(Block::new(&[]));
            spec = spec.region(region);
        }
        Ok(rw.create(spec)?)
    }
}

fn count_down<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) {
    let k = op.attr("k").and_then(|k| k.as_int()).expect("checked");
    rw.set_attr(op, "k", Attr::i64(op.context(), k - 1));
}

fn picked<'c>(picks: &[Pick], op: Op<'c>, adaptor: &Adaptor<'c, '_>, made: &[Op<'c>]) -> Vec<Value<'c>> {
    let mut out = Vec::new();
    for pick in picks {
        match *pick {
            Pick::New(i) if op.num_operands() > 0 => out.extend(adaptor.operand_values(i % op.num_operands())),
            Pick::Old(i) if op.num_operands() > 0 => out.push(op.operand(i % op.num_operands())),
            Pick::Step(s, r) if !made.is_empty() => {
                let results = made[s % made.len()].results();
                out.extend((!results.is_empty()).then(|| results[r % results.len()]));
            }
            _ => {}
        }
    }
    out
}
