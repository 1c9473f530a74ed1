//! Ownership-based buffer deallocation.
