//! A dispatch as data: its ops with their roles, and what they compute together.

use crate::{linalg, products, rows};
use monopour_contract::{KernelClass, attributes};
use monopour_ir::ops;
use monopour_ir::{Module, Op, Value, WalkOrder};
use std::collections::BTreeMap;

/// The role of an op in its dispatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The last op; the grid runs over its loops.
    Root,
    /// The reduction whose result the root overwrites.
    Producer,
    /// A fill that another op of the dispatch accumulates on.
    Init,
    /// An op of a row group or an attention before its root.
    Member,
    /// The product of queries and keys in an attention.
    Scores,
}

impl Role {
    /// The value of `monopour.role`.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Root => "root",
            Role::Producer => "producer",
            Role::Init => "init",
            Role::Member => "member",
            Role::Scores => "scores",
        }
    }
    fn parse(text: &str) -> Option<Self> {
        [Role::Root, Role::Producer, Role::Init, Role::Member, Role::Scores].into_iter().find(|r| r.as_str() == text)
    }
}

/// The ops of one dispatch.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch<'c> {
    /// Its number, in program order.
    pub number: i64,
    /// The last op.
    pub root: Op<'c>,
    /// All ops in program order, the root last.
    pub ops: Vec<(Op<'c>, Role)>,
}

impl<'c> Dispatch<'c> {
    /// The first op of a role.
    pub fn find(&self, role: Role) -> Option<Op<'c>> {
        self.ops.iter().find(|(_, r)| *r == role).map(|(op, _)| *op)
    }
    /// The reduction that the root reads and overwrites, where that is another op.
    pub fn producer(&self) -> Option<Op<'c>> {
        self.find(Role::Producer)
    }
    /// The main op: the producer, else the root.
    pub fn main(&self) -> Op<'c> {
        self.producer().unwrap_or(self.root)
    }
    /// The contraction of the dispatch.
    pub fn contraction(&self) -> Option<Op<'c>> {
        Some(self.main()).filter(|op| products::contraction_loops(*op).is_some())
    }
    /// Number of leading loops that the ops of a row group share.
    pub fn row_loops(&self) -> Option<usize> {
        let grouped = self.producer().is_none() && self.contraction().is_none();
        if grouped { self.ops.iter().find_map(|(op, _)| rows::reduced_rows(*op)) } else { None }
    }
    /// Extents of the loops beyond the rows, of the first op that has any.
    pub fn inner_extents(&self) -> Vec<i64> {
        let rows = self.row_loops().unwrap_or(0);
        let inner = self.ops.iter().filter_map(|(op, _)| {
            let extents = linalg::loop_extents(*op)?;
            (op.is(ops::linalg::GENERIC) && extents.len() > rows).then(|| extents[rows..].to_vec())
        });
        inner.into_iter().next().unwrap_or_default()
    }
    /// The values that are used outside of the dispatch.
    pub fn outputs(&self) -> Vec<Value<'c>> {
        let inside = |op: Op<'c>| self.ops.iter().any(|(own, _)| *own == op);
        let all = self.ops.iter().flat_map(|(op, _)| op.results());
        let used: Vec<Value> = all.filter(|v| v.uses().iter().any(|u| !inside(u.op))).collect();
        // A dispatch that nothing reads still has its root's results.
        if used.is_empty() { self.root.results() } else { used }
    }
    /// Attention, or the class of the main op: contraction, convolution, row group, elementwise, else generic.
    pub fn class(&self) -> KernelClass {
        let main = self.main();
        if self.find(Role::Scores).is_some() {
            KernelClass::Attention
        } else if products::contraction_loops(main).is_some() {
            KernelClass::Contraction
        } else if products::convolution_loops(main).is_some() {
            KernelClass::Convolution
        } else if self.row_loops().is_some() {
            KernelClass::Row
        } else if main.is(ops::linalg::FILL) || linalg::is_elementwise(main) {
            KernelClass::Elementwise
        } else {
            KernelClass::Generic
        }
    }
}

/// The dispatches outside of any forall, in order.
pub(crate) fn collect<'c>(module: &'c Module<'c>) -> Vec<Dispatch<'c>> {
    let mut found: BTreeMap<i64, Vec<(i64, Op, Role)>> = BTreeMap::new();
    for op in module.op().nested(WalkOrder::Pre) {
        let int = |name: &str| op.attr(name).and_then(|a| a.as_int());
        let role = op.attr(attributes::ROLE).and_then(|a| a.as_string().and_then(Role::parse));
        if let (Some(number), Some(role), None) = (int(attributes::DISPATCH), role, op.ancestor(ops::scf::FORALL)) {
            found.entry(number).or_default().push((int(attributes::MEMBER).unwrap_or(0), op, role));
        }
    }
    let complete = found.into_iter().filter_map(|(number, mut ops)| {
        ops.sort_by_key(|(position, ..)| *position);
        let ops: Vec<(Op, Role)> = ops.into_iter().map(|(_, op, role)| (op, role)).collect();
        let root = ops.iter().find(|(_, role)| *role == Role::Root)?.0;
        Some(Dispatch { number, root, ops })
    });
    complete.collect()
}
