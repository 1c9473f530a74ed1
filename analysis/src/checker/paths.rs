//! The paths of the checker's executions: at each choice, the one taken least so far.
//!
//! Random paths miss rare ones: of wrong decisions that change a value, two fifths were missed by a
//! dozen draws. So choices are counted over all executions, each together with the one before it (the state that a branch
//! leaves shows in the next one), and the rarest is taken; now and then a random one, so that longer patterns come up as well.

use std::collections::HashMap;

use crate::index::{BlockId, OpId, RegionId, ValueId};
use crate::random::Random;

/// How often a random choice is taken instead of the rarest: for patterns of more than two choices.
const BLIND_PERCENT: u32 = 35;

/// A point with several ways to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Point {
    /// The next block.
    After(BlockId),
    /// The region of a branch that runs.
    Branch(OpId),
    /// Whether a loop runs at all.
    Enter(OpId),
    /// Whether a loop ends after this region.
    Leave(RegionId),
    /// The region after this one.
    Follow(RegionId),
    /// The operand whose buffer a result is.
    Source(ValueId),
}

/// A point, and the way taken there.
type Choice = (Point, u32);

/// Counts of the choices in the executions so far.
#[derive(Debug)]
pub(super) struct Paths {
    random: Random,
    taken: HashMap<(Option<Choice>, Choice), u32>,
    last: Option<Choice>,
    news: bool,
}

impl Paths {
    pub fn new() -> Self {
        Self { random: Random::new(0), taken: HashMap::new(), last: None, news: false }
    }

    /// Begins an execution.
    pub fn begin(&mut self) {
        self.last = None;
        self.news = false;
    }

    /// Whether this execution made two consecutive choices that none made before.
    pub const fn found_news(&self) -> bool {
        self.news
    }

    /// One of `count` ways; 0 where there is no choice.
    pub fn choose(&mut self, point: Point, count: usize) -> usize {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        if count < 2 {
            return 0;
        }
        let first = self.random.below(count);
        let rotated = (0..count).map(|way| (way + first) % count);
        let way = match self.random.percent(BLIND_PERCENT) {
            true => first,
            false => rotated.min_by_key(|&way| self.taken_so_far((point, way))).unwrap_or(first),
        };
        let times = self.taken.entry((self.last, (point, way))).or_default();
        *times += 1;
        self.news |= *times == 1;
        self.last = Some((point, way));
        way as usize
    }

    /// Any number below `end`.
    pub fn next_number(&mut self, end: u32) -> u32 {
        self.random.below(end)
    }

    /// Yes or no.
    pub fn decide(&mut self, point: Point) -> bool {
        self.choose(point, 2) == 1
    }

    fn taken_so_far(&self, choice: Choice) -> u32 {
        self.taken.get(&(self.last, choice)).copied().unwrap_or(0)
    }
}
