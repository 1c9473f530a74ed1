//! An ONNX file, decoded and checked.

use super::Problem;
use super::functions::{Functions, versions};
use super::graph::{self, Graph, Reader, ValueType, domain_key, domain_name};
use super::proto::{ModelProto, OperatorSetIdProto};
use super::symbolic::{Dim, Symbol};
use super::tensor::Files;
use bytes::Bytes;
use monopour_ir::{Diagnostic, Diagnostics};
use monopour_program::Map;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The newest version of ai.onnx that is known.
const NEWEST: i64 = 28;
/// The oldest version of ai.onnx that is known.
const OLDEST: i64 = 1;

/// Most errors of a model that are listed.
const SHOWN_PROBLEMS: usize = 50;

/// A model.
#[derive(Debug)]
pub struct Model {
    /// The file's name, for diagnostics.
    pub file: String,
    /// The main graph.
    pub graph: Graph,
    /// Versions of the operator sets by domain; empty: ai.onnx.
    pub opsets: HashMap<String, i64>,
    /// Files beside it that hold elements of its tensors, sorted.
    pub external_files: Vec<PathBuf>,
}

/// The owner of a mapped file's bytes.
struct Mapped(Arc<Map>);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Model {
    /// Maps and decodes a file.
    ///
    /// # Errors
    /// F0040 for a file that is no ONNX model, F0041 and F0044 for one that is not valid.
    pub fn open(path: &Path) -> Result<Self, Diagnostics> {
        let map = Arc::new(Map::open(path).map_err(|e| {
            Diagnostic::global("I0031", format!("cannot read {}: {e}", path.display()))
                .with_help("check the path and its permissions")
        })?);
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let files = Files::new(Some(map.clone()), folder);
        Self::decode(Bytes::from_owner(Mapped(map)), &path.display().to_string(), files)
    }

    /// Decodes a model from memory; files beside it are searched in `folder`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_bytes(bytes: &[u8], file: &str, folder: &Path) -> Result<Self, Diagnostics> {
        Self::decode(Bytes::copy_from_slice(bytes), file, Files::new(None, folder.to_owned()))
    }

    fn decode(bytes: Bytes, file: &str, mut files: Files) -> Result<Self, Diagnostics> {
        let proto = ModelProto::decode(bytes).map_err(|e| not_onnx(file, &e.to_string()))?;
        let Some(main) = &proto.graph else { return Err(not_onnx(file, "it holds no graph")) };
        let mut problems = vec![];
        let opsets = versions(&proto.opset_import);
        check_versions(&proto.opset_import, "", &mut problems);
        for function in &proto.functions {
            let within = format!(" in function '{}'", function.name);
            check_versions(&function.opset_import, &within, &mut problems);
        }
        let mut reader = Reader { files: &mut files, problems: &mut problems };
        let functions = Functions::read(&proto.functions, &opsets, &mut reader);
        let mut graph = reader.graph(main, &opsets);
        functions.inline(&mut graph, &mut problems);
        graph::check(&mut graph, &mut HashSet::new(), &mut problems);
        if problems.is_empty() {
            return Ok(Self { file: file.to_owned(), graph, opsets, external_files: files.into_external() });
        }
        if let Some(more) = problems.len().checked_sub(SHOWN_PROBLEMS).filter(|more| *more > 0) {
            problems.truncate(SHOWN_PROBLEMS);
            let message = format!("{more} more errors are not shown");
            problems.push(Problem { code: "F0041", message, help: "onnx.checker finds the first of them" });
        }
        Err(Diagnostics(problems.into_iter().map(|p| p.at(file)).collect()))
    }

    /// Names of all symbols in the types of inputs, in order.
    pub fn symbols(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut out = vec![];
        for dim in self.graph.inputs.iter().filter(|i| !self.graph.initializers.contains_key(&i.name)).flat_map(dims) {
            if let Some(name) = dim.as_symbol().and_then(Symbol::name).filter(|name| seen.insert((*name).to_owned())) {
                out.push(name.to_owned());
            }
        }
        out
    }

    /// Checks that the names bound by `--dim` are symbols of the model, and the numbers sizes.
    ///
    /// # Errors
    /// F0045.
    pub fn check_dims(&self, sizes: &BTreeMap<String, i64>) -> Result<(), Diagnostics> {
        let symbols = self.symbols();
        let refuse = |message: String| {
            let all = if symbols.is_empty() { "no symbols".to_owned() } else { symbols.join(", ") };
            let help = format!("the inputs of {} have {all}", self.file);
            Err(Diagnostic::global("F0045", message).with_help(help).into())
        };
        match sizes.iter().find(|(name, size)| !symbols.contains(name) || **size < 0) {
            Some((name, size)) if symbols.contains(name) => refuse(format!("{size} is not a size for '{name}'")),
            Some((name, _)) => refuse(format!("no dimension is called '{name}'")),
            None => Ok(()),
        }
    }
}

fn dims(info: &super::graph::ValueInfo) -> Vec<&Dim> {
    match info.ty.given() {
        ValueType::Tensor(_, Some(shape)) => shape.iter().flatten().collect(),
        _ => vec![],
    }
}

fn not_onnx(file: &str, what: &str) -> Diagnostics {
    let help = "give a file that onnx.checker accepts, downloaded completely";
    Diagnostic::global("F0040", format!("{file} is not an ONNX model: {what}")).with_help(help).into()
}

/// Versions that are not known, or of which there are two, may give an op another meaning.
fn check_versions(imports: &[OperatorSetIdProto], within: &str, problems: &mut Vec<Problem>) {
    let opsets = versions(imports);
    let mut report = |message, help| problems.push(Problem { code: "F0041", message, help });
    if let Some(version) = opsets.get("").filter(|v| !(OLDEST..=NEWEST).contains(*v)) {
        let known = format!("versions {OLDEST} to {NEWEST} are");
        let message = format!("version {version} of the operator set ai.onnx{within} is not known; {known}");
        report(message, "onnx.version_converter changes the version of a model");
    }
    for import in imports.iter().filter(|import| opsets.get(domain_key(&import.domain)) != Some(&import.version)) {
        let domain = domain_name(&import.domain);
        let message =
            format!("the operator set {domain}{within} is imported in two versions, one of them {}", import.version);
        report(message, "state one version of each operator set");
    }
}
