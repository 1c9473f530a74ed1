//! Shared by the conversion tests: exact IR and diagnostics, converters, patterns for structured ops.

use monopour_ir::conversion::{
    ConversionOptions, ConversionRewriter, ConversionStats, ConversionTarget, Declined, Mode, PatternSet,
    TypeConversion, TypeConverter, convert_with,
};
use monopour_ir::{Attr, Context, Diagnostics, Module, Op, OpSpec, Region, Type, Value};

pub(crate) const CAST: &str = "builtin.unrealized_conversion_cast";

/// The module's text equals this, blank lines and the indentation of the module aside.
#[track_caller]
pub(crate) fn assert_ir(module: &Module, expected: &str) {
    let text = body_text(module);
    assert_eq!(text, expected.trim_matches('\n'), "the IR is:\n{text}\n");
}

/// The text of the module's body.
pub(crate) fn body_text(module: &Module) -> String {
    let text = module.op().to_string();
    let lines: Vec<&str> = text.lines().collect();
    let inner = lines[1..lines.len() - 1].iter().map(|line| line.strip_prefix("  ").unwrap_or(line));
    inner.collect::<Vec<_>>().join("\n")
}

/// Converts in partial mode with all checks, which must fail; returns the diagnostics. The remaining IR must be valid.
#[track_caller]
pub(crate) fn fails_with<'c>(
    module: &'c Module<'c>,
    target: &ConversionTarget<'c, '_>,
    patterns: &PatternSet<'c, '_>,
    expected: &str,
) -> Diagnostics {
    let options = ConversionOptions { verify_each: true, fingerprint: true, ..Default::default() };
    let result = convert_with(module.op(), target, patterns, Mode::Partial, options);
    let errors = result.expect_err("cannot be converted");
    assert_eq!(errors.to_string(), expected.trim_matches('\n'), "the diagnostics are:\n{errors}\n");
    module.op().verify_with_diagnostics().expect("what is left is valid");
    errors
}

/// Converts in full mode, verified after every pattern; no cast is left, and all casts were within the bound.
#[track_caller]
pub(crate) fn converts_fully<'c>(
    module: &'c Module<'c>,
    target: &ConversionTarget<'c, '_>,
    patterns: &PatternSet<'c, '_>,
) -> ConversionStats {
    let stats = super::check(module, target, patterns, Mode::Full).expect("converts");
    assert_eq!((stats.casts_left, module.op().find_all(CAST).len()), (0, 0));
    stats
}

/// `index` becomes `i64`, `complex<f32>` two `f32`, `none` nothing; the rest stays.
pub(crate) fn converter<'c>(cx: Context<'c>) -> TypeConverter<'c, 'c> {
    let mut converter = TypeConverter::new();
    let of = |text: &str| Type::parse(cx, text).expect("a type");
    let (index, complex, none) = (of("index"), of("complex<f32>"), of("none"));
    let (wide, f32_ty) = (of("i64"), of("f32"));
    converter.keep_others().add(move |ty| {
        let types = match ty {
            _ if ty == index => vec![wide],
            _ if ty == complex => vec![f32_ty; 2],
            _ if ty == none => vec![],
            _ => return None,
        };
        Some(TypeConversion::To(types))
    });
    converter
}

pub(crate) fn create<'c>(
    rw: &mut ConversionRewriter<'c>,
    name: &str,
    like: Op<'c>,
    operands: &[Value<'c>],
    types: &[Type<'c>],
) -> Result<Op<'c>, Declined> {
    Ok(rw.create(OpSpec::new(name, like.location()).operands(operands).results(types))?)
}

/// The converted types of a list of types.
fn types_for<'c>(converter: &TypeConverter<'c, '_>, types: &[Type<'c>]) -> Result<Vec<Type<'c>>, Declined> {
    converter.convert_all(types).ok_or_else(|| Declined::no_match("a type has no conversion"))
}

fn types_of<'c>(values: &[Value<'c>]) -> Vec<Type<'c>> {
    values.iter().map(|value| value.ty()).collect()
}

/// Casts of values to their converted types.
fn cast_all<'c>(
    rw: &mut ConversionRewriter<'c>,
    converter: &TypeConverter<'c, '_>,
    values: &[Value<'c>],
) -> Vec<Value<'c>> {
    let convert = |value: &Value<'c>| converter.convert(value.ty()).expect("asked before");
    values.iter().flat_map(|value| rw.cast_to_many(*value, &convert(value))).collect()
}

/// Replaces the results of `op` by those of `new`, grouped as the converter's 1:N conversions.
pub(crate) fn replace_grouped<'c>(
    rw: &mut ConversionRewriter<'c>,
    converter: &TypeConverter<'c, '_>,
    op: Op<'c>,
    new: Op<'c>,
) {
    let mut rest = new.results().into_iter();
    let counts = op.results().into_iter().map(|r| converter.convert(r.ty()).expect("asked before").len());
    let groups: Vec<Vec<Value>> = counts.map(|count| rest.by_ref().take(count).collect()).collect();
    rw.replace_op_with_many(op, &groups);
}

/// `from` becomes `to` with all operands and results in converted types.
pub(crate) fn retarget<'c, 'p>(
    patterns: &mut PatternSet<'c, 'p>,
    converter: &'p TypeConverter<'c, 'p>,
    from: &'p str,
    to: &'p str,
) {
    patterns.add_one_to_many_fn(from, move |op, adaptor, rw| {
        let types = types_for(converter, &types_of(&op.results()))?;
        let new = create(rw, to, op, adaptor.operands(), &types)?;
        replace_grouped(rw, converter, op, new);
        Ok(())
    });
}

/// Structured ops with converted types: loops and ifs get new ops with the old regions, terminators change with them.
pub(crate) fn structured<'c, 'p>(patterns: &mut PatternSet<'c, 'p>, converter: &'p TypeConverter<'c, 'p>) {
    for name in ["scf.for", "scf.while", "scf.if"] {
        patterns.add_one_to_many_fn(name, move |op, adaptor, rw| {
            let types = types_for(converter, &types_of(&op.results()))?;
            let mut operands = adaptor.operands().to_vec();
            if op.is("scf.for") {
                // The bounds keep their type, as the induction variable does.
                operands.splice(..3, op.operands().into_iter().take(3));
            }
            let mut spec = OpSpec::new(op.name(), op.location()).operands(&operands).results(&types);
            for region in op.regions() {
                let body = Region::new();
                rw.take_region(body, region);
                convert_structured_region(rw, converter, op, body)?;
                spec = spec.region(body);
            }
            let new = rw.create(spec)?;
            replace_grouped(rw, converter, op, new);
            Ok(())
        });
    }
}

/// The terminator changes with the block arguments: in between, the op would be invalid.
fn convert_structured_region<'c>(
    rw: &mut ConversionRewriter<'c>,
    converter: &TypeConverter<'c, '_>,
    op: Op<'c>,
    body: Region<'c>,
) -> Result<(), Declined> {
    let Some(block) = body.entry() else { return Ok(()) };
    let kept = usize::from(op.is("scf.for"));
    let mut signature: Vec<Vec<Type>> = vec![];
    for (i, arg) in block.args().into_iter().enumerate() {
        signature.push(if i < kept { vec![arg.ty()] } else { types_for(converter, &[arg.ty()])? });
    }
    rw.convert_block_signature(block, &signature)?;
    let end = block.terminator().expect("the region has a terminator");
    // The condition of a while loop is an i1, which stays.
    let values = cast_all(rw, converter, &end.operands());
    rw.set_operands(end, &values);
    Ok(())
}

/// Whether a structured op carries only legal types; the bounds of a loop do not count.
pub(crate) fn structured_target<'c, 't>(target: &mut ConversionTarget<'c, 't>, converter: &'t TypeConverter<'c, 't>) {
    for name in ["scf.for", "scf.while", "scf.if"] {
        target.dynamically_legal_op(name, move |op| {
            let operands = op.operands().into_iter().skip(if op.is("scf.for") { 3 } else { 0 });
            operands.chain(op.results()).all(|value| converter.is_legal_value(value))
        });
    }
}

/// Functions, their returns and calls: a symbol table is converted as a whole, because a call must match its function.
pub(crate) fn functions<'c, 'p>(patterns: &mut PatternSet<'c, 'p>, converter: &'p TypeConverter<'c, 'p>) {
    patterns.add_fn("builtin.module", move |module, _, rw| {
        for function in module.find_all("func.func") {
            convert_function(rw, converter, function)?;
        }
        for call in module.find_all("func.call") {
            let types = types_for(converter, &types_of(&call.results()))?;
            let operands = cast_all(rw, converter, &call.operands());
            rw.set_point(monopour_ir::InsertionPoint::Before(call));
            let callee = call.attr("callee").expect("a call has a callee");
            let spec = OpSpec::new("func.call", call.location()).operands(&operands).results(&types);
            let new = rw.create(spec.attr("callee", callee))?;
            replace_grouped(rw, converter, call, new);
        }
        // All changes are in the body.
        rw.note([monopour_ir::Change::Modified(module)]);
        Ok(())
    });
}

pub(crate) fn functions_target<'c, 't>(target: &mut ConversionTarget<'c, 't>, converter: &'t TypeConverter<'c, 't>) {
    target.dynamically_legal_op("builtin.module", move |module| {
        module.find_all("func.func").into_iter().all(|function| converter.is_legal_signature(function))
    });
}

/// One function with its returns, all blocks at once, so that branches forward the converted types.
pub(crate) fn convert_function<'c>(
    rw: &mut ConversionRewriter<'c>,
    converter: &TypeConverter<'c, '_>,
    function: Op<'c>,
) -> Result<(), Declined> {
    let (inputs, results) = function.function_type().expect("a function has a type");
    let (inputs, results) = (types_for(converter, &inputs)?, types_for(converter, &results)?);
    rw.convert_region_types(function.region(0), converter)?;
    rw.set_attr(function, "function_type", Attr::ty(Type::function(function.context(), &inputs, &results)));
    for end in function.find_all("func.return") {
        let values = cast_all(rw, converter, &end.operands());
        rw.set_operands(end, &values);
    }
    Ok(())
}

/// The visible state of a module: text with locations, and bytecode, which has the order of uses too.
pub(crate) fn snapshot(module: &Module) -> (String, Vec<u8>) {
    let options = monopour_ir::PrintOptions { locations: true, ..Default::default() };
    (module.op().print(&options), module.op().to_bytecode())
}
