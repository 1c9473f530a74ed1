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

/// The copies of a run.
#[derive(Clone, Copy)]
pub enum Copies {
    Exactly(u64),
    Some,
    Any,
}

/// A program with its inputs, of which the first ones are donated.
pub struct Case {
    pub text: String,
    pub inputs: Vec<HostTensor>,
    pub donated: usize,
    pub copies: Copies,
    /// Bytes of the arena and of new results, where it is known.
    pub fresh_bytes: Option<u64>,
}

impl Case {
    pub fn check(&self, device: &(Device, TargetDescription)) {
        let donated: Vec<String> = (0..self.donated).map(|i| format!("arg{i}")).collect();
        let donated: Vec<&str> = donated.iter().map(String::as_str).collect();
        let (results, stats, leaks) = run(&self.text, &donated, device, &self.inputs);
        let (name, text) = (&stats.device, &self.text);
        let expected = evaluated(text, &self.inputs);
        assert_eq!(results.len(), expected.len(), "{name}: {text}");
        for (found, expected) in results.iter().zip(&expected) {
            let rounding = Tolerance { absolute: 1e-5, relative: 1e-5 };
            approx::compare(&from_runtime(found), expected, rounding).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
        }
        assert!(leaks.is_clean(), "{name}: {leaks:?}\n{text}");
        let copies = stats.counts.copies;
        let is_expected = match self.copies {
            Copies::Exactly(count) => copies == count,
            Copies::Some => copies > 0,
            Copies::Any => true,
        };
        assert!(is_expected, "{name}: {copies} copies\n{text}");
        if let Some(bytes) = self.fresh_bytes {
            // Results of one size: an allocation of the run that is not in the arena is one of them.
            let size = results[0].data().len() as u64;
            let found = stats.planned_bytes + stats.counts.allocations * size;
            assert_eq!(found, bytes, "{name}: {text}");
        }
    }
}

/// Programs of a family, of which half or fewer are twins.
const FAMILY: usize = 200;

/// Runs all programs of a family, or some of them.
pub fn check_family(cases: Vec<Case>, sample: usize) {
    let devices = devices();
    assert!(cases.len() >= FAMILY || cases.len() <= sample, "a family of {} programs", cases.len());
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
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    println!("{name}: {count} programs on {} devices, all at their bounds", devices.len());
}

/// An element type: its name in MLIR, the ops that add and multiply, and the bytes of a number.
pub type Element = (DType, &'static str, &'static str, &'static str);

pub const ELEMENTS: [Element; 2] =
    [(DType::F32, "f32", "arith.addf", "arith.mulf"), (DType::I32, "i32", "arith.addi", "arith.muli")];

/// A tensor of small numbers that differ from their neighbours.
pub fn tensor(dtype: DType, shape: &[u64]) -> HostTensor {
    tensor_from(dtype, shape, 0)
}

/// As [`tensor`], other numbers for each `first`.
pub fn tensor_from(dtype: DType, shape: &[u64], first: u64) -> HostTensor {
    let number = |i: u64| ((i + first) * 37 % 23) as i32 - 11;
    let count = shape.iter().product::<u64>();
    let bytes = (0..count).flat_map(|i| match dtype {
        DType::F32 => (number(i) as f32 * 0.5).to_le_bytes(),
        _ => number(i).to_le_bytes(),
    });
    raw(dtype, shape, &bytes.collect::<Vec<_>>())
}

/// A shape with `size` on one axis, and small sizes on the others.
pub fn shape(rank: usize, axis: usize, size: u64) -> Vec<u64> {
    let other = [3, 5, 4];
    (0..rank).map(|d| if d == axis { size } else { other[d] }).collect()
}

/// The MLIR type of a tensor, with `?` on one axis if that is dynamic.
pub fn type_of(shape: &[u64], axis: Option<usize>, element: &str) -> String {
    let sizes = shape.iter().enumerate().map(|(d, n)| if axis == Some(d) { "?x".to_owned() } else { format!("{n}x") });
    format!("tensor<{}{element}>", sizes.collect::<String>())
}

/// `[offset on the axis, 0 elsewhere] [size on the axis, all elsewhere] [1, ..]`
pub fn slice(shape: &[u64], axis: usize, offset: &str, size: &str) -> String {
    let list = |of: &dyn Fn(usize) -> String| (0..shape.len()).map(of).collect::<Vec<_>>().join(", ");
    let offsets = list(&|d| if d == axis { offset.to_owned() } else { "0".to_owned() });
    let sizes = list(&|d| if d == axis { size.to_owned() } else { shape[d].to_string() });
    format!("[{offsets}] [{sizes}] [{}]", list(&|_| "1".to_owned()))
}

/// `linalg.generic` that adds `%x` to `%y`, both of type `ty`, in the memory of `%y`.
pub fn added(rank: usize, ty: &str, (_, element, add, _): Element) -> String {
    let dims = ["i", "j", "k"][..rank].join(", ");
    let map = format!("affine_map<({dims}) -> ({dims})>");
    let parallel = vec!["\"parallel\""; rank].join(", ");
    format!(
        "linalg.generic {{indexing_maps = [{map}, {map}], iterator_types = [{parallel}]}} ins(%x : {ty}) outs(%y : {ty}) {{\n\
         ^bb0(%e: {element}, %f: {element}):\n  %v = {add} %e, %f : {element}\n  linalg.yield %v : {element}\n}} -> {ty}"
    )
}

/// Ranks, and an axis of each.
pub const AXES: [(usize, usize); 6] = [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)];

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
    Case {
        text,
        inputs,
        donated: 1,
        copies: if distance >= block { Copies::Exactly(0) } else { Copies::Some },
        fresh_bytes: None,
    }
}

#[test]
fn rows_behind_others_are_updated_in_place() {
    let mut cases = Vec::new();
    for (rank, axis) in AXES {
        for element in ELEMENTS {
            for dynamic in [false, true] {
                for parts in [(1, 1), (2, 2), (3, 4), (1, 3), (4, 5), (3, 3), (2, 1), (3, 2), (4, 2)] {
                    cases.push(rows(rank, axis, element, dynamic, parts));
                }
            }
        }
    }
    check_family(cases, 10);
}

/// Row after row of 256x256 is added to the next one.
#[test]
fn rows_are_added_to_the_next_ones_in_place() {
    let (row, ty) = ("tensor<1x256xf32>", "tensor<256x256xf32>");
    let at = |row: &str| format!("[{row}, 0] [1, 256] [1, 1]");
    let text = format!(
        "func.func @main(%t: {ty}, %n: index) -> {ty} {{\n  %one = arith.constant 1 : index\n  \
         %r = scf.for %i = %one to %n step %one iter_args(%a = %t) -> {ty} {{\n    %h = arith.subi %i, %one : index\n    \
         %x = tensor.extract_slice %a{} : {ty} to {row}\n    %y = tensor.extract_slice %a{} : {ty} to {row}\n    \
         %s = {}\n    %b = tensor.insert_slice %s into %a{} : {row} into {ty}\n    scf.yield %b : {ty}\n  }}\n  return %r : {ty}\n}}\n",
        at("%h"),
        at("%i"),
        added(2, row, ELEMENTS[0]),
        at("%i")
    );
    let inputs = vec![tensor(DType::F32, &[256, 256]), index(256)];
    let case = Case { text, inputs, donated: 1, copies: Copies::Exactly(0), fresh_bytes: Some(0) };
    devices().iter().for_each(|device| case.check(device));
}

/// A part is written, and one beside it read behind that, together with an element of the result: in place if the two parts
/// have no element in common.
fn cache(rank: usize, axis: usize, element: Element, dynamic: bool, (place, overlap): (u64, u64)) -> Case {
    let whole = shape(rank, axis, 9);
    let ty = type_of(&whole, dynamic.then_some(axis), element.1);
    let new = type_of(&shape(rank, axis, 2), None, element.1);
    let read = type_of(&whole, Some(axis), element.1);
    let (written, before) = (slice(&whole, axis, "%p", "2"), slice(&whole, axis, "0", "%m"));
    // With a number that is made behind the write, the read cannot come before it.
    let (of, add) = (element.1, element.2);
    let sum = added(rank, &read, element).replace(
        &format!("%v = {add} %e, %f : {of}"),
        &format!("%u0 = {add} %e, %k : {of}\n  %v = {add} %u0, %f : {of}"),
    );
    let zeros = vec!["%c0"; rank].join(", ");
    let text = format!(
        "func.func @main(%t: {ty}, %y: {read}, %u: {new}, %p: index) -> ({ty}, {read}) {{\n  \
         %c0 = arith.constant 0 : index\n  %o = arith.constant {overlap} : index\n  %m = arith.addi %p, %o : index\n  \
         %x = tensor.extract_slice %t{before} : {ty} to {read}\n  \
         %b = tensor.insert_slice %u into %t{written} : {new} into {ty}\n  \
         %k = tensor.extract %b[{zeros}] : {ty}\n  %s = {sum}\n  return %b, %s : {ty}, {read}\n}}\n"
    );
    let sizes = shape(rank, axis, place + overlap);
    let dtype = element.0;
    let new = tensor(dtype, &shape(rank, axis, 2));
    let inputs = vec![tensor(dtype, &whole), tensor(dtype, &sizes), new, index(place as i64)];
    // The new part is copied into its place.
    Case { text, inputs, donated: 2, copies: Copies::Exactly(if overlap == 0 { 1 } else { 2 }), fresh_bytes: None }
}

#[test]
fn what_lies_before_a_written_part_is_read_in_place() {
    let mut cases = Vec::new();
    for (rank, axis) in AXES {
        for element in ELEMENTS {
            for dynamic in [false, true] {
                for place in [2, 4, 6] {
                    for overlap in [0, 1, 2] {
                        cases.push(cache(rank, axis, element, dynamic, (place, overlap)));
                    }
                }
            }
        }
    }
    check_family(cases, 10);
}

/// Old contents are read behind the write that overwrites them. `depends`: what is read depends on what is written.
fn replaced(rank: usize, axis: usize, element: Element, dynamic: bool, (first, depends): (i64, bool)) -> Case {
    let whole = shape(rank, axis, 9);
    let ty = type_of(&whole, dynamic.then_some(axis), element.1);
    let part = type_of(&shape(rank, axis, 2), None, element.1);
    let zeros = vec!["%c0"; rank].join(", ");
    // The offset of the read: a number, or one of two by an element of the result.
    let place = if depends {
        let (of, compare, zero) = match element.1 {
            "f32" => ("f32", "arith.cmpf olt", "0.0"),
            _ => ("i32", "arith.cmpi slt", "0"),
        };
        format!(
            "  %k = tensor.extract %b[{zeros}] : {ty}\n  %l = arith.constant {zero} : {of}\n  %g = {compare}, %k, %l : {of}\n  \
             %m = arith.select %g, %p, %c1 : index\n"
        )
    } else {
        "  %m = arith.addi %p, %c1 : index\n".to_owned()
    };
    let (written, read) = (slice(&whole, axis, "%p", "2"), slice(&whole, axis, "%m", "2"));
    let sum = added(rank, &part, element);
    let text = format!(
        "func.func @main(%t: {ty}, %y: {part}, %u: {part}, %p: index) -> ({ty}, {part}) {{\n  \
         %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  \
         %b = tensor.insert_slice %u into %t{written} : {part} into {ty}\n{place}  \
         %x = tensor.extract_slice %t{read} : {ty} to {part}\n  %s = {sum}\n  return %b, %s : {ty}, {part}\n}}\n"
    );
    let dtype = element.0;
    let parts = [0, 5].map(|first| tensor_from(dtype, &shape(rank, axis, 2), first));
    let [y, u] = parts;
    let inputs = vec![tensor(dtype, &whole), y, u, index(first)];
    Case { text, inputs, donated: 2, copies: Copies::Exactly(if depends { 2 } else { 1 }), fresh_bytes: None }
}

#[test]
fn what_is_overwritten_is_read_before() {
    let mut cases = Vec::new();
    for (rank, axis) in AXES {
        for element in ELEMENTS {
            for dynamic in [false, true] {
                for place in 2..=6 {
                    for depends in [false, true] {
                        cases.push(replaced(rank, axis, element, dynamic, (place, depends)));
                    }
                }
            }
        }
    }
    check_family(cases, 8);
}

/// `linalg.generic` that adds `from`, reversed, to what is in `to`, or writes it there alone.
fn reversed(
    name: &str,
    (from, to): (&str, &str),
    (size, ty): (u64, &str),
    (_, element, add, _): Element,
    adds: bool,
) -> String {
    let sum = if adds { format!("%v = {add} %e, %f : {element}") } else { format!("%v = {add} %e, %e : {element}") };
    format!(
        "%{name} = linalg.generic {{indexing_maps = [affine_map<(i) -> ({} - i)>, affine_map<(i) -> (i)>], \
         iterator_types = [\"parallel\"]}} ins({from} : {ty}) outs({to} : {ty}) {{\n    ^bb0(%e: {element}, %f: {element}):\n      \
         {sum}\n      linalg.yield %v : {element}\n    }} -> {ty}\n",
        size - 1
    )
}

/// What a program does with an initial value of a loop behind it.
#[derive(Clone, Copy, PartialEq)]
enum Behind {
    Nothing,
    Reads,
    Overwrites,
    /// Nothing; the body reads it.
    Within,
}

/// A loop carries `count` tensors and hands each on to the next place, the last one updated by the first.
fn exchange(count: usize, trips: i64, element: Element, adds: bool, behind: Behind) -> Case {
    let (size, ty) = (8, format!("tensor<8x{}>", element.1));
    let list = |of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(", ");
    let types = list(&|_| ty.clone());
    let arguments = list(&|i| format!("%x{i}: {ty}"));
    let carried = list(&|i| format!("%a{i} = %x{i}"));
    let update = reversed("w", ("%a0", &format!("%a{}", count - 1)), (size, &ty), element, adds);
    let within = reversed("u", ("%x0", "%w"), (size, &ty), element, true);
    let (update, made) =
        if behind == Behind::Within { (format!("{update}    {within}"), "%u") } else { (update, "%w") };
    let yielded = list(&|i| if i == 0 { made.to_owned() } else { format!("%a{}", i - 1) });
    let (more, last) = match behind {
        Behind::Nothing | Behind::Within => (String::new(), format!("%r#{}", count - 1)),
        Behind::Reads => (
            format!("  {}", reversed("q", ("%x0", &format!("%r#{}", count - 1)), (size, &ty), element, true)),
            "%q".to_owned(),
        ),
        Behind::Overwrites => {
            let zero = if element.1 == "f32" { "0.5" } else { "7" };
            let fill = format!(
                "  %z = arith.constant {zero} : {0}\n  %q = linalg.fill ins(%z : {0}) outs(%x1 : {ty}) -> {ty}\n",
                element.1
            );
            (fill, "%q".to_owned())
        }
    };
    let results = list(&|i| if i + 1 == count { last.clone() } else { format!("%r#{i}") });
    let text = format!(
        "func.func @main({arguments}, %n: index) -> ({types}) {{\n  %c0 = arith.constant 0 : index\n  \
         %c1 = arith.constant 1 : index\n  %r:{count} = scf.for %i = %c0 to %n step %c1 iter_args({carried}) -> ({types}) {{\n    \
         {update}    scf.yield {yielded} : {types}\n  }}\n{more}  return {results} : {types}\n}}\n"
    );
    let mut inputs: Vec<HostTensor> = (0..count as u64).map(|i| tensor_from(element.0, &[size], 3 * i)).collect();
    inputs.push(index(trips));
    let copies = match behind {
        Behind::Nothing => Copies::Exactly(0),
        Behind::Reads => Copies::Some,
        // The buffer of the initial value holds another argument in the second iteration.
        Behind::Within => {
            if trips > 0 {
                Copies::Some
            } else {
                Copies::Any
            }
        }
        // Contents that nothing reads are not copied.
        Behind::Overwrites => Copies::Any,
    };
    Case { text, inputs, donated: count, copies, fresh_bytes: None }
}

#[test]
fn loops_exchange_buffers_without_copies() {
    let mut cases = Vec::new();
    for count in [2, 3, 4, 5] {
        for trips in [0, 1, 2, 5] {
            for element in ELEMENTS {
                for adds in [false, true] {
                    for behind in [Behind::Nothing, Behind::Reads, Behind::Overwrites, Behind::Within] {
                        cases.push(exchange(count, trips, element, adds, behind));
                    }
                }
            }
        }
    }
    check_family(cases, 16);
}

/// Whatever the sample of the family is.
#[test]
fn an_initial_value_that_the_body_reads_is_kept() {
    let cases = [(2, false), (3, true)].map(|(count, adds)| exchange(count, 5, ELEMENTS[0], adds, Behind::Within));
    check_family(cases.into(), 2);
}

/// A chain of products, of which no step is in place. `kept`: the input is a result, too, and its buffer never free.
fn chain(steps: usize, size: u64, element: Element, donated: bool, kept: bool) -> Case {
    let (of, zero) = (element.1, if element.1 == "f32" { "0.0" } else { "0" });
    let ty = format!("tensor<{size}x{size}x{of}>");
    let types = if kept { format!("({ty}, {ty})") } else { ty.clone() };
    let mut text = format!("func.func @main(%v0: {ty}, %w: {ty}) -> {types} {{\n  %z = arith.constant {zero} : {of}\n");
    for step in 1..=steps {
        let before = step - 1;
        text += &format!(
            "  %e{step} = tensor.empty() : {ty}\n  %f{step} = linalg.fill ins(%z : {of}) outs(%e{step} : {ty}) -> {ty}\n  \
             %v{step} = linalg.matmul ins(%v{before}, %w : {ty}, {ty}) outs(%f{step} : {ty}) -> {ty}\n"
        );
    }
    let (also, types) = if kept { (", %v0", format!("{ty}, {ty}")) } else { ("", ty) };
    text += &format!("  return %v{steps}{also} : {types}\n}}\n");
    // Each product moves the columns, so that values stay exact.
    let moves = (0..size * size).flat_map(|i| {
        let is_one = i % size == (i / size + 1) % size;
        if element.1 == "f32" { f32::from(u8::from(is_one)).to_le_bytes() } else { i32::from(is_one).to_le_bytes() }
    });
    let shape = [size, size];
    let inputs = vec![tensor(element.0, &shape), raw(element.0, &shape, &moves.collect::<Vec<_>>())];
    // Two buffers take turns, of which one may be the input's. An input that is not donated is copied to be a result.
    let buffers = if steps == 1 || (donated && !kept) { 1 } else { 2 } + u64::from(kept && !donated);
    let copies = Copies::Exactly(u64::from(kept && !donated));
    Case { text, inputs, donated: usize::from(donated), copies, fresh_bytes: Some(buffers * size * size * 4) }
}

#[test]
fn what_has_served_its_purpose_is_used_again() {
    let mut cases = Vec::new();
    for steps in 1..=7 {
        for size in [16, 8, 24, 40] {
            for element in ELEMENTS {
                for (donated, kept) in [(true, false), (true, true), (false, false), (false, true)] {
                    cases.push(chain(steps, size, element, donated, kept));
                }
            }
        }
    }
    check_family(cases, 12);
}

/// `xwww` of 256x256, where `x` is donated: one buffer besides it.
#[test]
fn three_products_of_a_donated_input() {
    let case = chain(3, 256, ELEMENTS[0], true, false);
    assert_eq!(case.fresh_bytes, Some(262_144));
    devices().iter().for_each(|device| case.check(device));
}

/// Steps on random earlier values, in place or not, loops that exchange two of them, and random results.
fn random_program(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let element = ELEMENTS[random.below(2) as usize];
    let (size, ty) = (12, format!("tensor<12x{}>", element.1));
    let inputs = 1 + random.below(3) as usize;
    let arguments: Vec<String> = (0..inputs).map(|i| format!("%x{i}: {ty}")).collect();
    let mut known: Vec<String> = (0..inputs).map(|i| format!("%x{i}")).collect();
    let mut body = "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n".to_owned();
    for step in 0..2 + random.below(7) {
        let pick =
            |random: &mut Random| known[random.below(u32::try_from(known.len()).expect("small")) as usize].clone();
        let (from, to) = (pick(&mut random), pick(&mut random));
        let name = format!("s{step}");
        match random.below(5) {
            0 => body += &format!("  {}", reversed(&name, (&from, &to), (size, &ty), element, true)),
            1 if from != to => {
                let update = reversed("w", ("%a", "%b"), (size, &ty), element, random.below(2) == 0);
                body += &format!(
                    "  %{name}:2 = scf.for %i{step} = %c0 to %n step %c1 iter_args(%a = {from}, %b = {to}) -> ({ty}, {ty}) {{\n    \
                     {update}    scf.yield %w, %a : {ty}, {ty}\n  }}\n"
                );
                known.push(format!("%{name}#1"));
                known.push(format!("%{name}#0"));
                continue;
            }
            _ => {
                body += &format!("  %e{step} = tensor.empty() : {ty}\n  ");
                body += &reversed(&name, (&from, &format!("%e{step}")), (size, &ty), element, false);
            }
        }
        known.push(format!("%{name}"));
    }
    let count = 1 + random.below(2) as usize;
    let results: Vec<String> = (0..count)
        .map(|i| {
            if i == 0 {
                known[known.len() - 1].clone()
            } else {
                known[random.below(known.len() as u32) as usize].clone()
            }
        })
        .collect();
    let types = vec![ty.clone(); count].join(", ");
    let text = format!(
        "func.func @main({}, %n: index) -> ({types}) {{\n{body}  return {} : {types}\n}}\n",
        arguments.join(", "),
        results.join(", ")
    );
    let mut values: Vec<HostTensor> = (0..inputs as u64).map(|i| tensor_from(element.0, &[size], 7 * i)).collect();
    values.push(index(i64::from(random.below(4))));
    let donated = random.below(inputs as u32 + 1) as usize;
    Case { text, inputs: values, donated, copies: Copies::Any, fresh_bytes: None }
}

/// Values in buffers that others had are right, whatever else uses those.
#[test]
fn random_programs_on_few_buffers_are_right() {
    let cases = (0..400).map(random_program).collect();
    check_family(cases, 40);
}

/// `%name = %a @ %b` for f32 matrices of `size`.
fn product(name: &str, a: &str, b: &str, size: u64) -> String {
    let ty = format!("tensor<{size}x{size}xf32>");
    format!(
        "  %e{name} = tensor.empty() : {ty}\n  %f{name} = linalg.fill ins(%z : f32) outs(%e{name} : {ty}) -> {ty}\n  \
         %{name} = linalg.matmul ins({a}, {b} : {ty}, {ty}) outs(%f{name} : {ty}) -> {ty}\n"
    )
}

/// A product, one of it, and the first again, column by column: both are computed where they belong, and one is copied.
/// (Row by row a GPU copies it twice: no command copies within one buffer.)
#[test]
fn what_is_put_together_is_computed_there() {
    for size in [64, 96, 40, 256] {
        let ty = format!("tensor<{size}x{size}xf32>");
        let whole = type_of(&[size, 3 * size], None, "f32");
        let text = format!(
            "func.func @main(%x: {ty}, %w: {ty}) -> {whole} {{\n  %z = arith.constant 0.0 : f32\n{}{}  \
             %r = tensor.concat dim(1) %q, %a, %q : ({ty}, {ty}, {ty}) -> {whole}\n  return %r : {whole}\n}}\n",
            product("q", "%x", "%w", size),
            product("a", "%q", "%w", size)
        );
        // One element of each row and column, so that values stay exact.
        let moves: Vec<u8> = (0..size * size)
            .flat_map(|i| f32::from(u8::from(i % size == (i / size + 1) % size)).to_le_bytes())
            .collect();
        let inputs = vec![tensor(DType::F32, &[size, size]), raw(DType::F32, &[size, size], &moves)];
        let fresh_bytes = Some(3 * size * size * 4);
        let case = Case { text, inputs, donated: 0, copies: Copies::Exactly(1), fresh_bytes };
        devices().iter().for_each(|device| case.check(device));
    }
}
