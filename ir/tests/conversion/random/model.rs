//! IR as plain Rust data. Casts between types are values here, not ops, and printed at their uses.

use monopour_ir::{Block, HandleMap, Op, Type, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

pub(super) const CAST: &str = "builtin.unrealized_conversion_cast";

/// A type by its text.
pub(super) type Ty = &'static str;
pub(super) const TYPES: [Ty; 7] = ["i1", "i8", "i16", "i32", "i64", "index", "f32"];

pub(super) fn ty_of(ty: Type) -> Ty {
    match ty.integer_width() {
        Some(width) => TYPES.iter().find(|t| t[1..].parse() == Ok(width)).expect("an integer type of the table"),
        None if ty.is_index() => "index",
        None => "f32",
    }
}

pub(super) type V = usize;
pub(super) type OpId = usize;
pub(super) type BlockId = usize;

#[derive(Clone, Copy)]
enum Def {
    Plain,
    /// A result of a cast.
    Cast(usize, usize),
}

#[derive(Clone, Default)]
pub(super) struct MOp {
    pub(super) name: String,
    pub(super) k: Option<i64>,
    /// The inputs of a function.
    pub(super) inputs: Option<Vec<Ty>>,
    pub(super) operands: Vec<V>,
    pub(super) results: Vec<V>,
    pub(super) regions: Vec<Vec<BlockId>>,
    /// Blocks, and the number of operands forwarded to each.
    pub(super) successors: Vec<(BlockId, usize)>,
    pub(super) location: String,
}

#[derive(Clone, Default)]
pub(super) struct MBlock {
    pub(super) args: Vec<V>,
    pub(super) ops: Vec<OpId>,
}

/// A module. Op 0 is the module's.
#[derive(Clone, Default)]
pub(super) struct Model {
    values: Vec<(Ty, Def)>,
    /// The operands and result types of each cast.
    casts: Vec<(Vec<V>, Vec<Ty>)>,
    pub(super) ops: Vec<MOp>,
    pub(super) blocks: Vec<MBlock>,
}

impl Model {
    pub(super) fn value(&mut self, ty: Ty) -> V {
        self.values.push((ty, Def::Plain));
        self.values.len() - 1
    }
    pub(super) fn ty(&self, value: V) -> Ty {
        self.values[value].0
    }
    pub(super) fn types(&self, values: &[V]) -> Vec<Ty> {
        values.iter().map(|v| self.ty(*v)).collect()
    }
    /// A new cast, always.
    pub(super) fn cast(&mut self, sources: &[V], types: &[Ty]) -> Vec<V> {
        self.casts.push((sources.to_vec(), types.to_vec()));
        let cast = self.casts.len() - 1;
        let first = self.values.len();
        self.values.extend(types.iter().enumerate().map(|(i, ty)| (*ty, Def::Cast(cast, i))));
        (first..self.values.len()).collect()
    }
    pub(super) fn block(&mut self, types: &[Ty]) -> BlockId {
        let args = types.iter().map(|ty| self.value(ty)).collect();
        self.blocks.push(MBlock { args, ops: vec![] });
        self.blocks.len() - 1
    }
    pub(super) fn op(&mut self, op: MOp) -> OpId {
        self.ops.push(op);
        self.ops.len() - 1
    }
    pub(super) fn replace_all_uses(&mut self, old: V, new: V) {
        let lists = self.ops.iter_mut().map(|op| &mut op.operands).chain(self.casts.iter_mut().map(|cast| &mut cast.0));
        for value in lists.flatten().filter(|value| **value == old) {
            *value = new;
        }
    }

    /// Reads a module or the result of its conversion. Casts of the input carry an attribute and are ordinary ops.
    pub(super) fn read(module: Op) -> Self {
        let mut reader = Reader::default();
        reader.op(module);
        reader.connect();
        reader.model
    }

    /// The module as generic MLIR text, for a model without casts.
    pub(super) fn to_mlir(&self) -> String {
        let mut out = String::new();
        self.write_blocks(&self.ops[0].regions[0], &mut out);
        out
    }
    fn write_blocks(&self, blocks: &[BlockId], out: &mut String) {
        for block in blocks {
            let MBlock { args, ops } = &self.blocks[*block];
            if blocks.len() > 1 || !args.is_empty() {
                let args: Vec<_> = args.iter().map(|a| format!("%{a}: {}", self.ty(*a))).collect();
                let _ = writeln!(out, "^bb{block}({}):", args.join(", "));
            }
            for op in ops {
                self.write_op(&self.ops[*op], out);
            }
        }
    }
    fn write_op(&self, op: &MOp, out: &mut String) {
        let names = |values: &[V]| values.iter().map(|v| format!("%{v}")).collect::<Vec<_>>().join(", ");
        if !op.results.is_empty() {
            let _ = write!(out, "{} = ", names(&op.results));
        }
        let _ = write!(out, "\"{}\"({})", op.name, names(&op.operands));
        if !op.successors.is_empty() {
            let blocks: Vec<_> = op.successors.iter().map(|s| format!("^bb{}", s.0)).collect();
            let _ = write!(out, "[{}]", blocks.join(", "));
        }
        if op.successors.len() == 2 {
            let sizes = format!("1, {}, {}", op.successors[0].1, op.successors[1].1);
            let _ = write!(out, " <{{operandSegmentSizes = array<i32: {sizes}>}}>");
        }
        if let Some(inputs) = &op.inputs {
            let inputs = inputs.join(", ");
            let _ = write!(out, " <{{function_type = ({inputs}) -> (), sym_name = \"f{}\"}}>", op.location);
        }
        for (i, region) in op.regions.iter().enumerate() {
            out.push_str(if i == 0 { " ({\n" } else { ", {\n" });
            self.write_blocks(region, out);
            out.push_str(if i + 1 == op.regions.len() { "})" } else { "}" });
        }
        if let Some(k) = op.k {
            let _ = write!(out, " {{k = {k}}}");
        }
        let _ =
            writeln!(out, " : ({}) -> ({})", self.types(&op.operands).join(", "), self.types(&op.results).join(", "));
    }

    /// Folds casts of casts: a chain becomes one cast of the first value, and a cast there and back is that value.
    pub(super) fn fold(&mut self) {
        let mut known = HashMap::new();
        let mut shared = HashMap::new();
        for op in 0..self.ops.len() {
            for i in 0..self.ops[op].operands.len() {
                self.ops[op].operands[i] = self.folded(self.ops[op].operands[i], &mut known, &mut shared);
            }
        }
    }
    fn folded(&mut self, value: V, known: &mut HashMap<V, V>, shared: &mut HashMap<(V, Vec<Ty>), Vec<V>>) -> V {
        let (ty, Def::Cast(cast, index)) = self.values[value] else { return value };
        if let Some(folded) = known.get(&value) {
            return *folded;
        }
        let (sources, types) = self.casts[cast].clone();
        let folded: Vec<V> = sources.iter().map(|s| self.folded(*s, known, shared)).collect();
        let sources: Vec<V> = folded.into_iter().map(|s| self.root(s)).collect();
        let folded = if let [source] = sources[..] {
            match self.parts(source, types.len()) {
                Some(parts) => self.cast_once(parts[index], &[ty], shared)[0],
                None => self.cast_once(source, &types, shared)[index],
            }
        } else if let Some(whole) = self.split_of(&sources).filter(|whole| self.ty(*whole) == ty) {
            whole
        } else {
            self.cast(&sources, &types)[0]
        };
        known.insert(value, folded);
        folded
    }
    /// The value itself, or the one cast of it to these types.
    fn cast_once(&mut self, value: V, types: &[Ty], shared: &mut HashMap<(V, Vec<Ty>), Vec<V>>) -> Vec<V> {
        let value = self.root(value);
        if types == [self.ty(value)] {
            return vec![value];
        }
        shared.entry((value, types.to_vec())).or_insert_with(|| self.cast(&[value], types)).clone()
    }
    /// The source of a chain of 1:1 casts.
    fn root(&self, mut value: V) -> V {
        while let Def::Cast(cast, _) = self.values[value].1 {
            let (sources, types) = &self.casts[cast];
            if sources.len() != 1 || types.len() != 1 {
                break;
            }
            value = sources[0];
        }
        value
    }
    /// The inputs of an N:1 cast behind the value, expanded level by level until there are `count`.
    fn parts(&self, value: V, count: usize) -> Option<Vec<V>> {
        let mut level = vec![value];
        while count != 1 && level.iter().any(|part| self.joined(*part).is_some()) {
            level = level.into_iter().flat_map(|part| self.joined(part).unwrap_or_else(|| vec![part])).collect();
            if level.len() == count {
                return Some(level);
            }
        }
        None
    }
    /// The inputs of the N:1 cast that defines this value.
    fn joined(&self, value: V) -> Option<Vec<V>> {
        let Def::Cast(cast, _) = self.values[value].1 else { return None };
        let (sources, _) = &self.casts[cast];
        (sources.len() != 1).then(|| sources.clone())
    }
    /// The value whose 1:N cast has exactly these results.
    fn split_of(&self, values: &[V]) -> Option<V> {
        let Def::Cast(cast, 0) = self.values[*values.first()?].1 else { return None };
        let (sources, types) = &self.casts[cast];
        let is_all =
            values.iter().enumerate().all(|(i, v)| matches!(self.values[*v].1, Def::Cast(c, j) if (c, j) == (cast, i)));
        (is_all && values.len() == types.len()).then(|| sources[0])
    }

    /// Number of casts made.
    pub(super) fn casts_made(&self) -> usize {
        self.casts.len()
    }
    /// The operand and result types of each cast in use.
    pub(super) fn live_casts(&self) -> Vec<(Vec<Ty>, Vec<Ty>)> {
        let mut live = BTreeMap::new();
        let mut ahead: Vec<V> = Vec::new();
        self.visit(0, &mut |op| ahead.extend(&self.ops[op].operands));
        while let Some(value) = ahead.pop() {
            let Def::Cast(cast, _) = self.values[value].1 else { continue };
            let (sources, types) = &self.casts[cast];
            if live.insert(cast, (self.types(sources), types.clone())).is_none() {
                ahead.extend(sources);
            }
        }
        live.into_values().collect()
    }
    /// Every op that is in the module, in pre-order.
    pub(super) fn visit(&self, op: OpId, visit: &mut impl FnMut(OpId)) {
        visit(op);
        for block in self.ops[op].regions.iter().flatten() {
            for op in &self.blocks[*block].ops {
                self.visit(*op, visit);
            }
        }
    }

    /// The module as text in which values are numbered in order and casts are printed at their uses.
    pub(super) fn render(&self) -> String {
        let mut printer = Printer { model: self, numbers: HashMap::new(), out: String::new() };
        printer.number(0);
        printer.op(0, 0);
        printer.out
    }
}

struct Printer<'m> {
    model: &'m Model,
    numbers: HashMap<V, usize>,
    out: String,
}

impl Printer<'_> {
    /// All values first: in a graph region, uses may come before definitions.
    fn number(&mut self, op: OpId) {
        let model = self.model;
        let define = |numbers: &mut HashMap<V, usize>, values: &[V]| {
            for value in values {
                let number = numbers.len();
                numbers.insert(*value, number);
            }
        };
        define(&mut self.numbers, &model.ops[op].results);
        for block in model.ops[op].regions.iter().flatten() {
            define(&mut self.numbers, &model.blocks[*block].args);
            for op in &model.blocks[*block].ops {
                self.number(*op);
            }
        }
    }
    fn value(&self, value: V) -> String {
        let Def::Cast(cast, index) = self.model.values[value].1 else {
            return self.numbers.get(&value).map_or_else(|| "%gone".to_owned(), |n| format!("%{n}"));
        };
        let (sources, types) = &self.model.casts[cast];
        let sources: Vec<_> = sources.iter().map(|s| format!("{}: {}", self.value(*s), self.model.ty(*s))).collect();
        format!("cast({} -> {})#{index}", sources.join(", "), types.join(", "))
    }
    fn op(&mut self, op: OpId, depth: usize) {
        let model = self.model;
        let op = &model.ops[op];
        let results: Vec<_> = op.results.iter().map(|r| format!("{}: {}", self.value(*r), model.ty(*r))).collect();
        let operands: Vec<_> = op.operands.iter().map(|o| self.value(*o)).collect();
        let pad = "  ".repeat(depth);
        let _ = write!(self.out, "{pad}[{}] = {}({})", results.join(", "), op.name, operands.join(", "));
        if let Some(k) = op.k {
            let _ = write!(self.out, " k={k}");
        }
        if let Some(inputs) = &op.inputs {
            let _ = write!(self.out, " inputs({})", inputs.join(", "));
        }
        for (block, count) in &op.successors {
            let _ = write!(self.out, " ^{} takes {count}", self.label(*block));
        }
        let _ = writeln!(self.out, " at {}", op.location);
        for (i, blocks) in op.regions.iter().enumerate() {
            for block in blocks {
                let args = &model.blocks[*block].args;
                let args: Vec<_> = args.iter().map(|a| format!("{}: {}", self.value(*a), model.ty(*a))).collect();
                let _ = writeln!(self.out, "{pad}region {i} ^{}({})", self.label(*block), args.join(", "));
                for op in &model.blocks[*block].ops {
                    self.op(*op, depth + 1);
                }
            }
        }
    }
    /// The position of a block in its region.
    fn label(&self, block: BlockId) -> usize {
        let regions = self.model.ops.iter().flat_map(|op| &op.regions);
        regions.filter_map(|blocks| blocks.iter().position(|b| *b == block)).next_back().expect("in a region")
    }
}

#[derive(Default)]
struct Reader<'c> {
    model: Model,
    values: HashMap<Value<'c>, V>,
    blocks: HashMap<Block<'c>, BlockId>,
    ops: Vec<(OpId, Op<'c>)>,
    casts: Vec<(usize, Op<'c>)>,
    seen: HandleMap<Op<'c>, ()>,
}

impl<'c> Reader<'c> {
    fn op(&mut self, op: Op<'c>) -> Option<OpId> {
        self.seen.insert(op, ());
        let types: Vec<Ty> = op.results().iter().map(|r| ty_of(r.ty())).collect();
        if op.is(CAST) && op.attr("k").is_none() {
            let results = self.model.cast(&[], &types);
            self.casts.push((self.model.casts.len() - 1, op));
            self.values.extend(op.results().into_iter().zip(results));
            return None;
        }
        let results: Vec<V> = types.iter().map(|ty| self.model.value(ty)).collect();
        self.values.extend(op.results().into_iter().zip(results.iter().copied()));
        let inputs = op.function_type().map(|(inputs, _)| inputs.into_iter().map(ty_of).collect());
        let id = self.model.op(MOp {
            name: op.name().to_owned(),
            k: op.attr("k").and_then(|k| k.as_int()),
            inputs,
            results,
            location: op.location().to_string(),
            ..MOp::default()
        });
        self.ops.push((id, op));
        for region in op.regions() {
            let blocks = region.blocks().into_iter().map(|block| self.block(block)).collect();
            self.model.ops[id].regions.push(blocks);
        }
        Some(id)
    }
    fn block(&mut self, block: Block<'c>) -> BlockId {
        let types: Vec<Ty> = block.args().iter().map(|a| ty_of(a.ty())).collect();
        let id = self.model.block(&types);
        self.blocks.insert(block, id);
        self.values.extend(block.args().into_iter().zip(self.model.blocks[id].args.clone()));
        for op in block.ops() {
            let op = self.op(op);
            self.model.blocks[id].ops.extend(op);
        }
        id
    }
    /// Resolves operands and successors once all ops are read.
    fn connect(&mut self) {
        for (id, op) in &self.ops {
            self.model.ops[*id].operands = op.operands().iter().map(|v| self.values[v]).collect();
            self.model.ops[*id].successors = op
                .successors()
                .iter()
                .map(|b| (self.blocks[b], self.model.blocks[self.blocks[b]].args.len()))
                .collect();
        }
        for (cast, op) in &self.casts {
            self.model.casts[*cast].0 = op.operands().iter().map(|v| self.values[v]).collect();
        }
    }
}
