//! The messages of an ONNX file. The numbers are those of the format.
//!
//! Limits: fields that no compilation reads (documentation, training, quantization annotations, metadata) are skipped.

use bytes::Bytes;
use prost::{Message, Oneof};

/// A model file.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    /// Version of the file format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The tool that wrote the file.
    #[prost(string, tag = "2")]
    pub producer_name: String,
    /// Versions of the operator sets, by domain.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// The main graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// Functions of this model.
    #[prost(message, repeated, tag = "25")]
    pub functions: Vec<FunctionProto>,
}

/// Version of one operator set.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    /// Empty: ai.onnx.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A function: an op that other ops define.
#[derive(Clone, PartialEq, Message)]
pub struct FunctionProto {
    /// The op type of its calls.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Names of the operands.
    #[prost(string, repeated, tag = "4")]
    pub input: Vec<String>,
    /// Names of the results.
    #[prost(string, repeated, tag = "5")]
    pub output: Vec<String>,
    /// Attributes without a default value.
    #[prost(string, repeated, tag = "6")]
    pub attribute: Vec<String>,
    /// The body.
    #[prost(message, repeated, tag = "7")]
    pub node: Vec<NodeProto>,
    /// Versions of the operator sets of the body.
    #[prost(message, repeated, tag = "9")]
    pub opset_import: Vec<OperatorSetIdProto>,
    /// The domain of its calls.
    #[prost(string, tag = "10")]
    pub domain: String,
    /// Attributes with a default value.
    #[prost(message, repeated, tag = "11")]
    pub attribute_proto: Vec<AttributeProto>,
    /// Distinguishes functions of one name.
    #[prost(string, tag = "13")]
    pub overload: String,
}

/// A node of a graph.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    /// Names of the operands; empty: not given.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the results; empty: not wanted.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// The name, which may be empty.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The op.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// Attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The operator set; empty: ai.onnx.
    #[prost(string, tag = "7")]
    pub domain: String,
    /// Distinguishes functions of one name.
    #[prost(string, tag = "8")]
    pub overload: String,
}

/// A graph.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    /// Nodes, each after those that it reads.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// The name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constants.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Inputs; one of an initializer's name has a default value.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// Sparse constants.
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<SparseTensorProto>,
}

/// A tensor whose elements are mostly zero.
#[derive(Clone, PartialEq, Message)]
pub struct SparseTensorProto {
    /// The other elements.
    #[prost(message, optional, tag = "1")]
    pub values: Option<TensorProto>,
    /// Their positions.
    #[prost(message, optional, tag = "2")]
    pub indices: Option<TensorProto>,
    /// Dimensions.
    #[prost(int64, repeated, tag = "3")]
    pub dims: Vec<i64>,
}

/// An attribute of a node.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Of type FLOAT.
    #[prost(float, tag = "2")]
    pub f: f32,
    /// Of type INT.
    #[prost(int64, tag = "3")]
    pub i: i64,
    /// Of type STRING.
    #[prost(bytes = "bytes", tag = "4")]
    pub s: Bytes,
    /// Of type TENSOR.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// Of type GRAPH.
    #[prost(message, optional, tag = "6")]
    pub g: Option<GraphProto>,
    /// Of type FLOATS.
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    /// Of type INTS.
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    /// Of type STRINGS.
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// Of type TYPE_PROTO.
    #[prost(message, optional, tag = "14")]
    pub tp: Option<TypeProto>,
    /// The kind, see [`attribute_type`].
    #[prost(int32, tag = "20")]
    pub r#type: i32,
    /// In a function: the attribute of the call that this one is.
    #[prost(string, tag = "21")]
    pub ref_attr_name: String,
    /// Of type SPARSE_TENSOR.
    #[prost(message, optional, tag = "22")]
    pub sparse_tensor: Option<SparseTensorProto>,
}

/// Values of [`AttributeProto::type`].
pub mod attribute_type {
    /// A float.
    pub const FLOAT: i32 = 1;
    /// An integer.
    pub const INT: i32 = 2;
    /// A string.
    pub const STRING: i32 = 3;
    /// A tensor.
    pub const TENSOR: i32 = 4;
    /// A graph.
    pub const GRAPH: i32 = 5;
    /// Floats.
    pub const FLOATS: i32 = 6;
    /// Integers.
    pub const INTS: i32 = 7;
    /// Strings.
    pub const STRINGS: i32 = 8;
    /// A sparse tensor.
    pub const SPARSE_TENSOR: i32 = 11;
    /// A type.
    pub const TYPE_PROTO: i32 = 13;
}

/// A tensor: its elements in `raw_data`, in the field of its type, or in another file.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    /// Dimensions.
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// The element type, see [`super::DataType`].
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Elements of f32.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements of at most 32 bits, f16 and bf16 as their bits.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Strings.
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub string_data: Vec<Bytes>,
    /// Elements of i64.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// The name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements, little endian.
    #[prost(bytes = "bytes", tag = "9")]
    pub raw_data: Bytes,
    /// Elements of f64.
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    /// Elements of u32 and u64.
    #[prost(uint64, repeated, tag = "11")]
    pub uint64_data: Vec<u64>,
    /// Where the elements are in another file.
    #[prost(message, repeated, tag = "13")]
    pub external_data: Vec<StringStringEntryProto>,
    /// 1: in another file.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

/// A key and its value.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    /// The key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Name and type of an input or output.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    /// Its kind.
    #[prost(oneof = "TypeValue", tags = "1, 4, 5, 8, 9")]
    pub value: Option<TypeValue>,
}

/// Kinds of types.
#[derive(Clone, PartialEq, Oneof)]
pub enum TypeValue {
    /// A tensor.
    #[prost(message, tag = "1")]
    Tensor(TensorTypeProto),
    /// A sequence.
    #[prost(message, tag = "4")]
    Sequence(ElementTypeProto),
    /// A map.
    #[prost(message, tag = "5")]
    Map(MapTypeProto),
    /// A sparse tensor.
    #[prost(message, tag = "8")]
    SparseTensor(TensorTypeProto),
    /// An optional.
    #[prost(message, tag = "9")]
    Optional(ElementTypeProto),
}

/// Type of a tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// The element type.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// The shape, if the rank is known.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// Type of a sequence or an optional.
#[derive(Clone, PartialEq, Message)]
pub struct ElementTypeProto {
    /// Type of an element.
    #[prost(message, optional, boxed, tag = "1")]
    pub elem_type: Option<Box<TypeProto>>,
}

/// Type of a map, which is only named in messages.
#[derive(Clone, PartialEq, Message)]
pub struct MapTypeProto {
    /// The key's type.
    #[prost(int32, tag = "1")]
    pub key_type: i32,
}

/// A shape.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    /// Dimensions.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// A dimension.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// A number or a name; unknown without.
    #[prost(oneof = "DimensionValue", tags = "1, 2")]
    pub value: Option<DimensionValue>,
}

/// Kinds of dimensions.
#[derive(Clone, PartialEq, Oneof)]
pub enum DimensionValue {
    /// A number.
    #[prost(int64, tag = "1")]
    Value(i64),
    /// A symbol.
    #[prost(string, tag = "2")]
    Param(String),
}
