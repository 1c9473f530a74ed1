//! Programs of scalable size: the shapes on which bufferization must stay near-linear.
//!
//! The bench of One-Shot Bufferize takes seconds on them, tests count steps. Each is one module of functions on tensors.

use std::fmt::Write;

/// One shape.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its name in reports.
    pub name: &'static str,
    /// Its construction.
    pub about: &'static str,
    /// The text of the module for `n`.
    pub text: fn(usize) -> String,
}

const T: &str = "tensor<64xf32>";
const ARGS: &str = "%t: tensor<64xf32>, %x: f32, %i: index, %j: index, %p: i1";

/// Every shape.
pub const SHAPES: &[Shape] = &[
    Shape { name: "insert_slice_chain", about: "n slices inserted into one tensor", text: insert_slice_chain },
    Shape { name: "interleaved", about: "n reads and writes of one tensor in turn", text: interleaved },
    Shape { name: "stale_reads", about: "n writes, each followed by a read of the old tensor", text: stale_reads },
    Shape { name: "old_reads", about: "n writes, and after each a read of the first tensor", text: old_reads },
    Shape { name: "reads", about: "n reads of one tensor, then a write", text: reads },
    Shape { name: "all_copied", about: "n writes into one constant", text: all_copied },
    Shape { name: "if_branches", about: "n writes in one branch, n reads in the other", text: if_branches },
    Shape { name: "switch_cases", about: "n cases, each with a read and a write", text: switch_cases },
    Shape { name: "extract_fill_insert", about: "n slices taken, filled and put back", text: extract_fill_insert },
    Shape { name: "loops", about: "n loops one after the other", text: loops },
    Shape { name: "ifs", about: "n ifs one after the other", text: ifs },
    Shape { name: "loop_nest", about: "loops nested n deep around one write", text: loop_nest },
    Shape { name: "if_nest", about: "ifs nested n deep, a write in each", text: if_nest },
    Shape { name: "call_chain", about: "n functions, each calling the next", text: call_chain },
    Shape { name: "call_tree", about: "n functions, each calling two others", text: call_tree },
    Shape { name: "call_cycles", about: "n functions in cycles of five", text: call_cycles },
    Shape { name: "constants", about: "n distinct constants, each read", text: constants },
    Shape { name: "concat", about: "n parts made in empty tensors and inserted into one", text: concat },
    Shape { name: "generics", about: "n generics, each with a destination of its own", text: generics },
    Shape { name: "products", about: "n dispatches in a row, each a product with one matrix", text: products },
    Shape { name: "loop_arguments", about: "one loop that carries n tensors", text: loop_arguments },
    Shape { name: "casts", about: "n casts and reads of one tensor", text: casts },
    Shape { name: "blocks", about: "n blocks in a row, each with a read and a write", text: blocks },
    Shape { name: "selects", about: "n selects between two tensors, each read", text: selects },
];

/// The shape by name.
pub fn shape(name: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|s| s.name == name)
}

/// One function `f` with the arguments that all shapes share; `body` gives the returned value.
fn function(body: impl FnOnce(&mut String) -> String) -> String {
    let mut out = format!("func.func @f({ARGS}) -> {T} {{\n");
    let result = body(&mut out);
    line(&mut out, &format!("return {result} : {T}\n}}"));
    out
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes all text");
}

fn insert(out: &mut String, new: &str, value: &str, old: &str) {
    line(out, &format!("{new} = tensor.insert {value} into {old}[%i] : {T}"));
}

fn extract(out: &mut String, new: &str, tensor: &str) {
    line(out, &format!("{new} = tensor.extract {tensor}[%j] : {T}"));
}

fn insert_slice_chain(n: usize) -> String {
    let wide = format!("tensor<{n}x4xf32>");
    let mut out = format!("func.func @f(%s: tensor<4xf32>, %t0: {wide}) -> {wide} {{\n");
    for k in 0..n {
        let slice = format!("[{k}, 0] [1, 4] [1, 1] : tensor<4xf32> into {wide}");
        line(&mut out, &format!("%t{} = tensor.insert_slice %s into %t{k}{slice}", k + 1));
    }
    line(&mut out, &format!("return %t{n} : {wide}\n}}"));
    out
}

fn interleaved(n: usize) -> String {
    function(|out| {
        insert(out, "%t0", "%x", "%t");
        for k in 0..n {
            extract(out, &format!("%x{k}"), &format!("%t{k}"));
            insert(out, &format!("%t{}", k + 1), &format!("%x{k}"), &format!("%t{k}"));
        }
        format!("%t{n}")
    })
}

fn stale_reads(n: usize) -> String {
    function(|out| {
        insert(out, "%t0", "%x", "%t");
        for k in 0..n {
            insert(out, &format!("%t{}", k + 1), "%x", &format!("%t{k}"));
            extract(out, &format!("%x{k}"), &format!("%t{k}"));
        }
        format!("%t{n}")
    })
}

fn old_reads(n: usize) -> String {
    function(|out| {
        insert(out, "%t0", "%x", "%t");
        for k in 0..n {
            insert(out, &format!("%t{}", k + 1), "%x", &format!("%t{k}"));
            extract(out, &format!("%x{k}"), "%t0");
        }
        format!("%t{n}")
    })
}

fn reads(n: usize) -> String {
    function(|out| {
        (0..n).for_each(|k| extract(out, &format!("%x{k}"), "%t"));
        insert(out, "%t0", "%x", "%t");
        "%t0".to_owned()
    })
}

fn all_copied(n: usize) -> String {
    function(|out| {
        line(out, &format!("%c = arith.constant dense<1.0> : {T}"));
        (0..n).for_each(|k| insert(out, &format!("%t{k}"), "%x", "%c"));
        format!("%t{}", n - 1)
    })
}

fn if_branches(n: usize) -> String {
    function(|out| {
        line(out, &format!("%r = scf.if %p -> ({T}) {{"));
        insert(out, "%t0", "%x", "%t");
        (0..n).for_each(|k| insert(out, &format!("%t{}", k + 1), "%x", &format!("%t{k}")));
        line(out, &format!("scf.yield %t{n} : {T}\n}} else {{"));
        (0..n).for_each(|k| extract(out, &format!("%x{k}"), "%t"));
        line(out, &format!("scf.yield %t : {T}\n}}"));
        "%r".to_owned()
    })
}

fn switch_cases(n: usize) -> String {
    function(|out| {
        line(out, &format!("%r = scf.index_switch %i -> {T}"));
        let case = |out: &mut String, head: &str| {
            line(out, &format!("{head} {{"));
            extract(out, "%a", "%t");
            insert(out, "%b", "%a", "%t");
            line(out, &format!("scf.yield %b : {T}\n}}"));
        };
        (0..n).for_each(|k| case(out, &format!("case {k}")));
        case(out, "default");
        "%r".to_owned()
    })
}

fn extract_fill_insert(n: usize) -> String {
    let wide = format!("tensor<{n}x4xf32>");
    let mut out = format!("func.func @f(%x: f32, %t0: {wide}) -> {wide} {{\n");
    for k in 0..n {
        let slice = format!("[{k}, 0] [1, 4] [1, 1]");
        line(&mut out, &format!("%s{k} = tensor.extract_slice %t{k}{slice} : {wide} to tensor<4xf32>"));
        let fill = format!("ins(%x : f32) outs(%s{k} : tensor<4xf32>) -> tensor<4xf32>");
        line(&mut out, &format!("%f{k} = linalg.fill {fill}"));
        let types = format!("tensor<4xf32> into {wide}");
        line(&mut out, &format!("%t{} = tensor.insert_slice %f{k} into %t{k}{slice} : {types}", k + 1));
    }
    line(&mut out, &format!("return %t{n} : {wide}\n}}"));
    out
}

/// `n` ops with a region, each of which takes the previous tensor.
fn regions(n: usize, before: &str, each: impl Fn(&mut String, usize)) -> String {
    function(|out| {
        line(out, before);
        insert(out, "%t0", "%x", "%t");
        (0..n).for_each(|k| each(out, k));
        format!("%t{n}")
    })
}

const BOUNDS: &str = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index";

fn loops(n: usize) -> String {
    regions(n, BOUNDS, |out, k| {
        let carried = format!("iter_args(%a = %t{k}) -> ({T})");
        line(out, &format!("%t{} = scf.for %k = %c0 to %j step %c1 {carried} {{", k + 1));
        insert(out, "%b", "%x", "%a");
        line(out, &format!("scf.yield %b : {T}\n}}"));
    })
}

fn ifs(n: usize) -> String {
    regions(n, "", |out, k| {
        line(out, &format!("%t{} = scf.if %p -> ({T}) {{", k + 1));
        insert(out, "%b", "%x", &format!("%t{k}"));
        line(out, &format!("scf.yield %b : {T}\n}} else {{\nscf.yield %t{k} : {T}\n}}"));
    })
}

fn loop_nest(n: usize) -> String {
    function(|out| {
        line(out, &format!("{BOUNDS}\n%a0 = tensor.insert %x into %t[%i] : {T}"));
        for k in 0..n {
            let carried = format!("iter_args(%a{} = %a{k}) -> ({T})", k + 1);
            line(out, &format!("%r{k} = scf.for %k{k} = %c0 to %j step %c1 {carried} {{"));
        }
        insert(out, &format!("%r{n}"), "%x", &format!("%a{n}"));
        (0..n).rev().for_each(|k| line(out, &format!("scf.yield %r{} : {T}\n}}", k + 1)));
        "%r0".to_owned()
    })
}

fn if_nest(n: usize) -> String {
    function(|out| {
        insert(out, "%t0", "%x", "%t");
        for k in 0..n {
            line(out, &format!("%r{k} = scf.if %p -> ({T}) {{"));
            insert(out, &format!("%t{}", k + 1), "%x", &format!("%t{k}"));
        }
        line(out, "");
        for k in (0..n).rev() {
            let inner = if k + 1 == n { format!("%t{n}") } else { format!("%r{}", k + 1) };
            line(out, &format!("scf.yield {inner} : {T}\n}} else {{\nscf.yield %t{k} : {T}\n}}"));
        }
        "%r0".to_owned()
    })
}

/// `n` functions; function `k` calls those of `callees(k)` in order.
fn functions(n: usize, callees: impl Fn(usize) -> Vec<usize>) -> String {
    let mut out = String::new();
    for k in 0..n {
        let visibility = if k == 0 { "" } else { "private " };
        line(&mut out, &format!("func.func {visibility}@f{k}({ARGS}) -> {T} {{"));
        insert(&mut out, "%t0", "%x", "%t");
        let calls = callees(k);
        for (c, callee) in calls.iter().enumerate() {
            let types = format!("({T}, f32, index, index, i1) -> {T}");
            line(&mut out, &format!("%t{} = call @f{callee}(%t{c}, %x, %i, %j, %p) : {types}", c + 1));
        }
        line(&mut out, &format!("return %t{} : {T}\n}}", calls.len()));
    }
    out
}

fn call_chain(n: usize) -> String {
    functions(n, |k| if k + 1 < n { vec![k + 1] } else { vec![] })
}

fn call_tree(n: usize) -> String {
    functions(n, |k| [2 * k + 1, 2 * k + 2].into_iter().filter(|c| *c < n).collect())
}

fn call_cycles(n: usize) -> String {
    functions(n, |k| {
        let around = if k % 5 == 4 { k - 4 } else { (k + 1).min(n - 1) };
        let onward = (k % 5 == 0 && k + 5 < n).then_some(k + 5);
        std::iter::once(around).chain(onward).collect()
    })
}

fn constants(n: usize) -> String {
    function(|out| {
        for k in 0..n {
            let ty = "tensor<2xi32>";
            line(out, &format!("%c{k} = arith.constant dense<[{k}, 7]> : {ty}"));
            line(out, &format!("%x{k} = tensor.extract %c{k}[%j] : {ty}"));
        }
        "%t".to_owned()
    })
}

fn concat(n: usize) -> String {
    let wide = format!("tensor<{n}x4xf32>");
    let mut out = format!("func.func @f(%x: f32) -> {wide} {{\n%t0 = tensor.empty() : {wide}\n");
    for k in 0..n {
        line(&mut out, &format!("%e{k} = tensor.empty() : tensor<1x4xf32>"));
        let fill = format!("ins(%x : f32) outs(%e{k} : tensor<1x4xf32>) -> tensor<1x4xf32>");
        line(&mut out, &format!("%f{k} = linalg.fill {fill}"));
        let slice = format!("[{k}, 0] [1, 4] [1, 1] : tensor<1x4xf32> into {wide}");
        line(&mut out, &format!("%t{} = tensor.insert_slice %f{k} into %t{k}{slice}", k + 1));
    }
    line(&mut out, &format!("return %t{n} : {wide}\n}}"));
    out
}

fn generics(n: usize) -> String {
    let map = "affine_map<(d0) -> (d0)>";
    let head = format!("{{indexing_maps = [{map}, {map}], iterator_types = [\"parallel\"]}}");
    function(|out| {
        line(out, &format!("%t0 = tensor.insert %x into %t[%i] : {T}"));
        for k in 0..n {
            line(out, &format!("%e{k} = tensor.empty() : {T}"));
            let types = format!("ins(%t{k} : {T}) outs(%e{k} : {T})");
            line(out, &format!("%t{} = linalg.generic {head} {types} {{", k + 1));
            line(out, "^bb0(%a: f32, %b: f32):\n%s = arith.addf %a, %a : f32");
            line(out, &format!("linalg.yield %s : f32\n}} -> {T}"));
        }
        format!("%t{n}")
    })
}

fn products(n: usize) -> String {
    const T: &str = "tensor<64x64xf32>";
    const PART: &str = "tensor<16x64xf32>";
    let slice = |of: &str| format!("tensor.extract_slice {of}[%r, 0] [16, 64] [1, 1] : {T} to {PART}");
    let mut out = format!("func.func @f(%t0: {T}, %w: {T}) -> {T} {{\n%z = arith.constant 0.0 : f32\n");
    line(&mut out, "%rows = arith.constant 16 : index");
    for k in 0..n {
        line(&mut out, &format!("%e{k} = tensor.empty() : {T}"));
        line(&mut out, &format!("%t{} = scf.forall (%i) in (4) shared_outs(%o = %e{k}) -> ({T}) {{", k + 1));
        line(&mut out, "%r = arith.muli %i, %rows : index");
        line(&mut out, &format!("%s = {}\n%d = {}", slice(&format!("%t{k}")), slice("%o")));
        line(&mut out, &format!("%c = linalg.fill ins(%z : f32) outs(%d : {PART}) -> {PART}"));
        line(&mut out, &format!("%p = linalg.matmul ins(%s, %w : {PART}, {T}) outs(%c : {PART}) -> {PART}"));
        line(&mut out, "scf.forall.in_parallel {");
        line(
            &mut out,
            &format!("tensor.parallel_insert_slice %p into %o[%r, 0] [16, 64] [1, 1] : {PART} into {T}\n}}\n}}"),
        );
    }
    line(&mut out, &format!("return %t{n} : {T}\n}}"));
    out
}

fn loop_arguments(n: usize) -> String {
    let list = |each: &dyn Fn(usize) -> String| (0..n).map(each).collect::<Vec<_>>().join(", ");
    let types = list(&|_| T.to_owned());
    function(|out| {
        line(out, BOUNDS);
        (0..n).for_each(|k| insert(out, &format!("%t{k}"), "%x", "%t"));
        let carried = list(&|k| format!("%a{k} = %t{k}"));
        line(out, &format!("%r:{n} = scf.for %k = %c0 to %j step %c1 iter_args({carried}) -> ({types}) {{"));
        (0..n).for_each(|k| insert(out, &format!("%b{k}"), "%x", &format!("%a{k}")));
        line(out, &format!("scf.yield {} : {types}\n}}", list(&|k| format!("%b{k}"))));
        "%r#0".to_owned()
    })
}

fn casts(n: usize) -> String {
    function(|out| {
        for k in 0..n {
            line(out, &format!("%d{k} = tensor.cast %t : {T} to tensor<?xf32>"));
            line(out, &format!("%x{k} = tensor.extract %d{k}[%j] : tensor<?xf32>"));
        }
        insert(out, "%t0", "%x", "%t");
        "%t0".to_owned()
    })
}

fn blocks(n: usize) -> String {
    function(|out| {
        insert(out, "%t0", "%x", "%t");
        line(out, &format!("cf.br ^b0(%t0 : {T})"));
        for k in 0..n {
            line(out, &format!("^b{k}(%a{k}: {T}):"));
            extract(out, &format!("%x{k}"), &format!("%a{k}"));
            insert(out, &format!("%c{k}"), &format!("%x{k}"), &format!("%a{k}"));
            line(out, &format!("cf.br ^b{}(%c{k} : {T})", k + 1));
        }
        line(out, &format!("^b{n}(%r: {T}):"));
        "%r".to_owned()
    })
}

fn selects(n: usize) -> String {
    function(|out| {
        line(out, &format!("%u = tensor.empty() : {T}\n%v = linalg.fill ins(%x : f32) outs(%u : {T}) -> {T}"));
        for k in 0..n {
            line(out, &format!("%s{k} = arith.select %p, %t, %v : {T}"));
            extract(out, &format!("%x{k}"), &format!("%s{k}"));
        }
        insert(out, "%r", "%x", "%v");
        "%r".to_owned()
    })
}
