//! Parts of a loop: vectors of several widths, and the rest.

use super::emit::{Emit, Position};
use super::nest::Loop;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{Type, Value, ops};

/// A part of a loop: iterations `from .. to`, `step` at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'c> {
    pub(super) from: Bound<'c>,
    pub(super) to: Bound<'c>,
    pub(super) step: i64,
}

impl Segment<'_> {
    /// Number of steps, where it is known.
    pub(super) fn steps(&self) -> i64 {
        match (self.from, self.to) {
            (Bound::Static(from), Bound::Static(to)) => (to - from) / self.step,
            _ => 0,
        }
    }
}

/// A constant, or a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound<'c> {
    Static(i64),
    Dynamic(Value<'c>),
}

/// As much as possible in steps of the first size, of the rest as much as possible in steps of the second, and so on.
fn static_segments<'c>(extent: i64, sizes: &[i64]) -> Vec<Segment<'c>> {
    let (mut from, mut out) = (0, vec![]);
    for size in sizes {
        let to = from + (extent - from) / size * size;
        if to > from {
            out.push(Segment { from: Bound::Static(from), to: Bound::Static(to), step: *size });
            from = to;
        }
    }
    out
}

/// As [`static_segments`], with one step that overlaps the one before it for a rest of several short ones.
fn overlapping_segments<'c>(extent: i64, sizes: &[i64], least: i64) -> Vec<Segment<'c>> {
    // Steps down to `size`, then the shortest step that covers the rest.
    let with_overlap = |size: &i64| {
        let longer: Vec<i64> = sizes.iter().copied().filter(|s| s >= size).collect();
        let mut segments = static_segments(extent, &longer);
        let rest = extent - segments.iter().map(|s| s.steps() * s.step).sum::<i64>();
        let step = sizes.iter().copied().filter(|s| *s >= rest).min().filter(|step| rest > 0 && *step <= extent)?;
        segments.push(Segment { from: Bound::Static(extent - step), to: Bound::Static(extent), step });
        Some(segments)
    };
    let cost = |segments: &Vec<Segment>| {
        let steps = segments.iter().map(Segment::steps).sum::<i64>();
        (segments.iter().map(|s| s.steps() * s.step.max(least)).sum::<i64>(), steps)
    };
    let all = sizes.iter().filter_map(with_overlap).chain([static_segments(extent, sizes)]);
    all.min_by_key(cost).unwrap_or_default()
}

impl<'c> Emit<'c> {
    /// Splits a loop into segments: as much as possible in steps of `sizes[0]`, of the rest as much as possible in steps of
    /// `sizes[1]`, and so on; the last size is 1.
    pub(super) fn segments(&mut self, l: &Loop<'c>, sizes: &[i64]) -> Vec<Segment<'c>> {
        match l.extent {
            Some(extent) => static_segments(extent, sizes),
            None => self.dynamic_segments(l, sizes),
        }
    }

    /// As [`Self::segments`], of a loop whose iterations may run twice: the last step may begin before the end of the one
    /// before it. Steps shorter than `least` cost as much as one of it.
    pub(super) fn segments_twice(&mut self, l: &Loop<'c>, sizes: &[i64], least: i64) -> Vec<Segment<'c>> {
        match l.extent {
            Some(extent) => overlapping_segments(extent, sizes, least),
            None => self.dynamic_segments(l, sizes),
        }
    }

    fn dynamic_segments(&mut self, l: &Loop<'c>, sizes: &[i64]) -> Vec<Segment<'c>> {
        let (extent, mut from, mut out) = (self.iterations(l), Bound::Static(0), vec![]);
        for size in sizes {
            let left = match from {
                Bound::Static(_) => extent,
                Bound::Dynamic(from) => self.op(ops::arith::SUBI, &[extent, from], extent.ty()),
            };
            let rest = self.op_with(ops::arith::REMUI, left, *size);
            let to = Bound::Dynamic(self.op(ops::arith::SUBI, &[extent, rest], extent.ty()));
            out.push(Segment { from, to, step: *size });
            from = to;
        }
        out
    }

    /// Segments of a loop of unknown extent whose iterations may run twice: as [`Self::segments`], but a rest that is longer than
    /// the next size is one step more, which begins so much before the end (the second value) that it fits.
    pub(super) fn segments_to_end(&mut self, l: &Loop<'c>, sizes: &[i64]) -> (Vec<Segment<'c>>, Value<'c>) {
        let (extent, mut from, index) = (self.iterations(l), self.index(0), Type::index(self.cx));
        let mut segments = vec![];
        for (size, next) in sizes.iter().zip(sizes[1..].iter().chain([&0])) {
            let (step, next) = (self.index(*size), self.index(*next));
            let left = self.op(ops::arith::SUBI, &[extent, from], index);
            let rest = self.op(ops::arith::REMUI, &[left, step], index);
            let whole = self.op(ops::arith::SUBI, &[extent, rest], index);
            let more = [(rest, CmpIPredicate::Ugt, next), (extent, CmpIPredicate::Uge, step)];
            let [long, fits] = more.map(|(a, predicate, b)| self.compare_indices(predicate, a, b));
            let more = self.op(ops::arith::ANDI, &[long, fits], long.ty());
            let to = self.op(ops::arith::SELECT, &[more, extent, whole], index);
            segments.push(Segment { from: Bound::Dynamic(from), to: Bound::Dynamic(to), step: *size });
            from = to;
        }
        (segments, extent)
    }

    /// A position, or so much before `end` that a step fits.
    pub(super) fn at_most_before(&mut self, at: Position<'c>, end: Value<'c>, step: i64) -> Position<'c> {
        let (at, step) = (self.position(at), self.index(step));
        let last = self.op(ops::arith::SUBI, &[end, step], end.ty());
        Position { base: Some(self.op(ops::arith::MINUI, &[at, last], end.ty())), offset: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, overlapping_segments, static_segments};

    #[test]
    fn segments_cover_each_iteration_once() {
        for extent in 0..200 {
            for sizes in [&[64, 16, 8, 4, 2, 1][..], &[14, 1], &[1]] {
                let mut next = 0;
                for s in static_segments(extent, sizes) {
                    let (Bound::Static(from), Bound::Static(to)) = (s.from, s.to) else { panic!("static") };
                    assert_eq!((from, (to - from) % s.step), (next, 0));
                    next = to;
                }
                assert_eq!(next, extent);
            }
        }
    }

    #[test]
    fn a_rest_is_one_step_where_that_costs_less() {
        let steps = |extent| {
            let segments = overlapping_segments(extent, &[32, 16, 8, 4, 2, 1], 8);
            let mut covered = 0;
            let mut steps = vec![];
            for s in segments {
                let (Bound::Static(from), Bound::Static(to)) = (s.from, s.to) else { panic!("static") };
                assert!(from <= covered && to > covered && to <= extent && (to - from) % s.step == 0);
                covered = to;
                steps.extend((from..to).step_by(s.step as usize).map(|at| (at, s.step)));
            }
            assert_eq!(covered, extent);
            steps
        };
        assert_eq!(steps(55), [(0, 32), (32, 16), (47, 8)]);
        assert_eq!(steps(62), [(0, 32), (30, 32)]);
        assert_eq!(steps(56), [(0, 32), (32, 16), (48, 8)]);
        assert_eq!(steps(27), [(0, 16), (11, 16)]);
        assert_eq!(steps(14), [(0, 8), (6, 8)]);
        assert_eq!(steps(7), [(0, 4), (3, 4)]);
        assert_eq!(steps(33), [(0, 32), (32, 1)]);
        assert_eq!(steps(3), [(0, 2), (2, 1)]);
        assert_eq!(steps(1), [(0, 1)]);
        (1..200).for_each(|extent| _ = steps(extent));
    }
}
