//! Dictionary attributes from and to the plain data of `monopour-contract`.

use crate::{Attr, Context};
use monopour_contract::Field;

impl<'c> Attr<'c> {
    /// A dictionary of these entries.
    pub fn from_fields(cx: Context<'c>, fields: &[(&str, Field)]) -> Self {
        let attr = |field: &Field| match field {
            Field::Text(text) => Attr::string(cx, text),
            Field::Int(value) => Attr::i64(cx, *value),
            Field::Ints(values) => Attr::dense_i64(cx, values),
            Field::Ints32(values) => Attr::dense_i32(cx, values),
        };
        let entries: Vec<(&str, Attr)> = fields.iter().map(|(name, field)| (*name, attr(field))).collect();
        Attr::dict(cx, &entries)
    }

    /// The entry of a dictionary, if it is a string, an integer or an array of integers.
    pub fn field(&self, name: &str) -> Option<Field> {
        let attr = self.get(name)?;
        let text = attr.as_string().map(|text| Field::Text(text.to_owned()));
        text.or_else(|| attr.as_int().map(Field::Int)).or_else(|| attr.as_ints().map(Field::Ints))
    }
}
