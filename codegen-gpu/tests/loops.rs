//! Reductions of any loops on the device against plain loops: batches, matrix times vector, windows, several reductions.
//!
//! A case names its loops: `out[b,m,n] += a[b,m,k] * b[b,k,n]`; an index may be a sum such as `2*y+i`.

mod random;
mod types;

use crate::device::device;
use crate::program::{assert_close, compile, execute, lavapipe, numbers, outlined};
use expect_test::expect_file;

const SUBGROUP: &str = r#"class = "contraction", workgroup_size = array<i32: 8, 1, 1>, register_tile = array<i64: 16, 8>, vector_width = 8 : i64, share = "subgroup", subgroup_size = 8 : i64"#;
const PRIVATE: &str = r#"class = "contraction", workgroup_size = array<i32: 16, 16, 1>, register_tile = array<i64: 4, 4>, vector_width = 4 : i64, share = "none""#;

/// Sum of loops times factors.
type Index = Vec<(usize, i64)>;

/// A reduction over named loops.
pub struct Loops {
    names: Vec<char>,
    extents: Vec<i64>,
    /// Per loop, 0 for a loop that is not tiled; at most three are.
    tile: Vec<i64>,
    inputs: Vec<Vec<Index>>,
    output: Vec<usize>,
    /// Loops of a bias that is added at the end, before a maximum with 0.
    bias: Option<Vec<usize>>,
    filled: bool,
    body: &'static str,
    /// Elements of the inputs, and of the result and the bias.
    elements: (&'static str, &'static str),
}

const MULTIPLY_ADD: &str =
    "    %p = arith.mulf %a, %b : f32\n    %s = arith.addf %c, %p : f32\n    linalg.yield %s : f32";

const THREE: &str = "    %p = arith.mulf %a, %b : f32\n    %q = arith.mulf %p, %d : f32\n    %s = arith.addf %q, %c : f32\n    linalg.yield %s : f32";
const ONE: &str = "    %s = arith.addf %c, %a : f32\n    linalg.yield %s : f32";

impl Loops {
    /// `text` is like `b m k, b k n -> b m n`; `sizes` like `b2 m7 n9 k4`, a cut loop as `m70/16`.
    pub fn new(text: &str, sizes: &str) -> Self {
        let mut loops = Self {
            names: vec![],
            extents: vec![],
            tile: vec![],
            inputs: vec![],
            output: vec![],
            bias: None,
            filled: true,
            body: MULTIPLY_ADD,
            elements: ("f32", "f32"),
        };
        for word in sizes.split_whitespace() {
            let (extent, tile) = word[1..].split_once('/').unwrap_or((&word[1..], "0"));
            loops.names.push(word.chars().next().expect("a loop has a name"));
            loops.extents.push(extent.parse().expect("an extent"));
            loops.tile.push(tile.parse().expect("a tile size"));
        }
        let (inputs, output) = text.split_once("->").expect("an arrow");
        let inputs = inputs.split(',').map(|i| i.split_whitespace().map(|e| loops.index(e)).collect()).collect();
        loops.inputs = inputs;
        loops.output = output.split_whitespace().map(|e| loops.position(e)).collect();
        // A grid has at least one dimension.
        if loops.output.iter().all(|l| loops.tile[*l] == 0) {
            loops.tile[loops.output[0]] = loops.extents[loops.output[0]];
        }
        loops
    }
    fn position(&self, name: &str) -> usize {
        self.names.iter().position(|n| name == n.to_string()).expect("the loop has a size")
    }
    fn index(&self, text: &str) -> Index {
        let term = |t: &str| match t.split_once('*') {
            Some((factor, name)) => (self.position(name), factor.parse().expect("a factor")),
            None => (self.position(t), 1),
        };
        text.split('+').map(term).collect()
    }
    pub fn bias(mut self, loops: &str) -> Self {
        self.bias = Some(loops.split_whitespace().map(|e| self.position(e)).collect());
        self
    }

    fn extent(&self, index: &Index) -> i64 {
        index.iter().map(|(l, factor)| factor * (self.extents[*l] - 1)).sum::<i64>() + 1
    }
    /// Inputs, result, bias.
    fn indices(&self) -> Vec<Vec<Index>> {
        let plain = |loops: &Vec<usize>| loops.iter().map(|l| vec![(*l, 1)]).collect::<Vec<Index>>();
        let mut all = self.inputs.clone();
        all.push(plain(&self.output));
        all.extend(self.bias.iter().map(plain));
        all
    }
    pub fn grid(&self) -> Vec<i64> {
        let cut = self.output.iter().filter(|l| self.tile[**l] > 0);
        cut.map(|l| (self.extents[*l] + self.tile[*l] - 1) / self.tile[*l]).collect()
    }
    fn ragged(&self, l: usize) -> bool {
        self.tile[l] > 0 && self.extents[l] % self.tile[l] != 0
    }

    pub fn text(&self, kernel: &str) -> String {
        let element = self.elements.1;
        let buffers: Vec<String> = self.indices().iter().enumerate().map(|(i, index)| self.buffer(i, index)).collect();
        let mut b = format!("  %z = arith.constant {} : {element}\n", if element == "i32" { "0" } else { "0.0" });
        let cut = self.output.iter().filter(|l| self.tile[**l] > 0);
        for (id, l) in cut.enumerate() {
            let (tile, extent) = (self.tile[*l], self.extents[*l]);
            b += &format!("  %o{l} = affine.apply affine_map<(d0) -> (d0 * {tile})>(%i{id})\n");
            if self.ragged(*l) {
                b += &format!("  %s{l} = affine.min affine_map<(d0) -> (d0 * -{tile} + {extent}, {tile})>(%i{id})\n");
            }
        }
        let mut types = vec![];
        for (i, index) in self.indices().iter().enumerate() {
            types.push(self.slice(&mut b, i, index));
        }
        let out = self.inputs.len();
        if self.filled {
            b += &format!("  linalg.fill ins(%z : {element}) outs(%t{out} : {})\n", types[out]);
        }
        b += &self.reduction(&types);
        if let Some(bias) = &self.bias {
            let loops: Vec<String> = self.output.iter().map(|l| self.names[*l].to_string()).collect();
            let read: Vec<String> = bias.iter().map(|l| self.names[*l].to_string()).collect();
            let (loops, read) = (loops.join(", "), read.join(", "));
            let iterators = vec!["\"parallel\""; self.output.len()].join(", ");
            b += &format!(
                "  linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({read})>, affine_map<({loops}) -> ({loops})>], iterator_types = [{iterators}]}} \
                 ins(%t{} : {}) outs(%t{out} : {}) {{\n  ^bb0(%p: f32, %o: f32):\n    %q = arith.addf %o, %p : f32\n    %r = arith.maximumf %q, %z : f32\n    linalg.yield %r : f32\n  }}\n",
                out + 1,
                types[out + 1],
                types[out]
            );
        }
        outlined(&buffers, &self.grid(), kernel, &b)
    }

    fn element(&self, i: usize) -> &'static str {
        if i < self.inputs.len() { self.elements.0 } else { self.elements.1 }
    }
    fn buffer(&self, i: usize, index: &[Index]) -> String {
        let dims: String = index.iter().map(|i| format!("{}x", self.extent(i))).collect();
        format!("memref<{dims}{}, #gpu.address_space<global>>", self.element(i))
    }

    /// Writes the slice of a buffer at the tile; returns its type.
    fn slice(&self, b: &mut String, i: usize, index: &[Index]) -> String {
        let shape: Vec<i64> = index.iter().map(|e| self.extent(e)).collect();
        let (mut offsets, mut sizes, mut types) = (vec![], vec![], vec![]);
        for (d, e) in index.iter().enumerate() {
            let cut: Vec<&(usize, i64)> = e.iter().filter(|(l, _)| self.tile[*l] > 0).collect();
            assert!(cut.len() <= 1, "one cut loop per dimension");
            let fixed: i64 =
                e.iter().filter(|(l, _)| self.tile[*l] == 0).map(|(l, f)| f * (self.extents[*l] - 1)).sum::<i64>() + 1;
            let Some((l, factor)) = cut.first() else {
                offsets.push("0".to_owned());
                sizes.push(fixed.to_string());
                types.push(fixed.to_string());
                continue;
            };
            *b += &format!("  %o{i}_{d} = affine.apply affine_map<(d0) -> (d0 * {factor})>(%o{l})\n");
            offsets.push(format!("%o{i}_{d}"));
            if self.ragged(*l) {
                let more = fixed - factor;
                *b += &format!("  %s{i}_{d} = affine.apply affine_map<(d0) -> (d0 * {factor} + {more})>(%s{l})\n");
                sizes.push(format!("%s{i}_{d}"));
                types.push("?".to_owned());
            } else {
                let size = fixed + factor * (self.tile[*l] - 1);
                sizes.push(size.to_string());
                types.push(size.to_string());
            }
        }
        if index.is_empty() {
            b.push_str(&format!("  %t{i} = memref.cast %a{i} : {0} to {0}\n", self.buffer(i, index)));
            return self.buffer(i, index);
        }
        let strides: Vec<String> =
            (0..shape.len()).map(|d| shape[d + 1..].iter().product::<i64>().to_string()).collect();
        let offset = if offsets.iter().all(|o| o == "0") { "" } else { ", offset: ?" };
        let ty = format!(
            "memref<{}x{}, strided<[{}]{offset}>, #gpu.address_space<global>>",
            types.join("x"),
            self.element(i),
            strides.join(", ")
        );
        let ones = vec!["1"; shape.len()].join(", ");
        b.push_str(&format!(
            "  %t{i} = memref.subview %a{i}[{}] [{}] [{ones}] : {} to {ty}\n",
            offsets.join(", "),
            sizes.join(", "),
            self.buffer(i, index)
        ));
        ty
    }

    fn reduction(&self, types: &[String]) -> String {
        let names: Vec<String> = self.names.iter().map(|n| n.to_string()).collect();
        let names = names.join(", ");
        let expression =
            |e: &Index| e.iter().map(|(l, f)| format!("{} * {f}", self.names[*l])).collect::<Vec<_>>().join(" + ");
        let out = self.inputs.len();
        let maps: Vec<String> = self.indices()[..=out]
            .iter()
            .map(|m| format!("affine_map<({names}) -> ({})>", m.iter().map(expression).collect::<Vec<_>>().join(", ")))
            .collect();
        let iterators: Vec<&str> = (0..self.names.len())
            .map(|l| if self.output.contains(&l) { "\"parallel\"" } else { "\"reduction\"" })
            .collect();
        let inputs: Vec<String> = (0..out).map(|i| format!("%t{i}")).collect();
        let names = ["%a", "%b", "%d"];
        let arguments: Vec<String> = (0..out).map(|i| format!("{}: {}", names[i], self.elements.0)).collect();
        format!(
            "  linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} ins({} : {}) outs(%t{out} : {}) {{\n  ^bb0({}, %c: {}):\n{}\n  }}\n",
            maps.join(", "),
            iterators.join(", "),
            inputs.join(", "),
            types[..out].join(", "),
            types[out],
            arguments.join(", "),
            self.elements.1,
            self.body,
        )
    }

    pub fn inputs(&self) -> Vec<Vec<f32>> {
        let shapes = self.indices().into_iter().map(|i| i.iter().map(|e| self.extent(e)).product::<i64>());
        shapes.enumerate().map(|(i, n)| numbers(n, i as u64 + 1)).collect()
    }

    /// Position in a buffer.
    fn at(&self, index: &[Index], loops: &[i64]) -> usize {
        let mut position = 0;
        for e in index {
            position = position * self.extent(e) + e.iter().map(|(l, f)| f * loops[*l]).sum::<i64>();
        }
        position as usize
    }

    /// The result by plain loops: `combine` takes the accumulator and the inputs.
    pub fn expected(&self, inputs: &[Vec<f32>], combine: impl Fn(f64, &[f64]) -> f64) -> Vec<f32> {
        let indices = self.indices();
        let out = self.inputs.len();
        let start: Vec<f64> = inputs[out].iter().map(|x| if self.filled { 0.0 } else { f64::from(*x) }).collect();
        let mut sums = start;
        let total: i64 = self.extents.iter().product();
        for number in 0..total {
            let mut rest = number;
            let mut loops = vec![0; self.extents.len()];
            for l in (0..self.extents.len()).rev() {
                loops[l] = rest % self.extents[l];
                rest /= self.extents[l];
            }
            let values: Vec<f64> = (0..out).map(|i| f64::from(inputs[i][self.at(&indices[i], &loops)])).collect();
            let position = self.at(&indices[out], &loops);
            sums[position] = combine(sums[position], &values);
        }
        if let Some(bias) = &self.bias {
            let extents: Vec<i64> = self.output.iter().map(|l| self.extents[*l]).collect();
            for (number, sum) in sums.iter_mut().enumerate() {
                let mut rest = number as i64;
                let mut loops = vec![0; self.extents.len()];
                for (l, extent) in self.output.iter().zip(&extents).rev() {
                    loops[*l] = rest % extent;
                    rest /= extent;
                }
                let index: Vec<Index> = bias.iter().map(|l| vec![(*l, 1)]).collect();
                *sum = (*sum + f64::from(inputs[out + 1][self.at(&index, &loops)])).max(0.0);
            }
        }
        sums.into_iter().map(|s| s as f32).collect()
    }
}

fn check_as(case: &Loops, kernel: &str, strategy: &str) {
    let Some(device) = device() else { return };
    let inputs = case.inputs();
    let (out, report) = execute(device, &case.text(kernel), &case.grid(), &inputs);
    let what = format!("{:?} {:?} {:?} {:?}", case.names, case.extents, case.inputs, case.output);
    assert_eq!(report.kernels[0].strategy, strategy, "{what}: {}", report.kernels[0].declined);
    let expected = case.expected(&inputs, |c, v| c + v.iter().product::<f64>());
    assert_close(&out[case.inputs.len()], &expected, 1e-4, &what);
}

/// Operands are staged in workgroup memory.
const STAGED: &str = r#"class = "contraction", workgroup_size = array<i32: 16, 16, 1>, register_tile = array<i64: 4, 4>, reduction_step = 16 : i64, vector_width = 4 : i64, share = "workgroup""#;

#[test]
fn copies_in_workgroup_memory() {
    let staged = |case: &Loops| {
        check_as(case, STAGED, "contraction");
        if device().is_some() {
            let (kernel, _, _) = compile(&case.text(STAGED), &lavapipe()).expect("it compiles");
            assert!(kernel.wgsl.contains("var<workgroup>"), "{}", kernel.wgsl);
        }
    };
    for inputs in ["b m k, b k n", "b m k, b n k", "b k m, b k n"] {
        for sizes in ["b2/1 m64/64 n128/64 k32", "b2/1 m70/64 n100/64 k40", "b1 m17/16 n23 k19"] {
            staged(&Loops::new(&format!("{inputs} -> b m n"), sizes).bias("n"));
        }
    }
    staged(&Loops::new("b y+i x+j q, i j q c -> b y x c", "b1 y3/1 x20/16 c64/64 i3 j3 q8").bias("c"));
    staged(&Loops::new("b q y+i x+j, c q i j -> b c y x", "b1 c20/16 y3/1 x20 q5 i3 j3").bias("c"));
    staged(&Loops::new("m k, k -> m", "m100/64 k40"));
}

fn check(case: &Loops) {
    check_as(case, SUBGROUP, "contraction");
    check_as(case, PRIVATE, "contraction");
}

#[test]
fn batched_products_in_every_layout() {
    for inputs in ["b m k, b k n", "b m k, b n k", "b k m, b k n", "m b k, k b n", "b m k, k n", "m k, b n k"] {
        for sizes in ["b3/1 m17/16 n70/64 k9", "b2/1 m32/16 n64/64 k64", "b5/1 m7 n100/64 k1"] {
            check(&Loops::new(&format!("{inputs} -> b m n"), sizes));
        }
    }
    // Two batch loops of which one is not tiled; a batch between rows and columns; a result that is stored transposed.
    check(&Loops::new("b h m k, b h n k -> b h m n", "b2/1 h3/1 m9 n20 k8"));
    check(&Loops::new("b h m k, b h k n -> b h m n", "b2 h3/1 m9/8 n20/16 k8"));
    check(&Loops::new("m h k, n h k -> m h n", "m20/16 h3/1 n24 k16"));
    check(&Loops::new("m k, k n -> n m", "m20/16 n70/64 k16").bias("n"));
}

#[test]
fn products_with_vectors() {
    for sizes in ["m100/64 k64", "m7 k100", "m64/64 k17", "m1 k1"] {
        check(&Loops::new("m k, k -> m", sizes));
        check(&Loops::new("k, k m -> m", sizes).bias("m"));
    }
    for sizes in ["m100/16 n1/1 k24", "m17/16 n2/2 k40", "m9 n4 k3"] {
        check(&Loops::new("m k, k n -> m n", sizes));
        check(&Loops::new("m k, n k -> m n", sizes).bias("m"));
    }
    check(&Loops::new("b m k, b k -> b m", "b3/1 m70/64 k40"));
    check(&Loops::new("b m k, b k -> b m", "b20/16 m5 k12"));
}

#[test]
fn products_to_one_number() {
    for k in ["k1", "k7", "k100"] {
        check(&Loops::new("k, k -> m", &format!("m1/1 {k}")));
    }
    check(&Loops::new("b k, b k -> b", "b20/16 k24"));
}

/// A software adapter leaves its loops after 65,535 iterations: passes are lengthened to stay below.
#[test]
fn long_reductions() {
    let Some(device) = device() else { return };
    for (text, sizes, k) in [("k, k -> m", "m1/1 k1000003", 1_000_003), ("j k, k j -> m", "m1/1 j1001 k701", 701_701)] {
        let case = Loops::new(text, sizes);
        let inputs: Vec<Vec<f32>> = case.inputs().iter().map(|v| vec![1.0; v.len()]).collect();
        let (out, _) = execute(device, &case.text(SUBGROUP), &case.grid(), &inputs);
        assert_eq!(out[2], [k as f32], "{text}");
    }
}

#[test]
fn several_reductions() {
    // Merged, nested, with gaps; one of them short.
    check(&Loops::new("m j k, j k n -> m n", "m17/16 n40/32 j3 k8"));
    check(&Loops::new("m j k, n k j -> m n", "m17/16 n40/32 j5 k12"));
    check(&Loops::new("j m k, k j n -> m n", "m17/16 n40/32 j2 k1"));
    check(&Loops::new("k m j i, i n j k -> m n", "m9 n24 i2 j3 k4").bias("n"));
    // Three factors, and sums of one.
    check(&Loops { body: THREE, ..Loops::new("m k, k n, k -> m n", "m17/16 n40/32 k20") });
    check(&Loops { body: ONE, ..Loops::new("k n -> n", "n100/64 k33") });
    check(&Loops { body: ONE, ..Loops::new("m k -> m", "m100/64 k40") });
}

#[test]
fn accumulates_onto_what_is_there() {
    check(&Loops { filled: false, ..Loops::new("b m k, b k n -> b m n", "b2/1 m9 n20 k8") });
}

fn check_convolution(case: &Loops) {
    for kernel in [SUBGROUP, PRIVATE] {
        let kernel = kernel.replace("contraction", "convolution").replace("64: 16, 8", "64: 14, 8");
        check_as(case, &kernel, "convolution");
    }
}

#[test]
fn convolutions_with_channels_last() {
    // b: image, y x: place in the result, i j: place in the window, q: channel of the input, c: of the result.
    let taps = "i j q c -> b y x c";
    for (input, sizes) in [
        ("b y+i x+j q", "b2 y4/1 x14/14 c64/64 i3 j3 q8"),
        ("b y+i x+j q", "b1 y3/1 x17/14 c20 i3 j3 q3"),
        ("b 2*y+i 2*x+j q", "b1 y4/1 x9/8 c70/64 i3 j3 q16"),
        ("b y+2*i x+2*j q", "b1 y4/2 x9/8 c16 i2 j3 q5"),
        ("b 2*y+3*i 3*x+2*j q", "b1 y3/1 x7 c7 i2 j2 q1"),
        ("b y+i x+j q", "b1 y5/1 x16/14 c64/64 i1 j1 q64"),
        ("b y+i x+j q", "b1 y1/1 x1 c64/64 i5 j5 q4"),
    ] {
        check_convolution(&Loops::new(&format!("{input}, {taps}"), sizes).bias("c"));
    }
}

#[test]
fn convolutions_with_channels_first() {
    for (input, sizes) in [
        ("b q y+i x+j", "b2 c9/8 y4/1 x14 q8 i3 j3"),
        ("b q 2*y+i 2*x+j", "b1 c16/16 y4/1 x20/16 q3 i3 j3"),
        ("b q y+i x+j", "b1 c32/16 y4/1 x16 q20 i1 j1"),
    ] {
        check_convolution(&Loops::new(&format!("{input}, c q i j -> b c y x"), sizes).bias("c"));
    }
}

#[test]
fn convolutions_of_each_channel() {
    for (input, sizes) in [
        ("b y+i x+j c", "b2 y3/1 x14/14 c64/64 i3 j3"),
        ("b 2*y+i 2*x+j c", "b1 y3/1 x9/8 c20 i3 j3"),
        ("b y+2*i x+2*j c", "b1 y3/1 x9/8 c7 i2 j3"),
    ] {
        check_convolution(&Loops::new(&format!("{input}, i j c -> b y x c"), sizes).bias("c"));
        // Several results per channel.
        check_convolution(&Loops::new(&format!("{input}, i j c q -> b y x c q"), &format!("{sizes} q3")));
    }
    check_convolution(&Loops::new("b c y+i x+j, c i j -> b c y x", "b1 c5/1 y4/1 x20 i3 j3").bias("c"));
}

#[test]
fn one_dimension_and_three() {
    check_convolution(&Loops::new("b x+j q, j q c -> b x c", "b2/1 x30/14 c24 j5 q4").bias("c"));
    check_convolution(&Loops::new("z+h y+i x+j q, h i j q c -> z y x c", "z3/1 y3/1 x7 c10 h2 i2 j3 q3"));
}

#[test]
fn kernels_of_each_class_as_text() {
    let product = Loops::new("b m k, b n k -> b m n", "b2/1 m2/2 n64/64 k16").bias("n");
    let shared = SUBGROUP.replace("16, 8", "2, 8");
    let (kernel, _, _) = compile(&product.text(&shared), &lavapipe()).expect("it compiles");
    expect_file!["snapshots/batched_product.wgsl"].assert_eq(&kernel.wgsl);
    let window = Loops::new("b y+i x+j q, i j q c -> b y x c", "b1 y2/1 x4/4 c64/64 i3 j3 q8").bias("c");
    let private = r#"class = "convolution", workgroup_size = array<i32: 16, 2, 1>, register_tile = array<i64: 2, 4>, vector_width = 4 : i64, share = "none""#;
    let (kernel, _, _) =
        compile(&window.text(private), &monopour_program::GpuDescription::portable()).expect("it compiles");
    expect_file!["snapshots/convolution_private.wgsl"].assert_eq(&kernel.wgsl);
    let product = Loops::new("b m k, b n k -> b m n", "b2/1 m8/8 n16/16 k32").bias("n");
    let staged = STAGED.replace("16, 16, 1", "4, 4, 1").replace("64: 4, 4", "64: 2, 4").replace("= 16 ", "= 8 ");
    let (kernel, _, _) =
        compile(&product.text(&staged), &monopour_program::GpuDescription::portable()).expect("it compiles");
    expect_file!["snapshots/batched_product_staged.wgsl"].assert_eq(&kernel.wgsl);
    let shared = SUBGROUP.replace("16, 8", "4, 8").replace("contraction", "convolution");
    let (kernel, _, _) = compile(&window.text(&shared), &lavapipe()).expect("it compiles");
    expect_file!["snapshots/convolution_shared.wgsl"].assert_eq(&kernel.wgsl);
}
