//! A dispatch whose loops cannot be cut becomes an `scf.forall` of one tile.
//!
//! Before / after:
//!
//! ```text
//! %r = linalg.generic ... outs(%f : tensor<f32>)       %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> tensor<f32> {
//!                                                        %f = linalg.fill ... outs(%o)
//!                                                        %x = linalg.generic ... outs(%f)
//!                                                        parallel_insert_slice %x into %o[] [] []
//!                                                      }
//! ```

use monopour_ir::{
    Attr, Block, Builder, Context, Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Type, Value,
};

use crate::linalg;

/// Wraps `root` in a forall that carries `kernel`, and with it the ops `before` it, each of which is the destination of the next.
pub(crate) fn run(root: Op, before: &[Op], kernel: Attr, rw: &mut Rewriter) -> Result<Op, Diagnostics> {
    let cx = root.context();
    let loc = root.location();
    let first = before.first().copied().unwrap_or(root);
    let destinations: Vec<Value> = (0..first.num_results()).map(|i| linalg::destination(first, i)).collect();
    let mut args = vec![(Type::index(cx), loc)];
    args.extend(destinations.iter().map(|d| (d.ty(), loc)));
    let body = Block::new(&args);
    let region = Region::new();
    region.append(body);
    let types: Vec<Type> = destinations.iter().map(|d| d.ty()).collect();
    let count = i32::try_from(types.len()).expect("invariant: fewer results than i32 holds");
    let spec = OpSpec::new("scf.forall", loc)
        .operands(&destinations)
        .results(&types)
        .attr("operandSegmentSizes", Attr::dense_i32(cx, &[0, 0, 0, count]))
        .attr("staticLowerBound", Attr::dense_i64(cx, &[0]))
        .attr("staticUpperBound", Attr::dense_i64(cx, &[1]))
        .attr("staticStep", Attr::dense_i64(cx, &[1]))
        .attr("monopour.kernel", kernel)
        .region(region);
    let results = fill_body(root, before, body, rw);
    terminate(body, &results, cx)?;
    rw.set_point(InsertionPoint::Before(root));
    let forall = rw.create(spec)?;
    rw.replace_op(root, &forall.results());
    for op in before.iter().rev() {
        rw.erase(*op);
    }
    Ok(forall)
}

/// Copies the chain into the body, on the shared outputs.
fn fill_body(root: Op, before: &[Op], body: Block, rw: &mut Rewriter) -> Vec<Value> {
    rw.set_point(InsertionPoint::End(body));
    let mut destinations = body.args()[1..].to_vec();
    for op in before.iter().copied().chain([root]) {
        let inputs = linalg::num_inputs(op);
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        for (i, destination) in destinations.into_iter().enumerate() {
            rw.set_operand(copy, inputs + i, destination);
        }
        destinations = copy.results();
    }
    destinations
}

fn terminate(body: Block, results: &[Value], cx: Context) -> Result<(), Diagnostics> {
    let inner = Block::new(&[]);
    let mut b = Builder::new(cx, InsertionPoint::End(inner));
    for (value, out) in results.iter().zip(&body.args()[1..]) {
        let loc = monopour_ir::Location::unknown(cx);
        let shape = value.ty().shape().expect("invariant: ranked, checked at import");
        let (zeros, ones) = (vec![0; shape.len()], vec![1; shape.len()]);
        let spec = OpSpec::new("tensor.parallel_insert_slice", loc)
            .operands(&[*value, *out])
            .attr("operandSegmentSizes", Attr::dense_i32(cx, &[1, 1, 0, 0, 0]))
            .attr("static_offsets", Attr::dense_i64(cx, &zeros))
            .attr("static_sizes", Attr::dense_i64(cx, &shape))
            .attr("static_strides", Attr::dense_i64(cx, &ones));
        b.create(spec)?;
    }
    let region = Region::new();
    region.append(inner);
    let loc = monopour_ir::Location::unknown(cx);
    Builder::new(cx, InsertionPoint::End(body)).create(OpSpec::new("scf.forall.in_parallel", loc).region(region))?;
    Ok(())
}
