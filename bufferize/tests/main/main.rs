//! Bufferization of whole programs: against upstream's decisions, and with the expected text.

mod decisions;
mod eliminate;
mod errors;
mod rewrite;
mod support;
