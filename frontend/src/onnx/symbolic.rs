//! Sizes as integer expressions over symbols, in one canonical form: equal sizes are equal values.
//!
//! ```text
//! (batch + 1) * 8 - 8            8*batch
//! floor(2*n / 2)                 n
//! ```
//!
//! A symbol is not negative: it is a size.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A size: a sum of products of atoms.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Dim {
    constant: i64,
    /// Products of atoms, each in order, with their factors, which are not zero.
    terms: BTreeMap<Vec<Atom>, i64>,
}

/// Most terms and atoms of a size that is worth computing at import, and the deepest nesting of its atoms.
const MAX_TERMS: usize = 16;
const MAX_ATOMS: usize = 128;
const MAX_DEPTH: usize = 32;

/// A size that the run gives. Only those of the model's names can be named by it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// A name of the model.
    Named(Arc<str>),
    /// An unnamed dimension of an input, by the input's name and its axis.
    Axis(Arc<str>, usize),
    /// A size that data decides, by its number.
    Data(usize),
}

/// A part of a size that is not a sum.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Atom {
    /// A symbol.
    Symbol(Symbol),
    /// A quotient, rounded down.
    FloorDiv(Box<(Dim, Dim)>),
    /// The smaller of two.
    Min(Box<(Dim, Dim)>),
    /// The larger of two.
    Max(Box<(Dim, Dim)>),
    /// The one of two that is not 1.
    Broadcast(Box<(Dim, Dim)>),
}

impl Dim {
    /// A number.
    pub fn constant(value: i64) -> Self {
        Self { constant: value, terms: BTreeMap::new() }
    }
    /// A symbol of the model's.
    pub fn symbol(name: &str) -> Self {
        Self::from(Symbol::Named(name.into()))
    }
    fn atom(atom: Atom) -> Self {
        Self { constant: 0, terms: BTreeMap::from([(vec![atom], 1)]) }
    }
    /// The number, if this is one.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }
    /// The constant summand.
    pub fn offset(&self) -> i64 {
        self.constant
    }
    /// The products of atoms with their factors.
    pub fn terms(&self) -> impl Iterator<Item = (&[Atom], i64)> {
        self.terms.iter().map(|(atoms, factor)| (atoms.as_slice(), *factor))
    }
    /// Whether this is that number.
    pub fn is(&self, value: i64) -> bool {
        self.as_constant() == Some(value)
    }
    /// Sum.
    pub fn add(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.constant = out.constant.wrapping_add(other.constant);
        for (atoms, factor) in &other.terms {
            out.add_term(atoms.clone(), *factor);
        }
        out
    }
    fn add_term(&mut self, atoms: Vec<Atom>, factor: i64) {
        let sum = self.terms.get(&atoms).copied().unwrap_or(0).wrapping_add(factor);
        if sum == 0 {
            self.terms.remove(&atoms)
        } else {
            self.terms.insert(atoms, sum)
        };
    }
    /// Sum with a number.
    pub fn plus(&self, value: i64) -> Self {
        self.add(&Self::constant(value))
    }
    /// Product with a number.
    pub fn times(&self, value: i64) -> Self {
        self.mul(&Self::constant(value))
    }
    /// Difference.
    pub fn sub(&self, other: &Self) -> Self {
        self.add(&other.times(-1))
    }
    /// Product.
    pub fn mul(&self, other: &Self) -> Self {
        let mut out = Self::constant(self.constant.wrapping_mul(other.constant));
        for (atoms, factor) in &self.terms {
            if other.constant != 0 {
                out.add_term(atoms.clone(), factor.wrapping_mul(other.constant));
            }
        }
        for (right, by) in &other.terms {
            if self.constant != 0 {
                out.add_term(right.clone(), by.wrapping_mul(self.constant));
            }
            for (left, factor) in &self.terms {
                let mut atoms = [left.as_slice(), right].concat();
                atoms.sort();
                out.add_term(atoms, factor.wrapping_mul(*by));
            }
        }
        out
    }
    /// The product of sizes.
    pub fn product(sizes: &[Self]) -> Self {
        sizes.iter().fold(Self::constant(1), |n, d| n.mul(d))
    }
    /// Quotient, rounded down; `None` for a division by zero.
    pub fn floor_div(&self, by: &Self) -> Option<Self> {
        if by.is(0) {
            return None;
        }
        if let Some(quotient) = self.exact_quotient(by) {
            return Some(quotient);
        }
        let (Some(d), None) = (by.as_constant().filter(|d| *d > 0), self.as_constant()) else {
            return Some(match (self.as_constant(), by.as_constant()) {
                (Some(n), Some(d)) => Self::constant(floor_div(n, d)),
                _ => Self::atom(Atom::FloorDiv(Box::new((self.clone(), by.clone())))),
            });
        };
        // Multiples of the divisor leave the quotient.
        let (mut whole, mut rest) = (Self::default(), Self::default());
        for (atoms, factor) in &self.terms {
            let (to, factor) = if factor % d == 0 { (&mut whole, factor / d) } else { (&mut rest, *factor) };
            to.add_term(atoms.clone(), factor);
        }
        whole.constant = floor_div(self.constant, d);
        rest.constant = self.constant.rem_euclid(d);
        if rest.terms.is_empty() {
            return Some(whole);
        }
        Some(whole.add(&Self::atom(Atom::FloorDiv(Box::new((rest, by.clone()))))))
    }
    /// Quotient, rounded up.
    pub fn ceil_div(&self, by: i64) -> Option<Self> {
        self.plus(by - 1).floor_div(&Self::constant(by))
    }
    /// What is left of a division that rounds down.
    pub fn modulo(&self, by: &Self) -> Option<Self> {
        Some(self.sub(&self.floor_div(by)?.mul(by)))
    }
    /// The quotient, if there is no remainder whatever the symbols: of a product by some of its factors.
    pub fn exact_quotient(&self, by: &Self) -> Option<Self> {
        if let Some(d) = by.as_constant().filter(|d| *d != 0) {
            // The least integer by -1 wraps.
            if self.constant.wrapping_rem(d) != 0 || self.terms.values().any(|f| f.wrapping_rem(d) != 0) {
                return None;
            }
            let terms = self.terms.iter().map(|(atoms, f)| (atoms.clone(), f.wrapping_div(d))).collect();
            return Some(Self { constant: self.constant.wrapping_div(d), terms });
        }
        if by == self {
            return Some(Self::constant(1));
        }
        // Long division by the leading terms: what is left has fewer of them each time.
        let (divisor, by_factor) = by.leading()?;
        let (mut left, mut out) = (self.clone(), Self::default());
        for _ in 0..self.terms.len() + MAX_TERMS {
            let Some((mut atoms, factor)) = left.leading() else {
                return (left.constant == 0).then_some(out);
            };
            for atom in &divisor {
                atoms.remove(atoms.iter().position(|a| a == atom)?);
            }
            if factor.wrapping_rem(by_factor) != 0 {
                return None;
            }
            let mut term = Self::constant(factor.wrapping_div(by_factor));
            if !atoms.is_empty() {
                term = Self { constant: 0, terms: BTreeMap::from([(atoms, term.constant)]) };
            }
            (left, out) = (left.sub(&term.mul(by)), out.add(&term));
        }
        None
    }
    /// The atoms of a term of the most factors, and its coefficient; `None` of a constant.
    fn leading(&self) -> Option<(Vec<Atom>, i64)> {
        let (atoms, factor) = self.terms.iter().max_by_key(|(atoms, _)| (atoms.len(), *atoms))?;
        Some((atoms.clone(), *factor))
    }
    /// The smaller of two.
    pub fn at_most(&self, other: &Self) -> Self {
        match other.difference(self).and_then(|d| d.sign()) {
            Some(true) => self.clone(),
            Some(false) => other.clone(),
            None => Self::atom(Atom::Min(Box::new(ordered(self, other)))),
        }
    }
    /// The larger of two.
    pub fn at_least(&self, other: &Self) -> Self {
        match other.difference(self).and_then(|d| d.sign()) {
            Some(true) => other.clone(),
            Some(false) => self.clone(),
            None => Self::atom(Atom::Max(Box::new(ordered(self, other)))),
        }
    }
    /// A size of the difference's sign; `None` where the difference exceeds 64 bits.
    pub fn difference(&self, other: &Self) -> Option<Self> {
        if let (Some(a), Some(b)) = (self.as_constant(), other.as_constant()) {
            return Some(Self::constant(a.cmp(&b) as i64));
        }
        let mut out = self.clone();
        out.constant = self.constant.checked_sub(other.constant)?;
        for (atoms, factor) in &other.terms {
            self.terms.get(atoms).copied().unwrap_or(0).checked_sub(*factor)?;
            out.add_term(atoms.clone(), factor.checked_neg()?);
        }
        Some(out)
    }
    /// Whether the expression has few parts.
    pub fn is_small(&self) -> bool {
        self.terms.len() <= MAX_TERMS && self.fits(&mut { MAX_ATOMS }, MAX_DEPTH)
    }
    fn fits(&self, atoms: &mut usize, depth: usize) -> bool {
        let mut fits = |atom: &Atom| {
            let Some(left) = atoms.checked_sub(1) else { return false };
            *atoms = left;
            match atom {
                Atom::Symbol(_) => true,
                Atom::FloorDiv(of) | Atom::Min(of) | Atom::Max(of) | Atom::Broadcast(of) => {
                    depth > 0 && of.0.fits(atoms, depth - 1) && of.1.fits(atoms, depth - 1)
                }
            }
        };
        self.terms.keys().flatten().all(&mut fits)
    }
    /// The size to which two sizes broadcast, either of which may turn out to be 1.
    pub fn broadcast(&self, other: &Self) -> Self {
        match (self.as_constant(), other.as_constant()) {
            (Some(1), _) => other.clone(),
            (_, Some(1)) | (Some(_), _) => self.clone(),
            (None, Some(_)) => other.clone(),
            _ if !self.may_differ(other) || self.is_sum() => self.clone(),
            _ if other.is_sum() => other.clone(),
            _ => Self::atom(Atom::Broadcast(Box::new(ordered(self, other)))),
        }
    }
    /// Whether this may be 1 where the other size, to which it broadcasts, is not: sizes that follow from one symbol are equal.
    pub fn may_differ(&self, other: &Self) -> bool {
        let (own, others) = (self.leaves(), other.leaves());
        self.as_constant().is_none() && !own.iter().any(|leaf| others.contains(leaf))
    }
    /// Whether this is a sum of sizes: more than 1, unless sizes are 0.
    fn is_sum(&self) -> bool {
        let parts = self.terms.len() + usize::from(self.constant != 0);
        parts > 1 && self.constant >= 0 && self.terms.values().all(|factor| *factor > 0)
    }
    /// The atoms that no other sizes are part of, or that are equal to either of two.
    fn leaves(&self) -> Vec<&Atom> {
        self.terms.keys().flatten().flat_map(Atom::leaves).collect()
    }
    /// `true`: never negative; `false`: never positive; `None`: unknown.
    fn sign(&self) -> Option<bool> {
        let products = self.terms.keys().all(|atoms| atoms.iter().all(Atom::is_not_negative));
        if products && self.constant >= 0 && self.terms.values().all(|f| *f > 0) {
            return Some(true);
        }
        (products && self.constant <= 0 && self.terms.values().all(|f| *f < 0)).then_some(false)
    }
    /// Whether this is known not to be negative.
    pub fn is_not_negative(&self) -> bool {
        self.sign() == Some(true)
    }
    /// With sizes for some symbols.
    pub fn bind(&self, sizes: &BTreeMap<String, i64>) -> Self {
        let mut out = Self::constant(self.constant);
        for (atoms, factor) in &self.terms {
            let product = atoms.iter().fold(Self::constant(*factor), |p, atom| p.mul(&atom.bind(sizes)));
            out = out.add(&product);
        }
        out
    }
    /// All symbols in it.
    pub fn symbols(&self) -> Vec<&Symbol> {
        self.terms.keys().flatten().flat_map(Atom::symbols).collect()
    }
    /// The symbol, if this is one.
    pub fn as_symbol(&self) -> Option<&Symbol> {
        match (self.constant, self.terms.iter().next()) {
            (0, Some((atoms, 1))) if self.terms.len() == 1 => match &atoms[..] {
                [Atom::Symbol(symbol)] => Some(symbol),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Symbol {
    /// The model's name of it.
    pub fn name(&self) -> Option<&str> {
        match self {
            Symbol::Named(name) => Some(name),
            _ => None,
        }
    }
}

impl Atom {
    fn leaves(&self) -> Vec<&Atom> {
        match self {
            Atom::FloorDiv(of) | Atom::Min(of) | Atom::Max(of) => [of.0.leaves(), of.1.leaves()].concat(),
            Atom::Symbol(_) | Atom::Broadcast(_) => vec![self],
        }
    }
    fn is_not_negative(&self) -> bool {
        match self {
            Atom::Symbol(_) => true,
            Atom::FloorDiv(of) | Atom::Min(of) | Atom::Broadcast(of) => {
                of.0.is_not_negative() && of.1.is_not_negative()
            }
            Atom::Max(of) => of.0.is_not_negative() || of.1.is_not_negative(),
        }
    }
    fn symbols(&self) -> Vec<&Symbol> {
        match self {
            Atom::Symbol(symbol) => vec![symbol],
            Atom::FloorDiv(of) | Atom::Min(of) | Atom::Max(of) | Atom::Broadcast(of) => {
                [of.0.symbols(), of.1.symbols()].concat()
            }
        }
    }
    fn bind(&self, sizes: &BTreeMap<String, i64>) -> Dim {
        match self {
            Atom::Symbol(symbol) => {
                let size = symbol.name().and_then(|name| sizes.get(name));
                size.map_or_else(|| Dim::atom(self.clone()), |size| Dim::constant(*size))
            }
            Atom::FloorDiv(of) => {
                of.0.bind(sizes).floor_div(&of.1.bind(sizes)).unwrap_or_else(|| Dim::atom(self.clone()))
            }
            Atom::Min(of) => of.0.bind(sizes).at_most(&of.1.bind(sizes)),
            Atom::Max(of) => of.0.bind(sizes).at_least(&of.1.bind(sizes)),
            Atom::Broadcast(of) => of.0.bind(sizes).broadcast(&of.1.bind(sizes)),
        }
    }
}

fn ordered(a: &Dim, b: &Dim) -> (Dim, Dim) {
    if a <= b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) }
}

fn floor_div(n: i64, d: i64) -> i64 {
    let q = n.wrapping_div(d);
    if n.wrapping_rem(d) != 0 && (n < 0) != (d < 0) { q - 1 } else { q }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Self {
        Self::constant(value)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = vec![];
        for (atoms, factor) in &self.terms {
            let product = atoms.iter().map(ToString::to_string).collect::<Vec<_>>().join("*");
            parts.push(match factor {
                1 => product,
                _ => format!("{factor}*{product}"),
            });
        }
        if self.constant != 0 || parts.is_empty() {
            parts.push(self.constant.to_string());
        }
        f.write_str(&parts.join(" + "))
    }
}

impl From<Symbol> for Dim {
    fn from(symbol: Symbol) -> Self {
        Self::atom(Atom::Symbol(symbol))
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Symbol::Named(name) => f.write_str(name),
            Symbol::Axis(input, axis) => write!(f, "{input}.{axis}"),
            Symbol::Data(number) => write!(f, "?{number}"),
        }
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Symbol(symbol) => symbol.fmt(f),
            Atom::FloorDiv(of) => write!(f, "floor(({}) / ({}))", of.0, of.1),
            Atom::Min(of) => write!(f, "min({}, {})", of.0, of.1),
            Atom::Max(of) => write!(f, "max({}, {})", of.0, of.1),
            Atom::Broadcast(of) => write!(f, "broadcast({}, {})", of.0, of.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sizes_are_equal_values() {
        let (n, m) = (Dim::symbol("n"), Dim::symbol("m"));
        assert_eq!(n.plus(1).times(8).plus(-8), n.times(8));
        assert_eq!(n.add(&m).mul(&n), n.mul(&n).add(&m.mul(&n)));
        assert_eq!(n.times(6).plus(7).floor_div(&3.into()), Some(n.times(2).plus(2)));
        assert_eq!(n.mul(&m).times(4).floor_div(&m.times(2)), Some(n.times(2)));
        assert_eq!(n.times(4).modulo(&2.into()), Some(0.into()));
        // Sums, as of what is behind a cache.
        let (grown, both) = (n.plus(1), n.plus(1).mul(&m.plus(-2)));
        assert_eq!(grown.times(64).floor_div(&grown.times(16)), Some(4.into()));
        assert_eq!(both.times(6).exact_quotient(&grown.times(2)), Some(m.plus(-2).times(3)));
        assert_eq!(both.exact_quotient(&n.plus(2)), None);
        assert_eq!(n.plus(1).exact_quotient(&n), None);
        assert_eq!(grown.mul(&grown).plus(-1).exact_quotient(&n.plus(2)), Some(n.clone()));
        assert_eq!(n.floor_div(&0.into()), None);
        assert_eq!(Dim::constant(-7).floor_div(&2.into()), Some((-4).into()));
    }

    #[test]
    fn bounds_that_are_known_fold() {
        let n = Dim::symbol("n");
        assert_eq!(n.at_least(&0.into()), n);
        assert_eq!(n.plus(3).at_most(&n), n);
        let open = n.plus(-1).at_least(&0.into());
        assert_eq!(open.to_string(), "max(n + -1, 0)");
        assert_eq!(open.bind(&BTreeMap::from([("n".to_owned(), 5)])), 4.into());
        assert!(open.is_not_negative());
    }

    #[test]
    fn sizes_of_different_symbols_broadcast_late() {
        let (n, m, one) = (Dim::symbol("n"), Dim::symbol("m"), Dim::constant(1));
        let late = n.broadcast(&m);
        assert_eq!((late.to_string(), m.broadcast(&n) == late), ("broadcast(m, n)".to_owned(), true));
        assert!(n.may_differ(&late) && m.may_differ(&n) && n.may_differ(&7.into()) && !one.may_differ(&n));
        assert_eq!(late.bind(&BTreeMap::from([("n".to_owned(), 1), ("m".to_owned(), 5)])), 5.into());
        // Of one symbol, or a sum: only the other one may be 1.
        let capped = n.at_most(&1024.into());
        assert_eq!((n.broadcast(&capped), n.may_differ(&capped)), (n.clone(), false));
        assert_eq!(m.broadcast(&n.plus(1)), n.plus(1));
        assert_eq!((n.broadcast(&one), one.broadcast(&n), n.broadcast(&3.into())), (n.clone(), n, 3.into()));
    }

    #[test]
    fn a_bound_symbol_is_a_number_everywhere() {
        let n = Dim::symbol("n");
        let half = n.plus(1).floor_div(&2.into()).unwrap();
        assert_eq!(half.to_string(), "floor((n + 1) / (2))");
        assert_eq!(half.times(3).bind(&BTreeMap::from([("n".to_owned(), 4)])).as_constant(), Some(6));
        assert_eq!(half.as_symbol(), None);
        assert_eq!(n.as_symbol().and_then(Symbol::name), Some("n"));
        let made = Dim::from(Symbol::Data(1));
        assert_eq!((made.to_string(), made == Dim::symbol("?1")), ("?1".to_owned(), false));
        assert_eq!(made.bind(&BTreeMap::from([("?1".to_owned(), 4)])), made);
    }

    #[test]
    fn integers_at_the_limits_do_not_wrap() {
        let (n, least) = (Dim::symbol("n"), Dim::constant(i64::MIN));
        assert_eq!(Dim::constant(5).at_least(&least), 5.into());
        assert_eq!(Dim::constant(5).at_most(&least), least);
        assert_eq!(n.mul(&least).at_least(&0.into()).as_constant(), None);
        assert_ne!(n.mul(&least).at_least(&0.into()), n.mul(&least));
        assert_eq!(n.mul(&least).floor_div(&(-1).into()), Some(n.mul(&least)));
        assert_eq!(n.mul(&least).exact_quotient(&n.times(-1)), Some(least));
    }

    #[test]
    fn an_expression_of_many_parts_is_not_small() {
        let n = Dim::symbol("n");
        let power = |k: usize| (0..k).fold(Dim::constant(1), |p, _| p.mul(&n.plus(1)));
        assert!(power(8).is_small() && !power(20).is_small());
        let deep = |k: usize| (0..k).fold(n.clone(), |d, _| d.plus(1).floor_div(&3.into()).unwrap_or_default());
        assert!(deep(32).is_small() && !deep(34).is_small());
    }
}
