//! Families of programs whose loops and branches compute in a buffer that is there: in that of the result that they are joined to, in one
//! of their own, in that of the other branch. Each program has a twin that must copy.

use crate::host::{index, raw};
use crate::minimal::{AXES, Case, Copies, ELEMENTS, Element, check_family, tensor_from, type_of};
use crate::minimal_results::{Sizes, family, turned};
use monopour::program::DType;
use monopour::runtime::HostTensor;

/// A tensor that is twice `from`, element by element, in `to`.
fn doubled(sizes: &Sizes, name: &str, from: &str, to: &str) -> String {
    turned(name, (from, to), (sizes.rank, sizes.axis, None), &sizes.ty(sizes.size), sizes.element)
}

/// `%x` in a loop, each iteration in a new tensor.
fn repeated(sizes: &Sizes) -> String {
    let ty = sizes.ty(sizes.size);
    format!(
        "  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> ({ty}) {{\n{}{}    scf.yield %s : {ty}\n  }}\n",
        sizes.empty("new"),
        doubled(sizes, "s", "%a", "%new")
    )
}

/// A loop begins with an input that must stay; its result is joined to another tensor: the input is copied to where the result is
/// joined, and so is the other tensor. Twin: the loop's result is a result, too.
fn joined(sizes: &Sizes, (trips, is_first): (i64, bool), is_twin: bool) -> Case {
    let (ty, size) = (sizes.ty(sizes.size), sizes.size);
    let whole = sizes.ty(2 * size);
    let (first, second) = if is_first { ("%r", "%y") } else { ("%y", "%r") };
    let (also, results, types) = if is_twin {
        (", %r", format!("({whole}, {ty})"), format!("{whole}, {ty}"))
    } else {
        ("", whole.clone(), whole.clone())
    };
    let text = format!(
        "func.func @main(%x: {ty}, %y: {ty}, %n: index) -> {results} {{\n{}{}  \
         %j = tensor.concat dim({}) {first}, {second} : ({ty}, {ty}) -> {whole}\n  return %j{also} : {types}\n}}\n",
        sizes.constants(),
        repeated(sizes),
        sizes.axis
    );
    let inputs = vec![sizes.tensor(size, 1), sizes.tensor(size, 4), index(trips)];
    Case { text, inputs, donated: 0, copies: Copies::Exactly(2 + u64::from(is_twin)), fresh_bytes: None }
}

#[test]
fn what_loops_make_of_an_input_is_made_where_it_is_joined() {
    // Two buffers are exchanged by a loop of dynamic size: its result is in one of its own.
    let mut cases = vec![];
    for ((rank, axis), element) in AXES.into_iter().flat_map(|place| ELEMENTS.map(|element| (place, element))) {
        let sizes = Sizes { rank, axis, size: 6, element, dynamic: false };
        let parameters = (0..5).flat_map(|trips| [true, false].map(|is_first| (trips, is_first)));
        cases.extend(parameters.flat_map(|parameter| [false, true].map(|is_twin| joined(&sizes, parameter, is_twin))));
    }
    check_family(cases, 10);
}

/// A loop makes its tensor in one that is shared with an op before it, as it is once equal ops are merged. Twin: what the loop begins
/// with is a result, too.
fn shared(sizes: &Sizes, (trips, before): (i64, usize), is_twin: bool) -> Case {
    let (ty, size) = (sizes.ty(sizes.size), sizes.size);
    let names: Vec<String> = (0..before).map(|b| format!("b{b}")).collect();
    let list = |of: &dyn Fn(&String) -> String| names.iter().map(of).collect::<Vec<_>>().join("");
    // Each from the one before.
    let from = |b: usize| if b == 0 { "%y".to_owned() } else { format!("%b{}", b - 1) };
    let made: String = (0..before).map(|b| doubled(sizes, &format!("b{b}"), &from(b), "%new")).collect();
    let (also, types) = (list(&|name| format!(", %{name}")), list(&|_| format!(", {ty}")));
    let (also, types) = if is_twin { (format!("{also}, %x"), format!("{types}, {ty}")) } else { (also, types) };
    let text = format!(
        "func.func @main(%x: {ty}, %y: {ty}, %n: index) -> ({ty}{types}) {{\n{}{}{made}  \
         %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> ({ty}) {{\n{}    scf.yield %s : {ty}\n  }}\n  \
         return %r{also} : {ty}{types}\n}}\n",
        sizes.constants(),
        sizes.empty("new"),
        doubled(sizes, "s", "%a", "%new")
    );
    let inputs = vec![sizes.tensor(size, 1), sizes.tensor(size, 4), index(trips)];
    let copies = if is_twin { Copies::Some } else { Copies::Exactly(0) };
    Case { text, inputs, donated: 1, copies, fresh_bytes: None }
}

#[test]
fn loops_make_their_tensors_in_their_own() {
    check_family(family(6, &[(1, 1), (2, 1), (4, 1), (3, 2), (5, 3)], shared), 10);
}

fn condition(holds: bool) -> HostTensor {
    raw(DType::I1, &[], &[u8::from(holds)])
}

/// One branch makes its tensor of what the other one yields: in its buffer. Twin: what both begin with is a result, too.
fn branched(sizes: &Sizes, (holds, updates): (bool, usize), is_twin: bool) -> Case {
    let (ty, size) = (sizes.ty(sizes.size), sizes.size);
    let step = |u: usize| {
        let (name, to) = (format!("u{}", u + 1), format!("v{u}"));
        format!("{}{}", sizes.empty(&to), doubled(sizes, &name, &format!("%u{u}"), &format!("%{to}")))
    };
    let steps: String = (0..updates).map(step).collect();
    let (also, results, types) =
        if is_twin { (", %u0", format!("({ty}, {ty})"), format!("{ty}, {ty}")) } else { ("", ty.clone(), ty.clone()) };
    let text = format!(
        "func.func @main(%x: {ty}, %p: i1) -> {results} {{\n{}{}  %r = scf.if %p -> ({ty}) {{\n{steps}    \
         scf.yield %u{updates} : {ty}\n  }} else {{\n    scf.yield %u0 : {ty}\n  }}\n  return %r{also} : {types}\n}}\n",
        sizes.constants(),
        sizes.made("u0", "%x")
    );
    let inputs = vec![sizes.tensor(size, 1), condition(holds)];
    // The twin gives out one tensor twice if no branch makes another one.
    let copies = Copies::Exactly(u64::from(is_twin && !holds));
    let fresh_bytes = Some(sizes.bytes(size)).filter(|_| !is_twin && !sizes.dynamic);
    Case { text, inputs, donated: 0, copies, fresh_bytes }
}

#[test]
fn branches_compute_in_the_buffer_of_the_other_one() {
    check_family(family(6, &[(true, 1), (false, 1), (true, 2), (false, 3), (true, 3)], branched), 10);
}

/// Both branches make a tensor that is joined to another one: each makes it inside of the result. Twin: it is a result, too.
fn chosen(sizes: &Sizes, (holds, is_first): (bool, bool), is_twin: bool) -> Case {
    let (ty, size) = (sizes.ty(sizes.size), sizes.size);
    let whole = sizes.ty(2 * size);
    let made = |name: &str, from: &str| {
        let to = format!("e{name}");
        format!("{}{}", sizes.empty(&to), doubled(sizes, name, from, &format!("%{to}")))
    };
    let (first, second) = if is_first { ("%r", "%o") } else { ("%o", "%r") };
    let (also, types) = if is_twin { (", %r", format!("{whole}, {ty}")) } else { ("", whole.clone()) };
    let text = format!(
        "func.func @main(%x: {ty}, %y: {ty}, %p: i1) -> ({types}) {{\n{}  %r = scf.if %p -> ({ty}) {{\n{}    \
         scf.yield %a : {ty}\n  }} else {{\n{}    scf.yield %b : {ty}\n  }}\n{}  \
         %j = tensor.concat dim({}) {first}, {second} : ({ty}, {ty}) -> {whole}\n  return %j{also} : {types}\n}}\n",
        sizes.constants(),
        made("a", "%x"),
        made("b", "%y"),
        made("o", "%y"),
        sizes.axis
    );
    let inputs = vec![sizes.tensor(size, 1), sizes.tensor(size, 4), condition(holds)];
    Case { text, inputs, donated: 0, copies: Copies::Exactly(u64::from(is_twin)), fresh_bytes: None }
}

#[test]
fn what_branches_make_is_made_where_it_is_joined() {
    let parameters = [true, false].map(|holds| [true, false].map(|is_first| (holds, is_first)));
    check_family([6, 9].into_iter().flat_map(|size| family(size, parameters.as_flattened(), chosen)).collect(), 10);
}

/// How a value is seen where it is joined.
#[derive(Clone, Copy, PartialEq)]
enum View {
    /// The axis in two, of three elements the second.
    Split,
    /// The axis and a neighbour in one.
    Merged,
    /// The axis and a neighbour exchanged.
    Exchanged,
}

impl View {
    /// The first of the axis and its neighbour.
    fn at(sizes: &Sizes) -> usize {
        sizes.axis.min(sizes.rank - 2)
    }

    /// The shape of a value as it is seen.
    fn shape(self, sizes: &Sizes) -> Vec<u64> {
        let (mut shape, axis) = (sizes.shape(sizes.size), sizes.axis);
        match self {
            Self::Split => drop(shape.splice(axis..=axis, [sizes.size / 3, 3])),
            Self::Merged => {
                let at = Self::at(sizes);
                shape[at] *= shape.remove(at + 1);
            }
            Self::Exchanged => shape.swap(Self::at(sizes), Self::at(sizes) + 1),
        }
        shape
    }

    /// The axis of the shape whose size is not known.
    fn dynamic(self, sizes: &Sizes) -> Option<usize> {
        let (at, axis) = (sizes.rank.checked_sub(2).map_or(0, |last| sizes.axis.min(last)), sizes.axis);
        let seen = match self {
            Self::Split => axis,
            Self::Merged => at,
            Self::Exchanged => 2 * at + 1 - axis,
        };
        sizes.dynamic.then_some(seen)
    }

    /// `%name`, which sees `from`.
    fn op(self, sizes: &Sizes, name: &str, from: &str) -> String {
        let (ty, rank, axis) = (sizes.ty(sizes.size), sizes.rank, sizes.axis);
        let (shape, dynamic) = (self.shape(sizes), self.dynamic(sizes));
        let to = type_of(&shape, dynamic, sizes.element.1);
        let groups = |count: usize, at: usize| {
            let group = |d: usize| match d.cmp(&at) {
                std::cmp::Ordering::Less => format!("[{d}]"),
                std::cmp::Ordering::Equal => format!("[{d}, {}]", d + 1),
                std::cmp::Ordering::Greater => format!("[{}]", d + 1),
            };
            (0..count).map(group).collect::<Vec<_>>().join(", ")
        };
        let extents = |known: &str| {
            let extent = |(d, n): (usize, &u64)| if dynamic == Some(d) { known.to_owned() } else { n.to_string() };
            shape.iter().enumerate().map(extent).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Split => format!(
                "  %three{name} = arith.constant 3 : index\n  %h{name} = arith.divui %d, %three{name} : index\n  \
                 %{name} = tensor.expand_shape {from} [{}] output_shape [{}] : {ty} into {to}\n",
                groups(rank, axis),
                extents(&format!("%h{name}"))
            ),
            Self::Merged => {
                format!(
                    "  %{name} = tensor.collapse_shape {from} [{}] : {ty} into {to}\n",
                    groups(rank - 1, Self::at(sizes))
                )
            }
            Self::Exchanged => {
                let mut order: Vec<usize> = (0..rank).collect();
                order.swap(Self::at(sizes), Self::at(sizes) + 1);
                let size = if sizes.dynamic { "%d" } else { "" };
                format!(
                    "  %to{name} = tensor.empty({size}) : {to}\n  \
                     %{name} = linalg.transpose ins({from} : {ty}) outs(%to{name} : {to}) permutation = {order:?}\n"
                )
            }
        }
    }
}

/// Two values are made and joined as another shape: each is made inside of the result. Twin: the first one is a result as it was made,
/// or the second one is an input where the shape is that of an op of its own.
fn viewed(sizes: &Sizes, (view, is_last): (View, bool), is_twin: bool) -> Case {
    let (ty, shape, dynamic) = (sizes.ty(sizes.size), view.shape(sizes), view.dynamic(sizes));
    let element = sizes.element.1;
    // Threes with other elements between them are not the elements of one axis.
    let is_split_last = view == View::Split && sizes.axis + 1 == sizes.rank;
    let axis = if is_last { shape.len() - 1 - usize::from(is_split_last) } else { 0 };
    let mut whole = shape.clone();
    whole[axis] *= 2;
    let (seen, whole) = (type_of(&shape, dynamic, element), type_of(&whole, dynamic, element));
    let is_input = is_twin && view == View::Exchanged;
    let also = is_twin && !is_input;
    let second =
        if is_input { String::new() } else { format!("{}{}", sizes.made("u1", "%y"), view.op(sizes, "v1", "%u1")) };
    let (from, given) = if is_input { ("%y", &seen) } else { ("%v1", &ty) };
    let (more, types) = if also { (", %u0", format!("{whole}, {ty}")) } else { ("", whole.clone()) };
    let text = format!(
        "func.func @main(%x: {ty}, %y: {given}) -> ({types}) {{\n{}{}{}{second}  \
         %j = tensor.concat dim({axis}) %v0, {from} : ({seen}, {seen}) -> {whole}\n  return %j{more} : {types}\n}}\n",
        sizes.constants(),
        sizes.made("u0", "%x"),
        view.op(sizes, "v0", "%u0")
    );
    let of_given = if is_input { shape } else { sizes.shape(sizes.size) };
    let inputs = vec![sizes.tensor(sizes.size, 1), tensor_from(sizes.element.0, &of_given, 5)];
    let fresh_bytes = Some(2 * sizes.bytes(sizes.size)).filter(|_| !also && !sizes.dynamic);
    Case { text, inputs, donated: 0, copies: Copies::Exactly(u64::from(is_twin)), fresh_bytes }
}

#[test]
fn what_is_joined_as_another_shape_is_computed_there() {
    let mut cases = vec![];
    for ((rank, axis), element) in AXES.into_iter().flat_map(|place| ELEMENTS.map(|element| (place, element))) {
        let views = [View::Split, View::Merged, View::Exchanged];
        for view in views.into_iter().filter(|view| *view == View::Split || rank > 1) {
            for (dynamic, is_last) in [false, true].into_iter().flat_map(|dynamic| [(dynamic, false), (dynamic, true)])
            {
                let sizes = Sizes { rank, axis, size: 6, element, dynamic };
                cases.extend([false, true].map(|is_twin| viewed(&sizes, (view, is_last), is_twin)));
            }
        }
    }
    check_family(cases, 10);
}

/// Two values of which no size is static are made, flattened and joined: each is made inside of the result. Twin: the first one is a
/// result as it was made.
fn flattened(shapes: [&[u64]; 2], element: Element, is_twin: bool) -> Case {
    let (rank, name) = (shapes[0].len(), element.1);
    let (ty, flat) = (format!("tensor<{}{name}>", "?x".repeat(rank)), format!("tensor<?x{name}>"));
    let list = |of: &dyn Fn(usize) -> String, by: &str| (0..rank).map(of).collect::<Vec<_>>().join(by);
    let axes = list(&|d| format!("  %c{d} = arith.constant {d} : index\n"), "");
    let made = |v: &str| {
        format!(
            "{}  %e{v} = tensor.empty({}) : {ty}\n{}  %m{v} = tensor.collapse_shape %u{v} [[{}]] : {ty} into {flat}\n",
            list(&|d| format!("  %{v}{d} = tensor.dim %{v}, %c{d} : {ty}\n"), ""),
            list(&|d| format!("%{v}{d}"), ", "),
            turned(&format!("u{v}"), (&format!("%{v}"), &format!("%e{v}")), (rank, 0, None), &ty, element),
            list(&|d| d.to_string(), ", ")
        )
    };
    let (more, types) = if is_twin { (", %ux", format!("{flat}, {ty}")) } else { ("", flat.clone()) };
    let text = format!(
        "func.func @main(%x: {ty}, %y: {ty}) -> ({types}) {{\n{axes}{}{}  \
         %j = tensor.concat dim(0) %mx, %my : ({flat}, {flat}) -> {flat}\n  return %j{more} : {types}\n}}\n",
        made("x"),
        made("y")
    );
    let inputs = [1, 5].into_iter().zip(shapes).map(|(first, shape)| tensor_from(element.0, shape, first)).collect();
    Case { text, inputs, donated: 0, copies: Copies::Exactly(u64::from(is_twin)), fresh_bytes: None }
}

#[test]
fn what_is_joined_flat_is_computed_there() {
    let shapes: [[&[u64]; 2]; 4] =
        [[&[2, 3], &[4, 5]], [&[4, 0], &[1, 7]], [&[2, 3, 4], &[3, 1, 2]], [&[0, 3, 2], &[2, 0, 9]]];
    let twins = shapes.into_iter().flat_map(|shapes| [(shapes, false), (shapes, true)]);
    // Of nothing there is nothing to copy.
    let twins = twins.filter(|(shapes, is_twin)| !is_twin || !shapes[0].contains(&0));
    check_family(twins.flat_map(|(shapes, is_twin)| ELEMENTS.map(|e| flattened(shapes, e, is_twin))).collect(), 12);
}
