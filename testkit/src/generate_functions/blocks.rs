//! Several blocks in a region: diamonds, switches and loops of blocks, several returns.

use super::control::names;
use super::{Generator, Scope, Ty, list};

/// Indentation of block labels, that of the function.
const LABEL: &str = "^bb";

impl Generator<'_> {
    fn label(&mut self) -> String {
        self.labels += 1;
        format!("{LABEL}{}", self.labels)
    }

    /// Branch operands for a block with arguments of these types; `own`: values that a loop carries.
    fn handed(&mut self, scope: &mut Scope, types: &[Ty], own: &[String]) -> Vec<(String, Ty)> {
        let mut values = self.yielded(scope, types, own);
        self.keep_apart(scope, &mut values);
        values
    }

    /// The types of one or two branch operands.
    fn handed_types(&mut self, scope: &Scope) -> Vec<Ty> {
        (0..1 + self.rng.below(2)).map(|_| self.pick(scope).1).collect()
    }

    /// Begins a block with tensor arguments.
    fn begin(&mut self, scope: &mut Scope, label: &str, types: &[Ty], from: &[(String, Ty)]) -> Vec<String> {
        let arguments: Vec<String> = types.iter().map(|_| self.name()).collect();
        let declared: Vec<String> = arguments.iter().zip(types).map(|(a, t)| format!("{a}: {t}")).collect();
        let declared = if declared.is_empty() { String::new() } else { format!("({})", declared.join(", ")) };
        self.line(scope, &format!("{label}{declared}:"));
        let from: Vec<&str> = from.iter().map(|(n, _)| n.as_str()).collect();
        for (name, ty) in arguments.iter().zip(types) {
            self.joined(scope, name.clone(), *ty, &from);
        }
        arguments
    }

    /// A block that ends with a branch to `target`; returns its operands.
    fn side(&mut self, scope: &Scope, depth: usize, label: &str, target: &str, types: &[Ty]) -> Vec<(String, Ty)> {
        let mut side = scope.clone();
        self.begin(&mut side, label, &[], &[]);
        let ops = self.rng.below(4) as usize;
        self.block(&mut side, ops, depth - 1);
        let values = self.handed(&mut side, types, &[]);
        self.line(&side, &format!("cf.br {target}({} : {})", names(&values), list(types).join(", ")));
        values
    }

    /// Two paths to one block; one of them may be empty.
    pub(super) fn diamond(&mut self, scope: &mut Scope, depth: usize) {
        let types = self.handed_types(scope);
        let listed = list(&types).join(", ");
        let (bit, left, right, join) = (self.bit(scope), self.label(), self.label(), self.label());
        if self.shape.more.defects && self.percent(15) {
            // Both paths are one edge each to the same block.
            let (a, b) = (self.handed(scope, &types, &[]), self.handed(scope, &types, &[]));
            let edge = |values: &[(String, Ty)]| format!("{join}({} : {listed})", names(values));
            self.line(scope, &format!("cf.cond_br {bit}, {}, {}", edge(&a), edge(&b)));
            self.begin(scope, &join, &types, &[a, b].concat());
            return;
        }
        let mut from = Vec::new();
        if self.percent(30) {
            from = self.handed(scope, &types, &[]);
            self.line(scope, &format!("cf.cond_br {bit}, {left}, {join}({} : {listed})", names(&from)));
        } else {
            self.line(scope, &format!("cf.cond_br {bit}, {left}, {right}"));
            from.extend(self.side(scope, depth, &right, &join, &types));
        }
        from.extend(self.side(scope, depth, &left, &join, &types));
        self.begin(scope, &join, &types, &from);
    }

    /// A `cf.switch` with paths to one block.
    pub(super) fn switch(&mut self, scope: &mut Scope, depth: usize) {
        let types = self.handed_types(scope);
        let (flag, index, join) = (self.name(), self.rng.pick(&scope.indices).clone(), self.label());
        let count = 2 + self.rng.below(3) as usize;
        let sides: Vec<String> = (0..count).map(|_| self.label()).collect();
        let cases: Vec<String> = sides[1..].iter().enumerate().map(|(i, label)| format!("{i}: {label}")).collect();
        self.line(scope, &format!("{flag} = arith.index_cast {index} : index to i32"));
        self.line(scope, &format!("cf.switch {flag} : i32, [default: {}, {}]", sides[0], cases.join(", ")));
        let mut from = Vec::new();
        for label in &sides {
            from.extend(self.side(scope, depth, label, &join, &types));
        }
        self.begin(scope, &join, &types, &from);
    }

    /// A loop of a head, a body and an exit; at most three iterations.
    pub(super) fn block_loop(&mut self, scope: &mut Scope, depth: usize) {
        let types = self.handed_types(scope);
        let listed = list(&types).join(", ");
        let (head, body, exit) = (self.label(), self.label(), self.label());
        let inits = self.handed(scope, &types, &[]);
        self.line(scope, &format!("cf.br {head}(%c0, {} : index, {listed})", names(&inits)));
        let (counter, next, goes_on) = (self.name(), self.name(), self.name());
        let carried: Vec<String> = types.iter().map(|_| self.name()).collect();
        let declared: Vec<String> = carried.iter().zip(&types).map(|(a, t)| format!("{a}: {t}")).collect();
        self.line(scope, &format!("{head}({counter}: index, {}):", declared.join(", ")));
        // Values of the head dominate the body and the exit.
        let from: Vec<&str> = inits.iter().map(|(n, _)| n.as_str()).collect();
        for (name, ty) in carried.iter().zip(&types) {
            self.joined(scope, name.clone(), *ty, &from);
        }
        let outer = scope.indices.len();
        scope.indices.push(counter.clone());
        scope.loops += 1;
        if self.percent(50) {
            let ops = self.rng.below(3) as usize;
            self.block(scope, ops, 0);
        }
        let rounds = 1 + self.rng.below(3);
        self.line(scope, &format!("{goes_on} = arith.cmpi ult, {counter}, %c{rounds} : index"));
        let mut leaving = scope.clone();
        let results = self.handed(&mut leaving, &types, &carried);
        scope.tensors = leaving.tensors;
        self.line(scope, &format!("cf.cond_br {goes_on}, {body}, {exit}({} : {listed})", names(&results)));
        let mut inner = scope.clone();
        self.begin(&mut inner, &body, &[], &[]);
        let ops = 1 + self.rng.below(4) as usize;
        self.block(&mut inner, ops, depth - 1);
        let values = self.handed(&mut inner, &types, &carried);
        self.line(&inner, &format!("{next} = arith.addi {counter}, %c1 : index"));
        self.line(&inner, &format!("cf.br {head}({next}, {} : index, {listed})", names(&values)));
        scope.loops -= 1;
        self.leave_loop(scope);
        scope.indices.truncate(outer + 1);
        self.begin(scope, &exit, &types, &[results, inits, values].concat());
    }

    /// `scf.execute_region`, of several blocks where these are enabled.
    pub(super) fn execute_region(&mut self, scope: &mut Scope, depth: usize) {
        let types = self.handed_types(scope);
        let (name, listed) = (self.name(), list(&types).join(", "));
        self.line(scope, &format!("{name}:{} = scf.execute_region -> ({listed}) {{", types.len()));
        let mut inner = Scope { branches: self.shape.more.blocks, ..scope.inner() };
        let ops = 1 + self.rng.below(4) as usize;
        self.block(&mut inner, ops, depth);
        let values = self.yielded(&mut inner, &types, &[]);
        self.line(&inner, &format!("scf.yield {} : {listed}", names(&values)));
        self.line(scope, "}");
        let from: Vec<&str> = values.iter().map(|(n, _)| n.as_str()).collect();
        self.results(scope, &name, &types, &from);
    }

    /// Returns tensors and perhaps a scalar; where blocks may end, perhaps from two blocks.
    pub(super) fn leave(&mut self, scope: &mut Scope, results: &[(String, Ty)], scalar: Option<&str>, listed: &str) {
        if scope.branches && self.percent(30) {
            let (bit, early, late) = (self.bit(scope), self.label(), self.label());
            self.line(scope, &format!("cf.cond_br {bit}, {early}, {late}"));
            let mut side = scope.clone();
            self.begin(&mut side, &early, &[], &[]);
            let types: Vec<Ty> = results.iter().map(|(_, ty)| *ty).collect();
            let ops = self.rng.below(3) as usize;
            self.block(&mut side, ops, 0);
            let mut others = self.yielded(&mut side, &types, &[]);
            self.keep_apart(&side, &mut others);
            self.give_back(&side, &others, scalar, listed);
            self.begin(scope, &late, &[], &[]);
        }
        self.give_back(scope, results, scalar, listed);
    }

    fn give_back(&mut self, scope: &Scope, results: &[(String, Ty)], scalar: Option<&str>, listed: &str) {
        let values: Vec<&str> = results.iter().map(|(n, _)| n.as_str()).chain(scalar).collect();
        self.line(scope, &format!("return {} : {listed}", values.join(", ")));
    }
}
