//! Values that loops and conditions carry: tensors that grow, and tensors selected among inputs.

use super::case::{Case, USUAL};
use crate::host_tensor::Dtype;
use crate::text::Input;

pub(super) fn cases() -> Vec<Case> {
    vec![
        grows("grows_from_cast", "%x", "tensor<3xf32>"),
        grows("grows_from_cast_of_computed", "%e", "tensor<3xf32>"),
        grows_in_while(),
        chosen_is_read("chosen_is_read", "%x", "%y"),
        chosen_is_read("chosen_or_computed_is_read", "%x", "%e"),
        chosen_by_data_is_read(),
        read_of_both(),
        forall("forall_reads_others", "%j"),
        forall("forall_reads_its_own", "%i"),
    ]
}

fn case(name: &str, text: &str, inputs: Vec<Input>) -> Case {
    Case { tolerance: USUAL, ..Case::of_text(&format!("carried/{name}"), text, inputs) }
}

/// A loop appends two elements per iteration to a tensor of static initial size.
fn grows(name: &str, first: &str, ty: &str) -> Case {
    let text = format!(
        "func.func @main(%x: tensor<3xf32>, %y: tensor<2xf32>, %n: index) -> tensor<?xf32> {{\n  \
         %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %o = tensor.empty() : tensor<3xf32>\n  \
         %e = linalg.exp ins(%x : tensor<3xf32>) outs(%o : tensor<3xf32>) -> tensor<3xf32>\n  \
         %first = tensor.cast {first} : {ty} to tensor<?xf32>\n  \
         %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %first) -> (tensor<?xf32>) {{\n    \
         %g = tensor.concat dim(0) %t, %y : (tensor<?xf32>, tensor<2xf32>) -> tensor<?xf32>\n    \
         scf.yield %g : tensor<?xf32>\n  }}\n  return %r : tensor<?xf32>\n}}\n"
    );
    let inputs = vec![
        Input::new(Dtype::F32, &[3]),
        Input::new(Dtype::F32, &[2]),
        Input::new(Dtype::Index, &[]).within(4.0, 5.0),
    ];
    case(name, &text, inputs)
}

fn grows_in_while() -> Case {
    let text = "func.func @main(%x: tensor<3xf32>, %y: tensor<2xf32>, %n: index) -> (tensor<?xf32>, index) {\n  \
         %c0 = arith.constant 0 : index\n  %first = tensor.cast %x : tensor<3xf32> to tensor<?xf32>\n  \
         %r = scf.while (%t = %first) : (tensor<?xf32>) -> tensor<?xf32> {\n    \
         %size = tensor.dim %t, %c0 : tensor<?xf32>\n    %more = arith.cmpi ult, %size, %n : index\n    \
         scf.condition(%more) %t : tensor<?xf32>\n  } do {\n  ^bb0(%t: tensor<?xf32>):\n    \
         %g = tensor.concat dim(0) %t, %y : (tensor<?xf32>, tensor<2xf32>) -> tensor<?xf32>\n    \
         scf.yield %g : tensor<?xf32>\n  }\n  %s = tensor.dim %r, %c0 : tensor<?xf32>\n  \
         return %r, %s : tensor<?xf32>, index\n}\n";
    let inputs = vec![
        Input::new(Dtype::F32, &[3]),
        Input::new(Dtype::F32, &[2]),
        Input::new(Dtype::Index, &[]).within(8.0, 9.0),
    ];
    case("grows_in_while", text, inputs)
}

/// A kernel reads an input, which must not be bound for writing, or a buffer of the arena.
fn chosen_is_read(name: &str, then: &str, otherwise: &str) -> Case {
    let text = format!(
        "#v = affine_map<(i) -> (i)>\n\
         func.func @main(%x: tensor<40xf32>, %y: tensor<40xf32>, %k: index) -> tensor<40xf32> {{\n  \
         %c2 = arith.constant 2 : index\n  %o = tensor.empty() : tensor<40xf32>\n  \
         %e = linalg.exp ins(%y : tensor<40xf32>) outs(%o : tensor<40xf32>) -> tensor<40xf32>\n  \
         %c = arith.cmpi ult, %k, %c2 : index\n  \
         %t = scf.if %c -> (tensor<40xf32>) {{\n    scf.yield {then} : tensor<40xf32>\n  }} else {{\n    \
         scf.yield {otherwise} : tensor<40xf32>\n  }}\n  \
         %r = linalg.add ins(%t, %e : tensor<40xf32>, tensor<40xf32>) outs(%o : tensor<40xf32>) -> tensor<40xf32>\n  \
         return %r : tensor<40xf32>\n}}\n"
    );
    let inputs = vec![
        Input::new(Dtype::F32, &[40]),
        Input::new(Dtype::F32, &[40]),
        Input::new(Dtype::Index, &[]).within(1.0, 2.0),
    ];
    case(name, &text, inputs)
}

/// The condition was read from a buffer of the arena: the selected value still is an input.
fn chosen_by_data_is_read() -> Case {
    let text = "func.func @main(%x: tensor<40xf32>, %y: tensor<40xf32>) -> tensor<40xf32> {\n  \
         %c0 = arith.constant 0 : index\n  %one = arith.constant 1.0 : f32\n  %o = tensor.empty() : tensor<40xf32>\n  \
         %e = linalg.exp ins(%y : tensor<40xf32>) outs(%o : tensor<40xf32>) -> tensor<40xf32>\n  \
         %v = tensor.extract %e[%c0] : tensor<40xf32>\n  %c = arith.cmpf olt, %v, %one : f32\n  \
         %t = scf.if %c -> (tensor<40xf32>) {\n    scf.yield %x : tensor<40xf32>\n  } else {\n    \
         scf.yield %y : tensor<40xf32>\n  }\n  \
         %r = linalg.add ins(%t, %e : tensor<40xf32>, tensor<40xf32>) outs(%o : tensor<40xf32>) -> tensor<40xf32>\n  \
         return %r : tensor<40xf32>\n}\n";
    case("chosen_by_data_is_read", text, vec![Input::new(Dtype::F32, &[40]), Input::new(Dtype::F32, &[40])])
}

/// A loop reads an input in its first iteration and its own result in all others: one kernel, bound to both.
fn read_of_both() -> Case {
    let text = "func.func @main(%x: tensor<40xf32>, %n: index) -> tensor<40xf32> {\n  \
         %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %o = tensor.empty() : tensor<40xf32>\n  \
         %last = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<40xf32>) {\n    \
         %a = linalg.tanh ins(%t : tensor<40xf32>) outs(%o : tensor<40xf32>) -> tensor<40xf32>\n    \
         scf.yield %a : tensor<40xf32>\n  }\n  \
         %r = linalg.exp ins(%last : tensor<40xf32>) outs(%o : tensor<40xf32>) -> tensor<40xf32>\n  \
         return %r : tensor<40xf32>\n}\n";
    let inputs = vec![Input::new(Dtype::F32, &[40]), Input::new(Dtype::Index, &[]).within(3.0, 4.0)];
    case("read_of_both", text, inputs)
}

/// Iterations read the initial outputs, also where others have inserted by then.
fn forall(name: &str, read: &str) -> Case {
    let text = format!(
        "func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {{\n  %c4 = arith.constant 4 : index\n  \
         %o = tensor.empty() : tensor<5xf32>\n  \
         %e = linalg.exp ins(%x : tensor<5xf32>) outs(%o : tensor<5xf32>) -> tensor<5xf32>\n  \
         %r = scf.forall (%i) in (5) shared_outs(%t = %e) -> (tensor<5xf32>) {{\n    \
         %j = arith.subi %c4, %i : index\n    \
         %s = tensor.extract_slice %t[{read}] [1] [1] : tensor<5xf32> to tensor<1xf32>\n    \
         %n = linalg.negf ins(%s : tensor<1xf32>) outs(%s : tensor<1xf32>) -> tensor<1xf32>\n    \
         scf.forall.in_parallel {{\n      \
         tensor.parallel_insert_slice %n into %t[%i] [1] [1] : tensor<1xf32> into tensor<5xf32>\n    }}\n  }}\n  \
         return %r : tensor<5xf32>\n}}\n"
    );
    case(name, &text, vec![Input::new(Dtype::F32, &[5])])
}
