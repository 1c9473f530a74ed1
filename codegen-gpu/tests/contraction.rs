//! Matrix products on the device against plain loops: ragged sizes, transposed operands, epilogues, both geometries.

use crate::device::device;
use crate::program::{assert_close, buffer, compile, execute, execute_as, lavapipe, numbers, outlined};

/// The shared geometry.
const SUBGROUP: &str = r#"class = "contraction", workgroup_size = array<i32: 8, 1, 1>, register_tile = array<i64: 16, 8>, vector_width = 8 : i64, share = "subgroup", subgroup_size = 8 : i64"#;
const PRIVATE: &str = r#"class = "contraction", workgroup_size = array<i32: 16, 16, 1>, register_tile = array<i64: 4, 4>, vector_width = 4 : i64, share = "none""#;
const FALLBACK: &str = r#"class = "generic", workgroup_size = array<i32: 32, 1, 1>"#;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Epilogue {
    None,
    /// Bias along the columns, then maximum with 0.
    BiasRelu,
    /// A second matrix is added, then tanh.
    ResidualTanh,
    /// A vector along the rows is added.
    RowBias,
}

#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub tile: (i64, i64),
    pub transposed: (bool, bool),
    pub epilogue: Epilogue,
    /// Whether a fill precedes the product; else the result's old value is the start.
    pub filled: bool,
}

impl Case {
    pub fn new(m: i64, n: i64, k: i64) -> Self {
        Self {
            m,
            n,
            k,
            tile: (16.min(m), 64.min(n)),
            transposed: (false, false),
            epilogue: Epilogue::None,
            filled: true,
        }
    }
    pub fn grid(&self) -> Vec<i64> {
        vec![(self.m + self.tile.0 - 1) / self.tile.0, (self.n + self.tile.1 - 1) / self.tile.1]
    }
    fn shapes(&self) -> Vec<Vec<i64>> {
        let (ta, tb) = self.transposed;
        let a = if ta { vec![self.k, self.m] } else { vec![self.m, self.k] };
        let b = if tb { vec![self.n, self.k] } else { vec![self.k, self.n] };
        let mut shapes = vec![a, b, vec![self.m, self.n]];
        match self.epilogue {
            Epilogue::None => {}
            Epilogue::BiasRelu => shapes.push(vec![self.n]),
            Epilogue::ResidualTanh => shapes.push(vec![self.m, self.n]),
            Epilogue::RowBias => shapes.push(vec![self.m]),
        }
        shapes
    }
    pub fn text(&self, kernel: &str) -> String {
        let args: Vec<String> = self.shapes().iter().map(|s| buffer(s)).collect();
        outlined(&args, &self.grid(), kernel, &self.body())
    }

    fn body(&self) -> String {
        let mut b = String::from("  %z = arith.constant 0.0 : f32\n");
        for (name, id, extent, tile) in [("m", "%i0", self.m, self.tile.0), ("n", "%i1", self.n, self.tile.1)] {
            b += &format!("  %{name}0 = affine.apply affine_map<(d0) -> (d0 * {tile})>({id})\n");
            if extent % tile == 0 {
                b += &format!("  %{name}s = arith.constant {tile} : index\n");
            } else {
                b += &format!("  %{name}s = affine.min affine_map<(d0) -> (d0 * -{tile} + {extent}, {tile})>({id})\n");
            }
        }
        let types = self.subviews(&mut b);
        if self.filled {
            b += &format!("  linalg.fill ins(%z : f32) outs(%s2 : {})\n", types[2]);
        }
        let (ta, tb) = self.transposed;
        let (ma, mb) = (if ta { "k, m" } else { "m, k" }, if tb { "n, k" } else { "k, n" });
        b += &format!(
            "  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> ({ma})>, affine_map<(m, n, k) -> ({mb})>, affine_map<(m, n, k) -> (m, n)>] \
             ins(%s0, %s1 : {}, {}) outs(%s2 : {})\n",
            types[0], types[1], types[2]
        );
        b + &self.after(&types)
    }

    /// The tile's part of each buffer, `%s0` and so on; returns their types.
    fn subviews(&self, b: &mut String) -> Vec<String> {
        let extent = |extent: i64, tile: i64| if extent % tile == 0 { tile.to_string() } else { "?".to_owned() };
        let size = |extent: i64, tile: i64, name: &str| {
            if extent % tile == 0 { tile.to_string() } else { format!("%{name}s") }
        };
        let (ms, ns) = (size(self.m, self.tile.0, "m"), size(self.n, self.tile.1, "n"));
        let (mt, nt) = (extent(self.m, self.tile.0), extent(self.n, self.tile.1));
        let k = self.k.to_string();
        // (offset, size, type extent) of m, n, k.
        let (dm, dn, dk) = (["%m0", &ms, &mt], ["%n0", &ns, &nt], ["0", &k, &k]);
        let (ta, tb) = self.transposed;
        let mut all = vec![
            if ta { vec![dk, dm] } else { vec![dm, dk] },
            if tb { vec![dn, dk] } else { vec![dk, dn] },
            vec![dm, dn],
        ];
        match self.epilogue {
            Epilogue::None => {}
            Epilogue::BiasRelu => all.push(vec![dn]),
            Epilogue::ResidualTanh => all.push(vec![dm, dn]),
            Epilogue::RowBias => all.push(vec![dm]),
        }
        let subview = |(i, (dims, shape)): (usize, (Vec<[&str; 3]>, Vec<i64>))| {
            let list = |j: usize| dims.iter().map(|d| d[j].to_owned()).collect::<Vec<_>>().join(", ");
            let strides =
                (0..dims.len()).map(|d| shape[d + 1..].iter().product::<i64>().to_string()).collect::<Vec<_>>();
            let ones = vec!["1"; dims.len()].join(", ");
            let ty = format!(
                "memref<{}xf32, strided<[{}], offset: ?>, #gpu.address_space<global>>",
                dims.iter().map(|d| d[2].to_owned()).collect::<Vec<_>>().join("x"),
                strides.join(", ")
            );
            let (offsets, sizes, whole) = (list(0), list(1), buffer(&shape));
            *b += &format!("  %s{i} = memref.subview %a{i}[{offsets}] [{sizes}] [{ones}] : {whole} to {ty}\n");
            ty
        };
        all.into_iter().zip(self.shapes()).enumerate().map(subview).collect()
    }

    /// The ops behind the product.
    fn after(&self, types: &[String]) -> String {
        let generic = |map: &str, input: Option<usize>, ops: &str| {
            let (ins, maps, arg) = match input {
                Some(i) => {
                    (format!("ins(%s{i} : {})", types[i]), format!("affine_map<(i, j) -> ({map})>, "), "%p: f32, ")
                }
                None => (String::new(), String::new(), ""),
            };
            format!(
                "  linalg.generic {{indexing_maps = [{maps}affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}} {ins} outs(%s2 : {}) {{\n  ^bb0({arg}%o: f32):\n{ops}\n    linalg.yield %r : f32\n  }}\n",
                types[2]
            )
        };
        match self.epilogue {
            Epilogue::None => String::new(),
            Epilogue::BiasRelu => {
                generic("j", Some(3), "    %r = arith.addf %o, %p : f32")
                    + &generic("", None, "    %r = arith.maximumf %o, %z : f32")
            }
            Epilogue::ResidualTanh => {
                generic("i, j", Some(3), "    %q = arith.addf %o, %p : f32\n    %r = math.tanh %q : f32")
            }
            Epilogue::RowBias => generic("i", Some(3), "    %r = arith.addf %p, %o : f32"),
        }
    }

    pub fn inputs(&self) -> Vec<Vec<f32>> {
        self.shapes().iter().enumerate().map(|(i, s)| numbers(s.iter().product(), i as u64 + 1)).collect()
    }
    pub fn expected(&self, inputs: &[Vec<f32>]) -> Vec<f32> {
        let (m, n, k) = (self.m as usize, self.n as usize, self.k as usize);
        let at = |v: &[f32], t: bool, r: usize, c: usize, rows: usize, cols: usize| {
            f64::from(if t { v[c * rows + r] } else { v[r * cols + c] })
        };
        let mut out = Vec::with_capacity(m * n);
        for i in 0..m {
            for j in 0..n {
                let mut sum = if self.filled { 0.0 } else { f64::from(inputs[2][i * n + j]) };
                for l in 0..k {
                    sum +=
                        at(&inputs[0], self.transposed.0, i, l, m, k) * at(&inputs[1], self.transposed.1, l, j, k, n);
                }
                out.push(match self.epilogue {
                    Epilogue::None => sum,
                    Epilogue::BiasRelu => (sum + f64::from(inputs[3][j])).max(0.0),
                    Epilogue::ResidualTanh => (sum + f64::from(inputs[3][i * n + j])).tanh(),
                    Epilogue::RowBias => sum + f64::from(inputs[3][i]),
                } as f32);
            }
        }
        out
    }
}

fn check(case: &Case, kernel: &str, strategy: &str) {
    let Some(device) = device() else { return };
    let inputs = case.inputs();
    let (out, report) = execute(device, &case.text(kernel), &case.grid(), &inputs);
    assert_eq!(report.kernels[0].strategy, strategy, "{case:?}: {}", report.kernels[0].declined);
    assert_close(&out[2], &case.expected(&inputs), 1e-4, &format!("{case:?}"));
}

#[test]
fn every_size_in_every_dimension() {
    let sizes = [1, 7, 10, 63, 64, 65];
    for (i, m) in sizes.into_iter().enumerate() {
        for (j, n) in sizes.into_iter().enumerate() {
            // All pairs of m and n; k cycles through its sizes along the diagonals.
            let k = sizes[(i + 2 * j) % sizes.len()];
            check(&Case::new(m, n, k), SUBGROUP, "contraction");
        }
    }
}

#[test]
fn private_register_tiles() {
    for (m, n, k) in [(64, 64, 64), (7, 10, 63), (65, 63, 10), (1, 64, 7), (63, 1, 65), (10, 65, 1)] {
        let case = Case { tile: (64.min(m), 64.min(n)), ..Case::new(m, n, k) };
        check(&case, PRIVATE, "contraction");
    }
}

#[test]
fn without_64_bit_integers_accesses_are_four_wide() {
    let Some(device) = device() else { return };
    let mut description = device.description.clone();
    description.features.retain(|f| *f != monopour_program::GpuFeature::Int64);
    for transposed in [(false, false), (true, true)] {
        let case = Case { transposed, epilogue: Epilogue::BiasRelu, ..Case::new(20, 96, 24) };
        let inputs = case.inputs();
        let (out, report) = execute_as(device, &description, &case.text(SUBGROUP), &case.grid(), &inputs);
        assert_eq!((report.kernels[0].strategy, report.kernels[0].lanes), ("contraction", 4));
        assert_close(&out[2], &case.expected(&inputs), 1e-4, "four lanes");
    }
}

#[test]
fn every_subgroup_size_compiles() {
    for size in [4, 8, 16, 32, 64] {
        let mut description = lavapipe();
        (description.subgroup_min_size, description.subgroup_max_size) = (size, size);
        let kernel =
            SUBGROUP.replace("subgroup_size = 8", &format!("subgroup_size = {size}")).replace("8, 1, 1", "64, 1, 1");
        let case = Case { epilogue: Epilogue::BiasRelu, tile: (64, 64), ..Case::new(100, 200, 30) };
        let (_, report, _) = compile(&case.text(&kernel), &description).expect("it compiles");
        assert_eq!(report.kernels[0].strategy, "contraction", "subgroups of {size}: {}", report.kernels[0].declined);
    }
}

/// Reading a row behind the end of an operand changes no result: the code itself is inspected.
#[test]
fn no_access_lies_behind_the_end_of_an_operand() {
    let workgroup = PRIVATE.replace("none", "workgroup");
    for kernel in [SUBGROUP, PRIVATE, &workgroup] {
        for transposed in [(false, false), (true, true)] {
            for (m, n, k) in [(17, 65, 9), (7, 10, 5), (33, 64, 8)] {
                let epilogue = Epilogue::RowBias;
                let case = Case { transposed, epilogue, tile: (16.min(m), 64.min(n)), ..Case::new(m, n, k) };
                let text = case.text(kernel);
                let (_, report, ir) = compile(&text, &lavapipe()).expect("it compiles");
                assert_eq!(report.kernels[0].strategy, "contraction", "{}", report.kernels[0].declined);
                let module = monopour_ir::Module::parse(monopour_ir::Context::new(), ir.as_bytes(), "distributed.mlir");
                let outside = monopour_testkit::bounds::check(&module.expect("it is printed IR"), 8);
                assert_eq!(outside, Some(vec![]), "{case:?}\n{ir}");
            }
        }
    }
}

/// Several subgroups in one workgroup share the rows of a tile.
#[test]
fn workgroups_of_several_subgroups() {
    let kernel = SUBGROUP.replace("8, 1, 1", "32, 1, 1");
    for (m, n, k) in [(64, 64, 16), (70, 50, 20)] {
        let case = Case { tile: (64, 64.min(n)), epilogue: Epilogue::BiasRelu, ..Case::new(m, n, k) };
        check(&case, &kernel, "contraction");
    }
}

#[test]
fn any_reduction_step() {
    for step in [1, 4, 5, 16] {
        for kernel in [SUBGROUP, PRIVATE] {
            let kernel = format!("{kernel}, reduction_step = {step} : i64");
            for transposed in [(false, false), (true, true)] {
                let case = Case { transposed, ..Case::new(8, 16, 20) };
                check(&case, &kernel, "contraction");
            }
        }
    }
}

#[test]
fn epilogues_stay_in_registers() {
    for epilogue in [Epilogue::BiasRelu, Epilogue::ResidualTanh, Epilogue::RowBias] {
        for (m, n, k) in [(32, 128, 24), (10, 10, 10), (17, 40, 9)] {
            let case = Case { epilogue, ..Case::new(m, n, k) };
            check(&case, SUBGROUP, "contraction");
            check(&Case { tile: (m.min(64), n.min(64)), ..case }, PRIVATE, "contraction");
        }
    }
}

#[test]
fn transposed_operands() {
    for transposed in [(false, true), (true, false), (true, true)] {
        for (m, n, k) in [(32, 64, 16), (7, 10, 13), (20, 12, 20)] {
            let case = Case { transposed, epilogue: Epilogue::BiasRelu, ..Case::new(m, n, k) };
            check(&case, SUBGROUP, "contraction");
            check(&Case { tile: (m.min(64), n.min(64)), ..case }, PRIVATE, "contraction");
        }
    }
}

#[test]
fn accumulates_onto_what_is_there() {
    check(&Case { filled: false, ..Case::new(16, 64, 16) }, SUBGROUP, "contraction");
    check(&Case { filled: false, ..Case::new(9, 10, 11) }, FALLBACK, "fallback");
}

#[test]
fn the_fallback_computes_the_same() {
    for (m, n, k) in [(1, 1, 1), (7, 10, 13), (33, 65, 9)] {
        let case = Case { epilogue: Epilogue::BiasRelu, ..Case::new(m, n, k) };
        check(&case, FALLBACK, "fallback");
        check(&Case { transposed: (true, true), ..case }, FALLBACK, "fallback");
    }
}

#[test]
fn each_element_is_stored_once_and_the_epilogue_reads_no_result() {
    let case = Case { epilogue: Epilogue::BiasRelu, ..Case::new(16, 64, 64) };
    for kernel in [SUBGROUP, FALLBACK] {
        let (compiled, _, ir) = compile(&case.text(kernel), &lavapipe()).expect("it compiles");
        assert_eq!(compiled.bindings[2].access, monopour_program::Access::Write, "{ir}");
    }
}

#[test]
fn what_an_epilogue_overwrites_is_read_before_anything_is_stored() {
    let [a, b, c, t] = [buffer(&[16, 64]), buffer(&[64, 64]), buffer(&[16, 64]), "memref<16x64xf32>".to_owned()];
    let body = format!(
        "  %z = arith.constant 0.0 : f32\n  %t = memref.alloc() : {t}\n  linalg.fill ins(%z : f32) outs(%t : {t})\n  \
         linalg.matmul ins(%a0, %a1 : {a}, {b}) outs(%t : {t})\n  \
         linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], \
         iterator_types = [\"parallel\", \"parallel\"]}} ins(%t : {t}) outs(%a2 : {c}) {{\n  \
         ^bb0(%i: f32, %o: f32):\n    %s = arith.addf %o, %i : f32\n    linalg.yield %s : f32\n  }}\n"
    );
    let (kernel, report, _) =
        compile(&outlined(&[a, b, c], &[1, 1], SUBGROUP, &body), &lavapipe()).expect("it compiles");
    assert_eq!(report.kernels[0].strategy, "contraction");
    let lines = |is_wanted: fn(&str) -> bool| {
        let numbered = kernel.wgsl.lines().enumerate();
        numbered.filter(move |(_, line)| is_wanted(line.trim())).map(|(number, _)| number).collect::<Vec<_>>()
    };
    let (loads, stores) = (lines(|line| line.contains("= arg2_[")), lines(|line| line.starts_with("arg2_[")));
    assert_eq!((loads.len(), stores.len()), (16, 16), "{}", kernel.wgsl);
    assert!(loads.last() < stores.first(), "{}", kernel.wgsl);
}
