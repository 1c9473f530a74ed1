//! Einstein sums, two operands at a time.

use super::reductions::{Kind, over};
use super::slices::indexed;
use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Expr, Failure, NodeContext, Registry, Results};
use std::collections::BTreeMap;

pub(super) fn register(registry: &mut Registry) {
    registry.op("Einsum", 12, einsum, "");
}

/// A dimension's name: a letter, or its place from the end of an ellipsis.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// An operand with a label for each dimension, all different.
#[derive(Clone)]
struct Term<'c> {
    x: Operand<'c>,
    labels: Vec<Label>,
}

/// The labels of a term of that rank.
fn labels(text: &str, rank: Option<usize>, ellipsis: usize) -> Result<Vec<Label>, Failure> {
    let wrong = || -> Failure { format!("the term '{text}' of its equation is not one of its operand").into() };
    let letters = text.chars().filter(|c| *c != '.').count();
    let dots = text.matches("...").count();
    if text.chars().any(|c| !c.is_ascii_alphabetic() && c != '.') || text.matches('.').count() != 3 * dots || dots > 1 {
        return Err(wrong());
    }
    let extra = match rank {
        Some(rank) => rank.checked_sub(letters).filter(|extra| *extra == 0 || dots == 1).ok_or_else(wrong)?,
        None => ellipsis,
    };
    let mut out = vec![];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '.' {
            out.extend((0..extra).rev().map(Label::Ellipsis));
            rest = &rest[3..];
        } else {
            out.push(Label::Letter(c));
            rest = &rest[1..];
        }
    }
    Ok(out)
}

fn einsum<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let equation: String = cx.string("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let texts: Vec<&str> = left.split(',').collect();
    if texts.len() != cx.num_operands() {
        return Err(format!("its equation has {} terms for {} operands", texts.len(), cx.num_operands()).into());
    }
    let (mut terms, mut ellipsis, mut counts) = (vec![], 0, BTreeMap::new());
    for (text, x) in texts.iter().zip(cx.all()?) {
        let labels = labels(text, Some(x.rank()), 0)?;
        for label in &labels {
            *counts.entry(*label).or_insert(0) += 1;
            if let Label::Ellipsis(at) = label {
                ellipsis = ellipsis.max(at + 1);
            }
        }
        terms.push((x.clone(), labels));
    }
    let result = match right {
        Some(right) => labels(right, None, ellipsis)?,
        // Those of an ellipsis, then those that occur once.
        None => {
            let once = counts.iter().filter(|(label, n)| matches!(label, Label::Letter(_)) && **n == 1);
            (0..ellipsis).rev().map(Label::Ellipsis).chain(once.map(|(label, _)| *label)).collect()
        }
    };
    let mut terms = terms.into_iter().map(|(x, labels)| diagonal(b, &x, &labels)).collect::<Result<Vec<_>, _>>()?;
    let mut sum = terms.remove(0);
    while !terms.is_empty() {
        let next = terms.remove(0);
        let needed = |label: &Label| result.contains(label) || terms.iter().any(|t| t.labels.contains(label));
        let (left, right) = (summed(b, &sum, |l| needed(l) || next.labels.contains(l))?, {
            let labels = sum.labels.clone();
            summed(b, &next, |l| needed(l) || labels.contains(l))?
        });
        sum = product(b, &left, &right, needed)?;
    }
    let sum = summed(b, &sum, |label| result.contains(label))?;
    let order = result.iter().map(|label| sum.labels.iter().position(|own| own == label)).collect::<Option<Vec<_>>>();
    let order = order.filter(|o| o.len() == sum.labels.len()).ok_or("its result has a dimension of no operand")?;
    Ok(vec![b.permuted(&sum.x, &order)?])
}

/// The operand with each label once: of equal ones only elements of equal indices.
fn diagonal<'c>(b: &mut Builder<'c>, x: &Operand<'c>, labels: &[Label]) -> Result<Term<'c>, Failure> {
    let mut unique: Vec<Label> = vec![];
    for label in labels {
        if !unique.contains(label) {
            unique.push(*label);
        }
    }
    if unique.len() == labels.len() {
        return Ok(Term { x: x.clone(), labels: unique });
    }
    let place: Vec<usize> = labels.iter().filter_map(|l| unique.iter().position(|u| u == l)).collect();
    let mut shape: Vec<Dim> = vec![];
    for (at, label) in unique.iter().enumerate() {
        let sizes: Vec<&Dim> = (0..labels.len()).filter(|d| place[*d] == at).map(|d| &x.shape[d]).collect();
        if sizes.iter().any(|size| *size != sizes[0]) {
            return Err(format!("dimensions of different sizes have the label {label:?}").into());
        }
        shape.push(sizes[0].clone());
    }
    let source = b.value(x)?;
    let x = indexed(b, x, shape, |_, at| Ok((source, place.iter().map(|d| at[*d]).collect())))?;
    Ok(Term { x, labels: unique })
}

/// The sum over dimensions that are not kept.
fn summed<'c>(b: &mut Builder<'c>, term: &Term<'c>, keep: impl Fn(&Label) -> bool) -> Result<Term<'c>, Failure> {
    let axes: Vec<usize> = (0..term.labels.len()).filter(|d| !keep(&term.labels[*d])).collect();
    if axes.is_empty() {
        return Ok(term.clone());
    }
    let labels = term.labels.iter().filter(|l| keep(l)).copied().collect();
    Ok(Term { x: over(b, &term.x, &axes, Kind::Sum)?, labels })
}

/// The product of two, summed over the dimensions that are not kept.
fn product<'c>(
    b: &mut Builder<'c>,
    left: &Term<'c>,
    right: &Term<'c>,
    keep: impl Fn(&Label) -> bool,
) -> Result<Term<'c>, Failure> {
    let mut sizes: BTreeMap<Label, Dim> = BTreeMap::new();
    for term in [left, right] {
        for (label, size) in term.labels.iter().zip(&term.x.shape) {
            let known = sizes.entry(*label).or_insert_with(|| size.clone());
            if known.is(1) {
                known.clone_from(size);
            } else if let (Some(x), Some(y)) = (known.as_constant(), size.as_constant())
                && x != y
                && y != 1
            {
                return Err(format!("dimensions of {x} and {y} elements have one label").into());
            }
        }
    }
    if left.x.dtype != right.x.dtype {
        return Err("its operands are of different types".into());
    }
    // Dimensions of both operands first, then the left one's: the order of a batched product.
    let shared = |l: &&Label| left.labels.contains(l) && right.labels.contains(l);
    let all = || left.labels.iter().chain(right.labels.iter().filter(|l| !left.labels.contains(l)));
    let kept: Vec<Label> =
        all().filter(|l| keep(l) && shared(l)).chain(all().filter(|l| keep(l) && !shared(l))).copied().collect();
    let order: Vec<Label> = kept.iter().chain(all().filter(|l| !keep(l))).copied().collect();
    let mut side = |term: &Term<'c>| -> Result<_, Failure> {
        let broadcast = |d: usize| term.x.shape[d].is(1) && !sizes[&term.labels[d]].is(1);
        let dims: Vec<usize> = (0..term.labels.len()).filter(|d| !broadcast(*d)).collect();
        let loops = dims.iter().filter_map(|d| order.iter().position(|l| *l == term.labels[*d]));
        let loops: Vec<Expr> = loops.map(Expr::Loop).collect();
        Ok((b.keep_dims(&term.x, &dims)?, loops))
    };
    let operands = [side(left)?, side(right)?];
    let shape: Vec<Dim> = kept.iter().map(|label| sizes[label].clone()).collect();
    let dims: Vec<usize> = (0..kept.len()).collect();
    let x = b.products(operands, order.len(), left.x.dtype, (&shape, &dims))?;
    Ok(Term { x, labels: kept })
}
