//! The compiled artifact: the seam between compile time and run time.
