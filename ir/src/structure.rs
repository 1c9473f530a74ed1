//! Structural keys: ops of equal structure do the same with the values that they capture.
//!
//! Printed text would serve too, but printing an op numbers all values around it, in time proportional to the module.
//! Here names, types and attributes are compared by their uniqued addresses.

use crate::{Attr, Block, HandleMap, Op, Region, Type, Value};
use std::ffi::c_void;

/// The structure of an op and its nested ops: names, types, attributes, and which value each operand is.
///
/// Equal keys mean equal structure, not only equal hashes. Locations are left out, and captured values count
/// by the order in which they first occur, and by type. Keys of two contexts are not comparable, and their
/// order and hash depend on addresses: never let them reach output. Properties that are no attributes, which only ops of the llvm
/// dialect have, are ignored.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StructuralKey(Vec<usize>);

impl StructuralKey {
    /// The key of `op`, without attributes of these names on the op and its nested ops.
    pub fn of(op: Op, without: &[&str]) -> Self {
        let mut writer = Writer { tokens: vec![], numbers: HandleMap::default(), without };
        writer.op(op);
        Self(writer.tokens)
    }
}

struct Writer<'c, 'a> {
    tokens: Vec<usize>,
    numbers: HandleMap<Value<'c>, usize>,
    without: &'a [&'a str],
}

impl<'c> Writer<'c, '_> {
    fn op(&mut self, op: Op<'c>) {
        debug_assert!(op.dialect() != "llvm", "its properties are not all attributes");
        let counts = [op.name_address(), op.num_operands(), op.num_results(), op.num_regions()];
        self.tokens.extend(counts);
        self.attributes(op);
        op.operand_list().for_each(|operand| self.operand(operand));
        op.result_list().for_each(|result| self.define(result));
        for i in 0..op.num_regions() {
            self.region(op.region(i));
        }
        let successors = op.successors();
        self.tokens.push(successors.len());
        // Blocks are numbered by their position in the region.
        self.tokens.extend(successors.into_iter().map(position));
    }

    fn attributes(&mut self, op: Op<'c>) {
        if self.without.iter().all(|name| op.attr(name).is_none()) {
            self.tokens.push(address(op.attr_dictionary()));
            return;
        }
        for (name, value) in op.attrs().into_iter().filter(|(name, _)| !self.without.contains(name)) {
            self.tokens.push(address(Attr::string(op.context(), name)));
            self.tokens.push(address(value));
        }
        self.tokens.push(0);
    }

    fn operand(&mut self, value: Value<'c>) {
        match self.numbers.get(&value) {
            Some(number) => self.tokens.push(*number),
            None => self.define(value),
        }
    }

    /// Numbers a value at its first occurrence.
    fn define(&mut self, value: Value<'c>) {
        let number = self.numbers.len();
        self.numbers.insert(value, number);
        self.tokens.extend([number, type_address(value.ty())]);
    }

    fn region(&mut self, region: Region<'c>) {
        let blocks = region.blocks();
        self.tokens.push(blocks.len());
        for block in &blocks {
            self.tokens.push(block.num_args());
            block.arg_list().for_each(|arg| self.define(arg));
        }
        for block in blocks {
            let ops = block.ops();
            self.tokens.push(ops.len());
            ops.into_iter().for_each(|op| self.op(op));
        }
    }
}

fn position(block: Block) -> usize {
    let blocks = block.region().map(Region::blocks).unwrap_or_default();
    blocks.iter().position(|b| *b == block).unwrap_or(usize::MAX)
}

fn address(attr: Attr) -> usize {
    attr.raw().ptr.cast::<c_void>() as usize
}

fn type_address(ty: Type) -> usize {
    ty.raw().ptr.cast::<c_void>() as usize
}
