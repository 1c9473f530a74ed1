//! Hand-written programs, run on the CPU and on a GPU: values, counts, errors, leaks.

mod cpu;
mod devices;
mod gpu;
mod pages;
mod support;
