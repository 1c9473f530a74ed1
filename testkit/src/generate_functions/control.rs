//! Loops and branches of random functions.

use super::{Generator, Scope, Ty, list};

/// Names, separated by commas.
pub(super) fn names(values: &[(String, Ty)]) -> String {
    values.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

impl Generator<'_> {
    /// The results of an operation with regions; each may alias any of `from`.
    pub(super) fn results(&mut self, scope: &mut Scope, name: &str, types: &[Ty], from: &[&str]) {
        for (i, ty) in types.iter().enumerate() {
            self.joined(scope, format!("{name}#{i}"), *ty, from);
        }
    }

    /// Arguments of a region: new contents in each iteration.
    pub(super) fn arguments(&mut self, scope: &mut Scope, names: &[String], types: &[Ty]) {
        for (name, ty) in names.iter().zip(types) {
            self.made(scope, name.clone(), *ty, &[]);
        }
    }

    /// Values of these types to yield; `own`: arguments of the loop, taken at random.
    pub(super) fn yielded(&mut self, scope: &mut Scope, types: &[Ty], own: &[String]) -> Vec<(String, Ty)> {
        let mut values = Vec::new();
        for (i, ty) in types.iter().enumerate() {
            let last = scope.tensors.iter().rev().find(|(_, t)| t == ty).map(|(n, _)| n.clone());
            let value = match own.get(i) {
                Some(own) if self.percent(15) => own.clone(),
                _ if self.percent(60) => last.unwrap_or_default(),
                _ => self.of_type(scope, *ty),
            };
            values.push((if value.is_empty() { self.fresh(scope, *ty) } else { value }, *ty));
        }
        values
    }

    /// One to three tensors that a loop carries.
    fn carried(&mut self, scope: &Scope) -> (Vec<String>, Vec<Ty>) {
        (0..1 + self.rng.below(3)).map(|_| self.pick(scope)).unzip()
    }

    pub(super) fn for_loop(&mut self, scope: &mut Scope, depth: usize) {
        let (inits, types) = self.carried(scope);
        let (name, counter) = (self.name(), self.name());
        let args: Vec<String> = inits.iter().map(|_| self.name()).collect();
        if self.shape.more.all_ops && self.percent(45) {
            let (compare, lower, upper) = self.written_bounds(scope);
            return self.counted_loop(
                scope,
                depth,
                (&name, &counter, &args),
                (&inits, &types),
                (&compare, &lower, &upper),
            );
        }
        let upper = if self.percent(50) { "%n".to_owned() } else { format!("%c{}", self.rng.below(4)) };
        // The trip count is bounded whatever `%n` is.
        let bound = self.name();
        self.line(scope, &format!("{bound} = arith.minui {upper}, %c3 : index"));
        self.counted_loop(scope, depth, (&name, &counter, &args), (&inits, &types), ("", "%c0", &bound));
    }

    /// Constant bounds, and their comparison.
    fn written_bounds(&mut self, scope: &Scope) -> (String, String, String) {
        let unsigned = self.percent(30);
        if unsigned && self.shape.more.defects && self.percent(50) {
            // Empty as unsigned numbers.
            let lower = self.name();
            self.line(scope, &format!("{lower} = arith.constant -2 : index"));
            return ("unsigned ".to_owned(), lower, "%c5".to_owned());
        }
        let lower = self.rng.below(2);
        let upper = lower + 1 + self.rng.below(3);
        let compare = if unsigned { "unsigned " } else { "" };
        (compare.to_owned(), format!("%c{lower}"), format!("%c{upper}"))
    }

    /// `scf.for`: names of the loop, its counter and its arguments; initial values with types; comparison and bounds.
    fn counted_loop(
        &mut self,
        scope: &mut Scope,
        depth: usize,
        (name, counter, args): (&str, &str, &[String]),
        (inits, types): (&[String], &[Ty]),
        (compare, lower, upper): (&str, &str, &str),
    ) {
        let pairs: Vec<String> = args.iter().zip(inits).map(|(a, i)| format!("{a} = {i}")).collect();
        let listed = list(types).join(", ");
        self.line(
            scope,
            &format!(
                "{name}:{} = scf.for {compare}{counter} = {lower} to {upper} step %c1 iter_args({}) -> ({listed}) {{",
                types.len(),
                pairs.join(", ")
            ),
        );
        let mut inner = scope.repeated();
        inner.indices.push(counter.to_owned());
        self.arguments(&mut inner, args, types);
        let ops = 1 + self.rng.below(4) as usize;
        self.block(&mut inner, ops, depth - 1);
        let mut values = self.yielded(&mut inner, types, args);
        self.keep_apart(&inner, &mut values);
        self.line(&inner, &format!("scf.yield {} : {listed}", names(&values)));
        self.line(scope, "}");
        let from: Vec<&str> = inits.iter().chain(values.iter().map(|(n, _)| n)).map(String::as_str).collect();
        self.results(scope, name, types, &from);
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
        let mut inner = scope.repeated();
        inner.indices.push(before.clone());
        self.arguments(&mut inner, &first, &types);
        let ops = self.rng.below(3) as usize;
        self.block(&mut inner, ops, depth - 1);
        let goes_on = self.name();
        self.line(&inner, &format!("{goes_on} = arith.cmpi ult, {before}, %c2 : index"));
        let mut handed_on = self.yielded(&mut inner, &types, &first);
        self.keep_apart(&inner, &mut handed_on);
        self.line(&inner, &format!("scf.condition({goes_on}) {}, {before} : {listed}, index", names(&handed_on)));
        self.line(scope, "} do {");
        let args: Vec<String> = second.iter().zip(&types).map(|(a, t)| format!("{a}: {t}")).collect();
        self.line(scope, &format!("^bb0({}, {after}: index):", args.join(", ")));
        let mut inner = scope.repeated();
        inner.indices.push(after.clone());
        self.arguments(&mut inner, &second, &types);
        let ops = 1 + self.rng.below(3) as usize;
        self.block(&mut inner, ops, depth - 1);
        let next = self.name();
        self.line(&inner, &format!("{next} = arith.addi {after}, %c1 : index"));
        let mut values = self.yielded(&mut inner, &types, &second);
        self.keep_apart(&inner, &mut values);
        self.line(&inner, &format!("scf.yield {}, {next} : {listed}, index", names(&values)));
        self.line(scope, "}");
        let values = handed_on.iter().chain(&values).map(|(n, _)| n);
        let from: Vec<&str> = inits.iter().chain(values).map(String::as_str).collect();
        self.results(scope, &name, &types, &from);
    }

    /// `scf.if`, `scf.index_switch` or `scf.execute_region`.
    pub(super) fn branch(&mut self, scope: &mut Scope, depth: usize) {
        let types: Vec<Ty> = (0..1 + self.rng.below(2)).map(|_| self.pick(scope).1).collect();
        let listed = list(&types).join(", ");
        let name = self.name();
        let count = types.len();
        let mut is_switch = false;
        let openings = match self.rng.below(5) {
            0 => vec![format!("{name}:{count} = scf.execute_region -> ({listed}) {{")],
            1 => {
                is_switch = true;
                self.cases(scope, &format!("{name}:{count}"), &listed)
            }
            _ => {
                let bit = self.bit(scope);
                vec![format!("{name}:{count} = scf.if {bit} -> ({listed}) {{"), "} else {".to_owned()]
            }
        };
        let mut from = Vec::new();
        for opening in openings {
            for line in opening.lines() {
                self.line(scope, line);
            }
            let mut inner = scope.inner();
            let ops = self.rng.below(4) as usize;
            self.block(&mut inner, ops, depth - 1);
            let mut values = self.yielded(&mut inner, &types, &[]);
            if is_switch && !self.shape.more.defects {
                for (value, ty) in &mut values {
                    *value = self.copied(&inner, value, *ty);
                }
            }
            self.line(&inner, &format!("scf.yield {} : {listed}", names(&values)));
            from.extend(values.into_iter().map(|(n, _)| n));
        }
        self.line(scope, "}");
        let from: Vec<&str> = from.iter().map(String::as_str).collect();
        self.results(scope, &name, &types, &from);
    }

    /// The beginnings of the regions of an `scf.index_switch`.
    fn cases(&mut self, scope: &Scope, results: &str, types: &str) -> Vec<String> {
        let index = self.rng.pick(&scope.indices).clone();
        let mut cases = vec![format!("{results} = scf.index_switch {index} -> {types}\ncase 1 {{")];
        if self.shape.more.all_ops {
            let more = self.rng.below(3);
            cases.extend((0..more).map(|i| format!("}}\ncase {} {{", [0, 3][i as usize])));
        }
        cases.push("} default {".to_owned());
        cases
    }

    /// Rows in parallel: each iteration computes the row of its number.
    pub(super) fn forall(&mut self, scope: &mut Scope, depth: usize) {
        if !self.shape.parallel {
            return self.for_loop(scope, depth);
        }
        if self.shape.more.all_ops && self.percent(60) {
            return self.forall_of_all_ops(scope);
        }
        let ty = Ty::Wide;
        let (init, name, id, output) = (self.of_type(scope, ty), self.name(), self.name(), self.name());
        self.line(scope, &format!("{name} = scf.forall ({id}) in (4) shared_outs({output} = {init}) -> ({ty}) {{"));
        let mut inner = scope.repeated();
        inner.indices.push(id.clone());
        let (from, row) = (self.pick(&inner), self.name());
        let at = format!("[{id}, 0] [1, 6] [1, 1]");
        let source = if from.1 == ty && self.percent(50) { from.0 } else { output.clone() };
        self.line(&inner, &format!("{row} = tensor.extract_slice {source}{at} : {ty} to {}", Ty::Six));
        self.made(&mut inner, row, Ty::Six, &[&source]);
        let ops = 1 + self.rng.below(3) as usize;
        self.block(&mut inner, ops, 0);
        let made = self.yielded(&mut inner, &[Ty::Six], &[]);
        self.line(&inner, "scf.forall.in_parallel {");
        self.line(
            &inner,
            &format!("  tensor.parallel_insert_slice {} into {output}{at} : {} into {ty}", names(&made), Ty::Six),
        );
        self.line(&inner, "}");
        self.line(scope, "}");
        self.joined(scope, name, ty, &[&init]);
    }
}
