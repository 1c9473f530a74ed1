//! Functions of several blocks: any graph, whose loops are bounded by a counter in memory.

use super::{Generator, Scope, Ty, list, names};
use std::collections::BTreeSet;

/// The end of a block.
#[derive(Clone, Debug)]
enum End {
    Return,
    Jump(usize),
    /// To one of two blocks, which may be the same one.
    Branch(usize, usize),
    /// Back while the counter lasts; else on.
    Loop(usize, usize),
    Switch(Vec<usize>),
}

impl End {
    fn successors(&self) -> Vec<usize> {
        match self {
            Self::Return => vec![],
            Self::Jump(to) => vec![*to],
            Self::Branch(a, b) | Self::Loop(a, b) => vec![*a, *b],
            Self::Switch(all) => all.clone(),
        }
    }
}

impl Generator<'_> {
    /// All blocks of a function; the first one sees `scope`.
    pub(super) fn graph(&mut self, scope: Scope, results: &[Ty]) {
        let ends = self.ends(self.shape.blocks);
        let arguments: Vec<Vec<Ty>> = (0..ends.len()).map(|i| if i == 0 { vec![] } else { self.types(3) }).collect();
        let dominators = dominators(&ends);
        let mut scopes: Vec<Scope> = Vec::new();
        for (block, end) in ends.iter().enumerate() {
            // The scope at the end of the immediate dominator, which comes first.
            let closest = dominators[block].iter().rev().find(|d| **d < block);
            let mut inside = closest.map_or_else(|| scope.clone(), |d| scopes[*d].clone());
            if block > 0 {
                let args: Vec<(String, Ty)> = arguments[block].iter().map(|ty| (self.name(), *ty)).collect();
                let declared: Vec<String> = args.iter().map(|(n, t)| format!("{n}: {t}")).collect();
                let list = if declared.is_empty() { String::new() } else { format!("({})", names(&declared)) };
                self.line(&format!("^b{block}{list}:"));
                inside.memrefs.extend(args);
            }
            self.body(&mut inside, self.shape.depth);
            self.end(&mut inside, end, &arguments, results);
            scopes.push(inside);
        }
    }

    /// The ends of `count` blocks. All but the first have a predecessor before them.
    fn ends(&mut self, count: usize) -> Vec<End> {
        let mut reached = BTreeSet::from([0]);
        let mut ends = Vec::new();
        for block in 0..count {
            if block + 1 == count {
                ends.push(End::Return);
                break;
            }
            let later = |g: &mut Self| block + 1 + g.rng.below((count - block - 1) as u64) as usize;
            let next = if reached.contains(&(block + 1)) { later(self) } else { block + 1 };
            let end = match self.rng.below(20) {
                0 | 1 if next != block + 1 => End::Return,
                0..=4 => End::Jump(next),
                5..=11 => {
                    let other = later(self);
                    if self.rng.below(2) == 0 { End::Branch(next, other) } else { End::Branch(other, next) }
                }
                12..=16 if block > 0 => End::Loop(1 + self.rng.below(block as u64) as usize, next),
                _ => {
                    let more = 1 + self.rng.below(3);
                    End::Switch((0..=more).map(|i| if i == 1 { next } else { later(self) }).collect())
                }
            };
            reached.extend(end.successors());
            ends.push(end);
        }
        ends
    }

    fn end(&mut self, scope: &mut Scope, end: &End, arguments: &[Vec<Ty>], results: &[Ty]) {
        let is_switch = matches!(end, End::Switch(_));
        let mut edge = |g: &mut Self, to: usize| {
            let mut values = g.picks(scope, &arguments[to]);
            // The operands of a switch cannot name results by number (`#`).
            for (value, ty) in values.iter_mut().zip(&arguments[to]).filter(|(v, _)| is_switch && v.contains('#')) {
                let name = g.name();
                g.line(&format!("{name} = arith.select %c, {value}, {value} : {ty}"));
                *value = name;
            }
            let list = list(&arguments[to]);
            if values.is_empty() { format!("^b{to}") } else { format!("^b{to}({} : {list})", names(&values)) }
        };
        match end {
            End::Return => {
                let values = self.picks(scope, results);
                self.line(&format!("return {} : {}", names(&values), list(results)));
            }
            End::Jump(to) => {
                let edge = edge(self, *to);
                self.line(&format!("cf.br {edge}"));
            }
            End::Branch(a, b) => {
                let edges = [edge(self, *a), edge(self, *b)];
                let bit = self.bit(scope);
                self.line(&format!("cf.cond_br {bit}, {}, {}", edges[0], edges[1]));
            }
            End::Loop(back, on) => {
                let edges = [edge(self, *back), edge(self, *on)];
                let (left, some, less) = (self.name(), self.name(), self.name());
                self.line(&format!("{left} = memref.load %fuel[] : memref<index>"));
                self.line(&format!("{some} = arith.cmpi sgt, {left}, %c0 : index"));
                self.line(&format!("{less} = arith.subi {left}, %c1 : index"));
                self.line(&format!("memref.store {less}, %fuel[] : memref<index>"));
                self.line(&format!("cf.cond_br {some}, {}, {}", edges[0], edges[1]));
            }
            End::Switch(all) => {
                let edges: Vec<String> = all.iter().map(|to| edge(self, *to)).collect();
                self.line("cf.switch %s : i32, [");
                for (i, edge) in edges.iter().enumerate() {
                    let case = if i == 0 { "default".to_owned() } else { (i - 1).to_string() };
                    let comma = if i + 1 < edges.len() { "," } else { "" };
                    self.line(&format!("  {case}: {edge}{comma}"));
                }
                self.line("]");
            }
        }
    }
}

/// The dominators of each block, itself included.
fn dominators(ends: &[End]) -> Vec<BTreeSet<usize>> {
    let all: BTreeSet<usize> = (0..ends.len()).collect();
    let mut found = vec![all; ends.len()];
    found[0] = BTreeSet::from([0]);
    loop {
        let before = found.clone();
        for block in 1..ends.len() {
            let sources = (0..ends.len()).filter(|b| ends[*b].successors().contains(&block));
            let common = sources.map(|b| found[b].clone()).reduce(|a, b| a.intersection(&b).copied().collect());
            found[block] = common.unwrap_or_default();
            found[block].insert(block);
        }
        if found == before {
            return found;
        }
    }
}
