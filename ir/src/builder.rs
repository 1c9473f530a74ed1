//! Creating ops.

use crate::attrs::named;
use crate::ops;
use crate::{Attr, Block, Context, Diagnostics, Location, Op, Region, Type, Value, string};
use smallvec::SmallVec;

/// The parts of a new op.
#[derive(Clone, Debug)]
pub struct OpSpec<'c, 'a> {
    name: &'a str,
    loc: Location<'c>,
    operands: SmallVec<[Value<'c>; 4]>,
    results: Option<SmallVec<[Type<'c>; 2]>>,
    attrs: Vec<(&'a str, Attr<'c>)>,
    regions: Vec<Region<'c>>,
    successors: Vec<Block<'c>>,
}

impl<'c, 'a> OpSpec<'c, 'a> {
    /// An op of this name without operands, results, attributes or regions.
    pub fn new(name: &'a str, loc: Location<'c>) -> Self {
        let (operands, results) = (SmallVec::new(), Some(SmallVec::new()));
        Self { name, loc, operands, results, attrs: vec![], regions: vec![], successors: vec![] }
    }
    /// The location.
    pub(crate) fn location(&self) -> Location<'c> {
        self.loc
    }
    /// Whether an attribute of this name is set.
    pub(crate) fn has_attr(&self, name: &str) -> bool {
        self.attrs.iter().any(|(known, _)| *known == name)
    }
    /// Appends operands.
    pub fn operands(mut self, operands: &[Value<'c>]) -> Self {
        self.operands.extend_from_slice(operands);
        self
    }
    /// Appends result types.
    pub fn results(mut self, types: &[Type<'c>]) -> Self {
        self.results.get_or_insert_default().extend_from_slice(types);
        self
    }
    /// Lets the op infer its result types.
    pub fn infer_results(mut self) -> Self {
        self.results = None;
        self
    }
    /// Sets an attribute, inherent or discardable.
    pub fn attr(mut self, name: &'a str, value: Attr<'c>) -> Self {
        self.attrs.push((name, value));
        self
    }
    /// Sets attributes, such as [`Op::attrs`].
    pub fn attrs(mut self, attrs: &[(&'a str, Attr<'c>)]) -> Self {
        self.attrs.extend_from_slice(attrs);
        self
    }
    /// Appends a region, which the op will own.
    pub fn region(mut self, region: Region<'c>) -> Self {
        self.regions.push(region);
        self
    }
    /// Appends a successor.
    pub fn successor(mut self, block: Block<'c>) -> Self {
        self.successors.push(block);
        self
    }

    /// Creates the op, detached.
    ///
    /// # Errors
    /// MLIR's diagnostics when the result types cannot be inferred.
    pub fn build(self, cx: Context<'c>) -> Result<Op<'c>, Diagnostics> {
        if self.results.is_some() {
            // Only inferring result types can fail, and a diagnostic handler costs more than the op itself.
            return Ok(self.build_as_given());
        }
        let (op, diagnostics) = cx.with_diagnostics(|| self.build_inferring(cx));
        op.ok_or(diagnostics)
    }

    fn build_as_given(&self) -> Op<'c> {
        let results = self.results.as_deref().unwrap_or_default();
        let names: SmallVec<[_; 4]> = self.attrs.iter().map(|(name, _)| string::to_ref(name)).collect();
        let values: SmallVec<[_; 4]> = self.attrs.iter().map(|(_, value)| value.raw()).collect();
        // SAFETY: defined in the shim; all handles are live (crate invariant), and the handles of this crate are laid out like theirs.
        let raw = unsafe {
            monopour_shim_create(
                string::to_ref(self.name),
                self.loc.raw(),
                self.operands.len() as isize,
                self.operands.as_ptr().cast(),
                results.len() as isize,
                results.as_ptr().cast(),
                names.len() as isize,
                names.as_ptr(),
                values.as_ptr(),
                self.successors.len() as isize,
                self.successors.as_ptr().cast(),
                self.regions.len() as isize,
                self.regions.as_ptr().cast(),
            )
        };
        Op::from_raw(raw)
    }

    fn build_inferring(self, cx: Context<'c>) -> Option<Op<'c>> {
        let operands: Vec<_> = self.operands.iter().map(|v| v.raw()).collect();
        let attrs: Vec<_> = self.attrs.iter().map(|(n, a)| named(cx, n, *a)).collect();
        let regions: Vec<_> = self.regions.iter().map(|r| r.raw()).collect();
        let successors: Vec<_> = self.successors.iter().map(|b| b.raw()).collect();
        let mut state = c!(mlirOperationStateGet(string::to_ref(self.name), self.loc.raw()));
        let s = &raw mut state;
        c!(mlirOperationStateAddOperands(s, operands.len() as isize, operands.as_ptr()));
        c!(mlirOperationStateAddAttributes(s, attrs.len() as isize, attrs.as_ptr()));
        c!(mlirOperationStateAddOwnedRegions(s, regions.len() as isize, regions.as_ptr()));
        c!(mlirOperationStateAddSuccessors(s, successors.len() as isize, successors.as_ptr()));
        c!(mlirOperationStateEnableResultTypeInference(s));
        Op::non_null(c!(mlirOperationCreate(s)))
    }
}

unsafe extern "C" {
    // Operation::create; takes ownership of the regions.
    fn monopour_shim_create(
        name: mlir_sys::MlirStringRef,
        location: mlir_sys::MlirLocation,
        num_operands: isize,
        operands: *const mlir_sys::MlirValue,
        num_results: isize,
        results: *const mlir_sys::MlirType,
        num_attributes: isize,
        names: *const mlir_sys::MlirStringRef,
        attributes: *const mlir_sys::MlirAttribute,
        num_successors: isize,
        successors: *const mlir_sys::MlirBlock,
        num_regions: isize,
        regions: *const mlir_sys::MlirRegion,
    ) -> mlir_sys::MlirOperation;
}

/// The position where new ops are inserted.
#[derive(Clone, Copy, Debug)]
pub enum InsertionPoint<'c> {
    /// Before this op.
    Before(Op<'c>),
    /// After this op.
    After(Op<'c>),
    /// At the start of a block.
    Start(Block<'c>),
    /// At the end of a block.
    End(Block<'c>),
}

/// Inserts new ops one after the other at a point.
#[derive(Clone, Copy, Debug)]
pub struct Builder<'c> {
    cx: Context<'c>,
    point: InsertionPoint<'c>,
}

impl<'c> Builder<'c> {
    /// A builder that inserts at `point`.
    pub fn new(cx: Context<'c>, point: InsertionPoint<'c>) -> Self {
        Self { cx, point }
    }
    /// A builder that inserts before `op`.
    pub fn before(op: Op<'c>) -> Self {
        Self::new(op.context(), InsertionPoint::Before(op))
    }
    /// The context.
    pub fn context(&self) -> Context<'c> {
        self.cx
    }
    /// The insertion point.
    pub fn point(&self) -> InsertionPoint<'c> {
        self.point
    }
    /// Moves the insertion point.
    pub fn set_point(&mut self, point: InsertionPoint<'c>) {
        self.point = point;
    }
    /// Creates and inserts an op.
    ///
    /// # Errors
    /// As [`OpSpec::build`].
    pub fn create(&mut self, spec: OpSpec<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let op = spec.build(self.cx)?;
        self.insert(op);
        Ok(op)
    }
    /// Inserts a detached op.
    pub fn insert(&mut self, op: Op<'c>) {
        match self.point {
            InsertionPoint::Before(at) => {
                let block = at.block().expect("insertion anchor is in a block");
                c!(mlirBlockInsertOwnedOperationBefore(block.raw(), at.raw(), op.raw()));
            }
            InsertionPoint::After(at) => {
                let block = at.block().expect("insertion anchor is in a block");
                c!(mlirBlockInsertOwnedOperationAfter(block.raw(), at.raw(), op.raw()));
                self.point = InsertionPoint::After(op);
            }
            InsertionPoint::Start(block) => {
                c!(mlirBlockInsertOwnedOperation(block.raw(), 0, op.raw()));
                self.point = InsertionPoint::After(op);
            }
            InsertionPoint::End(block) => c!(mlirBlockAppendOwnedOperation(block.raw(), op.raw())),
        }
    }
    /// `arith.constant` of an index.
    pub fn const_index(&mut self, value: i64, loc: Location<'c>) -> Value<'c> {
        let ty = Type::index(self.cx);
        self.constant(Attr::index(self.cx, value), ty, loc)
    }
    /// `arith.constant` of an attribute of type `ty`.
    pub fn constant(&mut self, value: Attr<'c>, ty: Type<'c>, loc: Location<'c>) -> Value<'c> {
        let spec = OpSpec::new(ops::arith::CONSTANT, loc).results(&[ty]).attr("value", value);
        self.create(spec).expect("arith.constant of a matching type always builds").result(0)
    }
}
