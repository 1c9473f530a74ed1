//! The blocks of a region: dominators first, and their terminators.

use std::collections::HashSet;

use monopour_ir::{Block, Op, Region};

/// The blocks of a region, dominators first; unreachable blocks come last.
pub(crate) fn dominators_first<'c>(region: Region<'c>) -> Vec<Block<'c>> {
    let blocks = region.blocks();
    if blocks.len() < 2 {
        return blocks;
    }
    let mut seen = HashSet::with_capacity(blocks.len());
    let mut order = Vec::with_capacity(blocks.len());
    for root in blocks {
        if !seen.insert(root) {
            continue;
        }
        // A reverse post-order on an explicit stack: a chain of blocks may be as long as the input.
        let mut left = Vec::new();
        let mut stack = vec![(root, root.successors())];
        while let Some((block, successors)) = stack.last_mut() {
            match successors.pop() {
                Some(next) if seen.insert(next) => {
                    let successors = next.successors();
                    stack.push((next, successors));
                }
                Some(_) => {}
                None => {
                    left.push(*block);
                    stack.pop();
                }
            }
        }
        order.extend(left.into_iter().rev());
    }
    order
}

/// The terminators of a region's blocks.
pub(crate) fn terminators<'c>(region: Region<'c>) -> impl Iterator<Item = Op<'c>> {
    region.blocks().into_iter().filter_map(Block::terminator)
}
