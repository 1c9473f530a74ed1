//! Runs ONNX backend cases: `onnx_suite DIR DEVICE [FILTER]`, each of `model.onnx` and `test_data_set_N/{input,output}_N.pb`.
//!
//! Prints a line per case: `pass`, `bound` (with its integer inputs as constants) or `FAIL` with the reason.

use monopour::onnx::proto::ModelProto;
use monopour::onnx::{Model, Tensor, read_tensor};
use monopour::program::CpuTarget;
use monopour::runtime::{Device, DeviceChoice, HostTensor, Options, Session};
use monopour::{CompileOptions, TargetDescription};
use prost::Message;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let root = PathBuf::from(&args[1]);
    let choice = if args[2] == "cpu" { DeviceChoice::Cpu } else { DeviceChoice::Gpu };
    let device = Device::open(&choice).expect("the device opens");
    let filter = args.get(3).cloned().unwrap_or_default();
    let mut names: Vec<String> = std::fs::read_dir(&root)
        .expect("the folder is readable")
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| filter.split(',').any(|f| n.contains(f)))
        .collect();
    names.sort();
    let (mut passed, mut bound) = (0, 0);
    for name in &names {
        let case = root.join(name);
        let guarded = |bind: bool| {
            let device = &device;
            let case = &case;
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || run(case, device, bind)))
                .unwrap_or_else(|_| Err("PANIC".to_owned()))
        };
        match guarded(false) {
            Ok(()) => {
                passed += 1;
                println!("pass {name}");
            }
            Err(first) => match guarded(true) {
                Ok(()) => {
                    bound += 1;
                    println!("bound {name}: {}", first.lines().next().unwrap_or(""));
                }
                Err(why) => println!("FAIL {name}: {}", why.replace('\n', " | ")),
            },
        }
    }
    println!("{passed} pass, {bound} bound, {} of {}", passed + bound, names.len());
}

fn tensors(folder: &Path, kind: &str) -> Result<Vec<Tensor>, String> {
    let mut out = vec![];
    loop {
        let path = folder.join(format!("{kind}_{}.pb", out.len()));
        if !path.exists() {
            return Ok(out);
        }
        out.push(read_tensor(&path)?);
    }
}

fn run(case: &Path, device: &Device, bind: bool) -> Result<(), String> {
    let data = case.join("test_data_set_0");
    let (inputs, outputs) = (tensors(&data, "input")?, tensors(&data, "output")?);
    let bytes = std::fs::read(case.join("model.onnx")).map_err(|e| e.to_string())?;
    let mut proto = ModelProto::decode(&bytes[..]).map_err(|e| e.to_string())?;
    let graph = proto.graph.as_mut().ok_or("no graph")?;
    let mut given = inputs;
    if bind {
        let mut kept = vec![];
        for (info, tensor) in graph.input.iter().zip(given) {
            let small = tensor.shape.len() <= 1 && tensor.elements() <= 64;
            if small && tensor.dtype.is_integer() {
                graph.initializer.push(monopour::onnx::proto::TensorProto {
                    name: info.name.clone(),
                    dims: tensor.shape.clone(),
                    data_type: tensor.dtype.number(),
                    raw_data: tensor.data.bytes().to_vec().into(),
                    ..Default::default()
                });
            } else {
                kept.push(tensor);
            }
        }
        given = kept;
    }
    let model = Model::from_bytes(&proto.encode_to_vec(), "model.onnx", case).map_err(|e| e.to_string())?;
    let target = match device.description() {
        Some(description) => TargetDescription::Gpu(description.clone()),
        None => TargetDescription::Cpu(CpuTarget::host()),
    };
    let options = CompileOptions { targets: vec![target], ..CompileOptions::default() };
    let compiled = monopour::compile_onnx(&model, &options).map_err(|e| e.to_string())?;
    let program = Arc::new(compiled.program);
    let mut host = vec![];
    for tensor in &given {
        let dtype = tensor.dtype.dtype().ok_or_else(|| format!("input of {}", tensor.dtype))?;
        let shape = tensor.shape.iter().map(|d| d.unsigned_abs()).collect();
        host.push(HostTensor::new(dtype, shape, tensor.data.bytes().to_vec()).map_err(|e| e.to_string())?);
    }
    let mut session = Session::load(device, program, &Options::default()).map_err(|e| e.to_string())?;
    let results = session.run(&host).map_err(|e| e.to_string())?;
    if results.len() != outputs.len() {
        return Err(format!("{} results, {} expected", results.len(), outputs.len()));
    }
    for (at, (found, wanted)) in results.iter().zip(&outputs).enumerate() {
        let shape: Vec<i64> = found.shape().iter().map(|d| *d as i64).collect();
        let dtype = wanted.dtype.dtype().ok_or_else(|| format!("output of {}", wanted.dtype))?;
        if shape != wanted.shape || dtype != found.dtype() {
            return Err(format!(
                "result {at} is {} {shape:?}, expected {} {:?}",
                found.dtype(),
                wanted.dtype,
                wanted.shape
            ));
        }
        let wide = wanted.to_f64().ok_or("no numbers")?;
        let narrow = matches!(wanted.dtype.bits(), Some(16));
        let rtol = if narrow { 2e-2 } else { 1e-3 };
        let atol = if narrow { 1e-3 } else { 1e-6 };
        for (i, (a, e)) in found.to_f64().iter().zip(&wide).enumerate() {
            let close = a == e || (a.is_nan() && e.is_nan()) || (a - e).abs() <= atol + rtol * e.abs();
            if !close {
                return Err(format!("result {at} element {i} is {a}, expected {e}"));
            }
        }
    }
    Ok(())
}
