//! Sequences and optionals, taken apart at import: a sequence is a list of values, an optional the value or nothing.

use super::slices::join;
use crate::onnx::operand::{Known, Operand};
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, DataType, Failure, NodeContext, Registry, Results, Tensor};
use std::rc::Rc;

/// What sequences need.
const CONSTANT: &str = "positions and lengths that data decides";

/// Most values of a sequence: each is a part of the program.
const MAX_PARTS: i64 = 1 << 16;

pub(super) fn register(registry: &mut Registry) {
    registry.op("SequenceConstruct", 11, |_, cx| Ok(vec![list(cx.all()?.into_iter().cloned().collect())]), "");
    registry.op("SequenceEmpty", 11, |_, _| Ok(vec![list(vec![])]), "");
    registry.op("SequenceAt", 11, at, CONSTANT);
    registry.op("SequenceInsert", 11, insert, CONSTANT);
    registry.op("SequenceErase", 11, erase, CONSTANT);
    registry.op("SequenceLength", 11, length, "");
    registry.op("SplitToSequence", 11, split, CONSTANT);
    registry.op("ConcatFromSequence", 11, concat, "");
    registry.op("SequenceMap", 17, map, "");
    registry.op("Optional", 15, |_, cx| Ok(vec![cx.optional(0).cloned().unwrap_or_else(Operand::nothing)]), "");
    registry.op("OptionalHasElement", 15, has_element, "");
    registry.op("OptionalGetElement", 15, get_element, "");
}

fn list<'c>(items: Vec<Operand<'c>>) -> Operand<'c> {
    Operand::sequence(items)
}

fn items<'c>(cx: &NodeContext<'_, 'c>, at: usize) -> Result<Vec<Operand<'c>>, Failure> {
    match &cx.operand(at)?.known {
        Some(Known::Sequence(items)) => Ok(items.to_vec()),
        _ => Err(format!("operand {at} is not a sequence of known length").into()),
    }
}

/// A position in a sequence, counted from the end where negative; `end`: that behind the last one exists too.
fn position(cx: &NodeContext, at: usize, count: usize, end: bool) -> Result<Option<usize>, Failure> {
    let Some(operand) = cx.optional(at) else { return Ok(None) };
    let given = cx.known_ints(operand, "position")?.first().copied().ok_or("its position is missing")?;
    let counted = if given < 0 { given + count as i64 } else { given };
    let most = count + usize::from(end);
    let place = usize::try_from(counted).ok().filter(|p| *p < most);
    place.map(Some).ok_or_else(|| format!("position {given} is not in a sequence of {count}").into())
}

fn at<'c>(_: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let items = items(cx, 0)?;
    let place = position(cx, 1, items.len(), false)?.ok_or("its position is missing")?;
    Ok(vec![items[place].clone()])
}

fn insert<'c>(_: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let mut items = items(cx, 0)?;
    let place = position(cx, 2, items.len(), true)?.unwrap_or(items.len());
    items.insert(place, cx.operand(1)?.clone());
    Ok(vec![list(items)])
}

fn erase<'c>(_: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let mut items = items(cx, 0)?;
    let last = items.len().checked_sub(1).ok_or("its sequence is empty")?;
    items.remove(position(cx, 1, items.len(), false)?.unwrap_or(last));
    Ok(vec![list(items)])
}

fn length<'c>(_: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let count = items(cx, 0)?.len() as i64;
    Ok(vec![Operand::sizes(DataType::I64, vec![], vec![count.into()])])
}

fn split<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    let axis = cx.axis_attribute(0, x.rank())?;
    let size = &x.shape[axis];
    let (sizes, keeps) = match cx.optional(1) {
        None => (equal_parts(size, 1)?, cx.flag("keepdims", true)?),
        Some(split) if split.rank() == 0 => {
            let each = cx.known_ints(split, "split")?.first().copied().unwrap_or(0);
            (equal_parts(size, each)?, true)
        }
        Some(split) => (b.sizes_of(split)?, true),
    };
    let negative = sizes.iter().any(|part| part.as_constant().is_some_and(|part| part < 0));
    let sum = sizes.iter().fold(Dim::default(), |sum, part| sum.add(part));
    if negative || sum.as_constant().zip(size.as_constant()).is_some_and(|(sum, size)| sum != size) {
        return Err(format!("its parts do not sum up to {size}").into());
    }
    let (mut parts, mut from) = (vec![], Dim::default());
    for part in sizes {
        let (mut place, mut shape) = (vec![Dim::default(); x.rank()], x.shape.clone());
        (place[axis], shape[axis]) = (from.clone(), part.clone());
        let mut slice = b.slice(x, &place, &shape, &vec![1; shape.len()])?;
        if !keeps {
            shape.remove(axis);
            slice = b.reshaped(&slice, &shape)?;
        }
        parts.push(slice);
        from = from.add(&part);
    }
    Ok(vec![list(parts)])
}

/// The sizes of parts of `each` elements, of which the last one may be smaller. Their number must be known.
fn equal_parts(size: &Dim, each: i64) -> Result<Vec<Dim>, Failure> {
    let size = size.as_constant().ok_or("it splits a dimension of unknown size")?;
    if each <= 0 {
        return Err("its parts have no size".into());
    }
    if size / each > MAX_PARTS {
        return Err(format!("a sequence of {} values is not supported", size / each).into());
    }
    let whole = vec![each; usize::try_from(size / each).unwrap_or(0)];
    Ok(whole.into_iter().chain(Some(size % each).filter(|rest| *rest > 0)).map(Dim::constant).collect())
}

fn concat<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let mut items = items(cx, 0)?;
    let first = items.first().ok_or("its sequence is empty")?;
    let is_new = cx.flag("new_axis", false)?;
    let axis = cx.axis(cx.int("axis", 0)?, first.rank() + usize::from(is_new))?;
    if is_new {
        for item in &mut items {
            let mut shape = item.shape.clone();
            shape.insert(axis.min(item.rank()), Dim::constant(1));
            *item = b.reshaped(item, &shape)?;
        }
    }
    let (dtype, rank) = (items[0].dtype, items[0].rank());
    if items.iter().any(|i| i.dtype != dtype || i.rank() != rank) {
        return Err("its sequence is of different ranks or types".into());
    }
    Ok(vec![join(b, &items.iter().collect::<Vec<_>>(), axis)?])
}

/// The body applied to each element; tensors are given whole.
fn map<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let graph = cx.graph("body")?;
    let count = items(cx, 0)?.len();
    let mut results: Vec<Vec<Operand>> = vec![vec![]; graph.outputs.len()];
    for number in 0..count {
        let mut inputs = vec![];
        for operand in cx.all()? {
            inputs.push(match &operand.known {
                Some(Known::Sequence(items)) => {
                    items.get(number).cloned().ok_or("its sequences are of different lengths")?
                }
                _ => operand.clone(),
            });
        }
        for (list, made) in results.iter_mut().zip(b.graph(&graph, inputs)?) {
            list.push(made);
        }
    }
    Ok(results.into_iter().map(list).collect())
}

fn has_element<'c>(_: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let has = cx.optional(0).is_some_and(|x| !matches!(x.known, Some(Known::Nothing)));
    Ok(vec![Operand::constant(Rc::new(Tensor::new(DataType::Bool, vec![], vec![u8::from(has)])))])
}

fn get_element<'c>(_: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let x = cx.operand(0)?;
    if matches!(x.known, Some(Known::Nothing)) {
        return Err("its optional has no element".into());
    }
    Ok(vec![x.clone()])
}
