//! Layouts: results, arguments and reshapes of a program are row-major, whatever defined them.

use super::case::{Case, f32_inputs};
use crate::host_tensor::Dtype;
use crate::text::Input;

pub(super) fn cases() -> Vec<Case> {
    [PART, WHOLE_ROWS, ONE_ROW, FLATTENED, FLATTENED_IN_CALLEE, THROUGH_CALL, OF_DYNAMIC, THROUGH_CHOICE, THROUGH_LOOP]
        .into_iter()
        .map(case)
        .collect()
}

/// Name, body, result type. All have `%e`, an 8 by 8 tensor that was computed, and the indices `%m` and `%n`, 3 and 5.
type Text = (&'static str, &'static str, &'static str);

fn case((name, body, result): Text) -> Case {
    let (before, body) = body.split_once("----\n").unwrap_or(("", body));
    let text = format!(
        "#m = affine_map<(i, j) -> (i, j)>\n#v = affine_map<(i) -> (i)>\n{before}\
         func.func @main(%x: tensor<8x8xf32>, %m: index, %n: index) -> {result} {{\n  \
         %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %i = tensor.empty() : tensor<8x8xf32>\n  \
         %e = linalg.exp ins(%x : tensor<8x8xf32>) outs(%i : tensor<8x8xf32>) -> tensor<8x8xf32>\n\
         {body}  return %r : {result}\n}}\n"
    );
    let mut inputs = f32_inputs(&[vec![8, 8]]);
    inputs.push(Input::new(Dtype::Index, &[]).within(3.0, 4.0));
    inputs.push(Input::new(Dtype::Index, &[]).within(5.0, 6.0));
    Case::of_text(&format!("layouts/{name}"), &text, inputs)
}

const PART: Text = (
    "part_of_computed",
    "  %r = tensor.extract_slice %e[0, 0] [%m, %n] [1, 1] : tensor<8x8xf32> to tensor<?x?xf32>\n",
    "tensor<?x?xf32>",
);

/// Whole rows stay contiguous.
const WHOLE_ROWS: Text = (
    "rows_of_computed",
    "  %r = tensor.extract_slice %e[0, 0] [%m, 8] [1, 1] : tensor<8x8xf32> to tensor<?x8xf32>\n",
    "tensor<?x8xf32>",
);

/// There is no second row with another stride.
const ONE_ROW: Text = (
    "row_of_computed",
    "  %r = tensor.extract_slice %e[0, 0] [1, %n] [1, 1] : tensor<8x8xf32> to tensor<1x?xf32>\n",
    "tensor<1x?xf32>",
);

const FLATTENED: Text = (
    "part_flattened",
    "  %p = tensor.extract_slice %e[0, 0] [%m, %n] [1, 1] : tensor<8x8xf32> to tensor<?x?xf32>\n  \
     %r = tensor.collapse_shape %p [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>\n",
    "tensor<?xf32>",
);

const FLATTENED_IN_CALLEE: Text = (
    "part_flattened_in_callee",
    "func.func private @flat(%p: tensor<?x?xf32>) -> tensor<?xf32> {\n  \
     %f = tensor.collapse_shape %p [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>\n  return %f : tensor<?xf32>\n}\n----\n  \
     %p = tensor.extract_slice %e[0, 0] [%m, %n] [1, 1] : tensor<8x8xf32> to tensor<?x?xf32>\n  \
     %r = call @flat(%p) : (tensor<?x?xf32>) -> tensor<?xf32>\n",
    "tensor<?xf32>",
);

const THROUGH_CALL: Text = (
    "part_through_call",
    "func.func private @same(%p: tensor<?x?xf32>, %c: i1, %q: tensor<?x?xf32>) -> tensor<?x?xf32> {\n  \
     %f = arith.select %c, %p, %q : tensor<?x?xf32>\n  return %f : tensor<?x?xf32>\n}\n----\n  \
     %p = tensor.extract_slice %e[0, 0] [%m, %n] [1, 1] : tensor<8x8xf32> to tensor<?x?xf32>\n  \
     %q = tensor.extract_slice %e[1, 2] [%m, %n] [1, 1] : tensor<8x8xf32> to tensor<?x?xf32>\n  \
     %c = arith.cmpi ult, %m, %n : index\n  \
     %r = call @same(%p, %c, %q) : (tensor<?x?xf32>, i1, tensor<?x?xf32>) -> tensor<?x?xf32>\n",
    "tensor<?x?xf32>",
);

const OF_DYNAMIC: Text = (
    "part_of_dynamic",
    "  %d = arith.addi %m, %n : index\n  %y = tensor.cast %x : tensor<8x8xf32> to tensor<?x?xf32>\n  \
     %o = tensor.empty(%d, %d) : tensor<?x?xf32>\n  \
     %t = linalg.tanh ins(%y : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>\n  \
     %r = tensor.extract_slice %t[0, 0] [%m, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>\n",
    "tensor<?x?xf32>",
);

const THROUGH_CHOICE: Text = (
    "part_through_choice",
    "  %c = arith.cmpi ult, %m, %n : index\n  %r = scf.if %c -> (tensor<?x?xf32>) {\n    \
     %p = tensor.extract_slice %e[0, 0] [%m, %n] [1, 1] : tensor<8x8xf32> to tensor<?x?xf32>\n    \
     scf.yield %p : tensor<?x?xf32>\n  } else {\n    \
     %o = tensor.empty(%m, %n) : tensor<?x?xf32>\n    %z = arith.constant 2.0 : f32\n    \
     %f = linalg.fill ins(%z : f32) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>\n    \
     scf.yield %f : tensor<?x?xf32>\n  }\n",
    "tensor<?x?xf32>",
);

/// Each iteration slices the previous value: the strides stay those of the first.
const THROUGH_LOOP: Text = (
    "part_through_loop",
    "  %p = tensor.extract_slice %e[0, 0] [%m, %n] [1, 1] : tensor<8x8xf32> to tensor<?x?xf32>\n  \
     %r = scf.for %k = %c0 to %c1 step %c1 iter_args(%t = %p) -> (tensor<?x?xf32>) {\n    \
     %less = arith.subi %n, %c1 : index\n    \
     %q = tensor.extract_slice %t[0, 0] [%m, %less] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>\n    \
     scf.yield %q : tensor<?x?xf32>\n  }\n",
    "tensor<?x?xf32>",
);
