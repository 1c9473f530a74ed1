//! Cells of recurrent layers: one step from a state to the next.

use super::activations::{exponential, hard, offset, scaled, sigmoid, softplus, softsign, where_positive};
use super::recurrence::{parts, range};
use crate::onnx::operand::Operand;
use crate::onnx::predicate::{CmpF, CmpI};
use crate::onnx::structured::identity;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Expr, Failure, LoopKind, Structured};
use monopour_ir::{Value, ops};

/// Kind of a cell.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Rnn,
    Gru {
        /// The product with the old state comes before the reset gate.
        linear_before_reset: bool,
    },
    Lstm {
        /// The forget gate is what the input gate leaves.
        input_forget: bool,
    },
}

impl Kind {
    /// Number of gates, each a part of the weights.
    pub fn gates(self) -> i64 {
        match self {
            Kind::Rnn => 1,
            Kind::Gru { .. } => 3,
            Kind::Lstm { .. } => 4,
        }
    }
    /// The activations of one direction unless given.
    pub fn activations(self) -> &'static [&'static str] {
        match self {
            Kind::Rnn => &["Tanh"],
            Kind::Gru { .. } => &["Sigmoid", "Tanh"],
            Kind::Lstm { .. } => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// An activation with its numbers.
#[derive(Clone)]
pub(super) struct Activation {
    pub name: String,
    pub alpha: f64,
    pub beta: f64,
}

impl Activation {
    /// The default numbers of an activation; `None` for one that is unknown or takes fewer.
    pub fn defaults(name: &str) -> Option<(Option<f64>, Option<f64>)> {
        Some(match name {
            "relu" | "tanh" | "sigmoid" | "softsign" | "softplus" => (None, None),
            "affine" => (Some(1.0), Some(0.0)),
            "leakyrelu" => (Some(f64::from(0.01f32)), None),
            "thresholdedrelu" | "elu" => (Some(1.0), None),
            "scaledtanh" => (Some(1.0), Some(1.0)),
            "hardsigmoid" => (Some(f64::from(0.2f32)), Some(0.5)),
            _ => return None,
        })
    }

    fn apply<'c>(&self, b: &mut Builder<'c>, x: Value<'c>) -> Result<Value<'c>, Failure> {
        let (alpha, beta) = (self.alpha, self.beta);
        let zero = b.number(x.ty(), 0.0);
        match self.name.as_str() {
            "relu" => b.binary(ops::arith::MAXIMUMF, x, zero),
            "tanh" => b.unary(ops::math::TANH, x),
            "sigmoid" => sigmoid(b, x),
            "softsign" => softsign(b, x),
            "softplus" => softplus(b, x),
            "affine" => {
                let x = scaled(b, x, alpha)?;
                offset(b, x, beta)
            }
            "leakyrelu" => where_positive(b, x, |b, x| scaled(b, x, alpha)),
            "thresholdedrelu" => {
                let bound = b.number(x.ty(), alpha);
                let above = b.compare(CmpF::Oge, x, bound)?;
                b.select(above, x, zero)
            }
            "scaledtanh" => {
                let x = scaled(b, x, beta)?;
                let y = b.unary(ops::math::TANH, x)?;
                scaled(b, y, alpha)
            }
            "hardsigmoid" => hard(b, x, alpha, beta),
            "elu" => where_positive(b, x, |b, x| exponential(b, x, alpha, 1.0)),
            other => Err(format!("the activation '{other}' is unknown").into()),
        }
    }
}

/// The weights of one direction.
pub(super) struct Cell<'c> {
    pub kind: Kind,
    /// Size of the state.
    pub hidden: Dim,
    /// `[gates * hidden, hidden]`.
    pub r: Operand<'c>,
    /// `[gates * hidden]`, of a GRU whose product comes before the reset gate.
    pub r_bias: Option<Operand<'c>>,
    /// `[3 * hidden]`: of the input, output and forget gate.
    pub peepholes: Option<Operand<'c>>,
    pub activations: Vec<Activation>,
    /// Bound of what activations take.
    pub clip: Option<f64>,
}

/// The rows of a batch that have ended keep their state.
pub(super) struct Ended<'c> {
    /// Integers `[batch]`.
    pub lengths: Operand<'c>,
    /// The step.
    pub step: Value<'c>,
}

impl<'c> Cell<'c> {
    /// In a body: an activation of a bounded value.
    fn activate(&self, b: &mut Builder<'c>, at: usize, x: Value<'c>) -> Result<Value<'c>, Failure> {
        let x = match self.clip {
            Some(clip) => {
                let (low, high) = (b.number(x.ty(), -clip), b.number(x.ty(), clip));
                let x = b.binary(ops::arith::MAXIMUMF, x, low)?;
                b.binary(ops::arith::MINIMUMF, x, high)?
            }
            None => x,
        };
        self.activations[at].apply(b, x)
    }

    /// The product of a state and weights `[n, hidden]`.
    fn product(&self, b: &mut Builder<'c>, h: &Operand<'c>, r: &Operand<'c>) -> Result<Operand<'c>, Failure> {
        let exprs = |dims: [usize; 2]| dims.into_iter().map(Expr::Loop).collect::<Vec<_>>();
        let operands = [(b.value(h)?, exprs([0, 2])), (b.value(r)?, exprs([1, 2]))];
        b.products(operands, 3, h.dtype, (&[h.shape[0].clone(), r.shape[0].clone()], &[0, 1]))
    }

    /// The states after a step; `gates` is the part of the gates that the step's element gives, `[batch, gates * hidden]`.
    pub fn step(
        &self,
        b: &mut Builder<'c>,
        gates: &Operand<'c>,
        states: &[Operand<'c>],
        ended: Option<&Ended<'c>>,
    ) -> Result<Vec<Operand<'c>>, Failure> {
        match self.kind {
            Kind::Rnn => self.rnn(b, gates, states, ended),
            Kind::Gru { linear_before_reset } => self.gru(b, gates, states, ended, linear_before_reset),
            Kind::Lstm { input_forget } => self.lstm(b, gates, states, ended, input_forget),
        }
    }

    /// New states, elementwise; those of rows that have ended stay. `body` takes the elements of states, then of operands.
    fn update(
        &self,
        b: &mut Builder<'c>,
        states: &[Operand<'c>],
        operands: &[Operand<'c>],
        ended: Option<&Ended<'c>>,
        body: impl FnOnce(&mut Builder<'c>, &[Value<'c>], &[Value<'c>]) -> Result<Vec<Value<'c>>, Failure>,
    ) -> Result<Vec<Operand<'c>>, Failure> {
        let (dtype, shape) = (states[0].dtype, states[0].shape.clone());
        let mut inputs = vec![];
        for operand in states.iter().chain(operands) {
            // Peepholes and biases are the same in every row.
            let index = if operand.rank() == 2 { identity(2) } else { vec![Expr::Loop(1)] };
            inputs.push((b.value(operand)?, index));
        }
        if let Some(ended) = ended {
            inputs.push((b.value(&ended.lengths)?, vec![Expr::Loop(0)]));
        }
        let mut outputs = vec![];
        for _ in states {
            outputs.push((b.empty(dtype, &shape)?, identity(2)));
        }
        let op = Structured { loops: vec![LoopKind::Parallel; 2], inputs, outputs };
        let values = b.structured(&op, |b, e| {
            let (old, rest) = e.split_at(states.len());
            let new = body(b, old, rest)?;
            let Some(ended) = ended else { return Ok(new) };
            let length = b.op(ops::arith::INDEX_CAST, &[rest[operands.len()]], ended.step.ty())?;
            let runs = b.compare(CmpI::Slt, ended.step, length)?;
            new.iter().zip(old).map(|(new, old)| b.select(runs, *new, *old)).collect()
        })?;
        Ok(values.into_iter().map(|value| Operand::value(dtype, shape.clone(), value)).collect())
    }

    fn rnn(
        &self,
        b: &mut Builder<'c>,
        gates: &Operand<'c>,
        states: &[Operand<'c>],
        ended: Option<&Ended<'c>>,
    ) -> Result<Vec<Operand<'c>>, Failure> {
        let recurrent = self.product(b, &states[0], &self.r)?;
        self.update(b, states, &[gates.clone(), recurrent], ended, |b, _, e| {
            let sum = b.binary(ops::arith::ADDF, e[0], e[1])?;
            Ok(vec![self.activate(b, 0, sum)?])
        })
    }

    fn gru(
        &self,
        b: &mut Builder<'c>,
        gates: &Operand<'c>,
        states: &[Operand<'c>],
        ended: Option<&Ended<'c>>,
        linear_before_reset: bool,
    ) -> Result<Vec<Operand<'c>>, Failure> {
        let (h, hidden) = (&states[0], &self.hidden);
        let mut operands = parts(b, gates, 1, hidden, 3)?;
        if linear_before_reset {
            let recurrent = self.product(b, h, &self.r)?;
            operands.extend(parts(b, &recurrent, 1, hidden, 3)?);
            if let Some(bias) = &self.r_bias {
                operands.extend(parts(b, bias, 0, hidden, 3)?);
            }
            return self.update(b, states, &operands, ended, |b, old, e| {
                let mut recurrent = e[3..6].to_vec();
                if self.r_bias.is_some() {
                    for (at, value) in recurrent.iter_mut().enumerate() {
                        *value = b.binary(ops::arith::ADDF, *value, e[6 + at])?;
                    }
                }
                let r = b.binary(ops::arith::ADDF, e[1], recurrent[1])?;
                let r = self.activate(b, 0, r)?;
                let part = b.binary(ops::arith::MULF, r, recurrent[2])?;
                Ok(vec![self.gru_state(b, old[0], [e[0], recurrent[0]], [e[2], part])?])
            });
        }
        let two = hidden.times(2);
        let both = range(b, &self.r, 0, &Dim::default(), &two)?;
        let both = self.product(b, h, &both)?;
        let recurrent = parts(b, &both, 1, hidden, 2)?;
        let reset = b.elementwise(&[h, &operands[1], &recurrent[1]], h.dtype, |b, e| {
            let r = b.binary(ops::arith::ADDF, e[1], e[2])?;
            let r = self.activate(b, 0, r)?;
            b.binary(ops::arith::MULF, r, e[0])
        })?;
        let last = range(b, &self.r, 0, &two, hidden)?;
        let last = self.product(b, &reset, &last)?;
        let operands = [operands[0].clone(), recurrent[0].clone(), operands[2].clone(), last];
        self.update(b, states, &operands, ended, |b, old, e| {
            Ok(vec![self.gru_state(b, old[0], [e[0], e[1]], [e[2], e[3]])?])
        })
    }

    /// `(1 - z) * h + z * old` of the sums of parts of both.
    fn gru_state(
        &self,
        b: &mut Builder<'c>,
        old: Value<'c>,
        z: [Value<'c>; 2],
        h: [Value<'c>; 2],
    ) -> Result<Value<'c>, Failure> {
        let z = b.binary(ops::arith::ADDF, z[0], z[1])?;
        let z = self.activate(b, 0, z)?;
        let h = b.binary(ops::arith::ADDF, h[0], h[1])?;
        let h = self.activate(b, 1, h)?;
        let one = b.number(z.ty(), 1.0);
        let rest = b.binary(ops::arith::SUBF, one, z)?;
        let (new, kept) = (b.binary(ops::arith::MULF, rest, h)?, b.binary(ops::arith::MULF, z, old)?);
        b.binary(ops::arith::ADDF, new, kept)
    }

    fn lstm(
        &self,
        b: &mut Builder<'c>,
        gates: &Operand<'c>,
        states: &[Operand<'c>],
        ended: Option<&Ended<'c>>,
        input_forget: bool,
    ) -> Result<Vec<Operand<'c>>, Failure> {
        let recurrent = self.product(b, &states[0], &self.r)?;
        let mut operands = parts(b, gates, 1, &self.hidden, 4)?;
        operands.extend(parts(b, &recurrent, 1, &self.hidden, 4)?);
        if let Some(peepholes) = &self.peepholes {
            operands.extend(parts(b, peepholes, 0, &self.hidden, 3)?);
        }
        self.update(b, states, &operands, ended, |b, old, e| {
            let mut sums = vec![];
            for gate in 0..4 {
                sums.push(b.binary(ops::arith::ADDF, e[gate], e[4 + gate])?);
            }
            let peep = |b: &mut Builder<'c>, sum: Value<'c>, at: usize, c: Value<'c>| match &self.peepholes {
                Some(_) => {
                    let part = b.binary(ops::arith::MULF, e[8 + at], c)?;
                    b.binary(ops::arith::ADDF, sum, part)
                }
                None => Ok(sum),
            };
            let i = peep(b, sums[0], 0, old[1])?;
            let i = self.activate(b, 0, i)?;
            let f = if input_forget {
                let one = b.number(i.ty(), 1.0);
                b.binary(ops::arith::SUBF, one, i)?
            } else {
                let f = peep(b, sums[2], 2, old[1])?;
                self.activate(b, 0, f)?
            };
            let new = self.activate(b, 1, sums[3])?;
            let (kept, new) = (b.binary(ops::arith::MULF, f, old[1])?, b.binary(ops::arith::MULF, i, new)?);
            let c = b.binary(ops::arith::ADDF, kept, new)?;
            let o = peep(b, sums[1], 1, c)?;
            let o = self.activate(b, 0, o)?;
            let shown = self.activate(b, 2, c)?;
            Ok(vec![b.binary(ops::arith::MULF, o, shown)?, c])
        })
    }
}
