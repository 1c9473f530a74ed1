//! Executes deallocated programs, with every choice of branches and trip counts, and checks the buffers:
//! none is used after it was freed, none is freed twice, none leaks, and returned ones belong to the caller alone.

use std::collections::HashMap;

use monopour_dealloc::Options;
use monopour_ir::typed::bufferization::Dealloc;
use monopour_ir::{Block, Module, Op, Value};
use monopour_testkit::random::seeds;

use crate::support::{EXTENSIONS, UPSTREAM, dealloc, is_known, programs};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Val {
    Buffer(usize),
    Number(i64),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// An argument or a global.
    Foreign,
    Alive,
    Freed,
}

struct Machine<'c> {
    module: &'c Module<'c>,
    buffers: Vec<State>,
    values: HashMap<Value<'c>, Val>,
    /// Source of choices: one digit for each branch or loop met.
    choices: u64,
}

fn number(v: bool) -> Val {
    Val::Number(i64::from(v))
}

impl<'c> Machine<'c> {
    fn choose(&mut self, below: u64) -> i64 {
        let choice = self.choices % below;
        self.choices /= below;
        choice as i64
    }
    fn fresh(&mut self, state: State) -> Val {
        self.buffers.push(state);
        Val::Buffer(self.buffers.len() - 1)
    }
    fn buffer(&self, v: Value<'c>) -> Result<usize, String> {
        match self.values.get(&v) {
            Some(Val::Buffer(b)) => Ok(*b),
            other => Err(format!("a memref is {other:?}")),
        }
    }
    /// An integer that the program computes, or an arbitrary one.
    fn number(&mut self, v: Value<'c>) -> i64 {
        match self.values.get(&v) {
            Some(Val::Number(n)) => *n,
            _ => {
                let n = self.choose(2);
                self.values.insert(v, Val::Number(n));
                n
            }
        }
    }
    fn alive(&self, op: Op<'c>, b: usize) -> Result<(), String> {
        if self.buffers[b] == State::Freed { Err(format!("{op} uses a freed buffer")) } else { Ok(()) }
    }
    fn free(&mut self, op: Op<'c>, b: usize) -> Result<(), String> {
        match self.buffers[b] {
            State::Alive => {
                self.buffers[b] = State::Freed;
                Ok(())
            }
            other => Err(format!("{op} frees a buffer that is {other:?}")),
        }
    }

    /// Runs a block and returns the forwarded values.
    fn block(&mut self, block: Block<'c>) -> Result<Vec<Val>, String> {
        for op in block.ops() {
            if op.is_terminator() {
                let mut out = Vec::new();
                for v in op.operands() {
                    if v.ty().is_memref() {
                        self.alive(op, self.buffer(v)?)?;
                    }
                    out.push(match self.values.get(&v) {
                        Some(known) => *known,
                        None => Val::Number(self.number(v)),
                    });
                }
                return Ok(out);
            }
            self.op(op)?;
        }
        Ok(vec![])
    }

    fn op(&mut self, op: Op<'c>) -> Result<(), String> {
        for v in op.operands() {
            // A pointer may also be compared where the result does not matter.
            let looks =
                ["bufferization.dealloc", "memref.extract_aligned_pointer_as_index", "memref.extract_strided_metadata"];
            if v.ty().is_memref() && !looks.contains(&op.name()) {
                self.alive(op, self.buffer(v)?)?;
            }
        }
        let results = match op.dialect() {
            "memref" | "bufferization" => self.memory(op)?,
            "arith" => self.arithmetic(op)?,
            _ => self.control(op)?,
        };
        for (v, val) in op.results().into_iter().zip(results) {
            self.values.insert(v, val);
        }
        Ok(())
    }

    fn memory(&mut self, op: Op<'c>) -> Result<Vec<Val>, String> {
        Ok(match op.name() {
            "memref.alloc" | "bufferization.clone" => vec![self.fresh(State::Alive)],
            "memref.get_global" => vec![self.fresh(State::Foreign)],
            "memref.dealloc" => {
                let b = self.buffer(op.operand(0))?;
                self.free(op, b)?;
                vec![]
            }
            name if name.starts_with("memref.") && op.num_results() == 1 && op.result(0).ty().is_memref() => {
                vec![Val::Buffer(self.buffer(op.operand(0))?)]
            }
            "memref.extract_strided_metadata" => {
                let base = Val::Buffer(self.buffer(op.operand(0))?);
                let mut all = vec![Val::Number(0); op.num_results()];
                all[0] = base;
                all
            }
            "memref.extract_aligned_pointer_as_index" => vec![Val::Number(self.buffer(op.operand(0))? as i64)],
            "bufferization.dealloc" => self.conditional_dealloc(op)?,
            _ => vec![],
        })
    }

    fn arithmetic(&mut self, op: Op<'c>) -> Result<Vec<Val>, String> {
        Ok(match op.name() {
            "arith.index_cast" if op.result(0).ty().is_memref() => vec![Val::Buffer(self.buffer(op.operand(0))?)],
            "arith.cmpi" if op.operand(0).ty().is_index() => {
                vec![number(self.number(op.operand(0)) == self.number(op.operand(1)))]
            }
            "arith.xori" => vec![number((self.number(op.operand(0)) != 0) != (self.number(op.operand(1)) != 0))],
            "arith.select" if op.result(0).ty().is_memref() => {
                let pick = if self.number(op.operand(0)) != 0 { 1 } else { 2 };
                vec![Val::Buffer(self.buffer(op.operand(pick))?)]
            }
            "arith.constant" => op.result(0).constant_int().map(Val::Number).into_iter().collect(),
            "arith.select" => vec![Val::Number(if self.number(op.operand(0)) != 0 {
                self.number(op.operand(1))
            } else {
                self.number(op.operand(2))
            })],
            "arith.andi" => vec![number(self.number(op.operand(0)) != 0 && self.number(op.operand(1)) != 0)],
            "arith.ori" => vec![number(self.number(op.operand(0)) != 0 || self.number(op.operand(1)) != 0)],
            _ => vec![],
        })
    }

    fn control(&mut self, op: Op<'c>) -> Result<Vec<Val>, String> {
        Ok(match op.name() {
            "func.call" => self.call(op)?,
            "scf.if" => {
                let taken = usize::from(self.number(op.operand(0)) == 0);
                match op.region(taken).entry() {
                    Some(block) => self.block(block)?,
                    None => vec![],
                }
            }
            "scf.for" => self.for_loop(op)?,
            "scf.while" => self.while_loop(op)?,
            "scf.forall" => {
                for _ in 0..2 {
                    self.block(op.body().expect("a body"))?;
                }
                vec![]
            }
            _ => vec![],
        })
    }

    fn for_loop(&mut self, op: Op<'c>) -> Result<Vec<Val>, String> {
        let body = op.body().expect("a body");
        let mut carried = Vec::new();
        for v in &op.operands()[3..] {
            carried.push(match self.values.get(v) {
                Some(known) => *known,
                None => Val::Number(self.number(*v)),
            });
        }
        let fixed = op.operand(0).constant_int().zip(op.operand(1).constant_int());
        let trips = match fixed {
            Some((l, u)) => (u - l).clamp(0, 3),
            None => self.choose(4),
        };
        for trip in 0..trips {
            self.values.insert(body.arg(0), Val::Number(trip));
            for (arg, val) in body.args()[1..].iter().zip(&carried) {
                self.values.insert(*arg, *val);
            }
            carried = self.block(body)?;
        }
        Ok(carried)
    }

    fn while_loop(&mut self, op: Op<'c>) -> Result<Vec<Val>, String> {
        let (before, after) = (op.region(0).entry().expect("a body"), op.region(1).entry().expect("a body"));
        let mut carried = Vec::new();
        for v in op.operands() {
            carried.push(match self.values.get(&v) {
                Some(known) => *known,
                None => Val::Number(self.number(v)),
            });
        }
        let trips = self.choose(4);
        for trip in 0.. {
            self.values.extend(before.args().into_iter().zip(carried));
            let passed = self.block(before)?.split_off(1);
            if trip == trips {
                return Ok(passed);
            }
            self.values.extend(after.args().into_iter().zip(passed));
            carried = self.block(after)?;
        }
        unreachable!("the loop ends")
    }

    fn conditional_dealloc(&mut self, op: Op<'c>) -> Result<Vec<Val>, String> {
        let n = Dealloc::of(op).expect("a dealloc").memref_positions().len();
        let operands = op.operands();
        let mut retained = Vec::new();
        for v in &operands[2 * n..] {
            retained.push(self.buffer(*v)?);
        }
        let mut results = vec![false; retained.len()];
        let mut done = Vec::new();
        for i in 0..n {
            let b = self.buffer(operands[i])?;
            if self.number(operands[n + i]) == 0 {
                continue;
            }
            for (r, kept) in results.iter_mut().zip(&retained) {
                *r |= *kept == b;
            }
            if !retained.contains(&b) && !done.contains(&b) {
                done.push(b);
                self.free(op, b)?;
            }
        }
        Ok(results.into_iter().map(number).collect())
    }

    fn call(&mut self, op: Op<'c>) -> Result<Vec<Val>, String> {
        let name = op.attr("callee").and_then(|a| a.as_symbol().map(str::to_owned)).expect("a callee");
        let callee = self.module.symbol(&name).expect("a function");
        let body = callee.body().expect("a body");
        // A callee owns no buffer of its caller.
        let saved: Vec<(usize, State)> =
            op.operands().iter().filter_map(|v| self.buffer(*v).ok()).map(|b| (b, self.buffers[b])).collect();
        for (arg, v) in body.args().into_iter().zip(op.operands()) {
            if let Some(val) = self.values.get(&v).copied() {
                self.values.insert(arg, val);
            }
        }
        for (b, _) in &saved {
            self.buffers[*b] = State::Foreign;
        }
        let returned = self.block(body)?;
        // A private function returns indicators.
        for val in returned.iter().filter(|_| callee.is_public()) {
            if let Val::Buffer(b) = val
                && self.buffers[*b] != State::Alive
            {
                return Err(format!("@{name} returns a buffer that is {:?}", self.buffers[*b]));
            }
        }
        for (b, state) in saved {
            self.buffers[b] = state;
        }
        Ok(returned)
    }
}

/// Runs a function with given choices.
pub fn execute<'c>(module: &'c Module<'c>, function: Op<'c>, choices: u64) -> Result<(), String> {
    let mut machine = Machine { module, buffers: vec![], values: HashMap::new(), choices };
    let body = function.body().expect("a body");
    for arg in body.args().into_iter().filter(|a| a.ty().is_memref()) {
        let buffer = machine.fresh(State::Foreign);
        machine.values.insert(arg, buffer);
    }
    let returned: Vec<usize> = machine
        .block(body)?
        .into_iter()
        .filter_map(|v| match v {
            Val::Buffer(b) => Some(b),
            Val::Number(_) => None,
        })
        .collect();
    for (i, b) in returned.iter().enumerate() {
        if machine.buffers[*b] != State::Alive {
            return Err(format!("result {i} is {:?}", machine.buffers[*b]));
        }
        if returned[..i].contains(b) {
            return Err(format!("result {i} is returned twice"));
        }
    }
    let leaked = (0..machine.buffers.len()).find(|b| machine.buffers[*b] == State::Alive && !returned.contains(b));
    leaked.map_or(Ok(()), |b| Err(format!("buffer {b} leaks")))
}

fn check(name: &str, text: &str, options: &Options, results_are_distinct: bool) {
    let (module, _) = dealloc(text, options).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
    for function in module.functions().into_iter().filter(|f| f.is_public()) {
        for choices in 0..128 {
            match execute(&module, function, choices) {
                Err(e) if results_are_distinct || !e.contains("twice") => {
                    panic!("{name}, choices {choices}: {e}\n{}\n{}", module.op(), text)
                }
                _ => {}
            }
        }
    }
}

#[test]
fn bufferized_programs_own_their_buffers() {
    for (name, text) in programs().into_iter().filter(|(_, text)| is_known(text)) {
        check(&name, &text, &EXTENSIONS, true);
        // Upstream's form frees the same buffers, but may return one buffer twice.
        if !text.contains("scf.while") {
            check(&name, &text, &UPSTREAM, false);
        }
    }
}

/// A portable generator: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

const T: &str = "memref<4xf32>";

struct Generator {
    random: Random,
    next: usize,
    text: String,
}

impl Generator {
    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }
    fn pick(&mut self, scope: &[String]) -> String {
        scope[self.random.below(scope.len())].clone()
    }
    fn body(&mut self, scope: &mut Vec<String>, depth: usize) {
        for _ in 0..1 + self.random.below(4) {
            self.statement(scope, depth);
        }
    }
    fn statement(&mut self, scope: &mut Vec<String>, depth: usize) {
        match self.random.below(if depth == 0 { 5 } else { 8 }) {
            0 | 1 => {
                let v = self.name();
                self.text += &format!("{v} = memref.alloc() : {T}\n");
                scope.push(v);
            }
            2 => {
                let (a, v, w) = (self.pick(scope), self.name(), self.name());
                self.text += &format!("{v} = memref.subview {a}[0] [2] [1] : {T} to memref<2xf32, strided<[1]>>\n");
                self.text += &format!("{w} = memref.load {v}[%c0] : memref<2xf32, strided<[1]>>\n");
            }
            3 | 4 => {
                let (a, b) = (self.pick(scope), self.pick(scope));
                self.text += &format!("memref.copy {a}, {b} : {T} to {T}\n");
            }
            5 | 6 => {
                let v = self.name();
                let n = 1 + self.random.below(2);
                let types = vec![T; n].join(", ");
                let condition = ["%c", "%d", "%e"][self.random.below(3)];
                self.text += &format!("{v}:{n} = scf.if {condition} -> ({types}) {{\n");
                for last in [false, true] {
                    let mut inner = scope.clone();
                    self.body(&mut inner, depth - 1);
                    let yielded: Vec<String> = (0..n).map(|_| self.pick(&inner)).collect();
                    self.text += &format!("scf.yield {} : {types}\n", yielded.join(", "));
                    self.text += if last { "}\n" } else { "} else {\n" };
                }
                scope.extend((0..n).map(|i| format!("{v}#{i}")));
            }
            _ => {
                let v = self.name();
                let n = 1 + self.random.below(2);
                let types = vec![T; n].join(", ");
                let args: Vec<String> = (0..n).map(|_| self.name()).collect();
                let inits: Vec<String> = args.iter().map(|a| format!("{a} = {}", self.pick(scope))).collect();
                self.text += &format!(
                    "{v}:{n} = scf.for {v}i = %c0 to %n step %c1 iter_args({}) -> ({types}) {{\n",
                    inits.join(", ")
                );
                let mut inner = scope.clone();
                inner.extend(args);
                self.body(&mut inner, depth - 1);
                let yielded: Vec<String> = (0..n).map(|_| self.pick(&inner)).collect();
                self.text += &format!("scf.yield {} : {types}\n}}\n", yielded.join(", "));
                scope.extend((0..n).map(|i| format!("{v}#{i}")));
            }
        }
    }
}

fn random_program(seed: u64) -> String {
    let mut g = Generator { random: Random(seed), next: 0, text: String::new() };
    g.text += &format!(
        "func.func @f(%a: {T}, %b: {T}, %c: i1, %d: i1, %e: i1, %n: index) -> ({T}, {T}) {{\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
    );
    let mut scope = vec!["%a".to_owned(), "%b".to_owned()];
    g.body(&mut scope, 2);
    g.body(&mut scope, 2);
    let (x, y) = (g.pick(&scope), g.pick(&scope));
    g.text += &format!("return {x}, {y} : {T}, {T}\n}}\n");
    g.text
}

#[test]
fn random_programs_own_their_buffers() {
    for seed in seeds(120, 1000) {
        let text = random_program(seed);
        check(&format!("seed {seed}"), &text, &EXTENSIONS, true);
        check(&format!("seed {seed}, upstream's form"), &text, &UPSTREAM, false);
    }
}

#[test]
fn the_machine_notices() {
    let run = |body: &str| {
        let text = format!("func.func @f(%a: {T}) -> {T} {{\n{body}\n}}");
        let module = crate::support::parse(&text);
        execute(&module, module.functions()[0], 0)
    };
    assert!(run("return %a : memref<4xf32>").is_err(), "an argument is returned");
    assert!(
        run("%x = memref.alloc() : memref<4xf32>\n%y = memref.alloc() : memref<4xf32>\nreturn %y : memref<4xf32>")
            .is_err(),
        "a leak"
    );
    assert!(
        run("%y = memref.alloc() : memref<4xf32>\nmemref.dealloc %y : memref<4xf32>\nreturn %y : memref<4xf32>")
            .is_err(),
        "a dead result"
    );
    assert!(run("%y = memref.alloc() : memref<4xf32>\nreturn %y : memref<4xf32>").is_ok());
}
