//! Models that are no text, no MLIR, or do not compile.

use monopour_ir::{Context, Module};

use super::{ADD, Case, line};

/// All cases.
pub fn cases() -> Vec<Case> {
    [damaged(), absurd(), wrong(), large(), schedules(), opt()].into_iter().flatten().collect()
}

fn model(source: impl Into<Vec<u8>>, code: &str) -> Case {
    let code = format!("error[{code}");
    line("run m.mlir --device cpu --random 1", 1, &code).file("m.mlir", source)
}

/// Truncated or changed text and bytecode.
fn damaged() -> Vec<Case> {
    let mut cases = vec![
        model("", "F0001").about("empty"),
        model("\n\n// nothing\n", "F0001").about("a comment"),
        model("\0", "I0002").about("NUL"),
        model([ADD.as_bytes(), b"\0"].concat(), "I0002").about("NUL at the end"),
        model(b"\xff\xfe\x00", "I000").about("another encoding"),
        model(b"\xff\xff", "I0001").about("no UTF-8"),
        model(b"\x7fELF\x02\x01\x01", "I0001").about("an executable"),
        model(b"ML\xefR", "I0001").about("the beginning of bytecode"),
        model(b"ML\xefR\x07", "I0001").about("bytecode without sections"),
        model(b"ML\xefR\xff\xff\xff\xff\xff\xff\xff\xff\xff", "I0001").about("bytecode of a far version"),
    ];
    for len in [10, 60, 120, 200, 240] {
        cases.push(model(&ADD.as_bytes()[..len], "I0001").about(format!("text cut at {len}")));
    }
    let bytecode = Module::parse(Context::new(), ADD.as_bytes(), "m.mlir").expect("parses").op().to_bytecode();
    for part in 1..8 {
        let len = bytecode.len() * part / 8;
        let case = line("run m.mlirbc --device cpu --random 1", 1, "error[I0001]");
        cases.push(case.file("m.mlirbc", &bytecode[..len]).about(format!("bytecode cut at {len}")));
    }
    cases
}

/// Well-formed text that exceeds any parser's stack.
fn absurd() -> Vec<Case> {
    let attribute = |text: String| format!("func.func private @main() attributes {{a = {text}}}");
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
    let regions =
        format!("func.func @main(%c: i1) {{\n{}{}return }}", "scf.if %c {\n".repeat(50_000), "}\n".repeat(50_000));
    let map = |text: String| attribute(format!("affine_map<(d0) -> ({text})>"));
    vec![
        model(map(format!("{}d0", "-".repeat(50_000))), "I0002").about("signs in an affine map"),
        model(map(format!("{}d0", "- ".repeat(50_000))), "I0002").about("signs and blanks"),
        model(map(format!("{}d0", "-\n".repeat(50_000))), "I0002").about("signs and lines"),
        model(map(format!("d0{}", " mod 3 floordiv 2".repeat(50_000))), "I0002").about("divisions"),
        model(map(format!("{}d0{}", "(".repeat(50_000), ")".repeat(50_000))), "I0002").about("parentheses"),
        model(attribute(format!("affine_set<(d0) : ({}d0 >= 0)>", "- ".repeat(50_000))), "I0002").about("a set"),
        model(attribute(nested("[", "]")), "I0002").about("arrays"),
        model(attribute(nested("{a = ", "}")), "I0002").about("dictionaries"),
        model(attribute(nested("tuple<", ">")), "I0002").about("tuples"),
        model(attribute(format!("{}1 : i32", "-".repeat(50_000))), "I0002").about("signs of a number"),
        model(attribute("!".repeat(50_000)), "I0001").about("exclamation marks"),
        model(attribute("() -> ".repeat(50_000)), "I0001").about("arrows"),
        model(regions, "I0002").about("regions"),
        model(format!("func.func @main() {{ return %{} : i32 }}", "a".repeat(2 << 20)), "I0002").about("a long name"),
        model(format!("func.func @main() {{ {} }}", "q".repeat(2 << 20)), "I0002").about("a long op"),
        model(format!("func.func @main() {{ \"{}\"() : () -> () return }}", "q".repeat(2 << 20)), "F0002")
            .about("a long op in quotes"),
        model(format!("func.func @main() {{ return {} : i32 }}", "9".repeat(2 << 20)), "I0002").about("a long number"),
        model("func.func @main(%r: i32) -> i32 { return %r#2147483648 : i32 }", "I0002").about("a result's number"),
    ]
}

/// MLIR that is not valid, or not a program.
fn wrong() -> Vec<Case> {
    let body = |ops: &str| {
        format!("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ {ops} return %a : tensor<4xf32> }}")
    };
    vec![
        model("func.func @main( {", "I0001"),
        // Upstream's verifier crashes on it.
        model(
            "func.func @main(%x: tensor<f32>) -> tensor<f32> { %e = tensor.empty() : tensor<f32> \
             %t = linalg.transpose ins(%x : tensor<f32>) outs(%e : tensor<f32>) permutation = [] return %t : tensor<f32> }",
            "I0001",
        ),
        model("func.func @main() { return", "I0001"),
        model("func.func @main() -> i32 { return }", "I0001"),
        model("func.func @main() { return } func.func @main() { return }", "I0001"),
        model("}", "I0001"),
        model("module {", "I0001"),
        model("hello", "I0001"),
        model("{\"json\": true}", "I0001"),
        model("func.func @a() { return } func.func @b() { return }", "F0001"),
        model("func.func private @main()", "F0001"),
        model("module { module { } }", "F0"),
        model(body("%0 = linalg.nothing"), "I0001"),
        model(body("%0 = foo.bar %a : tensor<4xf32>"), "I0001"),
        model(body("\"foo.bar\"(%a) : (tensor<4xf32>) -> ()"), "F0002"),
        model(body("%0 = tensor.empty() : tensor<?xf32>"), "I0001"),
        model(body("%0 = tensor.empty() : tensor<-4xf32>"), "I0001"),
        model(body("%0 = arith.constant dense<[1.0, 2.0]> : tensor<3xf32>"), "I0001"),
        model(body("%0 = arith.constant dense<\"0x00\"> : tensor<4xf32>"), "I0001"),
        model(body("%0 = arith.constant 1 : f32"), "I0001"),
        model(body("%0 = arith.addf %a, %b : tensor<4xf32>"), "I0001"),
        model(body("%a = arith.constant 1 : i32"), "I0001"),
        model(body("%0 = tensor.cast %a : tensor<4xf32> to tensor<5xf32>"), "I0001"),
        model(body("%0 = tensor.extract_slice %a[2] [4] [1] : tensor<4xf32> to tensor<4xf32>"), "I0001"),
        model(body("%0 = tensor.collapse_shape %a [[0, 1]] : tensor<4xf32> into tensor<4xf32>"), "I0001"),
        model(body("func.call @nothing() : () -> ()"), "I0001"),
        model(body("cf.br ^nowhere"), "I0001"),
        model("func.func @main(%x: tensor<*xf32>) -> tensor<*xf32> { return %x : tensor<*xf32> }", "F0004"),
        model("func.func @main(%x: memref<4xf32>) { return }", "F000"),
        model("func.func @main(%x: complex<f32>) -> complex<f32> { return %x : complex<f32> }", "F000"),
        model("func.func @main(%x: tensor<4xf32, 1>) -> tensor<4xf32, 1> { return %x : tensor<4xf32, 1> }", "F0003"),
        model("func.func @main(%f: () -> ()) { return }", "F000"),
    ]
}

/// Tensors beyond any memory.
fn large() -> Vec<Case> {
    let unary = |size: &str| {
        format!(
            "func.func @main(%a: tensor<{size}xf32>) -> tensor<{size}xf32> {{ %e = tensor.empty() : tensor<{size}xf32> \
             %0 = linalg.exp ins(%a : tensor<{size}xf32>) outs(%e : tensor<{size}xf32>) -> tensor<{size}xf32> \
             return %0 : tensor<{size}xf32> }}"
        )
    };
    let fill = "func.func @main() -> tensor<1000000x1000000xf32> { %c = arith.constant 1.0 : f32 \
                %e = tensor.empty() : tensor<1000000x1000000xf32> \
                %0 = linalg.fill ins(%c : f32) outs(%e : tensor<1000000x1000000xf32>) -> tensor<1000000x1000000xf32> \
                return %0 : tensor<1000000x1000000xf32> }";
    let portable = |source: &str, code: &str| {
        line("compile m.mlir -o m.mpr --target gpu:portable", 1, code).file("m.mlir", source)
    };
    vec![
        model(unary("100000000000"), "R0007").about("400 GB"),
        model(unary("1000000x1000000"), "R0007").about("4 TB"),
        model(unary("4294967296x4294967296"), "F0030").about("more than addresses"),
        model(unary("9223372036854775808"), "I0001").about("an extent beyond 63 bits"),
        portable(fill, "error[F0031]").about("a fill of 4 TB"),
        portable(&unary("100000000000"), "error[F0031]").about("400 GB in parts"),
    ]
}

/// Invalid transform scripts.
fn schedules() -> Vec<Case> {
    let schedule = |text: &str, code: &str| {
        line("compile @/m.mlir -o m.mpr --target cpu --schedule s.mlir", 1, code).file("s.mlir", text)
    };
    vec![
        schedule("", "error["),
        schedule("module {", "error[I0001]"),
        schedule("\0", "error[I0002]"),
        schedule(&"(".repeat(50_000), "error[I0002]"),
        schedule("module { }", "error["),
        schedule(ADD, "error["),
        schedule("module attributes {transform.with_named_sequence} { }", "error["),
    ]
}

/// `opt`, which reads its file itself.
fn opt() -> Vec<Case> {
    let opt = |text: String, words: &str| line("opt m.mlir -o /dev/null", 1, words).file("m.mlir", text);
    let regions =
        format!("func.func @main(%c: i1) {{\n{}{}return }}", "scf.if %c {\n".repeat(50_000), "}\n".repeat(50_000));
    vec![
        opt("func.func @main( {".into(), "error"),
        opt(regions, "error[I0002]").about("regions"),
        opt(
            format!("func.func private @f() attributes {{a = {}{}}}", "[".repeat(50_000), "]".repeat(50_000)),
            "error[I0002]",
        )
        .about("arrays"),
        opt(format!("#m = affine_map<(d0) -> ({}d0)>", "-".repeat(50_000)), "error[I0002]").about("signs"),
        opt("a".repeat(2 << 20), "error[I0002]").about("a long token"),
        line("opt m.mlirbc -o /dev/null", 1, "error")
            .file("m.mlirbc", *b"ML\xefR\x07")
            .about("bytecode without sections"),
    ]
}
