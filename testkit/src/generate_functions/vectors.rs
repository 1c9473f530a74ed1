//! Vector transfers from and to tensors.

use super::{Generator, Scope, Ty};

impl Generator<'_> {
    /// A transfer from one tensor into another, or the same one.
    pub(super) fn vector(&mut self, scope: &mut Scope) {
        let (from, into_type) = (self.lines(), self.lines());
        let (from_tensor, into) = (self.of_type(scope, from), self.of_type(scope, into_type));
        let (read, name) = (self.name(), self.name());
        let padding = self.rng.pick(&scope.scalars).clone();
        // The last three elements of a line may begin up to two before its end.
        let at = self.line_index(scope, from, 6);
        let mask = self.mask(scope);
        self.line(
            scope,
            &format!("{read} = vector.transfer_read {from_tensor}[{at}], {padding}{mask} : {from}, vector<3xf32>"),
        );
        if into_type == Ty::Three && self.percent(60) {
            // A full overwrite with static bounds: the old contents are not read.
            self.line(
                scope,
                &format!("{name} = vector.transfer_write {read}, {into}[%c0] {{in_bounds = [true]}} : vector<3xf32>, {into_type}"),
            );
        } else {
            let at = self.line_index(scope, into_type, 6);
            let into = self.steady(scope, into.clone(), into_type, &at);
            let mask = self.mask(scope);
            self.line(
                scope,
                &format!("{name} = vector.transfer_write {read}, {into}[{at}]{mask} : vector<3xf32>, {into_type}"),
            );
            return self.made(scope, name, into_type, &[&into]);
        }
        self.made(scope, name, into_type, &[&into]);
    }

    fn lines(&mut self) -> Ty {
        *self.rng.pick(&[Ty::Three, Ty::Six, Ty::Wide, Ty::Square])
    }

    /// Indices of an element; the last one below `most`.
    fn line_index(&mut self, scope: &Scope, ty: Ty, most: usize) -> String {
        let dims = ty.dims();
        let (last, outer) = (dims.len() - 1, &dims[..dims.len() - 1]);
        let mut at: Vec<String> = outer.iter().map(|d| self.index(scope, *d)).collect();
        at.push(self.index(scope, dims[last].min(most)));
        at.join(", ")
    }

    /// No mask, or one of the first elements.
    fn mask(&mut self, scope: &Scope) -> String {
        if self.percent(65) {
            return String::new();
        }
        let (size, mask) = (self.index(scope, 4), self.name());
        self.line(scope, &format!("{mask} = vector.create_mask {size} : vector<3xi1>"));
        format!(", {mask}")
    }
}
