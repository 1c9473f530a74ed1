//! In-place, ownership and planning decisions on plain indexed data.
//!
//! This crate knows no IR library.
//! A caller walks its IR once, fills a table of facts, and gets decisions back as values that print, compare and fuzz.
//! Every id is a newtype over `u32`; every answer is deterministic.
//!
//! The way through the modules:
//!
//! * [`effects`]: what an op does to the memory of its tensors, generic over the value.
//! * [`facts`] and [`builder`]: what is known about one function on tensors.
//! * [`one_shot`]: which operands are updated in place, and why the others are not (`placement` and `decisions` are its terms).
//! * [`checker`]: an independent judge of such decisions.
//! * [`ownership`]: where each allocation of a function on memrefs is freed.
//! * [`lifetimes`]: the same in any control-flow graph.
//! * [`liveness`] and [`plan`]: offsets of short-lived buffers in one arena.
//! * [`calls`]: what a caller has to know about a decided function.
//! * [`explain`]: sentences from reasons; [`text`]: facts and decisions as text.
#![forbid(unsafe_code)]

mod alias_sets;
mod beside;
mod blocks;
pub mod builder;
pub mod calls;
pub mod checker;
mod classes;
pub mod components;
mod cursor;
mod cycles;
mod decisions;
mod definitions;
mod dominance;
pub mod effects;
mod equivalence;
pub mod explain;
pub mod facts;
mod forest;
pub mod index;
mod intervals;
pub mod lifetimes;
pub mod liveness;
mod makers;
mod nesting;
mod numbering;
pub mod one_shot;
mod order;
pub mod ownership;
mod placement;
pub mod plan;
pub mod print;
pub mod random;
#[cfg(test)]
mod reference;
mod revisits;
mod subsets;
mod terms;
pub mod text;
mod trees;

#[cfg(test)]
mod blocks_tests;
#[cfg(test)]
mod complexity_tests;
#[cfg(test)]
mod generate;
#[cfg(test)]
mod one_shot_tests;
#[cfg(test)]
mod ownership_runs;
#[cfg(test)]
mod ownership_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod shared_memory_tests;
