//! Slices of slices, slices of dynamic sizes, whole overwrites, reshapes by value, and parallel insertions.

use super::{Generator, Scope, Ty, list};

/// Parts of a parallel loop: the number of iterations, the result, the part, and the insertion of an iteration.
const PARTS: [(&str, Ty, Ty, &str); 4] = [
    ("(6)", Ty::Square, Ty::Six, "[{i}, 0] [1, 6] [1, 1]"),
    ("(2)", Ty::Six, Ty::Three, "[{scaled}] [3] [1]"),
    ("(1)", Ty::Row, Ty::Six, "[{i}, 0] [1, 6] [1, 1]"),
    ("(%c4)", Ty::Wide, Ty::Row, "[{i}, 0] [1, 6] [1, 1]"),
];

impl Generator<'_> {
    /// Further parts: of other types, whole, or without rank reduction.
    pub(super) fn more_parts(&mut self, scope: &Scope, ty: Ty) -> (Ty, String) {
        let column = |g: &mut Self, room: usize| g.index(scope, room + 1);
        match ty {
            Ty::Point => (Ty::Point, "[] [] []".to_owned()),
            Ty::Row if self.percent(50) => (Ty::Six, "[0, 0] [1, 6] [1, 1]".to_owned()),
            Ty::Row => (Ty::Three, format!("[0, {}] [1, 3] [1, 1]", column(self, 3))),
            Ty::Tall => (Ty::Six, format!("[0, {}] [6, 1] [1, 1]", column(self, 3))),
            Ty::Three => (Ty::Point, format!("[{}] [1] [1]", column(self, 2))),
            Ty::Six if self.percent(50) => (Ty::Six, "[0] [6] [1]".to_owned()),
            Ty::Six => (Ty::Point, format!("[{}] [1] [1]", column(self, 5))),
            Ty::Flat => (Ty::Six, "[0] [6] [4]".to_owned()),
            Ty::Wide if self.percent(50) => (Ty::Row, format!("[{}, 0] [1, 6] [1, 1]", column(self, 3))),
            Ty::Wide => (Ty::Three, format!("[{}, 1] [1, 3] [1, 2]", column(self, 3))),
            Ty::Square => (Ty::Tall, format!("[0, {}] [6, 4] [1, 1]", column(self, 2))),
        }
    }

    /// A changed slice, to be inserted again.
    fn changed(&mut self, scope: &mut Scope, slice: &str, ty: Ty) -> String {
        match self.rng.below(3) {
            0 => self.fill_into(scope, slice, ty),
            1 => self.elementwise_into(scope, slice, ty),
            _ => return slice.to_owned(),
        }
        scope.tensors.last().map_or(slice.to_owned(), |(name, _)| name.clone())
    }

    /// A slice of a slice, inserted again twice.
    pub(super) fn slice_of_slice(&mut self, scope: &mut Scope) {
        let ty = *self.rng.pick(&[Ty::Wide, Ty::Square, Ty::Flat, Ty::Tall]);
        let tensor = self.of_type(scope, ty);
        let (outer, at) = self.part(scope, ty);
        let (inner, within) = self.part(scope, outer);
        let (first, second) = (self.name(), self.name());
        self.line(scope, &format!("{first} = tensor.extract_slice {tensor}{at} : {ty} to {outer}"));
        self.viewed(scope, first.clone(), outer, &[&tensor]);
        self.line(scope, &format!("{second} = tensor.extract_slice {first}{within} : {outer} to {inner}"));
        self.viewed(scope, second.clone(), inner, &[&first]);
        let changed = self.changed(scope, &second, inner);
        let into = if self.percent(75) { first } else { self.of_type(scope, outer) };
        let into = self.steady(scope, into, outer, &within);
        let (whole, name) = (self.name(), self.name());
        self.line(
            scope,
            &format!("{whole} = tensor.insert_slice {changed} into {into}{within} : {inner} into {outer}"),
        );
        self.made(scope, whole.clone(), outer, &[&into]);
        let tensor = if self.percent(75) { tensor } else { self.of_type(scope, ty) };
        let tensor = self.steady(scope, tensor, ty, &at);
        self.line(scope, &format!("{name} = tensor.insert_slice {whole} into {tensor}{at} : {outer} into {ty}"));
        self.made(scope, name, ty, &[&tensor]);
    }

    /// A slice of dynamic size, filled or read elementwise, and mostly inserted again.
    pub(super) fn dynamic_slice(&mut self, scope: &mut Scope) {
        let (ty, part, rest) = *self.rng.pick(&[
            (Ty::Six, "tensor<?xf32>", ("", "", "")),
            (Ty::Wide, "tensor<?x6xf32>", (", 0", ", 6", ", 1")),
            (Ty::Square, "tensor<?x6xf32>", (", 0", ", 6", ", 1")),
        ]);
        let tensor = self.of_type(scope, ty);
        let room = ty.dims()[0] / 2;
        let (offset, less, size) = (self.index(scope, room + 1), self.index(scope, room), self.name());
        self.line(scope, &format!("{size} = arith.addi {less}, %c1 : index"));
        let at = format!("[{offset}{}] [{size}{}] [1{}]", rest.0, rest.1, rest.2);
        let (slice, changed) = (self.name(), self.name());
        self.line(scope, &format!("{slice} = tensor.extract_slice {tensor}{at} : {ty} to {part}"));
        if self.percent(60) {
            let scalar = self.rng.pick(&scope.scalars).clone();
            self.line(scope, &format!("{changed} = linalg.fill ins({scalar} : f32) outs({slice} : {part}) -> {part}"));
        } else {
            let map = if ty == Ty::Six { "affine_map<(i) -> (i)>" } else { "affine_map<(i, j) -> (i, j)>" };
            let kinds = vec!["\"parallel\""; ty.dims().len()].join(", ");
            self.line(
                scope,
                &format!(
                    "{changed} = linalg.generic {{indexing_maps = [{map}], iterator_types = [{kinds}]}} outs({slice} : {part}) {{"
                ),
            );
            self.line(scope, "^bb0(%o: f32):");
            let inner = scope.inner();
            self.line(&inner, "%m = arith.negf %o : f32");
            self.line(&inner, "linalg.yield %m : f32");
            self.line(scope, &format!("}} -> {part}"));
        }
        let into = if self.percent(80) { tensor } else { self.of_type(scope, ty) };
        let (into, name) = (self.steady(scope, into, ty, &at), self.name());
        self.line(scope, &format!("{name} = tensor.insert_slice {changed} into {into}{at} : {part} into {ty}"));
        self.made(scope, name, ty, &[&into]);
    }

    /// A full overwrite of a tensor: its old contents are not read.
    pub(super) fn overwrite(&mut self, scope: &mut Scope) {
        let ty = *self.rng.pick(&[Ty::Three, Ty::Six, Ty::Wide]);
        let (source, into, name) = (self.of_type(scope, ty), self.of_type(scope, ty), self.name());
        if self.percent(50) {
            let at =
                if ty == Ty::Wide { "[0, 0] [4, 6] [1, 1]".to_owned() } else { format!("[0] [{}] [1]", ty.dims()[0]) };
            self.line(scope, &format!("{name} = tensor.insert_slice {source} into {into}{at} : {ty} into {ty}"));
        } else {
            self.line(scope, &format!("{name} = linalg.copy ins({source} : {ty}) outs({into} : {ty}) -> {ty}"));
        }
        self.made(scope, name, ty, &[&into]);
    }

    /// `tensor.reshape` with a constant shape.
    pub(super) fn reshape_by_value(&mut self, scope: &mut Scope) {
        let (from, to, shape) = *self.rng.pick(&[
            (Ty::Flat, Ty::Wide, "[4, 6]"),
            (Ty::Wide, Ty::Tall, "[6, 4]"),
            (Ty::Tall, Ty::Flat, "[24]"),
            (Ty::Six, Ty::Row, "[1, 6]"),
        ]);
        let source = self.of_type(scope, from);
        let (numbers, name, rank) = (self.name(), self.name(), to.dims().len());
        self.line(scope, &format!("{numbers} = arith.constant dense<{shape}> : tensor<{rank}xi32>"));
        self.line(
            scope,
            &format!("{name} = tensor.reshape {source}({numbers}) : ({from}, tensor<{rank}xi32>) -> {to}"),
        );
        self.viewed(scope, name, to, &[&source]);
    }

    /// A parallel loop of one or two outputs; each iteration computes its own part of each.
    pub(super) fn forall_of_all_ops(&mut self, scope: &mut Scope) {
        let (bound, ty, part, at) = *self.rng.pick(&PARTS);
        let count = 1 + self.rng.below(2) as usize;
        let mut inits: Vec<(String, Ty)> = (0..count).map(|_| (self.of_type(scope, ty), ty)).collect();
        self.keep_apart(scope, &mut inits);
        let (name, id, scaled) = (self.name(), self.name(), self.name());
        let outputs: Vec<String> = (0..count).map(|_| self.name()).collect();
        let pairs: Vec<String> = outputs.iter().zip(&inits).map(|(o, (i, _))| format!("{o} = {i}")).collect();
        let listed = list(&vec![ty; count]).join(", ");
        self.line(
            scope,
            &format!(
                "{name}:{count} = scf.forall ({id}) in {bound} shared_outs({}) -> ({listed}) {{",
                pairs.join(", ")
            ),
        );
        let mut inner = scope.repeated();
        inner.indices.push(id.clone());
        self.line(&inner, &format!("{scaled} = arith.muli {id}, %c3 : index"));
        let at = at.replace("{i}", &id).replace("{scaled}", &scaled);
        let mut made = Vec::new();
        for output in &outputs {
            let slice = self.name();
            self.line(&inner, &format!("{slice} = tensor.extract_slice {output}{at} : {ty} to {part}"));
            self.made(&mut inner, slice, part, &[]);
        }
        let ops = 1 + self.rng.below(3) as usize;
        self.block(&mut inner, ops, 0);
        for _ in &outputs {
            made.extend(self.yielded(&mut inner, &[part], &[]));
        }
        self.keep_apart(&inner, &mut made);
        self.line(&inner, "scf.forall.in_parallel {");
        for (output, (value, _)) in outputs.iter().zip(&made) {
            self.line(&inner, &format!("  tensor.parallel_insert_slice {value} into {output}{at} : {part} into {ty}"));
        }
        self.line(&inner, "}");
        self.line(scope, "}");
        for (i, (init, _)) in inits.iter().enumerate() {
            self.joined(scope, format!("{name}#{i}"), ty, &[init]);
        }
    }
}
