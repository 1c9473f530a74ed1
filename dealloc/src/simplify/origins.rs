//! The origins of a memref: allocations, arguments and unknown operations.
//!
//! Values are followed backwards through views, branches and regions; a strongly connected component of values
//! has one set. Each value and each flow between two is visited once.
//! Limits: a memref of more than [`MAX_ORIGINS`] origins is treated as one of unknown origin.

use monopour_ir::ops;
use std::rc::Rc;

use monopour_analysis::components::components;
use monopour_ir::control_flow::{
    Traits, may_be_terminal_buffer, region_flows, successor_operands, view_flows, view_source,
};
use monopour_ir::interfaces::{EffectKind, memory_effects};
use monopour_ir::{Block, HandleMap, Op, Value, WalkOrder};

/// Larger sets are copied from value to value, and no program was found to need them.
const MAX_ORIGINS: usize = 64;

/// The kind of origins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Allocations only.
    Allocations,
    /// Allocations and arguments of functions.
    AllocationsOrArguments,
    /// Possibly an unknown one.
    Unknown,
}

/// The origins of one memref.
#[derive(Clone, Debug)]
pub(super) struct Origin<'c> {
    /// The source of its chain of views.
    pub(super) root: Value<'c>,
    pub(super) kind: Kind,
    /// The origins by number, sorted.
    pub(super) places: Rc<[u32]>,
    /// The block that the root is allocated in.
    pub(super) allocated_in: Option<Block<'c>>,
    /// The block whose argument the root is.
    pub(super) argument_of: Option<Block<'c>>,
}

impl Origin<'_> {
    /// The only origin, if there is one.
    pub(super) fn single(&self) -> Option<u32> {
        if self.places.len() == 1 { Some(self.places[0]) } else { None }
    }
}

/// The origins of all memrefs in an operation.
#[derive(Debug, Default)]
pub(super) struct Origins<'c> {
    numbers: HandleMap<Value<'c>, u32>,
    values: Vec<Value<'c>>,
    sources: Vec<Vec<u32>>,
    is_place: Vec<bool>,
    /// By value, once computed.
    places: Vec<Option<(Kind, Rc<[u32]>)>>,
    allocated: HandleMap<Value<'c>, bool>,
    /// Work done, by queries too.
    pub(super) steps: u64,
}

impl<'c> Origins<'c> {
    /// For all memrefs in an operation.
    pub(super) fn of(root: Op<'c>) -> Self {
        let mut origins = Self::default();
        root.walk(WalkOrder::Pre, |op| origins.flows(op));
        origins.resolve();
        origins
    }

    /// The origins of a memref.
    pub(super) fn get(&mut self, value: Value<'c>) -> Origin<'c> {
        let mut root = value;
        while let Some(source) = root.defining_op().and_then(viewed) {
            root = source;
        }
        self.steps += 1;
        let known = self.numbers.get(&root).and_then(|n| self.places[*n as usize].clone());
        let (kind, places) = known.unwrap_or((Kind::Unknown, Rc::from([])));
        let allocated_in = if self.is_allocated(root) { root.block() } else { None };
        Origin { root, kind, places, allocated_in, argument_of: root.as_block_arg().map(|(block, _)| block) }
    }

    fn is_allocated(&mut self, value: Value<'c>) -> bool {
        *self.allocated.entry(value).or_insert_with(|| {
            let allocates = |op: Op<'c>| {
                memory_effects(op)
                    .is_some_and(|all| all.iter().any(|e| e.kind == EffectKind::Allocate && e.value == Some(value)))
            };
            value.defining_op().is_some_and(allocates)
        })
    }

    fn number(&mut self, value: Value<'c>) -> u32 {
        *self.numbers.entry(value).or_insert_with(|| {
            self.values.push(value);
            self.sources.push(vec![]);
            self.is_place.push(false);
            u32::try_from(self.values.len() - 1).expect("values fit 32 bits")
        })
    }

    fn flow(&mut self, from: Value<'c>, to: Value<'c>) {
        if from.ty().is_memref() && to.ty().is_memref() {
            let (from, to) = (self.number(from), self.number(to));
            self.sources[to as usize].push(from);
        }
    }

    fn place(&mut self, value: Value<'c>) {
        if value.ty().is_memref() {
            let number = self.number(value);
            self.is_place[number as usize] = true;
        }
    }

    fn flows(&mut self, op: Op<'c>) {
        let traits = Traits::of(op);
        if let Some(flows) = view_flows(op) {
            flows.into_iter().for_each(|(from, to)| self.flow(from, to));
            for value in made_by(op) {
                if may_be_terminal_buffer(op, value) {
                    self.place(value);
                }
            }
        } else if let Some(source) = viewed(op) {
            op.results().first().into_iter().for_each(|result| self.flow(source, *result));
        } else if traits.is_branch() {
            for (number, block) in op.successors().into_iter().enumerate() {
                match successor_operands(op, number) {
                    Some(operands) => {
                        operands.of(op).into_iter().zip(block.args()).for_each(|(from, to)| self.flow(from, to));
                    }
                    None => block.args().into_iter().for_each(|arg| self.place(arg)),
                }
            }
        } else if let Some(flows) = region_flows(op) {
            flows.into_iter().for_each(|(from, to)| self.flow(from, to));
        } else if !traits.is_region_branch_terminator() {
            made_by(op).into_iter().for_each(|value| self.place(value));
            if traits.is_call() {
                // Callees are not analysed: they may return their operands.
                for result in op.results() {
                    op.operands().into_iter().for_each(|operand| self.flow(operand, result));
                }
            }
        }
    }

    /// Sets of origins for each strongly connected component of values, its sources first.
    fn resolve(&mut self) {
        let count = self.values.len();
        self.places = vec![None; count];
        let source = |value: usize, at: usize| self.sources[value].get(at).map(|source| *source as usize);
        for component in components(count, source) {
            self.finish(&component);
        }
    }

    fn finish(&mut self, component: &[usize]) {
        self.steps += component.iter().map(|member| 1 + self.sources[*member].len() as u64).sum::<u64>();
        let mut own: Vec<u32> = Vec::new();
        let mut kind = Kind::Allocations;
        let mut shared: Option<Rc<[u32]>> = None;
        let mut sets = 0;
        for member in component {
            if self.is_place[*member] {
                own.push(u32::try_from(*member).expect("values fit 32 bits"));
                kind = worse(kind, self.kind_of(self.values[*member]));
            }
            for source in &self.sources[*member] {
                if let Some((of_source, places)) = &self.places[*source as usize] {
                    kind = worse(kind, *of_source);
                    own.extend(places.iter());
                    shared = Some(places.clone());
                    sets += 1;
                }
            }
        }
        self.steps += own.len() as u64;
        // One source and no new origins: the set is shared.
        let places = match shared {
            Some(places) if sets == 1 && own.len() == places.len() => places,
            _ => {
                own.sort_unstable();
                own.dedup();
                Rc::from(own)
            }
        };
        let known = if places.len() > MAX_ORIGINS { (Kind::Unknown, Rc::from([])) } else { (kind, places) };
        for member in component {
            self.places[*member] = Some(known.clone());
        }
    }

    fn kind_of(&mut self, place: Value<'c>) -> Kind {
        let is_argument = place.as_block_arg().is_some_and(|(block, _)| {
            let function = block.parent_op().filter(|op| Traits::of(*op).is_function());
            function.and_then(Op::body) == Some(block)
        });
        if self.is_allocated(place) {
            Kind::Allocations
        } else if is_argument {
            Kind::AllocationsOrArguments
        } else {
            Kind::Unknown
        }
    }
}

fn worse(a: Kind, b: Kind) -> Kind {
    match (a, b) {
        (Kind::Unknown, _) | (_, Kind::Unknown) => Kind::Unknown,
        (Kind::AllocationsOrArguments, _) | (_, Kind::AllocationsOrArguments) => Kind::AllocationsOrArguments,
        _ => Kind::Allocations,
    }
}

/// The source of an operation whose first result is a view.
fn viewed<'c>(op: Op<'c>) -> Option<Value<'c>> {
    if op.is(ops::memref::EXTRACT_STRIDED_METADATA) { Some(op.operand(0)) } else { view_source(op) }
}

/// The results of an operation, and the entry arguments of its regions.
fn made_by<'c>(op: Op<'c>) -> Vec<Value<'c>> {
    let entries = op.regions().into_iter().filter_map(|region| region.entry());
    op.results().into_iter().chain(entries.flat_map(Block::args)).collect()
}
