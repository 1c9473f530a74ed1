//! Random functions on small memrefs, for deallocation: any control flow, and buffers with many possible aliases.
//!
//! The same text for the same seed; always valid IR with defined values, that terminates for all arguments. Every function
//! takes two memrefs of 4 `f32`, then `%c: i1`, `%d: i1`, `%n: index` (most iterations of loops) and `%s: i32` (the case of
//! switches), and returns one to three memrefs; [`inputs`] makes arguments that take every branch.
//!
//! A program allocates and hardly frees: buffers pass through views, selects, calls, results and arguments of regions, and
//! arguments of blocks; some are globals, on the stack, or never used. With [`Shape::frees`] it frees a few itself.

mod control;
mod graph;

use crate::host_tensor::{Data, Dtype, HostTensor};
use crate::random::Rng;
use std::fmt::Write;

/// The constructs of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Statements in a body, at most.
    pub statements: u64,
    /// Nesting depth of regions.
    pub depth: usize,
    /// Blocks of a function; 1: no branches.
    pub blocks: usize,
    /// `scf.index_switch` and `scf.execute_region`, which may have several blocks.
    pub all_regions: bool,
    /// Calls of private and public functions.
    pub calls: bool,
    /// Whether `memref.dealloc` frees some buffers already.
    pub frees: bool,
    /// Whether most calls pass buffers without other uses.
    pub gives: bool,
}

impl Shape {
    /// One block for each region; `scf.if`, `scf.for` and `scf.while` only.
    pub fn structured(seed: u64) -> Self {
        Self {
            statements: 3 + seed % 4,
            depth: 1 + (seed % 5).min(1) as usize,
            blocks: 1,
            all_regions: false,
            calls: seed.is_multiple_of(3),
            frees: false,
            gives: false,
        }
    }

    /// Any control flow.
    pub fn whole(seed: u64) -> Self {
        Self {
            statements: 2 + seed % 3,
            depth: (seed % 3).min(1 + seed % 2) as usize,
            blocks: 1 + (seed % 9) as usize,
            all_regions: true,
            calls: seed % 4 == 1,
            frees: seed % 5 == 2,
            gives: false,
        }
    }

    /// Any control flow, and calls that pass ownership.
    pub fn giving(seed: u64) -> Self {
        Self { statements: 4, blocks: 1 + (seed % 4) as usize, calls: true, gives: true, ..Self::whole(seed) }
    }
}

/// A module with a public function `@main`.
pub fn module(seed: u64, shape: Shape) -> String {
    let mut rng = Rng::new(seed ^ 0x6d65_6d72);
    let mut text = "memref.global \"private\" @g : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>\n".to_owned();
    let mut callees = Vec::new();
    let count = if shape.calls { 1 + rng.below(3) } else { 0 };
    for i in 0..count {
        let smaller = Shape { blocks: shape.blocks.min(1 + rng.below(4) as usize), ..shape };
        let is_private = rng.below(3) > 0;
        let (body, callee) = define(&mut rng, &format!("f{i}"), is_private, smaller, &callees);
        text += &body;
        callees.push(callee);
    }
    text + &define(&mut rng, "main", false, shape, &callees).0
}

/// Iterations of loops, and cases of switches.
const NUMBERS: [(i64, i64); 4] = [(0, 0), (1, 1), (2, 2), (3, 0)];

/// Arguments of `@main`, one list for each run: both values of each condition.
pub fn inputs(seed: u64) -> Vec<Vec<HostTensor>> {
    let mut all = Vec::new();
    for bits in 0..4_i64 {
        for (n, s) in NUMBERS {
            let number = |dtype, value: i64| HostTensor { dtype, shape: vec![], data: Data::Int(vec![value]) };
            all.push(vec![
                HostTensor::random(Dtype::F32, &[4], 2 * seed),
                HostTensor::random(Dtype::F32, &[4], 2 * seed + 1),
                number(Dtype::Int(1), bits & 1),
                number(Dtype::Int(1), bits >> 1),
                number(Dtype::Index, n),
                number(Dtype::Int(32), s),
            ]);
        }
    }
    all
}

/// The types of memrefs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    /// 4 elements, a whole buffer.
    Whole,
    /// 2 elements at some offset.
    Part,
}

impl std::fmt::Display for Ty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Whole => "memref<4xf32>",
            Self::Part => "memref<?xf32, strided<[1], offset: ?>>",
        })
    }
}

const SLICE: &str = "memref<2xf32, strided<[1], offset: ?>>";

#[derive(Clone, Debug)]
struct Callee {
    name: String,
    results: Vec<Ty>,
}

/// Values available at a position.
#[derive(Clone, Debug, Default)]
struct Scope {
    memrefs: Vec<(String, Ty)>,
    bits: Vec<String>,
    floats: Vec<String>,
    /// Whether the position is in the function's own region, so that the stack outlives its values.
    is_outermost: bool,
}

struct Generator<'a> {
    rng: &'a mut Rng,
    text: String,
    next: usize,
    shape: Shape,
    callees: &'a [Callee],
}

fn define(rng: &mut Rng, name: &str, is_private: bool, shape: Shape, callees: &[Callee]) -> (String, Callee) {
    let mut g = Generator { rng, text: String::new(), next: 0, shape, callees };
    let results: Vec<Ty> = (0..1 + g.rng.below(3)).map(|_| g.any_type()).collect();
    let mut scope = Scope { is_outermost: true, ..Scope::default() };
    scope.memrefs = vec![("%a".to_owned(), Ty::Whole), ("%b".to_owned(), Ty::Whole)];
    scope.bits = vec!["%c".to_owned(), "%d".to_owned()];
    for i in 0..4 {
        g.line(&format!("%c{i} = arith.constant {i} : index"));
    }
    g.line("%half = arith.constant 0.5 : f32");
    scope.floats.push("%half".to_owned());
    g.line("%fuel = memref.alloca() : memref<index>");
    g.line("memref.store %n, %fuel[] : memref<index>");
    let mut fresh = |g: &mut Generator<'_>| g.allocate(&mut scope);
    fresh(&mut g);
    g.graph(scope, &results);
    let visibility = if is_private { "private " } else { "" };
    let types = list(&results);
    let text = format!(
        "func.func {visibility}@{name}(%a: {t}, %b: {t}, %c: i1, %d: i1, %n: index, %s: i32) -> ({types}) {{\n{}}}\n",
        g.text,
        t = Ty::Whole
    );
    (text, Callee { name: name.to_owned(), results })
}

fn list(types: &[Ty]) -> String {
    types.iter().map(Ty::to_string).collect::<Vec<_>>().join(", ")
}

fn names(values: &[String]) -> String {
    values.join(", ")
}

impl Generator<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "  {text}");
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn any_type(&mut self) -> Ty {
        if self.rng.below(4) == 0 { Ty::Part } else { Ty::Whole }
    }

    fn types(&mut self, most: u64) -> Vec<Ty> {
        (0..self.rng.below(most + 1)).map(|_| self.any_type()).collect()
    }

    /// A memref of a type, later ones likelier; created if there is none.
    fn pick(&mut self, scope: &mut Scope, ty: Ty) -> String {
        let fitting: Vec<_> = scope.memrefs.iter().filter(|(_, t)| *t == ty).map(|(n, _)| n.clone()).collect();
        if fitting.is_empty() {
            return match ty {
                Ty::Whole => self.allocate(scope),
                Ty::Part => self.slice(scope),
            };
        }
        let count = fitting.len() as u64;
        let at = self.rng.below(count).max(self.rng.below(count));
        fitting[at as usize].clone()
    }

    fn picks(&mut self, scope: &mut Scope, types: &[Ty]) -> Vec<String> {
        types.iter().map(|ty| self.pick(scope, *ty)).collect()
    }

    fn bit(&mut self, scope: &Scope) -> String {
        self.rng.pick(&scope.bits).clone()
    }

    fn float(&mut self, scope: &Scope) -> String {
        self.rng.pick(&scope.floats).clone()
    }

    fn made(&mut self, scope: &mut Scope, name: &str, ty: Ty) {
        scope.memrefs.push((name.to_owned(), ty));
    }

    fn allocate(&mut self, scope: &mut Scope) -> String {
        let (name, value) = (self.name(), self.float(scope));
        self.line(&format!("{name} = memref.alloc() : {}", Ty::Whole));
        self.line(&format!("linalg.fill ins({value} : f32) outs({name} : {})", Ty::Whole));
        self.made(scope, &name, Ty::Whole);
        name
    }

    fn slice(&mut self, scope: &mut Scope) -> String {
        let (from, part, name) = (self.pick(scope, Ty::Whole), self.name(), self.name());
        let at = self.rng.below(3);
        self.line(&format!("{part} = memref.subview {from}[%c{at}] [2] [1] : {} to {SLICE}", Ty::Whole));
        self.line(&format!("{name} = memref.cast {part} : {SLICE} to {}", Ty::Part));
        self.made(scope, &name, Ty::Part);
        name
    }

    fn body(&mut self, scope: &mut Scope, depth: usize) {
        for _ in 0..self.rng.below(self.shape.statements + 1) {
            self.statement(scope, depth);
        }
    }

    fn statement(&mut self, scope: &mut Scope, depth: usize) {
        match self.rng.below(if depth > 0 { 28 } else { 20 }) {
            0..=3 => {
                self.allocate(scope);
            }
            4 => self.allocate_part(scope),
            5 => {
                self.slice(scope);
            }
            6 | 7 => {
                let ty = self.any_type();
                let (from, to) = (self.pick(scope, ty), self.pick(scope, ty));
                self.line(&format!("memref.copy {from}, {to} : {ty} to {ty}"));
            }
            8 | 9 => self.access(scope),
            10 | 11 => self.select(scope),
            12 => self.compare(scope),
            13 | 14 => self.call(scope),
            15 => self.foreign(scope),
            16 if self.shape.frees => self.by_hand(scope),
            16 | 17 => self.overwrite(scope),
            18 | 19 => self.access(scope),
            _ => self.region(scope, depth - 1),
        }
    }

    /// A buffer of dynamic size behind a cast.
    fn allocate_part(&mut self, scope: &mut Scope) {
        let (whole, name, value) = (self.name(), self.name(), self.float(scope));
        self.line(&format!("{whole} = memref.alloc(%c2) : memref<?xf32>"));
        self.line(&format!("linalg.fill ins({value} : f32) outs({whole} : memref<?xf32>)"));
        self.line(&format!("{name} = memref.cast {whole} : memref<?xf32> to {}", Ty::Part));
        self.made(scope, &name, Ty::Part);
    }

    /// Reads an element, and writes a sum with it elsewhere.
    fn access(&mut self, scope: &mut Scope) {
        let (x, y) = (self.any_type(), self.any_type());
        let (from, to, read, sum) = (self.pick(scope, x), self.pick(scope, y), self.name(), self.name());
        let (i, j, value) = (self.rng.below(2), self.rng.below(2), self.float(scope));
        self.line(&format!("{read} = memref.load {from}[%c{i}] : {x}"));
        self.line(&format!("{sum} = arith.addf {read}, {value} : f32"));
        self.line(&format!("memref.store {sum}, {to}[%c{j}] : {y}"));
        scope.floats.push(sum);
    }

    fn overwrite(&mut self, scope: &mut Scope) {
        let ty = self.any_type();
        let (value, to) = (self.float(scope), self.pick(scope, ty));
        self.line(&format!("linalg.fill ins({value} : f32) outs({to} : {ty})"));
    }

    fn select(&mut self, scope: &mut Scope) {
        let ty = self.any_type();
        let (bit, x, y, name) = (self.bit(scope), self.pick(scope, ty), self.pick(scope, ty), self.name());
        self.line(&format!("{name} = arith.select {bit}, {x}, {y} : {ty}"));
        self.made(scope, &name, ty);
    }

    fn compare(&mut self, scope: &mut Scope) {
        let (x, y, name) = (self.float(scope), self.float(scope), self.name());
        self.line(&format!("{name} = arith.cmpf olt, {x}, {y} : f32"));
        scope.bits.push(name);
    }

    fn call(&mut self, scope: &mut Scope) {
        let Some(callee) = (!self.callees.is_empty()).then(|| self.rng.pick(self.callees).clone()) else { return };
        let (x, y) = self.passed(scope);
        let name = self.name();
        let (c, d, n) = (self.bit(scope), self.bit(scope), self.rng.below(3));
        let results = callee.results.len();
        self.line(&format!(
            "{name}:{results} = func.call @{}({x}, {y}, {c}, {d}, %c{n}, %s) : ({t}, {t}, i1, i1, index, i32) -> ({})",
            callee.name,
            list(&callee.results),
            t = Ty::Whole
        ));
        for (i, ty) in callee.results.iter().enumerate() {
            self.made(scope, &format!("{name}#{i}"), *ty);
        }
    }

    /// The memref arguments of a call.
    fn passed(&mut self, scope: &mut Scope) -> (String, String) {
        let ty = Ty::Whole;
        if !self.shape.gives {
            return (self.pick(scope, ty), self.pick(scope, ty));
        }
        let (x, y) = (self.given(scope), self.given(scope));
        match self.rng.below(8) {
            0 => (x.clone(), x),
            1 => {
                let (bit, name) = (self.bit(scope), self.name());
                self.line(&format!("{name} = arith.select {bit}, {x}, {y} : {ty}"));
                if self.rng.below(2) == 0 { (x, name) } else { (name, y) }
            }
            _ => (x, y),
        }
    }

    /// A buffer, mostly without other uses.
    fn given(&mut self, scope: &mut Scope) -> String {
        if self.rng.below(6) == 0 {
            return self.pick(scope, Ty::Whole);
        }
        let name = self.allocate(scope);
        scope.memrefs.retain(|(other, _)| *other != name);
        name
    }

    /// Memory that is never freed: a global, or the stack, which must not leave the function.
    fn foreign(&mut self, scope: &mut Scope) {
        let (name, ty) = (self.name(), Ty::Whole);
        if !scope.is_outermost || self.rng.below(2) == 0 {
            self.line(&format!("{name} = memref.get_global @g : {ty}"));
            return self.made(scope, &name, ty);
        }
        let (value, bit, other) = (self.float(scope), self.bit(scope), self.pick(scope, ty));
        let (chosen, read) = (self.name(), self.name());
        self.line(&format!("{name} = memref.alloca() : {ty}"));
        self.line(&format!("linalg.fill ins({value} : f32) outs({name} : {ty})"));
        self.line(&format!("{chosen} = arith.select {bit}, {name}, {other} : {ty}"));
        self.line(&format!("{read} = memref.load {chosen}[%c2] : {ty}"));
        scope.floats.push(read);
    }

    /// A buffer that the program frees itself, through a name that may alias another one.
    fn by_hand(&mut self, scope: &mut Scope) {
        let (first, second) = (self.name(), self.name());
        for name in [&first, &second] {
            let value = self.float(scope);
            self.line(&format!("{name} = memref.alloc() : {}", Ty::Whole));
            self.line(&format!("linalg.fill ins({value} : f32) outs({name} : {})", Ty::Whole));
        }
        let (bit, chosen, read) = (self.bit(scope), self.name(), self.name());
        self.line(&format!("{chosen} = arith.select {bit}, {first}, {second} : {}", Ty::Whole));
        self.line(&format!("{read} = memref.load {chosen}[%c1] : {}", Ty::Whole));
        scope.floats.push(read);
        let freed = if self.rng.below(2) == 0 { &chosen } else { &first };
        match self.rng.below(3) {
            0 => self.free_on_some_paths(scope, freed),
            1 => self.free_by_condition(scope, freed, &chosen),
            _ => self.line(&format!("memref.dealloc {freed} : {}", Ty::Whole)),
        }
        if *freed == first {
            // Still to be freed by the pass.
            self.made(scope, &second, Ty::Whole);
        }
    }

    /// In one branch, in both, or in one and behind the other by the opposite condition.
    fn free_on_some_paths(&mut self, scope: &Scope, freed: &str) {
        let (bit, free) = (self.bit(scope), format!("memref.dealloc {freed} : {}", Ty::Whole));
        self.line(&format!("scf.if {bit} {{"));
        self.line(&free);
        match self.rng.below(3) {
            0 => {}
            1 => {
                let read = self.name();
                self.line("} else {");
                self.line(&format!("{read} = memref.load {freed}[%c0] : {}", Ty::Whole));
                self.line(&free);
            }
            _ => {
                let (all, not) = (self.name(), self.name());
                self.line("}");
                self.line(&format!("{all} = arith.constant true"));
                self.line(&format!("{not} = arith.xori {bit}, {all} : i1"));
                self.line(&format!("scf.if {not} {{"));
                self.line(&free);
            }
        }
        self.line("}");
    }

    /// A buffer that is kept at first is freed later, if it still must be.
    fn free_by_condition(&mut self, scope: &Scope, freed: &str, kept: &str) {
        let (bit, still) = (self.bit(scope), self.name());
        let ty = Ty::Whole;
        if freed == kept || self.rng.below(2) == 0 {
            return self.line(&format!("bufferization.dealloc ({freed} : {ty}) if ({bit})"));
        }
        self.line(&format!("{still} = bufferization.dealloc ({freed} : {ty}) if ({bit}) retain ({kept} : {ty})"));
        if self.rng.below(2) == 0 {
            return self.line(&format!("bufferization.dealloc ({kept} : {ty}) if ({still})"));
        }
        self.line(&format!("scf.if {still} {{"));
        self.line(&format!("memref.dealloc {kept} : {ty}"));
        self.line("}");
    }
}
