//! From a model to tiled and fused linalg on tensors.
