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

use monopour_ir::{Attr, Block, Builder, Context, Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Type, Value};

use crate::linalg;

/// Wraps `root`, and the fill under it if there is one, in a forall that carries `kernel`.
pub(crate) fn run(root: Op, init: Option<Op>, kernel: Attr, rw: &mut Rewriter) -> Result<Op, Diagnostics> {
    let cx = root.context();
    let loc = root.location();
    let destinations: Vec<Value> = match init {
        Some(fill) => vec![linalg::destination(fill, 0)],
        None => (0..root.num_results()).map(|i| linalg::destination(root, i)).collect(),
    };
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
    let results = fill_body(root, init, body, rw);
    terminate(body, &results, cx)?;
    rw.set_point(InsertionPoint::Before(root));
    let forall = rw.create(spec)?;
    rw.replace_op(root, &forall.results());
    if let Some(fill) = init {
        rw.erase(fill);
    }
    Ok(forall)
}

/// Copies the fill and the root into the body, on the shared outputs.
fn fill_body(root: Op, init: Option<Op>, body: Block, rw: &mut Rewriter) -> Vec<Value> {
    let outs = &body.args()[1..];
    rw.set_point(InsertionPoint::End(body));
    let mut destinations = outs.to_vec();
    if let Some(fill) = init {
        let copy = rw.clone_op(fill, |v| if v == linalg::destination(fill, 0) { outs[0] } else { v });
        rw.insert(copy);
        destinations = vec![copy.result(0)];
    }
    let inputs = linalg::num_inputs(root);
    let copy = rw.clone_op(root, |v| v);
    rw.insert(copy);
    for (i, destination) in destinations.into_iter().enumerate() {
        rw.set_operand(copy, inputs + i, destination);
    }
    copy.results()
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
