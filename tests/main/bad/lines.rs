//! Command lines that are wrong themselves, or name missing files.

use super::{Case, line};

/// All cases.
pub fn cases() -> Vec<Case> {
    [usage(), paths(), names(), outputs()].into_iter().flatten().collect()
}

/// Lines that clap refuses, and lines of which only a command can tell.
const USAGE: [&str; 59] = [
    "nothing",
    "--nothing",
    "runn @/m.mlir",
    "run",
    "run --random 1",
    "run @/m.mlir @/m.mlir",
    "run '' --device cpu",
    "run @/w.mlir --device cpu --random 1 --weights ''",
    "compile '' -o m.mpr --target cpu",
    "compile @/m.mlir -o '' --target cpu",
    "run @/m.mlir --random x",
    "run @/m.mlir --random -1",
    "run @/m.mlir --random 1.5",
    "run @/m.mlir --random 99999999999999999999",
    "run @/m.mlir --random",
    "run @/m.mlir --threads 100000",
    "run @/m.mlir --threads 1025",
    "run @/m.mlir --threads -1",
    "run @/m.mlir --threads x",
    "run @/m.mlir --repeat -1",
    "run @/m.mlir --repeat 99999999999999999999",
    "run @/m.mlir --warmup many",
    "run @/m.mlir --memory-limit 1GB",
    "run @/m.mlir --memory-limit -1",
    "run @/m.mlir --stats=xml",
    "run @/m.mlir --stats=",
    "run @/m.mlir --rtol x",
    "run @/m.mlir --atol",
    "run @/m.mlir --device ''",
    "run @/m.mlir --device",
    "run @/m.mlir --device cpu --device cpu",
    "run @/m.mlir --input",
    "run @/m.mlir --device cpu --input arg0",
    "run @/m.mlir --device cpu --input ''",
    "run @/m.mlir --nothing",
    "run @/m.mlir --quiet=yes",
    "compile",
    "compile @/m.mlir",
    "compile @/m.mlir -o",
    "compile @/m.mlir -o m.mpr --target tpu",
    "compile @/m.mlir -o m.mpr --target ''",
    "compile @/m.mlir -o m.mpr --target :",
    "compile @/m.mlir -o m.mpr --target cpu:nothing",
    "compile @/m.mlir -o m.mpr --target cpu:x86-64,nothing",
    "compile @/m.mlir -o m.mpr --target cpu:,",
    "compile @/m.mlir --emit nothing",
    "compile @/m.mlir --emit ''",
    "compile @/m.mlir -o m.mpr --target cpu --dump-after tile,nothing",
    "compile @/m.mlir -o m.mpr --verify=1",
    "explain",
    "explain @/m.mlir --nothing",
    "explain @/m.mlir --target nothing",
    "inspect",
    "inspect @/m.mlir --json=1",
    "devices more",
    "devices --xml",
    "completions",
    "completions nothing",
    "help nothing",
];

/// Status 2.
fn usage() -> Vec<Case> {
    USAGE.into_iter().map(|args| line(args, 2, "error: ")).collect()
}

/// Paths to nothing, to folders, and to files that are no models.
fn paths() -> Vec<Case> {
    vec![
        line("run nothing.mlir --device cpu", 1, "error[I0031]"),
        line("run nothing.mlirbc --device cpu", 1, "error[I0031]"),
        line("run nothing.mpr --device cpu", 1, "error[P0007]"),
        line("run nothing --device cpu", 1, "error[I0032]"),
        line("run @ --device cpu", 1, "error[I0032]"),
        line("run @/m.mlir/x.mlir --device cpu", 1, "error[I0031]"),
        line("run m.onnx --device cpu", 1, "error[F0040]").file("m.onnx", "x"),
        line("run m.onnx --device cpu", 1, "error[F0040]").file("m.onnx", ""),
        line("inspect m.onnx", 1, "error[F0040]").file("m.onnx", "\u{8}\u{8}"),
        line("explain m.onnx", 1, "error[F0040]").file("m.onnx", ":\u{7f}"),
        line("compile m.onnx -o m.mpr", 1, "error[F0040]").file("m.onnx", "version https://git-lfs.github.com/spec/v1"),
        line("run m.onnx --dim n", 2, "NAME=N").file("m.onnx", "x"),
        line("run m.onnx --dim n=-1", 2, "").file("m.onnx", "x"),
        line("compile nothing.mlir -o m.mpr --target cpu", 1, "error[I0031]"),
        line("compile @ -o m.mpr --target cpu", 1, "error[I"),
        line("compile @/m.mpr -o m.mpr --target cpu", 1, "error[I"),
        line("compile @/m.mlir -o no/folder/m.mpr --target cpu", 1, "error[P0007]"),
        line("compile @/m.mlir -o @ --target cpu", 1, "error[P0007]"),
        line("compile @/m.mlir -o m.mpr --target gpu:nothing.json", 1, "error[I0031]"),
        line("compile @/m.mlir -o m.mpr --target gpu:@", 1, "error[I0031]"),
        line("compile @/m.mlir -o m.mpr --target cpu --schedule nothing.mlir", 1, "error[I0031]"),
        line("compile @/m.mlir -o m.mpr --target cpu --schedule @", 1, "error[I0031]"),
        line("explain nothing.mlir --target cpu", 1, "error[I0031]"),
        line("explain nothing.mpr", 1, "error[P0007]"),
        line("inspect nothing.mpr", 1, "error[P0007]"),
        line("inspect nothing.txt", 1, "error[I0032]"),
        line("opt nothing.mlir", 1, "nothing.mlir"),
        line("opt @", 1, "Is a directory"),
        line("opt @/m.mlir -o no/folder/out.mlir", 1, "no/folder"),
        line("opt @/m.mlir -no-such-pass", 1, "no-such-pass"),
        line("opt @/m.mlir --pass-pipeline=nothing(", 1, "error"),
        line("opt @/m.mlir -one-shot-bufferize=nothing", 1, "nothing"),
        line("opt @/m.mlir -one-shot-bufferize=analysis-heuristic=x", 1, "analysis-heuristic"),
        line("opt @/m.mlir --use-upstream=nothing", 2, "--use-upstream").about("says which there are"),
    ]
}

/// Unknown names of inputs, functions and donations.
fn names() -> Vec<Case> {
    let run = |more: &str, code: &str| line(&format!("run @/m.mlir --device cpu {more}"), 1, code);
    vec![
        run("", "error[R0007]"),
        run("--input x=@/a.npy", "error[R0007]"),
        run("--input =@/a.npy", "error[R0007]"),
        run("--input arg0=@/a.npy", "error[R0007]"),
        run("--input arg0=@/a.npy --input arg0=@/a.npy", "error[R0007]"),
        run("--input arg0=nothing.npy --random 1", "error[R0017]"),
        run("--input arg0=@ --random 1", "error[R0017]"),
        run("--input arg0= --random 1", "error[R0017]"),
        run("--input arg0=/dev/zero --random 1", "error[R0017]"),
        run("--input arg0=/dev/null --random 1", "error[R0017]"),
        run("--inputs nothing", "error[R0007]"),
        run("--random 1 --entry nothing", "error[F0001]"),
        run("--random 1 --entry ''", "error[F0001]"),
        run("--random 1 --donate nothing", "error[F0015]"),
        run("--random 1 --donate ''", "error[F0015]"),
        line("run @/m.mpr --device cpu --random 1 --donate arg0", 1, "error[R0007]"),
        line("run @/m.mpr --device cpu --random 1 --donate nothing", 1, "error[R0007]"),
        line("run @/w.mlir --device cpu --random 1", 1, "error[F0006]"),
        line("run @/w.mlir --device cpu --random 1 --weights nothing", 1, "error[F0008]"),
        line("run @/w.mlir --device cpu --random 1 --weights @", 1, "error[F0008]"),
        line("run @/w.mlir --device cpu --random 1 --weights @/m.mlir", 1, "error[F0008]"),
        line("run @/w.mlir --device cpu --random 1 --weights @/m.mpr", 1, "error[F0008]"),
    ]
}

/// Results that cannot be written or compared.
fn outputs() -> Vec<Case> {
    let run = |more: &str, code: &str| line(&format!("run @/m.mlir --device cpu --random 1 {more}"), 1, code);
    let mut cases = vec![
        run("--outputs @/m.mlir", "error[P0007]"),
        run("--outputs @/m.mlir/out", "error[P0007]"),
        run("--check nothing", "error[R0017]"),
        run("--check @", "error[R0017]"),
        run("--trace no/folder/t.json", "error[P0007]"),
        run("--trace @", "error[P0007]"),
    ];
    for name in ["../x", "..", ".", "", "x\\00y", "x\\0Ay", ".hidden"] {
        let source = super::ADD.replacen("-> tensor<4x2xf32>", &named(name), 1);
        cases.push(line("run m.mlir --device cpu --random 1 --outputs out", 1, "error[R0030]").file("m.mlir", source));
    }
    let long = "n".repeat(400);
    let source = super::ADD.replacen("-> tensor<4x2xf32>", &named(&long), 1);
    cases.push(line("run m.mlir --device cpu --random 1 --check .", 1, "error[R0030]").file("m.mlir", source));
    let input = super::ADD.replacen("%a: tensor<4x2xf32>", "%a: tensor<4x2xf32> {monopour.name = \"../a\"}", 1);
    cases.push(line("run m.mlir --device cpu --inputs .", 1, "error[R0030]").file("m.mlir", input));
    let twice = super::ADD.replacen("%a: tensor<4x2xf32>", "%a: tensor<4x2xf32> {monopour.name = \"x\"}", 1).replacen(
        "%b: tensor<4x2xf32>",
        "%b: tensor<4x2xf32> {monopour.name = \"x\"}",
        1,
    );
    cases.push(line("run m.mlir --device cpu --random 1", 1, "error[F0012]").file("m.mlir", twice));
    let taken = super::ADD.replacen("%a: tensor<4x2xf32>", "%a: tensor<4x2xf32> {monopour.name = \"arg1\"}", 1);
    cases.push(line("compile m.mlir -o m.mpr --target cpu", 1, "error[F0012]").file("m.mlir", taken));
    cases
}

fn named(name: &str) -> String {
    format!("-> (tensor<4x2xf32> {{monopour.name = \"{name}\"}})")
}
