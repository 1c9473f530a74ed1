//! Causal masks of scores: keys behind the row's own place get a constant in place of their score.
//!
//! ```text
//! select(key <= row + offset, score, least)          the last op on the scores
//! select(key <= row + offset && other, score, least)
//! score + select(key <= row + offset, other, -inf)     but for scores that are infinite or no numbers
//! ```
//!
//! Whoever leaves keys out proves that no place wraps around: that offsets are places of tiles, which are no negative
//! numbers, and that sums fit in [`CausalMask::width`] bits.

use crate::typed::arith::CmpIPredicate;
use crate::{Block, Op, Value, bodies, ops};

/// A power of a score that is so far below the maximum is 0: half of the least f32 is `exp(-103.97)`.
pub const UNDERFLOW: f64 = 105.0;

/// A mask of the scores: where `key > row + offsets + constant`, or where that is equal and `sees_own` is not set, the
/// score is `least`. Other keys may have it too.
#[derive(Clone, Debug)]
pub struct CausalMask<'c> {
    /// What is added to a row's place, from outside of the body.
    pub offsets: Vec<Value<'c>>,
    /// A constant that is added, too.
    pub constant: i64,
    /// The sum of the magnitudes of all constants in it: no place on the way is farther from the row's.
    pub magnitude: i64,
    /// Whether a row sees the key at its place.
    pub sees_own: bool,
    /// Whether places are taken as unsigned somewhere.
    pub is_unsigned: bool,
    /// Bits of the shortest integer that holds places; `None`: they are indices throughout.
    pub width: Option<u32>,
    /// The score of a key that a row does not see; not NaN.
    pub least: f64,
}

impl<'c> CausalMask<'c> {
    /// The mask that the body of the last op on the scores is, of which `key` and `row` are loops; `None` for another body.
    pub fn of(body: Block<'c>, key: usize, row: usize) -> Option<Self> {
        let end = body.terminator().filter(|end| end.num_operands() == 1)?;
        let is_select = |op: &Op<'c>| op.is(ops::arith::SELECT) && op.block() == Some(body);
        let last = end.operand(0).defining_op()?;
        let is_added = last.is(ops::arith::ADDF);
        let terms = if is_added { last.operands() } else { vec![end.operand(0)] };
        let select = terms.into_iter().filter_map(|term| term.defining_op()).find(is_select)?;
        // What a finite number is added to may be as low as it.
        let counts = |least: &f64| !least.is_nan() && (!is_added || *least == f64::NEG_INFINITY);
        let behind = |hides: bool| {
            let least = bodies::constant(select.operand(if hides { 1 } else { 2 })).filter(counts)?;
            Self::of_test(select.operand(0), (key, row), hides, least)
        };
        behind(false).or_else(|| behind(true))
    }

    /// The mask of a test, which `hides` keys where it holds, or where it does not.
    fn of_test(test: Value<'c>, loops: (usize, usize), hides: bool, least: f64) -> Option<Self> {
        let op = test.defining_op()?;
        // A key is hidden where one of several tests hides it.
        if op.is(if hides { ops::arith::ORI } else { ops::arith::ANDI }) {
            return op.operands().into_iter().find_map(|test| Self::of_test(test, loops, hides, least));
        }
        let predicate = CmpIPredicate::of(op).filter(|_| op.is(ops::arith::CMPI))?;
        let (first, second) = (Place::of(op.operand(0))?, Place::of(op.operand(1))?);
        // As `key .. row`.
        let (predicate, key, row) = match (first.along, second.along) {
            places if places == loops => (predicate, first, second),
            (row, key) if (key, row) == loops => (turned(predicate)?, second, first),
            _ => return None,
        };
        use CmpIPredicate as P;
        let sees_own = match (predicate, hides) {
            (P::Sle | P::Ule, false) | (P::Sgt | P::Ugt, true) => true,
            (P::Slt | P::Ult, false) | (P::Sge | P::Uge, true) => false,
            _ => return None,
        };
        (key.offsets.is_empty() && key.magnitude == 0).then(|| Self {
            constant: row.constant,
            magnitude: row.magnitude,
            sees_own,
            is_unsigned: predicate.is_unsigned() || key.is_unsigned || row.is_unsigned,
            width: key.width.into_iter().chain(row.width).min(),
            offsets: row.offsets,
            least,
        })
    }

    /// Whether places of these loops and offsets, of which all are between 0 and `most`, and their sums with constants are
    /// the same numbers in all types of the mask.
    pub fn holds_places(&self, most: i64) -> bool {
        let largest = i64::MAX >> 64u32.saturating_sub(self.width.unwrap_or(64)).min(62);
        let fits = most >= 0 && most.checked_add(self.magnitude).is_some_and(|most| most <= largest);
        // No sum on the way is negative where no constant is.
        fits && (!self.is_unsigned || self.constant == self.magnitude)
    }
}

/// A loop's place, and what is added to it.
struct Place<'c> {
    along: usize,
    offsets: Vec<Value<'c>>,
    constant: i64,
    magnitude: i64,
    is_unsigned: bool,
    width: Option<u32>,
}

impl<'c> Place<'c> {
    fn of(value: Value<'c>) -> Option<Self> {
        let op = value.defining_op()?;
        match op.name() {
            ops::linalg::INDEX => {
                let along = usize::try_from(op.attr("dim")?.as_int()?).ok()?;
                Some(Self { along, offsets: vec![], constant: 0, magnitude: 0, is_unsigned: false, width: None })
            }
            ops::arith::INDEX_CAST | ops::arith::INDEX_CASTUI => {
                let place = Self::of(op.operand(0))?;
                let width = place.width.into_iter().chain(op.result(0).ty().integer_width()).min();
                let is_unsigned = place.is_unsigned || op.is(ops::arith::INDEX_CASTUI);
                Some(Self { is_unsigned, width, ..place })
            }
            ops::arith::ADDI => {
                let sides = [(0, 1), (1, 0)].into_iter();
                sides.into_iter().find_map(|(at, by)| Self::of(op.operand(at))?.plus(op, op.operand(by), 1))
            }
            ops::arith::SUBI => Self::of(op.operand(0))?.plus(op, op.operand(1), -1),
            _ => None,
        }
    }

    /// The sum with a constant, or with an index from outside of the body of `op`.
    fn plus(mut self, op: Op<'c>, by: Value<'c>, sign: i64) -> Option<Self> {
        if let Some(constant) = by.constant_int() {
            let constant = constant.checked_mul(sign)?;
            self.constant = self.constant.checked_add(constant)?;
            self.magnitude = self.magnitude.checked_add(constant.checked_abs()?)?;
            return Some(self);
        }
        let is_offset = sign == 1 && by.ty().is_index() && by.block() != op.block();
        self.offsets.push(by);
        is_offset.then_some(self)
    }
}

/// The predicate with its operands exchanged.
fn turned(predicate: CmpIPredicate) -> Option<CmpIPredicate> {
    use CmpIPredicate as P;
    Some(match predicate {
        P::Sle => P::Sge,
        P::Slt => P::Sgt,
        P::Sge => P::Sle,
        P::Sgt => P::Slt,
        P::Ule => P::Uge,
        P::Ult => P::Ugt,
        P::Uge => P::Ule,
        P::Ugt => P::Ult,
        P::Eq | P::Ne => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::CausalMask;
    use crate::{Context, Module, ops};

    /// What the mask of a body is: constant, magnitude, whether it sees its own key, whether places of 100 and 10,000 fit.
    fn mask(text: &str) -> Option<(i64, i64, bool, [bool; 2])> {
        Context::scope(|cx| {
            let source = format!(
                "#m = affine_map<(i, j) -> (i, j)>\nfunc.func @f(%of: memref<8x8xf32>, %t: index) {{\n\
                 linalg.generic {{indexing_maps = [#m], iterator_types = [\"parallel\", \"parallel\"]}} outs(%of : memref<8x8xf32>) {{\n\
                 ^bb0(%s: f32):\n%least = arith.constant -1.0e9 : f32\n%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n\
                 {text}\nlinalg.yield %r : f32\n}}\nreturn\n}}"
            );
            let module = Module::parse(cx, source.as_bytes(), "causal").expect("the text parses");
            let op = module.op().find_all(ops::linalg::GENERIC)[0];
            let mask = CausalMask::of(op.body().expect("a generic has a body"), 1, 0)?;
            assert!(mask.least == -1.0e9 || mask.least == f64::NEG_INFINITY);
            let fits = [100, 10_000].map(|most| mask.holds_places(most));
            Some((mask.constant, mask.magnitude, mask.sees_own, fits))
        })
    }

    #[test]
    fn keys_behind_the_own_place() {
        let seen = "%r = arith.select %c, %s, %least : f32";
        let hidden = "%r = arith.select %c, %least, %s : f32";
        for (test, of, expect) in [
            ("%c = arith.cmpi ule, %j, %i : index", seen, (0, 0, true, [true; 2])),
            ("%c = arith.cmpi sge, %i, %j : index", seen, (0, 0, true, [true; 2])),
            ("%c = arith.cmpi sgt, %j, %i : index", hidden, (0, 0, true, [true; 2])),
            ("%c = arith.cmpi sle, %i, %j : index", hidden, (0, 0, false, [true; 2])),
            ("%p = arith.addi %i, %t : index\n%c = arith.cmpi slt, %j, %p : index", seen, (0, 0, false, [true; 2])),
            (
                "%k = arith.constant 7 : index\n%p = arith.subi %i, %k : index\n%q = arith.addi %p, %t : index\n\
                 %c = arith.cmpi sle, %j, %q : index",
                seen,
                (-7, 7, true, [true; 2]),
            ),
            (
                "%x = arith.index_cast %i : index to i8\n%y = arith.index_cast %j : index to i8\n\
                 %c = arith.cmpi sle, %y, %x : i8",
                seen,
                (0, 0, true, [true, false]),
            ),
            (
                "%x = arith.index_cast %i : index to i16\n%y = arith.index_cast %j : index to i16\n%k = arith.constant 30000 : i16\n\
                 %p = arith.addi %x, %k : i16\n%c = arith.cmpi sle, %y, %p : i16",
                seen,
                (30_000, 30_000, true, [true, false]),
            ),
            // A place below 0 is a large unsigned number.
            (
                "%k = arith.constant -7 : index\n%p = arith.addi %i, %k : index\n%c = arith.cmpi ule, %j, %p : index",
                seen,
                (-7, 7, true, [false; 2]),
            ),
            (
                "%b = arith.cmpf olt, %s, %least : f32\n%d = arith.cmpi ule, %j, %i : index\n%c = arith.andi %b, %d : i1",
                seen,
                (0, 0, true, [true; 2]),
            ),
            (
                "%z = arith.constant 0.0 : f32\n%n = arith.constant 0xFF800000 : f32\n%c = arith.cmpi ule, %j, %i : index\n\
                 %m = arith.select %c, %z, %n : f32",
                "%r = arith.addf %s, %m : f32",
                (0, 0, true, [true; 2]),
            ),
        ] {
            assert_eq!(mask(&format!("{test}\n{of}")), Some(expect), "{test}");
        }
    }

    #[test]
    fn other_bodies_are_no_masks() {
        let seen = "%r = arith.select %c, %s, %least : f32";
        let hidden = "%r = arith.select %c, %least, %s : f32";
        for other in [
            format!("%c = arith.cmpi ule, %j, %i : index\n{hidden}"),
            format!("%c = arith.cmpi ule, %i, %j : index\n{seen}"),
            format!("%c = arith.cmpi ule, %j, %t : index\n{seen}"),
            format!("%c = arith.cmpi eq, %j, %i : index\n{seen}"),
            format!(
                "%b = arith.cmpf olt, %s, %least : f32\n%d = arith.cmpi ule, %j, %i : index\n%c = arith.ori %b, %d : i1\n{seen}"
            ),
            "%c = arith.cmpi ule, %j, %i : index\n%r = arith.select %c, %s, %s : f32".to_owned(),
            "%c = arith.cmpi ule, %j, %i : index\n%m = arith.select %c, %s, %least : f32\n%r = arith.addf %s, %m : f32"
                .to_owned(),
        ] {
            assert_eq!(mask(&other), None, "{other}");
        }
    }
}
