//! Loops, conditions and calls around tensor ops, and arguments and results that are scalars.

use super::case::{Case, USUAL};
use crate::host_tensor::Dtype;
use crate::text::Input;

/// Name, text, inputs: f32 tensors by shape, then scalars by type and range.
struct Text<'a> {
    name: &'a str,
    tensors: &'a [&'a [usize]],
    scalars: &'a [(Dtype, f64, f64)],
    text: &'a str,
}

const MAPS: &str = "#v = affine_map<(i) -> (i)>\n#m = affine_map<(i, j) -> (i, j)>\n#r = affine_map<(i, j) -> (i)>\n#c = affine_map<(i, j) -> (j)>\n#n = affine_map<(i) -> ()>\n";

/// Functions of vectors that the programs below call or inline.
fn vector_op(name: &str, op: &str, ins: &str, out: &str, ty: &str) -> String {
    let operands: Vec<_> = ins.split(", ").collect();
    let (maps, args, types) = match operands.len() {
        1 => ("#v, #v", "%gp: f32", ty.to_owned()),
        _ => ("#v, #v, #v", "%gp: f32, %gq: f32", format!("{ty}, {ty}")),
    };
    format!(
        "{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\"]}} ins({ins} : {types}) outs({out} : {ty}) {{\n\
         ^bb0({args}, %go: f32):\n  {op}\n  linalg.yield %gs : f32\n}} -> {ty}"
    )
}

/// Replaces `NAME = OP(INS) -> OUT : TYPE` lines by generics on vectors, so that the programs stay readable.
fn expand(text: &str) -> String {
    let mut out = MAPS.to_owned();
    for line in text.lines() {
        let expanded = line.trim().strip_prefix("@").map(|l| {
            let (name, rest) = l.split_once(" = ").expect("a name");
            let (op, rest) = rest.split_once('(').expect("operands");
            let (ins, rest) = rest.split_once(") -> ").expect("a destination");
            let (dest, ty) = rest.split_once(" : ").expect("a type");
            let body = match op {
                "add" => "%gs = arith.addf %gp, %gq : f32",
                "sub" => "%gs = arith.subf %gp, %gq : f32",
                "mul" => "%gs = arith.mulf %gp, %gq : f32",
                "twice" => "%gs = arith.addf %gp, %gp : f32",
                "half" => "%gh = arith.constant 0.5 : f32\n  %gs = arith.mulf %gp, %gh : f32",
                "neg" => "%gs = arith.negf %gp : f32",
                "tanh" => "%gs = math.tanh %gp : f32",
                _ => "%gs = math.absf %gp : f32",
            };
            vector_op(name, body, ins, dest, ty)
        });
        out.push_str(expanded.as_deref().unwrap_or(line));
        out.push('\n');
    }
    out
}

pub(super) fn cases() -> Vec<Case> {
    let mut out: Vec<_> = TEXTS.iter().map(case).collect();
    for dtype in
        [Dtype::F32, Dtype::F16, Dtype::F64, Dtype::Int(1), Dtype::Int(8), Dtype::Int(32), Dtype::Int(64), Dtype::Index]
    {
        out.push(scalar_through(dtype));
    }
    out
}

fn case(t: &Text<'_>) -> Case {
    let mut inputs: Vec<_> = t.tensors.iter().map(|s| Input::new(Dtype::F32, s)).collect();
    inputs.extend(t.scalars.iter().map(|(dtype, low, high)| Input::new(*dtype, &[]).within(*low, *high)));
    Case { tolerance: USUAL, ..Case::of_text(&format!("control/{}", t.name), &expand(t.text), inputs) }
}

/// A scalar argument is a result, beside an unrelated tensor.
fn scalar_through(dtype: Dtype) -> Case {
    let text = format!(
        "func.func @main(%x: tensor<7xf32>, %a: {dtype}) -> (tensor<7xf32>, {dtype}) {{\n  %e = tensor.empty() : tensor<7xf32>\n  \
         @%r = twice(%x) -> %e : tensor<7xf32>\n  return %r, %a : tensor<7xf32>, {dtype}\n}}"
    );
    let inputs = vec![Input::new(Dtype::F32, &[7]), Input::new(dtype, &[])];
    Case::of_text(&format!("control/scalar_through/{dtype}"), &expand(&text), inputs)
}

const TEXTS: &[Text<'_>] = &[
    Text {
        name: "for_carries",
        tensors: &[&[33], &[33]],
        scalars: &[],
        text: "func.func @main(%x: tensor<33xf32>, %y: tensor<33xf32>) -> tensor<33xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %x) -> tensor<33xf32> {
    %e = tensor.empty() : tensor<33xf32>
    @%s = add(%acc, %y) -> %e : tensor<33xf32>
    scf.yield %s : tensor<33xf32>
  }
  return %r : tensor<33xf32>
}",
    },
    Text {
        name: "for_in_place",
        tensors: &[&[20]],
        scalars: &[],
        text: "func.func @main(%x: tensor<20xf32>) -> tensor<20xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<20xf32>
  @%first = neg(%x) -> %e : tensor<20xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %first) -> tensor<20xf32> {
    @%s = tanh(%acc) -> %acc : tensor<20xf32>
    scf.yield %s : tensor<20xf32>
  }
  return %r : tensor<20xf32>
}",
    },
    Text {
        name: "for_by_argument",
        tensors: &[&[9]],
        scalars: &[(Dtype::Index, 4.0, 5.0)],
        text: "func.func @main(%x: tensor<9xf32>, %n: index) -> tensor<9xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<9xf32> {
    %e = tensor.empty() : tensor<9xf32>
    @%s = half(%acc) -> %e : tensor<9xf32>
    scf.yield %s : tensor<9xf32>
  }
  return %r : tensor<9xf32>
}",
    },
    Text {
        name: "for_never",
        tensors: &[&[9]],
        scalars: &[(Dtype::Index, 0.0, 1.0)],
        text: "func.func @main(%x: tensor<9xf32>, %n: index) -> tensor<9xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> tensor<9xf32> {
    %e = tensor.empty() : tensor<9xf32>
    @%s = half(%acc) -> %e : tensor<9xf32>
    scf.yield %s : tensor<9xf32>
  }
  return %r : tensor<9xf32>
}",
    },
    Text {
        name: "for_two_carried",
        tensors: &[&[12], &[12]],
        scalars: &[],
        text: "func.func @main(%x: tensor<12xf32>, %y: tensor<12xf32>) -> (tensor<12xf32>, tensor<12xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<12xf32>, tensor<12xf32>) {
    %e = tensor.empty() : tensor<12xf32>
    @%s = add(%a, %b) -> %e : tensor<12xf32>
    @%t = half(%s) -> %e : tensor<12xf32>
    scf.yield %b, %t : tensor<12xf32>, tensor<12xf32>
  }
  return %r#0, %r#1 : tensor<12xf32>, tensor<12xf32>
}",
    },
    Text {
        name: "for_swaps",
        tensors: &[&[6], &[6]],
        scalars: &[],
        text: "func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<6xf32>, tensor<6xf32>) {
    scf.yield %b, %a : tensor<6xf32>, tensor<6xf32>
  }
  return %r#0, %r#1 : tensor<6xf32>, tensor<6xf32>
}",
    },
    Text {
        name: "for_slices",
        tensors: &[&[8, 10], &[10]],
        scalars: &[],
        text: "func.func @main(%x: tensor<8x10xf32>, %y: tensor<10xf32>) -> tensor<8x10xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %d = tensor.empty() : tensor<8x10xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %d) -> tensor<8x10xf32> {
    %e = tensor.empty() : tensor<10xf32>
    %row = tensor.extract_slice %x[%i, 0] [1, 10] [1, 1] : tensor<8x10xf32> to tensor<10xf32>
    @%s = mul(%row, %y) -> %e : tensor<10xf32>
    %n = tensor.insert_slice %s into %acc[%i, 0] [1, 10] [1, 1] : tensor<10xf32> into tensor<8x10xf32>
    scf.yield %n : tensor<8x10xf32>
  }
  return %r : tensor<8x10xf32>
}",
    },
    Text {
        name: "prefix_sum",
        tensors: &[&[9, 7]],
        scalars: &[],
        text: "func.func @main(%x: tensor<9x7xf32>) -> tensor<9x7xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %z = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<9x7xf32>
  %e = tensor.empty() : tensor<7xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%acc = %d, %sum = %f) -> (tensor<9x7xf32>, tensor<7xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 7] [1, 1] : tensor<9x7xf32> to tensor<7xf32>
    %g = tensor.empty() : tensor<7xf32>
    @%s = add(%row, %sum) -> %g : tensor<7xf32>
    %n = tensor.insert_slice %s into %acc[%i, 0] [1, 7] [1, 1] : tensor<7xf32> into tensor<9x7xf32>
    scf.yield %n, %s : tensor<9x7xf32>, tensor<7xf32>
  }
  return %r#0 : tensor<9x7xf32>
}",
    },
    Text {
        name: "nested_for",
        tensors: &[&[11]],
        scalars: &[],
        text: "func.func @main(%x: tensor<11xf32>) -> tensor<11xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> tensor<11xf32> {
    %s = scf.for %j = %c0 to %c2 step %c1 iter_args(%b = %a) -> tensor<11xf32> {
      %e = tensor.empty() : tensor<11xf32>
      @%t = half(%b) -> %e : tensor<11xf32>
      scf.yield %t : tensor<11xf32>
    }
    %f = tensor.empty() : tensor<11xf32>
    @%u = add(%s, %x) -> %f : tensor<11xf32>
    scf.yield %u : tensor<11xf32>
  }
  return %r : tensor<11xf32>
}",
    },
    Text {
        name: "if_argument_true",
        tensors: &[&[15], &[15]],
        scalars: &[(Dtype::Int(1), 1.0, 2.0)],
        text: IF_ARGUMENT,
    },
    Text {
        name: "if_argument_false",
        tensors: &[&[15], &[15]],
        scalars: &[(Dtype::Int(1), 0.0, 1.0)],
        text: IF_ARGUMENT,
    },
    Text {
        name: "if_element",
        tensors: &[&[15]],
        scalars: &[],
        text: "func.func @main(%x: tensor<15xf32>) -> tensor<15xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %v = tensor.extract %x[%c0] : tensor<15xf32>
  %p = arith.cmpf ogt, %v, %z : f32
  %e = tensor.empty() : tensor<15xf32>
  %r = scf.if %p -> tensor<15xf32> {
    @%s = twice(%x) -> %e : tensor<15xf32>
    scf.yield %s : tensor<15xf32>
  } else {
    @%s = neg(%x) -> %e : tensor<15xf32>
    scf.yield %s : tensor<15xf32>
  }
  return %r : tensor<15xf32>
}",
    },
    Text {
        name: "if_computed_element",
        tensors: &[&[15]],
        scalars: &[],
        text: "func.func @main(%x: tensor<15xf32>) -> tensor<15xf32> {
  %c3 = arith.constant 3 : index
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<15xf32>
  @%d = tanh(%x) -> %e : tensor<15xf32>
  %v = tensor.extract %d[%c3] : tensor<15xf32>
  %p = arith.cmpf olt, %v, %z : f32
  %r = scf.if %p -> tensor<15xf32> {
    scf.yield %d : tensor<15xf32>
  } else {
    %f = tensor.empty() : tensor<15xf32>
    @%s = abs(%d) -> %f : tensor<15xf32>
    scf.yield %s : tensor<15xf32>
  }
  return %r : tensor<15xf32>
}",
    },
    Text {
        name: "if_writes_argument",
        tensors: &[&[8], &[3]],
        scalars: &[(Dtype::Int(1), 1.0, 2.0)],
        text: "func.func @main(%x: tensor<8xf32>, %y: tensor<3xf32>, %p: i1) -> (tensor<8xf32>, tensor<8xf32>) {
  %r = scf.if %p -> tensor<8xf32> {
    %s = tensor.insert_slice %y into %x[2] [3] [1] : tensor<3xf32> into tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  %e = tensor.empty() : tensor<8xf32>
  @%t = neg(%x) -> %e : tensor<8xf32>
  return %r, %t : tensor<8xf32>, tensor<8xf32>
}",
    },
    Text {
        name: "if_in_for",
        tensors: &[&[10]],
        scalars: &[],
        text: "func.func @main(%x: tensor<10xf32>) -> tensor<10xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%a = %x) -> tensor<10xf32> {
    %m = arith.remui %i, %c2 : index
    %p = arith.cmpi eq, %m, %c0 : index
    %e = tensor.empty() : tensor<10xf32>
    %s = scf.if %p -> tensor<10xf32> {
      @%t = half(%a) -> %e : tensor<10xf32>
      scf.yield %t : tensor<10xf32>
    } else {
      @%t = add(%a, %x) -> %e : tensor<10xf32>
      scf.yield %t : tensor<10xf32>
    }
    scf.yield %s : tensor<10xf32>
  }
  return %r : tensor<10xf32>
}",
    },
    Text {
        name: "while_counts",
        tensors: &[&[10]],
        scalars: &[(Dtype::Int(32), 3.0, 4.0)],
        text: "func.func @main(%x: tensor<10xf32>, %n: i32) -> (tensor<10xf32>, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.while (%a = %x, %i = %c0) : (tensor<10xf32>, i32) -> (tensor<10xf32>, i32) {
    %p = arith.cmpi slt, %i, %n : i32
    scf.condition(%p) %a, %i : tensor<10xf32>, i32
  } do {
  ^bb0(%a: tensor<10xf32>, %i: i32):
    %e = tensor.empty() : tensor<10xf32>
    @%s = half(%a) -> %e : tensor<10xf32>
    %j = arith.addi %i, %c1 : i32
    scf.yield %s, %j : tensor<10xf32>, i32
  }
  return %r#0, %r#1 : tensor<10xf32>, i32
}",
    },
    Text {
        name: "while_element",
        tensors: &[&[10]],
        scalars: &[],
        text: "func.func @main(%x: tensor<10xf32>) -> tensor<10xf32> {
  %c0 = arith.constant 0 : index
  %k = arith.constant 0.01 : f32
  %r = scf.while (%a = %x) : (tensor<10xf32>) -> tensor<10xf32> {
    %v = tensor.extract %a[%c0] : tensor<10xf32>
    %m = math.absf %v : f32
    %p = arith.cmpf ogt, %m, %k : f32
    scf.condition(%p) %a : tensor<10xf32>
  } do {
  ^bb0(%a: tensor<10xf32>):
    %e = tensor.empty() : tensor<10xf32>
    @%s = half(%a) -> %e : tensor<10xf32>
    scf.yield %s : tensor<10xf32>
  }
  return %r : tensor<10xf32>
}",
    },
    Text {
        name: "call",
        tensors: &[&[13]],
        scalars: &[],
        text: "func.func private @layer(%x: tensor<13xf32>) -> tensor<13xf32> {
  %e = tensor.empty() : tensor<13xf32>
  @%s = tanh(%x) -> %e : tensor<13xf32>
  return %s : tensor<13xf32>
}
func.func @main(%x: tensor<13xf32>) -> tensor<13xf32> {
  %a = func.call @layer(%x) : (tensor<13xf32>) -> tensor<13xf32>
  %b = func.call @layer(%a) : (tensor<13xf32>) -> tensor<13xf32>
  return %b : tensor<13xf32>
}",
    },
    Text {
        name: "call_in_for",
        tensors: &[&[13]],
        scalars: &[],
        text: "func.func private @layer(%x: tensor<13xf32>, %k: f32) -> (tensor<13xf32>, f32) {
  %e = tensor.empty() : tensor<13xf32>
  @%s = half(%x) -> %e : tensor<13xf32>
  %t = arith.addf %k, %k : f32
  return %s, %t : tensor<13xf32>, f32
}
func.func @main(%x: tensor<13xf32>) -> (tensor<13xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %k = arith.constant 1.5 : f32
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %k) -> (tensor<13xf32>, f32) {
    %s:2 = func.call @layer(%a, %b) : (tensor<13xf32>, f32) -> (tensor<13xf32>, f32)
    scf.yield %s#0, %s#1 : tensor<13xf32>, f32
  }
  return %r#0, %r#1 : tensor<13xf32>, f32
}",
    },
    Text {
        name: "scalar_in_body",
        tensors: &[&[17]],
        scalars: &[(Dtype::F32, -2.0, 2.0)],
        text: "func.func @main(%x: tensor<17xf32>, %k: f32) -> tensor<17xf32> {
  %e = tensor.empty() : tensor<17xf32>
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = [\"parallel\"]} ins(%x : tensor<17xf32>) outs(%e : tensor<17xf32>) {
  ^bb0(%gp: f32, %go: f32):
    %gs = arith.mulf %gp, %k : f32
    linalg.yield %gs : f32
  } -> tensor<17xf32>
  return %r : tensor<17xf32>
}",
    },
    Text {
        name: "scalar_operand",
        tensors: &[&[17]],
        scalars: &[(Dtype::F32, -2.0, 2.0)],
        text: "func.func @main(%x: tensor<17xf32>, %k: f32) -> tensor<17xf32> {
  %e = tensor.empty() : tensor<17xf32>
  %r = linalg.generic {indexing_maps = [#v, #n, #v], iterator_types = [\"parallel\"]} ins(%x, %k : tensor<17xf32>, f32) outs(%e : tensor<17xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<17xf32>
  return %r : tensor<17xf32>
}",
    },
    Text {
        name: "scalar_arithmetic",
        tensors: &[&[4]],
        scalars: &[(Dtype::F32, 1.0, 2.0), (Dtype::Int(32), 1.0, 9.0)],
        text: "func.func @main(%x: tensor<4xf32>, %k: f32, %n: i32) -> (f32, i32, tensor<4xf32>) {
  %f = arith.sitofp %n : i32 to f32
  %m = arith.mulf %k, %f : f32
  %c = arith.constant 7 : i32
  %j = arith.muli %n, %c : i32
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.fill ins(%m : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %m, %j, %r : f32, i32, tensor<4xf32>
}",
    },
    Text {
        name: "element_as_scalar",
        tensors: &[&[9], &[9]],
        scalars: &[],
        text: "func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>) -> tensor<9xf32> {
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<9xf32>
  @%d = tanh(%x) -> %e : tensor<9xf32>
  %k = tensor.extract %d[%c4] : tensor<9xf32>
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = [\"parallel\"]} ins(%y : tensor<9xf32>) outs(%e : tensor<9xf32>) {
  ^bb0(%gp: f32, %go: f32):
    %gs = arith.mulf %gp, %k : f32
    linalg.yield %gs : f32
  } -> tensor<9xf32>
  return %r : tensor<9xf32>
}",
    },
    Text {
        name: "forall_of_rows",
        tensors: &[&[6, 9]],
        scalars: &[],
        text: "func.func @main(%x: tensor<6x9xf32>) -> tensor<6x9xf32> {
  %e = tensor.empty() : tensor<6x9xf32>
  %r = scf.forall (%i) in (6) shared_outs(%o = %e) -> (tensor<6x9xf32>) {
    %a = tensor.extract_slice %x[%i, 0] [1, 9] [1, 1] : tensor<6x9xf32> to tensor<9xf32>
    %b = tensor.extract_slice %o[%i, 0] [1, 9] [1, 1] : tensor<6x9xf32> to tensor<9xf32>
    @%s = twice(%a) -> %b : tensor<9xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, 0] [1, 9] [1, 1] : tensor<9xf32> into tensor<6x9xf32>
    }
  }
  return %r : tensor<6x9xf32>
}",
    },
    Text {
        name: "power_iteration",
        tensors: &[&[12, 12], &[12]],
        scalars: &[],
        text: "func.func @main(%a: tensor<12x12xf32>, %x: tensor<12xf32>) -> tensor<12xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%v = %x) -> tensor<12xf32> {
    %e = tensor.empty() : tensor<12xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<12xf32>) -> tensor<12xf32>
    %m = linalg.matvec ins(%a, %v : tensor<12x12xf32>, tensor<12xf32>) outs(%f : tensor<12xf32>) -> tensor<12xf32>
    @%s = tanh(%m) -> %e : tensor<12xf32>
    scf.yield %s : tensor<12xf32>
  }
  return %r : tensor<12xf32>
}",
    },
    Text {
        name: "affine_bounds",
        tensors: &[&[23]],
        scalars: &[],
        text: "func.func @main(%x: tensor<23xf32>) -> tensor<23xf32> {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %c23 = arith.constant 23 : index
  %d = tensor.empty() : tensor<23xf32>
  %r = scf.for %i = %c0 to %c23 step %c5 iter_args(%acc = %d) -> tensor<23xf32> {
    %n = affine.min affine_map<(i) -> (23 - i, 5)>(%i)
    %part = tensor.extract_slice %x[%i] [%n] [1] : tensor<23xf32> to tensor<?xf32>
    %e = tensor.empty(%n) : tensor<?xf32>
    @%s = neg(%part) -> %e : tensor<?xf32>
    %w = tensor.insert_slice %s into %acc[%i] [%n] [1] : tensor<?xf32> into tensor<23xf32>
    scf.yield %w : tensor<23xf32>
  }
  return %r : tensor<23xf32>
}",
    },
    Text {
        name: "select_of_tensors",
        tensors: &[&[9], &[9]],
        scalars: &[(Dtype::Int(1), 0.0, 1.0)],
        text: "func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>, %p: i1) -> tensor<9xf32> {
  %t = arith.select %p, %x, %y : tensor<9xf32>
  %e = tensor.empty() : tensor<9xf32>
  @%r = twice(%t) -> %e : tensor<9xf32>
  return %r : tensor<9xf32>
}",
    },
    Text {
        name: "elements_written_in_a_loop",
        tensors: &[&[6]],
        scalars: &[],
        text: "func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %d = tensor.empty() : tensor<6xf32>
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%acc = %d) -> tensor<6xf32> {
    %v = tensor.extract %x[%i] : tensor<6xf32>
    %w = arith.mulf %v, %v : f32
    %n = tensor.insert %w into %acc[%i] : tensor<6xf32>
    scf.yield %n : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}",
    },
    Text {
        name: "sum_in_a_scalar",
        tensors: &[&[7]],
        scalars: &[],
        text: "func.func @main(%x: tensor<7xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %z = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c7 step %c1 iter_args(%acc = %z) -> f32 {
    %v = tensor.extract %x[%i] : tensor<7xf32>
    %w = arith.addf %v, %acc : f32
    scf.yield %w : f32
  }
  return %r : f32
}",
    },
];

const IF_ARGUMENT: &str = "func.func @main(%x: tensor<15xf32>, %y: tensor<15xf32>, %p: i1) -> tensor<15xf32> {
  %e = tensor.empty() : tensor<15xf32>
  %r = scf.if %p -> tensor<15xf32> {
    @%s = add(%x, %y) -> %e : tensor<15xf32>
    scf.yield %s : tensor<15xf32>
  } else {
    @%s = sub(%x, %y) -> %e : tensor<15xf32>
    scf.yield %s : tensor<15xf32>
  }
  return %r : tensor<15xf32>
}";
