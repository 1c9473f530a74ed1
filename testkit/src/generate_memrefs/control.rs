//! Ops with regions that forward memrefs.

use super::{Generator, Scope, Ty, list, names};
use monopour_ir::ops;

impl Generator<'_> {
    pub(super) fn region(&mut self, scope: &mut Scope, depth: usize) {
        match self.rng.below(if self.shape.all_regions { 12 } else { 9 }) {
            0..=3 => self.branch(scope, depth),
            4..=6 => self.for_loop(scope, depth),
            7 | 8 => self.while_loop(scope, depth),
            9 | 10 => self.index_switch(scope, depth),
            _ => self.execute_region(scope, depth),
        }
    }

    fn results(&mut self, scope: &mut Scope, name: &str, types: &[Ty]) {
        for (i, ty) in types.iter().enumerate() {
            self.made(scope, &format!("{name}#{i}"), *ty);
        }
    }

    fn inner(scope: &Scope) -> Scope {
        Scope { is_outermost: false, ..scope.clone() }
    }

    fn yields(&mut self, scope: &mut Scope, types: &[Ty]) {
        let values = self.picks(scope, types);
        if types.is_empty() {
            self.line(ops::scf::YIELD);
        } else {
            self.line(&format!("scf.yield {} : {}", names(&values), list(types)));
        }
    }

    /// The text before an op with this many results.
    fn head(name: &str, count: usize) -> String {
        if count == 0 { String::new() } else { format!("{name}:{count} = ") }
    }

    fn branch(&mut self, scope: &mut Scope, depth: usize) {
        let (types, name, bit) = (self.types(2), self.name(), self.bit(scope));
        let head = Self::head(&name, types.len());
        self.line(&format!("{head}scf.if {bit} -> ({}) {{", list(&types)));
        for last in [false, true] {
            let mut inner = Self::inner(scope);
            self.body(&mut inner, depth);
            self.yields(&mut inner, &types);
            self.line(if last { "}" } else { "} else {" });
        }
        self.results(scope, &name, &types);
    }

    fn for_loop(&mut self, scope: &mut Scope, depth: usize) {
        let (types, name) = (self.types(3), self.name());
        let inits = self.picks(scope, &types);
        let args: Vec<String> = types.iter().map(|_| self.name()).collect();
        let head = Self::head(&name, types.len());
        let pairs: Vec<String> = args.iter().zip(&inits).map(|(a, i)| format!("{a} = {i}")).collect();
        let iter_args = if types.is_empty() {
            String::new()
        } else {
            format!(" iter_args({}) -> ({})", names(&pairs), list(&types))
        };
        self.line(&format!("{head}scf.for {name}i = %c0 to %n step %c1{iter_args} {{"));
        let mut inner = Self::inner(scope);
        inner.memrefs.extend(args.into_iter().zip(types.iter().copied()));
        let odd = self.name();
        self.line(&format!("{odd} = arith.cmpi eq, {name}i, %c1 : index"));
        inner.bits.push(odd);
        self.body(&mut inner, depth);
        self.yields(&mut inner, &types);
        self.line("}");
        self.results(scope, &name, &types);
    }

    fn while_loop(&mut self, scope: &mut Scope, depth: usize) {
        let (carried, passed, name) = (self.types(2), self.types(2), self.name());
        let inits = self.picks(scope, &carried);
        let with_index = |types: &[Ty]| {
            let all: Vec<String> = types.iter().map(Ty::to_string).chain(["index".to_owned()]).collect();
            all.join(", ")
        };
        let args: Vec<String> = carried.iter().map(|_| self.name()).collect();
        let mut pairs: Vec<String> = args.iter().zip(&inits).map(|(a, i)| format!("{a} = {i}")).collect();
        pairs.push(format!("{name}i = %c0"));
        let signature = format!("({}) -> ({})", with_index(&carried), with_index(&passed));
        self.line(&format!("{name}:{} = scf.while ({}) : {signature} {{", passed.len() + 1, names(&pairs)));
        let mut before = Self::inner(scope);
        before.memrefs.extend(args.into_iter().zip(carried.iter().copied()));
        self.body(&mut before, depth);
        let (more, mut values) = (self.name(), self.picks(&mut before, &passed));
        values.push(format!("{name}i"));
        self.line(&format!("{more} = arith.cmpi slt, {name}i, %n : index"));
        self.line(&format!("scf.condition({more}) {} : {}", names(&values), with_index(&passed)));
        self.line("} do {");
        let args: Vec<String> = passed.iter().map(|_| self.name()).collect();
        let mut declared: Vec<String> = args.iter().zip(&passed).map(|(a, t)| format!("{a}: {t}")).collect();
        declared.push(format!("{name}j: index"));
        self.line(&format!("^bb0({}):", names(&declared)));
        let mut after = Self::inner(scope);
        after.memrefs.extend(args.into_iter().zip(passed.iter().copied()));
        self.body(&mut after, depth);
        let (next, mut values) = (self.name(), self.picks(&mut after, &carried));
        values.push(next.clone());
        self.line(&format!("{next} = arith.addi {name}j, %c1 : index"));
        self.line(&format!("scf.yield {} : {}", names(&values), with_index(&carried)));
        self.line("}");
        self.results(scope, &name, &passed);
    }

    fn index_switch(&mut self, scope: &mut Scope, depth: usize) {
        let (types, name) = (self.types(2), self.name());
        let head = Self::head(&name, types.len());
        let arrow = if types.is_empty() { String::new() } else { format!(" -> {}", list(&types)) };
        self.line(&format!("{head}scf.index_switch %n{arrow}"));
        for case in ["case 1", "case 2", "default"] {
            self.line(&format!("{case} {{"));
            let mut inner = Self::inner(scope);
            self.body(&mut inner, depth);
            self.yields(&mut inner, &types);
            self.line("}");
        }
        self.results(scope, &name, &types);
    }

    /// Two paths through blocks of a region, each with its own yield.
    fn execute_region(&mut self, scope: &mut Scope, depth: usize) {
        let (types, name, ty) = (self.types(2), self.name(), self.any_type());
        let (head, label) = (Self::head(&name, types.len()), name[1..].to_owned());
        let arrow = if types.is_empty() { String::new() } else { format!(" -> ({})", list(&types)) };
        self.line(&format!("{head}scf.execute_region{arrow} {{"));
        let mut entry = Self::inner(scope);
        self.body(&mut entry, depth);
        let (bit, passed) = (self.bit(&entry), self.pick(&mut entry, ty));
        self.line(&format!("cf.cond_br {bit}, ^{label}a({passed} : {ty}), ^{label}b"));
        self.line(&format!("^{label}a({name}p: {ty}):"));
        let mut one = entry.clone();
        one.memrefs.push((format!("{name}p"), ty));
        self.body(&mut one, depth);
        self.yields(&mut one, &types);
        self.line(&format!("^{label}b:"));
        self.body(&mut entry, depth);
        self.yields(&mut entry, &types);
        self.line("}");
        self.results(scope, &name, &types);
    }
}
