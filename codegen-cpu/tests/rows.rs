//! Rows that pass through all ops of a task, one after the other.

use crate::harness::{Library, assert_close, can_run, compile, random};
use crate::kernels::targets;
use monopour_codegen_cpu::object::{Listing, listing};
use monopour_ir::{Context, Module};
use monopour_program::CpuTarget;

/// Rows of a task.
const TASK: usize = 8;

/// A kernel of `args` whose task has views `%x` and `%y` of [`TASK`] rows of `%X` and `%Y`, and `%m`, a number for each.
fn kernel(args: &str, sources: [&str; 2], [rows, columns]: [usize; 2], body: &str) -> String {
    let (all, part) = (format!("memref<{rows}x{columns}xf32>"), part([TASK, columns]));
    let args = args.replace('@', &all);
    let view = |name: &str, source: &str| {
        format!("  {name} = memref.subview {source}[%i0, 0] [{TASK}, {columns}] [1, 1] : {all} to {part}\n")
    };
    let views: String = ["%x", "%y"].iter().zip(sources).map(|(name, source)| view(name, source)).collect();
    format!(
        "#all = affine_map<(i, j) -> (i, j)>\n#row = affine_map<(i, j) -> (i)>\n#column = affine_map<(i, j) -> (j)>\n\
         func.func private @k({args}, %i: index) attributes {{monopour.kernel = {{class = \"row\"}}}} {{\n\
         %c8 = arith.constant {TASK} : index\n  %zero = arith.constant 0.0 : f32\n  %least = arith.constant 0xFF800000 : f32\n\
         %i0 = arith.muli %i, %c8 : index\n  %m = memref.alloca() {{alignment = 64 : i64}} : memref<{TASK}xf32>\n\
         {views}{body}  return\n}}\n"
    )
}

fn part([rows, columns]: [usize; 2]) -> String {
    format!("memref<{rows}x{columns}xf32, strided<[{columns}, 1], offset: ?>>")
}

/// A generic over rows and columns: inputs with their maps, and the output with its map.
fn op(columns: usize, kinds: &str, inputs: &[(&str, &str)], output: (&str, &str), body: &str) -> String {
    let ty = |value: &str| if value == "%m" { format!("memref<{TASK}xf32>") } else { part([TASK, columns]) };
    let maps: Vec<&str> = inputs.iter().chain([&output]).map(|(_, map)| *map).collect();
    let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
    let types: Vec<String> = names.iter().map(|name| ty(name)).collect();
    let args: Vec<String> = (0..names.len()).map(|n| format!("%a{n}: f32")).chain(["%o: f32".to_owned()]).collect();
    let ins =
        if names.is_empty() { String::new() } else { format!("ins({} : {})", names.join(", "), types.join(", ")) };
    format!(
        "  linalg.generic {{indexing_maps = [{}], iterator_types = [{kinds}]}} {ins} outs({} : {}) {{\n  ^bb0({}):\n    \
         {body}\n    linalg.yield %r : f32\n  }}\n",
        maps.join(", "),
        output.0,
        ty(output.0),
        args.join(", ")
    )
}

fn fill(value: &str) -> String {
    format!("  linalg.fill ins({value} : f32) outs(%m : memref<{TASK}xf32>)\n")
}

const PARALLEL: &str = "\"parallel\", \"parallel\"";
const SUM: &str = "\"parallel\", \"reduction\"";

/// `y = exp(x - max) / sum`.
fn softmax(args: &str, sources: [&str; 2], shape: [usize; 2]) -> String {
    let columns = shape[1];
    let body = [
        fill("%least"),
        op(columns, SUM, &[("%x", "#all")], ("%m", "#row"), "%r = arith.maxnumf %a0, %o : f32"),
        op(
            columns,
            PARALLEL,
            &[("%x", "#all"), ("%m", "#row")],
            ("%y", "#all"),
            "%d = arith.subf %a0, %a1 : f32\n    %r = math.exp %d : f32",
        ),
        fill("%zero"),
        op(columns, SUM, &[("%y", "#all")], ("%m", "#row"), "%r = arith.addf %a0, %o : f32"),
        op(columns, PARALLEL, &[("%m", "#row")], ("%y", "#all"), "%r = arith.divf %o, %a0 : f32"),
    ];
    kernel(args, sources, shape, &body.concat())
}

const APART: &str = "%X: @, %Y: @";

fn softmax_of_rows(x: &[f32], columns: usize) -> Vec<f32> {
    let row = |row: &[f32]| {
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f64> = row.iter().map(|x| f64::from(x - most).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(|power| (power / sum) as f32).collect::<Vec<_>>()
    };
    x.chunks(columns).flat_map(row).collect()
}

#[test]
fn rows_of_every_length() {
    if !can_run() {
        return;
    }
    for target in targets() {
        for columns in [512, 515, 768, 1000, 1024, 3001] {
            let (mut x, shape) = (random(3 * TASK * columns, 5), [3 * TASK, columns]);
            let expected = softmax_of_rows(&x, columns);
            let library = Library::load(&compile(&softmax(APART, ["%X", "%Y"], shape), &target).unwrap());
            let mut y = vec![f32::NAN; x.len()];
            (0..3).for_each(|task| library.run("k", &mut [&mut x, &mut y], &[task]));
            assert_close(&y, &expected, 1e-6);
            let library = Library::load(&compile(&softmax("%X: @", ["%X", "%X"], shape), &target).unwrap());
            (0..3).for_each(|task| library.run("k", &mut [&mut x], &[task]));
            assert_close(&x, &expected, 1e-6);
        }
    }
}

/// Of a result beyond the caches the first tasks alone are there.
#[test]
fn large_results_are_right_wherever_they_begin() {
    if !can_run() {
        return;
    }
    for target in targets() {
        let (columns, tasks) = (1024, 3);
        let library = Library::load(&compile(&softmax(APART, ["%X", "%Y"], [4096, columns]), &target).unwrap());
        let mut x = random(tasks * TASK * columns, 6);
        let expected = softmax_of_rows(&x, columns);
        for offset in [0, 1, 4, 16] {
            let mut y = vec![f32::NAN; x.len() + offset];
            let mut shifted = y.split_off(offset);
            (0..tasks as i64).for_each(|task| library.run("k", &mut [&mut x, &mut shifted], &[task]));
            assert_close(&shifted, &expected, 1e-6);
        }
    }
}

/// `y[i, j] = x[i, j] - m[j]`, where `m[i]` is the maximum of row `i`: no row is done before all others have begun.
#[test]
fn rows_that_read_of_others_wait_for_them() {
    if !can_run() {
        return;
    }
    let columns = 1024;
    let square = "memref<8x8xf32, strided<[1024, 1], offset: ?>>";
    let corner = |name: &str, of: &str| {
        format!("  {name} = memref.subview {of}[0, 0] [8, 8] [1, 1] : {} to {square}\n", part([TASK, columns]))
    };
    let subtract =
        op(columns, PARALLEL, &[("%p", "#all"), ("%m", "#column")], ("%q", "#all"), "%r = arith.subf %a0, %a1 : f32");
    let body = [
        fill("%least"),
        op(columns, SUM, &[("%x", "#all")], ("%m", "#row"), "%r = arith.maxnumf %a0, %o : f32"),
        op(columns, PARALLEL, &[("%x", "#all")], ("%y", "#all"), "%r = arith.negf %a0 : f32"),
        corner("%p", "%x"),
        corner("%q", "%y"),
        subtract.replace(&part([TASK, columns]), square),
    ];
    for target in targets() {
        let library =
            Library::load(&compile(&kernel(APART, ["%X", "%Y"], [TASK, columns], &body.concat()), &target).unwrap());
        let mut x = random(TASK * columns, 7);
        let most: Vec<f32> = x.chunks(columns).map(|row| row.iter().copied().fold(f32::MIN, f32::max)).collect();
        let element = |(at, x): (usize, &f32)| if at % columns < 8 { x - most[at % columns] } else { -x };
        let expected: Vec<f32> = x.iter().enumerate().map(element).collect();
        let mut y = vec![f32::NAN; x.len()];
        library.run("k", &mut [&mut x, &mut y], &[0]);
        assert_close(&y, &expected, 0.0);
    }
}

/// Calls that fetch a line, and stores past the caches.
fn fetches_and_stores(kernel: &str, cpu: &str) -> [usize; 2] {
    let module = format!("func.func @main(%cx: i64) {{ return }}\n{kernel}");
    let module = Module::parse(Context::new(), module.as_bytes(), "test.mlir").unwrap();
    let text = listing(&module, &CpuTarget::parse(cpu).unwrap(), Listing::OptimizedIr).unwrap();
    let fences = text.matches("call void @llvm.x86.sse.sfence").count();
    assert_eq!(fences, usize::from(text.contains("!nontemporal")), "{text}");
    [text.matches("call void @llvm.prefetch").count(), text.lines().filter(|l| l.contains("!nontemporal")).count()]
}

#[test]
fn the_next_row_is_fetched_and_large_results_are_written_once() {
    let counts = |rows: usize, columns: usize, cpu: &str| {
        fetches_and_stores(&softmax(APART, ["%X", "%Y"], [rows, columns]), cpu)
    };
    assert_eq!(counts(4096, 1024, "x86-64-v4"), [2, 1], "two lines of the vectors of a step, and one store");
    assert!(counts(4096, 1024, "x86-64-v3")[0] > 0);
    assert_eq!(counts(4096, 1024, "x86-64-v2")[0], 0, "narrow vectors would fetch lines twice");
    assert_eq!(counts(4088, 1024, "x86-64-v4"), [2, 0], "a cache may hold the result");
    assert_eq!(counts(4096, 256, "x86-64-v4"), [0, 0], "short rows stay side by side");
    assert_eq!(counts(256, 16384, "x86-64-v4")[1], 1, "a line of 64 KiB fits on the stack");
    assert_eq!(counts(128, 32768, "x86-64-v4")[1], 0, "a longer one does not, and what is read again stays in caches");
    let in_place = softmax("%X: @", ["%X", "%X"], [4096, 1024]);
    assert_eq!(fetches_and_stores(&in_place, "x86-64-v4"), [2, 0], "what is read is not written past the caches");
}
