//! Builder of one kernel: handles naga's emit ranges, and maps MLIR values to expressions.

use super::short_float::ShortFloat;
use monopour_contract::attributes;
use monopour_ir::{Op, Value};
use monopour_program::GpuFeature;
use naga::{
    AddressSpace, Barrier, BinaryOperator, BuiltIn, Expression, Function, FunctionArgument, GlobalVariable, Handle,
    Literal, LocalVariable, MathFunction, Module, Scalar, ScalarKind, Span, Statement, Type, TypeInner, UnaryOperator,
    VectorSize,
};
use std::collections::{BTreeSet, HashMap};

/// An expression of the kernel function.
pub(super) type Ex = Handle<Expression>;

/// Most expressions within expressions in the text: writers and parsers of WGSL recurse, and naga's parser stops at 256 levels, of which
/// each takes up to three.
const MAX_DEPTH: u32 = 64;

/// An MLIR value in naga.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lowered {
    /// A scalar, or a vector of 2 or 4 lanes.
    One(Ex),
    /// Eight lanes: the elements 0, 2, 4, 6, then 1, 3, 5, 7.
    Planes([Ex; 2]),
}

/// A scalar kind and a number of lanes: 1, 2, 4 or 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) scalar: Scalar,
    pub(super) lanes: u32,
}

/// Memory that a kernel can address by a linear index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    /// Pointer to an array.
    pub(super) pointer: Ex,
    /// Elements of one array entry.
    pub(super) lanes: u32,
    pub(super) layout: Layout,
}

/// Layout of a buffer's elements in its array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    /// An entry is an element or a vector of them.
    Plain,
    /// Words hold several elements of 8 or 16 bits each; an entry is so many words.
    Packed { bits: u32, words: u32 },
    /// An entry is a u16 with the bits of a float.
    Short(ShortFloat),
    /// An entry is a 64-bit number as two words; only the low one is used.
    Index,
}

/// A kernel under construction.
pub(super) struct Kernel<'c> {
    module: Module,
    function: Function,
    /// Open blocks, innermost last.
    blocks: Vec<naga::Block>,
    /// First expression that no emit statement covers yet.
    emit_from: usize,
    /// Per expression, the expressions within expressions that its text has at most.
    depths: Vec<u32>,
    builtins: HashMap<BuiltIn, Ex>,
    values: HashMap<Value<'c>, Lowered>,
    buffers: HashMap<Value<'c>, Buffer>,
    /// Variables of matrices that are updated in place.
    matrices: HashMap<Value<'c>, Ex>,
    pub(super) features: BTreeSet<GpuFeature>,
    /// Whether f16 is f32 in registers.
    pub(super) wide_halves: bool,
    /// Whether buffers of single 16-bit floats are arrays of u16.
    pub(super) short_entries: bool,
    /// The memory that barriers order.
    pub(super) ordered: Barrier,
}

impl<'c> Kernel<'c> {
    pub(super) fn new(func: Op) -> Self {
        let has = |attr: &str| func.attr(attr).is_some();
        Self {
            wide_halves: has(attributes::WIDE_HALVES),
            short_entries: has(attributes::SHORT_ENTRIES),
            ordered: Barrier::WORK_GROUP,
            module: Module::default(),
            function: Function::default(),
            blocks: vec![naga::Block::new()],
            emit_from: 0,
            depths: Vec::new(),
            builtins: HashMap::new(),
            values: HashMap::new(),
            buffers: HashMap::new(),
            matrices: HashMap::new(),
            features: BTreeSet::new(),
        }
    }

    /// Closes the kernel.
    pub(super) fn finish(mut self, name: &str, workgroup_size: [u32; 3]) -> Module {
        self.flush();
        self.function.name = Some(name.to_owned());
        self.function.body = self.blocks.pop().expect("the body block is open");
        debug_assert!(self.blocks.is_empty(), "every nested block was closed");
        self.module.entry_points.push(naga::EntryPoint {
            name: name.to_owned(),
            stage: naga::ShaderStage::Compute,
            early_depth_test: None,
            workgroup_size,
            workgroup_size_overrides: None,
            function: self.function,
            mesh_info: None,
            task_payload: None,
            incoming_ray_payload: None,
        });
        self.module
    }

    // Values.

    pub(super) fn set(&mut self, value: Value<'c>, lowered: Lowered) {
        self.values.insert(value, lowered);
    }
    pub(super) fn get(&self, value: Value<'c>) -> Lowered {
        *self.values.get(&value).expect("operands are defined before their use: SSA dominance is verified")
    }
    /// A value of at most four lanes.
    pub(super) fn one(&self, value: Value<'c>) -> Ex {
        match self.get(value) {
            Lowered::One(e) => e,
            Lowered::Planes(_) => unreachable!("the op's verifier asks for a scalar here"),
        }
    }
    pub(super) fn operand(&self, op: Op<'c>, index: usize) -> Lowered {
        self.get(op.operand(index))
    }
    /// The value is what the variable holds.
    pub(super) fn set_matrix(&mut self, value: Value<'c>, variable: Ex) {
        self.matrices.insert(value, variable);
    }
    /// The variable that holds a matrix.
    pub(super) fn matrix(&self, value: Value<'c>) -> Option<Ex> {
        self.matrices.get(&value).copied()
    }
    pub(super) fn set_buffer(&mut self, value: Value<'c>, buffer: Buffer) {
        self.buffers.insert(value, buffer);
    }
    pub(super) fn buffer(&self, value: Value<'c>) -> Option<Buffer> {
        self.buffers.get(&value).copied()
    }

    // Expressions and statements.

    /// Adds an expression to the current emit range.
    pub(super) fn add(&mut self, expression: Expression) -> Ex {
        if expression.needs_pre_emit() || matches!(expression, Expression::SubgroupOperationResult { .. }) {
            return self.add_outside(expression);
        }
        let depth = 1 + self.depth_below(&expression);
        let e = self.function.expressions.append(expression, Span::UNDEFINED);
        self.depths.resize(e.index(), 0);
        self.depths.push(depth);
        if depth == MAX_DEPTH {
            self.function.named_expressions.insert(e, "part".to_owned());
            self.depths[e.index()] = 0;
        }
        e
    }
    /// Expressions within expressions that the text of this one has.
    fn depth_below(&self, expression: &Expression) -> u32 {
        let of = |e: &Ex| self.depths.get(e.index()).copied().unwrap_or(0);
        let most = |all: &[Ex]| all.iter().map(of).max().unwrap_or(0);
        match expression {
            Expression::Binary { left, right, .. } => most(&[*left, *right]),
            Expression::Select { condition, accept, reject } => most(&[*condition, *accept, *reject]),
            Expression::Math { arg, arg1, arg2, arg3, .. } => {
                of(arg).max(most(&[arg1, arg2, arg3].into_iter().flatten().copied().collect::<Vec<_>>()))
            }
            Expression::Compose { components, .. } => most(components),
            Expression::Access { base, index } => most(&[*base, *index]),
            Expression::Unary { expr: e, .. }
            | Expression::As { expr: e, .. }
            | Expression::Splat { value: e, .. }
            | Expression::Swizzle { vector: e, .. }
            | Expression::AccessIndex { base: e, .. }
            | Expression::Load { pointer: e }
            | Expression::Relational { argument: e, .. } => of(e),
            _ => 0,
        }
    }
    /// Adds an expression outside of emit ranges, as literals, variables and results of statements must be.
    fn add_outside(&mut self, expression: Expression) -> Ex {
        self.flush();
        let e = self.function.expressions.append(expression, Span::UNDEFINED);
        self.emit_from = self.function.expressions.len();
        e
    }
    fn flush(&mut self) {
        if self.emit_from < self.function.expressions.len() {
            let range = self.function.expressions.range_from(self.emit_from);
            self.block().push(Statement::Emit(range), Span::UNDEFINED);
            self.emit_from = self.function.expressions.len();
        }
    }
    fn block(&mut self) -> &mut naga::Block {
        self.blocks.last_mut().expect("a block is open")
    }
    pub(super) fn push(&mut self, statement: Statement) {
        self.flush();
        self.block().push(statement, Span::UNDEFINED);
    }
    pub(super) fn open_block(&mut self) {
        self.flush();
        self.blocks.push(naga::Block::new());
    }
    pub(super) fn close_block(&mut self) -> naga::Block {
        self.flush();
        self.blocks.pop().expect("open_block was called")
    }

    pub(super) fn literal(&mut self, literal: Literal) -> Ex {
        self.add(Expression::Literal(literal))
    }
    pub(super) fn u32(&mut self, value: u32) -> Ex {
        self.literal(Literal::U32(value))
    }
    pub(super) fn i32(&mut self, value: i32) -> Ex {
        self.literal(Literal::I32(value))
    }
    pub(super) fn f32(&mut self, value: f32) -> Ex {
        self.literal(Literal::F32(value))
    }
    pub(super) fn binary(&mut self, op: BinaryOperator, left: Ex, right: Ex) -> Ex {
        self.add(Expression::Binary { op, left, right })
    }
    pub(super) fn unary(&mut self, op: UnaryOperator, expr: Ex) -> Ex {
        self.add(Expression::Unary { op, expr })
    }
    pub(super) fn math(&mut self, fun: MathFunction, args: &[Ex]) -> Ex {
        let arg = |i: usize| args.get(i).copied();
        self.add(Expression::Math { fun, arg: args[0], arg1: arg(1), arg2: arg(2), arg3: arg(3) })
    }
    pub(super) fn select(&mut self, condition: Ex, accept: Ex, reject: Ex) -> Ex {
        self.add(Expression::Select { condition, accept, reject })
    }
    /// Converts a number.
    pub(super) fn convert(&mut self, expr: Ex, kind: ScalarKind, width: u8) -> Ex {
        self.add(Expression::As { expr, kind, convert: Some(width) })
    }
    /// Reinterprets the bits.
    pub(super) fn bitcast(&mut self, expr: Ex, kind: ScalarKind) -> Ex {
        self.add(Expression::As { expr, kind, convert: None })
    }
    /// A scalar in every lane of one plane (1 lane: the scalar itself).
    pub(super) fn splat(&mut self, value: Ex, lanes: u32) -> Ex {
        match plane_size(lanes) {
            None => value,
            Some(size) => self.add(Expression::Splat { size, value }),
        }
    }
    /// A scalar in every lane of a value of this shape.
    pub(super) fn splat_value(&mut self, value: Ex, lanes: u32) -> Lowered {
        let plane = self.splat(value, lanes);
        if lanes == 8 { Lowered::Planes([plane, plane]) } else { Lowered::One(plane) }
    }
    pub(super) fn load(&mut self, pointer: Ex) -> Ex {
        self.add(Expression::Load { pointer })
    }
    pub(super) fn store(&mut self, pointer: Ex, value: Ex) {
        self.push(Statement::Store { pointer, value });
    }

    /// Applies `f` to each plane.
    pub(super) fn map(&mut self, a: Lowered, mut f: impl FnMut(&mut Self, Ex) -> Ex) -> Lowered {
        match a {
            Lowered::One(a) => Lowered::One(f(self, a)),
            Lowered::Planes([x, y]) => Lowered::Planes([f(self, x), f(self, y)]),
        }
    }
    /// Applies `f` to the planes of values of equal lane counts.
    pub(super) fn zip(&mut self, a: Lowered, b: Lowered, mut f: impl FnMut(&mut Self, Ex, Ex) -> Ex) -> Lowered {
        match (a, b) {
            (Lowered::One(a), Lowered::One(b)) => Lowered::One(f(self, a, b)),
            (Lowered::Planes(a), Lowered::Planes(b)) => Lowered::Planes([f(self, a[0], b[0]), f(self, a[1], b[1])]),
            _ => unreachable!("elementwise ops have operands of one shape: verified"),
        }
    }

    // Types and variables.

    pub(super) fn ty(&mut self, inner: TypeInner) -> Handle<Type> {
        self.module.types.insert(Type { name: None, inner }, Span::UNDEFINED)
    }
    /// A type with a name, as structs have.
    pub(super) fn named_ty(&mut self, name: &str, inner: TypeInner) -> Handle<Type> {
        self.module.types.insert(Type { name: Some(name.to_owned()), inner }, Span::UNDEFINED)
    }
    /// The type of one plane of a value.
    pub(super) fn plane_type(&mut self, shape: Shape) -> Handle<Type> {
        let scalar = shape.scalar;
        match plane_size(shape.lanes) {
            None => self.ty(TypeInner::Scalar(scalar)),
            Some(size) => self.ty(TypeInner::Vector { size, scalar }),
        }
    }
    /// Records the feature; the WGSL writer enables f16 where a type says so, and only there.
    pub(super) fn use_f16(&mut self) {
        self.features.insert(GpuFeature::F16);
        self.plane_type(Shape { scalar: Scalar::F16, lanes: 1 });
    }
    /// An array type; `len` 0 is a runtime-sized one.
    pub(super) fn array_type(&mut self, base: Handle<Type>, stride_bytes: u32, len: u32) -> Handle<Type> {
        let size = std::num::NonZeroU32::new(len).map_or(naga::ArraySize::Dynamic, naga::ArraySize::Constant);
        self.ty(TypeInner::Array { base, size, stride: stride_bytes })
    }
    pub(super) fn local(&mut self, ty: Handle<Type>) -> Ex {
        let variable = LocalVariable { name: None, ty, init: None };
        let handle = self.function.local_variables.append(variable, Span::UNDEFINED);
        self.add(Expression::LocalVariable(handle))
    }
    pub(super) fn global(&mut self, name: String, space: AddressSpace, binding: Option<u32>, ty: Handle<Type>) -> Ex {
        let binding = binding.map(|binding| naga::ResourceBinding { group: 0, binding });
        let variable = GlobalVariable {
            name: Some(name),
            space,
            binding,
            ty,
            init: None,
            memory_decorations: naga::MemoryDecorations::empty(),
        };
        let handle = self.module.global_variables.append(variable, Span::UNDEFINED);
        self.add(Expression::GlobalVariable(handle))
    }
    /// A built-in input; three-component ones are vectors of u32, the others u32.
    pub(super) fn builtin(&mut self, builtin: BuiltIn, name: &str, lanes_3: bool) -> Ex {
        if let Some(e) = self.builtins.get(&builtin) {
            return *e;
        }
        let inner = if lanes_3 {
            TypeInner::Vector { size: VectorSize::Tri, scalar: Scalar::U32 }
        } else {
            TypeInner::Scalar(Scalar::U32)
        };
        let argument = FunctionArgument {
            name: Some(name.to_owned()),
            ty: self.ty(inner),
            binding: Some(naga::Binding::BuiltIn(builtin)),
        };
        self.function.arguments.push(argument);
        let index = self.function.arguments.len() as u32 - 1;
        let e = self.add(Expression::FunctionArgument(index));
        self.builtins.insert(builtin, e);
        e
    }
    pub(super) fn subgroup_result(&mut self, shape: Shape) -> Ex {
        self.features.insert(GpuFeature::Subgroup);
        let ty = self.plane_type(shape);
        self.add(Expression::SubgroupOperationResult { ty })
    }
}

/// The naga vector size of one plane; `None` for a scalar.
pub(super) fn plane_size(lanes: u32) -> Option<VectorSize> {
    match lanes {
        1 => None,
        2 => Some(VectorSize::Bi),
        _ => Some(VectorSize::Quad),
    }
}
