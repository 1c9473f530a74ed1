//! Every code is reached.
