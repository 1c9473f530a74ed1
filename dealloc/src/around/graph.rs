//! Common ancestors in a tree.

/// A forest with parent pointers; parents are added before their children.
#[derive(Default)]
pub(crate) struct Forest {
    depth: Vec<usize>,
    /// The parent of each node, and an ancestor to jump to: common ancestors take a logarithmic number of steps.
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
                // Two jumps of equal length are combined into one.
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

    /// The number of ancestors of a node.
    pub fn depth(&self, node: usize) -> usize {
        self.depth[node]
    }

    /// The nearest common ancestor, either node included. Nodes of different trees have none: the result is one of them.
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
