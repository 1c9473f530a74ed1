//! Errors of the math functions, as `docs/numerics.md` states them.
