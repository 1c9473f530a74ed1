//! A forest with constant-time descendant tests (Euler numbers) and logarithmic lowest common ancestors.
//!
//! Nodes are added parents first. Node 0 is the root.
//! Each node keeps a jump pointer as in skew-binary lists, so that climbing to a depth takes O(log n).

/// A node of a [`Forest`].
pub(crate) type Node = u32;

/// The root.
pub(crate) const ROOT: Node = 0;

#[derive(Clone, Debug)]
pub(crate) struct Forest {
    parents: Vec<Node>,
    depths: Vec<u32>,
    jumps: Vec<Node>,
}

/// The interval of Euler numbers of a node and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub first: u32,
    pub last: u32,
    /// Larger the deeper the node is; see [`slice_depth`].
    pub depth: u32,
}

impl Range {
    pub const fn contains(self, number: u32) -> bool {
        self.first <= number && number <= self.last
    }
}

impl Forest {
    pub fn new() -> Self {
        Self { parents: vec![ROOT], depths: vec![0], jumps: vec![ROOT] }
    }

    pub fn add(&mut self, parent: Node) -> Node {
        let node = u32::try_from(self.parents.len()).unwrap_or(u32::MAX);
        let jump = self.jumps[parent as usize];
        let depth = |node: Node| self.depths[node as usize];
        let twice = self.jumps[jump as usize];
        // Two jumps of equal length behind the parent are combined into one.
        let even = depth(parent) - depth(jump) == depth(jump) - depth(twice);
        self.jumps.push(if even { twice } else { parent });
        self.depths.push(depth(parent) + 1);
        self.parents.push(parent);
        node
    }

    /// The parent of a node.
    pub fn parent(&self, node: Node) -> Node {
        self.parents[node as usize]
    }

    /// The number of ancestors of a node.
    pub fn depth(&self, node: Node) -> u32 {
        self.depths[node as usize]
    }

    pub fn common_ancestor(&self, a: Node, b: Node) -> Node {
        let depth = |node: Node| self.depths[node as usize];
        let (mut a, mut b) = if depth(a) >= depth(b) { (a, b) } else { (b, a) };
        while depth(a) > depth(b) {
            let jump = self.jumps[a as usize];
            a = if depth(jump) >= depth(b) { jump } else { self.parents[a as usize] };
        }
        while a != b {
            let (jump_a, jump_b) = (self.jumps[a as usize], self.jumps[b as usize]);
            (a, b) =
                if jump_a == jump_b { (self.parents[a as usize], self.parents[b as usize]) } else { (jump_a, jump_b) };
        }
        a
    }

    /// Euler numbers of all nodes.
    pub fn ranges(&self) -> Vec<Range> {
        // Children come after parents, so sizes add up backwards and numbers are dealt out forwards.
        let count = self.parents.len();
        let mut sizes = vec![1_u32; count];
        for node in (1..count).rev() {
            sizes[self.parents[node] as usize] += sizes[node];
        }
        let mut next = vec![1_u32; count];
        let mut ranges = vec![Range { first: 0, last: sizes[0] - 1, depth: 0 }; count];
        for node in 1..count {
            let parent = self.parents[node] as usize;
            let first = next[parent];
            next[parent] += sizes[node];
            ranges[node] = Range { first, last: first + sizes[node] - 1, depth: slice_depth(self.depths[node]) };
            next[node] = first + 1;
        }
        ranges
    }
}

/// The depth of a slice, from that of its node. A whole value is one deeper.
pub(crate) const fn slice_depth(depth: u32) -> u32 {
    2 * depth
}
