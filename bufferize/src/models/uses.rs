//! Macros for op models that use all tensors alike.

/// Implements the queries on uses for an op that uses all of its tensors alike.
macro_rules! uses {
    ($used:expr, $op:ident => $aliases:expr) => {
        super::uses!($used, $op, _operand => $aliases);
    };
    ($used:expr, $op:ident, $operand:ident => $aliases:expr) => {
        fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
            $used
        }
        fn aliases<'c>(&self, $op: Op<'c>, $operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
            $aliases
        }
    };
}
/// [`uses`] of an op that has no tensor operands, or reads their shapes only.
macro_rules! no_uses {
    () => {
        super::uses!(UseModel::NONE, _op => vec![]);
    };
}
/// [`uses`] of an op that loads from its tensors.
macro_rules! only_reads {
    () => {
        super::uses!(UseModel::READ, _op => vec![]);
    };
}
/// [`uses`] of an op whose result is equivalent to its operand.
macro_rules! is_its_operand {
    () => {
        super::uses!(UseModel::NONE, op => vec![AliasModel::equivalent(op.result(0))]);
    };
}
pub(crate) use {is_its_operand, no_uses, only_reads, uses};
