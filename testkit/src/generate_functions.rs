//! Random functions on small tensors, for bufferization: slices, inserts, structured ops, loops, branches and calls.
//!
//! The same text for the same seed; always valid IR; every value is defined, deterministic and in [-1, 1], every offset in
//! range. `@main` takes tensors of `f32`, then `%n: index` (any number below 4 is fine as a trip count), `%c: i1` and
//! `%x: f32` (in [-1, 1]); it returns tensors, and one element as a scalar. The attribute `bufferization.writable` of each tensor
//! argument says whether its buffer may be overwritten.
//!
//! [`Shape`] selects the constructs. Without [`More::defects`], constructs that MLIR 22.1.8 is known to bufferize wrongly
//! are left out, so that its decisions can be compared with; for that, possible aliases are tracked (`origin`).

mod blocks;
mod calls;
mod control;
mod create;
mod ops;
mod origin;
mod slices;
mod structured;
mod vectors;

use crate::random::Rng;
use origin::Origins;
use std::fmt::Write;

/// The constructs of a function.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Operations in the outermost body.
    pub ops: usize,
    /// Nesting depth of loops and branches.
    pub depth: usize,
    /// Whether `@main` calls private functions.
    pub calls: bool,
    /// Whether there are parallel loops (`scf.forall`).
    pub parallel: bool,
    /// Further constructs.
    pub more: More,
}

/// Constructs beyond the basic ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct More {
    /// All operations on tensors that bufferize, with more types.
    pub all_ops: bool,
    /// Several blocks in functions and in `scf.execute_region`: diamonds, switches, loops of blocks, several returns.
    pub blocks: bool,
    /// Functions that call themselves or each other; `%n` counts down.
    pub recursion: bool,
    /// Functions without a body. Such a module cannot be executed.
    pub external: bool,
    /// Also constructs on which MLIR 22.1.8 is wrong or fails: results of `scf.index_switch` that are written, loops that
    /// carry one tensor twice, calls that return one tensor twice or a constant, slices at varying offsets of a tensor from
    /// outside the loop, unsigned loops whose bounds have another order as signed numbers, `linalg.pack`.
    pub defects: bool,
}

impl More {
    /// The basic constructs only.
    pub const BASIC: Self = Self { all_ops: false, blocks: false, recursion: false, external: false, defects: true };
}

impl Shape {
    /// A shape that varies with the seed.
    pub fn of_seed(seed: u64) -> Self {
        Self {
            ops: 4 + (seed % 13) as usize,
            depth: (seed % 4).min(2) as usize,
            calls: seed % 5 == 1,
            parallel: seed.is_multiple_of(3),
            more: More::BASIC,
        }
    }

    /// A shape of every construct that can be executed.
    pub fn whole(seed: u64) -> Self {
        let more = More {
            all_ops: true,
            blocks: seed.is_multiple_of(4),
            recursion: seed % 7 == 2,
            external: false,
            defects: true,
        };
        Self { calls: seed % 3 == 1, parallel: seed.is_multiple_of(2), more, ..Self::of_seed(seed) }
    }

    /// A shape of every construct that MLIR 22.1.8 decides correctly; `blocks`: see [`More::blocks`].
    pub fn comparable(seed: u64, blocks: bool) -> Self {
        let more = More { all_ops: true, blocks, recursion: seed % 7 == 2, external: seed % 4 == 3, defects: false };
        Self { calls: seed % 3 == 1, parallel: seed.is_multiple_of(2), more, ..Self::of_seed(seed) }
    }
}

/// A module with a function `@main`, of a shape that varies with the seed.
pub fn function(seed: u64) -> String {
    module(seed, Shape::of_seed(seed))
}

/// A module with a function `@main`.
pub fn module(seed: u64, shape: Shape) -> String {
    let mut rng = Rng::new(seed ^ 0x66756e63);
    let mut text = String::new();
    let callees = calls::callees(&mut rng, shape, &mut text);
    text + &define(&mut rng, "main", shape, &callees).0
}

/// A callable function: name, argument and result types.
#[derive(Clone, Debug)]
struct Callee {
    name: String,
    inputs: Vec<Ty>,
    results: Vec<Ty>,
    /// Whether it also takes `%n`, `%c` and `%x`.
    numbers: bool,
}

fn define(rng: &mut Rng, name: &str, shape: Shape, callees: &[Callee]) -> (String, Callee) {
    let is_main = name == "main";
    let mut g = Generator::new(rng, shape, callees);
    let inputs: Vec<Ty> = (0..1 + g.rng.below(3)).map(|_| g.any_type()).collect();
    let (mut scope, arguments) = g.enter(&inputs, is_main);
    g.block(&mut scope, shape.ops, shape.depth);
    let mut results: Vec<(String, Ty)> = (0..1 + g.rng.below(3)).map(|_| g.pick(&scope)).collect();
    if !is_main {
        g.keep_apart(&scope, &mut results);
    }
    let types: Vec<Ty> = results.iter().map(|(_, t)| *t).collect();
    let scalar = is_main.then(|| g.extract_element(&mut scope));
    let listed = list(&types).into_iter().chain(scalar.iter().map(|_| "f32".to_owned())).collect::<Vec<_>>().join(", ");
    g.leave(&mut scope, &results, scalar.as_deref(), &listed);
    let visibility = if is_main { "" } else { "private " };
    let text = format!("func.func {visibility}@{name}({}) -> ({listed}) {{\n{}}}\n", arguments.join(", "), g.body);
    (text, Callee { name: name.to_owned(), inputs, results: types, numbers: true })
}

/// Tensor types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    /// 3 elements.
    Three,
    /// 6 elements.
    Six,
    /// 24 elements.
    Flat,
    /// 4 by 6.
    Wide,
    /// 6 by 6.
    Square,
    /// 1 by 6.
    Row,
    /// 6 by 4.
    Tall,
    /// One element, without dimensions.
    Point,
}

/// All types; the first ones are the basic ones.
const TYPES: [Ty; 8] = [Ty::Three, Ty::Six, Ty::Flat, Ty::Wide, Ty::Square, Ty::Row, Ty::Tall, Ty::Point];
const BASIC_TYPES: usize = 5;

impl Ty {
    fn dims(self) -> &'static [usize] {
        match self {
            Self::Three => &[3],
            Self::Six => &[6],
            Self::Flat => &[24],
            Self::Wide => &[4, 6],
            Self::Square => &[6, 6],
            Self::Row => &[1, 6],
            Self::Tall => &[6, 4],
            Self::Point => &[],
        }
    }
}

impl std::fmt::Display for Ty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dims: String = self.dims().iter().map(|d| format!("{d}x")).collect();
        write!(f, "tensor<{dims}f32>")
    }
}

fn list(types: &[Ty]) -> Vec<String> {
    types.iter().map(Ty::to_string).collect()
}

/// Values and constructs available at a position in a function.
#[derive(Clone, Debug, Default)]
struct Scope {
    indent: usize,
    tensors: Vec<(String, Ty)>,
    indices: Vec<String>,
    bits: Vec<String>,
    scalars: Vec<String>,
    /// Loops around the position.
    loops: usize,
    /// Whether a block may end here and others begin.
    branches: bool,
}

impl Scope {
    fn inner(&self) -> Self {
        Self { indent: self.indent + 1, branches: false, ..self.clone() }
    }
    /// Inside a region that may run several times.
    fn repeated(&self) -> Self {
        Self { loops: self.loops + 1, ..self.inner() }
    }
    fn all_of_type(&self, ty: Ty) -> Vec<String> {
        self.tensors.iter().filter(|(_, t)| *t == ty).map(|(n, _)| n.clone()).collect()
    }
}

struct Generator<'a> {
    rng: &'a mut Rng,
    body: String,
    next: usize,
    /// Number of named blocks of this function.
    labels: usize,
    shape: Shape,
    callees: &'a [Callee],
    origins: Origins,
    is_callee: bool,
}

/// Makes one operation or construct; the last argument is the nesting depth that is left.
type Make = fn(&mut Generator<'_>, &mut Scope, usize);

/// All operations with their weights.
const ALL_OPS: &[(u64, Make)] = &[
    (8, |g, s, _| g.insert_element(s)),
    (4, |g, s, _| g.scalar(s)),
    (12, |g, s, _| g.slice(s)),
    (4, |g, s, _| g.insert_slice(s)),
    (4, |g, s, _| g.fill(s)),
    (12, |g, s, _| g.elementwise(s)),
    (3, |g, s, _| g.product(s)),
    (4, |g, s, _| g.select(s)),
    (3, |g, s, _| g.cast(s)),
    (3, |g, s, _| g.reshape(s)),
    (3, |g, s, _| g.reshape_by_value(s)),
    (6, |g, s, _| g.call(s)),
    (5, |g, s, _| g.slice_of_slice(s)),
    (5, |g, s, _| g.dynamic_slice(s)),
    (3, |g, s, _| g.overwrite(s)),
    (6, |g, s, _| g.create(s)),
    (8, |g, s, _| g.structured(s)),
    (5, |g, s, _| g.vector(s)),
];

/// All constructs with regions, where nesting is allowed.
const ALL_REGIONS: &[(u64, Make)] = &[
    (11, |g, s, d| g.for_loop(s, d)),
    (10, |g, s, d| g.branch(s, d)),
    (5, |g, s, d| g.while_loop(s, d)),
    (6, |g, s, d| g.forall(s, d)),
    (3, |g, s, d| g.execute_region(s, d)),
];

/// All constructs of blocks, where blocks may end.
const ALL_BLOCKS: &[(u64, Make)] =
    &[(10, |g, s, d| g.diamond(s, d)), (6, |g, s, d| g.switch(s, d)), (9, |g, s, d| g.block_loop(s, d))];

impl<'a> Generator<'a> {
    fn new(rng: &'a mut Rng, shape: Shape, callees: &'a [Callee]) -> Self {
        let origins = Origins::default();
        Self { rng, body: String::new(), next: 0, labels: 0, shape, callees, origins, is_callee: false }
    }
}

impl Generator<'_> {
    /// The scope of a function's arguments, and their declarations. Defines some numbers.
    fn enter(&mut self, inputs: &[Ty], is_main: bool) -> (Scope, Vec<String>) {
        self.is_callee = !is_main;
        let mut arguments = Vec::new();
        let mut scope = Scope { indent: 1, branches: self.shape.more.blocks, ..Scope::default() };
        for (i, ty) in inputs.iter().enumerate() {
            let writable = self.rng.below(100) < 60;
            let attrs = if is_main { format!(" {{bufferization.writable = {writable}}}") } else { String::new() };
            arguments.push(format!("%t{i}: {ty}{attrs}"));
            self.made(&mut scope, format!("%t{i}"), *ty, &[]);
        }
        arguments.extend(["%n: index".to_owned(), "%c: i1".to_owned(), "%x: f32".to_owned()]);
        scope.indices.push("%n".to_owned());
        scope.bits.push("%c".to_owned());
        scope.scalars.push("%x".to_owned());
        for i in 0..=6 {
            self.line(&scope, &format!("%c{i} = arith.constant {i} : index"));
        }
        self.line(&scope, "%half = arith.constant 0.5 : f32");
        self.line(&scope, "%eighth = arith.constant 0.125 : f32");
        scope.scalars.push("%half".to_owned());
        (scope, arguments)
    }

    fn line(&mut self, scope: &Scope, text: &str) {
        let _ = writeln!(self.body, "{}{text}", "  ".repeat(scope.indent));
    }

    /// A fresh name.
    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.rng.below(100) < chance
    }

    fn any_type(&mut self) -> Ty {
        let types = if self.shape.more.all_ops && self.percent(30) { &TYPES[..] } else { &TYPES[..BASIC_TYPES] };
        *self.rng.pick(types)
    }

    /// A tensor; later ones are likelier.
    fn pick(&mut self, scope: &Scope) -> (String, Ty) {
        let count = scope.tensors.len() as u64;
        let (a, b) = (self.rng.below(count), self.rng.below(count));
        scope.tensors[a.max(b) as usize].clone()
    }

    /// A tensor of a type; created if there is none.
    fn of_type(&mut self, scope: &mut Scope, ty: Ty) -> String {
        let fitting = scope.all_of_type(ty);
        if fitting.is_empty() || self.percent(10) { self.fresh(scope, ty) } else { self.rng.pick(&fitting).clone() }
    }

    /// An index in `0..limit`.
    fn index(&mut self, scope: &Scope, limit: usize) -> String {
        if self.percent(40) {
            return format!("%c{}", self.rng.below(limit.min(7) as u64));
        }
        let (index, bound, name) = (self.rng.pick(&scope.indices).clone(), self.name(), self.name());
        self.line(scope, &format!("{bound} = arith.constant {limit} : index"));
        self.line(scope, &format!("{name} = arith.remui {index}, {bound} : index"));
        name
    }

    fn block(&mut self, scope: &mut Scope, ops: usize, depth: usize) {
        if self.shape.more.all_ops {
            return self.block_of_all_ops(scope, ops, depth);
        }
        for _ in 0..ops {
            let choice = self.rng.below(if depth > 0 { 24 } else { 17 });
            match choice {
                0 | 1 => self.insert_element(scope),
                2 => self.scalar(scope),
                3..=5 => self.slice(scope),
                6 => self.insert_slice(scope),
                7 => self.fill(scope),
                8..=10 => self.elementwise(scope),
                11 => self.product(scope),
                12 => self.select(scope),
                13 => self.cast(scope),
                14 => self.reshape(scope),
                15 => {
                    let ty = self.any_type();
                    self.fresh(scope, ty);
                }
                16 => self.call(scope),
                17..=19 => self.for_loop(scope, depth),
                20 | 21 => self.branch(scope, depth),
                22 => self.while_loop(scope, depth),
                _ => self.forall(scope, depth),
            }
        }
    }

    fn block_of_all_ops(&mut self, scope: &mut Scope, ops: usize, depth: usize) {
        let mut choices = ALL_OPS.to_vec();
        if depth > 0 {
            choices.extend(ALL_REGIONS);
            if scope.branches {
                choices.extend(ALL_BLOCKS);
            }
        }
        let total: u64 = choices.iter().map(|(weight, _)| weight).sum();
        for _ in 0..ops {
            let mut at = self.rng.below(total);
            for (weight, make) in &choices {
                if at < *weight {
                    make(self, scope, depth);
                    break;
                }
                at -= weight;
            }
        }
    }

    fn scalar(&mut self, scope: &mut Scope) {
        let name = self.extract_element(scope);
        scope.scalars.push(name);
    }

    fn indices(&mut self, scope: &Scope, ty: Ty) -> String {
        ty.dims().iter().map(|d| self.index(scope, *d)).collect::<Vec<_>>().join(", ")
    }
}
