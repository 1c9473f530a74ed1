//! The new tensors in which a tensor is computed: backwards through operations that keep the buffer, up to a `tensor.empty`, or to
//! an operand that is copied, contents and all.
//!
//! Each value is visited once, however many insertions it flows into: its answer is cached, and shared if
//! it has one source.

use monopour_ir::ops;
use std::collections::HashMap;
use std::rc::Rc;

use monopour_analysis::facts::{Relation, Source};
use monopour_analysis::index::{OperandId, ValueId};
use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis};
use monopour_ir::Op;

use crate::collect::Collected;

/// A use of a new tensor, and the reshapes between it and the queried value, the last one first.
#[derive(Clone)]
pub(crate) struct Origin<'c> {
    pub(crate) operand: OperandId,
    /// The new tensor is a copy of the operand.
    pub(crate) is_copied: bool,
    pub(crate) reshapes: Option<Rc<Reshapes<'c>>>,
}

/// A list of reshapes that shares its tail.
pub(crate) struct Reshapes<'c> {
    pub(crate) op: Op<'c>,
    pub(crate) before: Option<Rc<Reshapes<'c>>>,
}

type Origins<'c> = Rc<[Origin<'c>]>;

/// The answers for one function.
pub(crate) struct EmptyOrigins<'c, 'a> {
    collected: &'a Collected<'c>,
    decisions: &'a Decisions,
    ends: Ends,
    known: HashMap<ValueId, Known<'c>>,
}

/// Where the paths may end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Anywhere: those that end in a new tensor count.
    Some,
    /// Each in a `tensor.empty`, without a copy before; reshapes are followed.
    Empty,
    /// As [`Ends::Empty`], or in an operand that is copied.
    EmptyOrCopied,
}

/// What becomes of a path at a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    GoesOn,
    IsCopied,
    IsOut,
}

enum Known<'c> {
    /// Its sources are being visited: a value that is its own source.
    Started,
    /// `None` if a path ends elsewhere, and none may.
    Done(Option<Origins<'c>>),
}

impl<'c, 'a> EmptyOrigins<'c, 'a> {
    pub(crate) fn new(collected: &'a Collected<'c>, decisions: &'a Decisions, ends: Ends) -> Self {
        Self { collected, decisions, ends, known: HashMap::new() }
    }

    /// The uses of new tensors in which `value` is computed; none for a new tensor itself.
    pub(crate) fn of(&mut self, value: ValueId) -> Option<Origins<'c>> {
        let mut stack = vec![value];
        while let Some(at) = stack.last().copied() {
            match self.known.get(&at) {
                Some(Known::Done(_)) => {
                    stack.pop();
                }
                Some(Known::Started) => {
                    stack.pop();
                    let found = self.combine(at);
                    self.known.insert(at, Known::Done(found));
                }
                None => {
                    self.known.insert(at, Known::Started);
                    for source in self.collected.facts.sources(at).iter().filter(|s| self.step(s) == Step::GoesOn) {
                        let next = self.collected.facts.operands()[source.operand].value;
                        if !self.is_empty(next) && !self.known.contains_key(&next) {
                            stack.push(next);
                        }
                    }
                }
            }
        }
        match self.known.get(&value) {
            Some(Known::Done(found)) => found.clone(),
            _ => None,
        }
    }

    fn combine(&self, value: ValueId) -> Option<Origins<'c>> {
        let sources = self.collected.facts.sources(value);
        let mut found: Vec<Origin> = Vec::new();
        let mut shared = None;
        for source in sources {
            let next = self.collected.facts.operands()[source.operand].value;
            let origin = |is_copied| Some(Rc::from([Origin { operand: source.operand, is_copied, reshapes: None }]));
            let origins = match (self.step(source), self.known.get(&next)) {
                (Step::IsCopied, _) => origin(true),
                (Step::GoesOn, _) if self.is_empty(next) => origin(false),
                (Step::GoesOn, Some(Known::Done(origins))) => origins.clone(),
                _ => None,
            };
            match origins {
                Some(origins) if sources.len() == 1 && !source.retypes => shared = Some(origins),
                Some(origins) => found.extend(origins.iter().map(|o| self.through(source, o))),
                None if self.ends != Ends::Some => return None,
                None => {}
            }
        }
        if self.ends != Ends::Some && sources.is_empty() {
            return None;
        }
        shared.or_else(|| Some(found.into()))
    }

    fn through(&self, source: &Source, origin: &Origin<'c>) -> Origin<'c> {
        let op = self.collected.operands[source.operand].op;
        let reshapes = if source.retypes {
            Some(Rc::new(Reshapes { op, before: origin.reshapes.clone() }))
        } else {
            origin.reshapes.clone()
        };
        Origin { reshapes, ..*origin }
    }

    fn is_empty(&self, value: ValueId) -> bool {
        self.collected.values[value].defining_op().is_some_and(|op| op.is(ops::tensor::EMPTY))
    }

    fn step(&self, source: &Source) -> Step {
        let (used, is_certain) = (self.collected.operands[source.operand], self.ends != Ends::Some);
        let reshape = [ops::tensor::EXPAND_SHAPE, ops::tensor::COLLAPSE_SHAPE].contains(&used.op.name());
        if source.retypes && !(is_certain && reshape) {
            return Step::IsOut;
        }
        let are_equivalent = match source.relation {
            Relation::Equivalent => true,
            Relation::Unknown => false,
            Relation::EquivalentIf { first, second } => {
                [Some(first), second].into_iter().flatten().all(|(a, b)| self.decisions.are_equivalent(a, b))
            }
        };
        match self.decisions.copy(source.operand).filter(|_| is_certain) {
            _ if !are_equivalent => Step::IsOut,
            None => Step::GoesOn,
            Some(copy) if copy.result.is_some() => Step::IsOut,
            // Its buffer is to be replaced.
            Some(copy) if !copy.contents => Step::GoesOn,
            Some(_) if self.ends == Ends::EmptyOrCopied && !source.retypes => Step::IsCopied,
            Some(_) => Step::IsOut,
        }
    }
}
