//! The simplest driver: it searches from the top for the first illegal op again and again, makes a new cast each time,
//! and folds all of them at the end.

use super::model::{BlockId, MBlock, MOp, Model, OpId, Ty, V};
use super::recipe::{Action, Case, Facts, Pick, RECURSIVE, Recipe, Regions, Rule, Step, Types, With};
use monopour_ir::conversion::{Legality, Mode};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The resulting text and diagnostics; none means success.
pub(super) struct Outcome {
    pub(super) text: String,
    pub(super) errors: Vec<String>,
    pub(super) casts_left: usize,
    /// One per replaced value, and one per operand each time that an op was tried.
    pub(super) casts_made: usize,
    pub(super) applied: usize,
}

pub(super) fn convert(case: &Case, model: Model) -> Outcome {
    let mut driver = Reference { case, model, failed: BTreeMap::new(), applied: 0 };
    while let Some(op) = driver.first_illegal(0) {
        driver.legalize(op);
    }
    driver.finish()
}

struct Reference<'w> {
    case: &'w Case,
    model: Model,
    /// Ops that every recipe declined, with the reasons.
    failed: BTreeMap<OpId, Vec<String>>,
    applied: usize,
}

/// The converted values of each operand.
type Adapted = Vec<Vec<V>>;

impl Reference<'_> {
    fn facts(&self, op: OpId) -> Facts {
        let (model, op) = (&self.model, &self.model.ops[op]);
        let args = op.regions.iter().flatten().flat_map(|b| model.types(&model.blocks[*b].args)).collect();
        Facts {
            name: op.name.clone(),
            k: op.k.unwrap_or(0),
            operands: model.types(&op.operands),
            results: model.types(&op.results),
            args,
        }
    }
    fn legality(&self, op: OpId) -> Legality {
        let facts = self.facts(op);
        let rule = self.case.rules.iter().find(|(name, _)| *name == facts.name).map(|(_, rule)| *rule);
        let of_dialect = if facts.name.starts_with("t.") { self.case.dialect } else { Some(Rule::Legal) };
        match rule.or(of_dialect) {
            Some(rule) if self.case.holds(rule, &facts) => Legality::Legal,
            Some(_) => Legality::Illegal,
            None if self.case.unknown_is_legal => Legality::Legal,
            None => Legality::Unknown,
        }
    }
    fn first_illegal(&self, op: OpId) -> Option<OpId> {
        let legality = self.legality(op);
        if legality != Legality::Legal && !self.failed.contains_key(&op) {
            return Some(op);
        }
        let what = &self.model.ops[op];
        if legality == Legality::Legal && what.name == RECURSIVE {
            return None;
        }
        let inner = what.regions.iter().flatten().flat_map(|block| &self.model.blocks[*block].ops);
        inner.copied().find_map(|op| self.first_illegal(op))
    }

    fn legalize(&mut self, op: OpId) {
        let mut declined = Vec::new();
        match self.adapt(op) {
            Err(reason) => declined.push(reason),
            Ok(adapted) => {
                let facts = self.facts(op);
                let case = self.case;
                let mut recipes: Vec<&Recipe> =
                    case.recipes.iter().filter(|r| r.root == facts.name || r.root == "*").collect();
                recipes.sort_by_key(|recipe| Reverse(recipe.benefit));
                for recipe in &recipes {
                    let reason = if adapted.iter().any(|values| values.len() != 1) && !recipe.accepts_one_to_many {
                        Some("an operand became several values, or none, which the pattern does not accept".to_owned())
                    } else {
                        case.declines(recipe, &facts)
                    };
                    let Some(reason) = reason else {
                        self.applied += 1;
                        return self.apply(op, recipe, &adapted);
                    };
                    declined.push(format!("pattern '{}' declined: {reason}", recipe.name));
                }
                if recipes.is_empty() {
                    declined.push(format!("no pattern has '{}' as its root", facts.name));
                }
            }
        }
        self.failed.insert(op, declined);
    }
    fn adapt(&mut self, op: OpId) -> Result<Adapted, String> {
        let mut out = Vec::new();
        for (i, value) in self.model.ops[op].operands.clone().into_iter().enumerate() {
            let ty = self.model.ty(value);
            let Some(types) = self.case.convert(ty) else {
                return Err(format!("operand {i} has type {ty}, which the type converter does not convert"));
            };
            out.push(if self.case.conversions.is_some() { self.model.cast(&[value], &types) } else { vec![value] });
        }
        Ok(out)
    }

    fn apply(&mut self, op: OpId, recipe: &Recipe, adapted: &Adapted) {
        match &recipe.action {
            Action::InPlace(sets) => {
                let k = self.model.ops[op].k.unwrap_or(0);
                self.model.ops[op].k = Some(k - 1);
                let count = self.model.ops[op].operands.len();
                for (i, pick) in sets.iter().filter(|_| count > 0) {
                    if let Some(value) = self.picked(&[*pick], op, adapted, &[]).first() {
                        self.model.ops[op].operands[i % count] = *value;
                    }
                }
                // Reported under its present op.
                self.failed.remove(&op);
            }
            Action::Signature => {
                self.model.ops[op].k = self.model.ops[op].k.map(|k| k - 1);
                let inputs = self.model.ops[op].inputs.clone().expect("a function");
                self.model.ops[op].inputs = Some(self.convert_all(&inputs));
                for block in self.model.ops[op].regions.concat() {
                    self.convert_block(op, block);
                }
            }
            Action::Build { steps, with, regions } => self.build(op, adapted, steps, with, *regions),
        }
    }
    fn convert_all(&self, types: &[Ty]) -> Vec<Ty> {
        types.iter().flat_map(|ty| self.case.convert(ty).expect("checked")).collect()
    }
    /// New arguments for a block of `owner`, cast back for their users, and new operands for the branches to it.
    fn convert_block(&mut self, owner: OpId, block: BlockId) {
        let args = std::mem::take(&mut self.model.blocks[block].args);
        let types: Vec<Ty> = self.model.types(&args);
        for arg in &args {
            let ty = self.model.ty(*arg);
            let new: Vec<V> = self.convert_all(&[ty]).into_iter().map(|ty| self.model.value(ty)).collect();
            let old = self.model.cast(&new, &[ty])[0];
            self.model.replace_all_uses(*arg, old);
            self.model.blocks[block].args.extend(new);
        }
        let branches: Vec<OpId> =
            self.model.ops[owner].regions.iter().flatten().flat_map(|b| self.model.blocks[*b].ops.clone()).collect();
        for branch in branches {
            self.convert_branch(branch, block, &types);
        }
    }
    fn convert_branch(&mut self, branch: OpId, block: BlockId, types: &[Ty]) {
        let MOp { operands, successors, .. } = self.model.ops[branch].clone();
        // The condition comes first.
        let handed: usize = successors.iter().map(|s| s.1).sum();
        let (condition, mut rest) = operands.split_at(operands.len() - handed);
        let (mut operands, mut counts) = (condition.to_vec(), Vec::new());
        for (to, count) in successors {
            let (values, others) = rest.split_at(count);
            rest = others;
            let before = operands.len();
            if to == block {
                for (value, ty) in values.iter().zip(types) {
                    let types = self.convert_all(&[ty]);
                    operands.extend(self.model.cast(&[*value], &types));
                }
            } else {
                operands.extend(values);
            }
            counts.push((to, operands.len() - before));
        }
        self.model.ops[branch].operands = operands;
        self.model.ops[branch].successors = counts;
    }

    fn build(&mut self, op: OpId, adapted: &Adapted, steps: &[Step], with: &With, regions: Regions) {
        let results = self.model.ops[op].results.clone();
        let old_types = self.model.types(&results);
        let mut made = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            let new = self.step(op, adapted, step, &made);
            if i == 0 && regions != Regions::Drop {
                let moved = std::mem::take(&mut self.model.ops[op].regions);
                if regions == Regions::Convert {
                    moved.concat().into_iter().for_each(|block| self.convert_args(block));
                }
                self.model.ops[new].regions = moved;
            }
            if !step.inner.is_empty() {
                let inner = step.inner.iter().map(|inner| self.step(op, adapted, inner, &made)).collect();
                self.model.blocks.push(MBlock { args: vec![], ops: inner });
                let body = self.model.blocks.len() - 1;
                self.model.ops[new].regions.push(vec![body]);
            }
            made.push(new);
        }
        let mut rest = made.last().map(|last| self.model.ops[*last].results.clone()).unwrap_or_default().into_iter();
        for (i, (old, ty)) in results.into_iter().zip(old_types).enumerate() {
            let new = match with {
                With::Last => {
                    let is_converted = matches!(steps.last().map(|s| &s.types), Some(Types::Converted));
                    let width = if is_converted { self.convert_all(&[ty]).len() } else { 1 };
                    rest.by_ref().take(width).collect()
                }
                With::Picks(picks) => {
                    let pick = picks.get(i % picks.len().max(1));
                    pick.map_or(vec![], |pick| self.picked(&[*pick], op, adapted, &made))
                }
            };
            let stand_in = self.model.cast(&new, &[ty])[0];
            self.model.replace_all_uses(old, stand_in);
        }
        // With its remaining body.
        let block = self.model.blocks.iter_mut().find(|block| block.ops.contains(&op)).expect("in a block");
        let at = block.ops.iter().position(|o| *o == op).expect("in the block");
        block.ops.splice(at..=at, made);
    }
    /// The arguments of a block without predecessors.
    fn convert_args(&mut self, block: BlockId) {
        let nowhere = self.model.op(MOp::default());
        self.convert_block(nowhere, block);
    }
    fn step(&mut self, op: OpId, adapted: &Adapted, step: &Step, made: &[OpId]) -> OpId {
        let like = self.model.types(&self.model.ops[op].results.clone());
        let types = match &step.types {
            Types::Fixed(types) => types.clone(),
            Types::Like => like,
            Types::Converted => self.convert_all(&like),
        };
        let operands = self.picked(&step.operands, op, adapted, made);
        let results = types.into_iter().map(|ty| self.model.value(ty)).collect();
        let location = self.model.ops[op].location.clone();
        self.model.op(MOp { name: step.name.clone(), k: Some(step.k), operands, results, location, ..MOp::default() })
    }
    fn picked(&self, picks: &[Pick], op: OpId, adapted: &Adapted, made: &[OpId]) -> Vec<V> {
        let operands = &self.model.ops[op].operands;
        let of_pick = |pick: &Pick| match *pick {
            Pick::New(i) if !adapted.is_empty() => adapted[i % adapted.len()].clone(),
            Pick::Old(i) if !operands.is_empty() => vec![operands[i % operands.len()]],
            Pick::Step(s, r) if !made.is_empty() => {
                let results = &self.model.ops[made[s % made.len()]].results;
                if results.is_empty() { vec![] } else { vec![results[r % results.len()]] }
            }
            _ => vec![],
        };
        picks.iter().flat_map(of_pick).collect()
    }

    fn finish(mut self) -> Outcome {
        let mut there = Vec::new();
        self.model.visit(0, &mut |op| there.push(op));
        let mut errors = Vec::new();
        for op in there.into_iter().filter(|op| self.failed.contains_key(op)) {
            let what = match (self.legality(op), self.case.mode) {
                (Legality::Illegal, _) => "is illegal",
                (Legality::Unknown, Mode::Full) => "is not known to be legal",
                _ => continue,
            };
            let MOp { name, location, .. } = &self.model.ops[op];
            errors.push(format!(
                "{location}: '{name}' {what} in the conversion target and no pattern converts it: {}",
                self.failed[&op].join("; ")
            ));
        }
        let casts_made = self.model.casts_made();
        self.model.fold();
        let casts = self.model.live_casts();
        if self.case.mode == Mode::Full {
            let list = |types: &[Ty]| if types.is_empty() { "nothing".to_owned() } else { types.join(", ") };
            errors.extend(casts.iter().map(|(from, to)| {
                format!("a cast from {} to {} is left after a full conversion", list(from), list(to))
            }));
        }
        errors.sort();
        Outcome { text: self.model.render(), errors, casts_left: casts.len(), casts_made, applied: self.applied }
    }
}
