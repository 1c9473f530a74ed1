//! Bytecode that is mapped: the values of its resources stay in the file.

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
