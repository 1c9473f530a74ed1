//! What a search has not placed yet, above the height of what it has.

use std::ops::Range;

/// A buffer that has no offset yet. Sizes and offsets are in units of the search.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item {
    /// Its first section.
    pub(super) first: u32,
    /// Its last section.
    pub(super) last: u32,
    pub(super) size: u32,
    /// The greatest height in its sections.
    pub(super) offset: u32,
    /// What is decided: no offset below.
    pub(super) floor: u32,
    /// The lower is tried before others.
    pub(super) rank: u32,
    /// Its number among all items.
    pub(super) index: u32,
}

impl Item {
    pub(super) fn least_offset(&self) -> u32 {
        self.offset.max(self.floor)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// An interval of one height between greater ones.
pub(super) struct Valley {
    pub(super) height: u32,
    /// Positions of the items that may lie on its ground and begin first.
    pub(super) options: Vec<usize>,
}

/// Items to be placed, and the height of their sections; no other item is live there.
pub(super) struct Node {
    /// By their first section.
    pub(super) items: Vec<Item>,
    pub(super) heights: Vec<u32>,
    /// The section of the first height.
    pub(super) low: u32,
}

impl Node {
    /// Of each part, the end of its items: no item of another part is live in its sections.
    pub(super) fn part_ends(&self) -> Vec<usize> {
        let mut ends = vec![];
        let mut reach = self.items[0].last;
        for (i, item) in self.items.iter().enumerate() {
            if item.first > reach {
                ends.push(i);
            }
            reach = reach.max(item.last);
        }
        ends.push(self.items.len());
        ends
    }

    /// The first and the last section of a part.
    pub(super) fn sections_of(&self, part: Range<usize>) -> (usize, usize) {
        let last = self.items[part.clone()].iter().map(|item| item.last).max().unwrap_or(0);
        (self.items[part.start].first as usize, last as usize)
    }

    pub(super) fn part(&self, part: Range<usize>) -> Self {
        let (first, last) = self.sections_of(part.clone());
        let low = self.low as usize;
        let heights = self.heights[first - low..=last - low].to_vec();
        Self { items: self.items[part].to_vec(), heights, low: first as u32 }
    }

    /// All but the chosen item, which lies as low as it can.
    pub(super) fn with(&self, chosen: Item) -> Self {
        let top = chosen.offset + chosen.size;
        let others = self.items.iter().filter(|item| item.index != chosen.index);
        let raised = |item: &Item| {
            let offset = if item.overlaps(&chosen) { item.offset.max(top) } else { item.offset };
            Item { offset, ..*item }
        };
        let mut heights = self.heights.clone();
        heights[(chosen.first - self.low) as usize..=(chosen.last - self.low) as usize].fill(top);
        Self { items: others.map(raised).collect(), heights, low: self.low }
    }

    /// None of the options lies at `height`: each has to lie on an item that is not placed yet.
    /// False if one could be let down to `height` whatever comes, so that another node has this placement.
    pub(super) fn without(&mut self, options: &[usize], height: u32) -> bool {
        options.iter().for_each(|option| self.items[*option].floor = height + 1);
        for option in options {
            let item = self.items[*option];
            let (mut bottom, mut top) = (u32::MAX, u32::MAX);
            for other in self.items.iter().filter(|other| other.index != item.index && other.overlaps(&item)) {
                bottom = bottom.min(other.least_offset());
                top = top.min(other.least_offset() + other.size);
            }
            if bottom >= height + item.size {
                return false;
            }
            self.items[*option].floor = top;
        }
        true
    }

    /// The valley with the fewest options; of several, the one with the fullest section (`tops`: how high the items of
    /// each section are at least). None if no item may lie where it could.
    ///
    /// Valleys without options are filled up to their lower side: no item may lie on their ground, and the lowest of
    /// those that are live within would have to.
    pub(super) fn narrowest(&mut self, tops: &[i32]) -> Option<Valley> {
        let mut best: Option<(usize, i32, Valley)> = None;
        let mut start = 0;
        while start < self.heights.len() {
            let height = self.heights[start];
            let same = self.heights[start..].iter().take_while(|other| **other == height).count();
            let valley = start..start + same;
            start = valley.end;
            // Nothing reaches over the ends of a node: they are higher than all.
            let left = valley.start.checked_sub(1).map_or(u32::MAX, |before| self.heights[before]);
            let right = self.heights.get(valley.end).copied().unwrap_or(u32::MAX);
            if left < height || right < height {
                continue;
            }
            let sections = self.low + valley.start as u32..self.low + valley.end as u32;
            let options = self.options(&sections, height);
            if options.is_empty() {
                let side = left.min(right);
                if side == u32::MAX {
                    return None;
                }
                self.fill(valley, side);
                // It may be part of a valley that began before.
                (start, best) = (0, None);
                continue;
            }
            let top = tops[sections.start as usize..sections.end as usize].iter().copied().max().unwrap_or(0);
            let key = (options.len(), i32::MAX - top);
            if best.as_ref().is_none_or(|(count, room, _)| key < (*count, *room)) {
                best = Some((key.0, key.1, Valley { height, options }));
            }
        }
        best.map(|(_, _, valley)| valley)
    }

    /// The items that may lie on the ground of a valley and begin first.
    fn options(&self, sections: &Range<u32>, height: u32) -> Vec<usize> {
        let from = self.items.partition_point(|item| item.first < sections.start);
        let within = self.items.iter().enumerate().skip(from).take_while(|(_, item)| item.first < sections.end);
        let mut options = within.filter(|(_, item)| item.last < sections.end && item.floor <= height).peekable();
        let first = options.peek().map(|(_, item)| item.first);
        options.take_while(|(_, item)| Some(item.first) == first).map(|(i, _)| i).collect()
    }

    fn fill(&mut self, valley: Range<usize>, height: u32) {
        let (first, end) = (self.low + valley.start as u32, self.low + valley.end as u32);
        self.heights[valley].fill(height);
        for item in self.items.iter_mut().filter(|item| item.first < end && first <= item.last) {
            item.offset = item.offset.max(height);
        }
    }

    /// A hash of all that decides whether the node is possible.
    pub(super) fn hash(&self) -> u64 {
        let mut hash = u64::from(self.low);
        let mut add = |value: u64| hash = (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
        for item in &self.items {
            add(u64::from(item.index) << 32 | u64::from(item.least_offset()));
        }
        self.heights.iter().for_each(|height| add(u64::from(*height)));
        hash
    }
}
