//! Values of `dense_resource` constants that carry no blob: mapped from a safetensors file or bytecode, never copied,
//! or decoded from text.

use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{Attr, Diagnostic, Diagnostics, Location, Module, Op, ResourceRanges, Type, WalkOrder};
use monopour_program::{ConstantData, DType, Map};
use safetensors::tensor::{Dtype, TensorInfo};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One mapped tensor.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Element type.
    pub dtype: DType,
    /// Dimensions.
    pub shape: Vec<i64>,
    data: ConstantData,
}

impl Weight {
    /// A weight of these elements, little endian, row-major.
    pub fn new(dtype: DType, shape: Vec<i64>, data: ConstantData) -> Self {
        Self { dtype, shape, data }
    }

    /// The elements, little endian, row-major.
    pub fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }

    /// The elements as a program's constant, still in the mapped file.
    pub fn data(&self) -> ConstantData {
        self.data.clone()
    }
}

/// Weights by the name in `dense_resource<name>`.
#[derive(Clone, Debug, Default)]
pub struct WeightTable(BTreeMap<String, Weight>);

impl From<BTreeMap<String, Weight>> for WeightTable {
    fn from(weights: BTreeMap<String, Weight>) -> Self {
        Self(weights)
    }
}

impl WeightTable {
    /// The weight of this name.
    pub fn get(&self, name: &str) -> Option<&Weight> {
        self.0.get(name)
    }
    /// All weights, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Weight)> {
        self.0.iter().map(|(name, weight)| (name.as_str(), weight))
    }
    /// The elements of a constant, inline or a weight, little endian; `None` where they are in no whole bytes.
    pub(crate) fn bytes_of(&self, constant: Attr<'_>) -> Option<Cow<'_, [u8]>> {
        if let Some(weight) = constant.resource_name().filter(|_| constant.resource_bytes().is_none()) {
            return self.get(weight).map(|weight| Cow::Borrowed(weight.bytes()));
        }
        constant.elements_bytes().map(Cow::Owned)
    }
    /// A constant that is computed of another: a weight, named after it, where that one is a resource, else inline.
    pub(crate) fn derive<'c>(
        &mut self,
        from: Attr<'c>,
        prefix: &str,
        dtype: DType,
        ty: Type<'c>,
        bytes: Vec<u8>,
    ) -> Option<Attr<'c>> {
        match from.resource_name() {
            Some(source) => self.add(&format!("{prefix}_{source}"), dtype, ty, bytes),
            None => inline(ty, &bytes),
        }
    }

    /// A constant of these elements: a weight of about this name.
    pub(crate) fn add<'c>(&mut self, name: &str, dtype: DType, ty: Type<'c>, bytes: Vec<u8>) -> Option<Attr<'c>> {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name: String = name.chars().map(plain).collect();
        loop {
            let attr = Attr::parse(ty.context(), &format!("dense_resource<{name}> : {ty}"))?;
            let key = attr.resource_name()?;
            if self.get(key).is_none() && attr.resource_bytes().is_none() {
                self.0.insert(key.to_owned(), Weight::new(dtype, ty.shape()?, bytes.into()));
                return Some(attr);
            }
            name.push('_');
        }
    }

    /// Number of weights.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A constant whose elements are part of the module.
fn inline<'c>(ty: Type<'c>, bytes: &[u8]) -> Option<Attr<'c>> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    Attr::parse(ty.context(), &format!("dense<\"0x{hex}\"> : {ty}"))
}

/// The values of resources that lie in the module's own file, `ranges` of it by key. Those of another size or type have
/// none, which is reported later.
pub(super) fn in_file(module: &Module, file: &Arc<Map>, ranges: ResourceRanges) -> WeightTable {
    let types = types_of(module, ranges.iter().map(|(name, range)| (name.as_str(), range.len())));
    let data = |range: &Range<usize>| ConstantData::Mapped { map: file.clone(), range: range.clone() };
    let found = ranges.iter().filter_map(|(name, range)| Some((name.clone(), types.get(name)?.weight(data(range)))));
    WeightTable(found.collect())
}

/// The values of resources whose digits are in `text`, each place by its key. Those of another size or type stay in the
/// module.
pub(super) fn in_text(module: &Module, text: &[u8], places: ResourceRanges) -> WeightTable {
    let types = types_of(module, places.iter().map(|(name, digits)| (name.as_str(), digits.len() / 2)));
    let mut table = WeightTable::default();
    for (name, place) in places {
        let Some(ty) = types.get(&name) else {
            module.restore_blob(text, &name, place);
            continue;
        };
        let data = ConstantData::filled(place.len() / 2, |bytes| {
            const_hex::decode_to_slice(&text[place], bytes).expect("invariant: the digits were checked");
        });
        table.0.insert(name, ty.weight(data));
    }
    table
}

/// The type of a weight.
struct WeightType(DType, Vec<i64>);

impl WeightType {
    /// That of an attribute, if values of it have as many bytes.
    fn of(attr: Attr, bytes: usize) -> Option<Self> {
        let ty = attr.value_type();
        let is_whole = ty.static_size_bytes() == Some(bytes as u64);
        is_whole.then(|| Some(Self(DType::parse(&ty.element().to_string())?, ty.shape()?)))?
    }

    fn weight(&self, data: ConstantData) -> Weight {
        Weight::new(self.0, self.1.clone(), data)
    }
}

/// The types of resources with as many `bytes`, but those that are used as a type of another size or as none of ours.
fn types_of<'a>(module: &Module, bytes: impl Iterator<Item = (&'a str, usize)>) -> BTreeMap<String, WeightType> {
    let bytes: BTreeMap<&str, usize> = bytes.collect();
    let mut types = BTreeMap::new();
    let mut note = |attr: Attr| {
        let Some((name, bytes)) = attr.resource_name().and_then(|name| Some((name, bytes.get(name)?))) else { return };
        let ty = WeightType::of(attr, *bytes);
        match types.entry(name.to_owned()) {
            Entry::Vacant(entry) => _ = entry.insert(ty),
            Entry::Occupied(mut entry) if ty.is_none() => _ = entry.insert(None),
            Entry::Occupied(_) => {}
        }
    };
    if !bytes.is_empty() {
        module.op().walk(WalkOrder::Pre, |op| {
            op.attrs().into_iter().for_each(|(_, attr)| note(attr));
        });
    }
    types.into_iter().filter_map(|(name, ty)| Some((name, ty?))).collect()
}

/// Finds the value of every `dense_resource` constant without a blob; the model itself gives those of `own`.
///
/// # Errors
/// F0006 missing, F0007 of another shape or type, F0008 unreadable file.
pub(super) fn bind(
    module: &Module,
    model: &str,
    given: Option<&Path>,
    own: WeightTable,
) -> Result<WeightTable, Diagnostics> {
    let mut wanted = wanted(module);
    wanted.retain(|(_, attr)| attr.resource_name().is_none_or(|name| own.get(name).is_none()));
    if wanted.is_empty() {
        return Ok(own);
    }
    let Some(path) = weights_path(module, model, given) else {
        let (op, attr) = wanted[0];
        let name = attr.resource_name().unwrap_or_default();
        let message = format!("dense_resource<{name}> has no value");
        let help =
            "give `--weights FILE.safetensors`, or the module attribute `monopour.weights = \"FILE.safetensors\"`";
        return Err(Diagnostic::error("F0006", op.location(), message).with_help(help).into());
    };
    let files = open_all(&path)?;
    let mut table = own;
    let mut found = Diagnostics::default();
    for (op, attr) in wanted {
        let name = attr.resource_name().unwrap_or_default();
        match holder(&files, name, op.location()).and_then(|f| f.get(name, attr.value_type(), op.location())) {
            Ok(weight) => _ = table.0.insert(name.to_owned(), weight),
            Err(problem) => found.0.push(problem),
        }
    }
    if found.has_errors() { Err(found) } else { Ok(table) }
}

fn wanted<'c>(module: &'c Module<'c>) -> Vec<(Op<'c>, Attr<'c>)> {
    let constants = module.op().find_all(ops::arith::CONSTANT).into_iter();
    let valued = constants.filter_map(|op| op.attr("value").map(|value| (op, value)));
    valued.filter(|(_, value)| value.is_resource() && value.resource_bytes().is_none()).collect()
}

fn weights_path(module: &Module, model: &str, given: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = given {
        return Some(path.to_owned());
    }
    let attr = module.op().attr(attributes::WEIGHTS)?;
    Some(Path::new(model).parent().unwrap_or(Path::new("")).join(attr.as_string()?))
}

/// The file itself, or every `.safetensors` file of a folder by name.
fn open_all(path: &Path) -> Result<Vec<Safetensors>, Diagnostics> {
    if !path.is_dir() {
        return Ok(vec![Safetensors::open(path)?]);
    }
    let refuse = |what: String| -> Diagnostics {
        let message = format!("weights folder {}: {what}", path.display());
        Diagnostic::global("F0008", message).with_help("give a folder that holds .safetensors files").into()
    };
    let entries: Result<Vec<_>, _> = std::fs::read_dir(path).and_then(Iterator::collect);
    let entries = entries.map_err(|e| refuse(e.to_string()))?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "safetensors"));
    paths.sort();
    if paths.is_empty() {
        return Err(refuse("it holds no .safetensors file".to_owned()));
    }
    paths.iter().map(|p| Safetensors::open(p)).collect()
}

/// The file that holds `name`; the first where none does, whose message lists its tensors.
fn holder<'a>(files: &'a [Safetensors], name: &str, loc: Location) -> Result<&'a Safetensors, Diagnostic> {
    let mut holders = files.iter().filter(|f| f.tensors.contains_key(name));
    match (holders.next(), holders.next()) {
        (Some(first), Some(second)) => {
            let (first, second) = (first.path.display(), second.path.display());
            let message = format!("dense_resource<{name}> has two values, in {first} and in {second}");
            Err(Diagnostic::error("F0008", loc, message).with_help("give the file that holds the right one"))
        }
        (found, _) => Ok(found.unwrap_or(&files[0])),
    }
}

/// An open file: its header, and where its data begins.
struct Safetensors {
    path: PathBuf,
    map: Arc<Map>,
    tensors: BTreeMap<String, TensorInfo>,
    data_start: usize,
}

impl Safetensors {
    fn open(path: &Path) -> Result<Self, Diagnostics> {
        let refuse = |what: String| -> Diagnostics {
            let message = format!("weights file {}: {what}", path.display());
            Diagnostic::global("F0008", message).with_help("give a readable file in the safetensors format").into()
        };
        let map = Map::open(path).map_err(|e| refuse(e.to_string()))?;
        let read = safetensors::SafeTensors::read_metadata(&map).map_err(|e| refuse(e.to_string()))?;
        let (header_bytes, metadata) = read;
        let tensors = metadata.tensors().into_iter().map(|(name, info)| (name, info.clone())).collect();
        // Eight bytes of header length come before the header.
        Ok(Self { path: path.to_owned(), map: Arc::new(map), tensors, data_start: 8 + header_bytes })
    }

    fn get(&self, name: &str, ty: Type, loc: Location) -> Result<Weight, Diagnostic> {
        let Some(info) = self.tensors.get(name) else {
            let names: Vec<&str> = self.tensors.keys().map(String::as_str).take(8).collect();
            let message = format!("dense_resource<{name}> has no value in {}", self.path.display());
            let help = format!("the file holds {} tensors: {}", self.tensors.len(), names.join(", "));
            return Err(Diagnostic::error("F0006", loc, message).with_help(help));
        };
        let shape: Vec<i64> = info.shape.iter().map(|d| *d as i64).collect();
        let dtype = dtype_of(info.dtype);
        let wanted = DType::parse(&ty.element().to_string()).map(DType::signless);
        match dtype {
            Some(dtype) if Some(dtype.signless()) == wanted && Some(&shape) == ty.shape().as_ref() => {
                let range = self.data_start + info.data_offsets.0..self.data_start + info.data_offsets.1;
                Ok(Weight { dtype, shape, data: ConstantData::Mapped { map: self.map.clone(), range } })
            }
            _ => {
                let message = format!(
                    "dense_resource<{name}> is {ty}, but {} holds {shape:?} of {:?}",
                    self.path.display(),
                    info.dtype
                );
                Err(Diagnostic::error("F0007", loc, message).with_help("make the model's type and the file agree"))
            }
        }
    }
}

fn dtype_of(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::F16 => DType::F16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        Dtype::BOOL => DType::I1,
        Dtype::BF16 => DType::Bf16,
        Dtype::I8 | Dtype::U8 => DType::I8,
        Dtype::I16 | Dtype::U16 => DType::I16,
        Dtype::I32 | Dtype::U32 => DType::I32,
        Dtype::I64 | Dtype::U64 => DType::I64,
        _ => return None,
    })
}
