//! Structured operations other than elementwise ones and products.

use super::{Generator, Scope, Ty};

impl Generator<'_> {
    /// One of them, into an existing tensor.
    pub(super) fn structured(&mut self, scope: &mut Scope) {
        match self.rng.below(8) {
            0 => self.transpose(scope),
            1 => self.reduce(scope),
            2 => self.broadcast(scope),
            3 => self.map(scope),
            4 => self.softmax(scope),
            5 if self.shape.more.defects => self.pack(scope),
            6 => self.two_results(scope),
            _ => self.reversed(scope),
        }
    }

    fn transpose(&mut self, scope: &mut Scope) {
        let (from, to) = *self.rng.pick(&[(Ty::Wide, Ty::Tall), (Ty::Tall, Ty::Wide), (Ty::Square, Ty::Square)]);
        let (source, into, name) = (self.of_type(scope, from), self.of_type(scope, to), self.name());
        // An operation that is printed with its results leaves out their types.
        self.line(
            scope,
            &format!("{name} = linalg.transpose ins({source} : {from}) outs({into} : {to}) permutation = [1, 0]"),
        );
        self.made(scope, name, to, &[&into]);
    }

    /// The maximum of each row, and of the destination's old value.
    fn reduce(&mut self, scope: &mut Scope) {
        let (source, into, name) = (self.of_type(scope, Ty::Square), self.of_type(scope, Ty::Six), self.name());
        self.line(
            scope,
            &format!(
                "{name} = linalg.reduce {{ arith.maximumf }} ins({source} : {}) outs({into} : {}) dimensions = [{}]",
                Ty::Square,
                Ty::Six,
                self.next % 2
            ),
        );
        self.made(scope, name, Ty::Six, &[&into]);
    }

    fn broadcast(&mut self, scope: &mut Scope) {
        let to = *self.rng.pick(&[Ty::Wide, Ty::Square]);
        let (source, into, name) = (self.of_type(scope, Ty::Six), self.of_type(scope, to), self.name());
        self.line(
            scope,
            &format!("{name} = linalg.broadcast ins({source} : {}) outs({into} : {to}) dimensions = [0]", Ty::Six),
        );
        self.made(scope, name, to, &[&into]);
    }

    fn map(&mut self, scope: &mut Scope) {
        let (source, ty) = self.pick(scope);
        let (into, name) = (self.of_type(scope, ty), self.name());
        self.line(scope, &format!("{name} = linalg.map {{ math.absf }} ins({source} : {ty}) outs({into} : {ty})"));
        self.made(scope, name, ty, &[&into]);
    }

    fn softmax(&mut self, scope: &mut Scope) {
        let ty = *self.rng.pick(&[Ty::Wide, Ty::Square]);
        let (source, into, name) = (self.of_type(scope, ty), self.of_type(scope, ty), self.name());
        self.line(
            scope,
            &format!("{name} = linalg.softmax dimension(1) ins({source} : {ty}) outs({into} : {ty}) -> {ty}"),
        );
        self.made(scope, name, ty, &[&into]);
    }

    /// Packs and unpacks: the packed form is a new tensor.
    fn pack(&mut self, scope: &mut Scope) {
        let (ty, packed) = (Ty::Wide, "tensor<2x3x2x2xf32>");
        let (source, into) = (self.of_type(scope, ty), self.of_type(scope, ty));
        let (empty, tiles, name) = (self.name(), self.name(), self.name());
        let how = "inner_dims_pos = [0, 1] inner_tiles = [2, 2]";
        self.line(scope, &format!("{empty} = tensor.empty() : {packed}"));
        self.line(scope, &format!("{tiles} = linalg.pack {source} {how} into {empty} : {ty} -> {packed}"));
        self.line(scope, &format!("{name} = linalg.unpack {tiles} {how} into {into} : {packed} -> {ty}"));
        self.made(scope, name, ty, &[&into]);
    }

    /// Two destinations of one type.
    fn two_results(&mut self, scope: &mut Scope) {
        let ty = *self.rng.pick(&[Ty::Six, Ty::Wide]);
        let rank = ty.dims().len();
        let dims = ["d0", "d1"][..rank].join(", ");
        let map = format!("affine_map<({dims}) -> ({dims})>");
        let source = self.of_type(scope, ty);
        let mut into = vec![(self.of_type(scope, ty), ty), (self.of_type(scope, ty), ty)];
        self.keep_apart(scope, &mut into);
        let (name, reads) = (self.name(), self.percent(50));
        self.line(
            scope,
            &format!(
                "{name}:2 = linalg.generic {{indexing_maps = [{map}, {map}, {map}], iterator_types = [{}]}} \
                 ins({source} : {ty}) outs({}, {} : {ty}, {ty}) {{",
                vec!["\"parallel\""; rank].join(", "),
                into[0].0,
                into[1].0
            ),
        );
        self.line(scope, "^bb0(%a: f32, %o: f32, %p: f32):");
        let inner = scope.inner();
        self.line(&inner, "%m = arith.negf %a : f32");
        self.line(&inner, &format!("%k = arith.maximumf {}, %a : f32", if reads { "%o" } else { "%a" }));
        self.line(&inner, "linalg.yield %m, %k : f32, f32");
        self.line(scope, &format!("}} -> ({ty}, {ty})"));
        for (i, (destination, _)) in into.iter().enumerate() {
            self.made(scope, format!("{name}#{i}"), ty, &[destination]);
        }
    }

    /// Reads the source in reverse order.
    fn reversed(&mut self, scope: &mut Scope) {
        let ty = *self.rng.pick(&[Ty::Six, Ty::Three]);
        let (source, into, name) = (self.of_type(scope, ty), self.of_type(scope, ty), self.name());
        let last = ty.dims()[0] - 1;
        self.line(
            scope,
            &format!(
                "{name} = linalg.generic {{indexing_maps = [affine_map<(i) -> ({last} - i)>, affine_map<(i) -> (i)>], \
                 iterator_types = [\"parallel\"]}} ins({source} : {ty}) outs({into} : {ty}) {{"
            ),
        );
        self.line(scope, "^bb0(%a: f32, %o: f32):");
        let inner = scope.inner();
        self.line(&inner, "linalg.yield %a : f32");
        self.line(scope, &format!("}} -> {ty}"));
        self.made(scope, name, ty, &[&into]);
    }
}
