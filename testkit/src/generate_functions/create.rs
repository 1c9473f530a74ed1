//! Tensors from operations that allocate.

use super::{Generator, Scope, Ty};

impl Generator<'_> {
    /// A tensor from elements, of parts, or a copy.
    pub(super) fn create(&mut self, scope: &mut Scope) {
        match self.rng.below(8) {
            0 => self.elements(scope),
            1 => self.splat(scope),
            2 => self.generate(scope),
            3 => self.pad(scope),
            4 => self.concat(scope),
            5 => self.alloc_tensor(scope),
            // A loop of blocks may need a copy where none can be inserted.
            6 if self.shape.more.defects || !self.shape.more.blocks => self.materialize(scope),
            _ => {
                let ty = self.any_type();
                self.fresh(scope, ty);
            }
        }
    }

    fn elements(&mut self, scope: &mut Scope) {
        let ty = *self.rng.pick(&[Ty::Three, Ty::Six, Ty::Row, Ty::Point]);
        let count: usize = ty.dims().iter().product();
        let elements: Vec<String> = (0..count).map(|_| self.rng.pick(&scope.scalars).clone()).collect();
        let name = self.name();
        self.line(scope, &format!("{name} = tensor.from_elements {} : {ty}", elements.join(", ")));
        self.made(scope, name, ty, &[]);
    }

    fn splat(&mut self, scope: &mut Scope) {
        let (ty, scalar, name) = (self.any_type(), self.rng.pick(&scope.scalars).clone(), self.name());
        self.line(scope, &format!("{name} = tensor.splat {scalar} : {ty}"));
        self.made(scope, name, ty, &[]);
    }

    /// The elements of another tensor in reverse order, or at an index of the first position alone.
    fn generate(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        if ty == Ty::Point {
            return self.splat(scope);
        }
        let (name, element) = (self.name(), self.name());
        let arguments: Vec<String> = ty.dims().iter().map(|_| self.name()).collect();
        let declared: Vec<String> = arguments.iter().map(|a| format!("{a}: index")).collect();
        self.line(scope, &format!("{name} = tensor.generate {{"));
        self.line(scope, &format!("^bb0({}):", declared.join(", ")));
        let inner = scope.inner();
        let mut at = Vec::new();
        for (argument, dim) in arguments.iter().zip(ty.dims()) {
            if self.percent(50) {
                at.push(argument.clone());
                continue;
            }
            let (last, reversed) = (self.name(), self.name());
            self.line(&inner, &format!("{last} = arith.constant {} : index", dim - 1));
            self.line(&inner, &format!("{reversed} = arith.subi {last}, {argument} : index"));
            at.push(reversed);
        }
        self.line(&inner, &format!("{element} = tensor.extract {tensor}[{}] : {ty}", at.join(", ")));
        self.line(&inner, &format!("tensor.yield {element} : f32"));
        self.line(scope, &format!("}} : {ty}"));
        self.made(scope, name, ty, &[]);
    }

    fn pad(&mut self, scope: &mut Scope) {
        let (from, to, low, high) = *self.rng.pick(&[
            (Ty::Three, Ty::Six, "[1]", "[2]"),
            (Ty::Six, Ty::Six, "[0]", "[0]"),
            (Ty::Wide, Ty::Square, "[2, 0]", "[0, 0]"),
            (Ty::Tall, Ty::Square, "[0, 1]", "[0, 1]"),
        ]);
        let source = self.of_type(scope, from);
        let (name, scalar) = (self.name(), self.rng.pick(&scope.scalars).clone());
        let arguments: Vec<String> = from.dims().iter().map(|_| format!("{}: index", self.name())).collect();
        self.line(scope, &format!("{name} = tensor.pad {source} low{low} high{high} {{"));
        self.line(scope, &format!("^bb0({}):", arguments.join(", ")));
        let inner = scope.inner();
        self.line(&inner, &format!("tensor.yield {scalar} : f32"));
        self.line(scope, &format!("}} : {from} to {to}"));
        self.made(scope, name, to, &[]);
    }

    fn concat(&mut self, scope: &mut Scope) {
        let (part, count, dim, ty) = *self.rng.pick(&[(Ty::Three, 2, 0, Ty::Six), (Ty::Row, 4, 0, Ty::Wide)]);
        let parts: Vec<String> = (0..count).map(|_| self.of_type(scope, part)).collect();
        let (name, types) = (self.name(), vec![part.to_string(); count].join(", "));
        self.line(scope, &format!("{name} = tensor.concat dim({dim}) {} : ({types}) -> {ty}", parts.join(", ")));
        self.made(scope, name, ty, &[]);
    }

    /// With contents, or filled at once.
    fn alloc_tensor(&mut self, scope: &mut Scope) {
        let (tensor, ty) = self.pick(scope);
        if self.percent(50) {
            let name = self.copied(scope, &tensor, ty);
            scope.tensors.push((name, ty));
            return;
        }
        let name = self.name();
        self.line(scope, &format!("{name} = bufferization.alloc_tensor() : {ty}"));
        self.fill_into(scope, &name, ty);
    }

    /// New contents into a new destination: both must be in place.
    fn materialize(&mut self, scope: &mut Scope) {
        let ty = self.any_type();
        let (empty, source, destination, name) = (self.name(), self.name(), self.name(), self.name());
        let scalar = self.rng.pick(&scope.scalars).clone();
        self.line(scope, &format!("{empty} = tensor.empty() : {ty}"));
        self.line(scope, &format!("{source} = linalg.fill ins({scalar} : f32) outs({empty} : {ty}) -> {ty}"));
        self.line(scope, &format!("{destination} = tensor.empty() : {ty}"));
        self.line(
            scope,
            &format!(
                "{name} = bufferization.materialize_in_destination {source} in {destination} : ({ty}, {ty}) -> {ty}"
            ),
        );
        self.made(scope, name, ty, &[]);
    }
}
