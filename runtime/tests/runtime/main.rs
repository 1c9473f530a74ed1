//! Hand-written programs, run on the CPU and on a GPU: values, counts, errors, leaks.

mod cpu;
mod data;
mod devices;
mod gpu;
mod guest;
mod pages;
mod support;
mod trust;
