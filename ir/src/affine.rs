//! Affine maps and expressions.

use crate::{AffineExpr, AffineMap, Attr, Context, string};
use std::fmt;

/// The shape of an affine expression.
#[derive(Clone, Copy, Debug)]
pub enum AffineExprKind<'c> {
    /// Dimension by position.
    Dim(usize),
    /// Symbol by position.
    Symbol(usize),
    /// Constant.
    Constant(i64),
    /// Sum.
    Add(AffineExpr<'c>, AffineExpr<'c>),
    /// Product.
    Mul(AffineExpr<'c>, AffineExpr<'c>),
    /// Remainder, non-negative.
    Mod(AffineExpr<'c>, AffineExpr<'c>),
    /// Quotient rounded down.
    FloorDiv(AffineExpr<'c>, AffineExpr<'c>),
    /// Quotient rounded up.
    CeilDiv(AffineExpr<'c>, AffineExpr<'c>),
}

impl<'c> AffineMap<'c> {
    /// `(d0, ..) -> (d0, ..)`.
    pub fn identity(cx: Context<'c>, rank: usize) -> Self {
        melior::ir::AffineMap::multi_dim_identity(cx.to_melior(), rank).into()
    }
    /// `(d0, ..) -> (d_p0, d_p1, ..)` over `dims` dimensions: a projected permutation or broadcast.
    pub fn select(cx: Context<'c>, dims: usize, positions: &[usize]) -> Self {
        let mut exprs: Vec<_> = positions.iter().map(|p| c!(mlirAffineDimExprGet(cx.raw(), *p as isize))).collect();
        Self::from_raw(c!(mlirAffineMapGet(cx.raw(), dims as isize, 0, exprs.len() as isize, exprs.as_mut_ptr())))
    }
    /// A map over `dims` dimensions, without symbols, from its results.
    pub fn of(cx: Context<'c>, dims: usize, results: &[AffineExpr<'c>]) -> Self {
        let mut exprs: Vec<_> = results.iter().map(|e| e.raw()).collect();
        Self::from_raw(c!(mlirAffineMapGet(cx.raw(), dims as isize, 0, exprs.len() as isize, exprs.as_mut_ptr())))
    }
    /// The map as an attribute.
    pub fn to_attr(self) -> Attr<'c> {
        Attr::from_raw(c!(mlirAffineMapAttrGet(self.raw())))
    }
    /// Number of dimensions.
    pub fn num_dims(self) -> usize {
        c!(mlirAffineMapGetNumDims(self.raw())) as usize
    }
    /// Number of symbols.
    pub fn num_symbols(self) -> usize {
        c!(mlirAffineMapGetNumSymbols(self.raw())) as usize
    }
    /// Result expressions.
    pub fn results(self) -> Vec<AffineExpr<'c>> {
        let n = c!(mlirAffineMapGetNumResults(self.raw()));
        (0..n).map(|i| AffineExpr::from_raw(c!(mlirAffineMapGetResult(self.raw(), i)))).collect()
    }
    /// Whether this is the identity.
    pub fn is_identity(self) -> bool {
        c!(mlirAffineMapIsIdentity(self.raw()))
    }
    /// Whether every result is a distinct dimension.
    pub fn is_projected_permutation(self) -> bool {
        c!(mlirAffineMapIsProjectedPermutation(self.raw()))
    }
    /// Whether this permutes all dimensions.
    pub fn is_permutation(self) -> bool {
        c!(mlirAffineMapIsPermutation(self.raw()))
    }
    /// For a map whose results are all plain dimensions: their positions.
    pub fn dim_positions(self) -> Option<Vec<usize>> {
        self.results()
            .into_iter()
            .map(|e| match e.kind() {
                AffineExprKind::Dim(p) => Some(p),
                _ => None,
            })
            .collect()
    }
    /// `self` after `inner`: its results, with each dimension replaced by the result of `inner` at that position.
    pub fn compose(self, inner: Self) -> Self {
        let cx = c!(mlirAffineMapGetContext(self.raw()));
        let mut exprs: Vec<_> =
            self.results().into_iter().map(|e| c!(mlirAffineExprCompose(e.raw(), inner.raw()))).collect();
        let (dims, symbols) = (inner.num_dims() as isize, inner.num_symbols() as isize);
        Self::from_raw(c!(mlirAffineMapGet(cx, dims, symbols, exprs.len() as isize, exprs.as_mut_ptr())))
    }
    /// Evaluates all results.
    pub fn eval(self, dims: &[i64], symbols: &[i64]) -> Vec<i64> {
        self.results().into_iter().map(|e| e.eval(dims, symbols)).collect()
    }
}

impl<'c> AffineExpr<'c> {
    /// A dimension, by position.
    pub fn dim(cx: Context<'c>, position: usize) -> Self {
        Self::from_raw(c!(mlirAffineDimExprGet(cx.raw(), position as isize)))
    }
    /// The kind of this expression, with its parts.
    pub fn kind(self) -> AffineExprKind<'c> {
        let raw = self.raw();
        if c!(mlirAffineExprIsADim(raw)) {
            return AffineExprKind::Dim(c!(mlirAffineDimExprGetPosition(raw)) as usize);
        }
        if c!(mlirAffineExprIsASymbol(raw)) {
            return AffineExprKind::Symbol(c!(mlirAffineSymbolExprGetPosition(raw)) as usize);
        }
        if c!(mlirAffineExprIsAConstant(raw)) {
            return AffineExprKind::Constant(c!(mlirAffineConstantExprGetValue(raw)));
        }
        let l = AffineExpr::from_raw(c!(mlirAffineBinaryOpExprGetLHS(raw)));
        let r = AffineExpr::from_raw(c!(mlirAffineBinaryOpExprGetRHS(raw)));
        if c!(mlirAffineExprIsAAdd(raw)) {
            AffineExprKind::Add(l, r)
        } else if c!(mlirAffineExprIsAMul(raw)) {
            AffineExprKind::Mul(l, r)
        } else if c!(mlirAffineExprIsAMod(raw)) {
            AffineExprKind::Mod(l, r)
        } else if c!(mlirAffineExprIsAFloorDiv(raw)) {
            AffineExprKind::FloorDiv(l, r)
        } else {
            AffineExprKind::CeilDiv(l, r)
        }
    }

    /// Evaluates with MLIR's semantics (floor division, non-negative remainder).
    pub fn eval(self, dims: &[i64], symbols: &[i64]) -> i64 {
        match self.kind() {
            AffineExprKind::Dim(p) => dims[p],
            AffineExprKind::Symbol(p) => symbols[p],
            AffineExprKind::Constant(v) => v,
            AffineExprKind::Add(l, r) => l.eval(dims, symbols).wrapping_add(r.eval(dims, symbols)),
            AffineExprKind::Mul(l, r) => l.eval(dims, symbols).wrapping_mul(r.eval(dims, symbols)),
            AffineExprKind::Mod(l, r) => l.eval(dims, symbols).rem_euclid(r.eval(dims, symbols).max(1)),
            AffineExprKind::FloorDiv(l, r) => l.eval(dims, symbols).div_euclid(r.eval(dims, symbols).max(1)),
            AffineExprKind::CeilDiv(l, r) => {
                let (l, r) = (l.eval(dims, symbols), r.eval(dims, symbols).max(1));
                -(-l).div_euclid(r)
            }
        }
    }
}

impl fmt::Display for AffineMap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&string::collect(|cb, user| c!(mlirAffineMapPrint(self.raw(), cb, user))))
    }
}
