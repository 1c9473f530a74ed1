//! Functions whose signature changes together with all their calls.

use monopour_ir::ops;
use std::collections::HashMap;

use monopour_ir::{Attr, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Value, WalkOrder};

/// The functions of a module, with their calls.
pub(crate) struct Calls<'c> {
    /// `func.func` ops with a body, in order.
    pub functions: Vec<Op<'c>>,
    of: HashMap<String, Vec<Op<'c>>>,
    /// Names that are used other than by calls.
    taken: Vec<String>,
}

impl<'c> Calls<'c> {
    /// Walks the module once.
    pub fn new(module: Op<'c>) -> Self {
        let mut this = Self { functions: vec![], of: HashMap::new(), taken: vec![] };
        module.walk(WalkOrder::Pre, |op| {
            if op.is(ops::func::FUNC) && op.body().is_some() {
                this.functions.push(op);
            }
            if op.is(ops::func::CALL)
                && let Some(callee) = op.callee()
            {
                this.of.entry(callee.to_owned()).or_default().push(op);
            } else {
                op.attrs().iter().for_each(|(_, attr)| attr.each_symbol(&mut |name| this.taken.push(name.to_owned())));
            }
        });
        // Nested symbol tables may have one name twice.
        let mut names: Vec<String> =
            module.find_all(ops::func::FUNC).into_iter().filter_map(|f| f.symbol_name()).collect();
        names.sort_unstable();
        this.taken.extend(names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone()));
        this.taken.sort_unstable();
        this
    }

    /// The calls of a function, in order.
    pub fn of(&self, function: Op<'c>) -> &[Op<'c>] {
        function.symbol_name().and_then(|name| self.of.get(&name)).map_or(&[], Vec::as_slice)
    }

    /// Whether every use of the function is a call that is known here.
    pub fn are_all(&self, function: Op<'c>) -> bool {
        function.symbol_name().is_some_and(|name| self.taken.binary_search(&name).is_err())
    }

    /// Replaces the calls of a function.
    pub fn set(&mut self, function: Op<'c>, calls: Vec<Op<'c>>) {
        self.of.extend(function.symbol_name().map(|name| (name, calls)));
    }
}

/// The return ops of a function.
pub(crate) fn returns<'c>(function: Op<'c>) -> Vec<Op<'c>> {
    let blocks = function.region(0).blocks();
    blocks.into_iter().filter_map(|b| b.terminator()).filter(|t| t.is(ops::func::RETURN)).collect()
}

/// Removes the results that `keep` excludes from a function and its returns.
/// `args`: additional arguments, already in the body, with their attributes.
pub(crate) fn change_signature<'c>(
    rw: &mut Rewriter<'c>,
    function: Op<'c>,
    keep: &[usize],
    args: &[(Type<'c>, Attr<'c>)],
) {
    let Some((mut inputs, results)) = function.function_type() else { return };
    let cx = rw.context();
    let entry = |name: &str, index: usize| {
        let all = function.attr(name).and_then(|a| a.as_array());
        all.and_then(|a| a.get(index).copied()).unwrap_or_else(|| Attr::dict(cx, &[]))
    };
    let kept: Vec<Attr> = keep.iter().map(|i| entry("res_attrs", *i)).collect();
    let mut given: Vec<Attr> = (0..inputs.len()).map(|i| entry("arg_attrs", i)).collect();
    given.extend(args.iter().map(|a| a.1));
    inputs.extend(args.iter().map(|a| a.0));
    let left: Vec<Type> = keep.iter().map(|i| results[*i]).collect();
    for (name, list) in [("res_attrs", kept), ("arg_attrs", given)] {
        if list.iter().any(|a| a.as_dict().is_some_and(|d| !d.is_empty())) {
            rw.set_attr(function, name, Attr::array(cx, &list));
        } else if function.attr(name).is_some() {
            rw.remove_attr(function, name);
        }
    }
    rw.set_attr(function, "function_type", Attr::ty(Type::function(cx, &inputs, &left)));
    for op in returns(function) {
        let values: Vec<Value> = keep.iter().map(|i| op.operand(*i)).collect();
        rw.set_operands(op, &values);
    }
}

/// Replaces a call by one with other operands and only the results that `keep` names.
/// The removed results must be replaced before the old call is erased.
///
/// # Errors
/// MLIR's diagnostics for the call.
pub(crate) fn change_call<'c>(
    rw: &mut Rewriter<'c>,
    call: Op<'c>,
    operands: &[Value<'c>],
    keep: &[usize],
) -> Result<Op<'c>, Diagnostics> {
    let types: Vec<Type> = keep.iter().map(|i| call.result(*i).ty()).collect();
    let mut attrs = call.attrs();
    // Attributes by position would apply to other arguments and results.
    attrs.retain(|(name, _)| !["arg_attrs", "res_attrs"].contains(name));
    rw.set_point(InsertionPoint::Before(call));
    let spec = OpSpec::new(ops::func::CALL, call.location()).operands(operands).results(&types);
    let new = rw.create(spec.attrs(&attrs))?;
    for (position, index) in keep.iter().enumerate() {
        rw.replace_all_uses(call.result(*index), new.result(position));
    }
    Ok(new)
}

/// Whether the function's signature may change: it is private, so all its calls are known.
pub(crate) fn is_private(function: Op) -> bool {
    function.attr("sym_visibility").is_some_and(|v| v.as_string() == Some("private"))
}
