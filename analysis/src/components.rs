//! Strongly connected components of a directed graph, by Tarjan's algorithm (1972), without recursion.

/// The components of a graph on `0..len`: all successors of a component come before it, and the nodes of each are in the
/// order of the search.
///
/// `next`: the successor of a node by position, none behind the last. Visits each node and each edge once.
pub fn components(len: usize, next: impl Fn(usize, usize) -> Option<usize>) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut found = Vec::new();
    let (mut number, mut low) = (vec![NEW; len], vec![0; len]);
    let (mut open, mut is_open) = (Vec::new(), vec![false; len]);
    let mut count = 0;
    for root in 0..len {
        if number[root] != NEW {
            continue;
        }
        // Each entry: a node, and the number of its successors visited so far.
        let mut path = vec![(root, 0)];
        while let Some((node, looked)) = path.last_mut() {
            let node = *node;
            if *looked == 0 {
                (number[node], low[node]) = (count, count);
                count += 1;
                open.push(node);
                is_open[node] = true;
            }
            if let Some(successor) = next(node, *looked) {
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

#[cfg(test)]
mod tests {
    use super::components;

    fn sorted(next: &[&[usize]]) -> Vec<Vec<usize>> {
        let mut found = components(next.len(), |node, at| next[node].get(at).copied());
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
        assert_eq!(components(count, |node, at| Some(node + 1).filter(|n| at == 0 && *n < count)).len(), count);
    }
}
