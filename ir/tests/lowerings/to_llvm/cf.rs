//! `cf` to the LLVM dialect. A branch converts its successors if they are not converted yet.

use super::{Templates, copy_discardable_attrs, parse_attr, template};
use monopour_ir::conversion::{ConversionRewriter, Declined, PatternSet, TypeConverter};
use monopour_ir::{Attr, Block, Context, InsertionPoint, Op, OpParts, OpSpec, Type, Value};
use std::cell::OnceCell;

/// Adds the patterns of `cf`.
pub fn add_cf<'c, 'p>(set: &mut PatternSet<'c, 'p>, cx: Context<'c>, converter: &'p TypeConverter<'c, 'p>) {
    let branch = template(cx, "llvm.br");
    set.add_fn("cf.br", move |op, adaptor, rw| {
        let to = op.successor(0);
        convert_signature(rw, to, converter)?;
        let parts = OpParts { operands: adaptor.operands(), successors: &[to], ..OpParts::default() };
        let new = rw.create_like(&branch, op.location(), parts);
        copy_discardable_attrs(rw, op, new);
        rw.erase(op);
        Ok(())
    });
    let conditional = Templates::default();
    set.add_fn("cf.cond_br", move |op, adaptor, rw| {
        let to = [op.successor(0), op.successor(1)];
        convert_signature(rw, to[0], converter)?;
        convert_signature(rw, to[1], converter)?;
        let counts = to.map(|block| i32::try_from(block.num_args()).expect("arguments fit 32 bits"));
        let sizes = || Attr::dense_i32(cx, &[1, counts[0], counts[1]]);
        let spec = || OpSpec::new("llvm.cond_br", op.location()).attr("operandSegmentSizes", sizes());
        let made = conditional.get(counts, cx, spec);
        let parts = OpParts { operands: adaptor.operands(), successors: &to, ..OpParts::default() };
        let new = rw.create_like(&made, op.location(), parts);
        if let Some(weights) = op.attr("branch_weights") {
            rw.set_attr(new, "branch_weights", weights);
        }
        copy_discardable_attrs(rw, op, new);
        rw.erase(op);
        Ok(())
    });
    set.add_fn("cf.switch", move |op, adaptor, rw| {
        let successors = op.successors();
        for block in &successors {
            convert_signature(rw, *block, converter)?;
        }
        // The attributes have the same names.
        let mut spec = OpSpec::new("llvm.switch", op.location()).operands(adaptor.operands()).attrs(&op.attrs());
        for block in &successors {
            spec = spec.successor(*block);
        }
        rw.create(spec)?;
        rw.erase(op);
        Ok(())
    });
    // Most programs have no assertion.
    let lowering = OnceCell::new();
    set.add_fn("cf.assert", move |op, adaptor, rw| {
        lowering.get_or_init(|| Assert::new(cx)).convert(op, adaptor.operand(0), rw)
    });
}

fn convert_signature<'c>(
    rw: &mut ConversionRewriter<'c>,
    block: Block<'c>,
    converter: &TypeConverter<'c, '_>,
) -> Result<(), Declined> {
    if block.arg_values().into_iter().all(|arg| converter.is_legal_value(arg)) {
        return Ok(());
    }
    let mut types = Vec::with_capacity(block.num_args());
    for arg in block.args() {
        let Some(to) = converter.convert_value(arg) else {
            return Err(Declined::no_match(format!(
                "a block argument has type {}, which has no counterpart",
                arg.ty()
            )));
        };
        types.push(to.to_vec());
    }
    rw.convert_block_signature(block, &types)
}

/// `cf.assert`: a branch to a block at the end that prints the message and aborts.
struct Assert<'c> {
    cx: Context<'c>,
    pointer: Type<'c>,
    private: Attr<'c>,
    external: Attr<'c>,
    puts: Attr<'c>,
    abort: Attr<'c>,
    no_bundles: Attr<'c>,
}

impl<'c> Assert<'c> {
    fn new(cx: Context<'c>) -> Self {
        let function = |text| Attr::ty(Type::parse(cx, text).expect("the LLVM dialect is loaded"));
        Self {
            cx,
            pointer: Type::parse(cx, "!llvm.ptr").expect("the LLVM dialect is loaded"),
            private: parse_attr(cx, "#llvm.linkage<private>"),
            external: parse_attr(cx, "#llvm.linkage<external>"),
            puts: function("!llvm.func<void (ptr)>"),
            abort: function("!llvm.func<void ()>"),
            no_bundles: Attr::dense_i32(cx, &[]),
        }
    }

    fn convert(&self, op: Op<'c>, condition: Value<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
        let module = op.ancestor("builtin.module").ok_or_else(|| Declined::no_match("not in a module"))?;
        let symbols = module.body().expect("a module has a body");
        let message = op.attr("msg").expect("cf.assert has a message: verified");
        let (block, after) = rw.split_block(op);
        let failure = Block::new(&[]);
        block.region().expect("the block is in a region").append(failure);
        rw.set_point(InsertionPoint::End(block));
        let branch = OpSpec::new("llvm.cond_br", op.location()).operands(&[condition]).successor(after);
        let segments = Attr::dense_i32(self.cx, &[1, 0, 0]);
        rw.create(branch.successor(failure).attr("operandSegmentSizes", segments))?;
        let name = self.global(message.as_string().unwrap_or_default(), symbols, op, rw)?;
        self.declare("puts", self.puts, symbols, op, rw)?;
        self.declare("abort", self.abort, symbols, op, rw)?;
        rw.set_point(InsertionPoint::End(failure));
        self.fail(&name, message.as_string().map_or(0, str::len) + 1, op, rw)?;
        rw.erase(op);
        Ok(())
    }

    /// The message, with a zero at the end.
    fn global(
        &self,
        text: &str,
        symbols: Block<'c>,
        op: Op<'c>,
        rw: &mut ConversionRewriter<'c>,
    ) -> Result<String, Declined> {
        let taken = |name: &str| symbol(symbols, name).is_some();
        let mut names = std::iter::once("assert_msg".to_owned()).chain((0..).map(|i| format!("assert_msg_{i}")));
        let name = names.find(|name| !taken(name)).expect("some name is free");
        let bytes: Vec<String> = text.bytes().chain([0]).map(|byte| byte.cast_signed().to_string()).collect();
        let value = format!("dense<[{}]> : tensor<{}xi8>", bytes.join(", "), bytes.len());
        let ty = Type::parse(self.cx, &format!("!llvm.array<{} x i8>", bytes.len())).expect("an array of bytes");
        let spec = OpSpec::new("llvm.mlir.global", op.location())
            .region(monopour_ir::Region::new())
            .attr("sym_name", Attr::string(self.cx, &name))
            .attr("global_type", Attr::ty(ty))
            .attr("value", parse_attr(self.cx, &value))
            .attr("linkage", self.private)
            .attr("addr_space", Attr::int(Type::integer(self.cx, 32), 0))
            .attr("constant", Attr::unit(self.cx));
        rw.set_point(InsertionPoint::Start(symbols));
        rw.create(spec)?;
        Ok(name)
    }

    /// Declares a function of the C library, once.
    fn declare(
        &self,
        name: &str,
        ty: Attr<'c>,
        symbols: Block<'c>,
        op: Op<'c>,
        rw: &mut ConversionRewriter<'c>,
    ) -> Result<(), Declined> {
        if symbol(symbols, name).is_some() {
            return Ok(());
        }
        let spec = OpSpec::new("llvm.func", op.location())
            .region(monopour_ir::Region::new())
            .attr("sym_name", Attr::string(self.cx, name))
            .attr("function_type", ty)
            .attr("linkage", self.external);
        rw.set_point(InsertionPoint::Start(symbols));
        rw.create(spec)?;
        Ok(())
    }

    fn fail(&self, name: &str, length: usize, op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
        let array = Type::parse(self.cx, &format!("!llvm.array<{length} x i8>")).expect("an array of bytes");
        let spec = OpSpec::new("llvm.mlir.addressof", op.location()).results(&[self.pointer]);
        let global = rw.create(spec.attr("global_name", Attr::symbol(self.cx, name)))?.result(0);
        let spec = OpSpec::new("llvm.getelementptr", op.location()).operands(&[global]).results(&[self.pointer]);
        let first = spec.attr("elem_type", Attr::ty(array)).attr("rawConstantIndices", Attr::dense_i32(self.cx, &[0]));
        let text = rw.create(first)?.result(0);
        for (callee, operands) in [("puts", &[text][..]), ("abort", &[])] {
            let count = i32::from(!operands.is_empty());
            let spec = OpSpec::new("llvm.call", op.location())
                .operands(operands)
                .attr("callee", Attr::symbol(self.cx, callee))
                .attr("operandSegmentSizes", Attr::dense_i32(self.cx, &[count, 0]))
                .attr("op_bundle_sizes", self.no_bundles);
            rw.create(spec)?;
        }
        rw.create(OpSpec::new("llvm.unreachable", op.location()))?;
        Ok(())
    }
}

/// The op of this name in a module.
fn symbol<'c>(symbols: Block<'c>, name: &str) -> Option<Op<'c>> {
    symbols.ops().into_iter().find(|op| op.attr("sym_name").is_some_and(|a| a.as_string() == Some(name)))
}
