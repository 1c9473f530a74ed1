//! One binary for all tests of `monopour-frontend`.

mod builder;
mod dynamic;
mod errors;
mod grouped;
mod layouts;
mod mapped;
mod onnx;
mod onnx_files;
mod onnx_page;
mod onnx_random;
mod panels;
mod programs;
mod random;
mod rows;
mod sizes;
mod split_k;
mod structure;
mod support;
mod whole_models;
mod wide;
