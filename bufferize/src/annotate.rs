//! Write the decisions into the IR as attributes, as `test-analysis-only` shows them.
//!
//! ```text
//! %1 = linalg.fill {__inplace_operands_attr__ = ["none", "true"]} ins(%z : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
//! return {__equivalent_func_args__ = [0], __inplace_operands_attr__ = ["true"]} %1 : tensor<4xf32>
//! ```

use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis};
use monopour_ir::{Attr, Op, Rewriter};

use crate::boundary::{ArgumentSummary, equivalent_arguments};
use crate::collect::Collected;

/// Attributes that bufferization understands or writes; none is left on memrefs.
const ATTRIBUTES: &[&str] = &["bufferization.access", "bufferization.writable", "bufferization.buffer_layout"];

/// Annotates one function.
pub(crate) fn run(function: Op, collected: &Collected, decisions: &Decisions, summary: Option<&[ArgumentSummary]>) {
    let mut rw = Rewriter::new(function.context());
    let cx = function.context();
    for op in collected.ops.iter().filter(|op| op.operands().iter().any(|v| v.ty().is_tensor())) {
        let words: Vec<Attr> = (0..op.num_operands())
            .map(|i| {
                let word = match collected.operand_ids.get(&(*op, i)) {
                    None => "none",
                    Some(id) if decisions.is_in_place(*id) => "true",
                    Some(_) => "false",
                };
                Attr::string(cx, word)
            })
            .collect();
        rw.set_attr(*op, "__inplace_operands_attr__", Attr::array(cx, &words));
    }
    let Some(summary) = summary else { return };
    let equivalent = equivalent_arguments(function, collected, decisions);
    if let Some(terminator) =
        function.body().and_then(|b| b.terminator()).filter(|_| equivalent.iter().any(Option::is_some))
    {
        let numbers: Vec<Attr> =
            equivalent.iter().map(|e| Attr::i64(cx, e.map_or(-1, |i| i64::try_from(i).unwrap_or(-1)))).collect();
        rw.set_attr(terminator, "__equivalent_func_args__", Attr::array(cx, &numbers));
    }
    let access = |s: &ArgumentSummary| match (s.read, s.written) {
        (true, true) => "read-write",
        (true, false) => "read",
        (false, true) => "write",
        (false, false) => "none",
    };
    let args = function.body().map(|b| b.args()).unwrap_or_default();
    let tensors: Vec<Option<Attr>> =
        args.iter().zip(summary).map(|(a, s)| a.ty().is_tensor().then(|| Attr::string(cx, access(s)))).collect();
    if tensors.iter().any(Option::is_some) {
        edit_arguments(&mut rw, function, |index, entries| {
            if let Some(value) = tensors[index] {
                entries.retain(|(name, _)| name != ATTRIBUTES[0]);
                entries.push((ATTRIBUTES[0].to_owned(), value));
            }
        });
    }
}

/// Removes what bufferization alone understands from a function's arguments.
pub(crate) fn strip(function: Op) {
    if function.attr("arg_attrs").is_none() {
        return;
    }
    let mut rw = Rewriter::new(function.context());
    edit_arguments(&mut rw, function, |_, entries| entries.retain(|(name, _)| !ATTRIBUTES.contains(&name.as_str())));
}

fn edit_arguments(rw: &mut Rewriter, function: Op, edit: impl Fn(usize, &mut Vec<(String, Attr)>)) {
    let cx = function.context();
    let count = function.function_type().map_or(0, |(inputs, _)| inputs.len());
    let old = function.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
    let new: Vec<Attr> = (0..count)
        .map(|i| {
            let mut entries = old.get(i).and_then(Attr::as_dict).unwrap_or_default();
            edit(i, &mut entries);
            let borrowed: Vec<(&str, Attr)> = entries.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            Attr::dict(cx, &borrowed)
        })
        .collect();
    if new.iter().all(|a| a.as_dict().is_none_or(|d| d.is_empty())) {
        rw.remove_attr(function, "arg_attrs");
    } else {
        rw.set_attr(function, "arg_attrs", Attr::array(cx, &new));
    }
}
