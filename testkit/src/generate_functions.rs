//! Random functions on small tensors, for bufferization: slices, inserts, structured ops, loops, branches and calls.
//!
//! The same text for the same seed; always valid IR; every value is defined, deterministic and in [-1, 1], every offset
//! in range. `@main` takes tensors of `f32`, then `%n: index` (any number below 4 is fine as a trip count), `%c: i1` and
//! `%x: f32` (in [-1, 1]); it returns tensors, and one element as a scalar.
//! Each tensor argument says in `bufferization.writable` whether its buffer may be overwritten.

mod control;

use crate::random::Rng;
use std::fmt::Write;

/// What a function is made of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Operations in the outermost body.
    pub ops: usize,
    /// How deep loops and branches nest.
    pub depth: usize,
    /// Whether `@main` calls private functions.
    pub calls: bool,
    /// Whether there are parallel loops (`scf.forall`).
    pub parallel: bool,
}

impl Shape {
    /// A shape that varies with the seed.
    pub fn of_seed(seed: u64) -> Self {
        Self {
            ops: 4 + (seed % 13) as usize,
            depth: (seed % 4).min(2) as usize,
            calls: seed % 5 == 1,
            parallel: seed.is_multiple_of(3),
        }
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
    let mut callees = Vec::new();
    if shape.calls {
        for i in 0..1 + rng.below(2) {
            let name = format!("f{i}");
            let small = Shape { ops: 2 + rng.below(4) as usize, depth: 1, ..shape };
            let (body, callee) = define(&mut rng, &name, small, &callees);
            text += &body;
            callees.push(callee);
        }
    }
    text + &define(&mut rng, "main", shape, &callees).0
}

/// A function that can be called: name, argument and result types.
#[derive(Clone, Debug)]
struct Callee {
    name: String,
    inputs: Vec<Ty>,
    results: Vec<Ty>,
}

fn define(rng: &mut Rng, name: &str, shape: Shape, callees: &[Callee]) -> (String, Callee) {
    let is_main = name == "main";
    let mut g = Generator { rng, body: String::new(), next: 0, shape, callees };
    let inputs: Vec<Ty> = (0..1 + g.rng.below(3)).map(|_| g.any_type()).collect();
    let mut arguments = Vec::new();
    let mut scope = Scope { indent: 1, ..Scope::default() };
    for (i, ty) in inputs.iter().enumerate() {
        let writable = g.rng.below(100) < 60;
        let attrs = if is_main { format!(" {{bufferization.writable = {writable}}}") } else { String::new() };
        arguments.push(format!("%t{i}: {ty}{attrs}"));
        scope.tensors.push((format!("%t{i}"), *ty));
    }
    arguments.extend(["%n: index".to_owned(), "%c: i1".to_owned(), "%x: f32".to_owned()]);
    scope.indices.push("%n".to_owned());
    scope.bits.push("%c".to_owned());
    scope.scalars.push("%x".to_owned());
    for i in 0..=6 {
        g.line(&scope, &format!("%c{i} = arith.constant {i} : index"));
    }
    g.line(&scope, "%half = arith.constant 0.5 : f32");
    g.line(&scope, "%eighth = arith.constant 0.125 : f32");
    scope.scalars.push("%half".to_owned());
    g.block(&mut scope, shape.ops, shape.depth);
    let results: Vec<(String, Ty)> = (0..1 + g.rng.below(3)).map(|_| g.pick(&scope)).collect();
    let names: Vec<&str> = results.iter().map(|(n, _)| n.as_str()).collect();
    let types: Vec<Ty> = results.iter().map(|(_, t)| *t).collect();
    let scalar = is_main.then(|| g.extract_element(&mut scope));
    let names = names.into_iter().map(str::to_owned).chain(scalar.clone()).collect::<Vec<_>>().join(", ");
    let listed = list(&types).into_iter().chain(scalar.map(|_| "f32".to_owned())).collect::<Vec<_>>().join(", ");
    g.line(&scope, &format!("return {names} : {listed}"));
    let visibility = if is_main { "" } else { "private " };
    let text = format!("func.func {visibility}@{name}({}) -> ({listed}) {{\n{}}}\n", arguments.join(", "), g.body);
    (text, Callee { name: name.to_owned(), inputs, results: types })
}

/// The types that tensors have.
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
}

const TYPES: [Ty; 5] = [Ty::Three, Ty::Six, Ty::Flat, Ty::Wide, Ty::Square];

impl Ty {
    fn dims(self) -> &'static [usize] {
        match self {
            Self::Three => &[3],
            Self::Six => &[6],
            Self::Flat => &[24],
            Self::Wide => &[4, 6],
            Self::Square => &[6, 6],
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

/// What a position in a function sees.
#[derive(Clone, Debug, Default)]
struct Scope {
    indent: usize,
    tensors: Vec<(String, Ty)>,
    indices: Vec<String>,
    bits: Vec<String>,
    scalars: Vec<String>,
}

impl Scope {
    fn inner(&self) -> Self {
        Self { indent: self.indent + 1, ..self.clone() }
    }
}

struct Generator<'a> {
    rng: &'a mut Rng,
    body: String,
    next: usize,
    shape: Shape,
    callees: &'a [Callee],
}

impl Generator<'_> {
    fn line(&mut self, scope: &Scope, text: &str) {
        let _ = writeln!(self.body, "{}{text}", "  ".repeat(scope.indent));
    }

    /// A name that is not taken.
    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.rng.below(100) < chance
    }

    fn any_type(&mut self) -> Ty {
        *self.rng.pick(&TYPES)
    }

    /// A tensor; later ones are likelier.
    fn pick(&mut self, scope: &Scope) -> (String, Ty) {
        let count = scope.tensors.len() as u64;
        let (a, b) = (self.rng.below(count), self.rng.below(count));
        scope.tensors[a.max(b) as usize].clone()
    }

    /// A tensor of a type, made if there is none.
    fn of_type(&mut self, scope: &mut Scope, ty: Ty) -> String {
        let fitting: Vec<String> = scope.tensors.iter().filter(|(_, t)| *t == ty).map(|(n, _)| n.clone()).collect();
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
        for _ in 0..ops {
            let choice = self.rng.below(if depth > 0 { 24 } else { 17 });
            match choice {
                0 | 1 => self.insert_element(scope),
                2 => {
                    let name = self.extract_element(scope);
                    scope.scalars.push(name);
                }
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

    fn indices(&mut self, scope: &Scope, ty: Ty) -> String {
        ty.dims().iter().map(|d| self.index(scope, *d)).collect::<Vec<_>>().join(", ")
    }

    fn extract_element(&mut self, scope: &mut Scope) -> String {
        let (tensor, ty) = self.pick(scope);
        let (at, name) = (self.indices(scope, ty), self.name());
        self.line(scope, &format!("{name} = tensor.extract {tensor}[{at}] : {ty}"));
        name
    }

    fn insert_element(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        let scalar = self.rng.pick(&scope.scalars).clone();
        let (at, name) = (self.indices(scope, ty), self.name());
        self.line(scope, &format!("{name} = tensor.insert {scalar} into {tensor}[{at}] : {ty}"));
        scope.tensors.push((name, ty));
    }

    /// Offsets and sizes of a part of `ty` that has the type `part`.
    fn part(&mut self, scope: &Scope, ty: Ty) -> (Ty, String) {
        let offset = |g: &mut Self, room: usize| {
            if g.percent(50) { g.rng.below(room as u64 + 1).to_string() } else { g.index(scope, room + 1) }
        };
        match ty {
            Ty::Three => (Ty::Three, "[0] [3] [1]".to_owned()),
            Ty::Six if self.percent(30) => (Ty::Three, format!("[{}] [3] [2]", self.rng.below(2))),
            Ty::Six => (Ty::Three, format!("[{}] [3] [1]", offset(self, 3))),
            Ty::Flat => (Ty::Six, format!("[{}] [6] [1]", offset(self, 18))),
            Ty::Wide => (Ty::Six, format!("[{}, 0] [1, 6] [1, 1]", offset(self, 3))),
            Ty::Square if self.percent(50) => (Ty::Wide, format!("[{}, 0] [4, 6] [1, 1]", offset(self, 2))),
            Ty::Square => (Ty::Six, format!("[0, {}] [6, 1] [1, 1]", offset(self, 5))),
        }
    }

    /// A slice, mostly changed and put back.
    fn slice(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        let (part, at) = self.part(scope, ty);
        let name = self.name();
        self.line(scope, &format!("{name} = tensor.extract_slice {tensor}{at} : {ty} to {part}"));
        scope.tensors.push((name.clone(), part));
        if self.percent(35) {
            return;
        }
        let changed = match self.rng.below(3) {
            0 => {
                self.fill_into(scope, &name, part);
                scope.tensors.last().map_or(name, |(n, _)| n.clone())
            }
            1 => {
                self.elementwise_into(scope, &name, part);
                scope.tensors.last().map_or(name, |(n, _)| n.clone())
            }
            _ => name,
        };
        let into = if self.percent(70) { tensor } else { self.of_type(scope, ty) };
        let result = self.name();
        self.line(scope, &format!("{result} = tensor.insert_slice {changed} into {into}{at} : {part} into {ty}"));
        scope.tensors.push((result, ty));
    }

    fn insert_slice(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        let (part, at) = self.part(scope, ty);
        let source = self.of_type(scope, part);
        let name = self.name();
        self.line(scope, &format!("{name} = tensor.insert_slice {source} into {tensor}{at} : {part} into {ty}"));
        scope.tensors.push((name, ty));
    }

    fn fill(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        self.fill_into(scope, &tensor, ty);
    }

    fn fill_into(&mut self, scope: &mut Scope, tensor: &str, ty: Ty) {
        let (scalar, name) = (self.rng.pick(&scope.scalars).clone(), self.name());
        self.line(scope, &format!("{name} = linalg.fill ins({scalar} : f32) outs({tensor} : {ty}) -> {ty}"));
        scope.tensors.push((name, ty));
    }

    /// A new tensor with contents: filled, computed, or constant.
    fn fresh(&mut self, scope: &mut Scope, ty: Ty) -> String {
        let name = self.name();
        if self.percent(35) {
            let value = (self.rng.below(17) as f64 - 8.0) / 8.0;
            self.line(scope, &format!("{name} = arith.constant dense<{value:.3}> : {ty}"));
            scope.tensors.push((name.clone(), ty));
            return name;
        }
        self.line(scope, &format!("{name} = tensor.empty() : {ty}"));
        // Undefined contents: it is written before anything else may see it.
        let same: Vec<_> = scope.tensors.iter().filter(|(_, t)| *t == ty).map(|(n, _)| n.clone()).collect();
        if same.is_empty() || self.percent(50) {
            self.fill_into(scope, &name, ty);
        } else {
            let source = self.rng.pick(&same).clone();
            self.generic(scope, &[source], &name, ty, false);
        }
        scope.tensors.last().map_or(name, |(n, _)| n.clone())
    }

    fn elementwise(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        self.elementwise_into(scope, &tensor, ty);
    }

    fn elementwise_into(&mut self, scope: &mut Scope, destination: &str, ty: Ty) {
        let count = 1 + self.rng.below(2);
        let sources: Vec<String> = (0..count).map(|_| self.of_type(scope, ty)).collect();
        let reads = self.percent(50);
        self.generic(scope, &sources, destination, ty, reads);
    }

    /// `linalg.generic` of one or two inputs, all of type `ty`; `reads`: it uses what the destination held.
    fn generic(&mut self, scope: &mut Scope, sources: &[String], destination: &str, ty: Ty, reads: bool) {
        let rank = ty.dims().len();
        let dims: Vec<String> = (0..rank).map(|d| format!("d{d}")).collect();
        let from = dims.join(", ");
        let identity = format!("affine_map<({from}) -> ({from})>");
        // A transposed input reads other positions than are written.
        let crossed = if ty == Ty::Square { "affine_map<(d0, d1) -> (d1, d0)>".to_owned() } else { identity.clone() };
        let mut maps = Vec::new();
        for _ in sources {
            maps.push(if self.percent(25) { crossed.clone() } else { identity.clone() });
        }
        maps.push(identity);
        let parallel = vec!["\"parallel\""; rank].join(", ");
        let ins = sources.join(", ");
        let types = vec![ty.to_string(); sources.len()].join(", ");
        let args: Vec<String> = (0..sources.len()).map(|i| format!("%a{i}: f32")).collect();
        let name = self.name();
        self.line(
            scope,
            &format!(
                "{name} = linalg.generic {{indexing_maps = [{}], iterator_types = [{parallel}]}} ins({ins} : {types}) \
                 outs({destination} : {ty}) {{",
                maps.join(", ")
            ),
        );
        self.line(scope, &format!("^bb0({}, %o: f32):", args.join(", ")));
        let inner = scope.inner();
        let second = if reads { "%o" } else { ["%a0", "%a1"][sources.len() - 1] };
        let combined = match self.rng.below(4) {
            0 => "%m = arith.maximumf %a0, {second} : f32\n",
            1 => "%m = arith.mulf %a0, {second} : f32\n",
            2 => "%s = arith.addf %a0, {second} : f32\n%m = arith.mulf %s, %half : f32\n",
            _ => "%s = arith.subf %a0, {second} : f32\n%m = arith.mulf %s, %half : f32\n",
        };
        for line in combined.replace("{second}", second).lines() {
            self.line(&inner, line);
        }
        self.line(&inner, "linalg.yield %m : f32");
        self.line(scope, &format!("}} -> {ty}"));
        scope.tensors.push((name, ty));
    }

    /// A matrix product, scaled back into range.
    fn product(&mut self, scope: &mut Scope) {
        let (left, right) = (self.of_type(scope, Ty::Wide), self.of_type(scope, Ty::Square));
        let into = self.of_type(scope, Ty::Wide);
        let (product, ty) = (self.name(), Ty::Wide);
        self.line(
            scope,
            &format!(
                "{product} = linalg.matmul ins({left}, {right} : {ty}, {}) outs({into} : {ty}) -> {ty}",
                Ty::Square
            ),
        );
        let name = self.name();
        self.line(
            scope,
            &format!(
                "{name} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = \
                 [\"parallel\", \"parallel\"]}} outs({product} : {ty}) {{"
            ),
        );
        self.line(scope, "^bb0(%o: f32):");
        let inner = scope.inner();
        self.line(&inner, "%m = arith.mulf %o, %eighth : f32");
        self.line(&inner, "linalg.yield %m : f32");
        self.line(scope, &format!("}} -> {ty}"));
        scope.tensors.push((name, ty));
    }

    fn bit(&mut self, scope: &mut Scope) -> String {
        if self.percent(40) {
            return self.rng.pick(&scope.bits).clone();
        }
        let name = self.name();
        if self.percent(50) {
            let (a, b) = (self.rng.pick(&scope.scalars).clone(), self.rng.pick(&scope.scalars).clone());
            self.line(scope, &format!("{name} = arith.cmpf olt, {a}, {b} : f32"));
        } else {
            let index = self.rng.pick(&scope.indices).clone();
            self.line(scope, &format!("{name} = arith.cmpi ult, {index}, %c2 : index"));
        }
        scope.bits.push(name.clone());
        name
    }

    fn select(&mut self, scope: &mut Scope) {
        let (first, ty) = self.pick(scope);
        let (second, bit, name) = (self.of_type(scope, ty), self.bit(scope), self.name());
        self.line(scope, &format!("{name} = arith.select {bit}, {first}, {second} : {ty}"));
        scope.tensors.push((name, ty));
    }

    /// Through a dynamic type and back, with an insert in between.
    fn cast(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        let dynamic = format!("tensor<{}f32>", "?x".repeat(ty.dims().len()));
        let (wide, changed, name) = (self.name(), self.name(), self.name());
        self.line(scope, &format!("{wide} = tensor.cast {tensor} : {ty} to {dynamic}"));
        let at = self.indices(scope, ty);
        let scalar = self.rng.pick(&scope.scalars).clone();
        self.line(scope, &format!("{changed} = tensor.insert {scalar} into {wide}[{at}] : {dynamic}"));
        self.line(scope, &format!("{name} = tensor.cast {changed} : {dynamic} to {ty}"));
        scope.tensors.push((name, ty));
    }

    fn reshape(&mut self, scope: &mut Scope) {
        let name = self.name();
        let (flat, wide) = (Ty::Flat, Ty::Wide);
        if self.percent(50) {
            let tensor = self.of_type(scope, wide);
            self.line(scope, &format!("{name} = tensor.collapse_shape {tensor} [[0, 1]] : {wide} into {flat}"));
            scope.tensors.push((name, flat));
        } else {
            let tensor = self.of_type(scope, flat);
            self.line(
                scope,
                &format!("{name} = tensor.expand_shape {tensor} [[0, 1]] output_shape [4, 6] : {flat} into {wide}"),
            );
            scope.tensors.push((name, wide));
        }
    }
}
