//! Types: one handle, and plain-data views of the shaped ones.

use crate::{AffineMap, Attr, Context, Type, string};
use melior::ir::r#type::{FunctionType, IntegerType};
use std::fmt;

/// The marker of a dynamic dimension, stride or offset (`ShapedType::kDynamic`).
pub const DYNAMIC: i64 = i64::MIN;

/// A ranked tensor type as data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorType<'c> {
    /// Dimensions; [`DYNAMIC`] where unknown.
    pub shape: Vec<i64>,
    /// Element type.
    pub element: Type<'c>,
    /// Encoding, used as the memory space by `place`.
    pub encoding: Option<Attr<'c>>,
}

/// A ranked memref type as data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemRefType<'c> {
    /// Dimensions; [`DYNAMIC`] where unknown.
    pub shape: Vec<i64>,
    /// Element type.
    pub element: Type<'c>,
    /// Strides in elements; [`DYNAMIC`] where unknown.
    pub strides: Vec<i64>,
    /// Offset in elements; [`DYNAMIC`] where unknown.
    pub offset: i64,
    /// Memory space.
    pub memory_space: Option<Attr<'c>>,
}

/// A fixed-length vector type as data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VectorType<'c> {
    /// Lanes per dimension.
    pub shape: Vec<i64>,
    /// Element type.
    pub element: Type<'c>,
}

impl<'c> Type<'c> {
    /// Parses a type; `None` if the text is not one. Diagnostics go to the attached handler.
    pub fn parse(cx: Context<'c>, text: &str) -> Option<Self> {
        let raw = c!(mlirTypeParseGet(cx.raw(), string::to_ref(text)));
        (!raw.ptr.is_null()).then_some(Self::from_raw(raw))
    }

    /// `f16`.
    pub fn f16(cx: Context<'c>) -> Self {
        Self::from_raw(c!(mlirF16TypeGet(cx.raw())))
    }
    /// `f32`.
    pub fn f32(cx: Context<'c>) -> Self {
        melior::ir::Type::float32(cx.to_melior()).into()
    }
    /// `f64`.
    pub fn f64(cx: Context<'c>) -> Self {
        melior::ir::Type::float64(cx.to_melior()).into()
    }
    /// `index`.
    pub fn index(cx: Context<'c>) -> Self {
        melior::ir::Type::index(cx.to_melior()).into()
    }
    /// Signless integer of `width` bits.
    pub fn integer(cx: Context<'c>, width: u32) -> Self {
        melior::ir::Type::from(IntegerType::new(cx.to_melior(), width)).into()
    }
    /// Function type.
    pub fn function(cx: Context<'c>, inputs: &[Type<'c>], results: &[Type<'c>]) -> Self {
        let inputs: Vec<_> = inputs.iter().map(|ty| ty.to_melior()).collect();
        let results: Vec<_> = results.iter().map(|ty| ty.to_melior()).collect();
        melior::ir::Type::from(FunctionType::new(cx.to_melior(), &inputs, &results)).into()
    }
    /// Ranked tensor.
    pub fn tensor(shape: &[i64], element: Type<'c>, encoding: Option<Attr<'c>>) -> Self {
        let encoding = encoding.map_or(c!(mlirAttributeGetNull()), |a| a.raw());
        Self::from_raw(c!(mlirRankedTensorTypeGet(shape.len() as isize, shape.as_ptr(), element.raw(), encoding)))
    }
    /// Memref of identity layout.
    pub fn memref(shape: &[i64], element: Type<'c>, memory_space: Option<Attr<'c>>) -> Self {
        let space = memory_space.map_or(c!(mlirAttributeGetNull()), |a| a.raw());
        Self::from_raw(c!(mlirMemRefTypeContiguousGet(element.raw(), shape.len() as isize, shape.as_ptr(), space)))
    }
    /// Unranked memref.
    pub fn unranked_memref(element: Type<'c>, memory_space: Option<Attr<'c>>) -> Self {
        let space = memory_space.map_or(c!(mlirAttributeGetNull()), |a| a.raw());
        Self::from_raw(c!(mlirUnrankedMemRefTypeGet(element.raw(), space)))
    }
    /// Whether this is an unranked tensor.
    pub fn is_unranked_tensor(self) -> bool {
        c!(mlirTypeIsAUnrankedTensor(self.raw()))
    }
    /// Memref with a strided layout; `strides` and `offset` in elements.
    pub fn strided_memref(
        shape: &[i64],
        element: Type<'c>,
        offset: i64,
        strides: &[i64],
        memory_space: Option<Attr<'c>>,
    ) -> Self {
        let space = memory_space.map_or(c!(mlirAttributeGetNull()), |a| a.raw());
        let cx = c!(mlirTypeGetContext(element.raw()));
        let layout = c!(mlirStridedLayoutAttrGet(cx, offset, strides.len() as isize, strides.as_ptr()));
        Self::from_raw(c!(mlirMemRefTypeGet(element.raw(), shape.len() as isize, shape.as_ptr(), layout, space)))
    }
    /// A ranked memref of another shape, with the layout, elements and memory space of this one.
    pub fn memref_of_shape(self, shape: &[i64]) -> Self {
        let layout = c!(mlirMemRefTypeGetLayout(self.raw()));
        let space = c!(mlirMemRefTypeGetMemorySpace(self.raw()));
        let element = self.element().raw();
        Self::from_raw(c!(mlirMemRefTypeGet(element, shape.len() as isize, shape.as_ptr(), layout, space)))
    }
    /// A memref with elements of another type, its shape, layout and memory space as they are.
    pub fn with_element(self, element: Type<'c>) -> Self {
        let Some(shape) = self.shape() else { return Self::unranked_memref(element, self.memref_space()) };
        let layout = c!(mlirMemRefTypeGetLayout(self.raw()));
        let space = c!(mlirMemRefTypeGetMemorySpace(self.raw()));
        Self::from_raw(c!(mlirMemRefTypeGet(element.raw(), shape.len() as isize, shape.as_ptr(), layout, space)))
    }
    /// Fixed vector.
    pub fn vector(shape: &[i64], element: Type<'c>) -> Self {
        Self::from_raw(c!(mlirVectorTypeGet(shape.len() as isize, shape.as_ptr(), element.raw())))
    }

    /// The context.
    pub fn context(self) -> Context<'c> {
        Context::from_raw(c!(mlirTypeGetContext(self.raw())))
    }
    /// Whether this is `index`.
    pub fn is_index(self) -> bool {
        c!(mlirTypeIsAIndex(self.raw()))
    }
    /// Whether this is any float type.
    pub fn is_float(self) -> bool {
        c!(mlirTypeIsAFloat(self.raw()))
    }
    /// Width in bits of an integer type.
    pub fn integer_width(self) -> Option<u32> {
        c!(mlirTypeIsAInteger(self.raw())).then(|| c!(mlirIntegerTypeGetWidth(self.raw())))
    }
    /// Width in bits of a float type.
    pub fn float_width(self) -> Option<u32> {
        self.is_float().then(|| c!(mlirFloatTypeGetWidth(self.raw())))
    }
    /// Whether this is a ranked or unranked tensor, or a type of another dialect that implements `TensorLikeType`.
    pub fn is_tensor(self) -> bool {
        // SAFETY: defined in the shim; the type is live (crate invariant).
        unsafe { monopour_shim_is_tensor(self.raw()) }
    }
    /// Whether this is a ranked or unranked memref.
    pub fn is_memref(self) -> bool {
        c!(mlirTypeIsAMemRef(self.raw())) || c!(mlirTypeIsAUnrankedMemRef(self.raw()))
    }
    /// Whether this is a vector.
    pub fn is_vector(self) -> bool {
        c!(mlirTypeIsAVector(self.raw()))
    }
    /// Whether this is a vector with scalable dimensions.
    pub fn is_scalable_vector(self) -> bool {
        self.is_vector() && c!(mlirVectorTypeIsScalable(self.raw()))
    }
    /// Shape of a ranked shaped type.
    pub fn shape(self) -> Option<Vec<i64>> {
        if !c!(mlirTypeIsAShaped(self.raw())) || !c!(mlirShapedTypeHasRank(self.raw())) {
            return None;
        }
        let rank = c!(mlirShapedTypeGetRank(self.raw())) as isize;
        Some((0..rank).map(|i| c!(mlirShapedTypeGetDimSize(self.raw(), i))).collect())
    }
    /// Element type of a shaped type, else the type itself.
    pub fn element(self) -> Type<'c> {
        if c!(mlirTypeIsAShaped(self.raw())) {
            Self::from_raw(c!(mlirShapedTypeGetElementType(self.raw())))
        } else {
            self
        }
    }
    /// View as a ranked tensor.
    pub fn as_tensor(self) -> Option<TensorType<'c>> {
        if !c!(mlirTypeIsARankedTensor(self.raw())) {
            return None;
        }
        let encoding = c!(mlirRankedTensorTypeGetEncoding(self.raw()));
        Some(TensorType { shape: self.shape()?, element: self.element(), encoding: Attr::non_null(encoding) })
    }
    /// View as a ranked memref with a strided layout; `None` for others.
    pub fn as_memref(self) -> Option<MemRefType<'c>> {
        if !c!(mlirTypeIsAMemRef(self.raw())) {
            return None;
        }
        let shape = self.shape()?;
        let (strides, offset) = self.memref_strides(&shape)?;
        let memory_space = Attr::non_null(c!(mlirMemRefTypeGetMemorySpace(self.raw())));
        Some(MemRefType { shape, element: self.element(), strides, offset, memory_space })
    }
    /// Strides and offset in elements; `None` for a layout that is not strided.
    fn memref_strides(self, shape: &[i64]) -> Option<(Vec<i64>, i64)> {
        let layout = c!(mlirMemRefTypeGetLayout(self.raw()));
        // MLIR computes the strides of a map by simplifying affine expressions. Most memrefs have the identity layout.
        if c!(mlirAttributeIsAAffineMap(layout))
            && c!(mlirAffineMapIsIdentity(c!(mlirAffineMapAttrGetValue(layout))))
            && let Some(strides) = row_major_strides(shape)
        {
            return Some((strides, 0));
        }
        let mut strides = vec![0i64; shape.len()];
        let mut offset = 0i64;
        let ok = c!(mlirMemRefTypeGetStridesAndOffset(self.raw(), strides.as_mut_ptr(), &raw mut offset));
        (ok.value != 0).then_some((strides, offset))
    }
    /// Memory space of a memref, ranked or not.
    pub fn memref_space(self) -> Option<Attr<'c>> {
        if c!(mlirTypeIsAMemRef(self.raw())) {
            return Attr::non_null(c!(mlirMemRefTypeGetMemorySpace(self.raw())));
        }
        let unranked = c!(mlirTypeIsAUnrankedMemRef(self.raw()));
        unranked.then(|| Attr::non_null(c!(mlirUnrankedMemrefGetMemorySpace(self.raw())))).flatten()
    }
    /// Layout map of a memref.
    pub fn memref_layout(self) -> Option<AffineMap<'c>> {
        c!(mlirTypeIsAMemRef(self.raw())).then(|| AffineMap::from_raw(c!(mlirMemRefTypeGetAffineMap(self.raw()))))
    }
    /// View as a vector.
    pub fn as_vector(self) -> Option<VectorType<'c>> {
        self.is_vector().then(|| VectorType { shape: self.shape().unwrap_or_default(), element: self.element() })
    }
    /// Inputs and results of a function type.
    pub fn as_function(self) -> Option<(Vec<Type<'c>>, Vec<Type<'c>>)> {
        if !c!(mlirTypeIsAFunction(self.raw())) {
            return None;
        }
        let n = c!(mlirFunctionTypeGetNumInputs(self.raw()));
        let m = c!(mlirFunctionTypeGetNumResults(self.raw()));
        let inputs = (0..n).map(|i| Self::from_raw(c!(mlirFunctionTypeGetInput(self.raw(), i)))).collect();
        let results = (0..m).map(|i| Self::from_raw(c!(mlirFunctionTypeGetResult(self.raw(), i)))).collect();
        Some((inputs, results))
    }
    /// Bytes of one element in memory: `i1` takes one byte, `index` eight; `None` for types without a size.
    pub fn element_size_bytes(self) -> Option<u64> {
        let element = self.element();
        if element.is_index() {
            return Some(8);
        }
        let bits = element.integer_width().or_else(|| element.float_width())?;
        Some(u64::from(bits.div_ceil(8)).next_power_of_two())
    }
    /// Bytes of a static contiguous shaped value.
    pub fn static_size_bytes(self) -> Option<u64> {
        let mut bytes = self.element_size_bytes()?;
        for d in self.shape()? {
            bytes = bytes.checked_mul(u64::try_from(d).ok()?)?;
        }
        Some(bytes)
    }
}

/// Row-major strides of a shape: dynamic outside of a dynamic size. `None` for an empty memref, for which MLIR has rules of its own.
fn row_major_strides(shape: &[i64]) -> Option<Vec<i64>> {
    let mut stride = Some(1_i64);
    let mut strides = vec![0; shape.len()];
    for (at, size) in strides.iter_mut().zip(shape).rev() {
        *at = stride.unwrap_or(DYNAMIC);
        stride = match (stride, *size) {
            (_, 0) => return None,
            (None, _) | (_, DYNAMIC) => None,
            (Some(stride), size) => Some(stride.checked_mul(size)?),
        };
    }
    Some(strides)
}

impl MemRefType<'_> {
    /// Whether the layout is row-major, contiguous, with offset 0 (dynamic dims allowed only where strides stay provable).
    pub fn is_identity(&self) -> bool {
        if self.offset != 0 {
            return false;
        }
        // Without elements any layout is the identity.
        if self.shape.contains(&0) {
            return true;
        }
        let mut expected = 1i64;
        for (d, s) in self.shape.iter().zip(&self.strides).rev() {
            if *s != expected {
                return false;
            }
            expected = if *d == DYNAMIC || expected == DYNAMIC { DYNAMIC } else { expected * d };
        }
        true
    }
}

impl MemRefType<'_> {
    /// Whether the elements lie row-major without gaps, at any known offset, and all extents are known.
    pub fn is_static_and_contiguous(&self) -> bool {
        self.offset != DYNAMIC
            && self.shape.iter().all(|d| *d != DYNAMIC)
            && MemRefType { offset: 0, ..self.clone() }.is_identity()
    }
}

unsafe extern "C" {
    // isa<TensorType> or isa<TensorLikeType>.
    fn monopour_shim_is_tensor(ty: mlir_sys::MlirType) -> bool;
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&string::collect(|cb, user| c!(mlirTypePrint(self.raw(), cb, user))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    #[test]
    fn strides_of_a_shape_are_mlirs() {
        let cx = Context::new();
        let types = [
            "memref<f32>",
            "memref<4xf32>",
            "memref<2x3x5xi8>",
            "memref<?x3x?x5xf32>",
            "memref<3x?x0x2xf32>",
            "memref<2x4xf32, affine_map<(d0, d1) -> (d0, d1)>>",
            "memref<2x4xf32, affine_map<(d0, d1) -> (d0 * 8 + d1 + 3)>>",
            "memref<2x4xf32, strided<[?, 2], offset: 7>, 1 : i32>",
        ];
        for text in types {
            let ty = Type::parse(cx, text).unwrap_or_else(|| panic!("{text} is a type"));
            let found = ty.as_memref().unwrap_or_else(|| panic!("{text} is strided"));
            let (mut strides, mut offset) = (vec![0_i64; found.shape.len()], 0_i64);
            let ok = c!(mlirMemRefTypeGetStridesAndOffset(ty.raw(), strides.as_mut_ptr(), &raw mut offset));
            assert!(ok.value != 0);
            assert_eq!((found.strides, found.offset), (strides, offset), "{text}");
        }
        let tiled = Type::parse(cx, "memref<8x8xf32, affine_map<(i, j) -> (i floordiv 4, j, i mod 4)>>");
        assert!(tiled.is_some_and(|ty| ty.as_memref().is_none()), "a tiled layout has no strides");
    }
}
