//! Hand-written programs, run on the CPU and on a GPU: values, counts, errors, leaks.

mod advance;
mod counting;
mod cpu;
mod data;
mod devices;
mod engine;
mod gpu;
mod guest;
mod lent;
mod memory;
mod pages;
mod record;
mod repeated;
mod runs;
mod stored;
mod support;
mod trust;
