//! Random functions on memrefs, run with their owners: every allocation is freed exactly once or returned, none is
//! used after it was freed, and none is returned that the function does not own.

use crate::index::{BlockId, Id, IndexVec, OpId, ValueId};
use crate::ownership::{
    Condition, Forward, ForwardTo, Free, MemrefKind, Owners, Ownership, OwnershipFacts, Place, Placement,
};
use crate::random::Random;

#[derive(Clone, Debug)]
enum Action {
    Foreign(ValueId),
    Alloc(ValueId),
    View(ValueId, Vec<ValueId>),
    Use(Vec<ValueId>),
    If(Vec<ValueId>, [BlockId; 2]),
    For { inits: Vec<ValueId>, arguments: Vec<ValueId>, results: Vec<ValueId>, body: BlockId },
    Forward(Vec<ValueId>),
}

#[derive(Default)]
struct Program {
    facts: OwnershipFacts,
    blocks: IndexVec<BlockId, Vec<(OpId, Action)>>,
    values: Vec<BlockId>,
}

struct Generator {
    program: Program,
    random: Random,
    left: u32,
}

impl Generator {
    fn block(&mut self, op: Option<OpId>) -> BlockId {
        self.program.blocks.push(Vec::new());
        self.program.facts.block(op)
    }

    fn result(&mut self, op: OpId, block: BlockId, kind: MemrefKind) -> ValueId {
        self.program.values.push(block);
        self.program.facts.result(op, kind).expect("the operation exists")
    }

    fn pick(&mut self, scope: &[ValueId]) -> ValueId {
        scope[self.random.below(u32::try_from(scope.len()).expect("small")) as usize]
    }

    fn picks(&mut self, scope: &[ValueId], most: u32) -> Vec<ValueId> {
        (0..self.random.below(most + 1)).map(|_| self.pick(scope)).collect()
    }

    fn body(&mut self, block: BlockId, scope: &mut Vec<ValueId>, depth: u32) {
        for _ in 0..2 + self.random.below(6) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let op = self.program.facts.op(block);
            let action = match self.random.below(if depth < 3 { 9 } else { 7 }) {
                0 | 1 => Action::Alloc(self.result(op, block, MemrefKind::Allocation)),
                2 => Action::Foreign(self.result(op, block, MemrefKind::Foreign)),
                3 | 4 => {
                    let mut sources = self.picks(scope, 1);
                    sources.push(self.pick(scope));
                    let value = self.result(op, block, MemrefKind::View);
                    for &source in &sources {
                        self.program.facts.source(value, source);
                        self.program.facts.uses(op, source);
                    }
                    Action::View(value, sources)
                }
                5 | 6 => {
                    let used = self.picks(scope, 2);
                    used.iter().for_each(|&value| self.program.facts.uses(op, value));
                    Action::Use(used)
                }
                7 => self.branch(op, block, scope, depth),
                _ => self.for_loop(op, block, scope, depth),
            };
            match &action {
                Action::Foreign(value) | Action::Alloc(value) | Action::View(value, _) => scope.push(*value),
                Action::If(values, _) | Action::For { results: values, .. } => scope.extend(values),
                Action::Use(_) | Action::Forward(_) => {}
            }
            self.program.blocks[block].push((op, action));
        }
    }

    fn branch(&mut self, op: OpId, block: BlockId, scope: &[ValueId], depth: u32) -> Action {
        let results: Vec<_> =
            (0..self.random.below(3)).map(|_| self.result(op, block, MemrefKind::RegionResult)).collect();
        let blocks = [(); 2].map(|()| {
            let inner = self.block(Some(op));
            let mut inner_scope = scope.to_vec();
            self.body(inner, &mut inner_scope, depth + 1);
            let targets = results.iter().map(|&result| vec![ForwardTo::Value(result)]).collect();
            self.terminate(inner, &inner_scope, targets);
            inner
        });
        Action::If(results, blocks)
    }

    fn for_loop(&mut self, op: OpId, block: BlockId, scope: &[ValueId], depth: u32) -> Action {
        let inits = self.picks(scope, 2);
        inits.iter().for_each(|&init| self.program.facts.uses(op, init));
        let results: Vec<_> = inits.iter().map(|_| self.result(op, block, MemrefKind::RegionResult)).collect();
        let body = self.block(Some(op));
        let mut arguments = Vec::new();
        for (&init, &result) in inits.iter().zip(&results) {
            self.program.values.push(body);
            let argument = self.program.facts.argument(body, MemrefKind::RegionArgument);
            self.program.facts.source(argument, init);
            self.program.facts.source(result, init);
            arguments.push(argument);
        }
        let mut inner_scope = scope.to_vec();
        inner_scope.extend(&arguments);
        self.body(body, &mut inner_scope, depth + 1);
        let pairs = arguments.iter().zip(&results);
        let targets = pairs.map(|(&a, &r)| vec![ForwardTo::Value(a), ForwardTo::Value(r)]).collect();
        self.terminate(body, &inner_scope, targets);
        Action::For { inits, arguments, results, body }
    }

    fn terminate(&mut self, block: BlockId, scope: &[ValueId], targets: Vec<Vec<ForwardTo>>) {
        let terminator = self.program.facts.op(block);
        let mut values = Vec::new();
        for targets in targets {
            // Recent values more often: they are the ones that the block owns.
            let recent = &scope[scope.len() - scope.len().min(3)..];
            let value = if self.random.percent(60) { self.pick(recent) } else { self.pick(scope) };
            values.push(value);
            self.program.facts.uses(terminator, value);
            for to in targets {
                self.program.facts.forward(Forward { terminator, value, to });
            }
        }
        self.program.blocks[block].push((terminator, Action::Forward(values)));
    }
}

fn program(seed: u64) -> Program {
    let mut generator = Generator { program: Program::default(), random: Random::new(seed), left: 30 };
    let block = generator.block(None);
    generator.program.values.push(block);
    let argument = generator.program.facts.argument(block, MemrefKind::Foreign);
    let mut scope = vec![argument];
    generator.body(block, &mut scope, 0);
    let results = generator.random.below(3);
    generator.terminate(block, &scope, (0..results).map(|_| vec![ForwardTo::Caller]).collect());
    generator.program
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Foreign,
    Live,
    Freed,
    Returned,
}

struct Run<'a> {
    program: &'a Program,
    owners: &'a Owners,
    random: Random,
    objects: Vec<Object>,
    /// The object of each value, and whether the block owns it.
    cells: Vec<(usize, bool)>,
}

impl Run<'_> {
    fn make(&mut self, object: Object) -> usize {
        self.objects.push(object);
        self.objects.len() - 1
    }

    fn access(&self, value: ValueId) -> usize {
        let object = self.cells[value.index()].0;
        assert!(matches!(self.objects[object], Object::Live | Object::Foreign), "{value} is used after its end");
        object
    }

    fn owns(&self, value: ValueId) -> bool {
        match self.owners.ownership[value] {
            Some(Ownership::Owned) => true,
            Some(Ownership::AT_RUN_TIME) => self.cells[value.index()].1,
            Some(Ownership::NotOwned) | None => false,
        }
    }

    fn free(&mut self, free: &Free, given: &[usize]) {
        let object = self.cells[free.value.index()].0;
        let frees = match free.condition {
            Condition::Always => true,
            Condition::IfOwned => self.owns(free.value),
            Condition::UnlessForwarded => self.owns(free.value) && !given.contains(&object),
        };
        if frees {
            assert_eq!(self.objects[object], Object::Live, "{} is freed at {:?}", free.value, free.place);
            self.objects[object] = Object::Freed;
        }
    }

    /// Run a block; return the forwarded objects, each with its ownership.
    fn block(&mut self, block: BlockId) -> Vec<(usize, bool)> {
        let mut forwarded = Vec::new();
        for (op, action) in self.program.blocks[block].clone() {
            match action {
                Action::Foreign(value) => self.cells[value.index()] = (self.make(Object::Foreign), false),
                Action::Alloc(value) => self.cells[value.index()] = (self.make(Object::Live), true),
                Action::View(value, sources) => {
                    let choice = self.random.below(u32::try_from(sources.len()).expect("small")) as usize;
                    self.cells[value.index()] = (self.access(sources[choice]), false);
                }
                Action::Use(values) => {
                    values.iter().for_each(|&value| assert!(self.access(value) < self.objects.len()))
                }
                Action::If(results, blocks) => {
                    let taken = blocks[self.random.below(2) as usize];
                    let values = self.block(taken);
                    results.iter().zip(values).for_each(|(result, cell)| self.cells[result.index()] = cell);
                }
                Action::For { inits, arguments, results, body } => {
                    let mut values: Vec<_> = inits.iter().map(|&init| (self.access(init), false)).collect();
                    for _ in 0..self.random.below(4) {
                        arguments.iter().zip(values).for_each(|(argument, cell)| self.cells[argument.index()] = cell);
                        values = self.block(body);
                    }
                    results.iter().zip(values).for_each(|(result, cell)| self.cells[result.index()] = cell);
                }
                Action::Forward(values) => forwarded = self.terminate(block, op, &values),
            }
            let after: Vec<_> = self.owners.frees.iter().filter(|free| free.place == Place::After(op)).collect();
            after.into_iter().for_each(|free| self.free(free, &[]));
        }
        forwarded
    }

    fn terminate(&mut self, block: BlockId, op: OpId, values: &[ValueId]) -> Vec<(usize, bool)> {
        let transfers: Vec<_> =
            self.owners.transfers.iter().filter(|transfer| transfer.forward.terminator == op).collect();
        let per_operand = if values.is_empty() { 1 } else { transfers.len() / values.len() };
        let (mut given, mut forwarded): (Vec<usize>, Vec<(usize, bool)>) = (Vec::new(), Vec::new());
        for (transfers, &value) in transfers.chunks(per_operand).zip(values) {
            let object = self.access(value);
            let owned_here = |this: &Self, object: usize| {
                let owned = (0..this.cells.len()).filter(|&value| this.program.values[value] == block);
                owned.into_iter().any(|value| this.owns(ValueId::from_index(value)) && this.cells[value].0 == object)
            };
            let owns = match transfers[0].ownership {
                Some(Ownership::Owned) => true,
                Some(Ownership::AT_RUN_TIME) => owned_here(self, object) && !given.contains(&object),
                Some(Ownership::NotOwned) | None => false,
            };
            let to_caller = transfers[0].forward.to == ForwardTo::Caller;
            // A caller gets a copy of an object that the function does not own.
            let object = if to_caller && !owns { self.make(Object::Live) } else { object };
            if owns {
                assert!(!given.contains(&object), "{op} gives {value} away twice");
                given.push(object);
            }
            if to_caller {
                assert_eq!(self.objects[object], Object::Live);
            }
            forwarded.push((object, owns || to_caller));
        }
        let ends: Vec<_> = self.owners.frees.iter().filter(|free| free.place == Place::End(block)).collect();
        ends.into_iter().for_each(|free| self.free(free, &given));
        forwarded
    }
}

fn run(seed: u64, placement: Placement) -> bool {
    let program = program(seed);
    let owners = program.facts.decide(placement).expect("facts are consistent");
    for path in 0..6 {
        let random = Random::new(seed ^ (path << 40));
        let cells = vec![(0, false); program.values.len()];
        let mut run = Run { program: &program, owners: &owners, random, objects: vec![Object::Foreign], cells };
        for (object, _) in run.block(BlockId::new(0)) {
            assert_eq!(run.objects[object], Object::Live, "a result is freed or returned twice");
            run.objects[object] = Object::Returned;
        }
        assert!(!run.objects.contains(&Object::Live), "an allocation is never freed");
    }
    owners.is_static()
}

#[test]
fn owners_free_everything_once() {
    let mut decided_statically = 0;
    for seed in 0..1500 {
        for placement in [Placement::BlockEnd, Placement::LastUse] {
            let result = std::panic::catch_unwind(|| run(seed, placement));
            match result {
                Ok(is_static) => decided_statically += u32::from(is_static),
                Err(_) => panic!("seed {seed}, {placement:?}"),
            }
        }
    }
    assert!(decided_statically > 500, "{decided_statically} runs needed no indicator");
}
