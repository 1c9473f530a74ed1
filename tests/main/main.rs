//! One binary for all tests of `monopour` as a whole: programs from source to results, on every kind of device.

mod attention;
mod backend;
mod bad;
mod barriers;
mod checks;
mod cli;
mod convolutions;
mod copies;
mod damage;
mod dynamic_sizes;
mod emulated;
mod ends;
mod example;
mod explained;
mod host;
mod interpreted;
mod long_models;
#[path = "../../runtime/examples/serve/measure.rs"]
mod measure;
mod minimal;
mod minimal_orders;
mod minimal_tiles;
mod numerics;
mod onnx;
mod onnx_contrib;
mod onnx_edges;
mod onnx_flow;
mod onnx_numbers;
mod opt;
mod padded_inputs;
mod padded_results;
mod passes;
mod phases;
mod portable;
mod programs;
mod quantised;
mod random;
mod sizes;
mod stored;
mod suite;
mod terminal;
mod threads;
mod traced;
mod windows;
#[path = "../../runtime/examples/serve/wire.rs"]
mod wire;
