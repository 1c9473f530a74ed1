//! Bufferization of whole programs: compared with upstream's decisions, and with expected text.

mod calls;
mod control;
mod decisions;
mod dialects;
mod differences;
mod differential;
mod eliminate;
mod errors;
mod execute;
mod foreign_loop;
mod growth;
mod interface;
mod meaning;
mod mutants;
mod own_op;
mod partial;
mod random;
mod rewrite;
mod support;
