//! Which way an execution of the checker goes: where it went least so far.
//!
//! Paths drawn blindly miss what shows on few of them: of wrong decisions that change a value, two fifths were missed by a
//! dozen draws. So choices are counted over all executions, each together with the one before it (what a branch leaves
//! behind shows in the next one), and the rarest is taken; now and then any, so that longer patterns come up as well.

use std::collections::HashMap;

use crate::index::{BlockId, OpId, RegionId, ValueId};
use crate::random::Random;

/// How often any choice is taken, not the rarest: for patterns of more than two choices.
const BLIND_PERCENT: u32 = 35;

/// A place where an execution may go on in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Point {
    /// Which block follows.
    After(BlockId),
    /// Which region of a branch runs.
    Branch(OpId),
    /// Whether a loop runs at all.
    Enter(OpId),
    /// Whether a loop ends after this region.
    Leave(RegionId),
    /// Which region follows this one.
    Follow(RegionId),
    /// Which operand's buffer a result is.
    Source(ValueId),
}

/// A point, and which way was taken there.
type Choice = (Point, u32);

/// What was chosen in the executions so far.
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

    /// Whether this execution made two choices in a row that none made before.
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

    /// Yes or no.
    pub fn decide(&mut self, point: Point) -> bool {
        self.choose(point, 2) == 1
    }

    fn taken_so_far(&self, choice: Choice) -> u32 {
        self.taken.get(&(self.last, choice)).copied().unwrap_or(0)
    }
}
