//! Directed graphs on numbers: strongly connected components, and common ancestors in a tree.

/// The strongly connected components of a graph, those that are reached first: all successors of a component come before it.
///
/// `next`: successors of each node. Visits each node and each edge once.
pub(crate) fn components(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut found = Vec::new();
    let (mut number, mut low) = (vec![NEW; next.len()], vec![0; next.len()]);
    let (mut open, mut is_open) = (Vec::new(), vec![false; next.len()]);
    let mut count = 0;
    for root in 0..next.len() {
        if number[root] != NEW {
            continue;
        }
        // Each entry: a node, and how many of its successors were looked at.
        let mut path = vec![(root, 0)];
        while let Some((node, looked)) = path.last_mut() {
            let node = *node;
            if *looked == 0 {
                (number[node], low[node]) = (count, count);
                count += 1;
                open.push(node);
                is_open[node] = true;
            }
            if let Some(&successor) = next[node].get(*looked) {
                *looked += 1;
                if number[successor] == NEW {
                    path.push((successor, 0));
                } else if is_open[successor] {
                    low[node] = low[node].min(number[successor]);
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
                low[*before] = low[*before].min(low[node]);
            }
            if low[node] == number[node] {
                let from = open.iter().rposition(|n| *n == node).expect("a node is open until its component is found");
                let members = open.split_off(from);
                members.iter().for_each(|n| is_open[*n] = false);
                found.push(members);
            }
        }
    }
    found
}

/// A forest whose nodes know their parents; parents are added before their children.
#[derive(Default)]
pub(crate) struct Forest {
    depth: Vec<usize>,
    /// For each node its ancestor, and one further up that is found by jumps: common ancestors take a logarithm of steps.
    parent: Vec<usize>,
    jump: Vec<usize>,
}

impl Forest {
    /// Adds a node below `parent`, or a root.
    pub fn add(&mut self, parent: Option<usize>) -> usize {
        let node = self.depth.len();
        let (depth, parent, jump) = match parent {
            None => (0, node, node),
            Some(p) => {
                // Two jumps of one length make one twice as long.
                let (near, far) = (self.jump[p], self.jump[self.jump[p]]);
                let equal = self.depth[p] - self.depth[near] == self.depth[near] - self.depth[far];
                (self.depth[p] + 1, p, if equal { far } else { p })
            }
        };
        self.depth.push(depth);
        self.parent.push(parent);
        self.jump.push(jump);
        node
    }

    /// How many ancestors a node has.
    pub fn depth(&self, node: usize) -> usize {
        self.depth[node]
    }

    /// The nearest node that is above both, or one of them. Roots of other trees have none in common: one of them is the answer.
    pub fn common_ancestor(&self, a: usize, b: usize) -> usize {
        let (mut a, mut b) = if self.depth[a] < self.depth[b] { (b, a) } else { (a, b) };
        while self.depth[a] > self.depth[b] {
            a = if self.depth[self.jump[a]] >= self.depth[b] { self.jump[a] } else { self.parent[a] };
        }
        while a != b && self.depth[a] > 0 {
            let far = self.jump[a] != self.jump[b];
            (a, b) = if far { (self.jump[a], self.jump[b]) } else { (self.parent[a], self.parent[b]) };
        }
        a
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(next: &[&[usize]]) -> Vec<Vec<usize>> {
        let next: Vec<Vec<usize>> = next.iter().map(|n| n.to_vec()).collect();
        let mut found = components(&next);
        found.iter_mut().for_each(|c| c.sort_unstable());
        found
    }

    #[test]
    fn successors_come_first() {
        assert_eq!(sorted(&[&[1], &[2], &[1, 3], &[]]), [vec![3], vec![1, 2], vec![0]]);
        assert_eq!(sorted(&[&[0], &[0]]), [vec![0], vec![1]]);
        assert_eq!(sorted(&[&[1, 2], &[3], &[3], &[0]]), [vec![0, 1, 2, 3]]);
    }

    #[test]
    fn a_long_path_needs_no_stack() {
        let count = 200_000;
        let next: Vec<Vec<usize>> = (0..count).map(|n| if n + 1 < count { vec![n + 1] } else { vec![] }).collect();
        assert_eq!(components(&next).len(), count);
    }

    #[test]
    fn common_ancestors() {
        let mut forest = Forest::default();
        let root = forest.add(None);
        let mut left = vec![root];
        let mut right = vec![root];
        for _ in 0..100 {
            left.push(forest.add(left.last().copied()));
            right.push(forest.add(right.last().copied()));
        }
        for (i, j) in [(100, 100), (3, 77), (1, 1), (0, 9)] {
            assert_eq!(forest.common_ancestor(left[i], right[j]), root);
            assert_eq!(forest.common_ancestor(left[i], left[j]), left[i.min(j)]);
        }
        let twig = forest.add(Some(left[40]));
        assert_eq!(forest.common_ancestor(twig, left[90]), left[40]);
        assert_eq!(forest.depth(twig), 41);
    }
}
