//! Cooperative matrices in the interpreter: values for any size of subgroups, each fault, counts.

use super::{Assembler, Common, SHARED, SIZE, branching, check_nonsense, fault, run};
use monopour_testkit::spirv::faults::{Defect, planted};
use monopour_testkit::spirv::{Error, FaultKind, Place};
use spirv::{BuiltIn, CooperativeMatrixLayout, CooperativeMatrixUse, Op};

/// Rows and columns: as many elements as a buffer has.
const SIDE: u32 = 8;
const ROWS: u32 = CooperativeMatrixLayout::RowMajorKHR as u32;
const COLUMNS: u32 = CooperativeMatrixLayout::ColumnMajorKHR as u32;
const LEFT: CooperativeMatrixUse = CooperativeMatrixUse::MatrixAKHR;
const RIGHT: CooperativeMatrixUse = CooperativeMatrixUse::MatrixBKHR;
const SUM: CooperativeMatrixUse = CooperativeMatrixUse::MatrixAccumulatorKHR;

impl Assembler {
    /// A matrix of a scalar type.
    fn matrix(&mut self, c: &Common, scalar: u32, role: CooperativeMatrixUse) -> u32 {
        let [scope, side, role] =
            [spirv::Scope::Subgroup as u32, SIDE, role as u32].map(|value| self.constant(c, value));
        let id = self.id();
        self.global(Op::TypeCooperativeMatrixKHR, &[id, scalar, scope, side, side, role]);
        id
    }

    /// Loads a matrix with lines of `stride` numbers.
    fn load_matrix(&mut self, c: &Common, ty: u32, pointer: u32, layout: u32, stride: u32) -> u32 {
        let [layout, stride] = [layout, stride].map(|value| self.constant(c, value));
        self.value(Op::CooperativeMatrixLoadKHR, ty, &[pointer, layout, stride])
    }

    fn store_matrix(&mut self, c: &Common, pointer: u32, value: u32, layout: u32) {
        let [layout, stride] = [layout, SIDE].map(|value| self.constant(c, value));
        self.push(Op::CooperativeMatrixStoreKHR, &[pointer, value, layout, stride]);
    }

    /// The first number of a buffer.
    fn start(&mut self, c: &Common, binding: usize) -> u32 {
        let zero = self.constant(c, 0);
        self.at(c, binding, zero)
    }
}

/// What the first subgroup does alone.
fn alone(inside: impl Fn(&mut Assembler, &Common)) -> Vec<u32> {
    branching(BuiltIn::SubgroupId, 1, |a, c, _| inside(a, c))
}

/// The input as a matrix of halves, times its transpose, plus `started` in each place.
fn gram(started: Option<f32>) -> Vec<u32> {
    alone(|a, c| {
        let half = a.id();
        a.global(Op::TypeFloat, &[half, 16]);
        let factors = [(LEFT, ROWS), (RIGHT, COLUMNS)].map(|(role, layout)| {
            let [wide, narrow] = [c.number, half].map(|scalar| a.matrix(c, scalar, role));
            let from = a.start(c, 0);
            let loaded = a.load_matrix(c, wide, from, layout, SIDE);
            a.value(Op::FConvert, narrow, &[loaded])
        });
        let ty = a.matrix(c, c.number, SUM);
        let start = match started {
            Some(number) => {
                let id = a.id();
                a.global(Op::Constant, &[c.number, id, number.to_bits()]);
                a.value(Op::CompositeConstruct, ty, &[id])
            }
            None => {
                let id = a.id();
                a.global(Op::ConstantNull, &[ty, id]);
                id
            }
        };
        let sum = a.value(Op::CooperativeMatrixMulAddKHR, ty, &[factors[0], factors[1], start]);
        let to = a.start(c, 1);
        a.store_matrix(c, to, sum, ROWS);
    })
}

/// Transposes through workgroup memory: all invocations write it, and the first subgroup reads it.
fn transpose() -> Vec<u32> {
    let mut a = Assembler::new();
    let c = a.begin();
    let [head, body, merge] = [a.id(), a.id(), a.id()];
    a.label(head);
    let own = a.builtin(&c, BuiltIn::LocalInvocationIndex);
    let from = a.at(&c, 0, own);
    let loaded = a.value(Op::Load, c.number, &[from]);
    let to = a.shared_at(&c, own);
    a.push(Op::Store, &[to, loaded]);
    a.barrier(&c, SHARED);
    let subgroup = a.builtin(&c, BuiltIn::SubgroupId);
    let one = a.constant(&c, 1);
    let is_first = a.value(Op::ULessThan, c.bool, &[subgroup, one]);
    a.push(Op::SelectionMerge, &[merge, 0]);
    a.push(Op::BranchConditional, &[is_first, body, merge]);
    a.label(body);
    let ty = a.matrix(&c, c.number, SUM);
    let zero = a.constant(&c, 0);
    let from = a.shared_at(&c, zero);
    let loaded = a.load_matrix(&c, ty, from, COLUMNS, SIDE);
    let to = a.start(&c, 1);
    a.store_matrix(&c, to, loaded, ROWS);
    a.push(Op::Branch, &[merge]);
    a.label(merge);
    a.end()
}

fn transposed() -> Vec<f32> {
    (0..SIZE).map(|i| (i % SIDE * SIDE + i / SIDE) as f32).collect()
}

#[test]
fn products_are_right_in_subgroups_of_any_size() {
    let at = |row: u32, column: u32| (row * SIDE + column) as f32;
    for started in [None, Some(0.5)] {
        let element = |i: u32| {
            let products = (0..SIDE).map(|k| at(i / SIDE, k) * at(i % SIDE, k));
            products.fold(started.unwrap_or(0.0), |sum, product| sum + product)
        };
        let expected: Vec<f32> = (0..SIZE).map(element).collect();
        // Halves of this size are multiples of 16.
        assert!(expected.iter().any(|value| *value > 16384.0 && *value % 16.0 != 0.0));
        for subgroup_size in [1, 2, 4, 8, 16, 32, 64] {
            let (values, counts) = run(&gram(started), subgroup_size, [1, 1, 1]).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(values, expected, "subgroups of {subgroup_size}");
            assert_eq!(counts.products, u64::from(SIDE * SIDE * SIDE));
        }
    }
    // A lane of 128 would hold half an element.
    assert!(matches!(run(&gram(None), 128, [1, 1, 1]), Err(Error::Unsupported { .. })));
}

#[test]
fn lines_are_rows_or_columns() {
    for subgroup_size in [8, 32] {
        let (values, counts) = run(&transpose(), subgroup_size, [1, 1, 1]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(values, transposed(), "subgroups of {subgroup_size}");
        // Eight lines of 32 bytes, of which pieces of sixteen bytes of all lines are taken together: two words of a bank.
        let banked = counts.shared_loads;
        assert_eq!(
            (banked.accesses, banked.elements, banked.wavefronts, banked.conflict_free),
            (1, u64::from(SIZE), 4, 2)
        );
        assert_eq!((counts.stores.accesses, counts.stores.sectors, counts.stores.least_sectors), (1, 8, 8));
    }
}

#[test]
fn planted_defects_of_matrices_are_found() {
    let one = |defect: Defect| planted(&transpose(), defect).expect("it is a module");
    for words in one(Defect::Barrier).iter().chain(&one(Defect::Semantics)) {
        let kind = fault(words);
        assert!(
            matches!(kind, FaultKind::Race { place: Place::Workgroup(_), .. } | FaultKind::Unwritten { .. }),
            "{kind}"
        );
    }
    let misaligned = one(Defect::Stride);
    assert_eq!(misaligned.len(), 2);
    for words in &misaligned {
        assert!(matches!(fault(words), FaultKind::Misaligned { offset: 40, .. }), "{}", fault(words));
    }
    let flipped = one(Defect::Layout);
    assert_eq!(flipped.len(), 2);
    for words in &flipped {
        let (values, _) = run(words, 16, [1, 1, 1]).unwrap_or_else(|e| panic!("{e}"));
        assert_ne!(values, transposed());
    }
}

/// The fault of loading a matrix from the input, at an index and with lines of so many numbers.
fn load_fault(
    builtin: BuiltIn,
    limit: u32,
    stride: u32,
    index: impl Fn(&mut Assembler, &Common, u32) -> u32,
) -> FaultKind {
    fault(&branching(builtin, limit, |a, c, own| {
        let ty = a.matrix(c, c.number, SUM);
        let index = index(a, c, own);
        let from = a.at(c, 0, index);
        a.load_matrix(c, ty, from, ROWS, stride);
    }))
}

#[test]
fn accesses_of_matrices_are_checked() {
    let subgroup = BuiltIn::SubgroupId;
    let at = |index: u32| move |a: &mut Assembler, c: &Common, _: u32| a.constant(c, index);
    let bytes = u64::from(SIZE) * 4;
    let kind = load_fault(subgroup, 1, SIDE, at(SIDE));
    // Whichever lane holds an element of the last line.
    assert!(matches!(kind, FaultKind::OutOfBounds { size, offset, .. } if size == bytes && offset >= bytes), "{kind}");
    let kind = load_fault(subgroup, 1, SIDE, at(1));
    assert_eq!(kind, FaultKind::Misaligned { place: Place::Binding(0), offset: 4 });
    let kind = load_fault(subgroup, 1, SIDE - 1, at(0));
    assert_eq!(kind, FaultKind::Misaligned { place: Place::Binding(0), offset: 28 });
    let by_lane = |a: &mut Assembler, c: &Common, _: u32| {
        let lane = a.builtin(c, BuiltIn::SubgroupLocalInvocationId);
        let four = a.constant(c, 4);
        a.value(Op::IMul, c.word, &[lane, four])
    };
    assert_eq!(load_fault(subgroup, 1, SIDE, by_lane), FaultKind::NotUniform);
    let half = load_fault(BuiltIn::SubgroupLocalInvocationId, 8, SIDE, at(0));
    assert_eq!(half, FaultKind::DivergentSubgroup);
    let unwritten = alone(|a, c| {
        let ty = a.matrix(c, c.number, SUM);
        let zero = a.constant(c, 0);
        let from = a.shared_at(c, zero);
        a.load_matrix(c, ty, from, ROWS, SIDE);
    });
    assert!(matches!(fault(&unwritten), FaultKind::Unwritten { .. }), "{}", fault(&unwritten));
    // All four subgroups store one matrix.
    let stored_by_all = branching(BuiltIn::SubgroupId, 4, |a, c, _| {
        let ty = a.matrix(c, c.number, SUM);
        let zero = a.id();
        a.global(Op::ConstantNull, &[ty, zero]);
        let to = a.start(c, 1);
        a.store_matrix(c, to, zero, ROWS);
    });
    let kind = fault(&stored_by_all);
    assert!(matches!(kind, FaultKind::Race { place: Place::Binding(1), .. }), "{kind}");
}

#[test]
fn factors_have_their_places() {
    let swapped = alone(|a, c| {
        let ty = a.matrix(c, c.number, RIGHT);
        let sums = a.matrix(c, c.number, SUM);
        let zero = a.id();
        a.global(Op::ConstantNull, &[sums, zero]);
        let from = a.start(c, 0);
        let loaded = a.load_matrix(c, ty, from, ROWS, SIDE);
        a.value(Op::CooperativeMatrixMulAddKHR, sums, &[loaded, loaded, zero]);
    });
    let outcome = run(&swapped, 16, [1, 1, 1]);
    assert!(matches!(outcome, Err(Error::Malformed { what, .. }) if what.contains("do not fit")), "{outcome:?}");
}

#[test]
fn nonsense_of_matrices_does_not_panic() {
    check_nonsense(&gram(None), 4_000);
    check_nonsense(&transpose(), 4_000);
}
