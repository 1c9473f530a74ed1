//! The facade of monopour.
