//! Families of programs with the fewest copies that can be had, each program with a twin that must copy.
//!
//! A family goes over axes, element types, static and dynamic sizes. By default a sample runs, drawn by a fixed seed; with
//! `MONOPOUR_TEST_FULL=1` all do. Values are those of the reference evaluator, on every kind of device.

use crate::backend::from_runtime;
use crate::host::{devices, evaluated, index, raw, run};
use monopour::TargetDescription;
use monopour::program::DType;
use monopour::runtime::{Device, HostTensor};
use monopour_analysis::random::Random;
use monopour_testkit::approx::{self, Tolerance};
use monopour_testkit::device::full_is_asked_for;

/// A program with its inputs, of which the first is donated.
struct Case {
    text: String,
    inputs: Vec<HostTensor>,
    /// The copies of a run; `None`: some.
    copies: Option<u64>,
}

impl Case {
    fn check(&self, device: &(Device, TargetDescription)) {
        let (results, stats, leaks) = run(&self.text, &["arg0"], device, &self.inputs);
        let (name, text) = (&stats.device, &self.text);
        let expected = evaluated(text, &self.inputs);
        assert_eq!(results.len(), expected.len(), "{name}: {text}");
        for (found, expected) in results.iter().zip(&expected) {
            let rounding = Tolerance { absolute: 1e-5, relative: 1e-5 };
            approx::compare(&from_runtime(found), expected, rounding).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        }
        assert!(leaks.is_clean(), "{name}: {leaks:?}\n{text}");
        let copies = stats.counts.copies;
        assert!(self.copies.map_or(copies > 0, |most| copies == most), "{name}: {copies} copies\n{text}");
    }
}

/// Runs all programs of a family, or some of them.
fn check_family(cases: Vec<Case>, sample: usize) {
    let devices = devices();
    let mut random = Random::new(25);
    let mut left = cases;
    let count = if full_is_asked_for() { left.len() } else { sample.min(left.len()) };
    for _ in 0..count {
        let number = random.below(u32::try_from(left.len()).expect("a family is small")) as usize;
        let case = left.swap_remove(number);
        for device in &devices {
            case.check(device);
        }
    }
}

/// An element type: its name in MLIR, the ops that add and multiply, and the bytes of a number.
type Element = (DType, &'static str, &'static str, &'static str);

const ELEMENTS: [Element; 2] =
    [(DType::F32, "f32", "arith.addf", "arith.mulf"), (DType::I32, "i32", "arith.addi", "arith.muli")];

/// A tensor of small numbers that differ from their neighbours.
fn tensor(dtype: DType, shape: &[u64]) -> HostTensor {
    let number = |i: u64| (i * 37 % 23) as i32 - 11;
    let count = shape.iter().product::<u64>();
    let bytes = (0..count).flat_map(|i| match dtype {
        DType::F32 => (number(i) as f32 * 0.5).to_le_bytes(),
        _ => number(i).to_le_bytes(),
    });
    raw(dtype, shape, &bytes.collect::<Vec<_>>())
}

/// A shape with `size` on one axis, and small sizes on the others.
fn shape(rank: usize, axis: usize, size: u64) -> Vec<u64> {
    let other = [3, 5, 4];
    (0..rank).map(|d| if d == axis { size } else { other[d] }).collect()
}

/// The MLIR type of a tensor, with `?` on one axis if that is dynamic.
fn type_of(shape: &[u64], axis: Option<usize>, element: &str) -> String {
    let sizes = shape.iter().enumerate().map(|(d, n)| if axis == Some(d) { "?x".to_owned() } else { format!("{n}x") });
    format!("tensor<{}{element}>", sizes.collect::<String>())
}

/// `[offset on the axis, 0 elsewhere] [size on the axis, all elsewhere] [1, ..]`
fn slice(shape: &[u64], axis: usize, offset: &str, size: &str) -> String {
    let list = |of: &dyn Fn(usize) -> String| (0..shape.len()).map(of).collect::<Vec<_>>().join(", ");
    let offsets = list(&|d| if d == axis { offset.to_owned() } else { "0".to_owned() });
    let sizes = list(&|d| if d == axis { size.to_owned() } else { shape[d].to_string() });
    format!("[{offsets}] [{sizes}] [{}]", list(&|_| "1".to_owned()))
}

/// `linalg.generic` that adds `%x` to `%y`, both of type `ty`, in the memory of `%y`.
fn added(rank: usize, ty: &str, (_, element, add, _): Element) -> String {
    let dims = ["i", "j", "k"][..rank].join(", ");
    let map = format!("affine_map<({dims}) -> ({dims})>");
    let parallel = vec!["\"parallel\""; rank].join(", ");
    format!(
        "linalg.generic {{indexing_maps = [{map}, {map}], iterator_types = [{parallel}]}} ins(%x : {ty}) outs(%y : {ty}) {{\n\
         ^bb0(%e: {element}, %f: {element}):\n  %v = {add} %e, %f : {element}\n  linalg.yield %v : {element}\n}} -> {ty}"
    )
}

/// In a loop, a block of rows is added to the one `distance` rows behind it: in place if the two have no row in common.
fn rows(rank: usize, axis: usize, element: Element, dynamic: bool, (block, distance): (u64, u64)) -> Case {
    let whole = shape(rank, axis, 12);
    let ty = type_of(&whole, dynamic.then_some(axis), element.1);
    let part = type_of(&shape(rank, axis, block), None, element.1);
    let at = |offset: &str| slice(&whole, axis, offset, &block.to_string());
    let last = 12 - block;
    let sum = added(rank, &part, element);
    let text = format!(
        "func.func @main(%t: {ty}, %n: index) -> {ty} {{\n  %first = arith.constant {distance} : index\n  \
         %by = arith.constant {distance} : index\n  %one = arith.constant 1 : index\n  \
         %r = scf.for %i = %first to %n step %one iter_args(%a = %t) -> {ty} {{\n    %h = arith.subi %i, %by : index\n    \
         %x = tensor.extract_slice %a{} : {ty} to {part}\n    %y = tensor.extract_slice %a{} : {ty} to {part}\n    \
         %s = {sum}\n    %b = tensor.insert_slice %s into %a{} : {part} into {ty}\n    scf.yield %b : {ty}\n  }}\n  return %r : {ty}\n}}\n",
        at("%h"),
        at("%i"),
        at("%i")
    );
    let inputs = vec![tensor(element.0, &whole), index(last as i64)];
    Case { text, inputs, copies: if distance >= block { Some(0) } else { None } }
}

#[test]
fn rows_behind_others_are_updated_in_place() {
    let mut cases = Vec::new();
    for (rank, axis) in [(1, 0), (2, 0), (2, 1), (3, 1)] {
        for element in ELEMENTS {
            for dynamic in [false, true] {
                for parts in [(1, 1), (2, 2), (3, 4), (2, 1), (3, 2)] {
                    cases.push(rows(rank, axis, element, dynamic, parts));
                }
            }
        }
    }
    check_family(cases, 10);
}

/// A part is written, and one beside it read behind that: in place if they have no element in common.
fn cache(rank: usize, axis: usize, element: Element, dynamic: bool, overlap: u64) -> Case {
    let whole = shape(rank, axis, 9);
    let ty = type_of(&whole, dynamic.then_some(axis), element.1);
    let new = type_of(&shape(rank, axis, 2), None, element.1);
    let read = type_of(&whole, Some(axis), element.1);
    let (written, before) = (slice(&whole, axis, "%p", "2"), slice(&whole, axis, "0", "%m"));
    let sum = added(rank, &read, element);
    let text = format!(
        "func.func @main(%t: {ty}, %u: {new}, %y: {read}, %p: index) -> ({ty}, {read}) {{\n  \
         %o = arith.constant {overlap} : index\n  %m = arith.addi %p, %o : index\n  \
         %x = tensor.extract_slice %t{before} : {ty} to {read}\n  \
         %b = tensor.insert_slice %u into %t{written} : {new} into {ty}\n  %s = {sum}\n  return %b, %s : {ty}, {read}\n}}\n"
    );
    let sizes = shape(rank, axis, 4 + overlap);
    let dtype = element.0;
    let inputs = vec![tensor(dtype, &whole), tensor(dtype, &shape(rank, axis, 2)), tensor(dtype, &sizes), index(4)];
    // The new part is copied into its place, and the sum is written to a copy of an input that is not donated.
    Case { text, inputs, copies: Some(if overlap == 0 { 2 } else { 3 }) }
}

#[test]
fn what_lies_before_a_written_part_is_read_in_place() {
    let mut cases = Vec::new();
    for (rank, axis) in [(1, 0), (2, 0), (2, 1), (3, 0), (3, 2)] {
        for element in ELEMENTS {
            for dynamic in [false, true] {
                for overlap in [0, 0, 1, 2] {
                    cases.push(cache(rank, axis, element, dynamic, overlap));
                }
            }
        }
    }
    check_family(cases, 10);
}
