//! Ownership of whole programs: executed with every choice of branches, compared with upstream's, and as text.

mod around;
mod errors;
mod execute;
mod growth;
mod lifetimes;
mod own_op;
mod random_blocks;
mod stages;
mod support;
mod takes;
mod text;
mod upstream;
