//! The command line as users start it: `run`, `inspect`, `devices`, `completions`, and exit statuses.

use std::path::{Path, PathBuf};
use std::process::Command;

use monopour::npy;
use monopour::runtime::{Device, DeviceChoice, HostTensor};

const MODEL: &str = "\
func.func @main(%a: tensor<8x16xf32>, %b: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8x16xf32>
  %0 = linalg.add ins(%a, %b : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
";

/// A folder of this test, with the model in it.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("monopour-cli-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("m.mlir"), MODEL).unwrap();
    folder
}

/// Exit status, standard output, standard error.
fn start(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_monopour")).args(args).current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn done(folder: &Path, args: &[&str]) -> String {
    let (status, out, err) = start(folder, args);
    assert_eq!(status, Some(0), "{args:?}: {err}");
    out
}

fn fails(folder: &Path, args: &[&str], status: i32, expected: &str) {
    let (found, out, err) = start(folder, args);
    assert_eq!(found, Some(status), "{args:?}: {err}");
    assert!(err.contains(expected), "{args:?}: {err}");
    assert_eq!(out, "", "{args:?}: results only on standard output");
}

fn tensor(scale: f32) -> HostTensor {
    let values: Vec<f32> = (0..128).map(|i| i as f32 * scale).collect();
    HostTensor::from_f32(vec![8, 16], &values).unwrap()
}

#[test]
fn a_model_runs_from_files_to_files_and_is_checked() {
    let folder = folder("files");
    npy::write(&folder.join("arg0.npy"), &tensor(1.0)).unwrap();
    npy::write(&folder.join("b.npy"), &tensor(0.5)).unwrap();
    let run = ["run", "m.mlir", "--device", "cpu", "--inputs", ".", "--input", "arg1=b.npy"];
    done(&folder, &[&run[..], &["--outputs", "out"]].concat());
    assert_eq!(npy::read(&folder.join("out/result0.npy")).unwrap(), tensor(1.5));
    done(&folder, &[&run[..], &["--check", "out"]].concat());
    npy::write(&folder.join("out/result0.npy"), &tensor(1.6)).unwrap();
    let check = [&run[..], &["--check", "out"]].concat();
    fails(&folder, &check, 1, "error[R0018]: output `result0` differs at [7, 15]: found 190.5, expected 203.2");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_artifact_runs_and_tells_what_is_in_it() {
    let folder = folder("artifact");
    done(&folder, &["compile", "m.mlir", "-o", "m.mpr", "--target", "cpu", "--target", "gpu:portable"]);
    let summary = done(&folder, &["run", "m.mpr", "--device", "cpu", "--random", "1"]);
    assert!(summary.starts_with("result0: tensor<8x16xf32>  min -"), "{summary}");
    let same = done(&folder, &["run", "m.mlir", "--device", "cpu", "--random", "1", "--threads", "1"]);
    assert_eq!(summary, same);
    let text = done(&folder, &["inspect", "m.mpr"]);
    assert!(text.contains("input    arg0: tensor<8x16xf32>") && text.contains("variant  gpu:portable"), "{text}");
    let object: serde_json::Value = serde_json::from_str(&done(&folder, &["inspect", "m.mpr", "--json"])).unwrap();
    assert_eq!(object["inputs"][1]["shape"], serde_json::json!([8, 16]));
    assert_eq!(object["variants"][1]["kernels"][0]["name"], "main_dispatch_0");
    let bytes = std::fs::read(folder.join("m.mpr")).unwrap();
    std::fs::write(folder.join("cut.mpr"), &bytes[..bytes.len() - 1]).unwrap();
    fails(&folder, &["run", "cut.mpr", "--random", "1"], 1, "error[P0003]: artifact is truncated");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn stats_and_traces_are_json() {
    let folder = folder("stats");
    let args = ["run", "m.mlir", "--device", "cpu", "--random", "1", "--repeat", "3", "--warmup", "1"];
    let out = done(&folder, &[&args[..], &["--stats=json", "--trace", "t.json"]].concat());
    let stats: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&stats["device"], &stats["runs"]), (&"cpu".into(), &3.into()));
    for field in ["compile_ms", "load_ms", "first_run_ms", "upload_ms", "readback_ms"] {
        assert!(stats[field].as_f64().unwrap() > 0.0, "{field} in {stats}");
    }
    let ordered = ["min", "median", "p95", "max"].map(|field| stats["run_ms"][field].as_f64().unwrap());
    assert!(ordered.is_sorted(), "{ordered:?}");
    for field in ["copies", "copied_bytes", "transfers", "transfer_bytes", "scalar_reads", "submits"] {
        assert_eq!(stats[field], 0, "{field}");
    }
    assert_eq!((&stats["upload_bytes"], &stats["readback_bytes"]), (&1024.into(), &512.into()));
    assert_eq!((&stats["dispatches"], &stats["allocations"]), (&1.into(), &1.into()));
    assert_eq!(stats["steady_state"]["buffers_created"], 0);
    // One result, which is all that is alive.
    assert_eq!((&stats["fresh_bytes"], &stats["memory"]["results"]), (&512.into(), &512.into()));
    assert_eq!((&stats["bounds"]["peak_bytes"], &stats["memory"]["pool"]), (&512.into(), &0.into()));
    let trace = std::fs::read_to_string(folder.join("t.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&trace).unwrap();
    let names: Vec<&str> = trace["traceEvents"].as_array().unwrap().iter().filter_map(|e| e["name"].as_str()).collect();
    for name in ["bufferize", "load", "run", "main_dispatch_0", "readback", "live bytes"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn kernels_are_measured_where_that_can_be() {
    let folder = folder("tune");
    let tune = |model: &str, target: &str| -> Vec<String> {
        ["compile", model, "-o", "m.mpr", "--tune=100", "--quiet", "--target", target].map(str::to_owned).to_vec()
    };
    let product = |rows: &str, size: &str| {
        format!(
            "func.func @main(%a: tensor<{rows}x32xf32>, %b: tensor<32x32xf32>) -> tensor<{rows}x32xf32> {{\n  \
             %z = arith.constant 0.0 : f32\n  %c = arith.constant 0 : index\n  {size}  \
             %f = linalg.fill ins(%z : f32) outs(%e : tensor<{rows}x32xf32>) -> tensor<{rows}x32xf32>\n  \
             %0 = linalg.matmul ins(%a, %b : tensor<{rows}x32xf32>, tensor<32x32xf32>) \
             outs(%f : tensor<{rows}x32xf32>) -> tensor<{rows}x32xf32>\n  return %0 : tensor<{rows}x32xf32>\n}}\n"
        )
    };
    std::fs::write(folder.join("m.mlir"), product("32", "%e = tensor.empty() : tensor<32x32xf32>\n")).unwrap();
    let size = "%n = tensor.dim %a, %c : tensor<?x32xf32>\n  %e = tensor.empty(%n) : tensor<?x32xf32>\n";
    std::fs::write(folder.join("dynamic.mlir"), product("?", size)).unwrap();
    let words = tune("m.mlir", "cpu");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fails(&folder, &words, 2, "error: --tune measures on the device of a target: no target is a GPU of this machine");
    assert!(!folder.join("m.mpr").exists());
    if Device::open(&DeviceChoice::Gpu).is_ok() {
        let words = tune("dynamic.mlir", "gpu");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        fails(
            &folder,
            &words,
            1,
            "error[R0007]: input `arg0: tensor<?x32xf32>` has sizes that nothing gives: bind them with --dim",
        );
        assert!(!folder.join("m.mpr").exists());
        let words = tune("m.mlir", "gpu");
        let run = |expected: &str| {
            let output = Command::new(env!("CARGO_BIN_EXE_monopour"))
                .args(&words)
                .env("MONOPOUR_CACHE_DIR", folder.join("caches"))
                .current_dir(&folder)
                .output()
                .unwrap();
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && err.contains(expected), "{err}");
            std::fs::read(folder.join("m.mpr")).unwrap()
        };
        let first = run("tuned 1 kinds of kernels, ");
        assert!(first == run("tuned 0 kinds of kernels, 0 of them faster"), "the same choices, the same bytes");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn wrong_inputs_end_with_status_1() {
    let folder = folder("inputs");
    let run = ["run", "m.mlir", "--device", "cpu"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    fails(&folder, &run, 1, "error[R0007]: input `arg0: tensor<8x16xf32>` is missing");
    fails(&folder, &with(&["--input", "x=a.npy"]), 1, "error[R0007]: no input is named `x`; there are arg0, arg1");
    fails(&folder, &with(&["--input", "arg0=nothing.npy"]), 1, "error[R0017]: `nothing.npy`");
    fails(&folder, &with(&["--input", "arg0=m.mlir"]), 1, "error[R0017]: `m.mlir`: not a .npy file");
    npy::write(&folder.join("small.npy"), &HostTensor::from_f32(vec![2], &[1.0, 2.0]).unwrap()).unwrap();
    let small = with(&["--input", "arg0=small.npy", "--random", "1"]);
    fails(&folder, &small, 1, "error[R0008]: input `arg0` has type tensor<2xf32>, expected tensor<8x16xf32>");
    fails(&folder, &with(&["--random", "1", "--donate", "y"]), 1, "error[F0015]: no tensor argument is called 'y'");
    fails(&folder, &["run", "nothing.mpr", "--random", "1"], 1, "error[P0007]");
    fails(&folder, &["inspect", "m.txt"], 1, "error[I0032]");
    fails(&folder, &["run", "nothing.mlir", "--device", "cpu"], 1, "I0031");
    std::fs::write(folder.join("bad.mlir"), "func.func @main( {").unwrap();
    fails(&folder, &["run", "bad.mlir", "--device", "cpu"], 1, "bad.mlir:1:");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn wrong_command_lines_end_with_status_2_and_missing_devices_with_3() {
    let folder = folder("status");
    fails(&folder, &["run"], 2, "<MODEL>");
    fails(&folder, &["run", "m.mlir", "--stats=xml"], 2, "xml");
    fails(
        &folder,
        &["run", "m.mlir", "--device", "cpu", "--input", "arg0"],
        2,
        "--input takes NAME=FILE, found `arg0`",
    );
    fails(&folder, &["nothing"], 2, "unrecognized subcommand");
    fails(&folder, &["run", "m.mlir", "--device", "no such device"], 3, "error[R0002]: no device `no such device`");
    let memory = ["run", "m.mlir", "--device", "cpu", "--random", "1", "--memory-limit", "600"];
    fails(&folder, &memory, 3, "error[R0009]: memory limit exceeded");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn devices_are_listed_and_described() {
    let folder = folder("devices");
    let text = done(&folder, &["devices"]);
    assert_eq!(text.matches("(auto)").count(), 1, "{text}");
    let json = done(&folder, &["devices", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(object["devices"].as_array().is_some_and(|devices| !devices.is_empty()));
    // Where there is a GPU, the object is an input of `--target`.
    if object["limits"].is_object() {
        std::fs::write(folder.join("gpu.json"), &json).unwrap();
        done(&folder, &["compile", "m.mlir", "-o", "m.mpr", "--target", "gpu:gpu.json"]);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_command_has_help_with_an_example_and_shells_complete() {
    let folder = folder("help");
    for command in ["run", "compile", "explain", "inspect", "plan", "devices", "completions"] {
        let help = done(&folder, &[command, "--help"]);
        assert!(help.contains("Example: monopour ") && help.contains(command), "{help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(done(&folder, &["completions", shell]).contains("memory-limit"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

const SIGNS: &str = "\
func.func @main(%x: tensor<4xui8>, %y: tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xui8>, tensor<4xbf16>) {
  %a = tensor.bitcast %x : tensor<4xui8> to tensor<4xi8>
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%a, %y : tensor<4xi8>, tensor<4xbf16>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: i8, %q: bf16, %o: f32):
    %b = arith.uitofp %p : i8 to f32
    %w = arith.extf %q : bf16 to f32
    %s = arith.addf %b, %w : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %f, %x, %y : tensor<4xf32>, tensor<4xui8>, tensor<4xbf16>
}
";

/// Files of uint8 and bfloat16 as NumPy and ml_dtypes save and load them.
#[test]
fn unsigned_bytes_and_bf16_come_from_files_and_go_to_files() {
    use monopour::program::DType;
    let folder = folder("signs");
    std::fs::write(folder.join("s.mlir"), SIGNS).unwrap();
    let bytes = HostTensor::new(DType::U8, vec![4], vec![0, 1, 128, 255]).unwrap();
    npy::write(&folder.join("arg0.npy"), &bytes).unwrap();
    npy::write(&folder.join("arg1.npy"), &HostTensor::from_f32(vec![4], &[0.5, 1.0, -2.0, 0.0]).unwrap()).unwrap();
    done(&folder, &["run", "s.mlir", "--device", "cpu", "--inputs", ".", "--outputs", "out"]);
    let read = |name: &str| npy::read(&folder.join("out").join(name)).unwrap();
    assert_eq!(read("result0.npy").to_f32().unwrap(), [0.5, 2.0, 126.0, 255.0]);
    assert_eq!(read("result1.npy"), bytes);
    assert_eq!((read("result2.npy").dtype(), read("result2.npy").to_f64()), (DType::Bf16, vec![0.5, 1.0, -2.0, 0.0]));
    let text = done(&folder, &["inspect", "s.mlir"]);
    assert!(text.contains("arg0: tensor<4xui8>") && text.contains("arg1: tensor<4xbf16>"), "{text}");
    npy::write(&folder.join("arg0.npy"), &HostTensor::from_f32(vec![4], &[0.0; 4]).unwrap()).unwrap();
    fails(&folder, &["run", "s.mlir", "--device", "cpu", "--inputs", "."], 1, "expected tensor<4xui8>");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Two products, the first with a tanh epilogue, and an input that is overwritten without being donated.
const DECISIONS: &str = "\
func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x16xf32>, %v: tensor<16x16xf32>, %y: tensor<65x32xf32>)
    -> (tensor<64x16xf32>, tensor<65x32xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %m = linalg.matmul ins(%x, %w : tensor<64x32xf32>, tensor<32x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %t = linalg.tanh ins(%m : tensor<64x16xf32>) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %n = linalg.matmul ins(%t, %v : tensor<64x16xf32>, tensor<16x16xf32>) outs(%f : tensor<64x16xf32>) -> tensor<64x16xf32>
  %s = tensor.insert_slice %t into %y[0, 0] [64, 16] [1, 1] : tensor<64x16xf32> into tensor<65x32xf32>
  return %n, %s : tensor<64x16xf32>, tensor<65x32xf32>
}
";

/// Status and log lines of a compilation for a GPU.
fn logged(folder: &Path, filter: Option<&str>) -> (Option<i32>, Vec<String>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_monopour"));
    command.args(["compile", "d.mlir", "-o", "d.mpr", "--target", "gpu:portable"]).env_remove("MONOPOUR_LOG");
    filter.map(|filter| command.env("MONOPOUR_LOG", filter));
    let output = command.current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = text.lines().filter(|line| line.starts_with("TRACE ")).map(str::to_owned).collect();
    (output.status.code(), lines, text)
}

#[test]
fn decisions_are_logged_with_their_locations_on_request() {
    let folder = folder("log");
    std::fs::write(folder.join("d.mlir"), DECISIONS).unwrap();
    let (status, lines, text) = logged(&folder, Some("trace"));
    assert_eq!(status, Some(0), "{text}");
    for expected in [
        "fuse: d.mlir:7:8: not fused into the reduction at d.mlir:8:8: it reads each element several times",
        "fuse: d.mlir:7:8: dispatch 0: producer linalg.matmul at d.mlir:6:8, root linalg.generic at d.mlir:7:8",
        "tile: d.mlir:8:8: 1x1 tiles, {class = \"contraction\", ",
        "bufferize: d.mlir:6:8: operand 2 of linalg.matmul in place",
        "bufferize: d.mlir:9:8: copied 8320 bytes for operand 1 of tensor.insert_slice: it may be in memory that must not \
         be written; written by tensor.insert_slice at d.mlir:9:8, not writable: an argument of the region at d.mlir:1:1",
        "dealloc: d.mlir:1:1: @main by static frees: all owners are known",
        "dealloc: d.mlir:4:8: freed after memref.copy at d.mlir:9:8",
        "distribute: d.mlir:7:8: @main_dispatch_0 by contraction, 4 lanes",
        "plan: d.mlir:4:8: 4096 bytes at offset 0, alive from op ",
    ] {
        assert!(lines.iter().any(|line| line[6..].starts_with(expected)), "{expected}\nin\n{text}");
    }
    assert_eq!(logged(&folder, Some("trace")).1, lines, "the same each time");
    let (_, some, _) = logged(&folder, Some("tile=trace,plan=trace,bufferize=info"));
    let is_asked_for = |line: &&String| line.starts_with("TRACE tile: ") || line.starts_with("TRACE plan: ");
    assert_eq!(some.iter().collect::<Vec<_>>(), lines.iter().filter(is_asked_for).collect::<Vec<_>>());
    for nothing in [None, Some(""), Some("off")] {
        let (status, lines, text) = logged(&folder, nothing);
        assert_eq!((status, lines.len()), (Some(0), 0), "{text}");
    }
    let (status, _, text) = logged(&folder, Some("bufferise=trace"));
    assert_eq!(status, Some(1));
    assert!(text.starts_with("error[I0034]: MONOPOUR_LOG is 'bufferise=trace': ") && text.contains("help: "), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A model with the symbol `n` and an input that has a constant, and an operand as a tensor of ONNX.
fn write_onnx(folder: &Path) {
    use monopour::onnx::DataType;
    use monopour_testkit::onnx::{floats, model, node, value};
    use prost::Message;
    let inputs = vec![value("x", DataType::F32, &["n", "3"]), value("w", DataType::F32, &["3"])];
    let nodes = vec![node("Relu", &["x"], &["a"]), node("Add", &["a", "w"], &["y"])];
    let proto = model(inputs, nodes, vec![floats("w", &[3], &[1.0, 2.0, 3.0])], "y");
    std::fs::write(folder.join("m.onnx"), proto.encode_to_vec()).unwrap();
    let x = floats("x", &[1, 3], &[-1.0, 5.0, -7.0]);
    std::fs::write(folder.join("x.pb"), x.encode_to_vec()).unwrap();
}

/// What `--dump-after` asks for is printed as soon as there is it: a phase behind it may fail.
#[test]
fn dumps_are_printed_where_a_later_phase_fails() {
    let folder = folder("failed_dump");
    let text = "func.func @main(%x: tensor<4xi64>, %y: tensor<4xi64>) -> tensor<4xi64> {
  %e = tensor.empty() : tensor<4xi64>
  %r = linalg.add ins(%x, %y : tensor<4xi64>, tensor<4xi64>) outs(%e : tensor<4xi64>) -> tensor<4xi64>
  return %r : tensor<4xi64>\n}\n";
    std::fs::write(folder.join("wide.mlir"), text).expect("the folder can be written to");
    let args = ["compile", "wide.mlir", "--target", "gpu:portable", "--dump-after", "import,fuse", "-o", "wide.mpr"];
    let (status, printed, told) = start(&folder, &args);
    assert_eq!((status, printed.as_str()), (Some(1), ""), "{told}");
    let at = |part: &str| told.find(part).unwrap_or_else(|| panic!("no {part}: {told}"));
    assert!(at("// after import for gpu") < at("// after fuse for gpu") && at("// after fuse") < at("error[G0002]"));
    assert!(at("monopour.dispatch") < at("error[G0002]") && !folder.join("wide.mpr").exists());
}

#[test]
fn sizes_of_onnx_models_are_given_once_and_shown() {
    let folder = folder("onnx");
    write_onnx(&folder);
    let open = done(&folder, &["inspect", "m.onnx"]);
    assert!(open.contains("input    x: f32[n, 3]\ninput    w: f32[3]  constant\nresult   y: "), "{open}");
    assert!(open.contains("symbol   n"), "{open}");
    let bound = done(&folder, &["inspect", "m.onnx", "--dim", "n=5"]);
    assert!(bound.contains("input    x: f32[5, 3]\n") && !bound.contains("symbol"), "{bound}");
    fails(&folder, &["inspect", "m.onnx", "--dim", "m=5"], 1, "error[F0045]: no dimension is called 'm'");
    let twice = ["m.onnx", "--dim", "n=5", "--dim", "n=6"];
    for command in ["inspect", "run", "explain"] {
        fails(&folder, &[&[command], &twice[..]].concat(), 2, "--dim gives the size of `n` twice");
    }
    let run = ["run", "m.onnx", "--device", "cpu", "--input", "x=x.pb", "--outputs", "out"];
    done(&folder, &run);
    assert_eq!(npy::read(&folder.join("out/y.npy")).unwrap().to_f64(), [1.0, 7.0, 3.0]);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Bounds of any size, in any order, and lines that are wrong.
#[test]
fn the_buffers_of_a_trace_are_placed() {
    let folder = folder("plan");
    let trace = "id,lower,upper,size\n\na,0,4,100\nb,4,18446744073709551615,300\nc, 0, 4, 300\nd,5,9,100\ne,9,10,0\n";
    std::fs::write(folder.join("t.csv"), trace).unwrap();
    let out = done(&folder, &["plan", "t.csv", "--json", "--placement", "p.csv", "--capacity", "400"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let bytes = |name: &str| found[name].as_u64().unwrap();
    assert_eq!(
        (bytes("buffers"), bytes("peak_bytes"), bytes("lower_bound_bytes"), bytes("sum_bytes")),
        (5, 400, 400, 800)
    );
    let placed = std::fs::read_to_string(folder.join("p.csv")).unwrap();
    let mut lines = placed.lines();
    assert_eq!(lines.next(), Some("id,offset"));
    let offsets: Vec<(&str, u64)> =
        lines.map(|line| line.split_once(',').unwrap()).map(|(id, at)| (id, at.parse().unwrap())).collect();
    assert_eq!(offsets.iter().map(|(id, _)| *id).collect::<String>(), "abcde");
    let apart = |x: usize, x_bytes, y: usize, y_bytes| {
        offsets[x].1 + x_bytes <= offsets[y].1 || offsets[y].1 + y_bytes <= offsets[x].1
    };
    assert!(apart(0, 100, 2, 300) && apart(1, 300, 3, 100), "{offsets:?}");

    let (status, out, err) = start(&folder, &["plan", "t.csv", "--alignment", "256", "--capacity", "767"]);
    assert_eq!(status, Some(1));
    assert!(out.contains("peak         768 bytes"), "{out}");
    assert!(err.contains("error[I0036]: the buffers take 768 bytes") && err.contains("no placement fits"), "{err}");
    for (line, expected) in [
        ("f,3,3,1", "t.csv:8"),
        ("f,3,4", "four columns, not 3"),
        ("f,-1,4,1", "lower is '-1'"),
        ("f,1,4,99999999999999999999", "size is '99999999999999999999'"),
    ] {
        std::fs::write(folder.join("t.csv"), format!("{trace}{line}\n")).unwrap();
        fails(&folder, &["plan", "t.csv"], 1, expected);
    }
    std::fs::write(folder.join("t.csv"), "a,0,4,100\n").unwrap();
    fails(&folder, &["plan", "t.csv"], 1, "error[I0035]");
    fails(&folder, &["plan", "none.csv"], 1, "error[I0031]");
    fails(&folder, &["plan", "t.csv", "--alignment", "0"], 2, "alignment");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The two forms of the host function, printed and run; without trust, machine code is refused.
#[test]
fn the_host_function_runs_in_both_forms_and_machine_code_needs_trust() {
    let folder = folder("host");
    let text = done(&folder, &["compile", "m.mlir", "--target", "cpu", "--emit", "host"]);
    assert!(text.contains(" = input(0)\n") && text.contains("dispatch(0, "), "{text}");
    done(&folder, &["compile", "m.mlir", "--target", "cpu", "--target", "gpu:portable", "-o", "m.mpr"]);
    let whole = done(&folder, &["inspect", "m.mpr", "--host"]);
    assert_eq!(whole.matches(" = input(0)\n").count(), 2, "{whole}");
    assert!(done(&folder, &["inspect", "m.mpr"]).contains(" ops as data"), "only their number");
    let object: serde_json::Value =
        serde_json::from_str(&done(&folder, &["inspect", "m.mpr", "--host", "--json"])).unwrap();
    assert!(object["variants"][1]["host_data"]["code"].as_str().unwrap().contains("dispatch(0, "), "{object}");
    let run = ["run", "m.mpr", "--random", "1", "--device", "cpu"];
    let native = done(&folder, &[&run[..], &["--host", "native"]].concat());
    assert_eq!(native, done(&folder, &[&run[..], &["--host", "data"]].concat()));
    assert_eq!(native, done(&folder, &run));
    fails(&folder, &[&run[..], &["--untrusted"]].concat(), 1, "error[R0020]");
    fails(&folder, &["run", "m.mlir", "--random", "1", "--device", "cpu", "--untrusted"], 1, "error[R0020]");
    fails(&folder, &[&run[..], &["--host", "magic"]].concat(), 2, "--host");
    if let Some(device) = crate::host::devices().get(1) {
        assert!(device.0.description().is_some());
        let run = ["run", "m.mpr", "--random", "1", "--device", "gpu"];
        let trusted = done(&folder, &run);
        assert_eq!(trusted, done(&folder, &[&run[..], &["--untrusted"]].concat()));
        fails(&folder, &[&run[..], &["--untrusted", "--host", "native"]].concat(), 1, "error[R0020]");
    }
}

/// Each strategy computes the same, and the ones that look for what is in place copy no more than the one that does not.
#[test]
fn strategies_are_compared_on_one_program() {
    let folder = folder("bench");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/copies");
    let models = ["jacobi", "fan_out", "stencil_twin"].map(|name| root.join(format!("{name}.mlir")));
    let models = models.each_ref().map(|model| model.to_str().unwrap());
    let args = ["bench", "--device", "cpu", "--repeat", "3", "--html", "b.html"];
    let out = done(&folder, &[&args[..], &models, &["--json"]].concat());
    let measured: serde_json::Value = serde_json::from_str(&out).unwrap();
    for program in measured["programs"].as_array().unwrap() {
        let modes = program["modes"].as_array().unwrap();
        let names: Vec<&str> = modes.iter().map(|mode| mode["mode"].as_str().unwrap()).collect();
        assert_eq!(names, ["minimal", "greedy", "upstream", "copy-before-write"]);
        let number = |mode: usize, field: &str| modes[mode][field].as_u64().unwrap();
        assert!(number(0, "copied_bytes") >= number(0, "lower_bound_copied_bytes"), "{program}");
        assert!(number(1, "copied_bytes") < number(3, "copied_bytes"), "{program}");
        assert!(number(1, "peak_bytes") <= number(3, "peak_bytes"), "{program}");
        assert!(modes.iter().all(|mode| mode["run_ms"].as_f64().unwrap() > 0.0), "{program}");
    }
    let page = std::fs::read_to_string(folder.join("b.html")).unwrap();
    assert_eq!(page.matches("<tr>").count(), 1 + 3 * 4, "{page}");
    fails(&folder, &["bench", "no.mlir", "--device", "cpu"], 1, "error[I0031]");
    std::fs::remove_dir_all(&folder).unwrap();
}
