//! Random programs of `arith`, `func`, `cf` and `scf`, the same for the same seed.

use std::fmt::Write;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ty {
    Index,
    I1,
    I32,
    I64,
    F32,
    F64,
}

const TYPES: [Ty; 6] = [Ty::Index, Ty::I1, Ty::I32, Ty::I64, Ty::F32, Ty::F64];
/// The inputs of every function: two of each type, so that an op has two different operands.
const INPUTS: [Ty; 12] =
    [Ty::Index, Ty::I1, Ty::I32, Ty::I64, Ty::F32, Ty::F64, Ty::Index, Ty::I1, Ty::I32, Ty::I64, Ty::F32, Ty::F64];
const INTEGERS: [Ty; 3] = [Ty::Index, Ty::I32, Ty::I64];

impl Ty {
    fn text(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::I1 => "i1",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

/// The constructs of a program.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// Loops and other regions.
    pub(super) structured: bool,
    /// `scf.parallel`, too.
    pub(super) parallel: bool,
}

struct Function {
    results: Vec<Ty>,
    is_external: bool,
}

struct Generator {
    options: Options,
    state: u64,
    out: String,
    next: usize,
    scope: Vec<(String, Ty)>,
    functions: Vec<Function>,
}

/// The text of a program.
pub(super) fn program(seed: u64, options: Options) -> String {
    let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut g = Generator { options, state, out: String::new(), next: 0, scope: vec![], functions: vec![] };
    for i in 0..4 {
        let count = g.below(4);
        let results = g.types(count);
        g.functions.push(Function { results, is_external: i == 3 });
    }
    for ty in TYPES {
        writeln!(g.out, "func.func private @sink_{0}({0})", ty.text()).expect("a string takes all");
        writeln!(g.out, "func.func private @source_{0}({0}) -> {0}", ty.text()).expect("a string takes all");
    }
    for i in 0..g.functions.len() {
        g.function(i);
    }
    g.out
}

impl Generator {
    fn random(&mut self) -> u64 {
        // Xorshift.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 11
    }
    fn below(&mut self, n: usize) -> usize {
        (self.random() % n as u64) as usize
    }
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
    fn types(&mut self, count: usize) -> Vec<Ty> {
        (0..count).map(|_| self.one(&TYPES)).collect()
    }
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }
    /// A value of a type that is in scope; mostly a late one.
    fn value(&mut self, ty: Ty) -> String {
        let all: Vec<usize> = (0..self.scope.len()).filter(|i| self.scope[*i].1 == ty).collect();
        let (a, b) = (self.below(all.len()), self.below(all.len()));
        self.scope[all[a.max(b)]].0.clone()
    }
    /// Two different values: an op of one value twice may fold.
    fn pair(&mut self, ty: Ty) -> (String, String) {
        let a = self.value(ty);
        loop {
            let b = self.value(ty);
            if a != b {
                return (a, b);
            }
        }
    }
    fn values(&mut self, types: &[Ty]) -> Vec<String> {
        types.iter().map(|ty| self.value(*ty)).collect()
    }
    /// Puts the results of an op into the scope; the text that names them.
    fn define(&mut self, types: &[Ty]) -> String {
        let name = self.name();
        match types {
            [] => return String::new(),
            [ty] => self.scope.push((name.clone(), *ty)),
            _ => self.scope.extend(types.iter().enumerate().map(|(i, ty)| (format!("{name}#{i}"), *ty))),
        }
        if types.len() == 1 { format!("{name} = ") } else { format!("{name}:{} = ", types.len()) }
    }
    /// Uses the latest values, so that none of them is dead.
    fn sink(&mut self) {
        let ty = self.one(&TYPES);
        let (value, ty) = (self.value(ty), ty.text());
        self.line(&format!("func.call @sink_{ty}({value}) : ({ty}) -> ()"));
    }

    fn function(&mut self, index: usize) {
        let results = list(&self.functions[index].results);
        if self.functions[index].is_external {
            let inputs = list(&INPUTS);
            return self.line(&format!("func.func private @f{index}({inputs}) -> ({results})"));
        }
        self.scope = INPUTS.iter().enumerate().map(|(i, ty)| (format!("%a{i}"), *ty)).collect();
        let args: Vec<String> = self.scope.iter().map(|(name, ty)| format!("{name}: {}", ty.text())).collect();
        self.line(&format!("func.func @f{index}({}) -> ({results}) {{", args.join(", ")));
        for _ in 0..3 {
            self.statements(0);
            match self.below(3) {
                0 => self.diamond(0),
                1 => self.switch(),
                _ => {}
            }
        }
        let types = self.functions[index].results.clone();
        let values = self.values(&types).join(", ");
        let typed = if types.is_empty() { String::new() } else { format!(" : {}", list(&types)) };
        self.line(&format!("return {values}{typed}\n}}"));
    }

    /// A conditional branch over two blocks that join in a third one.
    fn diamond(&mut self, depth: usize) {
        let (n, condition) = (self.name()[1..].to_owned(), self.value(Ty::I1));
        let passed = self.types(2);
        let (a, b) = (self.typed(&passed), self.typed(&passed[..1]));
        self.line(&format!("cf.cond_br {condition}, ^{n}a({a}), ^{n}b({b})"));
        let joined = self.types(2);
        for (block, passed) in [("a", &passed[..]), ("b", &passed[..1])] {
            let before = self.scope.len();
            let args = self.block_args(passed);
            self.line(&format!("^{n}{block}({args}):"));
            self.statements(depth + 1);
            let values = self.typed(&joined);
            self.line(&format!("cf.br ^{n}c({values})"));
            self.scope.truncate(before);
        }
        let args = self.block_args(&joined);
        self.line(&format!("^{n}c({args}):"));
    }
    fn switch(&mut self) {
        let (n, flag) = (self.name()[1..].to_owned(), self.value(Ty::I32));
        let joined = self.types(1);
        // The parser of cf.switch takes no numbers of results.
        let scope = self.scope.clone();
        self.scope.retain(|(name, _)| !name.contains('#'));
        let (a, b, c) = (self.typed(&joined), self.typed(&joined), self.typed(&joined));
        self.scope = scope;
        self.line(&format!("cf.switch {flag} : i32, [default: ^{n}c({a}), 3: ^{n}a({b}), -5: ^{n}c({c})]"));
        let before = self.scope.len();
        let args = self.block_args(&joined);
        self.line(&format!("^{n}a({args}):"));
        self.statements(1);
        let values = self.typed(&joined);
        self.line(&format!("cf.br ^{n}c({values})"));
        self.scope.truncate(before);
        let args = self.block_args(&joined);
        self.line(&format!("^{n}c({args}):"));
    }
    /// `%a, %b : i32, f32`.
    fn typed(&mut self, types: &[Ty]) -> String {
        format!("{} : {}", self.values(types).join(", "), list(types))
    }
    /// `%a: i32, %b: f32`, new in scope.
    fn block_args(&mut self, types: &[Ty]) -> String {
        let mut out = Vec::new();
        for ty in types {
            let name = self.name();
            out.push(format!("{name}: {}", ty.text()));
            self.scope.push((name, *ty));
        }
        out.join(", ")
    }

    fn statements(&mut self, depth: usize) {
        for _ in 0..3 + self.below(4) {
            let kinds = if self.options.structured && depth < 2 { 17 } else { 10 };
            match self.below(kinds) {
                0..=2 => self.integer_op(),
                3 | 4 => self.float_op(),
                5 => self.comparison(),
                6 => self.cast(),
                7 => self.constant(),
                8 => self.select(),
                9 => self.call(),
                10 | 11 => self.for_loop(depth),
                12 => self.if_op(depth),
                13 => self.while_loop(depth),
                14 => self.index_switch(depth),
                15 if self.options.parallel => self.parallel(depth),
                _ => self.execute_region(depth),
            }
        }
        self.sink();
    }
    fn integer_op(&mut self) {
        let ty = self.one(&INTEGERS);
        let flags = ["", "", " overflow<nsw>", " overflow<nuw>", " overflow<nsw, nuw>"];
        let exact = ["", "", " exact"];
        let (op, flags) = match self.below(3) {
            0 => (self.one(&["addi", "subi", "muli", "shli"]), self.one(&flags)),
            1 => (self.one(&["divsi", "divui", "shrsi", "shrui"]), self.one(&exact)),
            _ => (self.one(&["remsi", "remui", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui"]), ""),
        };
        let (a, b) = self.pair(ty);
        let to = self.define(&[ty]);
        self.line(&format!("{to}arith.{op} {a}, {b}{flags} : {}", ty.text()));
    }
    fn float_op(&mut self) {
        let ty = self.one(&[Ty::F32, Ty::F64]);
        let flags = self.one(&["", "", " fastmath<fast>", " fastmath<nnan,ninf>", " fastmath<contract>"]);
        let (a, b) = self.pair(ty);
        let to = self.define(&[ty]);
        if self.below(6) == 0 {
            return self.line(&format!("{to}arith.negf {a}{flags} : {}", ty.text()));
        }
        let names = ["addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf"];
        let op = self.one(&names);
        self.line(&format!("{to}arith.{op} {a}, {b}{flags} : {}", ty.text()));
    }
    fn comparison(&mut self) {
        let ty = self.one(&[Ty::Index, Ty::I32, Ty::I64, Ty::F32, Ty::F64]);
        let (a, b) = self.pair(ty);
        let to = self.define(&[Ty::I1]);
        let op = if matches!(ty, Ty::F32 | Ty::F64) {
            format!("cmpf {}", self.one(&["oeq", "olt", "ugt", "une", "ord"]))
        } else {
            format!("cmpi {}", self.one(&["eq", "ne", "slt", "sge", "ult", "uge"]))
        };
        self.line(&format!("{to}arith.{op}, {a}, {b} : {}", ty.text()));
    }
    fn cast(&mut self) {
        // A switch over an index is one over i32, whose cast would fold with one of these.
        let to_index = if self.options.structured { Ty::I64 } else { Ty::Index };
        let (op, from, to) = self.one(&[
            ("extsi", Ty::I32, Ty::I64),
            ("extui", Ty::I1, Ty::I32),
            ("trunci", Ty::I64, Ty::I32),
            ("extf", Ty::F32, Ty::F64),
            ("truncf", Ty::F64, Ty::F32),
            ("sitofp", Ty::I32, Ty::F32),
            ("uitofp", Ty::I64, Ty::F64),
            ("fptosi", Ty::F64, Ty::I64),
            ("fptoui", Ty::F32, Ty::I32),
            ("bitcast", Ty::F32, Ty::I32),
            ("index_cast", Ty::Index, Ty::I32),
            ("index_castui", Ty::Index, Ty::I64),
            (if to_index == Ty::Index { "index_cast" } else { "extsi" }, Ty::I32, to_index),
            (if to_index == Ty::Index { "index_castui" } else { "extui" }, Ty::I32, to_index),
        ]);
        let value = self.value(from);
        let name = self.define(&[to]);
        self.line(&format!("{name}arith.{op} {value} : {} to {}", from.text(), to.text()));
    }
    fn constant(&mut self) {
        let ty = self.one(&TYPES);
        let value = match ty {
            Ty::I1 => self.one(&["true", "false"]).to_owned(),
            Ty::F32 | Ty::F64 => format!("{}.5", self.below(100)),
            _ => self.below(100).to_string(),
        };
        let to = self.define(&[ty]);
        let typed = if ty == Ty::I1 { String::new() } else { format!(" : {}", ty.text()) };
        self.line(&format!("{to}arith.constant {value}{typed}"));
    }
    fn select(&mut self) {
        let ty = self.one(&TYPES);
        let (c, (a, b)) = (self.value(Ty::I1), self.pair(ty));
        let to = self.define(&[ty]);
        self.line(&format!("{to}arith.select {c}, {a}, {b} : {}", ty.text()));
    }
    /// A call of any function, the enclosing one included.
    fn call(&mut self) {
        let index = self.below(self.functions.len());
        let results = self.functions[index].results.clone();
        let args = self.values(&INPUTS).join(", ");
        let to = self.define(&results);
        self.line(&format!("{to}func.call @f{index}({args}) : ({}) -> ({})", list(&INPUTS), list(&results)));
    }

    /// Statements in a scope of their own, and a terminator with values.
    fn region(&mut self, depth: usize, args: &[(String, Ty)], end: &str, types: &[Ty]) {
        let before = self.scope.len();
        self.scope.extend_from_slice(args);
        self.statements(depth + 1);
        let values = self.values(types).join(", ");
        let typed = if types.is_empty() { String::new() } else { format!(" : {}", list(types)) };
        self.line(&format!("{end} {values}{typed}"));
        self.scope.truncate(before);
    }
    fn named(&mut self, types: &[Ty]) -> Vec<(String, Ty)> {
        types.iter().map(|ty| (self.name(), *ty)).collect()
    }
    fn for_loop(&mut self, depth: usize) {
        let count = self.below(3);
        let (types, iv_ty) = (self.types(count), self.one(&INTEGERS));
        let bounds = self.values(&[iv_ty, iv_ty, iv_ty]);
        let inits = self.values(&types);
        let (iv, args) = (self.name(), self.named(&types));
        let header = self.with_result_later(&types);
        let carried = if types.is_empty() {
            String::new()
        } else {
            format!(" iter_args({}) -> ({})", bound(&args, &inits), list(&types))
        };
        let (lower, upper, step) = (&bounds[0], &bounds[1], &bounds[2]);
        let (sign, ty) = (self.one(&["", " unsigned"]), iv_ty.text());
        self.line(&format!("{header}scf.for{sign} {iv} = {lower} to {upper} step {step}{carried} : {ty} {{"));
        let mut inside = vec![(iv, iv_ty)];
        inside.extend(args);
        self.region(depth, &inside, "scf.yield", &types);
        self.line("}");
        self.results_are_there(&header, &types);
    }
    fn if_op(&mut self, depth: usize) {
        let count = self.below(3);
        let types = self.types(count);
        let condition = self.value(Ty::I1);
        let header = self.with_result_later(&types);
        let typed = if types.is_empty() { String::new() } else { format!(" -> ({})", list(&types)) };
        self.line(&format!("{header}scf.if {condition}{typed} {{"));
        self.region(depth, &[], "scf.yield", &types);
        if count > 0 || self.below(2) == 0 {
            self.line("} else {");
            self.region(depth, &[], "scf.yield", &types);
        }
        self.line("}");
        self.results_are_there(&header, &types);
    }
    fn while_loop(&mut self, depth: usize) {
        let (carried, results) = (self.types(2), self.types(2));
        let inits = self.values(&carried);
        let (args, passed) = (self.named(&carried), self.named(&results));
        let header = self.with_result_later(&results);
        let (from, to) = (list(&carried), list(&results));
        self.line(&format!("{header}scf.while ({}) : ({from}) -> ({to}) {{", bound(&args, &inits)));
        let before = self.scope.len();
        self.scope.extend_from_slice(&args);
        self.statements(depth + 1);
        // The values that leave the loop are call results: others might fold with users of the loop's results.
        let condition = self.value(Ty::I1);
        let values: Vec<String> = results.iter().map(|ty| self.opaque(*ty)).collect();
        let values = values.join(", ");
        self.line(&format!("scf.condition({condition}) {values} : {to}\n}} do {{"));
        self.scope.truncate(before);
        let list: Vec<String> = passed.iter().map(|(name, ty)| format!("{name}: {}", ty.text())).collect();
        self.line(&format!("^bb0({}):", list.join(", ")));
        self.region(depth, &passed, "scf.yield", &carried);
        self.line("}");
        self.results_are_there(&header, &results);
    }
    fn opaque(&mut self, ty: Ty) -> String {
        let (value, name) = (self.value(ty), self.name());
        self.line(&format!("{name} = func.call @source_{0}({value}) : ({0}) -> {0}", ty.text()));
        name
    }
    fn index_switch(&mut self, depth: usize) {
        let types = self.types(1);
        let flag = self.value(Ty::Index);
        let header = self.with_result_later(&types);
        self.line(&format!("{header}scf.index_switch {flag} -> {}", list(&types)));
        for case in ["case 2", "case 7", "default"] {
            self.line(&format!("{case} {{"));
            self.region(depth, &[], "scf.yield", &types);
            self.line("}");
        }
        self.results_are_there(&header, &types);
    }
    fn execute_region(&mut self, depth: usize) {
        let types = self.types(2);
        let header = self.with_result_later(&types);
        self.line(&format!("{header}scf.execute_region -> ({}) {{", list(&types)));
        let before = self.scope.len();
        self.diamond(depth);
        self.region(depth, &[], "scf.yield", &types);
        self.scope.truncate(before);
        self.line("}");
        self.results_are_there(&header, &types);
    }
    /// Two dimensions; a sum at the end, sometimes.
    fn parallel(&mut self, depth: usize) {
        let bounds = self.values(&[Ty::Index; 6]);
        let types = if self.below(2) == 0 { vec![] } else { vec![Ty::F32] };
        let inits = self.values(&types);
        let ivs = self.named(&[Ty::Index; 2]);
        let header = self.with_result_later(&types);
        let reduced = if types.is_empty() { String::new() } else { format!(" init ({}) -> f32", inits[0]) };
        let pair = |i: usize| bounds[i..i + 2].join(", ");
        let (lower, upper, step) = (pair(0), pair(2), pair(4));
        let (i, j) = (&ivs[0].0, &ivs[1].0);
        self.line(&format!("{header}scf.parallel ({i}, {j}) = ({lower}) to ({upper}) step ({step}){reduced} {{"));
        let before = self.scope.len();
        self.scope.extend_from_slice(&ivs);
        self.statements(depth + 1);
        if types.is_empty() {
            self.line("scf.reduce");
        } else {
            let (value, args) = (self.value(Ty::F32), self.named(&[Ty::F32, Ty::F32, Ty::F32]));
            let (a, b, sum) = (&args[0].0, &args[1].0, &args[2].0);
            self.line(&format!("scf.reduce({value} : f32) {{\n^bb0({a}: f32, {b}: f32):"));
            self.line(&format!("{sum} = arith.addf {a}, {b} : f32\nscf.reduce.return {sum} : f32\n}}"));
        }
        self.scope.truncate(before);
        self.line("}");
        self.results_are_there(&header, &types);
    }
    /// The text that names results, which enter the scope only after their op.
    fn with_result_later(&mut self, types: &[Ty]) -> String {
        let before = self.scope.len();
        let header = self.define(types);
        self.scope.truncate(before);
        header
    }
    fn results_are_there(&mut self, header: &str, types: &[Ty]) {
        let name = header.split([':', ' ']).next().unwrap_or_default().to_owned();
        match types {
            [ty] => self.scope.push((name, *ty)),
            _ => self.scope.extend(types.iter().enumerate().map(|(i, ty)| (format!("{name}#{i}"), *ty))),
        }
    }
}

fn list(types: &[Ty]) -> String {
    types.iter().map(|ty| ty.text()).collect::<Vec<_>>().join(", ")
}

/// `%a = %x, %b = %y`.
fn bound(args: &[(String, Ty)], values: &[String]) -> String {
    args.iter().zip(values).map(|((arg, _), value)| format!("{arg} = {value}")).collect::<Vec<_>>().join(", ")
}
