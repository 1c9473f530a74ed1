//! Attributes.

use crate::{AffineMap, Attr, Context, Type, string};
use melior::ir::Identifier;
use melior::ir::attribute::{
    ArrayAttribute, AttributeLike, BoolAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute, DictionaryAttribute,
    FlatSymbolRefAttribute, FloatAttribute, IntegerAttribute, StringAttribute, TypeAttribute,
};
use mlir_sys::MlirAttribute;
use std::fmt;

impl<'c> Attr<'c> {
    /// An attribute of one of melior's kinds.
    fn upcast(attr: impl AttributeLike<'c>) -> Self {
        Self::from_raw(attr.to_raw())
    }
    /// Parses an attribute; `None` if the text is not one.
    pub fn parse(cx: Context<'c>, text: &str) -> Option<Self> {
        melior::ir::Attribute::parse(cx.to_melior(), text).map(Self::from)
    }
    /// String.
    pub fn string(cx: Context<'c>, text: &str) -> Self {
        Self::upcast(StringAttribute::new(cx.to_melior(), text))
    }
    /// Unit.
    pub fn unit(cx: Context<'c>) -> Self {
        melior::ir::Attribute::unit(cx.to_melior()).into()
    }
    /// Boolean.
    pub fn bool(cx: Context<'c>, value: bool) -> Self {
        Self::upcast(BoolAttribute::new(cx.to_melior(), value))
    }
    /// Integer of an integer or index type.
    pub fn int(ty: Type<'c>, value: i64) -> Self {
        Self::upcast(IntegerAttribute::new(ty.to_melior(), value))
    }
    /// 64-bit signless integer.
    pub fn i64(cx: Context<'c>, value: i64) -> Self {
        Self::int(Type::integer(cx, 64), value)
    }
    /// `index` integer.
    pub fn index(cx: Context<'c>, value: i64) -> Self {
        Self::int(Type::index(cx), value)
    }
    /// Float of a float type.
    pub fn float(ty: Type<'c>, value: f64) -> Self {
        Self::upcast(FloatAttribute::new(ty.context().to_melior(), ty.to_melior(), value))
    }
    /// Type.
    pub fn ty(ty: Type<'c>) -> Self {
        Self::upcast(TypeAttribute::new(ty.to_melior()))
    }
    /// Reference to a symbol of the same table.
    pub fn symbol(cx: Context<'c>, name: &str) -> Self {
        Self::upcast(FlatSymbolRefAttribute::new(cx.to_melior(), name))
    }
    /// Array.
    pub fn array(cx: Context<'c>, elements: &[Attr<'c>]) -> Self {
        let elements: Vec<_> = elements.iter().map(|a| a.to_melior()).collect();
        Self::upcast(ArrayAttribute::new(cx.to_melior(), &elements))
    }
    /// Dictionary.
    pub fn dict(cx: Context<'c>, entries: &[(&str, Attr<'c>)]) -> Self {
        let cx = cx.to_melior();
        let entries: Vec<_> =
            entries.iter().map(|(name, value)| (Identifier::new(cx, name), value.to_melior())).collect();
        Self::upcast(DictionaryAttribute::new(cx, &entries))
    }
    /// `array<i64: ...>`.
    pub fn dense_i64(cx: Context<'c>, values: &[i64]) -> Self {
        Self::upcast(DenseI64ArrayAttribute::new(cx.to_melior(), values))
    }
    /// `array<i32: ...>`.
    pub fn dense_i32(cx: Context<'c>, values: &[i32]) -> Self {
        Self::upcast(DenseI32ArrayAttribute::new(cx.to_melior(), values))
    }

    /// Value of a string attribute; for a symbol reference see [`Attr::as_symbol`].
    pub fn as_string(self) -> Option<&'c str> {
        c!(mlirAttributeIsAString(self.raw())).then(|| string::from_ref(c!(mlirStringAttrGetValue(self.raw()))))
    }
    /// Name of a flat symbol reference.
    pub fn as_symbol(self) -> Option<&'c str> {
        c!(mlirAttributeIsAFlatSymbolRef(self.raw()))
            .then(|| string::from_ref(c!(mlirFlatSymbolRefAttrGetValue(self.raw()))))
    }
    /// Calls back with each flat symbol reference in the attribute, those in nested arrays and dictionaries included.
    pub fn each_symbol(self, each: &mut impl FnMut(&'c str)) {
        if let Some(name) = self.as_symbol() {
            each(name);
        } else if let Some(elements) = self.as_array() {
            elements.into_iter().for_each(|element| element.each_symbol(each));
        } else if let Some(entries) = self.entries() {
            entries.into_iter().for_each(|(_, entry)| entry.each_symbol(each));
        }
    }
    /// Value of an integer attribute; booleans give 0 and 1.
    pub fn as_int(&self) -> Option<i64> {
        if c!(mlirAttributeIsABool(self.raw())) {
            return Some(i64::from(c!(mlirBoolAttrGetValue(self.raw()))));
        }
        c!(mlirAttributeIsAInteger(self.raw())).then(|| c!(mlirIntegerAttrGetValueInt(self.raw())))
    }
    /// Value of a boolean attribute.
    pub fn as_bool(&self) -> Option<bool> {
        c!(mlirAttributeIsABool(self.raw())).then(|| c!(mlirBoolAttrGetValue(self.raw())))
    }
    /// Value of a float attribute, as f64.
    pub fn as_float(&self) -> Option<f64> {
        c!(mlirAttributeIsAFloat(self.raw())).then(|| c!(mlirFloatAttrGetValueDouble(self.raw())))
    }
    /// Type of a type attribute.
    pub fn as_type(&self) -> Option<Type<'c>> {
        c!(mlirAttributeIsAType(self.raw())).then(|| Type::from_raw(c!(mlirTypeAttrGetValue(self.raw()))))
    }
    /// Affine map of an affine map attribute.
    pub fn as_affine_map(&self) -> Option<AffineMap<'c>> {
        c!(mlirAttributeIsAAffineMap(self.raw()))
            .then(|| AffineMap::from_raw(c!(mlirAffineMapAttrGetValue(self.raw()))))
    }
    /// Elements of an array attribute.
    pub fn as_array(&self) -> Option<Vec<Attr<'c>>> {
        if !c!(mlirAttributeIsAArray(self.raw())) {
            return None;
        }
        let n = c!(mlirArrayAttrGetNumElements(self.raw()));
        Some((0..n).map(|i| Attr::from_raw(c!(mlirArrayAttrGetElement(self.raw(), i)))).collect())
    }
    /// Entry of a dictionary attribute.
    pub fn get(&self, name: &str) -> Option<Attr<'c>> {
        if !c!(mlirAttributeIsADictionary(self.raw())) {
            return None;
        }
        Self::non_null(c!(mlirDictionaryAttrGetElementByName(self.raw(), string::to_ref(name))))
    }
    /// Entries of a dictionary, sorted by name.
    pub fn entries(self) -> Option<Vec<(&'c str, Attr<'c>)>> {
        let entry = |i| {
            let entry = c!(mlirDictionaryAttrGetElement(self.raw(), i));
            // Identifiers are uniqued in the context.
            (string::from_ref(c!(mlirIdentifierStr(entry.name))), Attr::from_raw(entry.attribute))
        };
        let is_dict = c!(mlirAttributeIsADictionary(self.raw()));
        is_dict.then(|| (0..c!(mlirDictionaryAttrGetNumElements(self.raw()))).map(entry).collect())
    }
    /// As [`Self::entries`], with names to change.
    pub fn as_dict(&self) -> Option<Vec<(String, Attr<'c>)>> {
        Some(self.entries()?.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
    /// Elements of an array of what [`Self::as_ints`] reads.
    pub fn as_int_lists(&self) -> Option<Vec<Vec<i64>>> {
        self.as_array()?.iter().map(Self::as_ints).collect()
    }
    /// Elements of `array<i64: ..>` or `array<i32: ..>`, or of an array or 1-D dense attribute of integers.
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        if c!(mlirAttributeIsADenseI64Array(self.raw())) {
            let n = c!(mlirDenseArrayGetNumElements(self.raw()));
            return Some((0..n).map(|i| c!(mlirDenseI64ArrayGetElement(self.raw(), i))).collect());
        }
        if c!(mlirAttributeIsADenseI32Array(self.raw())) {
            let n = c!(mlirDenseArrayGetNumElements(self.raw()));
            return Some((0..n).map(|i| i64::from(c!(mlirDenseI32ArrayGetElement(self.raw(), i)))).collect());
        }
        if c!(mlirAttributeIsADenseIntElements(self.raw())) {
            let n = c!(mlirElementsAttrGetNumElements(self.raw())) as isize;
            let narrow = self.value_type().element().integer_width() == Some(32);
            return Some(
                (0..n)
                    .map(|i| {
                        if narrow {
                            i64::from(c!(mlirDenseElementsAttrGetInt32Value(self.raw(), i)))
                        } else {
                            c!(mlirDenseElementsAttrGetInt64Value(self.raw(), i))
                        }
                    })
                    .collect(),
            );
        }
        self.as_array()?.iter().map(Attr::as_int).collect()
    }
    /// The dialect of the attribute, `gpu`.
    pub fn dialect(self) -> &'c str {
        string::from_ref(c!(mlirDialectGetNamespace(c!(mlirAttributeGetDialect(self.raw())))))
    }
    /// Type that the attribute carries (of an elements attribute: its shaped type).
    pub fn value_type(&self) -> Type<'c> {
        Type::from_raw(c!(mlirAttributeGetType(self.raw())))
    }
    /// Whether this is a `dense<...>` elements attribute.
    pub fn is_dense_elements(&self) -> bool {
        c!(mlirAttributeIsADenseElements(self.raw()))
    }
    /// Whether this is a `dense<...>` splat.
    pub fn is_splat(&self) -> bool {
        self.is_dense_elements() && c!(mlirDenseElementsAttrIsSplat(self.raw()))
    }
    /// The element of a splat.
    pub fn splat_value(&self) -> Option<Attr<'c>> {
        self.is_splat().then(|| Attr::from_raw(c!(mlirDenseElementsAttrGetSplatValue(self.raw()))))
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
    fn dense_bytes(self, ty: Type) -> Option<Vec<u8>> {
        let count = c!(mlirElementsAttrGetNumElements(self.raw())) as usize;
        if ty.element().integer_width() == Some(1) {
            return Some(
                (0..count).map(|i| u8::from(c!(mlirDenseElementsAttrGetBoolValue(self.raw(), i as isize)))).collect(),
            );
        }
        let width = ty.element_size_bytes()? as usize;
        let stored = if self.is_splat() { width } else { count.checked_mul(width)? };
        if count == 0 {
            return Some(vec![]);
        }
        let data = c!(mlirDenseElementsAttrGetRawData(self.raw()));
        // SAFETY: the raw buffer of a dense elements attribute holds one element for a splat, else all of them.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), stored) };
        Some(if self.is_splat() { bytes.repeat(count) } else { bytes.to_vec() })
    }
    /// The same elements under another shaped type of equal element width and element count (a tensor type with an encoding,
    /// say, or with signless integers); `None` if this is no elements attribute.
    pub fn elements_with_type(&self, ty: Type<'c>) -> Option<Attr<'c>> {
        // SAFETY: defined in the shim; both handles are live.
        ty.shape().and_then(|_| Self::non_null(unsafe { monopour_shim_elements_with_type(self.raw(), ty.raw()) }))
    }
    /// The same integers, extended by their sign to the integer type `element`; `None` if these are no `dense<...>` integers
    /// of at most its width.
    pub fn elements_extended(&self, element: Type<'c>) -> Option<Attr<'c>> {
        element.integer_width()?;
        // SAFETY: defined in the shim; both handles are live, and the type is one of integers.
        Self::non_null(unsafe { monopour_shim_elements_extended(self.raw(), element.raw()) })
    }
    /// Whether this is a `dense_resource<...>`.
    pub fn is_resource(&self) -> bool {
        c!(mlirAttributeIsADenseResourceElements(self.raw()))
    }
    /// Key of a `dense_resource<...>`.
    pub fn resource_name(self) -> Option<&'c str> {
        // SAFETY: defined in the shim; the attribute is a dense resource.
        self.is_resource().then(|| string::from_ref(unsafe { monopour_shim_resource_name(self.raw()) }))
    }
    /// Bytes of a `dense_resource` blob, borrowed from the context; `None` without a blob.
    pub fn resource_bytes(self) -> Option<&'c [u8]> {
        if !self.is_resource() {
            return None;
        }
        let mut length = 0usize;
        // SAFETY: defined in the shim; the attribute is a dense resource.
        let data = unsafe { monopour_shim_resource_data(self.raw(), &raw mut length) };
        if data.is_null() {
            return None;
        }
        // SAFETY: the blob lives as long as the context.
        Some(unsafe { std::slice::from_raw_parts(data, length) })
    }
}

unsafe extern "C" {
    fn monopour_shim_resource_name(attr: MlirAttribute) -> mlir_sys::MlirStringRef;
    fn monopour_shim_elements_extended(attr: MlirAttribute, element: mlir_sys::MlirType) -> MlirAttribute;
    fn monopour_shim_elements_with_type(attr: MlirAttribute, ty: mlir_sys::MlirType) -> MlirAttribute;
    fn monopour_shim_resource_data(attr: MlirAttribute, length: *mut usize) -> *const u8;
}

pub(crate) fn named(cx: Context, name: &str, value: Attr) -> mlir_sys::MlirNamedAttribute {
    let id = c!(mlirIdentifierGet(cx.raw(), string::to_ref(name)));
    c!(mlirNamedAttributeGet(id, value.raw()))
}

impl fmt::Display for Attr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&string::collect(|cb, user| c!(mlirAttributePrint(self.raw(), cb, user))))
    }
}
