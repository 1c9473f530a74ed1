//! Chores: the layering check, docs, and other repository upkeep.
fn main() {}
