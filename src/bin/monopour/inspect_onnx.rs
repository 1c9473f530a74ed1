//! `monopour inspect` of an ONNX model: names, types, symbols, versions, and the ops that are missing.

use std::collections::BTreeMap;
use std::path::Path;

use monopour::onnx::graph::{ValueInfo, ValueType, domain_name};
use monopour::onnx::{Model, Registry, missing_ops};
use serde_json::json;

use crate::failure::Failure;
use crate::stdout;

/// Prints what the file says, with sizes for some of its symbols; nothing is compiled.
pub fn run(path: &Path, json: bool, sizes: &BTreeMap<String, i64>) -> Result<(), Failure> {
    let mut model = Model::open(path)?;
    model.check_dims(sizes)?;
    for info in model.graph.inputs.iter_mut().chain(&mut model.graph.outputs) {
        info.ty = info.ty.bind(sizes);
    }
    let missing = missing_ops(&model, &Registry::default());
    let graph = &model.graph;
    let (given, open): (Vec<_>, Vec<_>) = graph.inputs.iter().partition(|i| graph.initializers.contains_key(&i.name));
    let mut opsets: Vec<(&str, i64)> = model.opsets.iter().map(|(domain, v)| (domain.as_str(), *v)).collect();
    opsets.sort_unstable();
    let opsets: Vec<String> = opsets.into_iter().map(|(domain, v)| format!("{} {v}", domain_name(domain))).collect();
    if json {
        let values = |list: &[&ValueInfo]| -> Vec<_> {
            list.iter().map(|info| json!({ "name": info.name, "type": type_text(&info.ty) })).collect()
        };
        let object = json!({
            "inputs": values(&open),
            "defaults": values(&given),
            "results": values(&graph.outputs.iter().collect::<Vec<_>>()),
            "symbols": model.symbols(),
            "opsets": opsets,
            "nodes": graph.nodes.len(),
            "constants": graph.initializers.len(),
            "missing": missing,
        });
        return stdout::print(&format!("{object:#}"));
    }
    let mut lines = vec![format!("opset    {}", opsets.join(", "))];
    let line = |kind: &str, info: &ValueInfo| format!("{kind:<8} {}: {}", info.name, type_text(&info.ty));
    lines.extend(open.iter().map(|info| line("input", info)));
    lines.extend(given.iter().map(|info| format!("{}  constant", line("input", info))));
    lines.extend(graph.outputs.iter().map(|info| line("result", info)));
    lines.extend(model.symbols().iter().map(|name| format!("symbol   {name}")));
    lines.push(format!("nodes    {}, {} constants", graph.nodes.len(), graph.initializers.len()));
    lines.extend(missing.iter().map(|line| format!("missing  {line}")));
    lines.push(String::new());
    stdout::print(&lines.join("\n"))
}

fn type_text(ty: &ValueType) -> String {
    match ty {
        ValueType::Tensor(dtype, Some(shape)) => {
            let size = |d: &Option<_>| d.as_ref().map_or("?".to_owned(), ToString::to_string);
            format!("{dtype}[{}]", shape.iter().map(size).collect::<Vec<_>>().join(", "))
        }
        ValueType::Tensor(dtype, None) => format!("{dtype} of unknown rank"),
        ValueType::Sequence(element) => format!("sequence of {}", type_text(element)),
        ValueType::Optional(element) => format!("optional {}", type_text(element)),
        ValueType::Unknown => "of unknown type".to_owned(),
    }
}
