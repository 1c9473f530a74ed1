//! A loop of another dialect, with a model of its own, is copied and refused as `scf.for` is.

use crate::support::boundaries;
use monopour_bufferize::op_model::{
    AliasModel, Buffers, LoopCarried, LoopTerminator, OpModel, OpModels, RegionInfo, UseModel,
};
use monopour_bufferize::{BufferTypes, Callees, Options, Rewriting, Stats, run_with_models};
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Context, Diagnostics, InsertionPoint, Module, Op, Value};

/// `test.loop`: every operand is an initial value, every argument of the body an iteration argument.
struct Loop;

/// The iteration argument at a position, and its yielded value.
fn carried<'c>(op: Op<'c>, index: usize) -> Option<(Value<'c>, Value<'c>)> {
    let body = op.body()?;
    let yielded = body.last_op()?;
    (index < body.num_args() && index < yielded.num_operands()).then(|| (body.arg(index), yielded.operand(index)))
}

impl OpModel for Loop {
    fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::READ_WRITE
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        carried(op, operand).map(|pair| AliasModel::equivalent_if(op.result(operand), pair)).into_iter().collect()
    }
    fn flows<'c>(&self, op: Op<'c>, operand: usize) -> Vec<Value<'c>> {
        carried(op, operand).map(|(argument, _)| vec![argument, op.result(operand)]).unwrap_or_default()
    }
    fn region(&self, _op: Op, _region: usize) -> RegionInfo {
        RegionInfo { repetitive: true, ..RegionInfo::default() }
    }
    fn are_arguments_writable(&self, _op: Op, _region: usize) -> bool {
        true
    }
    fn region_branches(&self, _op: Op) -> Option<Vec<(usize, usize)>> {
        Some(vec![(0, 0)])
    }
    fn loop_carried<'c>(&self, op: Op<'c>) -> Vec<LoopCarried<'c>> {
        let Some((body, terminator)) = op.body().and_then(|body| Some((body, body.last_op()?))) else { return vec![] };
        let tensors = (0..terminator.num_operands()).filter(|i| terminator.operand(*i).ty().is_tensor());
        let carried = |index| {
            let argument = Some(body.arg(index));
            LoopCarried { terminator, index, position: index, argument, from: LoopTerminator::Body }
        };
        tensors.map(carried).collect()
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let Some(body) = op.body() else { return Ok(()) };
        for (argument, init) in body.args().into_iter().zip(op.operands()) {
            let ty = types.of(init);
            types.set(argument, ty);
        }
        let pairs: Vec<_> = (0..op.num_results()).filter_map(|i| carried(op, i)).collect();
        types.fixpoint(op, &[body], &pairs)?;
        for (argument, result) in body.args().into_iter().zip(op.results()) {
            let ty = types.of(argument);
            types.set(result, ty);
        }
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let types: Vec<_> = op.body().map(|b| b.args()).unwrap_or_default().iter().map(|a| pass.types.of(*a)).collect();
        let mut inits = vec![];
        for (init, ty) in buffers.operands().iter().zip(&types) {
            inits.push(pass.cast_or_copy(rw, op, *init, *ty)?);
        }
        let new = rw.recreate(op, &inits, &types)?;
        if let Some(body) = new.body() {
            rw.convert_block_args(body, &types);
        }
        rw.replace_op(op, &new.results());
        Ok(())
    }
}

/// `test.yield`, the terminator of a `test.loop`.
struct Yield;

impl OpModel for Yield {
    fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::TERMINATOR
    }
    fn aliases<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        vec![]
    }
    fn flows<'c>(&self, op: Op<'c>, operand: usize) -> Vec<Value<'c>> {
        let Some(parent) = op.parent() else { return vec![] };
        parent.body().map(|body| body.arg(operand)).into_iter().chain(parent.get_result(operand)).collect()
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        rw.set_point(InsertionPoint::Before(op));
        let mut values = vec![];
        for (value, result) in buffers.operands().iter().zip(op.parent().map(|p| p.results()).unwrap_or_default()) {
            values.push(pass.cast_or_copy(rw, op, *value, result.ty())?);
        }
        rw.set_operands(op, &values);
        Ok(())
    }
}

/// A function with a loop over two tensors, as `scf.for` and as `test.loop`.
fn both(body: &str, yielded: [&str; 2]) -> [String; 2] {
    let types = "tensor<8xf32>, tensor<8xf32>";
    let function = |loop_text: String| {
        format!(
            "func.func @f(%x: tensor<8xf32>, %y: tensor<8xf32>, %v: f32, %l: index, %u: index, %s: index) -> ({types}) {{
               {loop_text}
               return %r#0, %r#1 : {types}
             }}"
        )
    };
    let [first, second] = yielded;
    [
        function(format!(
            "%r:2 = scf.for %i = %l to %u step %s iter_args(%a = %x, %b = %y) -> ({types}) {{
               {body}
               scf.yield {first}, {second} : {types}
             }}"
        )),
        function(format!(
            "%r:2 = \"test.loop\"(%x, %y) ({{
             ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
               {body}
               \"test.yield\"({first}, {second}) : ({types}) -> ()
             }}) : ({types}) -> ({types})"
        )),
    ]
}

fn bufferize(text: &str, options: &Options) -> Result<(String, Stats), Diagnostics> {
    let cx = Context::new();
    cx.allow_unregistered_dialects(true);
    let module = Module::parse(cx, text.as_bytes(), "test.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut models = OpModels::upstream();
    models.add("test.loop", Loop);
    models.add("test.yield", Yield);
    let stats = run_with_models(module.op(), options, &models)?;
    let printed = module.op().to_string();
    assert!(!printed.contains("tensor<"), "{printed}");
    Ok((printed, stats))
}

/// Codes of the remarks, and the numbers of operands in place and out of place, and of allocations.
fn outcome(text: &str, options: &Options) -> (Vec<&'static str>, u32, u32, u32) {
    let (_, stats) = bufferize(text, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    (stats.remarks.0.iter().map(|r| r.code).collect(), stats.in_place, stats.out_of_place, stats.allocs)
}

/// One tensor is updated in its place, both are swapped, one is carried twice.
const BODIES: [(&str, [&str; 2]); 3] = [
    ("%w = tensor.insert %v into %a[%l] : tensor<8xf32>", ["%w", "%b"]),
    ("", ["%b", "%a"]),
    ("%w = tensor.insert %v into %a[%l] : tensor<8xf32>", ["%w", "%w"]),
];

#[test]
fn a_foreign_loop_copies_what_a_loop_of_ours_copies() {
    for options in [Options { allow_return_allocs_from_loops: true, ..boundaries() }, extensions()] {
        for (body, yielded) in BODIES {
            let [ours, foreign] = both(body, yielded).map(|text| outcome(&text, &options));
            assert_eq!(ours, foreign, "{body} {yielded:?}");
        }
        let [_, swapped] = both(BODIES[1].0, BODIES[1].1);
        let codes = outcome(&swapped, &options).0;
        assert_eq!(codes, ["B0203", "B0203"], "a swap copies both");
    }
}

#[test]
fn a_foreign_loop_is_refused_as_a_loop_of_ours_is() {
    let [ours, foreign] =
        both(BODIES[1].0, BODIES[1].1).map(|text| bufferize(&text, &boundaries()).expect_err("a swap"));
    assert_eq!(ours.0[0].code, "B0106");
    assert_eq!(ours.0[0].message, foreign.0[0].message);
}

fn extensions() -> Options {
    Options { extensions: true, ..boundaries() }
}
