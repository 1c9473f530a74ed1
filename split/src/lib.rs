//! Kernels out of the host function; one memory plan; the host schedule.
