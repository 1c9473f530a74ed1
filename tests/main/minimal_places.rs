//! Families of programs whose loops and branches compute in a buffer that is there: in that of the result that they are joined to, in one
//! of their own, in that of the other branch. Each program has a twin that must copy.

use crate::host::{index, raw};
use crate::minimal::{AXES, Case, Copies, ELEMENTS, check_family};
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
