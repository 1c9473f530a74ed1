//! In-place, ownership and planning decisions on plain indexed data.
//!
//! This crate knows no IR library.
//! A caller walks its IR once, fills a table of facts, and gets decisions back as values that print, compare and fuzz.
//! Every id is a newtype over `u32`; every answer is deterministic.
//!
//! The modules, lowest first:
//!
//! * [`index`], [`random`], `forest`, [`components`]: typed ids and tables, seeded generators, trees, components of graphs.
//! * [`effects`]: memory effects of an op on tensors, generic over the value.
//! * [`facts`] and [`builder`]: facts about one function on tensors (`makers`: the value that a write makes).
//! * `blocks`, `numbering`, `dominance`, `cycles`, `beside`: dominators, positions, order in time, cycles, other branches.
//! * `definitions`, `intervals`: definitions behind a value, positions that conflict with a read.
//! * `subsets`, `revisits`: values that are the same slice; `footprints`: slices that have no element in common.
//! * `placement`, `order`: options and terms of decisions, the order of visits.
//! * `alias_sets`, `classes`, `classes/`, `trees`: alias classes with the conflict rules.
//! * [`one_shot`]: which operands are in place, and why the others are not; `decisions`, `equivalence`: its result;
//!   [`cost`]: what decisions copy; `fewest`, `fewest/`: a search for those of least cost.
//! * [`reuse`]: new tensors that are made in a buffer that has served its purpose.
//! * [`calls`]: summaries of decided functions for their callers.
//! * [`checker`], `checker/`, `terms`: an independent check of decisions by abstract execution.
//! * [`ownership`], `nesting`: where each allocation of a structured function on memrefs is freed.
//! * [`lifetimes`], `lifetimes/`: the same in any control-flow graph.
//! * [`liveness`] and [`plan`], `plan/`: offsets of transient buffers in one arena, by greedy orders and an exact search.
//! * [`bounds`], `bounds/`: lower bounds on memory and copies, orders of dispatches for memory, and the optima of small
//!   programs that test them.
//! * [`explain`]: sentences from reasons; [`text`], `cursor`, [`mod@print`]: facts and decisions as text.
//! * Tests only: `reference` has the conflict rules word by word, `generate` and `ownership_runs` random functions.
#![forbid(unsafe_code)]

mod alias_sets;
mod beside;
mod blocks;
pub mod bounds;
pub mod builder;
pub mod calls;
pub mod checker;
mod classes;
pub mod components;
pub mod cost;
mod cursor;
mod cycles;
mod decisions;
mod definitions;
mod dominance;
pub mod effects;
mod equivalence;
pub mod explain;
pub mod facts;
mod fewest;
mod footprints;
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
pub mod reuse;
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
mod footprints_tests;
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
mod reuse_tests;
#[cfg(test)]
mod shared_memory_tests;
