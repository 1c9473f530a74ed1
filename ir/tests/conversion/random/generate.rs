//! Random IR, random patterns, random targets, all from one seed.

use super::model::{BlockId, CAST, MOp, Model, TYPES, Ty, V};
use super::recipe::{Action, Case, Conversions, Pick, RECURSIVE, Recipe, Regions, Rule, Step, Types, When, With};
use monopour_ir::conversion::Mode;

/// Op names `t.op0` to `t.op6`. Patterns lead from one to lower ones only, so every set of them terminates.
const RANKS: usize = 7;
/// Most ops that one op may become.
const MAX_GROWTH: usize = 24;

/// Xorshift.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        let mut out = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03 | 1);
        for _ in 0..4 {
            out.below(2);
        }
        out
    }
    /// A number below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) % n as u64) as usize
    }
    fn percent(&mut self, n: usize) -> bool {
        self.below(100) < n
    }
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
    fn ty(&mut self) -> Ty {
        self.of(&TYPES)
    }
    fn types(&mut self, below: usize) -> Vec<Ty> {
        self.types_of(&TYPES, below)
    }
    fn types_of(&mut self, all: &[Ty], below: usize) -> Vec<Ty> {
        (0..self.below(below)).map(|_| self.of(all)).collect()
    }
}

fn op_name(rank: usize) -> String {
    format!("t.op{rank}")
}

/// The types that a tame converter keeps.
const KEPT: [Ty; 4] = ["i1", "i16", "i64", "f32"];

/// A set of patterns with its target and converter.
pub(super) fn case(rng: &mut Rng) -> Case {
    let with_types = rng.percent(70);
    // Tame: every op can be converted, to the converter's types.
    let is_tame = rng.percent(40);
    let conversions = with_types.then(|| conversions(rng, is_tame));
    let mut out = Case {
        is_tame,
        conversions,
        rules: vec![],
        dialect: rng.of(&[None, Some(Rule::Illegal), Some(Rule::Counted), Some(Rule::Legal)]),
        unknown_is_legal: rng.percent(50),
        recipes: vec![],
        mode: if rng.percent(if is_tame { 60 } else { 25 }) { Mode::Full } else { Mode::Partial },
    };
    let with_fallbacks = rng.percent(70);
    let mut growth = vec![1];
    out.rules.push((op_name(0), Rule::Legal));
    for rank in 1..RANKS {
        if let Some(rule) = rule(rng, is_tame) {
            out.rules.push((op_name(rank), rule));
        }
        let made = if is_tame { 1 + rng.below(2) } else { rng.below(3) };
        let mut most = 1;
        for _ in 0..made {
            let (action, size) = action(rng, rank, with_types, is_tame, &growth);
            most = most.max(size);
            add(rng, &mut out, op_name(rank), action);
        }
        growth.push(most);
        if is_tame || with_fallbacks {
            add_fallback(&mut out, op_name(rank), with_types);
        }
    }
    if rng.percent(15) {
        let action = Action::Build { steps: vec![rename_to(0, with_types)], with: With::Last, regions: Regions::Move };
        add(rng, &mut out, "*".to_owned(), action);
    }
    for name in [RECURSIVE, "scf.if", "scf.for"] {
        out.rules.push((name.to_owned(), if rng.percent(50) { Rule::Counted } else { Rule::Legal }));
        if rng.percent(80) {
            add(rng, &mut out, name.to_owned(), Action::InPlace(vec![]));
        }
    }
    if with_types && rng.percent(if is_tame { 95 } else { 60 }) {
        out.rules.push(("func.func".to_owned(), Rule::Counted));
        add(rng, &mut out, "func.func".to_owned(), Action::Signature);
        out.recipes.last_mut().expect("just added").when = When::Always;
    }
    out
}

fn conversions(rng: &mut Rng, is_tame: bool) -> Conversions {
    let mut out: Conversions = TYPES.iter().map(|ty| Some(vec![*ty])).collect();
    // The result types of a tame converter are legal.
    let (from, to): (Vec<usize>, Vec<Ty>) =
        if is_tame { (vec![1, 3, 5], KEPT.to_vec()) } else { ((0..7).collect(), TYPES.to_vec()) };
    for i in from.into_iter().filter(|_| !rng.percent(30)).collect::<Vec<_>>() {
        let count = rng.of(&[1, 1, 1, 1, 2, 2, 0, 3]);
        out[i] = Some((0..count).map(|_| rng.of(&to)).collect());
        if !is_tame && rng.percent(3) {
            out[i] = None;
        }
    }
    out
}

fn rule(rng: &mut Rng, is_tame: bool) -> Option<Rule> {
    match rng.below(100) {
        0..60 => Some(Rule::Illegal),
        _ if is_tame => Some(Rule::Illegal),
        60..75 => Some(Rule::Counted),
        75..82 => Some(Rule::NoOperand(rng.ty())),
        82..90 => Some(Rule::Legal),
        _ => None,
    }
}

fn add(rng: &mut Rng, case: &mut Case, root: String, action: Action) {
    let when = match rng.below(10) {
        0..6 => When::Always,
        6 => When::KIs(1),
        7 => When::FirstOperandIs(rng.ty()),
        8 => When::Results(1),
        _ => When::Results(0),
    };
    let name = format!("p{}", case.recipes.len());
    let accepts_one_to_many = rng.percent(80);
    case.recipes.push(Recipe { name, root, benefit: 1 + rng.below(3) as u32, accepts_one_to_many, when, action });
}

/// A pattern that applies if no other does.
fn add_fallback(case: &mut Case, root: String, with_types: bool) {
    let regions = if with_types { Regions::Convert } else { Regions::Move };
    let action = Action::Build { steps: vec![rename_to(0, with_types)], with: With::Last, regions };
    let name = format!("fallback {root}");
    case.recipes.push(Recipe { name, root, benefit: 0, accepts_one_to_many: true, when: When::Always, action });
}

fn rename_to(rank: usize, with_types: bool) -> Step {
    let types = if with_types { Types::Converted } else { Types::Like };
    let operands = vec![Pick::New(0), Pick::New(1), Pick::New(2)];
    Step { name: op_name(rank), k: 0, operands, types, inner: vec![] }
}

/// The action of a pattern for an op of this rank, and the number of ops that may result.
fn action(rng: &mut Rng, rank: usize, with_types: bool, is_tame: bool, growth: &[usize]) -> (Action, usize) {
    // Tame patterns replace results by values of the converter's types.
    let kind = if is_tame && rng.percent(90) { 30 + rng.below(70) } else { rng.below(if is_tame { 12 } else { 100 }) };
    let all = if is_tame { &KEPT[..] } else { &TYPES };
    if kind < 12 {
        let sets = if is_tame { vec![] } else { (0..rng.below(3)).map(|i| (i, pick(rng, 0, false))).collect() };
        return (Action::InPlace(sets), 1);
    }
    let regions = match rng.below(4) {
        0 if !is_tame => Regions::Drop,
        1 | 2 if with_types => Regions::Convert,
        _ if with_types && is_tame => Regions::Convert,
        _ => Regions::Move,
    };
    // Replaces the op by nothing, or creates ops instead of its results.
    if kind < 30 {
        let picks = (0..rng.below(3)).map(|_| pick(rng, 0, false)).collect();
        return (Action::Build { steps: vec![], with: With::Picks(picks), regions: Regions::Drop }, 1);
    }
    let count = if kind < 55 { 1 } else { 2 + rng.below(3) };
    let (mut steps, mut size) = (Vec::new(), 0);
    for i in 0..count {
        let to = rng.below(rank);
        size += growth[to];
        if size > MAX_GROWTH && i > 0 {
            break;
        }
        let mut step = rename_to(to, with_types);
        step.k = rng.below(3) as i64;
        if count > 1 || rng.percent(20) {
            step.operands = (0..rng.below(4)).map(|_| pick(rng, i, is_tame)).collect();
            step.types = Types::Fixed(rng.types_of(all, 3));
        }
        if rng.percent(12) {
            let mut inner = rename_to(rng.below(rank), false);
            size += MAX_GROWTH / 2;
            inner.operands = (0..rng.below(3)).map(|_| pick(rng, i, is_tame)).collect();
            inner.types = Types::Fixed(rng.types_of(all, 2));
            step.inner.push(inner);
        }
        steps.push(step);
    }
    let last = steps.last_mut().expect("a step");
    last.types = if with_types && (is_tame || rng.percent(70)) { Types::Converted } else { Types::Like };
    // Any values of any types may replace a result.
    let with = if !is_tame && rng.percent(25) {
        With::Picks((0..rng.below(3)).map(|_| pick(rng, steps.len(), false)).collect())
    } else {
        With::Last
    };
    (Action::Build { steps, with, regions }, size)
}

fn pick(rng: &mut Rng, made: usize, is_tame: bool) -> Pick {
    match rng.below(10) {
        0..5 if made > 0 => Pick::Step(rng.below(made), rng.below(2)),
        5..7 if !is_tame => Pick::Old(rng.below(3)),
        _ => Pick::New(rng.below(3)),
    }
}

/// A module of about `size` ops, one or two functions and ops beside them. Every op of a tame one can be converted.
pub(super) fn module(rng: &mut Rng, size: usize, is_tame: bool) -> Model {
    let (mut ir, body) = Ir::new(rng, size, is_tame);
    ir.functions(body, 1, 2);
    ir.fill(body, &mut Vec::new(), 1);
    ir.model
}

/// As [`module`], with two to four functions and nothing else.
pub(super) fn functions(rng: &mut Rng, size: usize, is_tame: bool) -> Model {
    let (mut ir, body) = Ir::new(rng, size, is_tame);
    ir.functions(body, 2, 3);
    ir.model
}

struct Ir<'r> {
    rng: &'r mut Rng,
    model: Model,
    /// Ops left to create.
    left: usize,
    is_tame: bool,
}

impl<'r> Ir<'r> {
    /// An empty module, and its block.
    fn new(rng: &'r mut Rng, size: usize, is_tame: bool) -> (Self, BlockId) {
        let mut ir = Self { rng, model: Model::default(), left: size, is_tame };
        let body = ir.model.block(&[]);
        ir.model.op(MOp { name: "builtin.module".to_owned(), regions: vec![vec![body]], ..MOp::default() });
        (ir, body)
    }
    /// At least so many functions, with fewer than `more` in addition.
    fn functions(&mut self, body: BlockId, least: usize, more: usize) {
        for number in 0..least + self.rng.below(more) {
            let function = self.function(number);
            let function = self.model.op(function);
            self.model.blocks[body].ops.push(function);
        }
    }
    fn function(&mut self, number: usize) -> MOp {
        let blocks: Vec<BlockId> = (0..1 + self.rng.below(4))
            .map(|_| {
                let types = self.rng.types(4);
                self.model.block(&types)
            })
            .collect();
        let mut entry = self.model.blocks[blocks[0]].args.clone();
        let inputs = self.model.types(&entry);
        for (i, block) in blocks.iter().enumerate() {
            // Values of the entry block dominate the others.
            let mut scope = entry.clone();
            scope.extend(self.model.blocks[*block].args.clone().into_iter().filter(|_| i > 0));
            self.fill(*block, &mut scope, 3);
            self.terminate(*block, &blocks[1..], &mut scope);
            if i == 0 {
                entry = scope;
            }
        }
        let (name, location) = ("func.func".to_owned(), number.to_string());
        let k = Some(1 + self.rng.below(5) as i64 / 4);
        MOp { name, k, location, inputs: Some(inputs), regions: vec![blocks], ..MOp::default() }
    }
    fn terminate(&mut self, block: BlockId, others: &[BlockId], scope: &mut Vec<V>) {
        let count = if others.is_empty() { 0 } else { self.rng.below(3) };
        let name = ["func.return", "cf.br", "cf.cond_br"][count];
        let mut operands = if count == 2 { vec![self.some(block, "i1", scope)] } else { vec![] };
        let mut successors = Vec::new();
        for _ in 0..count {
            let to = self.rng.of(others);
            let types = self.model.types(&self.model.blocks[to].args.clone());
            operands.extend(types.iter().map(|ty| self.some(block, ty, scope)).collect::<Vec<_>>());
            successors.push((to, types.len()));
        }
        self.append(block, MOp { name: name.to_owned(), operands, successors, ..MOp::default() });
    }
    fn append(&mut self, block: BlockId, op: MOp) {
        let op = self.model.op(op);
        self.model.blocks[block].ops.push(op);
    }
    /// A value of a type: one in scope, or the result of a new op.
    fn some(&mut self, block: BlockId, ty: Ty, scope: &mut Vec<V>) -> V {
        let fitting: Vec<V> = scope.iter().copied().filter(|v| self.model.ty(*v) == ty).collect();
        if !fitting.is_empty() {
            return self.rng.of(&fitting);
        }
        let value = self.model.value(ty);
        let name = self.name();
        self.append(block, MOp { name, k: Some(0), results: vec![value], ..MOp::default() });
        scope.push(value);
        value
    }

    fn name(&mut self) -> String {
        // The lowest rank is legal, and would keep its types.
        let lowest = usize::from(self.is_tame);
        op_name(lowest + self.rng.below(RANKS - lowest))
    }

    /// Random ops, with up to `depth` levels of regions.
    fn fill(&mut self, block: BlockId, scope: &mut Vec<V>, depth: usize) {
        for _ in 0..1 + self.rng.below(6) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let op = match self.rng.below(100) {
                0..7 if depth > 0 && !self.is_tame => self.scf_if(block, scope, depth),
                7..13 if depth > 0 && !self.is_tame => self.scf_for(block, scope, depth),
                13..18 if !scope.is_empty() && !self.is_tame => {
                    let results = vec![self.rng.ty()].into_iter().map(|ty| self.model.value(ty)).collect();
                    MOp { name: CAST.to_owned(), operands: vec![self.rng.of(scope)], results, ..MOp::default() }
                }
                _ => self.unregistered(scope, depth),
            };
            scope.extend(&op.results);
            let k = Some(self.rng.below(3) as i64);
            self.append(block, MOp { k, ..op });
        }
    }
    fn unregistered(&mut self, scope: &[V], depth: usize) -> MOp {
        let count = if scope.is_empty() { 0 } else { self.rng.below(4) };
        let operands = (0..count).map(|_| self.rng.of(scope)).collect();
        let mut op = MOp { name: self.name(), operands, ..MOp::default() };
        if depth > 0 && self.rng.percent(20) {
            if !self.is_tame && self.rng.percent(30) {
                op.name = RECURSIVE.to_owned();
            }
            for _ in 0..1 + self.rng.below(2) {
                let types = self.rng.types(3);
                op.regions.push(vec![self.region(&types, scope, depth).0]);
            }
        }
        op.results = self.rng.types(3).into_iter().map(|ty| self.model.value(ty)).collect();
        op
    }
    /// A block for a region, filled, and the values in scope at its end.
    fn region(&mut self, types: &[Ty], scope: &[V], depth: usize) -> (BlockId, Vec<V>) {
        let block = self.model.block(types);
        let mut inner = scope.to_vec();
        inner.extend(&self.model.blocks[block].args);
        self.fill(block, &mut inner, depth - 1);
        (block, inner)
    }
    /// As [`Self::region`], with a yield of values of these types.
    fn yielding(&mut self, args: &[Ty], yields: &[Ty], scope: &[V], depth: usize) -> Vec<BlockId> {
        let (block, mut inner) = self.region(args, scope, depth);
        let operands = yields.iter().map(|ty| self.some(block, ty, &mut inner)).collect();
        self.append(block, MOp { name: "scf.yield".to_owned(), operands, ..MOp::default() });
        vec![block]
    }
    fn scf_if(&mut self, block: BlockId, scope: &mut Vec<V>, depth: usize) -> MOp {
        let types = self.rng.types(3);
        let operands = vec![self.some(block, "i1", scope)];
        let regions = (0..2).map(|_| self.yielding(&[], &types, scope, depth)).collect();
        let results = types.into_iter().map(|ty| self.model.value(ty)).collect();
        MOp { name: "scf.if".to_owned(), operands, results, regions, ..MOp::default() }
    }
    fn scf_for(&mut self, block: BlockId, scope: &mut Vec<V>, depth: usize) -> MOp {
        let types = self.rng.types(3);
        let mut operands: Vec<V> = (0..3).map(|_| self.some(block, "index", scope)).collect();
        operands.extend(types.iter().map(|ty| self.some(block, ty, scope)).collect::<Vec<_>>());
        let regions = vec![self.yielding(&[&["index"], &types[..]].concat(), &types, scope, depth)];
        let results = types.into_iter().map(|ty| self.model.value(ty)).collect();
        MOp { name: "scf.for".to_owned(), operands, results, regions, ..MOp::default() }
    }
}
