//! Row groups: their members, and that one dispatch needs no copy and no buffer but its results.

use crate::builder::{IDENTITY, Program};
use crate::support::{check, compile, cpu, dispatches, kernel_text, lavapipe, portable};
use monopour_frontend::TargetDescription;
use monopour_ir::{Module, Op};

fn targets() -> [TargetDescription; 3] {
    [lavapipe(), portable(), cpu("x86-64-v4")]
}

fn classes(module: &Module) -> Vec<String> {
    dispatches(module).into_iter().map(|f| kernel_text(f, "class")).collect()
}

/// Shapes of a tile's temporaries.
fn temporaries(module: &Module) -> Vec<Vec<i64>> {
    let inside = |op: &Op| op.ancestor("scf.forall").is_some();
    let empties = module.op().find_all("tensor.empty").into_iter().filter(inside);
    empties.filter_map(|op| op.result(0).ty().shape()).collect()
}

/// Expects one row dispatch whose temporaries hold at most an element per row.
fn one_group(text: &str, results: usize) {
    for target in targets() {
        let module = compile(text, &target);
        assert_eq!(classes(&module), ["row"], "{}", module.op());
        assert_eq!(dispatches(&module)[0].num_results(), results, "{}", module.op());
        if results == 1 {
            check(text, &target, 1);
        }
    }
}

const SHAPES: [&[i64]; 7] = [&[64, 1024], &[7, 17], &[1, 1], &[3, 5, 33], &[2, 3, 5, 31], &[2, 3, 2, 5, 9], &[1000]];

#[test]
fn softmax_is_one_dispatch_of_rows() {
    for shape in SHAPES {
        let mut p = Program::new();
        let x = p.arg(shape);
        let y = p.softmax(&x);
        one_group(&p.finish(&[&y]), 1);
    }
}

#[test]
fn the_maximum_of_a_softmax_drops_nans() {
    let (ty, row) = ("tensor<7x40xf32>", "tensor<7xf32>");
    let maxima = |returned: &str, types: &str| {
        let [all, rows] = ["(i, j) -> (i, j)", "(i, j) -> (i)"].map(|map| format!("affine_map<{map}>"));
        let reduce = |name: &str, of: &str, start: &str, fold: &str| {
            format!(
                "%{name}_0 = linalg.fill ins({start} : f32) outs(%er : {row}) -> {row}\n\
                 %{name} = linalg.generic {{indexing_maps = [{all}, {rows}], iterator_types = [\"parallel\", \"reduction\"]}} \
                 ins({of} : {ty}) outs(%{name}_0 : {row}) {{\n^bb0(%a: f32, %o: f32):\n\
                 %r = arith.{fold} %a, %o : f32\nlinalg.yield %r : f32\n}} -> {row}\n"
            )
        };
        let by_row = |name: &str, of: &str, by: &str, body: &str| {
            format!(
                "%{name} = linalg.generic {{indexing_maps = [{all}, {rows}, {all}], iterator_types = [\"parallel\", \"parallel\"]}} \
                 ins({of}, {by} : {ty}, {row}) outs(%e : {ty}) {{\n^bb0(%a: f32, %b: f32, %o: f32):\n{body}\n\
                 linalg.yield %r : f32\n}} -> {ty}\n"
            )
        };
        let body = reduce("m", "%x", "%low", "maximumf")
            + &by_row("p", "%x", "%m", "%d = arith.subf %a, %b : f32\n%r = math.exp %d : f32")
            + &reduce("s", "%p", "%zero", "addf")
            + &by_row("y", "%p", "%s", "%r = arith.divf %a, %b : f32");
        let text = format!(
            "func.func @main(%x: {ty}) -> ({types}) {{\n%zero = arith.constant 0.0 : f32\n\
             %low = arith.constant 0xFF800000 : f32\n%e = tensor.empty() : {ty}\n%er = tensor.empty() : {row}\n\
             {body}return {returned} : {types}\n}}\n"
        );
        let module = compile(&text, &lavapipe());
        ["arith.maxnumf", "arith.maximumf"].map(|name| module.op().find_all(name).len())
    };
    assert_eq!(maxima("%y", ty), [1, 0]);
    // The maximum, a power or the sum has another reader; of these the sum is NaN all the same.
    assert_eq!(maxima("%y, %m", &format!("{ty}, {row}")), [0, 1]);
    assert_eq!(maxima("%y, %p", &format!("{ty}, {ty}")), [0, 1]);
    assert_eq!(maxima("%y, %s", &format!("{ty}, {row}")), [1, 0]);
}

#[test]
fn log_softmax_is_one_dispatch_of_rows() {
    for shape in SHAPES {
        let mut p = Program::new();
        let x = p.arg(shape);
        let m = p.reduce(&x, IDENTITY, "arith.maximumf");
        let d = p.by_row(&x, &m, "%r = arith.subf %p0, %p1 : f32");
        let s = p.reduce(&d, "%c = math.exp %p0 : f32", "arith.addf");
        let l = p.map(&s, "%r = math.log %p0 : f32");
        let y = p.by_row(&d, &l, "%r = arith.subf %p0, %p1 : f32");
        one_group(&p.finish(&[&y]), 1);
    }
}

fn layer_norm(p: &mut Program, x: &str) -> String {
    let shape = p.shape(x);
    let (g, b) = (p.arg(&shape[shape.len() - 1..]), p.arg(&shape[shape.len() - 1..]));
    let s = p.reduce(x, IDENTITY, "arith.addf");
    let d = p.by_row(x, &s, "%r = arith.subf %p0, %p1 : f32");
    let v = p.reduce(&d, "%c = arith.mulf %p0, %p0 : f32", "arith.addf");
    let all: Vec<usize> = (0..shape.len()).collect();
    let (row, last) = (&all[..all.len() - 1], &all[all.len() - 1..]);
    let body = "%q = math.rsqrt %p1 : f32\n    %t = arith.mulf %p0, %q : f32\n    %u = arith.mulf %t, %p2 : f32\n    %r = arith.addf %u, %p3 : f32";
    p.pointwise(&shape, &[(&d, &all), (&v, row), (&g, last), (&b, last)], body)
}

#[test]
fn layer_norm_is_one_dispatch_of_rows() {
    for shape in SHAPES {
        let mut p = Program::new();
        let x = p.arg(shape);
        let y = layer_norm(&mut p, &x);
        one_group(&p.finish(&[&y]), 1);
    }
}

#[test]
fn a_residual_and_its_norm_are_one_dispatch_of_two_results() {
    let mut p = Program::new();
    let (x, y) = (p.arg(&[33, 65]), p.arg(&[33, 65]));
    let sum = p.zip(&x, &y, "%r = arith.addf %p0, %p1 : f32");
    let norm = layer_norm(&mut p, &sum);
    let text = p.finish(&[&norm, &sum]);
    one_group(&text, 2);
    for target in targets() {
        let (_, copies, after) = crate::support::bufferized(&compile(&text, &target));
        assert_eq!(copies, 0, "{after}");
    }
}

#[test]
fn a_reduction_takes_what_is_computed_before_and_after_it() {
    for shape in SHAPES {
        let mut p = Program::new();
        let x = p.arg(shape);
        let t = p.map(&x, "%r = math.tanh %p0 : f32");
        let s = p.reduce(&t, IDENTITY, "arith.addf");
        let y = p.map(&s, "%r = math.sqrt %p0 : f32");
        one_group(&p.finish(&[&y]), 1);
    }
}

#[test]
fn reductions_of_one_tensor_are_one_dispatch() {
    let mut p = Program::new();
    let x = p.arg(&[40, 50]);
    let a = p.reduce(&x, IDENTITY, "arith.addf");
    let b = p.reduce(&x, "%c = arith.mulf %p0, %p0 : f32", "arith.addf");
    one_group(&p.finish(&[&a, &b]), 2);
}

#[test]
fn temporaries_hold_one_element_per_row() {
    let mut p = Program::new();
    let x = p.arg(&[64, 1024]);
    let y = p.softmax(&x);
    let module = compile(&p.finish(&[&y]), &lavapipe());
    let tile = dispatches(&module)[0].attr("monopour.kernel").and_then(|k| k.get("tile")).expect("a tile");
    let rows = tile.as_ints().expect("sizes")[0];
    assert_eq!(temporaries(&module), [[rows], [rows]], "{}", module.op());
}

#[test]
fn a_maximum_with_its_position_is_one_dispatch_of_two_results() {
    let text = "func.func @main(%x: tensor<9x40xf32>) -> (tensor<9xf32>, tensor<9xi32>) {\n  %low = arith.constant 0xFF800000 : f32\n  \
                %none = arith.constant 0 : i32\n  %e = tensor.empty() : tensor<9xf32>\n  %i = tensor.empty() : tensor<9xi32>\n  \
                %f = linalg.fill ins(%low : f32) outs(%e : tensor<9xf32>) -> tensor<9xf32>\n  \
                %g = linalg.fill ins(%none : i32) outs(%i : tensor<9xi32>) -> tensor<9xi32>\n  \
                %m:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], \
                iterator_types = [\"parallel\", \"reduction\"]} ins(%x : tensor<9x40xf32>) outs(%f, %g : tensor<9xf32>, tensor<9xi32>) {\n  \
                ^bb0(%p: f32, %o: f32, %n: i32):\n    %j = linalg.index 1 : index\n    %k = arith.index_cast %j : index to i32\n    \
                %c = arith.cmpf ogt, %p, %o : f32\n    %a = arith.select %c, %p, %o : f32\n    %b = arith.select %c, %k, %n : i32\n    \
                linalg.yield %a, %b : f32, i32\n  } -> (tensor<9xf32>, tensor<9xi32>)\n  return %m#0, %m#1 : tensor<9xf32>, tensor<9xi32>\n}\n";
    one_group(text, 2);
}

#[test]
fn a_row_counter_counts_from_the_tiles_first_row() {
    // 1,000 rows: many tiles, and a body with `linalg.index` of the row.
    let mut p = Program::new();
    let x = p.arg(&[1000, 512]);
    let body = "%i = linalg.index 0 : index\n    %n = arith.index_cast %i : index to i32\n    %s = arith.sitofp %n : i32 to f32\n    \
                %c = arith.mulf %s, %p0 : f32";
    let y = p.reduce(&x, body, "arith.addf");
    let module = check(&p.finish(&[&y]), &lavapipe(), 1);
    let counters = module.op().find_all("linalg.index");
    let counter = counters.first().copied().unwrap_or_else(|| panic!("{}", module.op()));
    assert_eq!(counter.result(0).uses()[0].op.name(), "arith.addi", "{}", module.op());
    // A tile of one row: its index is the tile id.
    let module = check(&p.finish(&[&y]), &portable(), 1);
    let id = dispatches(&module)[0].body().expect("a body").arg(0);
    assert!(id.uses().iter().any(|u| u.op.is("arith.index_cast")), "{}", module.op());
}

#[test]
fn what_depends_on_a_group_and_is_read_by_it_ends_it() {
    // The row sums pass through a matrix product before they come back.
    let mut p = Program::new();
    let (x, w) = (p.arg(&[16, 32]), p.arg(&[16, 16]));
    let s = p.reduce(&x, IDENTITY, "arith.addf");
    let fill = p.fill(&[16], "%zero");
    let product = "%m = arith.mulf %p0, %p1 : f32\n    %r = arith.addf %o, %m : f32";
    let v = p.generic(2, &[(&w, &[0, 1]), (&s, &[1])], &fill, product);
    let y = p.by_row(&x, &v, "%r = arith.mulf %p0, %p1 : f32");
    // On hardware a matrix times a vector is reduced by rows, too.
    for (target, product) in targets().into_iter().zip(["contraction", "row", "contraction"]) {
        let module = check(&p.finish(&[&y]), &target, 3);
        assert_eq!(classes(&module), ["row", product, "elementwise"]);
    }
}

#[test]
fn a_value_read_at_another_row_ends_the_group() {
    // Square: each element is divided by the sum of the row that its column names.
    let mut p = Program::new();
    let x = p.arg(&[16, 16]);
    let s = p.reduce(&x, IDENTITY, "arith.addf");
    let y = p.pointwise(&[16, 16], &[(&x, &[0, 1]), (&s, &[1])], "%r = arith.divf %p0, %p1 : f32");
    for target in targets() {
        let module = check(&p.finish(&[&y]), &target, 2);
        assert_eq!(classes(&module), ["row", "elementwise"]);
    }
}

#[test]
fn other_rows_are_another_group() {
    let mut p = Program::new();
    let x = p.arg(&[6, 10, 12]);
    let s = p.reduce(&x, IDENTITY, "arith.addf");
    let t = p.reduce(&s, IDENTITY, "arith.addf");
    for target in targets() {
        let module = check(&p.finish(&[&t]), &target, 2);
        assert_eq!(classes(&module), ["row", "row"]);
    }
}

#[test]
fn ops_between_those_of_a_group_move_behind_it() {
    // The product reads the first sum and stands before the second.
    let mut p = Program::new();
    let (x, w) = (p.arg(&[16, 32]), p.arg(&[16, 16]));
    let s = p.reduce(&x, IDENTITY, "arith.addf");
    let fill = p.fill(&[16], "%zero");
    let product = "%m = arith.mulf %p0, %p1 : f32\n    %r = arith.addf %o, %m : f32";
    let v = p.generic(2, &[(&w, &[0, 1]), (&s, &[1])], &fill, product);
    let y = p.by_row(&x, &s, "%r = arith.mulf %p0, %p1 : f32");
    let text = p.finish(&[&y, &v]);
    for (target, product) in targets().into_iter().zip(["contraction", "row", "contraction"]) {
        assert_eq!(classes(&compile(&text, &target)), ["row", product]);
    }
}

#[test]
fn groups_that_feed_each_other_do_not_form_a_circle() {
    // Two pairs of ops on different rows, each reading one value of the other pair.
    let mut p = Program::new();
    let (x, y) = (p.arg(&[16, 32]), p.arg(&[16, 24]));
    let a = p.reduce(&x, IDENTITY, "arith.addf");
    let b = p.reduce(&y, IDENTITY, "arith.addf");
    let c = p.by_row(&y, &a, "%r = arith.mulf %p0, %p1 : f32");
    let d = p.by_row(&x, &b, "%r = arith.mulf %p0, %p1 : f32");
    let e = p.reduce(&c, IDENTITY, "arith.maximumf");
    let f = p.reduce(&d, IDENTITY, "arith.maximumf");
    let text = p.finish(&[&e, &f]);
    for target in targets() {
        compile(&text, &target);
    }
}

#[test]
fn attention_is_three_dispatches() {
    for (heads, length, width) in [(12, 128, 64), (3, 17, 5), (1, 1, 1)] {
        let mut p = Program::new();
        let (q, k, v) =
            (p.arg(&[heads, length, width]), p.arg(&[heads, width, length]), p.arg(&[heads, length, width]));
        let s = p.batched_product(&q, &k);
        let scaled = p.map(&s, "%h = arith.constant 0.125 : f32\n    %r = arith.mulf %p0, %h : f32");
        let soft = p.softmax(&scaled);
        let y = p.batched_product(&soft, &v);
        let text = p.finish(&[&y]);
        for target in targets() {
            let module = check(&text, &target, 3);
            assert_eq!(classes(&module), ["contraction", "row", "contraction"], "{}", module.op());
        }
    }
}

#[test]
fn a_long_reduction_to_one_element_is_split() {
    let reduced = |shape: &[i64]| {
        let mut p = Program::new();
        let x = p.arg(shape);
        let fill = p.fill(&[], "%zero");
        let all: Vec<usize> = (0..shape.len()).collect();
        let body = "%c = arith.mulf %p0, %p0 : f32\n    %r = arith.addf %c, %o : f32";
        let y = p.generic(shape.len(), &[(&x, &all)], &fill, body);
        p.finish(&[&y])
    };
    // Short; a number of parts divides it; leading loops are the parts; a prime leaves a rest.
    let cases: [(&[i64], usize); 6] =
        [(&[65_536], 1), (&[1 << 20], 2), (&[512, 700], 2), (&[2, 3, 70_000], 2), (&[2, 65_537], 3), (&[1_000_003], 3)];
    for target in targets() {
        for (shape, count) in cases {
            let module = compile(&reduced(shape), &target);
            assert_eq!(dispatches(&module).len(), count, "{}", module.op());
            let (_, copies, after) = crate::support::bufferized(&module);
            assert_eq!(copies, 0, "{after}");
            assert!(classes(&module).iter().all(|c| c == "row"), "{}", module.op());
        }
    }
}

#[test]
fn products_of_two_batch_dimensions_have_a_grid_of_three() {
    let mut p = Program::new();
    let (a, b) = (p.arg(&[2, 12, 33, 16]), p.arg(&[2, 12, 16, 65]));
    let y = p.batched_product(&a, &b);
    for target in targets() {
        let module = check(&p.finish(&[&y]), &target, 1);
        let forall = dispatches(&module)[0];
        let bounds = forall.attr("staticUpperBound").and_then(|a| a.as_ints()).expect("static bounds");
        assert_eq!(bounds.len(), 3, "{}", module.op());
        match target {
            // Rows and columns are whole in a tile.
            TargetDescription::Cpu(_) => assert_eq!(bounds[..2], [2, 12], "{}", module.op()),
            TargetDescription::Gpu(_) => assert_eq!(bounds[0], 24, "{}", module.op()),
        }
        let product = forall.find_all("linalg.generic").into_iter().chain(forall.find_all("scf.for")).next();
        assert!(product.is_some(), "{}", module.op());
    }
}

#[test]
fn a_body_that_reads_a_whole_value_of_the_group_ends_it() {
    // Each element is compared with the first row's sum, wherever it is.
    let mut p = Program::new();
    let x = p.arg(&[16, 16]);
    let s = p.reduce(&x, IDENTITY, "arith.addf");
    p.line("%first = arith.constant 0 : index");
    let body = format!("%t = tensor.extract {s}[%first] : tensor<16xf32>\n    %r = arith.subf %p0, %t : f32");
    let y = p.map(&x, &body);
    for target in targets() {
        let module = check(&p.finish(&[&y]), &target, 2);
        assert_eq!(classes(&module), ["row", "generic"], "{}", module.op());
    }
}

#[test]
fn a_reduction_to_a_scalar_has_a_grid_of_one_tile() {
    let text = "func.func @main(%a: tensor<7xf32>, %b: tensor<7xf32>) -> tensor<f32> {\n\
        %z = arith.constant 0.0 : f32\n%e = tensor.empty() : tensor<f32>\n\
        %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>\n\
        %r = linalg.dot ins(%a, %b : tensor<7xf32>, tensor<7xf32>) outs(%f : tensor<f32>) -> tensor<f32>\n\
        return %r : tensor<f32>\n}\n";
    for target in targets() {
        let module = compile(text, &target);
        assert_eq!(kernel_text(dispatches(&module)[0], "tile"), "array<i64: 1>", "{}", module.op());
    }
}
