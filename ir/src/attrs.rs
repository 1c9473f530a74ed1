//! Attributes.

use crate::{AffineMap, Context, Type, string};
use mlir_sys::MlirAttribute;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A uniqued MLIR attribute.
#[derive(Clone, Copy, Debug)]
pub struct Attr {
    pub(crate) raw: MlirAttribute,
}

impl PartialEq for Attr {
    fn eq(&self, other: &Self) -> bool {
        self.raw.ptr == other.raw.ptr
    }
}
impl Eq for Attr {}
impl Hash for Attr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.ptr.hash(state);
    }
}

impl Attr {
    pub(crate) fn from_raw(raw: MlirAttribute) -> Self {
        Self { raw }
    }
    pub(crate) fn non_null(raw: MlirAttribute) -> Option<Self> {
        (!raw.ptr.is_null()).then_some(Self { raw })
    }
    /// Parses an attribute; `None` if the text is not one.
    pub fn parse(cx: Context, text: &str) -> Option<Self> {
        Self::non_null(c!(mlirAttributeParseGet(cx.raw.0, string::to_ref(text))))
    }
    /// String.
    pub fn string(cx: Context, text: &str) -> Self {
        Self::from_raw(c!(mlirStringAttrGet(cx.raw.0, string::to_ref(text))))
    }
    /// Unit.
    pub fn unit(cx: Context) -> Self {
        Self::from_raw(c!(mlirUnitAttrGet(cx.raw.0)))
    }
    /// Boolean.
    pub fn bool(cx: Context, value: bool) -> Self {
        Self::from_raw(c!(mlirBoolAttrGet(cx.raw.0, i32::from(value))))
    }
    /// Integer of an integer or index type.
    pub fn int(ty: Type, value: i64) -> Self {
        Self::from_raw(c!(mlirIntegerAttrGet(ty.raw, value)))
    }
    /// 64-bit signless integer.
    pub fn i64(cx: Context, value: i64) -> Self {
        Self::int(Type::integer(cx, 64), value)
    }
    /// `index` integer.
    pub fn index(cx: Context, value: i64) -> Self {
        Self::int(Type::index(cx), value)
    }
    /// Float of a float type.
    pub fn float(ty: Type, value: f64) -> Self {
        let cx = ty.context();
        Self::from_raw(c!(mlirFloatAttrDoubleGet(cx.raw.0, ty.raw, value)))
    }
    /// Type.
    pub fn ty(ty: Type) -> Self {
        Self::from_raw(c!(mlirTypeAttrGet(ty.raw)))
    }
    /// Reference to a symbol of the same table.
    pub fn symbol(cx: Context, name: &str) -> Self {
        Self::from_raw(c!(mlirFlatSymbolRefAttrGet(cx.raw.0, string::to_ref(name))))
    }
    /// Array.
    pub fn array(cx: Context, elements: &[Attr]) -> Self {
        let raw: Vec<_> = elements.iter().map(|a| a.raw).collect();
        Self::from_raw(c!(mlirArrayAttrGet(cx.raw.0, raw.len() as isize, raw.as_ptr())))
    }
    /// Dictionary.
    pub fn dict(cx: Context, entries: &[(&str, Attr)]) -> Self {
        let named: Vec<_> = entries.iter().map(|(name, value)| named(cx, name, *value)).collect();
        Self::from_raw(c!(mlirDictionaryAttrGet(cx.raw.0, named.len() as isize, named.as_ptr())))
    }
    /// `array<i64: ...>`.
    pub fn dense_i64(cx: Context, values: &[i64]) -> Self {
        Self::from_raw(c!(mlirDenseI64ArrayGet(cx.raw.0, values.len() as isize, values.as_ptr())))
    }
    /// `array<i32: ...>`.
    pub fn dense_i32(cx: Context, values: &[i32]) -> Self {
        Self::from_raw(c!(mlirDenseI32ArrayGet(cx.raw.0, values.len() as isize, values.as_ptr())))
    }

    /// String value (also the text of a string-like symbol reference is NOT returned: see [`Attr::as_symbol`]).
    pub fn as_string(&self) -> Option<&str> {
        c!(mlirAttributeIsAString(self.raw)).then(|| string::from_ref(c!(mlirStringAttrGetValue(self.raw))))
    }
    /// Name of a flat symbol reference.
    pub fn as_symbol(&self) -> Option<&str> {
        c!(mlirAttributeIsAFlatSymbolRef(self.raw))
            .then(|| string::from_ref(c!(mlirFlatSymbolRefAttrGetValue(self.raw))))
    }
    /// Value of an integer attribute; booleans give 0 and 1.
    pub fn as_int(&self) -> Option<i64> {
        if c!(mlirAttributeIsABool(self.raw)) {
            return Some(i64::from(c!(mlirBoolAttrGetValue(self.raw))));
        }
        c!(mlirAttributeIsAInteger(self.raw)).then(|| c!(mlirIntegerAttrGetValueInt(self.raw)))
    }
    /// Value of a boolean attribute.
    pub fn as_bool(&self) -> Option<bool> {
        c!(mlirAttributeIsABool(self.raw)).then(|| c!(mlirBoolAttrGetValue(self.raw)))
    }
    /// Value of a float attribute, as f64.
    pub fn as_float(&self) -> Option<f64> {
        c!(mlirAttributeIsAFloat(self.raw)).then(|| c!(mlirFloatAttrGetValueDouble(self.raw)))
    }
    /// Type of a type attribute.
    pub fn as_type(&self) -> Option<Type> {
        c!(mlirAttributeIsAType(self.raw)).then(|| Type::from_raw(c!(mlirTypeAttrGetValue(self.raw))))
    }
    /// Affine map of an affine map attribute.
    pub fn as_affine_map(&self) -> Option<AffineMap> {
        c!(mlirAttributeIsAAffineMap(self.raw)).then(|| AffineMap { raw: c!(mlirAffineMapAttrGetValue(self.raw)) })
    }
    /// Elements of an array attribute.
    pub fn as_array(&self) -> Option<Vec<Attr>> {
        if !c!(mlirAttributeIsAArray(self.raw)) {
            return None;
        }
        let n = c!(mlirArrayAttrGetNumElements(self.raw));
        Some((0..n).map(|i| Attr::from_raw(c!(mlirArrayAttrGetElement(self.raw, i)))).collect())
    }
    /// Entry of a dictionary attribute.
    pub fn get(&self, name: &str) -> Option<Attr> {
        if !c!(mlirAttributeIsADictionary(self.raw)) {
            return None;
        }
        Self::non_null(c!(mlirDictionaryAttrGetElementByName(self.raw, string::to_ref(name))))
    }
    /// Entries of a dictionary attribute, sorted by name.
    pub fn as_dict(&self) -> Option<Vec<(String, Attr)>> {
        if !c!(mlirAttributeIsADictionary(self.raw)) {
            return None;
        }
        let n = c!(mlirDictionaryAttrGetNumElements(self.raw));
        Some(
            (0..n)
                .map(|i| {
                    let entry = c!(mlirDictionaryAttrGetElement(self.raw, i));
                    (string::from_ref(c!(mlirIdentifierStr(entry.name))).to_owned(), Attr::from_raw(entry.attribute))
                })
                .collect(),
        )
    }
    /// Elements of `array<i64: ..>` or `array<i32: ..>`, or of an array or 1-D dense attribute of integers.
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        if c!(mlirAttributeIsADenseI64Array(self.raw)) {
            let n = c!(mlirDenseArrayGetNumElements(self.raw));
            return Some((0..n).map(|i| c!(mlirDenseI64ArrayGetElement(self.raw, i))).collect());
        }
        if c!(mlirAttributeIsADenseI32Array(self.raw)) {
            let n = c!(mlirDenseArrayGetNumElements(self.raw));
            return Some((0..n).map(|i| i64::from(c!(mlirDenseI32ArrayGetElement(self.raw, i)))).collect());
        }
        if c!(mlirAttributeIsADenseIntElements(self.raw)) {
            let n = c!(mlirElementsAttrGetNumElements(self.raw)) as isize;
            let narrow = self.value_type().element().integer_width() == Some(32);
            return Some(
                (0..n)
                    .map(|i| {
                        if narrow {
                            i64::from(c!(mlirDenseElementsAttrGetInt32Value(self.raw, i)))
                        } else {
                            c!(mlirDenseElementsAttrGetInt64Value(self.raw, i))
                        }
                    })
                    .collect(),
            );
        }
        self.as_array()?.iter().map(Attr::as_int).collect()
    }
    /// Type that the attribute carries (of an elements attribute: its shaped type).
    pub fn value_type(&self) -> Type {
        Type::from_raw(c!(mlirAttributeGetType(self.raw)))
    }
    /// Whether this is a `dense<...>` elements attribute.
    pub fn is_dense_elements(&self) -> bool {
        c!(mlirAttributeIsADenseElements(self.raw))
    }
    /// Whether this is a `dense<...>` splat.
    pub fn is_splat(&self) -> bool {
        self.is_dense_elements() && c!(mlirDenseElementsAttrIsSplat(self.raw))
    }
    /// The element of a splat.
    pub fn splat_value(&self) -> Option<Attr> {
        self.is_splat().then(|| Attr::from_raw(c!(mlirDenseElementsAttrGetSplatValue(self.raw))))
    }
    /// Raw element bytes, little endian: a copy, splats expanded. `None` if this is not an elements attribute with
    /// values (a `dense_resource` without a blob, for one) or has sub-byte elements other than `i1` (one byte each here).
    pub fn elements_bytes(&self) -> Option<Vec<u8>> {
        let ty = self.value_type();
        if self.is_dense_elements() {
            return self.dense_bytes(ty);
        }
        self.resource_bytes().map(<[u8]>::to_vec)
    }
    fn dense_bytes(&self, ty: Type) -> Option<Vec<u8>> {
        let count = c!(mlirElementsAttrGetNumElements(self.raw)) as usize;
        if ty.element().integer_width() == Some(1) {
            return Some(
                (0..count).map(|i| u8::from(c!(mlirDenseElementsAttrGetBoolValue(self.raw, i as isize)))).collect(),
            );
        }
        let width = ty.element_size_bytes()? as usize;
        let stored = if self.is_splat() { width } else { count.checked_mul(width)? };
        if count == 0 {
            return Some(vec![]);
        }
        let data = c!(mlirDenseElementsAttrGetRawData(self.raw));
        // SAFETY: the raw buffer of a dense elements attribute holds one element for a splat, else all of them.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), stored) };
        Some(if self.is_splat() { bytes.repeat(count) } else { bytes.to_vec() })
    }
    /// The same elements under another shaped type of equal element width and element count (a tensor type with an encoding,
    /// say, or with signless integers); `None` if this is no elements attribute.
    pub fn elements_with_type(&self, ty: Type) -> Option<Attr> {
        // SAFETY: defined in the shim; both handles are live.
        ty.shape().and_then(|_| Self::non_null(unsafe { monopour_shim_elements_with_type(self.raw, ty.raw) }))
    }
    /// Whether this is a `dense_resource<...>`.
    pub fn is_resource(&self) -> bool {
        c!(mlirAttributeIsADenseResourceElements(self.raw))
    }
    /// Key of a `dense_resource<...>`.
    pub fn resource_name(&self) -> Option<&str> {
        // SAFETY: defined in the shim; the attribute is a dense resource.
        self.is_resource().then(|| string::from_ref(unsafe { monopour_shim_resource_name(self.raw) }))
    }
    /// Bytes of a `dense_resource` blob, borrowed from the context; `None` without a blob.
    pub fn resource_bytes(&self) -> Option<&[u8]> {
        if !self.is_resource() {
            return None;
        }
        let mut length = 0usize;
        // SAFETY: defined in the shim; the attribute is a dense resource.
        let data = unsafe { monopour_shim_resource_data(self.raw, &raw mut length) };
        if data.is_null() {
            return None;
        }
        // SAFETY: the blob lives as long as the context, which is never freed.
        Some(unsafe { std::slice::from_raw_parts(data, length) })
    }
}

unsafe extern "C" {
    fn monopour_shim_resource_name(attr: MlirAttribute) -> mlir_sys::MlirStringRef;
    fn monopour_shim_elements_with_type(attr: MlirAttribute, ty: mlir_sys::MlirType) -> MlirAttribute;
    fn monopour_shim_resource_data(attr: MlirAttribute, length: *mut usize) -> *const u8;
}

pub(crate) fn named(cx: Context, name: &str, value: Attr) -> mlir_sys::MlirNamedAttribute {
    let id = c!(mlirIdentifierGet(cx.raw.0, string::to_ref(name)));
    c!(mlirNamedAttributeGet(id, value.raw))
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&string::collect(|cb, user| c!(mlirAttributePrint(self.raw, cb, user))))
    }
}
