//! Bodies beyond straight tile programs: scalars, unknown extents, control flow, gathers, grids, scratch, types in memory.

use crate::device::{Device, device};
use crate::program::{compile, numbers};
use monopour_program::{GpuDescription, fold_grid};

const SPACE: &str = "#gpu.address_space<global>";
const GENERIC: &str = r#"class = "generic", workgroup_size = array<i32: 8, 1, 1>, vector_width = 4 : i64"#;

/// A module with one dispatch: `main` takes the kernel's arguments, and the dynamic extents of the grid after them.
struct Case {
    args: Vec<String>,
    grid: Vec<Option<i64>>,
    body: String,
}

impl Case {
    fn new(args: &[&str], grid: &[Option<i64>], body: impl Into<String>) -> Self {
        Self { args: args.iter().map(|a| a.replace("@", SPACE)).collect(), grid: grid.to_vec(), body: body.into() }
    }

    fn text(&self) -> String {
        let rank = self.grid.len();
        let typed: Vec<String> = self.args.iter().enumerate().map(|(i, t)| format!("%a{i}: {t}")).collect();
        let extents: Vec<String> = (0..rank).map(|d| format!("%e{d}: index")).collect();
        let ids: Vec<String> = (0..rank).map(|d| format!("%i{d}")).collect();
        let id_params: Vec<String> = ids.iter().map(|i| format!("{i}: index")).collect();
        let grid: Vec<String> =
            self.grid.iter().enumerate().map(|(d, g)| g.map_or(format!("%e{d}"), |g| g.to_string())).collect();
        let names: Vec<String> = (0..self.args.len()).map(|i| format!("%a{i}")).chain(ids.iter().cloned()).collect();
        let types: Vec<String> = self.args.iter().cloned().chain(ids.iter().map(|_| "index".to_owned())).collect();
        format!(
            "func.func @main({}) {{\n  scf.forall ({}) in ({}) {{\n    func.call @kernel({}) : ({}) -> ()\n  }}\n  return\n}}\n\
             func.func private @kernel({}) attributes {{monopour.kernel = {{{GENERIC}}}, monopour.grid_rank = {rank} : i64}} {{\n{}\n  return\n}}\n",
            typed.iter().chain(&extents).cloned().collect::<Vec<_>>().join(", "),
            ids.join(", "),
            grid.join(", "),
            names.join(", "),
            types.join(", "),
            typed.iter().chain(&id_params).cloned().collect::<Vec<_>>().join(", "),
            self.body.replace('@', SPACE),
        )
    }

    /// Runs on the device, compiled for `description`; `grid` is x, y, z.
    fn run_as(
        &self,
        device: &Device,
        description: &GpuDescription,
        grid: [u32; 3],
        contents: &[Vec<u32>],
        scalars: &[u64],
    ) -> (Vec<Vec<u32>>, String) {
        let text = self.text();
        let (kernel, _, ir) = compile(&text, description).unwrap_or_else(|d| panic!("{d}\n{text}"));
        let missing = kernel.features.iter().find(|f| !device.description.has(**f));
        assert_eq!(missing, None, "the kernel asks for what the device has");
        (device.run_with(&kernel, grid, contents, scalars), ir)
    }

    fn run(&self, device: &Device, grid: [u32; 3], contents: &[Vec<u32>], scalars: &[u64]) -> Vec<Vec<u32>> {
        self.run_as(device, &device.description, grid, contents, scalars).0
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

fn floats(words: &[u32]) -> Vec<f32> {
    words.iter().map(|x| f32::from_bits(*x)).collect()
}

/// `linalg.generic` with identity maps over `rank` parallel loops.
fn pointwise(rank: usize, ins: &str, outs: &str, params: &str, body: &str) -> String {
    let dims: Vec<String> = (0..rank).map(|d| format!("d{d}")).collect();
    let map = format!("affine_map<({0}) -> ({0})>", dims.join(", "));
    let count = ins.matches("memref<").count() + 1;
    let maps = vec![map; count].join(", ");
    let iterators = vec!["\"parallel\""; rank].join(", ");
    let ins = if ins.is_empty() { String::new() } else { format!("ins({ins})") };
    format!(
        "linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} {ins} outs({outs}) {{\n^bb0({params}):\n{body}\n}}\n"
    )
}

#[test]
fn buffers_of_unknown_extent_with_dynamic_strides() {
    let Some(device) = device() else { return };
    // Tile %i of 3 rows at most; rows of a matrix inside a larger one, times a scalar.
    let strided = "memref<?x?xf32, strided<[?, 1], offset: ?>, @>";
    let whole = "memref<?x?xf32, @>";
    let tile = "memref<?x?xf32, strided<[?, 1], offset: ?>, @>";
    let body = format!(
        "  %x = memref.reinterpret_cast %a0 to offset: [%a2], sizes: [%a3, %a4], strides: [%a5, 1] : memref<f32, @> to {strided}\n\
         \x20 %y = memref.reinterpret_cast %a1 to offset: [0], sizes: [%a3, %a4], strides: [%a4, 1] : memref<f32, @> to {whole}\n\
         \x20 %c0 = arith.constant 0 : index\n  %rows = memref.dim %x, %c0 : {strided}\n\
         \x20 %first = affine.apply affine_map<(d0) -> (d0 * 3)>(%i0)\n  %n = affine.min affine_map<(d0)[s0] -> (3, s0 - d0 * 3)>(%i0)[%rows]\n\
         \x20 %xs = memref.subview %x[%first, 0] [%n, %a4] [1, 1] : {strided} to {tile}\n\
         \x20 %ys = memref.subview %y[%first, 0] [%n, %a4] [1, 1] : {whole} to {tile}\n{}",
        pointwise(
            2,
            &format!("%xs : {tile}"),
            &format!("%ys : {tile}"),
            "%p: f32, %q: f32",
            "  %m = arith.mulf %p, %a6 : f32\n  linalg.yield %m : f32"
        )
    );
    let args = ["memref<f32, @>", "memref<f32, @>", "index", "index", "index", "index", "f32"];
    let case = Case::new(&args, &[Some(3)], body);
    let input = numbers(100, 1);
    let scalars = [5, 7, 6, 11, u64::from(2.5f32.to_bits())];
    let out = case.run(device, [3, 1, 1], &[bits(&input), vec![0; 42]], &scalars);
    let expected: Vec<f32> = (0..42).map(|i| input[5 + i / 6 * 11 + i % 6] * 2.5).collect();
    assert_eq!(floats(&out[1]), expected);
    let (_, _, ir) = compile(&case.text(), &device.description).expect("it compiles");
    assert!(ir.contains("monopour.whole"), "the call passes everything from the base on:\n{ir}");
}

#[test]
fn bodies_that_gather_stay_inside_the_slice() {
    let Some(device) = device() else { return };
    let body = pointwise(
        1,
        "%a1 : memref<6xi32, @>",
        "%a2 : memref<6xf32, @>",
        "%p: i32, %q: f32",
        "  %k = arith.index_cast %p : i32 to index\n  %i = linalg.index 0 : index\n  %c1 = arith.constant 1 : index\n  %j = arith.andi %i, %c1 : index\n  %v = memref.load %a0[%k, %j] : memref<4x2xf32, @>\n\
         \x20 %zero = arith.constant 0.0 : f32\n  %is = arith.cmpf ogt, %v, %zero : f32\n  %r = scf.if %is -> (f32) {\n    %w = memref.load %a0[%j, %j] : memref<4x2xf32, @>\n    %s = arith.addf %v, %w : f32\n    scf.yield %s : f32\n  } else {\n    scf.yield %v : f32\n  }\n  linalg.yield %r : f32",
    );
    let case = Case::new(&["memref<4x2xf32, @>", "memref<6xi32, @>", "memref<6xf32, @>"], &[Some(1)], body);
    let table = [1.0, 2.0, 3.0, 4.0, -5.0, 6.0, 7.0, 8.0];
    let index: [i32; 6] = [0, 3, 2, 1, 100, -7];
    let out = case.run(device, [1, 1, 1], &[bits(&table), index.iter().map(|i| *i as u32).collect(), vec![0; 6]], &[]);
    // Column i % 2; rows beyond the table are its last and its first one.
    let row = |i: i32| i.clamp(0, 3) as usize;
    let expected: Vec<f32> = (0..6)
        .map(|i| {
            let v = table[row(index[i]) * 2 + i % 2];
            if v > 0.0 { v + table[(i % 2) * 3] } else { v }
        })
        .collect();
    assert_eq!(floats(&out[2]), expected);
}

#[test]
fn loops_and_conditions_around_tile_ops() {
    let Some(device) = device() else { return };
    // acc = 0; for k in 0..4 step 2: acc += x[k..k+2] summed over its rows; the sum of two entries is the condition of the
    // last addition.
    let x = "memref<4x8xf32, @>";
    let rows = "memref<2x8xf32, strided<[8, 1], offset: ?>, @>";
    let reduce = format!(
        "linalg.generic {{indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>], iterator_types = [\"reduction\", \"parallel\"]}} ins(%s : {rows}) outs(%acc : memref<8xf32>) {{\n^bb0(%p: f32, %q: f32):\n  %t = arith.addf %p, %q : f32\n  linalg.yield %t : f32\n}}\n"
    );
    let add = pointwise(
        1,
        "%acc : memref<8xf32>",
        "%a1 : memref<8xf32, @>",
        "%p: f32, %q: f32",
        "  %t = arith.addf %p, %u : f32\n  linalg.yield %t : f32",
    );
    let negate = pointwise(
        1,
        "%acc : memref<8xf32>",
        "%a1 : memref<8xf32, @>",
        "%p: f32, %q: f32",
        "  %t = arith.negf %p : f32\n  linalg.yield %t : f32",
    );
    let body = format!(
        "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n  %c4 = arith.constant 4 : index\n  %z = arith.constant 0.0 : f32\n\
         \x20 %acc = memref.alloc() : memref<8xf32>\n  linalg.fill ins(%z : f32) outs(%acc : memref<8xf32>)\n\
         \x20 scf.for %k = %c0 to %c4 step %c2 {{\n    %s = memref.subview %a0[%k, 0] [2, 8] [1, 1] : {x} to {rows}\n{reduce}  }}\n\
         \x20 %u = memref.load %acc[%c1] : memref<8xf32>\n  memref.store %u, %a2[] : memref<f32, @>\n\
         \x20 scf.if %a3 {{\n{add}  }} else {{\n{negate}  }}"
    );
    let case = Case::new(&[x, "memref<8xf32, @>", "memref<f32, @>", "i1"], &[Some(1)], body);
    let input: Vec<f32> = (0..32).map(|i| i as f32 * 0.5 - 3.0).collect();
    let sums: Vec<f32> = (0..8).map(|c| (0..4).map(|r| input[r * 8 + c]).sum()).collect();
    for flag in [0u64, 1] {
        let (out, ir) =
            case.run_as(device, &device.description, [1, 1, 1], &[bits(&input), vec![0; 8], vec![0]], &[flag]);
        let expected: Vec<f32> = sums.iter().map(|s| if flag == 1 { s + sums[1] } else { -s }).collect();
        assert_eq!(floats(&out[1]), expected, "flag {flag}\n{ir}");
        assert_eq!(floats(&out[2]), [sums[1]]);
    }
}

/// Adds one to a tile of two elements.
fn increment(elements: i64, grid: &[Option<i64>], position: &str) -> Case {
    let slice = "memref<2xf32, strided<[1], offset: ?>, @>";
    let body = format!(
        "  %at = affine.apply {position}\n  %s = memref.subview %a0[%at] [2] [1] : memref<{elements}xf32, @> to {slice}\n  %one = arith.constant 1.0 : f32\n{}",
        pointwise(
            1,
            "",
            &format!("%s : {slice}"),
            "%q: f32",
            "  %t = arith.addf %q, %one : f32\n  linalg.yield %t : f32"
        )
    );
    Case::new(&[&format!("memref<{elements}xf32, @>")], grid, body)
}

#[test]
fn grids_longer_than_a_device_launches() {
    let Some(device) = device() else { return };
    let case = increment(140_000, &[Some(70_000)], "affine_map<(d0) -> (d0 * 2)>(%i0)");
    let grid = fold_grid(70_000).expect("it folds");
    assert_eq!(grid, [35_000, 2, 1]);
    // One workgroup beyond the grid is skipped.
    let (out, ir) = case.run_as(device, &device.description, [35_001, 2, 1], &[vec![0; 140_000]], &[]);
    assert_eq!(floats(&out[0]), vec![1.0; 140_000]);
    assert!(ir.contains("monopour.linear_grid"), "{ir}");
}

#[test]
fn calls_that_pass_a_dynamic_extent_in_place_of_a_tile_id() {
    // The kernel's arguments have the same types before and after.
    let case = increment(60, &[None], "affine_map<(d0) -> (d0 * 2)>(%i0)");
    let (_, _, ir) = compile(&case.text(), &crate::program::lavapipe()).expect("it compiles");
    assert!(ir.contains("func.call @kernel(%arg0, %arg1)"), "{ir}");
    // A constant stands for the id of the only tile.
    let single = increment(2, &[Some(1)], "affine_map<(d0) -> (d0 * 2)>(%i0)").text();
    let single = single
        .replace("func.call @kernel(%a0, %i0)", "%c0 = arith.constant 0 : index\n    func.call @kernel(%a0, %c0)");
    let (_, _, ir) = compile(&single, &crate::program::lavapipe()).expect("it compiles");
    assert!(ir.contains("func.call @kernel(%arg0)"), "{ir}");
}

#[test]
fn dynamic_grids() {
    let Some(device) = device() else { return };
    let case = increment(
        60,
        &[None, Some(3), None],
        "affine_map<(d0, d1, d2) -> (d0 * 30 + d1 * 10 + d2 * 2)>(%i0, %i1, %i2)",
    );
    for (rows, columns) in [(2, 5), (1, 2), (0, 3), (2, 1)] {
        // The host folds the product of the extents.
        let out = case.run(device, [4, 8, 1], &[vec![0; 60]], &[rows, columns]);
        let expected: Vec<f32> =
            (0..60).map(|i| if i / 30 < rows && i % 10 / 2 < columns { 1.0 } else { 0.0 }).collect();
        assert_eq!(floats(&out[0]), expected, "{rows} x 3 x {columns}");
    }
}

/// Transposes a square tile through a local buffer.
fn transpose(n: i64, tiles: i64, local: &str, alloc: &str, by: By) -> Case {
    let (all, tile) =
        (format!("memref<{tiles}x{n}x{n}xf32, @>"), format!("memref<{n}x{n}xf32, strided<[{n}, 1], offset: ?>, @>"));
    let copy = |from: &str, map: &str, to: &str| {
        format!(
            "linalg.generic {{indexing_maps = [{map}, affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}} ins({from}) outs({to}) {{\n^bb0(%p: f32, %q: f32):\n  linalg.yield %p : f32\n}}\n"
        )
    };
    let through = |id: &str| {
        format!(
            "  %s = memref.subview %a0[{id}, 0, 0] [1, {n}, {n}] [1, 1, 1] : {all} to {tile}\n{}{}",
            copy(&format!("%s : {tile}"), "affine_map<(i, j) -> (i, j)>", &format!("%t : {local}")),
            copy(&format!("%t : {local}"), "affine_map<(i, j) -> (j, i)>", &format!("%s : {tile}"))
        )
    };
    let body = match by {
        By::Grid => format!("  {alloc}\n{}", through("%i0")),
        By::Loop => format!(
            "  {alloc}\n  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %n = arith.constant {tiles} : index\n\
             \x20 scf.for %k = %c0 to %n step %c1 {{\n{}  }}",
            through("%k")
        ),
    };
    let grid = if by == By::Grid { tiles } else { 1 };
    Case::new(&[&all, "index"], &[Some(grid)], body)
}

/// The loop over the tiles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Grid,
    /// In each tile of the grid, of which there is one.
    Loop,
}

/// The next iteration overwrites the local buffer that a slow invocation still reads: `compile` checks the barriers.
#[test]
fn iterations_share_a_local_buffer() {
    let Some(device) = device() else { return };
    let (n, tiles) = (5usize, 7usize);
    let input = numbers((n * n * tiles) as i64, 5);
    let expected: Vec<f32> = (0..n * n * tiles).map(|i| input[i / (n * n) * n * n + i % n * n + i / n % n]).collect();
    let alloc = "%t = memref.alloc() : memref<5x5xf32>";
    let case = transpose(n as i64, tiles as i64, "memref<5x5xf32>", alloc, By::Loop);
    let (out, ir) = case.run_as(device, &device.description, [1, 1, 1], &[bits(&input)], &[n as u64]);
    assert_eq!(floats(&out[0]), expected, "{ir}");
    assert!(ir.contains("memref.alloca"), "{ir}");
}

#[test]
fn local_buffers_beyond_workgroup_memory_are_scratch() {
    let Some(device) = device() else { return };
    let (n, tiles) = (5usize, 7usize);
    let input = numbers((n * n * tiles) as i64, 3);
    let expected: Vec<f32> = (0..n * n * tiles).map(|i| input[i / (n * n) * n * n + i % n * n + i / n % n]).collect();
    let mut small = device.description.clone();
    small.limits.max_workgroup_storage_bytes = 64;
    let constant = "%t = memref.alloc() : memref<5x5xf32>";
    let padded = "%all = memref.alloc() : memref<10x5xf32>\n  %t = memref.subview %all[0, 0] [5, 5] [1, 1] : memref<10x5xf32> to memref<5x5xf32, strided<[5, 1]>>";
    let sized = "%t = memref.alloc(%a1, %a1) : memref<?x?xf32>";
    // All workgroups at once; four of them, which take several tiles in turn; an extent that the host passes.
    let cases = [
        ("memref<5x5xf32>", constant, 1 << 20, 7 * 25),
        ("memref<5x5xf32, strided<[5, 1]>>", padded, 800, 4 * 50),
        ("memref<?x?xf32>", sized, 1 << 20, 256 * 25),
    ];
    for (local, alloc, most_bytes, scratch) in cases {
        let case = transpose(n as i64, tiles as i64, local, alloc, By::Grid);
        small.limits.max_binding_bytes = most_bytes;
        let (out, ir) = case.run_as(device, &small, [7, 1, 1], &[bits(&input), vec![0; scratch]], &[n as u64]);
        assert_eq!(floats(&out[0]), expected, "{ir}");
        let (alloc, free) = (ir.find("memref.alloc("), ir.find("memref.dealloc"));
        assert!(alloc.zip(ir.find("scf.forall")).is_some_and(|(a, f)| a < f), "{ir}");
        assert!(free > ir.find("func.call"), "{ir}");
    }
}

#[test]
fn bools_bytes_and_indices_in_tensors() {
    let Some(device) = device() else { return };
    let compare = pointwise(
        1,
        "%a0, %a1 : memref<9xi8, @>, memref<9xi8, @>",
        "%a2 : memref<9xi1, @>",
        "%p: i8, %q: i8, %o: i1",
        "  %t = arith.cmpi slt, %p, %q : i8\n  linalg.yield %t : i1",
    );
    let select = pointwise(
        1,
        "%a2, %a0, %a1 : memref<9xi1, @>, memref<9xi8, @>, memref<9xi8, @>",
        "%a3 : memref<9xindex, @>",
        "%c: i1, %p: i8, %q: i8, %o: index",
        "  %t = arith.select %c, %p, %q : i8\n  %w = arith.index_cast %t : i8 to index\n  linalg.yield %w : index",
    );
    let case = Case::new(
        &["memref<9xi8, @>", "memref<9xi8, @>", "memref<9xi1, @>", "memref<9xindex, @>"],
        &[Some(1)],
        compare + &select,
    );
    let a: [i8; 12] = [1, -2, 3, -128, 127, 0, 7, 9, 5, 0, 0, 0];
    let b: [i8; 12] = [2, -3, 3, 127, -128, 1, -7, 9, 6, 0, 0, 0];
    let words =
        |v: &[i8]| v.chunks(4).map(|c| u32::from_le_bytes([c[0] as u8, c[1] as u8, c[2] as u8, c[3] as u8])).collect();
    let out = case.run(device, [1, 1, 1], &[words(&a), words(&b), vec![0xffff_ffff; 3], vec![7; 18]], &[]);
    let flags: Vec<u8> = out[2].iter().flat_map(|w| w.to_le_bytes()).collect();
    for i in 0..9 {
        assert_eq!(flags[i], u8::from(a[i] < b[i]), "flag {i}");
        let found = u64::from(out[3][2 * i]) | u64::from(out[3][2 * i + 1]) << 32;
        assert_eq!(found as i64, i64::from(a[i].min(b[i])), "element {i}");
    }
    assert_eq!(flags[9..], [0xff; 3], "bytes behind the tensor stay as they were");
}

#[test]
fn empty_tensors_and_kept_dimensions() {
    let Some(device) = device() else { return };
    let sum = |x: &str, y: &str| {
        format!(
            "  %z = arith.constant 0.0 : f32\n  linalg.fill ins(%z : f32) outs(%a1 : {y})\n  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>], iterator_types = [\"parallel\", \"reduction\"]}} ins(%a0 : {x}) outs(%a1 : {y}) {{\n^bb0(%p: f32, %q: f32):\n  %t = arith.addf %p, %q : f32\n  linalg.yield %t : f32\n}}"
        )
    };
    let run = |rows: usize, columns: usize| {
        let (x, y) = (format!("memref<{rows}x{columns}xf32, @>"), format!("memref<{rows}x1xf32, @>"));
        let case = Case::new(&[&x, &y], &[Some(1)], sum(&x, &y));
        let input: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        // A binding has at least one word.
        let contents = [if input.is_empty() { vec![0] } else { bits(&input) }, vec![9; rows.max(1)]];
        let (out, ir) = case.run_as(device, &device.description, [1, 1, 1], &contents, &[]);
        (floats(&out[1]), ir)
    };
    assert_eq!(run(3, 0).0, [0.0; 3]);
    assert_eq!(run(1, 1).0, [0.0]);
    let (sums, ir) = run(11, 5);
    assert_eq!(sums, (0..11).map(|r| (0..5).map(|c| (r * 5 + c) as f32).sum()).collect::<Vec<f32>>());
    // Invocations share the rows: the work is not in one of them.
    assert!(!ir.contains("cmpi slt, %thread_id_x, %c1"), "{ir}");
    assert_eq!(floats(&[run(0, 4).0[0].to_bits()]), floats(&[9]), "nothing is written");
}

#[test]
fn more_iterations_than_a_software_adapter_takes() {
    let Some(device) = device() else { return };
    // Column sums of a long matrix, in loops of static and of dynamic length; each invocation has one column.
    let sum = |x: &str, y: &str| {
        format!(
            "  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]}} ins(%x : {x}) outs(%a1 : {y}) {{\n^bb0(%p: i32, %q: i32):\n  %t = arith.addi %p, %q : i32\n  linalg.yield %t : i32\n  }}"
        )
    };
    let (rows, columns) = (150_000usize, 8usize);
    let y = format!("memref<{columns}xi32, @>");
    let known = format!("memref<{rows}x{columns}xi32, @>");
    let open = format!("memref<?x{columns}xi32, @>");
    let whole = format!("  %x = memref.cast %a0 : {known} to {known}\n");
    let opened = format!(
        "  %x = memref.reinterpret_cast %a0 to offset: [0], sizes: [%a2, {columns}], strides: [{columns}, 1] : memref<i32, @> to {open}\n"
    );
    let cases = [
        Case::new(&[&known, &y], &[Some(1)], whole + &sum(&known, &y)),
        Case::new(&["memref<i32, @>", &y, "index"], &[Some(1)], opened + &sum(&open, &y)),
    ];
    let input: Vec<u32> = (0..rows * columns).map(|i| (i % 7) as u32).collect();
    let expected: Vec<u32> = (0..columns).map(|c| (0..rows).map(|r| input[r * columns + c]).sum()).collect();
    for case in cases {
        let out = case.run(device, [1, 1, 1], &[input.clone(), vec![0; columns]], &[rows as u64]);
        assert_eq!(out[1], expected, "{}", case.text());
    }
}
