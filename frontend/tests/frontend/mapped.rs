//! The values of resources: those of mapped bytecode stay in the file, those of text are not parsed by MLIR.

use std::sync::Arc;

use monopour_frontend::{ImportOptions, import};
use monopour_ir::{Context, Module};
use monopour_program::{ConstantData, Map};

/// Two resources of the module and one that it does not use, a small one, and an inline constant.
fn text() -> String {
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    format!(
        "func.func @main(%x: tensor<300xf32>) -> (tensor<300xf32>, tensor<256xi64>, tensor<2xf32>, tensor<4xf32>) {{
  %w = arith.constant dense_resource<weights> : tensor<300xf32>
  %n = arith.constant dense_resource<numbers> : tensor<256xi64>
  %l = arith.constant dense_resource<little> : tensor<2xf32>
  %c = arith.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>
  %s = arith.addf %x, %w : tensor<300xf32>
  return %s, %n, %l, %c : tensor<300xf32>, tensor<256xi64>, tensor<2xf32>, tensor<4xf32>
}}
{{-# dialect_resources: {{ builtin: {{
  weights: \"0x04000000{}\",
  numbers: \"0x08000000{}\",
  little: \"0x040000000000803F00000040\",
  spare: \"0x0400000001020304\"
}} }} #-}}",
        hex(weights()),
        hex(numbers())
    )
}

fn weights() -> Vec<u8> {
    (0..300u16).flat_map(|i| f32::from(i).to_le_bytes()).collect()
}

fn numbers() -> Vec<u8> {
    (0..256i64).flat_map(|i| (i * i - 7).to_le_bytes()).collect()
}

/// The bytecode of a module, mapped.
fn mapped(bytecode: &[u8]) -> (Arc<Map>, std::path::PathBuf) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("monopour-mapped-{}-{}.mlirbc", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytecode).unwrap();
    (Arc::new(Map::open(&path).unwrap()), path)
}

fn bytecode() -> Vec<u8> {
    Module::parse(Context::new(), text().as_bytes(), "test.mlir").unwrap().op().to_bytecode()
}

#[test]
fn values_of_resources_stay_in_the_file() {
    let (map, path) = mapped(&bytecode());
    let imported = import::run_mapped(Context::new(), &map, "test.mlirbc", &ImportOptions::default()).unwrap();
    std::fs::remove_file(path).unwrap();
    let of = |name: &str| imported.weights.get(name).unwrap_or_else(|| panic!("{name} is a weight"));
    assert_eq!(imported.weights.len(), 2);
    assert_eq!((of("weights").bytes(), of("weights").shape.as_slice()), (weights().as_slice(), [300].as_slice()));
    assert_eq!(of("numbers").bytes(), numbers());
    for name in ["weights", "numbers"] {
        let ConstantData::Mapped { map: file, .. } = of(name).data() else { panic!("{name} was copied") };
        assert!(Arc::ptr_eq(&file, &map));
    }
    // The module has the keys alone, and is read again.
    let text = imported.module.op().to_string();
    assert!(text.contains("dense_resource<weights>") && text.len() < 2000, "{text}");
    let again = Module::parse(Context::new(), &imported.module.op().to_bytecode(), "again.mlirbc").unwrap();
    let constants = again.op().find_all("arith.constant");
    let resources = constants.iter().filter_map(|op| op.attr("value")).filter(|value| value.is_resource());
    let bytes: Vec<_> = resources.map(|value| (value.resource_name(), value.resource_bytes())).collect();
    let little = [1f32.to_le_bytes(), 2f32.to_le_bytes()].concat();
    assert_eq!(bytes, [(Some("weights"), None), (Some("numbers"), None), (Some("little"), Some(little.as_slice()))]);
}

#[test]
fn mapped_bytecode_that_is_cut_is_refused() {
    let whole = bytecode();
    for len in (4..whole.len()).step_by(61) {
        let (map, path) = mapped(&whole[..len]);
        let error = import::run_mapped(Context::new(), &map, "test.mlirbc", &ImportOptions::default());
        std::fs::remove_file(path).unwrap();
        assert!(error.unwrap_err().to_string().contains("I0001"), "{len} bytes");
    }
}

fn imported(text: &str) -> Result<import::Imported<'static>, monopour_ir::Diagnostics> {
    import::run(Context::new(), text.as_bytes(), "test.mlir", &ImportOptions::default())
}

#[test]
fn values_of_resources_in_text_are_taken_out() {
    let imported = imported(&text()).unwrap();
    let of = |name: &str| imported.weights.get(name).unwrap_or_else(|| panic!("{name} is a weight"));
    assert_eq!(imported.weights.len(), 2);
    assert_eq!((of("weights").bytes(), of("weights").shape.as_slice()), (weights().as_slice(), [300].as_slice()));
    assert_eq!(of("numbers").bytes(), numbers());
    // The module has the keys alone, but for the small one.
    let printed = imported.module.op().to_string();
    assert!(printed.contains("dense_resource<weights>") && printed.len() < 2000, "{printed}");
    assert!(printed.contains("little: \"0x040000000000803F00000040\""), "{printed}");
    let again = Module::parse(Context::new(), &imported.module.op().to_bytecode(), "again.mlirbc").unwrap();
    assert!(again.op().to_string().contains("dense_resource<numbers>"));
}

/// What the parser sees of a resource of another type, and of one that is used as two: the values are in the module.
#[test]
fn values_that_are_no_weights_stay_in_the_module() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text = format!(
        "func.func @main() -> (tensor<4096xi4>, tensor<300xf32>, tensor<20x15xf32>) {{
  %p = arith.constant dense_resource<packed> : tensor<4096xi4>
  %w = arith.constant dense_resource<\"the weights\"> : tensor<300xf32>
  %v = arith.constant dense_resource<\"the weights\"> : tensor<20x15xf32>
  return %p, %w, %v : tensor<4096xi4>, tensor<300xf32>, tensor<20x15xf32>
}}
{{-# dialect_resources: {{ builtin: {{ packed: \"0x10000000{}\" /* not a comment */ }} }} #-}}",
        hex(&[0x5a; 2048]),
    );
    let text = text
        .replace(" /* not a comment */", &format!(", // \"0x\n \"the weights\"\n:\"0x04000000{}\"", hex(&weights())));
    let parsed = Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap().op().to_string();
    let (module, places) = Module::parse_without_blobs(Context::new(), text.as_bytes(), "test.mlir").unwrap();
    let keys: Vec<_> = places.iter().map(|(key, place)| (key.as_str(), place.len())).collect();
    assert_eq!(keys, [("packed", 4096), ("the weights", 2400)]);
    assert!(module.op().to_string().len() < 1000);
    for (key, digits) in places {
        module.restore_blob(text.as_bytes(), &key, digits);
    }
    assert_eq!(module.op().to_string(), parsed);
    let both = "both shapes have as many bytes";
    let of_two_shapes =
        text.replace("packed> : tensor<4096xi4>", "packed> : tensor<2048xi8>").replace("4096xi4", "2048xi8");
    assert_eq!(imported(&of_two_shapes).unwrap().weights.len(), 2, "{both}");
    let short = of_two_shapes.replace("20x15xf32", "20x14xf32");
    let short = imported(&short).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(short.weights.len(), 1);
    assert!(short.module.op().to_string().contains("\"the weights\": \"0x04000000"));
}

/// A text that is refused leaves nothing behind that another one's values are taken for.
#[test]
fn a_refused_text_leaves_no_values() {
    let cx = Context::new();
    let refused = text().replace("weights", "other").replace("spare: ", "spare ");
    Module::parse_without_blobs(cx, refused.as_bytes(), "refused.mlir").unwrap_err();
    let (_, places) = Module::parse_without_blobs(cx, text().as_bytes(), "test.mlir").unwrap();
    let keys: Vec<_> = places.iter().map(|(key, place)| (key.as_str(), place.len())).collect();
    assert!(keys.iter().all(|(key, _)| !key.starts_with("other")), "{keys:?}");
    assert_eq!(keys.iter().map(|(_, len)| *len).sum::<usize>(), 2 * (1200 + 2048), "{keys:?}");
}

#[test]
fn digits_that_are_none_are_refused_by_the_parser() {
    let good = text();
    let at = good.find("numbers: \"0x").unwrap() + "numbers: \"0x".len();
    for (place, digit) in [(at + 20, "g"), (at + 4000, "\n"), (at + 4000, ""), (at, "3"), (at + 9, "\\")] {
        let bad = format!("{}{digit}{}", &good[..place], &good[place + 1..]);
        let theirs = Module::parse(Context::new(), bad.as_bytes(), "test.mlir").unwrap_err().to_string();
        assert!(theirs.contains("I0001"), "{theirs}");
        assert_eq!(imported(&bad).unwrap_err().to_string(), theirs);
    }
}
