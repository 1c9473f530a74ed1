//! Runs ONNX's backend suite: `onnx_suite DIR DEVICE [PARTS] [--known FILE] [--bless] [--jobs N]`.
//!
//! `DIR` holds a folder per case, or a folder per category: `CASE/model.onnx`, `CASE/test_data_set_N/{input,output}_N.pb`
//! (`scripts/onnx-suite/write_cases.py` writes them, with `index.json` for the tolerances). `DEVICE` is `cpu` or `gpu`;
//! `PARTS` are parts of names, separated by commas.
//!
//! Prints a line per case: `pass`, `bound` (with the operands that decide a rank or axes as constants) or `FAIL` with the
//! reason. With `--known`, a list of cases that fail with their reasons, or that are `bound`, exit status 1 if a case differs from
//! it; `--bless` writes the list.

use monopour::CompileOptions;
use monopour::onnx::proto::{GraphProto, ModelProto, TensorProto};
use monopour::onnx::{Model, Tensor, read_tensor, to_host};
use monopour::program::DType;
use monopour::runtime::{Device, DeviceChoice, HostTensor, Options, Session};
use prost::Message;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The reason in the list of a case that passes with operands bound.
const BOUND: &str = "bound";
/// Operands that decide the rank of a result or the axes of an op.
const STRUCTURAL: &[(&str, usize)] = &[
    ("CumProd", 1),
    ("CumSum", 1),
    ("DFT", 2),
    ("Expand", 1),
    ("Pad", 3),
    ("Reshape", 1),
    ("Slice", 3),
    ("Squeeze", 1),
    ("Unsqueeze", 1),
];

struct Arguments {
    root: PathBuf,
    device: DeviceChoice,
    parts: Vec<String>,
    known: Option<PathBuf>,
    bless: bool,
    jobs: usize,
}

impl Arguments {
    fn parse() -> Option<Self> {
        let (mut plain, mut known, mut bless, mut jobs) = (vec![], None, false, 2);
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--known" => known = Some(PathBuf::from(args.next()?)),
                "--bless" => bless = true,
                "--jobs" => jobs = args.next()?.parse().ok()?,
                _ => plain.push(arg),
            }
        }
        let device = if plain.get(1)? == "cpu" { DeviceChoice::Cpu } else { DeviceChoice::Gpu };
        let parts = plain.get(2).map_or(String::new(), String::clone).split(',').map(str::to_owned).collect();
        Some(Self { root: PathBuf::from(&plain[0]), device, parts, known, bless, jobs })
    }
}

/// A case: its folder, and how far a result may be off.
struct Case {
    folder: PathBuf,
    name: String,
    rtol: f64,
    atol: f64,
}

enum Outcome {
    Pass,
    /// It passes with structural operands as constants; why not without.
    Bound(String),
    Fail(String),
}

fn main() -> ExitCode {
    let Some(arguments) = Arguments::parse() else {
        eprintln!("onnx_suite DIR cpu|gpu [PARTS] [--known FILE] [--bless] [--jobs N]");
        return ExitCode::from(2);
    };
    let cases = cases(&arguments);
    if cases.is_empty() {
        eprintln!("no case of that name below {}", arguments.root.display());
        return ExitCode::FAILURE;
    }
    if let Err(error) = Device::open(&arguments.device) {
        eprintln!("{error}");
        return ExitCode::from(3);
    }
    // A panic is a failure of its case.
    std::panic::set_hook(Box::new(|_| ()));
    let outcomes = Mutex::new(BTreeMap::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            let work = || {
                let device = Device::open(&arguments.device).expect("the device opens");
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = case.outcome(&device);
                    println!("{}", line(&case.name, &outcome));
                    outcomes.lock().expect("no thread panics").insert(case.name.clone(), outcome);
                }
            };
            // Phases recurse as deep as IR is nested.
            std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, work).expect("a thread starts");
        }
    });
    conclude(&arguments, &outcomes.into_inner().expect("no thread panics"))
}

fn line(name: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Pass => format!("pass {name}"),
        Outcome::Bound(why) => format!("bound {name}: {why}"),
        Outcome::Fail(why) => format!("FAIL {name}: {why}"),
    }
}

/// Prints the totals, and compares with the list of known failures.
fn conclude(arguments: &Arguments, outcomes: &BTreeMap<String, Outcome>) -> ExitCode {
    let count = |f: fn(&Outcome) -> bool| outcomes.values().filter(|o| f(o)).count();
    let (free, bound) = (count(|o| matches!(o, Outcome::Pass)), count(|o| matches!(o, Outcome::Bound(_))));
    println!("{free} pass, {bound} bound, {} of {}", free + bound, outcomes.len());
    let Some(path) = &arguments.known else { return ExitCode::SUCCESS };
    let listed = outcomes.iter().filter_map(|(name, outcome)| match outcome {
        Outcome::Fail(why) => Some((name.as_str(), why.clone())),
        Outcome::Bound(_) => Some((name.as_str(), BOUND.to_owned())),
        Outcome::Pass => None,
    });
    let listed: BTreeMap<&str, String> = listed.collect();
    if arguments.bless {
        let text: String = listed.iter().map(|(name, why)| format!("{name}: {why}\n")).collect();
        std::fs::write(path, text).expect("the list can be written");
        return ExitCode::SUCCESS;
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let known: BTreeMap<&str, &str> = text.lines().filter_map(|l| l.split_once(": ")).collect();
    // A bound case is known as such; one that fails with another reason than before is the same case.
    let is_known = |(name, why): &(&&str, &String)| match known.get(**name) {
        Some(reason) => (*reason == BOUND) == (why.as_str() == BOUND),
        None => false,
    };
    let new: Vec<_> = listed.iter().filter(|entry| !is_known(entry)).map(|(name, _)| name).collect();
    // All cases ran where none was chosen by name.
    let all = arguments.parts.iter().all(String::is_empty);
    let gone = |name: &str| !listed.contains_key(name) && (all || outcomes.contains_key(name));
    let passing: Vec<_> = known.keys().filter(|name| gone(name)).collect();
    new.iter().for_each(|name| println!("not so in {}: {name}", path.display()));
    passing.iter().for_each(|name| println!("passes or is no case, but is in {}: {name}", path.display()));
    ExitCode::from(u8::from(!new.is_empty() || !passing.is_empty()))
}

/// The cases below the root whose names hold one of the parts, by name.
fn cases(arguments: &Arguments) -> Vec<Case> {
    let index = [&arguments.root.join("index.json"), &arguments.root.join("../index.json")]
        .into_iter()
        .find_map(|path| serde_json::from_slice(&std::fs::read(path).ok()?).ok())
        .unwrap_or(serde_json::Value::Null);
    let entries = index.as_array().cloned().unwrap_or_default();
    let tolerances: BTreeMap<&str, (f64, f64)> = entries
        .iter()
        .filter_map(|e| Some((e["name"].as_str()?, (e["rtol"].as_f64()?, e["atol"].as_f64()?))))
        .collect();
    let mut found = vec![];
    for folder in folders(&arguments.root) {
        let inner = if folder.join("model.onnx").exists() { vec![folder] } else { folders(&folder) };
        for folder in inner.into_iter().filter(|f| f.join("model.onnx").exists()) {
            let name = folder.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
            if arguments.parts.iter().any(|part| name.contains(part.as_str())) {
                let (rtol, atol) = tolerances.get(name.as_str()).copied().unwrap_or((1e-3, 1e-7));
                found.push(Case { folder, name, rtol, atol });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten();
    entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_dir()).collect()
}

/// The tensors of one kind in a data set.
fn tensors(folder: &Path, kind: &str) -> Result<Vec<Tensor>, String> {
    let paths = (0..).map(|at| folder.join(format!("{kind}_{at}.pb"))).take_while(|path| path.exists());
    paths.map(|path| read_tensor(&path)).collect()
}

impl Case {
    fn outcome(&self, device: &Device) -> Outcome {
        let attempt = |bind| {
            catch_unwind(AssertUnwindSafe(|| self.run(device, bind))).unwrap_or_else(|_| Err("PANIC".to_owned()))
        };
        let short = |why: String| why.replace('\n', " | ").chars().take(300).collect::<String>();
        match attempt(false) {
            Ok(_) => Outcome::Pass,
            Err(why) => match attempt(true) {
                Ok(true) => Outcome::Bound(short(why)),
                Ok(false) | Err(_) => Outcome::Fail(short(why)),
            },
        }
    }

    /// Runs all data sets; whether an operand was bound.
    fn run(&self, device: &Device, bind: bool) -> Result<bool, String> {
        let mut bound = false;
        for number in 0.. {
            let data = self.folder.join(format!("test_data_set_{number}"));
            if !data.exists() {
                return if number > 0 { Ok(bound) } else { Err("the case has no data".to_owned()) };
            }
            bound |= self.run_data(device, &data, bind)?;
        }
        unreachable!("the loop returns")
    }

    fn run_data(&self, device: &Device, data: &Path, bind: bool) -> Result<bool, String> {
        let (inputs, outputs) = (tensors(data, "input")?, tensors(data, "output")?);
        let bytes = std::fs::read(self.folder.join("model.onnx")).map_err(|e| e.to_string())?;
        let mut proto = ModelProto::decode(&bytes[..]).map_err(|e| e.to_string())?;
        let all = inputs.len();
        let given = match proto.graph.as_mut() {
            Some(graph) if bind => bound_operands(graph, inputs),
            _ => inputs,
        };
        let model = Model::from_bytes(&proto.encode_to_vec(), "model.onnx", &self.folder).map_err(|e| e.to_string())?;
        let options = CompileOptions::for_device(device);
        let program = monopour::compile_onnx(&model, &options).map_err(|e| e.to_string())?.program;
        let host = given.iter().map(to_host).collect::<Result<Vec<_>, _>>()?;
        let options = Options { threads: 1, ..Options::default() };
        let mut session = Session::load(device, Arc::new(program), &options).map_err(|e| e.to_string())?;
        let results = session.run(&host).map_err(|e| e.to_string())?;
        if results.len() != outputs.len() {
            return Err(format!("{} results, {} expected", results.len(), outputs.len()));
        }
        results
            .iter()
            .zip(&outputs)
            .enumerate()
            .try_for_each(|(at, (found, wanted))| self.compare(at, found, wanted))?;
        Ok(host.len() < all)
    }

    fn compare(&self, at: usize, found: &HostTensor, wanted: &Tensor) -> Result<(), String> {
        let shape: Vec<i64> = found.shape().iter().map(|d| *d as i64).collect();
        let dtype = wanted.dtype.dtype().ok_or_else(|| format!("result of {}", wanted.dtype))?;
        if shape != wanted.stored_shape() || dtype != found.dtype() {
            let (got, expected) = (found.dtype(), wanted.dtype);
            return Err(format!("result {at} is {got} {shape:?}, expected {expected} {:?}", wanted.shape));
        }
        // Some roundings, of 2^-11 and 2^-8 each.
        let (rtol, atol) = match wanted.dtype.dtype() {
            Some(DType::F16) => (self.rtol.max(1e-2), self.atol.max(1e-3)),
            Some(DType::Bf16) => (self.rtol.max(2e-2), self.atol.max(1e-3)),
            _ => (self.rtol, self.atol),
        };
        let expected = wanted.numbers().ok_or("no numbers")?;
        let given = if wanted.dtype.is_narrow() {
            Tensor::new(wanted.dtype, wanted.shape.clone(), found.data().to_vec()).numbers().ok_or("no numbers")?
        } else {
            found.to_f64()
        };
        for (i, (a, e)) in given.iter().zip(&expected).enumerate() {
            let near = e.is_finite() && (a - e).abs() <= atol + rtol * e.abs();
            if !(a == e || (a.is_nan() && e.is_nan()) || near) {
                return Err(format!("result {at} element {i} is {a}, expected {e}"));
            }
        }
        Ok(())
    }
}

/// Makes the inputs that decide a rank or axes constants, and returns the others.
fn bound_operands(graph: &mut GraphProto, inputs: Vec<Tensor>) -> Vec<Tensor> {
    let decides = |op: &str, at: usize| STRUCTURAL.contains(&(op, at)) || (op.starts_with("Reduce") && at == 1);
    let structural: Vec<String> = graph
        .node
        .iter()
        .flat_map(|node| node.input.iter().enumerate().filter(|(at, _)| decides(&node.op_type, *at)))
        .map(|(_, name)| name.clone())
        .collect();
    let mut kept = vec![];
    for (info, tensor) in graph.input.iter().zip(inputs) {
        if structural.contains(&info.name) {
            graph.initializer.push(TensorProto {
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
    kept
}
