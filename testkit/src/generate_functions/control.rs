//! Calls, loops and branches of random functions.

use super::{Generator, Scope, Ty, list};

impl Generator<'_> {
    pub(super) fn call(&mut self, scope: &mut Scope) {
        if self.callees.is_empty() {
            return self.elementwise(scope);
        }
        let callee = self.rng.pick(self.callees).clone();
        let mut operands: Vec<String> = callee.inputs.iter().map(|ty| self.of_type(scope, *ty)).collect();
        let types = [list(&callee.inputs), vec!["index".to_owned(), "i1".to_owned(), "f32".to_owned()]].concat();
        operands.push(self.rng.pick(&scope.indices).clone());
        operands.push(self.rng.pick(&scope.bits).clone());
        operands.push(self.rng.pick(&scope.scalars).clone());
        // A trip count: small.
        let trips = self.index(scope, 4);
        let at = callee.inputs.len();
        operands[at] = trips;
        let name = self.name();
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
        self.results(scope, &name, &callee.results);
    }

    fn results(&mut self, scope: &mut Scope, name: &str, types: &[Ty]) {
        scope.tensors.extend(types.iter().enumerate().map(|(i, ty)| (format!("{name}#{i}"), *ty)));
    }

    /// Values of these types, to be yielded; `own`: arguments of the loop, taken where the coin says so.
    pub(super) fn yielded(&mut self, scope: &mut Scope, types: &[Ty], own: &[String]) -> String {
        let mut values = Vec::new();
        for (i, ty) in types.iter().enumerate() {
            let last = scope.tensors.iter().rev().find(|(_, t)| t == ty).map(|(n, _)| n.clone());
            let value = match own.get(i) {
                Some(own) if self.percent(15) => own.clone(),
                _ if self.percent(60) => last.unwrap_or_default(),
                _ => self.of_type(scope, *ty),
            };
            values.push(if value.is_empty() { self.fresh(scope, *ty) } else { value });
        }
        values.join(", ")
    }

    /// One to three tensors that a loop carries.
    fn carried(&mut self, scope: &Scope) -> (Vec<String>, Vec<Ty>) {
        (0..1 + self.rng.below(3)).map(|_| self.pick(scope)).unzip()
    }

    pub(super) fn for_loop(&mut self, scope: &mut Scope, depth: usize) {
        let (inits, types) = self.carried(scope);
        let (name, counter) = (self.name(), self.name());
        let args: Vec<String> = inits.iter().map(|_| self.name()).collect();
        let upper = if self.percent(50) { "%n".to_owned() } else { format!("%c{}", self.rng.below(4)) };
        let pairs: Vec<String> = args.iter().zip(&inits).map(|(a, i)| format!("{a} = {i}")).collect();
        let listed = list(&types).join(", ");
        // The trip count is bounded whatever `%n` is.
        let bound = self.name();
        self.line(scope, &format!("{bound} = arith.minui {upper}, %c3 : index"));
        self.line(
            scope,
            &format!(
                "{name}:{} = scf.for {counter} = %c0 to {bound} step %c1 iter_args({}) -> ({listed}) {{",
                types.len(),
                pairs.join(", ")
            ),
        );
        let mut inner = scope.inner();
        inner.indices.push(counter);
        inner.tensors.extend(args.iter().cloned().zip(types.iter().copied()));
        let ops = 1 + self.rng.below(4) as usize;
        self.block(&mut inner, ops, depth - 1);
        let values = self.yielded(&mut inner, &types, &args);
        self.line(&inner, &format!("scf.yield {values} : {listed}"));
        self.line(scope, "}");
        self.results(scope, &name, &types);
    }

    pub(super) fn while_loop(&mut self, scope: &mut Scope, depth: usize) {
        let (inits, types) = self.carried(scope);
        let (name, before, after) = (self.name(), self.name(), self.name());
        let listed = list(&types).join(", ");
        let arguments = |g: &mut Self| -> Vec<String> { types.iter().map(|_| g.name()).collect() };
        let (first, second) = (arguments(self), arguments(self));
        let pairs: Vec<String> = first.iter().zip(&inits).map(|(a, i)| format!("{a} = {i}")).collect();
        self.line(
            scope,
            &format!(
                "{name}:{} = scf.while ({}, {before} = %c0) : ({listed}, index) -> ({listed}, index) {{",
                types.len() + 1,
                pairs.join(", ")
            ),
        );
        let mut inner = scope.inner();
        inner.indices.push(before.clone());
        inner.tensors.extend(first.iter().cloned().zip(types.iter().copied()));
        let ops = self.rng.below(3) as usize;
        self.block(&mut inner, ops, depth - 1);
        let goes_on = self.name();
        self.line(&inner, &format!("{goes_on} = arith.cmpi ult, {before}, %c2 : index"));
        let values = self.yielded(&mut inner, &types, &first);
        self.line(&inner, &format!("scf.condition({goes_on}) {values}, {before} : {listed}, index"));
        self.line(scope, "} do {");
        let args: Vec<String> = second.iter().zip(&types).map(|(a, t)| format!("{a}: {t}")).collect();
        self.line(scope, &format!("^bb0({}, {after}: index):", args.join(", ")));
        let mut inner = scope.inner();
        inner.indices.push(after.clone());
        inner.tensors.extend(second.iter().cloned().zip(types.iter().copied()));
        let ops = 1 + self.rng.below(3) as usize;
        self.block(&mut inner, ops, depth - 1);
        let next = self.name();
        self.line(&inner, &format!("{next} = arith.addi {after}, %c1 : index"));
        let values = self.yielded(&mut inner, &types, &second);
        self.line(&inner, &format!("scf.yield {values}, {next} : {listed}, index"));
        self.line(scope, "}");
        self.results(scope, &name, &types);
    }

    /// `scf.if`, `scf.index_switch` or `scf.execute_region`.
    pub(super) fn branch(&mut self, scope: &mut Scope, depth: usize) {
        let types: Vec<Ty> = (0..1 + self.rng.below(2)).map(|_| self.pick(scope).1).collect();
        let listed = list(&types).join(", ");
        let name = self.name();
        let count = types.len();
        let openings = match self.rng.below(5) {
            0 => vec![format!("{name}:{count} = scf.execute_region -> ({listed}) {{")],
            1 => {
                let index = self.rng.pick(&scope.indices).clone();
                let head = format!("{name}:{count} = scf.index_switch {index} -> {listed}\n");
                vec![format!("{head}case 1 {{"), "} default {".to_owned()]
            }
            _ => {
                let bit = self.bit(scope);
                vec![format!("{name}:{count} = scf.if {bit} -> ({listed}) {{"), "} else {".to_owned()]
            }
        };
        for opening in openings {
            for line in opening.lines() {
                self.line(scope, line);
            }
            let mut inner = scope.inner();
            let ops = self.rng.below(4) as usize;
            self.block(&mut inner, ops, depth - 1);
            let values = self.yielded(&mut inner, &types, &[]);
            self.line(&inner, &format!("scf.yield {values} : {listed}"));
        }
        self.line(scope, "}");
        self.results(scope, &name, &types);
    }

    /// Rows in parallel: each iteration makes the row of its number.
    pub(super) fn forall(&mut self, scope: &mut Scope, depth: usize) {
        if !self.shape.parallel {
            return self.for_loop(scope, depth);
        }
        let ty = Ty::Wide;
        let (init, name, id, output) = (self.of_type(scope, ty), self.name(), self.name(), self.name());
        self.line(scope, &format!("{name} = scf.forall ({id}) in (4) shared_outs({output} = {init}) -> ({ty}) {{"));
        let mut inner = scope.inner();
        inner.indices.push(id.clone());
        let (from, row) = (self.pick(&inner), self.name());
        let at = format!("[{id}, 0] [1, 6] [1, 1]");
        let source = if from.1 == ty && self.percent(50) { from.0 } else { output.clone() };
        self.line(&inner, &format!("{row} = tensor.extract_slice {source}{at} : {ty} to {}", Ty::Six));
        inner.tensors.push((row, Ty::Six));
        let ops = 1 + self.rng.below(3) as usize;
        self.block(&mut inner, ops, 0);
        let made = self.yielded(&mut inner, &[Ty::Six], &[]);
        self.line(&inner, "scf.forall.in_parallel {");
        self.line(&inner, &format!("  tensor.parallel_insert_slice {made} into {output}{at} : {} into {ty}", Ty::Six));
        self.line(&inner, "}");
        self.line(scope, "}");
        scope.tensors.push((name, ty));
    }
}
