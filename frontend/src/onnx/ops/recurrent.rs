//! Recurrent layers: RNN, GRU and LSTM as loops over the steps of a sequence.
//!
//! ```text
//! X = x W^T + bias                       one product for all steps
//! scf.for t: h, c, Y[t] = cell(X[t], h, c)
//! ```

use super::cells::{Activation, Cell, Ended, Kind};
use super::elementwise::{ADD, compute};
use super::recurrence::{at, for_each, range, with};
use super::slices::join;
use crate::onnx::graph::Attribute;
use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured, structured};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("RNN", 7, |b, cx| layer(b, cx, Kind::Rnn), "");
    registry.op(
        "GRU",
        7,
        |b, cx| {
            let linear_before_reset = cx.flag("linear_before_reset", false)?;
            layer(b, cx, Kind::Gru { linear_before_reset })
        },
        "",
    );
    registry.op(
        "LSTM",
        7,
        |b, cx| {
            let input_forget = cx.flag("input_forget", false)?;
            layer(b, cx, Kind::Lstm { input_forget })
        },
        "",
    );
}

/// The sequence that a layer reads.
struct Sequence<'c> {
    /// `[tokens, batch, size]`, or with the first two exchanged.
    x: Operand<'c>,
    batch_first: bool,
    tokens: Dim,
    batch: Dim,
    lengths: Option<Operand<'c>>,
}

/// One direction of a layer.
struct Direction<'c> {
    cell: Cell<'c>,
    /// `[gates * hidden, size]`.
    w: Operand<'c>,
    /// `[gates * hidden]`.
    bias: Option<Operand<'c>>,
    /// The states before the first step, `[batch, hidden]`.
    states: Vec<Operand<'c>>,
    reverse: bool,
}

fn layer<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>, kind: Kind) -> Results<'c> {
    let (x, w) = (cx.operand(0)?, cx.operand(1)?);
    if x.rank() != 3 || w.rank() != 3 || cx.operand(2)?.rank() != 3 || w.dtype != x.dtype {
        return Err("its operand and weights are not of one type and rank 3".into());
    }
    let batch_first = cx.flag("layout", false)?;
    let (batch, tokens) = (x.shape[usize::from(!batch_first)].clone(), x.shape[usize::from(batch_first)].clone());
    let lengths = cx.optional(4).cloned();
    let sequence = Sequence { x: x.clone(), batch_first, tokens, batch, lengths };
    let reverses: &[bool] = match cx.string("direction", "forward")?.as_str() {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return Err(format!("attribute 'direction' is '{other}'").into()),
    };
    let activations = activations(cx, kind, reverses.len())?;
    let (mut sequences, mut last) = (vec![], vec![vec![], vec![]]);
    for (number, (reverse, activations)) in reverses.iter().zip(activations).enumerate() {
        let direction = direction(b, cx, &sequence, number, Direction::of(kind, activations, *reverse))?;
        let (y, states) = run(b, &sequence, &direction, cx.wants(0))?;
        let one = Dim::constant(1);
        if let Some(y) = y {
            let shape = [y.shape[0].clone(), one.clone(), y.shape[1].clone(), y.shape[2].clone()];
            sequences.push(b.reshaped(&y, &shape)?);
        }
        for (states, state) in last.iter_mut().zip(states) {
            states.push(b.reshaped(&state, &[one.clone(), state.shape[0].clone(), state.shape[1].clone()])?);
        }
    }
    let mut results = vec![];
    for states in last.iter().filter(|states| !states.is_empty()) {
        let joined = join(b, &states.iter().collect::<Vec<_>>(), 0)?;
        results.push(if batch_first { b.permuted(&joined, &[1, 0, 2])? } else { joined });
    }
    // A sequence that is not wanted is not made: its place holds a state.
    let y = if sequences.is_empty() {
        results[0].clone()
    } else {
        let joined = join(b, &sequences.iter().collect::<Vec<_>>(), 1)?;
        if batch_first { b.permuted(&joined, &[2, 0, 1, 3])? } else { joined }
    };
    results.insert(0, y);
    Ok(results)
}

/// The activations of each direction.
fn activations(cx: &NodeContext, kind: Kind, directions: usize) -> Result<Vec<Vec<Activation>>, Failure> {
    let each = kind.activations();
    let names: Vec<String> = match cx.node.attributes.get("activations") {
        Some(Attribute::Strings(names)) => names.clone(),
        _ => each.iter().cycle().take(each.len() * directions).map(ToString::to_string).collect(),
    };
    if names.len() < each.len() * directions {
        return Err(format!("{} activations are not {} for each direction", names.len(), each.len()).into());
    }
    let mut alphas = cx.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = cx.floats("activation_beta")?.unwrap_or_default().into_iter();
    let mut all = vec![];
    for name in &names {
        let name = name.to_lowercase();
        let (alpha, beta) = Activation::defaults(&name).ok_or_else(|| format!("the activation '{name}' is unknown"))?;
        // Each activation takes the numbers that it needs.
        let alpha = alpha.map_or(0.0, |default| alphas.next().unwrap_or(default));
        let beta = beta.map_or(0.0, |default| betas.next().unwrap_or(default));
        all.push(Activation { name, alpha, beta });
    }
    Ok(all.chunks(each.len()).take(directions).map(<[_]>::to_vec).collect())
}

/// What a direction is, before its weights.
struct Form {
    kind: Kind,
    activations: Vec<Activation>,
    reverse: bool,
}

impl Direction<'_> {
    fn of(kind: Kind, activations: Vec<Activation>, reverse: bool) -> Form {
        Form { kind, activations, reverse }
    }
}

fn direction<'c>(
    b: &mut Builder<'c>,
    cx: &NodeContext<'_, 'c>,
    sequence: &Sequence<'c>,
    number: usize,
    form: Form,
) -> Result<Direction<'c>, Failure> {
    let index = Dim::constant(number as i64);
    let (w, r) = (at(b, cx.operand(1)?, 0, &index)?, at(b, cx.operand(2)?, 0, &index)?);
    let hidden = r.shape[1].clone();
    let size = hidden.times(form.kind.gates());
    if r.shape[0] != size || w.shape[0] != size {
        return Err(format!("its weights are not those of {} gates of {hidden}", form.kind.gates()).into());
    }
    let (mut bias, mut r_bias) = (None, None);
    if let Some(given) = cx.optional(3) {
        let given = at(b, given, 0, &index)?;
        let of_x = range(b, &given, 0, &Dim::default(), &size)?;
        let of_h = range(b, &given, 0, &size, &size)?;
        if form.kind == (Kind::Gru { linear_before_reset: true }) {
            (bias, r_bias) = (Some(of_x), Some(of_h));
        } else {
            bias = Some(compute(b, &[&of_x, &of_h], of_x.dtype, ADD)?);
        }
    }
    let axis = usize::from(sequence.batch_first);
    let state_shape = vec![sequence.batch.clone(), hidden.clone()];
    let is_lstm = matches!(form.kind, Kind::Lstm { .. });
    let mut states = vec![];
    for operand in if is_lstm { &[5, 6][..] } else { &[5] } {
        states.push(match cx.optional(*operand) {
            Some(state) => at(b, state, axis, &index)?,
            None => {
                let zeros = b.filled(sequence.x.dtype, &state_shape, 0.0)?;
                Operand::value(sequence.x.dtype, state_shape.clone(), zeros)
            }
        });
    }
    let peepholes = cx.optional(7).filter(|_| is_lstm).map(|p| at(b, p, 0, &index)).transpose()?;
    let clip = cx.node.attributes.contains_key("clip").then(|| cx.float("clip", 0.0)).transpose()?;
    let clip = clip.filter(|clip| *clip > 0.0);
    let activations = form.activations;
    let cell = Cell { kind: form.kind, hidden, r, r_bias, peepholes, activations, clip };
    Ok(Direction { cell, w, bias, states, reverse: form.reverse })
}

/// The part of the gates that the elements of the sequence give, `[tokens, batch, gates * hidden]`.
fn gates<'c>(b: &mut Builder<'c>, sequence: &Sequence<'c>, direction: &Direction<'c>) -> Result<Operand<'c>, Failure> {
    let exprs = |dims: &[usize]| dims.iter().map(|d| Expr::Loop(*d)).collect::<Vec<_>>();
    let x = exprs(if sequence.batch_first { &[1, 0, 3] } else { &[0, 1, 3] });
    let operands = [(b.value(&sequence.x)?, x), (b.value(&direction.w)?, exprs(&[2, 3]))];
    let shape = [sequence.tokens.clone(), sequence.batch.clone(), direction.w.shape[0].clone()];
    let gates = b.products(operands, 4, sequence.x.dtype, (&shape, &[0, 1, 2]))?;
    match &direction.bias {
        Some(bias) => compute(b, &[&gates, bias], gates.dtype, ADD),
        None => Ok(gates),
    }
}

/// The states of all steps, `[tokens, batch, hidden]`, if wanted, and those after the last one.
fn run<'c>(
    b: &mut Builder<'c>,
    sequence: &Sequence<'c>,
    direction: &Direction<'c>,
    wanted: bool,
) -> Result<(Option<Operand<'c>>, Vec<Operand<'c>>), Failure> {
    let gates = gates(b, sequence, direction)?;
    let (dtype, hidden) = (gates.dtype, &direction.cell.hidden);
    let shape = vec![sequence.tokens.clone(), sequence.batch.clone(), hidden.clone()];
    let mut init: Vec<Value> = direction.states.iter().map(|s| b.value(s)).collect::<Result<_, _>>()?;
    if wanted {
        init.push(b.empty(dtype, &shape)?);
    }
    let state = |value: Value<'c>| Operand::value(dtype, shape[1..].to_vec(), value);
    let count = direction.states.len();
    let results = for_each(b, &sequence.tokens, &init, |b, index, so_far| {
        let step = b.new_symbol(index);
        let step = if direction.reverse { sequence.tokens.plus(-1).sub(&step) } else { step };
        let gates = at(b, &gates, 0, &step)?;
        let states: Vec<Operand> = so_far[..count].iter().map(|v| state(*v)).collect();
        let ended = match &sequence.lengths {
            Some(lengths) => Some(Ended { lengths: lengths.clone(), step: b.index(&step)? }),
            None => None,
        };
        let states = direction.cell.step(b, &gates, &states, ended.as_ref())?;
        let mut results: Vec<Value> = states.iter().map(|s| b.value(s)).collect::<Result<_, _>>()?;
        if wanted {
            let shown = shown(b, &states[0], ended.as_ref())?;
            results.push(with(b, so_far[count], &shown, 0, &step)?);
        }
        Ok(results)
    })?;
    let y = wanted.then(|| Operand::value(dtype, shape.clone(), results[count]));
    Ok((y, results[..count].iter().map(|v| state(*v)).collect()))
}

/// The state as a step's result: 0 in rows that have ended.
fn shown<'c>(b: &mut Builder<'c>, state: &Operand<'c>, ended: Option<&Ended<'c>>) -> Result<Operand<'c>, Failure> {
    let Some(ended) = ended else { return Ok(state.clone()) };
    let inputs = vec![(b.value(state)?, structured::identity(2)), (b.value(&ended.lengths)?, vec![Expr::Loop(0)])];
    let outputs = vec![(b.empty(state.dtype, &state.shape)?, structured::identity(2))];
    let op = Structured { loops: vec![LoopKind::Parallel; 2], inputs, outputs };
    let value = b.structured(&op, |b, e| {
        let length = b.op(ops::arith::INDEX_CAST, &[e[1]], Type::index(b.context()))?;
        // Signed less.
        let runs = b.compare(CmpI::Slt, ended.step, length)?;
        let zero = b.number(e[0].ty(), 0.0);
        Ok(vec![b.select(runs, e[0], zero)?])
    })?[0];
    Ok(Operand::value(state.dtype, state.shape.clone(), value))
}
