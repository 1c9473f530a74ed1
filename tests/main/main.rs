//! One binary for all tests of `monopour` as a whole: programs from source to results, on every kind of device.

mod backend;
mod bad;
mod barriers;
mod checks;
mod cli;
mod convolutions;
mod copies;
mod example;
mod host;
mod numerics;
mod onnx;
mod onnx_contrib;
mod onnx_edges;
mod onnx_flow;
mod onnx_numbers;
mod opt;
mod passes;
mod phases;
mod portable;
mod programs;
mod random;
mod sizes;
mod suite;
mod terminal;
mod threads;
mod windows;
