//! Rotary embeddings: pairs of elements turned by the angle of a token's place.

use crate::onnx::operand::Operand;
use crate::onnx::predicate::CmpI;
use crate::onnx::structured::identity;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Expr, Failure, LoopKind, NodeContext, Registry, Results, Structured};
use monopour_ir::{Type, Value, ops};

pub(super) fn register(registry: &mut Registry) {
    registry.op("RotaryEmbedding", 23, rotary, "");
    registry.add("com.microsoft", "RotaryEmbedding", 1..=i64::MAX, contrib_rotary, "packed batches");
}

/// Where a token stands.
pub(super) enum Position<'a, 'c> {
    /// The tables have a row for each token of each batch.
    InTables,
    /// The row of the tables, integers `[batch, tokens]`.
    Rows(&'a Operand<'c>),
    /// The row of the first token: integers `[batch]` or one for all.
    From(&'a Operand<'c>),
}

/// A rotation of elements.
pub(super) struct Rotation<'a, 'c> {
    /// Cosines and sines, half as many in a row as elements that are turned.
    pub tables: [&'a Operand<'c>; 2],
    pub position: Position<'a, 'c>,
    /// Pairs are neighbours rather than halves apart.
    pub interleaved: bool,
}

fn rotary<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (cos, sin) = (cx.operand(1)?, cx.operand(2)?);
    let position = cx.optional(3).map_or(Position::InTables, Position::Rows);
    let rotation = Rotation { tables: [cos, sin], position, interleaved: cx.flag("interleaved", false)? };
    let heads = cx.int("num_heads", 0)?;
    let turned = cx.int("rotary_embedding_dim", 0)?;
    Ok(vec![by_layout(b, cx.operand(0)?, heads, turned, &rotation)?])
}

fn contrib_rotary<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, places, cos, sin) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?, cx.operand(3)?);
    if cos.rank() != 2 || sin.rank() != 2 {
        return Err("its sines and cosines are not of rank 2".into());
    }
    if cx.flag("is_packed_batching", false)? {
        return Err("packed batches are not supported".into());
    }
    if !matches!(places.rank(), 1 | 2) || cos.rank() != 2 {
        return Err("its positions are not of rank 1 or 2, or its tables are not of rank 2".into());
    }
    let position = if places.rank() == 1 { Position::From(places) } else { Position::Rows(places) };
    let rotation = Rotation { tables: [cos, sin], position, interleaved: cx.flag("interleaved", false)? };
    let mut heads = cx.int("num_heads", 0)?;
    let turned = cx.int("rotary_embedding_dim", 0)?;
    if heads == 0 && x.rank() == 3 {
        let hidden = x.shape[2].exact_quotient(&cos.shape[1].times(2)).and_then(|n| n.as_constant());
        heads = hidden.ok_or("the number of its heads is unknown")?;
    }
    let y = by_layout(b, x, heads, turned, &rotation)?;
    Ok(vec![super::attention::scaled(b, &y, cx.float("scale", 1.0)?)?])
}

/// `[batch, heads, tokens, size]` or `[batch, tokens, heads * size]`.
fn by_layout<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    heads: i64,
    turned: i64,
    rotation: &Rotation<'_, 'c>,
) -> Result<Operand<'c>, Failure> {
    let turned = (turned > 0).then_some(Dim::constant(turned));
    match &x.shape[..] {
        [_, _, _, size] => rotated(b, x, 2, turned.unwrap_or_else(|| size.clone()), rotation),
        [batch, tokens, hidden] => {
            let size = (heads > 0).then(|| hidden.exact_quotient(&heads.into())).flatten();
            let size = size.ok_or_else(|| format!("{hidden} are not {heads} heads"))?;
            let apart = b.reshaped(x, &[batch.clone(), tokens.clone(), heads.into(), size.clone()])?;
            let y = rotated(b, &apart, 1, turned.unwrap_or(size), rotation)?;
            b.reshaped(&y, &x.shape)
        }
        _ => Err("its operand is not of rank 3 or 4".into()),
    }
}

impl Rotation<'_, '_> {
    /// The rank of the tables.
    fn table_rank(&self) -> usize {
        if matches!(self.position, Position::InTables) { 3 } else { 2 }
    }
}

/// The number of pairs that are turned, if tables and operand have them.
fn check_tables(x: &Operand, turned: &Dim, rotation: &Rotation) -> Result<Dim, Failure> {
    let rank = rotation.table_rank();
    if rotation.tables.iter().any(|table| table.rank() != rank) {
        return Err(format!("its tables are not of rank {rank}").into());
    }
    let half = turned.floor_div(&2.into()).unwrap_or_default();
    let fits =
        |table: &&&Operand| table.shape[rank - 1].as_constant().zip(half.as_constant()).is_none_or(|(a, b)| a == b);
    if let Some(table) = rotation.tables.iter().find(|table| !fits(table)) {
        return Err(format!("a table of width {} for {half} pairs", table.shape[rank - 1]).into());
    }
    if turned.as_constant().zip(x.shape[3].as_constant()).is_some_and(|(turned, size)| turned > size) {
        return Err(format!("{turned} elements of {} cannot be turned", x.shape[3]).into());
    }
    Ok(half)
}

/// The operand of positions with its indices.
fn positions<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    token: usize,
    position: &Position<'_, 'c>,
) -> Result<Option<(Value<'c>, Vec<Expr>)>, Failure> {
    Ok(match position {
        Position::InTables => None,
        Position::Rows(rows) => {
            let (value, mut exprs) = b.broadcast_view(rows, &[x.shape[0].clone(), x.shape[token].clone()])?;
            for expr in exprs.iter_mut().filter(|expr| matches!(expr, Expr::Loop(1))) {
                *expr = Expr::Loop(token);
            }
            Some((value, exprs))
        }
        Position::From(first) if first.shape[0].is(1) => Some((b.keep_dims(first, &[])?, vec![])),
        Position::From(first) => Some((b.value(first)?, vec![Expr::Loop(0)])),
    })
}

/// Turns the first `turned` elements of the last of four dimensions; tokens are dimension `token`.
pub(super) fn rotated<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    token: usize,
    turned: Dim,
    rotation: &Rotation<'_, 'c>,
) -> Result<Operand<'c>, Failure> {
    let ([cos, sin], rank) = (rotation.tables, rotation.table_rank());
    let half = check_tables(x, &turned, rotation)?;
    // One row for all batches or tokens broadcasts.
    let mut whole = vec![];
    for table in rotation.tables {
        whole.push((0..rank - 1).map(|d| table.shape[d].is(1)).collect::<Vec<_>>());
    }
    let is_broadcast = matches!(rotation.position, Position::InTables);
    let partly = turned != x.shape[3];
    let (source, tables) = (b.value(x)?, [b.value(cos)?, b.value(sin)?]);
    let (turned, half) = (b.index(&turned)?, b.index(&half)?);
    let mut inputs = vec![(source, identity(4))];
    inputs.extend(positions(b, x, token, &rotation.position)?);
    let out = b.empty(x.dtype, &x.shape)?;
    let op = Structured { loops: vec![LoopKind::Parallel; 4], inputs, outputs: vec![(out, identity(4))] };
    let value = b.structured(&op, |b, e| {
        let at: Vec<Value> = (0..4).map(|d| b.loop_index(d)).collect::<Result<_, _>>()?;
        let pair = pair(b, at[3], turned, half, rotation.interleaved)?;
        let mut row = match rotation.position {
            Position::InTables => vec![at[0], at[token]],
            _ => vec![b.op(ops::arith::INDEX_CAST, &[e[1]], Type::index(b.context()))?],
        };
        if matches!(rotation.position, Position::From(_)) {
            row[0] = b.binary(ops::arith::ADDI, row[0], at[token])?;
        }
        row.push(pair.column);
        let partner = b.read(source, &[at[0], at[1], at[2], pair.partner])?;
        let mut factors = vec![];
        for (table, is_one) in tables.into_iter().zip(&whole) {
            let mut place = row.clone();
            for d in (0..rank - 1).filter(|d| is_broadcast && is_one[*d]) {
                place[d] = b.int(at[0].ty(), 0);
            }
            factors.push(b.read(table, &place)?);
        }
        let (own, other) =
            (b.binary(ops::arith::MULF, e[0], factors[0])?, b.binary(ops::arith::MULF, partner, factors[1])?);
        let (difference, sum) = (b.binary(ops::arith::SUBF, own, other)?, b.binary(ops::arith::ADDF, own, other)?);
        let y = b.select(pair.is_first, difference, sum)?;
        Ok(vec![if partly { b.select(pair.is_turned, y, e[0])? } else { y }])
    })?[0];
    Ok(Operand::value(x.dtype, x.shape.clone(), value))
}

/// The pair of an element: the other one, its column in the tables, and whether the element is the first of it.
struct Pair<'c> {
    partner: Value<'c>,
    column: Value<'c>,
    is_first: Value<'c>,
    is_turned: Value<'c>,
}

fn pair<'c>(
    b: &mut Builder<'c>,
    at: Value<'c>,
    turned: Value<'c>,
    half: Value<'c>,
    interleaved: bool,
) -> Result<Pair<'c>, Failure> {
    let is_turned = b.compare(CmpI::Slt, at, turned)?;
    let zero = b.int(at.ty(), 0);
    // An element that stays reads the first pair.
    let at = b.select(is_turned, at, zero)?;
    if interleaved {
        let (one, two) = (b.int(at.ty(), 1), b.int(at.ty(), 2));
        let column = b.binary(ops::arith::DIVUI, at, two)?;
        let odd = b.binary(ops::arith::REMUI, at, two)?;
        let is_first = b.compare(CmpI::Eq, odd, zero)?;
        let (next, last) = (b.binary(ops::arith::ADDI, at, one)?, b.binary(ops::arith::SUBI, at, one)?);
        let partner = b.select(is_first, next, last)?;
        return Ok(Pair { partner, column, is_first, is_turned });
    }
    let is_first = b.compare(CmpI::Slt, at, half)?;
    let (next, last) = (b.binary(ops::arith::ADDI, at, half)?, b.binary(ops::arith::SUBI, at, half)?);
    let (partner, column) = (b.select(is_first, next, last)?, b.select(is_first, at, last)?);
    Ok(Pair { partner, column, is_first, is_turned })
}
