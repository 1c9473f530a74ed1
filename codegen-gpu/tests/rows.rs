//! Row kernels on the device against plain loops: softmax, layer norm, single reductions; ragged rows, all geometries.

use crate::device::device;
use crate::program::{assert_close, buffer, compile, execute, execute_as, lavapipe, numbers, outlined};

const SUBGROUP: &str = r#"class = "row", workgroup_size = array<i32: 8, 1, 1>, register_tile = array<i64: 1>, vector_width = 8 : i64, share = "subgroup", subgroup_size = 8 : i64"#;
const WORKGROUP: &str = r#"class = "row", workgroup_size = array<i32: 64, 1, 1>, register_tile = array<i64: 1>, vector_width = 4 : i64, share = "none""#;
const FALLBACK: &str = r#"class = "generic", workgroup_size = array<i32: 32, 1, 1>"#;

/// The computation of a kernel per row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    Softmax,
    /// With scale and bias along the row.
    LayerNorm,
    /// The sum, after a fill.
    Sum,
    /// The maximum of squares of `x - shift` (a vector along the row), onto the initial result.
    MaxOnto,
    /// Sum and product of the row in one op with two results.
    Pair,
}

/// One kernel: `rows x columns` in tiles of some rows.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub program: Program,
    pub rows: i64,
    pub columns: i64,
    pub tile: i64,
}

/// Types of a tile's operands.
struct Types {
    is_ragged: bool,
    /// Rows, a value per row, and a row as the case has them.
    wide: String,
    narrow: String,
    line: String,
    /// A value per row in workgroup memory.
    local: String,
}

impl Types {
    fn new(case: &Case) -> Self {
        let (n, is_ragged) = (case.columns, case.rows % case.tile != 0);
        let extent = if is_ragged { "?".to_owned() } else { case.tile.to_string() };
        Self {
            is_ragged,
            wide: format!("memref<{extent}x{n}xf32, strided<[{n}, 1], offset: ?>, #gpu.address_space<global>>"),
            narrow: format!("memref<{extent}xf32, strided<[1], offset: ?>, #gpu.address_space<global>>"),
            line: buffer(&[n]),
            local: format!("memref<{extent}xf32, #gpu.address_space<workgroup>>"),
        }
    }

    /// A filled local buffer.
    fn alloc(&self, name: &str, value: &str) -> String {
        let size = if self.is_ragged { "%rs" } else { "" };
        format!("  %{name} = memref.alloc({size}) : {}\n", self.local) + &fill(value, name, &self.local)
    }
}

fn fill(value: &str, name: &str, ty: &str) -> String {
    format!("  linalg.fill ins(%{value} : f32) outs(%{name} : {ty})\n")
}

fn pointwise(maps: &[&str], ins: &str, out: &str, args: &str, ops: &str) -> String {
    let maps: Vec<String> = maps.iter().map(|m| format!("affine_map<(i, j) -> ({m})>")).collect();
    let ins = if ins.is_empty() { String::new() } else { format!("ins({ins}) ") };
    format!(
        "  linalg.generic {{indexing_maps = [{}], iterator_types = [\"parallel\", \"parallel\"]}} {ins}outs({out}) {{\n  ^bb0({args}):\n{ops}\n    linalg.yield %r : f32\n  }}\n",
        maps.join(", ")
    )
}

/// On a value per row.
fn vector(out: &str, ops: &str) -> String {
    format!(
        "  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}} outs({out}) {{\n  ^bb0(%o: f32):\n{ops}\n    linalg.yield %r : f32\n  }}\n"
    )
}

fn reduce(ins: &str, out: &str, ops: &str) -> String {
    format!(
        "  linalg.generic {{{REDUCE}}} ins({ins}) outs({out}) {{\n  ^bb0(%x: f32, %o: f32):\n{ops}\n    linalg.yield %r : f32\n  }}\n"
    )
}

fn softmax(types: &Types) -> String {
    let Types { wide, local, .. } = types;
    let mut b = types.alloc("m", "low");
    b += &reduce(&format!("%s0 : {wide}"), &format!("%m : {local}"), "    %r = arith.maximumf %x, %o : f32");
    b += &pointwise(
        &["i, j", "i", "i, j"],
        &format!("%s0, %m : {wide}, {local}"),
        &format!("%s1 : {wide}"),
        "%x: f32, %q: f32, %o: f32",
        "    %d = arith.subf %x, %q : f32\n    %r = math.exp %d : f32",
    );
    b += &types.alloc("s", "zero");
    b += &reduce(&format!("%s1 : {wide}"), &format!("%s : {local}"), "    %r = arith.addf %o, %x : f32");
    b + &pointwise(
        &["i", "i, j"],
        &format!("%s : {local}"),
        &format!("%s1 : {wide}"),
        "%q: f32, %o: f32",
        "    %r = arith.divf %o, %q : f32",
    )
}

fn layer_norm(types: &Types) -> String {
    let Types { wide, local, line, .. } = types;
    let mut b = types.alloc("m", "zero");
    b += &reduce(&format!("%s0 : {wide}"), &format!("%m : {local}"), "    %r = arith.addf %o, %x : f32");
    b += &vector(&format!("%m : {local}"), "    %r = arith.divf %o, %n : f32");
    b += &pointwise(
        &["i, j", "i", "i, j"],
        &format!("%s0, %m : {wide}, {local}"),
        &format!("%s3 : {wide}"),
        "%x: f32, %q: f32, %o: f32",
        "    %r = arith.subf %x, %q : f32",
    );
    b += &types.alloc("s", "zero");
    b += &reduce(
        &format!("%s3 : {wide}"),
        &format!("%s : {local}"),
        "    %q = arith.mulf %x, %x : f32\n    %r = arith.addf %o, %q : f32",
    );
    b += &vector(
        &format!("%s : {local}"),
        "    %v = arith.divf %o, %n : f32\n    %w = arith.addf %v, %eps : f32\n    %r = math.rsqrt %w : f32",
    );
    b + &pointwise(
        &["i", "j", "j", "i, j"],
        &format!("%s, %s1, %s2 : {local}, {line}, {line}"),
        &format!("%s3 : {wide}"),
        "%q: f32, %g: f32, %h: f32, %o: f32",
        "    %u = arith.mulf %o, %q : f32\n    %v = arith.mulf %u, %g : f32\n    %r = arith.addf %v, %h : f32",
    )
}

fn sum(Types { wide, narrow, .. }: &Types) -> String {
    fill("zero", "s1", narrow)
        + &reduce(&format!("%s0 : {wide}"), &format!("%s1 : {narrow}"), "    %r = arith.addf %x, %o : f32")
}

fn max_onto(Types { wide, narrow, line, .. }: &Types) -> String {
    format!(
        "  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]}} ins(%s0, %s1 : {wide}, {line}) outs(%s2 : {narrow}) {{\n  ^bb0(%x: f32, %y: f32, %o: f32):\n    %d = arith.subf %x, %y : f32\n    %q = arith.mulf %d, %d : f32\n    %r = arith.maximumf %o, %q : f32\n    linalg.yield %r : f32\n  }}\n"
    )
}

fn pair(Types { wide, narrow, .. }: &Types) -> String {
    let mut b = fill("zero", "s1", narrow);
    b += &fill("one", "s2", narrow);
    b + &format!(
        "  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]}} ins(%s0 : {wide}) outs(%s1, %s2 : {narrow}, {narrow}) {{\n  ^bb0(%x: f32, %o: f32, %p: f32):\n    %r = arith.addf %x, %o : f32\n    %y = arith.addf %x, %one : f32\n    %q = arith.mulf %p, %y : f32\n    linalg.yield %r, %q : f32, f32\n  }}\n"
    )
}

const REDUCE: &str = "indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]";

impl Case {
    pub fn grid(&self) -> Vec<i64> {
        vec![(self.rows + self.tile - 1) / self.tile]
    }
    /// Of the buffers; results come last.
    fn shapes(&self) -> Vec<Vec<i64>> {
        let (r, n) = (self.rows, self.columns);
        match self.program {
            Program::Softmax => vec![vec![r, n], vec![r, n]],
            Program::LayerNorm => vec![vec![r, n], vec![n], vec![n], vec![r, n]],
            Program::Sum => vec![vec![r, n], vec![r]],
            Program::MaxOnto => vec![vec![r, n], vec![n], vec![r]],
            Program::Pair => vec![vec![r, n], vec![r], vec![r]],
        }
    }
    pub fn text(&self, kernel: &str) -> String {
        let args: Vec<String> = self.shapes().iter().map(|s| buffer(s)).collect();
        outlined(&args, &self.grid(), kernel, &self.body())
    }

    fn body(&self) -> String {
        let (rows, n, tile) = (self.rows, self.columns, self.tile);
        let types = Types::new(self);
        let mut b = format!("  %r0 = affine.apply affine_map<(d0) -> (d0 * {tile})>(%i0)\n");
        if types.is_ragged {
            b += &format!("  %rs = affine.min affine_map<(d0) -> (d0 * -{tile} + {rows}, {tile})>(%i0)\n");
        }
        b += &self.subviews(&types);
        b += &format!(
            "  %zero = arith.constant 0.0 : f32\n  %one = arith.constant 1.0 : f32\n  %low = arith.constant 0xFF800000 : f32\n  %n = arith.constant {n}.0 : f32\n  %eps = arith.constant 1.0e-5 : f32\n"
        );
        b + &match self.program {
            Program::Softmax => softmax(&types),
            Program::LayerNorm => layer_norm(&types),
            Program::Sum => sum(&types),
            Program::MaxOnto => max_onto(&types),
            Program::Pair => pair(&types),
        }
    }

    /// The tile's part of each buffer, `%s0` and so on.
    fn subviews(&self, types: &Types) -> String {
        let (rows, n) = (self.rows, self.columns);
        let Types { wide, narrow, .. } = types;
        let size = if types.is_ragged { "%rs".to_owned() } else { self.tile.to_string() };
        let subview = |(i, shape): (usize, Vec<i64>)| {
            let ty = buffer(&shape);
            match shape.as_slice() {
                [_, _] => format!("  %s{i} = memref.subview %a{i}[%r0, 0] [{size}, {n}] [1, 1] : {ty} to {wide}\n"),
                [d] if *d == rows
                    && !(self.program == Program::LayerNorm || (self.program == Program::MaxOnto && i == 1)) =>
                {
                    format!("  %s{i} = memref.subview %a{i}[%r0] [{size}] [1] : {ty} to {narrow}\n")
                }
                _ => format!("  %s{i} = memref.cast %a{i} : {ty} to {ty}\n"),
            }
        };
        self.shapes().into_iter().enumerate().map(subview).collect()
    }

    pub fn inputs(&self) -> Vec<Vec<f32>> {
        self.shapes().iter().enumerate().map(|(i, s)| numbers(s.iter().product(), i as u64 + 1)).collect()
    }

    /// The results.
    pub fn expected(&self, inputs: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let rows =
            inputs[0].chunks(self.columns as usize).map(|r| r.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>());
        let n = self.columns as f64;
        let (mut first, mut second) = (vec![], vec![]);
        for (i, row) in rows.enumerate() {
            match self.program {
                Program::Softmax => {
                    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
                    first.extend(row.iter().map(|x| ((x - max).exp() / sum) as f32));
                }
                Program::LayerNorm => {
                    let mean = row.iter().sum::<f64>() / n;
                    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
                    let scale = 1.0 / (variance + 1e-5).sqrt();
                    let at = |v: usize, j: usize| f64::from(inputs[v][j]);
                    first
                        .extend(row.iter().enumerate().map(|(j, x)| ((x - mean) * scale * at(1, j) + at(2, j)) as f32));
                }
                Program::Sum => first.push(row.iter().sum::<f64>() as f32),
                Program::MaxOnto => {
                    let squares = row.iter().zip(&inputs[1]).map(|(x, y)| (x - f64::from(*y)).powi(2));
                    first.push(squares.fold(f64::from(inputs[2][i]), f64::max) as f32);
                }
                Program::Pair => {
                    first.push(row.iter().sum::<f64>() as f32);
                    second.push(row.iter().map(|x| x + 1.0).product::<f64>() as f32);
                }
            }
        }
        if second.is_empty() { vec![first] } else { vec![first, second] }
    }
}

const ALL: [Program; 5] = [Program::Softmax, Program::LayerNorm, Program::Sum, Program::MaxOnto, Program::Pair];

fn check(case: &Case, kernel: &str, strategy: &str) {
    let Some(device) = device() else { return };
    let inputs = case.inputs();
    let (out, report) = execute(device, &case.text(kernel), &case.grid(), &inputs);
    assert_eq!(report.kernels[0].strategy, strategy, "{case:?}: {}", report.kernels[0].declined);
    let expected = case.expected(&inputs);
    for (found, expected) in out[out.len() - expected.len()..].iter().zip(&expected) {
        assert_close(found, expected, 2e-5, &format!("{case:?} {kernel}"));
    }
}

#[test]
fn rows_of_any_length() {
    for (i, columns) in [2, 3, 7, 8, 10, 17, 31, 64, 72, 96, 101, 128, 320, 1000].into_iter().enumerate() {
        // All programs at some lengths, and one of them at each.
        let programs = if i % 5 == 1 { &ALL[..] } else { &ALL[i % 5..=i % 5] };
        for program in programs {
            check(&Case { program: *program, rows: 5, columns, tile: 2 }, SUBGROUP, "rows");
            check(&Case { program: *program, rows: 5, columns, tile: 2 }, WORKGROUP, "rows");
        }
    }
}

#[test]
fn several_rows_per_team_and_teams_per_workgroup() {
    for (program, rows, columns, tile, size, per_team) in [
        (Program::Softmax, 20, 64, 8, 32, 2),
        (Program::LayerNorm, 21, 100, 8, 16, 3),
        (Program::Sum, 9, 24, 9, 64, 4),
        (Program::MaxOnto, 70, 16, 35, 8, 2),
        (Program::Pair, 13, 5, 13, 8, 8),
    ] {
        for kernel in [SUBGROUP, WORKGROUP] {
            let kernel = kernel
                .replace("64, 1, 1", &format!("{size}, 1, 1"))
                .replace("8, 1, 1", &format!("{size}, 1, 1"))
                .replace("array<i64: 1>", &format!("array<i64: {per_team}>"));
            check(&Case { program, rows, columns, tile }, &kernel, "rows");
        }
    }
}

/// Rows that do not fit in registers are loaded by every sweep.
#[test]
fn long_rows() {
    for (program, columns) in
        [(Program::Softmax, 8192), (Program::LayerNorm, 5001), (Program::Sum, 70_000), (Program::MaxOnto, 4099)]
    {
        check(&Case { program, rows: 3, columns, tile: 1 }, SUBGROUP, "rows");
        check(&Case { program, rows: 3, columns: columns * 3, tile: 2 }, WORKGROUP, "rows");
    }
}

#[test]
fn a_row_of_one_element_takes_the_fallback() {
    for program in ALL {
        check(&Case { program, rows: 6, columns: 1, tile: 4 }, SUBGROUP, "fallback");
    }
}

#[test]
fn the_fallback_computes_the_same() {
    for program in ALL {
        check(&Case { program, rows: 5, columns: 19, tile: 3 }, FALLBACK, "fallback");
    }
}

#[test]
fn without_64_bit_integers_accesses_are_four_wide() {
    let Some(device) = device() else { return };
    let mut description = device.description.clone();
    description.features.retain(|f| *f != monopour_program::GpuFeature::Int64);
    let case = Case { program: Program::Softmax, rows: 4, columns: 200, tile: 2 };
    let inputs = case.inputs();
    let (out, report) = execute_as(device, &description, &case.text(SUBGROUP), &case.grid(), &inputs);
    assert_eq!((report.kernels[0].strategy, report.kernels[0].lanes), ("rows", 4));
    assert_close(&out[1], &case.expected(&inputs)[0], 1e-5, "four lanes");
}

#[test]
fn every_subgroup_size_compiles() {
    for size in [4, 8, 16, 32, 64] {
        let mut description = lavapipe();
        (description.subgroup_min_size, description.subgroup_max_size) = (size, size);
        let kernel =
            SUBGROUP.replace("subgroup_size = 8", &format!("subgroup_size = {size}")).replace("8, 1, 1", "64, 1, 1");
        let case = Case { program: Program::LayerNorm, rows: 100, columns: 200, tile: 8 };
        let (_, report, _) = compile(&case.text(&kernel), &description).expect("it compiles");
        assert_eq!(report.kernels[0].strategy, "rows", "subgroups of {size}: {}", report.kernels[0].declined);
    }
}
