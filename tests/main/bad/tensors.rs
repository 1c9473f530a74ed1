//! `.npy` and `.safetensors` files that are damaged, or of other types and sizes.

use monopour::runtime::HostTensor;

use super::{Case, line};

/// All cases.
pub fn cases() -> Vec<Case> {
    [arrays(), weights(), devices()].into_iter().flatten().collect()
}

/// A `.npy` file of this header, version 1.
fn array(header: &str, data: &[u8]) -> Vec<u8> {
    let len = (header.len() as u16).to_le_bytes();
    [&b"\x93NUMPY\x01\x00"[..], &len, header.as_bytes(), data].concat()
}

fn header(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n")
}

/// Headers that are damaged or not supported.
fn headers() -> [(&'static str, String); 20] {
    [
        ("no dictionary", "hello".to_owned()),
        ("no header", String::new()),
        ("no type", "{'fortran_order': False, 'shape': (4, 2)}".to_owned()),
        ("no order", "{'descr': '<f4', 'shape': (4, 2)}".to_owned()),
        ("no shape", "{'descr': '<f4', 'fortran_order': False}".to_owned()),
        ("big endian", header("'>f4'", "False", "(4, 2)")),
        ("complex", header("'<c8'", "False", "(4, 2)")),
        ("objects", header("'|O'", "False", "(4, 2)")),
        ("text", header("'<U4'", "False", "(4, 2)")),
        ("records", header("[('a', '<f4')]", "False", "(4, 2)")),
        ("Fortran's order", header("'<f4'", "True", "(4, 2)")),
        ("an order that is none", header("'<f4'", "Maybe", "(4, 2)")),
        ("a negative extent", header("'<f4'", "False", "(-4, 2)")),
        ("a fraction", header("'<f4'", "False", "(4.5, 2)")),
        ("an extent beyond 64 bits", header("'<f4'", "False", "(99999999999999999999, 2)")),
        ("a product beyond 64 bits", header("'<f4'", "False", "(4294967296, 4294967296, 4)")),
        ("more than the file has", header("'<f4'", "False", "(4, 3)")),
        ("less than the file has", header("'<f4'", "False", "(4, 1)")),
        ("an open shape", header("'<f4'", "False", "(4, 2")),
        ("no tuple", header("'<f4'", "False", "8")),
    ]
}

fn arrays() -> Vec<Case> {
    let given = |bytes: Vec<u8>, code: &str| {
        line("run @/m.mlir --device cpu --random 1 --input arg0=x.npy", 1, &format!("error[{code}]"))
            .file("x.npy", bytes)
    };
    let good = array(&header("'<f4'", "False", "(4, 2)"), &[0; 32]);
    let mut cases = vec![];
    for len in [0, 1, 5, 6, 7, 8, 9, 10, 20, 60, good.len() - 32, good.len() - 1] {
        cases.push(given(good[..len].to_vec(), "R0017").about(format!("cut at {len}")));
    }
    for (what, header) in headers() {
        cases.push(given(array(&header, &[0; 32]), "R0017").about(what));
    }
    let mut version = good.clone();
    version[6] = 9;
    cases.push(given(version, "R0017").about("format version 9"));
    let mut long = good.clone();
    long[8..10].copy_from_slice(&[0xff, 0xff]);
    cases.push(given(long, "R0017").about("a header longer than the file"));
    cases.push(given([&good[..], &[0; 4]].concat(), "R0017").about("bytes behind the end"));
    for (what, descr, shape, bytes) in [
        ("f64", "'<f8'", "(4, 2)", 64),
        ("i32", "'<i4'", "(4, 2)", 32),
        ("another shape", "'<f4'", "(2, 4)", 32),
        ("another rank", "'<f4'", "(8,)", 32),
        ("no dimension", "'<f4'", "()", 4),
        ("nothing", "'<f4'", "(0, 2)", 0),
    ] {
        cases.push(given(array(&header(descr, "False", shape), &vec![0; bytes]), "R0008").about(what));
    }
    let reference = HostTensor::from_f32(vec![4, 2], &[9.0; 8]).unwrap();
    let bytes = array(&header("'<f4'", "False", "(4, 2)"), reference.data());
    let check = |bytes: Vec<u8>, code: &str| {
        line("run @/m.mlir --device cpu --random 1 --check .", 1, &format!("error[{code}]")).file("result0.npy", bytes)
    };
    cases.push(check(bytes.clone(), "R0018").about("other values"));
    cases.push(check(bytes[..40].to_vec(), "R0017").about("a reference that is cut"));
    cases
        .push(check(array(&header("'<f4'", "False", "(8,)"), &[0; 32]), "R0018").about("a reference of another shape"));
    cases
}

/// A `.safetensors` file of this header.
fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn weights() -> Vec<Case> {
    let given = |bytes: Vec<u8>, code: &str| {
        let args = "run @/w.mlir --device cpu --random 1 --weights w.safetensors";
        line(args, 1, &format!("error[{code}]")).file("w.safetensors", bytes)
    };
    let entry = |dtype: &str, shape: &str, offsets: &str| {
        format!("{{\"w\":{{\"dtype\":\"{dtype}\",\"shape\":{shape},\"data_offsets\":{offsets}}}}}")
    };
    let good = safetensors(&entry("F32", "[2]", "[0,8]"), &[0; 8]);
    let mut cases = vec![];
    for len in [0, 4, 8, 9, 30, good.len() - 1] {
        cases.push(given(good[..len].to_vec(), "F0008").about(format!("weights cut at {len}")));
    }
    for (what, bytes, code) in [
        ("a header of 2^64 bytes", [&[0xff; 8][..], b"{}"].concat(), "F0008"),
        ("a header of 100 MB", [&(100u64 << 20).to_le_bytes()[..], b"{}"].concat(), "F0008"),
        ("no JSON", safetensors("hello", &[]), "F0008"),
        ("a list", safetensors("[]", &[]), "F0008"),
        ("deep JSON", safetensors(&"[".repeat(100_000), &[]), "F0008"),
        ("no tensors", safetensors("{}", &[]), "F0006"),
        ("another name", safetensors(&entry("F32", "[2]", "[0,8]").replace("\"w\"", "\"v\""), &[0; 8]), "F0006"),
        ("another shape", safetensors(&entry("F32", "[1,2]", "[0,8]"), &[0; 8]), "F0007"),
        ("another type", safetensors(&entry("I32", "[2]", "[0,8]"), &[0; 8]), "F0007"),
        ("an unknown type", safetensors(&entry("F31", "[2]", "[0,8]"), &[0; 8]), "F0008"),
        ("a negative extent", safetensors(&entry("F32", "[-2]", "[0,8]"), &[0; 8]), "F0008"),
        ("offsets the wrong way round", safetensors(&entry("F32", "[2]", "[8,0]"), &[0; 8]), "F0008"),
        ("offsets beyond the end", safetensors(&entry("F32", "[2]", "[8,16]"), &[0; 8]), "F0008"),
        ("too few bytes", safetensors(&entry("F32", "[2]", "[0,4]"), &[0; 4]), "F0008"),
        ("a size beyond 64 bits", safetensors(&entry("F32", "[4294967296,4294967296,4]", "[0,8]"), &[0; 8]), "F0008"),
        ("bytes behind the end", [&good[..], &[0; 4]].concat(), "F0008"),
    ] {
        cases.push(given(bytes, code).about(what));
    }
    let both = line("run @/w.mlir --device cpu --random 1 --weights .", 1, "error[F0008]");
    cases.push(both.file("a.safetensors", good.clone()).file("b.safetensors", good).about("two values"));
    cases
}

/// Descriptions of devices for `--target gpu:FILE.json`.
fn devices() -> Vec<Case> {
    let given = |text: String| {
        line("compile @/m.mlir -o m.mpr --target gpu:gpu.json", 1, "error[I0033]").file("gpu.json", text)
    };
    let portable = serde_json::to_value(monopour::program::GpuDescription::portable()).expect("it is plain data");
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = portable.clone();
        change(&mut value);
        value.to_string()
    };
    let mut cases: Vec<Case> = ["", "hello", "[]", "null", "{\"limits\": 3}", "{\"features\": [\"magic\"]}", "{"]
        .into_iter()
        .map(|text| given(text.to_owned()).about(text))
        .collect();
    cases.push(given("[".repeat(100_000)).about("deep JSON"));
    for limit in ["max_binding_bytes", "max_buffer_bytes", "max_workgroup_invocations", "max_storage_buffers"] {
        for value in [0i64, -1] {
            let text = with(&|gpu| gpu["limits"][limit] = value.into());
            cases.push(given(text).about(format!("{limit} of {value}")));
        }
    }
    let groups = |most: u32| with(&|gpu| gpu["limits"]["max_workgroups_per_dimension"] = most.into());
    cases.push(given(groups(65_534)).about("too few workgroups in a row"));
    let five = "func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.map ins(%a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>)
    (%p: f32, %q: f32, %s: f32, %t: f32, %o: f32) {
      %u = arith.addf %p, %q : f32
      %v = arith.mulf %s, %t : f32
      %w = arith.addf %u, %v : f32
      linalg.yield %w : f32
    }
  return %r : tensor<8xf32>
}";
    let buffers = with(&|gpu| gpu["limits"]["max_storage_buffers"] = 4.into());
    let crowded = line("compile m.mlir -o m.mpr --target gpu:gpu.json", 1, "error[G0008]").file("m.mlir", five);
    cases.push(crowded.file("gpu.json", buffers).about("one buffer more than the device binds"));
    cases.push(
        given(with(&|gpu| gpu["limits"]["max_workgroup_size"] = serde_json::json!([0, 0, 0]))).about("no workgroup"),
    );
    cases.push(given(with(&|gpu| gpu["subgroup_min_size"] = 7.into())).about("subgroups of 7 to 0"));
    cases.push(given(with(&|gpu| gpu["backend"] = "glide".into())).about("an unknown backend"));
    cases
}
