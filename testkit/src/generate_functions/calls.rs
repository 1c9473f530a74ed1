//! Callees: small functions, recursive ones, declarations.

use super::control::names;
use super::{Callee, Generator, Scope, Shape, Ty, define, list};
use crate::random::Rng;

/// Adds the functions that `@main` may call to the text.
pub(super) fn callees(rng: &mut Rng, shape: Shape, text: &mut String) -> Vec<Callee> {
    let mut callees = Vec::new();
    if shape.more.external {
        for i in 0..1 + rng.below(2) {
            let callee = external(rng, &format!("e{i}"), shape, text);
            callees.push(callee);
        }
    }
    if shape.more.recursion {
        callees.extend(recursive(rng, shape, text));
    }
    if shape.calls {
        for i in 0..1 + rng.below(2) {
            let name = format!("f{i}");
            let small = Shape { ops: 2 + rng.below(4) as usize, depth: 1, ..shape };
            let (body, callee) = define(rng, &name, small, &callees);
            *text += &body;
            callees.push(callee);
        }
    }
    callees
}

/// Two results of a function that is not analysed may alias.
fn number_of_results(rng: &mut Rng, shape: Shape) -> u64 {
    let results = 1 + rng.below(2);
    if shape.more.defects { results } else { 1 }
}

/// A declaration. `bufferization.access` of an argument is random or missing.
fn external(rng: &mut Rng, name: &str, shape: Shape, text: &mut String) -> Callee {
    let any = |rng: &mut Rng| *rng.pick(&super::TYPES[..super::BASIC_TYPES]);
    let inputs: Vec<Ty> = (0..1 + rng.below(2)).map(|_| any(rng)).collect();
    let results: Vec<Ty> = (0..number_of_results(rng, shape)).map(|_| any(rng)).collect();
    let declared: Vec<String> = inputs
        .iter()
        .map(|ty| match rng.below(8) {
            0 => format!("{ty} {{bufferization.access = \"none\"}}"),
            1 | 2 => format!("{ty} {{bufferization.access = \"read\"}}"),
            3 | 4 => format!("{ty} {{bufferization.access = \"write\"}}"),
            5 => format!("{ty} {{bufferization.access = \"read-write\"}}"),
            _ => ty.to_string(),
        })
        .collect();
    *text += &format!("func.func private @{name}({}) -> ({})\n", declared.join(", "), list(&results).join(", "));
    Callee { name: name.to_owned(), inputs, results, numbers: false }
}

/// One function that calls itself, or two that call each other; `%n` counts down to 0.
fn recursive(rng: &mut Rng, shape: Shape, text: &mut String) -> Vec<Callee> {
    let types: Vec<Ty> =
        (0..number_of_results(rng, shape)).map(|_| *rng.pick(&super::TYPES[..super::BASIC_TYPES])).collect();
    let of =
        |name: &str| Callee { name: name.to_owned(), inputs: types.clone(), results: types.clone(), numbers: true };
    let cycle = if rng.below(2) == 0 { vec![of("r0")] } else { vec![of("r0"), of("r1")] };
    for (i, callee) in cycle.iter().enumerate() {
        let next = &cycle[(i + 1) % cycle.len()];
        let small = Shape { ops: 1 + rng.below(3) as usize, depth: 1, ..shape };
        *text += &counting_down(rng, callee, next, small);
    }
    cycle
}

fn counting_down(rng: &mut Rng, callee: &Callee, next: &Callee, shape: Shape) -> String {
    let mut g = Generator::new(rng, shape, &[]);
    let (mut scope, arguments) = g.enter(&callee.inputs, false);
    g.block(&mut scope, shape.ops, shape.depth);
    let types = &callee.results;
    let listed = list(types).join(", ");
    let (ends, name) = (g.name(), g.name());
    g.line(&scope, &format!("{ends} = arith.cmpi eq, %n, %c0 : index"));
    g.line(&scope, &format!("{name}:{} = scf.if {ends} -> ({listed}) {{", types.len()));
    let mut inner = scope.inner();
    let ended = g.yielded(&mut inner, types, &[]);
    g.line(&inner, &format!("scf.yield {} : {listed}", names(&ended)));
    g.line(&scope, "} else {");
    let mut inner = scope.inner();
    let less = g.name();
    g.line(&inner, &format!("{less} = arith.subi %n, %c1 : index"));
    let mut operands: Vec<String> = types.iter().map(|ty| g.of_type(&mut inner, *ty)).collect();
    operands.extend([less, "%c".to_owned(), g.rng.pick(&inner.scalars).clone()]);
    g.call_of(&mut inner, next, operands);
    let ops = g.rng.below(3) as usize;
    g.block(&mut inner, ops, 0);
    let returned = g.yielded(&mut inner, types, &[]);
    g.line(&inner, &format!("scf.yield {} : {listed}", names(&returned)));
    g.line(&scope, "}");
    let from: Vec<&str> = ended.iter().chain(&returned).map(|(n, _)| n.as_str()).collect();
    g.results(&mut scope, &name, types, &from);
    let mut results: Vec<(String, Ty)> = types.iter().enumerate().map(|(i, ty)| (format!("{name}#{i}"), *ty)).collect();
    g.keep_apart(&scope, &mut results);
    g.line(&scope, &format!("return {} : {listed}", names(&results)));
    format!("func.func private @{}({}) -> ({listed}) {{\n{}}}\n", callee.name, arguments.join(", "), g.body)
}

impl Generator<'_> {
    /// A call of one of the functions, with a small trip count.
    pub(super) fn call(&mut self, scope: &mut Scope) {
        if self.callees.is_empty() {
            return self.elementwise(scope);
        }
        let callee = self.rng.pick(self.callees).clone();
        if !callee.numbers {
            let operands = callee.inputs.iter().map(|ty| self.of_type(scope, *ty)).collect();
            self.call_of(scope, &callee, operands);
            return;
        }
        let mut operands: Vec<String> = callee.inputs.iter().map(|ty| self.of_type(scope, *ty)).collect();
        operands.push(self.rng.pick(&scope.indices).clone());
        operands.push(self.rng.pick(&scope.bits).clone());
        operands.push(self.rng.pick(&scope.scalars).clone());
        // A trip count: small.
        let trips = self.index(scope, 4);
        let at = callee.inputs.len();
        operands[at] = trips;
        self.call_of(scope, &callee, operands);
    }

    /// A call with these operands, numbers included; returns its name.
    fn call_of(&mut self, scope: &mut Scope, callee: &Callee, operands: Vec<String>) -> String {
        let name = self.name();
        let mut types = list(&callee.inputs);
        if callee.numbers {
            types.extend(["index", "i1", "f32"].map(str::to_owned));
        }
        let results = list(&callee.results);
        self.line(
            scope,
            &format!(
                "{name}:{} = func.call @{}({}) : ({}) -> ({})",
                results.len(),
                callee.name,
                operands.join(", "),
                types.join(", "),
                results.join(", ")
            ),
        );
        let from: Vec<&str> = operands.iter().take(callee.inputs.len()).map(String::as_str).collect();
        self.called(scope, &name, callee, &from);
        name
    }

    /// The results of a call: each aliases operands, or is new.
    fn called(&mut self, scope: &mut Scope, name: &str, callee: &Callee, operands: &[&str]) {
        for (i, ty) in callee.results.iter().enumerate() {
            self.made(scope, format!("{name}#{i}"), *ty, operands);
        }
    }
}
