//! Operations of random functions without regions.

use super::{Generator, Scope, Ty};

impl Generator<'_> {
    pub(super) fn extract_element(&mut self, scope: &mut Scope) -> String {
        let (tensor, ty) = self.pick(scope);
        let (at, name) = (self.indices(scope, ty), self.name());
        self.line(scope, &format!("{name} = tensor.extract {tensor}[{at}] : {ty}"));
        name
    }

    pub(super) fn insert_element(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        let scalar = self.rng.pick(&scope.scalars).clone();
        let (at, name) = (self.indices(scope, ty), self.name());
        self.line(scope, &format!("{name} = tensor.insert {scalar} into {tensor}[{at}] : {ty}"));
        self.made(scope, name, ty, &[&tensor]);
    }

    /// Offsets and sizes of a part of `ty` that has the type `part`.
    pub(super) fn part(&mut self, scope: &Scope, ty: Ty) -> (Ty, String) {
        let offset = |g: &mut Self, room: usize| {
            if g.percent(50) { g.rng.below(room as u64 + 1).to_string() } else { g.index(scope, room + 1) }
        };
        if self.shape.more.all_ops && (matches!(ty, Ty::Row | Ty::Tall | Ty::Point) || self.percent(35)) {
            return self.more_parts(scope, ty);
        }
        match ty {
            Ty::Three | Ty::Row | Ty::Tall | Ty::Point => (Ty::Three, "[0] [3] [1]".to_owned()),
            Ty::Six if self.percent(30) => (Ty::Three, format!("[{}] [3] [2]", self.rng.below(2))),
            Ty::Six => (Ty::Three, format!("[{}] [3] [1]", offset(self, 3))),
            Ty::Flat => (Ty::Six, format!("[{}] [6] [1]", offset(self, 18))),
            Ty::Wide => (Ty::Six, format!("[{}, 0] [1, 6] [1, 1]", offset(self, 3))),
            Ty::Square if self.percent(50) => (Ty::Wide, format!("[{}, 0] [4, 6] [1, 1]", offset(self, 2))),
            Ty::Square => (Ty::Six, format!("[0, {}] [6, 1] [1, 1]", offset(self, 5))),
        }
    }

    /// A slice, mostly changed and inserted again.
    pub(super) fn slice(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        let (part, at) = self.part(scope, ty);
        let name = self.name();
        self.line(scope, &format!("{name} = tensor.extract_slice {tensor}{at} : {ty} to {part}"));
        self.viewed(scope, name.clone(), part, &[&tensor]);
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
        let into = self.steady(scope, into, ty, &at);
        let result = self.name();
        self.line(scope, &format!("{result} = tensor.insert_slice {changed} into {into}{at} : {part} into {ty}"));
        self.made(scope, result, ty, &[&into]);
    }

    pub(super) fn insert_slice(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        let (part, at) = self.part(scope, ty);
        let source = self.of_type(scope, part);
        let tensor = self.steady(scope, tensor, ty, &at);
        let name = self.name();
        self.line(scope, &format!("{name} = tensor.insert_slice {source} into {tensor}{at} : {part} into {ty}"));
        self.made(scope, name, ty, &[&tensor]);
    }

    pub(super) fn fill(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        self.fill_into(scope, &tensor, ty);
    }

    pub(super) fn fill_into(&mut self, scope: &mut Scope, tensor: &str, ty: Ty) {
        let (scalar, name) = (self.rng.pick(&scope.scalars).clone(), self.name());
        self.line(scope, &format!("{name} = linalg.fill ins({scalar} : f32) outs({tensor} : {ty}) -> {ty}"));
        self.made(scope, name, ty, &[tensor]);
    }

    /// A new tensor with contents: filled, computed, or constant.
    pub(super) fn fresh(&mut self, scope: &mut Scope, ty: Ty) -> String {
        let name = self.name();
        if self.percent(35) && !self.is_constant_left_out() {
            let value = (self.rng.below(17) as f64 - 8.0) / 8.0;
            self.line(scope, &format!("{name} = arith.constant dense<{value:.3}> : {ty}"));
            self.made(scope, name.clone(), ty, &[]);
            return name;
        }
        self.line(scope, &format!("{name} = tensor.empty() : {ty}"));
        // Undefined contents: overwritten before any other use.
        let same = scope.all_of_type(ty);
        if same.is_empty() || self.percent(50) {
            self.fill_into(scope, &name, ty);
        } else {
            let source = self.rng.pick(&same).clone();
            self.generic(scope, &[source], &name, ty, false);
        }
        scope.tensors.last().map_or(name, |(n, _)| n.clone())
    }

    pub(super) fn elementwise(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        self.elementwise_into(scope, &tensor, ty);
    }

    pub(super) fn elementwise_into(&mut self, scope: &mut Scope, destination: &str, ty: Ty) {
        let count = 1 + self.rng.below(2);
        let sources: Vec<String> = (0..count).map(|_| self.of_type(scope, ty)).collect();
        let reads = self.percent(50);
        self.generic(scope, &sources, destination, ty, reads);
    }

    /// `linalg.generic` of one or two inputs, all of type `ty`; `reads`: it uses the destination's old value.
    pub(super) fn generic(&mut self, scope: &mut Scope, sources: &[String], destination: &str, ty: Ty, reads: bool) {
        let rank = ty.dims().len();
        let dims: Vec<String> = (0..rank).map(|d| format!("d{d}")).collect();
        let from = dims.join(", ");
        let identity = format!("affine_map<({from}) -> ({from})>");
        // A transposed input is read at other positions than are written.
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
        self.made(scope, name, ty, &[destination]);
    }

    /// A matrix product, scaled back into range.
    pub(super) fn product(&mut self, scope: &mut Scope) {
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
        self.made(scope, name, ty, &[&into]);
    }

    pub(super) fn bit(&mut self, scope: &mut Scope) -> String {
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

    pub(super) fn select(&mut self, scope: &mut Scope) {
        let (first, ty) = self.pick(scope);
        let (second, bit, name) = (self.of_type(scope, ty), self.bit(scope), self.name());
        self.line(scope, &format!("{name} = arith.select {bit}, {first}, {second} : {ty}"));
        self.viewed(scope, name, ty, &[&first, &second]);
    }

    /// Through a dynamic type and back, with an insert in between.
    pub(super) fn cast(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        let dynamic = format!("tensor<{}f32>", "?x".repeat(ty.dims().len()));
        let (wide, changed, name) = (self.name(), self.name(), self.name());
        self.line(scope, &format!("{wide} = tensor.cast {tensor} : {ty} to {dynamic}"));
        let at = self.indices(scope, ty);
        let scalar = self.rng.pick(&scope.scalars).clone();
        self.line(scope, &format!("{changed} = tensor.insert {scalar} into {wide}[{at}] : {dynamic}"));
        self.line(scope, &format!("{name} = tensor.cast {changed} : {dynamic} to {ty}"));
        self.made(scope, name, ty, &[&tensor]);
    }

    pub(super) fn reshape(&mut self, scope: &mut Scope) {
        let name = self.name();
        let (flat, wide) = (Ty::Flat, Ty::Wide);
        if self.percent(50) {
            let tensor = self.of_type(scope, wide);
            self.line(scope, &format!("{name} = tensor.collapse_shape {tensor} [[0, 1]] : {wide} into {flat}"));
            self.viewed(scope, name, flat, &[&tensor]);
        } else {
            let tensor = self.of_type(scope, flat);
            self.line(
                scope,
                &format!("{name} = tensor.expand_shape {tensor} [[0, 1]] output_shape [4, 6] : {flat} into {wide}"),
            );
            self.viewed(scope, name, wide, &[&tensor]);
        }
    }
}
