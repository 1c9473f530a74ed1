//! Families of programs whose values are computed where their result belongs: inside of a pad, also of what they are joined to, of a
//! branch, of one of two that are selected, of a loop with a condition of its own. Each program has a twin that must copy.

use crate::backend::to_runtime;
use crate::host::{compare, devices, evaluated, index, run};
use crate::minimal::{AXES, Case, Copies, ELEMENTS, Element, added, check_family, shape, slice, tensor_from, type_of};
use monopour::runtime::HostTensor;

/// A loop of parallel dimensions that writes twice `from`, reversed on an axis if its `size` is given, to `to`.
pub fn turned(
    name: &str,
    (from, to): (&str, &str),
    (rank, axis, size): (usize, usize, Option<u64>),
    ty: &str,
    e: Element,
) -> String {
    let dims = ["i", "j", "k"];
    let list = |of: &dyn Fn(usize) -> String| (0..rank).map(of).collect::<Vec<_>>().join(", ");
    let (all, turned) = (
        list(&|d| dims[d].to_owned()),
        list(&|d| match size {
            Some(size) if d == axis => format!("{} - {}", size - 1, dims[d]),
            _ => dims[d].to_owned(),
        }),
    );
    let parallel = list(&|_| "\"parallel\"".to_owned());
    let (_, element, add, _) = e;
    format!(
        "  %{name} = linalg.generic {{indexing_maps = [affine_map<({all}) -> ({turned})>, affine_map<({all}) -> ({all})>], \
         iterator_types = [{parallel}]}} ins({from} : {ty}) outs({to} : {ty}) {{\n  ^bb0(%e: {element}, %f: {element}):\n    \
         %v = {add} %e, %e : {element}\n    linalg.yield %v : {element}\n  }} -> {ty}\n"
    )
}

/// Sizes of a tensor, static but for one axis.
pub struct Sizes {
    pub rank: usize,
    pub axis: usize,
    pub size: u64,
    pub element: Element,
    pub dynamic: bool,
}

impl Sizes {
    pub fn shape(&self, size: u64) -> Vec<u64> {
        shape(self.rank, self.axis, size)
    }

    pub fn ty(&self, size: u64) -> String {
        type_of(&self.shape(size), self.dynamic.then_some(self.axis), self.element.1)
    }

    pub fn tensor(&self, size: u64, first: u64) -> HostTensor {
        tensor_from(self.element.0, &self.shape(size), first)
    }

    /// A new tensor of the first argument's size.
    pub fn empty(&self, name: &str) -> String {
        let size = if self.dynamic { "%d" } else { "" };
        format!("  %{name} = tensor.empty({size}) : {}\n", self.ty(self.size))
    }

    /// The number of elements on the axis, and a zero.
    pub fn constants(&self) -> String {
        let ty = self.ty(self.size);
        let zero = if self.element.1 == "f32" { "0.0" } else { "0" };
        format!(
            "  %z = arith.constant {zero} : {}\n  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  \
             %axis = arith.constant {} : index\n  %d = tensor.dim %x, %axis : {ty}\n",
            self.element.1, self.axis
        )
    }

    /// `%name`, twice `from`, turned around, in a new tensor.
    pub fn made(&self, name: &str, from: &str) -> String {
        let place = (self.rank, self.axis, Some(self.size));
        let sum = turned(name, (from, &format!("%e{name}")), place, &self.ty(self.size), self.element);
        format!("{}{sum}", self.empty(&format!("e{name}")))
    }

    pub fn bytes(&self, size: u64) -> u64 {
        self.shape(size).iter().product::<u64>() * 4
    }
}

/// All ranks, axes, types, and static and dynamic sizes, with each of the parameters and each twin.
pub fn family<P: Copy>(size: u64, parameters: &[P], case: impl Fn(&Sizes, P, bool) -> Case) -> Vec<Case> {
    let mut cases = Vec::new();
    for (rank, axis) in AXES {
        for element in ELEMENTS {
            for dynamic in [false, true] {
                let sizes = Sizes { rank, axis, size, element, dynamic };
                for parameter in parameters {
                    cases.extend([false, true].map(|is_twin| case(&sizes, *parameter, is_twin)));
                }
            }
        }
    }
    cases
}

/// A value is made and padded: made inside of the result, where only the border is filled. Twin: an input is padded.
fn padded(sizes: &Sizes, (low, high): (u64, u64), is_twin: bool) -> Case {
    let (ty, size) = (sizes.ty(sizes.size), sizes.size + low + high);
    let (rank, axis, element) = (sizes.rank, sizes.axis, sizes.element.1);
    let list = |on: u64| (0..rank).map(|d| if d == axis { on } else { 0 }.to_string()).collect::<Vec<_>>().join(", ");
    let arguments = (0..rank).map(|d| format!("%i{d}: index")).collect::<Vec<_>>().join(", ");
    let (made, from) = if is_twin { (String::new(), "%x") } else { (sizes.made("q", "%x"), "%q") };
    let result = sizes.ty(size);
    let text = format!(
        "func.func @main(%x: {ty}) -> {result} {{\n{}{made}  %r = tensor.pad {from} low[{}] high[{}] {{\n  ^bb0({arguments}):\n    \
         tensor.yield %z : {element}\n  }} : {ty} to {result}\n  return %r : {result}\n}}\n",
        sizes.constants(),
        list(low),
        list(high)
    );
    let copies = Copies::Exactly(u64::from(is_twin));
    let fresh_bytes = Some(sizes.bytes(size)).filter(|_| !sizes.dynamic);
    Case { text, inputs: vec![sizes.tensor(sizes.size, 1)], donated: 0, copies, fresh_bytes }
}

#[test]
fn what_is_padded_is_computed_there() {
    check_family(family(7, &[(1, 1), (0, 2), (3, 0), (2, 5), (4, 4)], padded), 10);
}

/// Two values are joined, and what they are joined to is padded and read by another op: made inside of the padded result. Twin: an
/// input is joined.
fn joined(sizes: &Sizes, (low, high): (u64, u64), is_twin: bool) -> Case {
    let (ty, both) = (sizes.ty(sizes.size), 2 * sizes.size);
    let (rank, axis, element) = (sizes.rank, sizes.axis, sizes.element.1);
    let list = |on: u64| (0..rank).map(|d| if d == axis { on } else { 0 }.to_string()).collect::<Vec<_>>().join(", ");
    let arguments = (0..rank).map(|d| format!("%i{d}: index")).collect::<Vec<_>>().join(", ");
    let (whole, padded) = (sizes.ty(both), sizes.ty(both + low + high));
    let second = if is_twin { (String::new(), "%x") } else { (sizes.made("q", "%p"), "%q") };
    let empty = if sizes.dynamic { "%dj" } else { "" };
    let text = format!(
        "func.func @main(%x: {ty}) -> ({padded}, {whole}) {{\n{}{}{}  %j = tensor.concat dim({axis}) %p, {} : ({ty}, {ty}) -> {whole}\n  \
         %r = tensor.pad %j low[{}] high[{}] {{\n  ^bb0({arguments}):\n    tensor.yield %z : {element}\n  }} : {whole} to {padded}\n  \
         %dj = tensor.dim %j, %axis : {whole}\n  %es = tensor.empty({empty}) : {whole}\n{}  return %r, %s : {padded}, {whole}\n}}\n",
        sizes.constants(),
        sizes.made("p", "%x"),
        second.0,
        second.1,
        list(low),
        list(high),
        turned("s", ("%j", "%es"), (rank, axis, Some(both)), &whole, sizes.element),
    );
    let copies = Copies::Exactly(u64::from(is_twin));
    Case { text, inputs: vec![sizes.tensor(sizes.size, 1)], donated: 0, copies, fresh_bytes: None }
}

#[test]
fn what_is_joined_and_padded_is_computed_there() {
    check_family(family(7, &[(1, 1), (0, 2), (3, 0), (2, 5), (4, 4)], joined), 10);
}

/// How values are joined: how many, whether the first two are joined before, whether another op reads one of them.
#[derive(Clone, Copy)]
struct Joining {
    parts: usize,
    nested: bool,
    is_read: bool,
}

/// Values are joined on any axis: each is made inside of the result. Twin: the last one is an input.
fn put_together(sizes: &Sizes, Joining { parts, nested, is_read }: Joining, is_twin: bool) -> Case {
    let (ty, axis, all) = (sizes.ty(sizes.size), sizes.axis, parts as u64 * sizes.size);
    let of = |count: u64| sizes.ty(count * sizes.size);
    let name = |part: usize| if is_twin && part + 1 == parts { "%y".to_owned() } else { format!("%p{part}") };
    let made: String = (0..parts - usize::from(is_twin))
        .map(|part| sizes.made(&format!("p{part}"), &if part == 0 { "%x".to_owned() } else { name(part - 1) }))
        .collect();
    let joined = |result: &str, values: &[String], types: &[String], to: &str| {
        format!("  %{result} = tensor.concat dim({axis}) {} : ({}) -> {to}\n", values.join(", "), types.join(", "))
    };
    let (mut values, mut types): (Vec<String>, Vec<String>) = (0..parts).map(|part| (name(part), ty.clone())).unzip();
    let mut body = made;
    if nested {
        body += &joined("n", &values[..2], &types[..2], &of(2));
        values.splice(..2, ["%n".to_owned()]);
        types.splice(..2, [of(2)]);
    }
    body += &joined("r", &values, &types, &sizes.ty(all));
    let (also, result) = if is_read { (", %s", format!("{}, {ty}", sizes.ty(all))) } else { ("", sizes.ty(all)) };
    if is_read {
        // Not turned around, as the second one is: it would be the same value.
        body += &sizes.empty("es");
        body += &turned("s", ("%p0", "%es"), (sizes.rank, axis, None), &ty, sizes.element);
    }
    let text = format!(
        "func.func @main(%x: {ty}, %y: {ty}) -> ({result}) {{\n{}{body}  return %r{also} : {result}\n}}\n",
        sizes.constants()
    );
    let inputs = vec![sizes.tensor(sizes.size, 1), sizes.tensor(sizes.size, 9)];
    let fresh_bytes = Some(sizes.bytes(all)).filter(|_| !is_read && !sizes.dynamic);
    Case { text, inputs, donated: 0, copies: Copies::Exactly(u64::from(is_twin)), fresh_bytes }
}

const fn joining(parts: usize, nested: bool, is_read: bool) -> Joining {
    Joining { parts, nested, is_read }
}

#[test]
fn what_is_joined_is_computed_there() {
    let of = [(2, false), (3, false), (4, false), (3, true), (4, true)];
    check_family(family(7, &of.map(|(parts, nested)| joining(parts, nested, false)), put_together), 10);
}

/// Read by another op besides.
#[test]
fn what_is_joined_and_read_is_computed_there() {
    let of = [(2, false), (3, false), (4, false), (3, true), (4, true)];
    check_family(family(7, &of.map(|(parts, nested)| joining(parts, nested, true)), put_together), 10);
}

/// Parts of a donated tensor are doubled twice, one after the other, and put back. Twin: they are turned around.
fn put_back(sizes: &Sizes, (first, trips): (u64, u64), is_twin: bool) -> Case {
    let (rank, axis, ty) = (sizes.rank, sizes.axis, sizes.ty(sizes.size));
    let part = type_of(&sizes.shape(3), None, sizes.element.1);
    let at = slice(&sizes.shape(sizes.size), axis, "%at", "3");
    let step = |name: &str, from: &str, size: Option<u64>| {
        let made = turned(name, (from, &format!("%e{name}")), (rank, axis, size), &part, sizes.element);
        format!("  %e{name} = tensor.empty() : {part}\n{made}")
    };
    let text = format!(
        "func.func @main(%x: {ty}) -> {ty} {{\n{}  %first = arith.constant {first} : index\n  %c3 = arith.constant 3 : index\n  \
         %trips = arith.constant {trips} : index\n  \
         %r = scf.for %i = %c0 to %trips step %c1 iter_args(%t = %x) -> ({ty}) {{\n  %off = arith.muli %i, %c3 : index\n  \
         %at = arith.addi %off, %first : index\n  %p = tensor.extract_slice %t{at} : {ty} to {part}\n{}{}  \
         %n = tensor.insert_slice %b into %t{at} : {part} into {ty}\n  scf.yield %n : {ty}\n  }}\n  return %r : {ty}\n}}\n",
        sizes.constants(),
        step("a", "%p", None),
        step("b", "%a", is_twin.then_some(3)),
    );
    let copies = if is_twin { Copies::Some } else { Copies::Exactly(0) };
    let fresh_bytes = Some(0).filter(|_| !is_twin && !sizes.dynamic);
    Case { text, inputs: vec![sizes.tensor(sizes.size, 1)], donated: 1, copies, fresh_bytes }
}

#[test]
fn parts_are_updated_in_their_place() {
    check_family(family(12, &[(0, 1), (3, 2), (1, 3), (9, 1), (2, 2)], put_back), 8);
}

/// Each branch makes a value, which is put behind another one. Twin: a branch gives an input, which is copied there, and nothing is
/// in the other branch.
fn chosen(sizes: &Sizes, (number, parts): (i64, u64), is_twin: bool) -> Case {
    let (ty, size) = (sizes.ty(sizes.size), sizes.size);
    let whole = type_of(&sizes.shape(parts * size), None, sizes.element.1);
    let place = |part: u64| {
        let on = if sizes.dynamic { "%d".to_owned() } else { size.to_string() };
        slice(&sizes.shape(size), sizes.axis, &(part * size).to_string(), &on)
    };
    let (other, given) = if is_twin { (String::new(), "%y") } else { (sizes.made("q", "%y"), "%q") };
    let more: String = (1..parts).map(|part| format!("%u{part}: {ty}, ")).collect();
    let mut text = format!(
        "func.func @main(%x: {ty}, %y: {ty}, {more}%n: index) -> {whole} {{\n{}  %c = arith.cmpi sgt, %n, %c0 : index\n  \
         %r = scf.if %c -> {ty} {{\n{}  scf.yield %p : {ty}\n  }} else {{\n{other}  scf.yield {given} : {ty}\n  }}\n  \
         %o0 = tensor.empty() : {whole}\n",
        sizes.constants(),
        sizes.made("p", "%x")
    );
    for part in 0..parts {
        let from = if part == 0 { "%r".to_owned() } else { format!("%m{part}") };
        let (at, next) = (place(part), part + 1);
        if part > 0 {
            text += &sizes.made(&format!("m{part}"), &format!("%u{part}"));
        }
        text += &format!("  %o{next} = tensor.insert_slice {from} into %o{part}{at} : {ty} into {whole}\n");
    }
    text += &format!("  return %o{parts} : {whole}\n}}\n");
    let copies = match (is_twin, number > 0) {
        // What is inserted is known to fit where its size is: in the branches only then.
        (true, true) if sizes.dynamic => Copies::Any,
        (is_twin, is_made) => Copies::Exactly(u64::from(is_twin && !is_made)),
    };
    let mut inputs: Vec<HostTensor> = (0..=parts).map(|part| sizes.tensor(size, 1 + 3 * part)).collect();
    inputs.push(index(number));
    let fresh_bytes = Some(parts * sizes.bytes(size)).filter(|_| !sizes.dynamic);
    Case { text, inputs, donated: 0, copies, fresh_bytes }
}

#[test]
fn what_a_branch_makes_is_made_where_it_belongs() {
    check_family(family(6, &[(1, 1), (0, 1), (3, 2), (-1, 2), (0, 3)], chosen), 10);
}

/// One of two donated tensors is updated in its place. Twin: both of them are results, too, and the update needs new memory.
fn selected(sizes: &Sizes, (number, updates): (i64, u64), is_twin: bool) -> Case {
    let (ty, size) = (sizes.ty(sizes.size), sizes.size);
    let sum = |from: &str, to: &str| {
        added(sizes.rank, &ty, sizes.element)
            .replace("ins(%x", &format!("ins({from}"))
            .replace("outs(%y", &format!("outs({to}"))
    };
    let steps: String = (0..updates).map(|u| format!("  %r{} = {}\n", u + 1, sum("%t", &format!("%r{u}")))).collect();
    let both = if is_twin { format!("{ty}, {ty}, {ty}") } else { ty.clone() };
    let (also, types) = if is_twin { (", %x, %y", format!("({both})")) } else { ("", ty.clone()) };
    let text = format!(
        "func.func @main(%x: {ty}, %y: {ty}, %t: {ty}, %n: index) -> {types} {{\n{}  %c = arith.cmpi sgt, %n, %c0 : index\n  \
         %r0 = arith.select %c, %x, %y : {ty}\n{steps}  return %r{updates}{also} : {both}\n}}\n",
        sizes.constants()
    );
    let inputs = vec![sizes.tensor(size, 1), sizes.tensor(size, 4), sizes.tensor(size, 9), index(number)];
    let fresh_bytes = Some(if is_twin { sizes.bytes(size) } else { 0 }).filter(|_| !sizes.dynamic);
    Case { text, inputs, donated: 2, copies: Copies::Exactly(0), fresh_bytes }
}

#[test]
fn what_is_selected_is_updated_in_its_place() {
    check_family(family(5, &[(1, 1), (0, 1), (1, 2), (-1, 3), (2, 3)], selected), 10);
}

/// A loop with a condition updates a donated tensor. Twin: the tensor before the loop is a result, too.
fn repeated(sizes: &Sizes, (trips, updates): (i64, u64), is_twin: bool) -> Case {
    let (ty, size) = (sizes.ty(sizes.size), sizes.size);
    let sum = |to: &str| {
        added(sizes.rank, &ty, sizes.element).replace("ins(%x", "ins(%t").replace("outs(%y", &format!("outs({to}"))
    };
    let steps: String = (0..updates).map(|u| format!("    %b{} = {}\n", u + 1, sum(&format!("%b{u}")))).collect();
    let (also, types, both) =
        if is_twin { (", %x", format!("({ty}, {ty})"), format!("{ty}, {ty}")) } else { ("", ty.clone(), ty.clone()) };
    let text = format!(
        "func.func @main(%x: {ty}, %t: {ty}, %n: index) -> {types} {{\n{}  \
         %r:2 = scf.while (%a = %x, %i = %c0) : ({ty}, index) -> ({ty}, index) {{\n    %c = arith.cmpi slt, %i, %n : index\n    \
         scf.condition(%c) %a, %i : {ty}, index\n  }} do {{\n  ^bb0(%b0: {ty}, %j: index):\n{steps}    \
         %k = arith.addi %j, %c1 : index\n    scf.yield %b{updates}, %k : {ty}, index\n  }}\n  return %r#0{also} : {both}\n}}\n",
        sizes.constants()
    );
    let inputs = vec![sizes.tensor(size, 1), sizes.tensor(size, 9), index(trips)];
    let copies = if is_twin { Copies::Some } else { Copies::Exactly(0) };
    Case { text, inputs, donated: 1, copies, fresh_bytes: Some(0).filter(|_| !is_twin) }
}

#[test]
fn loops_with_a_condition_update_in_place() {
    check_family(family(5, &[(0, 1), (1, 1), (3, 1), (2, 2), (4, 3)], repeated), 10);
}

/// A loop makes its tensors anew in each iteration: each alternates between two buffers. Twin: the tensors before the loop are
/// results, too.
fn remade(sizes: &Sizes, (trips, count): (i64, usize), is_twin: bool) -> Case {
    let (ty, size) = (sizes.ty(sizes.size), sizes.size);
    let list = |of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<Vec<_>>().join(", ");
    let (types, inits) = (list(&|_| ty.clone()), list(&|i| if i == 0 { "%x".to_owned() } else { format!("%x{i}") }));
    let arguments = list(&|i| if i == 0 { format!("%x: {ty}") } else { format!("%x{i}: {ty}") });
    let carried = list(&|i| if i == 0 { "%a0 = %x".to_owned() } else { format!("%a{i} = %x{i}") });
    let steps: String = (0..count).map(|i| sizes.made(&format!("p{i}"), &format!("%a{i}"))).collect();
    let results = list(&|i| if count == 1 { "%r".to_owned() } else { format!("%r#{i}") });
    let (also, all) =
        if is_twin { (format!(", {inits}"), format!("{types}, {types}")) } else { (String::new(), types.clone()) };
    let bound = if count == 1 { "%r".to_owned() } else { format!("%r:{count}") };
    let text = format!(
        "func.func @main({arguments}, %n: index) -> ({all}) {{\n{}  \
         {bound} = scf.for %i = %c0 to %n step %c1 iter_args({carried}) -> ({types}) {{\n{steps}    \
         scf.yield {} : {types}\n  }}\n  return {results}{also} : {all}\n}}\n",
        sizes.constants(),
        list(&|i| format!("%p{i}"))
    );
    let mut inputs: Vec<HostTensor> = (0..count).map(|i| sizes.tensor(size, 1 + 5 * i as u64)).collect();
    inputs.push(index(trips));
    let copies = if is_twin { Copies::Some } else { Copies::Exactly(0) };
    let fresh_bytes = Some(count as u64 * sizes.bytes(size)).filter(|_| !is_twin && !sizes.dynamic);
    Case { text, inputs, donated: count, copies, fresh_bytes }
}

#[test]
fn what_a_loop_makes_anew_alternates_between_two_buffers() {
    check_family(family(5, &[(0, 1), (1, 1), (2, 1), (5, 1), (3, 2), (4, 3)], remade), 12);
}

/// A part of a tensor is overwritten by what is made of other parts of it: what is kept is copied to a new tensor, unless that is
/// more than what is put into it.
#[test]
fn what_an_insertion_keeps_is_copied_alone() {
    for device in &devices() {
        for (rank, axis) in AXES {
            for (first, part) in [(0, 6), (1, 6), (2, 6), (5, 3), (4, 3), (1, 3)] {
                let element = ELEMENTS[0];
                let shapes = [8, part].map(|size| shape(rank, axis, size));
                let [ty, of_part] = [8, part].map(|size| type_of(&shape(rank, axis, size), None, element.1));
                let [from, to] =
                    [8 - part, first].map(|at| slice(&shapes[1], axis, &at.to_string(), &part.to_string()));
                let text = format!(
                    "func.func @main(%x: {ty}) -> {ty} {{\n  %p = tensor.extract_slice %x{from} : {ty} to {of_part}\n  \
                     %n = tensor.empty() : {of_part}\n{}  %r = tensor.insert_slice %s into %x{to} : {of_part} into {ty}\n  \
                     return %r : {ty}\n}}\n",
                    turned("s", ("%p", "%n"), (rank, axis, Some(part)), &of_part, element)
                );
                let inputs = [tensor_from(element.0, &shapes[0], 3)];
                let (results, stats, leaks) = run(&text, &["arg0"], device, &inputs);
                compare(&text, &results, &evaluated(&text, &inputs).iter().map(to_runtime).collect::<Vec<_>>());
                let lines = shapes[0].iter().product::<u64>() / 8 * 4;
                // What is read apart from what is overwritten is in place.
                let kept = if first + part <= 8 - part { 0 } else { part.min(8 - part) };
                assert_eq!(stats.counts.copied_bytes, lines * kept, "{}: {text}", stats.device);
                assert!(leaks.is_clean());
            }
        }
    }
}
