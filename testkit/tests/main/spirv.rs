//! The interpreter of SPIR-V on modules written word by word: values, each fault, counts, nonsense.

mod matrices;

use monopour_testkit::random::Rng;
use monopour_testkit::spirv::faults::{Defect, planted};
use monopour_testkit::spirv::{Counts, Error, FaultKind, Launch, Module, Place, Window, launch};
use spirv::{BuiltIn, Decoration, Op, StorageClass};

/// Invocations of a workgroup.
const SIZE: u32 = 64;
/// Words of storage semantics with acquire and release, and those of workgroup memory.
const STORAGE: u32 = 0x48;
const SHARED: u32 = 0x108;

/// Writes a module: instructions in order, ids from a counter.
struct Assembler {
    words: Vec<u32>,
    next: u32,
}

/// Ids of the parts that all modules here have.
struct Common {
    word: u32,
    number: u32,
    bool: u32,
    /// The built-in variables, by their order in [`BUILTINS`].
    builtins: Vec<u32>,
    /// Pointer to an element: of storage, of workgroup memory.
    element: u32,
    shared_element: u32,
    /// Storage buffers at bindings 0 and 1, and workgroup memory of as many numbers as invocations.
    buffers: [u32; 2],
    shared: u32,
}

const BUILTINS: [BuiltIn; 3] = [BuiltIn::LocalInvocationIndex, BuiltIn::SubgroupLocalInvocationId, BuiltIn::SubgroupId];

impl Assembler {
    fn new() -> Self {
        Self { words: vec![spirv::MAGIC_NUMBER, 0x0001_0300, 0, 0, 0], next: 1 }
    }

    fn push(&mut self, op: Op, operands: &[u32]) {
        self.words.push((operands.len() as u32 + 1) << 16 | op as u32);
        self.words.extend_from_slice(operands);
    }

    fn id(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// A type.
    fn ty(&mut self, op: Op, operands: &[u32]) -> u32 {
        let id = self.id();
        self.push(op, &[&[id], operands].concat());
        id
    }

    /// A value.
    fn value(&mut self, op: Op, ty: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        self.push(op, &[&[ty, id], operands].concat());
        id
    }

    /// What all modules begin with, up to the first block.
    fn begin(&mut self) -> Common {
        let ids: Vec<u32> = (0..BUILTINS.len() + 5).map(|_| self.id()).collect();
        let (builtins, [main, input, output, array, block]) = (&ids[..BUILTINS.len()], &ids[BUILTINS.len()..]) else {
            unreachable!("there are five more");
        };
        self.push(Op::EntryPoint, &[5, *main, u32::from_le_bytes(*b"main"), 0]);
        self.push(Op::ExecutionMode, &[*main, spirv::ExecutionMode::LocalSize as u32, SIZE, 1, 1]);
        for (id, builtin) in builtins.iter().zip(BUILTINS) {
            self.push(Op::Decorate, &[*id, Decoration::BuiltIn as u32, builtin as u32]);
        }
        self.push(Op::Decorate, &[*input, Decoration::Binding as u32, 0]);
        self.push(Op::Decorate, &[*output, Decoration::Binding as u32, 1]);
        self.push(Op::Decorate, &[*array, Decoration::ArrayStride as u32, 4]);
        self.push(Op::MemberDecorate, &[*block, 0, Decoration::Offset as u32, 0]);
        let void = self.ty(Op::TypeVoid, &[]);
        let function = self.ty(Op::TypeFunction, &[void]);
        let bool = self.ty(Op::TypeBool, &[]);
        let word = self.ty(Op::TypeInt, &[32, 0]);
        let number = self.ty(Op::TypeFloat, &[32]);
        self.push(Op::TypeRuntimeArray, &[*array, number]);
        self.push(Op::TypeStruct, &[*block, *array]);
        let [storage, private, input_class] =
            [StorageClass::StorageBuffer, StorageClass::Workgroup, StorageClass::Input].map(|class| class as u32);
        let of_block = self.ty(Op::TypePointer, &[storage, *block]);
        let element = self.ty(Op::TypePointer, &[storage, number]);
        let of_word = self.ty(Op::TypePointer, &[input_class, word]);
        let size = self.value(Op::Constant, word, &[SIZE]);
        let memory = self.ty(Op::TypeArray, &[number, size]);
        let of_memory = self.ty(Op::TypePointer, &[private, memory]);
        let shared_element = self.ty(Op::TypePointer, &[private, number]);
        for id in builtins {
            self.push(Op::Variable, &[of_word, *id, input_class]);
        }
        self.push(Op::Variable, &[of_block, *input, storage]);
        self.push(Op::Variable, &[of_block, *output, storage]);
        let shared = self.value(Op::Variable, of_memory, &[private]);
        self.push(Op::Function, &[void, *main, 0, function]);
        let builtins = builtins.to_vec();
        let buffers = [*input, *output];
        Common { word, number, bool, builtins, element, shared_element, buffers, shared }
    }

    fn label(&mut self, id: u32) {
        self.push(Op::Label, &[id]);
    }

    fn constant(&mut self, c: &Common, value: u32) -> u32 {
        let id = self.id();
        self.global(Op::Constant, &[c.word, id, value]);
        id
    }

    /// A type or a constant, before functions: the position of the first one is found again.
    fn global(&mut self, op: Op, operands: &[u32]) {
        let at = position(&self.words, Op::Function);
        let first = (operands.len() as u32 + 1) << 16 | op as u32;
        self.words.splice(at..at, [&[first], operands].concat());
    }

    fn builtin(&mut self, c: &Common, builtin: BuiltIn) -> u32 {
        let at = BUILTINS.iter().position(|b| *b == builtin).expect("it is one of them");
        self.value(Op::Load, c.word, &[c.builtins[at]])
    }

    /// Pointer to an element of a buffer.
    fn at(&mut self, c: &Common, binding: usize, index: u32) -> u32 {
        let zero = self.constant(c, 0);
        self.value(Op::AccessChain, c.element, &[c.buffers[binding], zero, index])
    }

    fn shared_at(&mut self, c: &Common, index: u32) -> u32 {
        self.value(Op::AccessChain, c.shared_element, &[c.shared, index])
    }

    fn barrier(&mut self, c: &Common, semantics: u32) {
        let [scope, semantics] = [2, semantics].map(|value| self.constant(c, value));
        self.push(Op::ControlBarrier, &[scope, scope, semantics]);
    }

    fn end(mut self) -> Vec<u32> {
        self.push(Op::Return, &[]);
        self.push(Op::FunctionEnd, &[]);
        self.words[3] = self.next;
        self.words
    }
}

/// The position of the first instruction of a kind.
fn position(words: &[u32], op: Op) -> usize {
    let mut at = 5;
    while words[at] & 0xffff != op as u32 {
        at += (words[at] >> 16) as usize;
    }
    at
}

/// Reverses the numbers of a workgroup through workgroup memory.
fn reversal() -> Vec<u32> {
    let mut a = Assembler::new();
    let c = a.begin();
    let block = a.id();
    a.label(block);
    let own = a.builtin(&c, BuiltIn::LocalInvocationIndex);
    let from = a.at(&c, 0, own);
    let loaded = a.value(Op::Load, c.number, &[from]);
    let to = a.shared_at(&c, own);
    a.push(Op::Store, &[to, loaded]);
    a.barrier(&c, SHARED);
    let last = a.constant(&c, SIZE - 1);
    let other = a.value(Op::ISub, c.word, &[last, own]);
    let from = a.shared_at(&c, other);
    let loaded = a.value(Op::Load, c.number, &[from]);
    let to = a.at(&c, 1, own);
    a.push(Op::Store, &[to, loaded]);
    a.end()
}

/// A branch on whether the invocation is below `limit`; `inside` is what those do.
fn branching(builtin: BuiltIn, limit: u32, inside: impl Fn(&mut Assembler, &Common, u32)) -> Vec<u32> {
    let mut a = Assembler::new();
    let c = a.begin();
    let [head, body, merge] = [a.id(), a.id(), a.id()];
    a.label(head);
    let own = a.builtin(&c, builtin);
    let limit = a.constant(&c, limit);
    let is_below = a.value(Op::ULessThan, c.bool, &[own, limit]);
    a.push(Op::SelectionMerge, &[merge, 0]);
    a.push(Op::BranchConditional, &[is_below, body, merge]);
    a.label(body);
    inside(&mut a, &c, own);
    a.push(Op::Branch, &[merge]);
    a.label(merge);
    a.end()
}

fn run(words: &[u32], subgroup_size: u32, grid: [u32; 3]) -> Result<(Vec<f32>, Counts), Error> {
    let bytes = u64::from(SIZE) * 4;
    let module = Module::parse_for(words, subgroup_size)?;
    let numbers: Vec<u8> = (0..SIZE).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let mut buffers = vec![numbers, vec![0; bytes as usize]];
    let windows = [0, 1].map(|buffer| Window { buffer, offset: 0, bytes });
    let settings = Launch { grid, subgroup_size, seed: 3, windows: &windows, immediates: &[], limit: 100_000 };
    let counts = launch(&module, &settings, &mut buffers)?;
    let values = buffers[1].chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    Ok((values.collect(), counts))
}

/// The fault of a module on one workgroup, in subgroups of 16.
fn fault(words: &[u32]) -> FaultKind {
    match run(words, 16, [1, 1, 1]) {
        Err(Error::Fault(fault)) => fault.kind,
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn invocations_exchange_values_in_subgroups_of_any_size() {
    let words = reversal();
    for subgroup_size in [1, 2, 4, 8, 16, 32, 64, 128] {
        let (values, counts) = run(&words, subgroup_size, [1, 1, 1]).unwrap_or_else(|e| panic!("{e}"));
        let expected: Vec<f32> = (0..SIZE).rev().map(|i| i as f32).collect();
        assert_eq!(values, expected, "subgroups of {subgroup_size}");
        assert_eq!(counts.barriers.into_iter().collect::<Vec<_>>(), [((2, 2, SHARED), 1)]);
    }
}

#[test]
fn sectors_and_banks_are_counted() {
    let (_, counts) = run(&reversal(), 32, [1, 1, 1]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        (counts.loads.accesses, counts.loads.bytes, counts.loads.sectors, counts.loads.least_sectors),
        (2, 256, 8, 8)
    );
    assert_eq!(
        (counts.shared_loads.wavefronts, counts.shared_loads.conflict_free, counts.shared_loads.elements),
        (2, 2, 64)
    );
    // Elements a stride of 2 apart: twice the sectors, and two words of each bank.
    let double = |a: &mut Assembler, c: &Common, own: u32| {
        let two = a.constant(c, 2);
        let index = a.value(Op::IMul, c.word, &[own, two]);
        let from = a.at(c, 0, index);
        let loaded = a.value(Op::Load, c.number, &[from]);
        let to = a.shared_at(c, index);
        a.push(Op::Store, &[to, loaded]);
    };
    let words = branching(BuiltIn::LocalInvocationIndex, 32, double);
    let (_, counts) = run(&words, 32, [1, 1, 1]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((counts.loads.sectors, counts.loads.least_sectors), (8, 4));
    assert_eq!((counts.shared_stores.wavefronts, counts.shared_stores.conflict_free), (2, 1));
}

#[test]
fn a_missing_or_unordered_barrier_is_a_race() {
    for defect in [Defect::Barrier, Defect::Semantics] {
        let [words] = &planted(&reversal(), defect).expect("it is a module")[..] else { panic!("one barrier") };
        // Whichever side runs first: the load of what was not written yet, or of what another one wrote.
        let kind = fault(words);
        assert!(
            matches!(kind, FaultKind::Race { place: Place::Workgroup(_), .. } | FaultKind::Unwritten { .. }),
            "{kind}"
        );
    }
    // A barrier that orders other memory only.
    let mut words = reversal();
    let at = position(&words, Op::ControlBarrier);
    let semantics = words[at + 3];
    let mut constants = (5..at).filter(|at| words[*at] == 4 << 16 | Op::Constant as u32 && words[at + 2] == semantics);
    let constant = constants.next_back().expect("the semantics are a constant");
    words[constant + 3] = STORAGE;
    let kind = fault(&words);
    assert!(matches!(kind, FaultKind::Race { .. } | FaultKind::Unwritten { .. }), "{kind}");
}

#[test]
fn two_workgroups_that_write_one_location_are_a_race() {
    let outcome = run(&reversal(), 32, [2, 1, 1]);
    let Err(Error::Fault(fault)) = outcome else { panic!("{outcome:?}") };
    // Whichever subgroup of the second workgroup is the first to store.
    let FaultKind::Race { place: Place::Binding(1), offset, other: Some(other) } = fault.kind else {
        panic!("{fault:?}")
    };
    assert_eq!((fault.workgroup, other, offset), ([1, 0, 0], fault.invocation, u64::from(fault.invocation) * 4));
}

#[test]
fn an_index_behind_the_end_is_out_of_bounds() {
    let shifted = planted(&reversal(), Defect::Index).expect("it is a module");
    assert_eq!(shifted.len(), 4);
    let found: Vec<_> = shifted.iter().map(|words| fault(words)).collect();
    let bytes = u64::from(SIZE) * 4;
    let is_outside = |kind: &FaultKind, binding: u32| {
        *kind == FaultKind::OutOfBounds { place: Place::Binding(binding), offset: bytes, size: bytes }
    };
    assert!(is_outside(&found[0], 0) && is_outside(&found[3], 1), "{found:?}");
    assert!(matches!(found[1], FaultKind::OutOfBounds { place: Place::Workgroup(_), .. }), "{found:?}");
    assert!(matches!(found[2], FaultKind::OutOfBounds { place: Place::Workgroup(_), .. }), "{found:?}");
}

#[test]
fn a_load_of_unwritten_workgroup_memory_is_a_fault() {
    let load = |a: &mut Assembler, c: &Common, own: u32| {
        let from = a.shared_at(c, own);
        a.value(Op::Load, c.number, &[from]);
    };
    let kind = fault(&branching(BuiltIn::LocalInvocationIndex, SIZE, load));
    assert!(matches!(kind, FaultKind::Unwritten { offset } if offset.is_multiple_of(64)), "{kind}");
}

#[test]
fn barriers_and_subgroup_operations_are_reached_together() {
    let barrier = |a: &mut Assembler, c: &Common, _: u32| a.barrier(c, SHARED);
    // Half of a subgroup, and half of the subgroups.
    for (builtin, limit) in [(BuiltIn::SubgroupLocalInvocationId, 8), (BuiltIn::SubgroupId, 2)] {
        assert_eq!(fault(&branching(builtin, limit, barrier)), FaultKind::DivergentBarrier, "{builtin:?}");
    }
    assert!(run(&branching(BuiltIn::SubgroupId, 99, barrier), 16, [1, 1, 1]).is_ok());
    let shuffle = |by: u32| {
        move |a: &mut Assembler, c: &Common, own: u32| {
            let [scope, by] = [3, by].map(|value| a.constant(c, value));
            a.value(Op::GroupNonUniformShuffleXor, c.word, &[scope, own, by]);
        }
    };
    assert_eq!(fault(&branching(BuiltIn::SubgroupLocalInvocationId, 8, shuffle(1))), FaultKind::DivergentSubgroup);
    assert_eq!(fault(&branching(BuiltIn::SubgroupId, 4, shuffle(16))), FaultKind::AbsentLane { lane: 16 });
    assert!(run(&branching(BuiltIn::SubgroupId, 2, shuffle(8)), 16, [1, 1, 1]).is_ok());
}

#[test]
fn an_instruction_that_is_not_known_has_an_error() {
    let kill = |a: &mut Assembler, c: &Common, own: u32| {
        a.value(Op::DPdx, c.number, &[own]);
    };
    let outcome = run(&branching(BuiltIn::SubgroupId, 1, kill), 16, [1, 1, 1]);
    assert!(matches!(&outcome, Err(Error::Unsupported { instruction, .. }) if instruction == "DPdx"), "{outcome:?}");
}

#[test]
fn an_endless_loop_ends_at_the_limit() {
    let mut a = Assembler::new();
    let _ = a.begin();
    let block = a.id();
    a.label(block);
    a.push(Op::Branch, &[block]);
    assert_eq!(run(&a.end(), 16, [1, 1, 1]).map(|_| ()), Err(Error::Steps { limit: 100_000 }));
}

/// Whatever the words: a result or an error.
fn check_nonsense(words: &[u32], rounds: usize) {
    let mut rng = Rng::new(23);
    let mut errors = 0;
    for _ in 0..rounds {
        let mut words = words.to_vec();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(words.len() as u64) as usize;
            words[at] = match rng.below(4) {
                0 => rng.next_u64() as u32,
                1 => words[at] ^ 1 << rng.below(32),
                2 => words[rng.below(words.len() as u64) as usize],
                _ => rng.below(64) as u32,
            };
        }
        words.truncate(words.len() - if rng.below(4) == 0 { rng.below(40) as usize } else { 0 });
        errors += usize::from(run(&words, 16, [1, 1, 1]).is_err());
    }
    assert!(errors > rounds / 2, "{errors} errors");
}

#[test]
fn nonsense_does_not_panic() {
    check_nonsense(&reversal(), 20_000);
}
