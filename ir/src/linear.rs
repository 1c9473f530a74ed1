//! Linear forms of affine expressions.

use crate::{AffineExpr, AffineExprKind};

/// `factors[0] * d0 + factors[1] * d1 + .. + constant`, over the dimensions of a map: the loops of a linalg op.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinearForm {
    /// One per dimension.
    pub factors: Vec<i64>,
    /// The constant part.
    pub constant: i64,
}

impl LinearForm {
    /// A constant over this many dimensions.
    pub fn constant(constant: i64, dims: usize) -> Self {
        Self { factors: vec![0; dims], constant }
    }
    /// A bare dimension of this many.
    ///
    /// # Panics
    /// If there are fewer dimensions.
    pub fn dim(dim: usize, dims: usize) -> Self {
        let mut form = Self::constant(0, dims);
        form.factors[dim] = 1;
        form
    }
    /// The dimension of a form that is a bare one.
    pub fn as_dim(&self) -> Option<usize> {
        let mut used = (0..self.factors.len()).filter(|i| self.factors[*i] != 0);
        let first = used.next()?;
        (used.next().is_none() && self.factors[first] == 1 && self.constant == 0).then_some(first)
    }
    /// The value of a form without dimensions.
    pub fn as_constant(&self) -> Option<i64> {
        self.factors.iter().all(|factor| *factor == 0).then_some(self.constant)
    }
    /// The sum; `None` where a number overflows.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let factors = self.factors.iter().zip(&other.factors).map(|(a, b)| a.checked_add(*b)).collect::<Option<_>>()?;
        Some(Self { factors, constant: self.constant.checked_add(other.constant)? })
    }
    /// The product; `None` where a number overflows.
    pub fn times(&self, factor: i64) -> Option<Self> {
        let factors = self.factors.iter().map(|a| a.checked_mul(factor)).collect::<Option<_>>()?;
        Some(Self { factors, constant: self.constant.checked_mul(factor)? })
    }
}

impl AffineExpr<'_> {
    /// The linear form of an expression over this many dimensions; `None` for symbols, quotients, remainders and products of
    /// dimensions, and where a number overflows.
    pub fn linear(self, dims: usize) -> Option<LinearForm> {
        match self.kind() {
            AffineExprKind::Dim(dim) => (dim < dims).then(|| LinearForm::dim(dim, dims)),
            AffineExprKind::Constant(constant) => Some(LinearForm::constant(constant, dims)),
            AffineExprKind::Add(l, r) => l.linear(dims)?.plus(&r.linear(dims)?),
            AffineExprKind::Mul(l, r) => {
                let (l, r) = (l.linear(dims)?, r.linear(dims)?);
                match (l.as_constant(), r.as_constant()) {
                    (_, Some(factor)) => l.times(factor),
                    (Some(factor), None) => r.times(factor),
                    (None, None) => None,
                }
            }
            _ => None,
        }
    }
    /// The dimensions that the expression mentions, in order, repeated ones too.
    pub fn dims(self) -> Vec<usize> {
        match self.kind() {
            AffineExprKind::Dim(dim) => vec![dim],
            AffineExprKind::Symbol(_) | AffineExprKind::Constant(_) => vec![],
            AffineExprKind::Add(l, r)
            | AffineExprKind::Mul(l, r)
            | AffineExprKind::Mod(l, r)
            | AffineExprKind::FloorDiv(l, r)
            | AffineExprKind::CeilDiv(l, r) => [l.dims(), r.dims()].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LinearForm;
    use crate::{AffineMap, Attr, Context};

    fn map<'c>(cx: Context<'c>, text: &str) -> AffineMap<'c> {
        let attr = Attr::parse(cx, text).unwrap_or_else(|| panic!("{text} is a map"));
        attr.as_affine_map().unwrap_or_else(|| panic!("{text} is a map"))
    }

    #[test]
    fn forms_evaluate_as_their_expressions() {
        let cx = Context::new();
        let sums = "affine_map<(a, b, c) -> (a, 3, a * 2 + b - 5, (a + c * 4) * 3 + b * -1, (a + 7) * 2 - a * 2)>";
        for expr in map(cx, sums).results() {
            let form = expr.linear(3).expect("a sum of dimensions times constants");
            for point in [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [3, -5, 11]] {
                let value: i64 = form.factors.iter().zip(point).map(|(f, p)| f * p).sum();
                assert_eq!(value + form.constant, expr.eval(&point, &[]));
            }
        }
        let others = "affine_map<(a, b)[s] -> (a mod 2, a floordiv 2, a ceildiv 2, a + s, (b mod 2) * 2 + a)>";
        assert!(map(cx, others).results().into_iter().all(|expr| expr.linear(2).is_none()));
    }

    #[test]
    fn bare_dimensions_and_constants_are_told_apart() {
        let cx = Context::new();
        let forms = map(cx, "affine_map<(a, b) -> (b, b * 2, b + 1, a + b, 4)>").results();
        let forms: Vec<LinearForm> = forms.into_iter().filter_map(|expr| expr.linear(2)).collect();
        let dims: Vec<_> = forms.iter().map(LinearForm::as_dim).collect();
        assert_eq!(dims, [Some(1), None, None, None, None]);
        let constants: Vec<_> = forms.iter().map(LinearForm::as_constant).collect();
        assert_eq!(constants, [None, None, None, None, Some(4)]);
    }

    #[test]
    fn overflow_has_no_form() {
        let large = LinearForm { factors: vec![i64::MAX], constant: 1 };
        assert_eq!((large.times(2), large.plus(&large)), (None, None));
        assert_eq!(large.times(1).as_ref(), Some(&large));
    }

    #[test]
    fn mentioned_dimensions() {
        let cx = Context::new();
        let exprs =
            map(cx, "affine_map<(a, b, c)[s] -> (c + a * 2, (b + s) mod 3, 5, (a floordiv 2) ceildiv 3)>").results();
        let mut dims: Vec<Vec<usize>> = exprs.into_iter().map(|expr| expr.dims()).collect();
        dims.iter_mut().for_each(|dims| dims.sort_unstable());
        assert_eq!(dims, [vec![0, 2], vec![1], vec![], vec![0]]);
    }
}
