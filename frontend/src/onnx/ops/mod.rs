//! The lowerings, a file per family of ops.

use super::Registry;

mod activations;
mod compare;
mod convolution;
mod elementwise;
mod movement;
mod normalization;
mod pooling;
mod products;
mod reductions;
mod shapes;
mod slices;

/// Adds every op of this crate.
pub(super) fn register(registry: &mut Registry) {
    activations::register(registry);
    compare::register(registry);
    convolution::register(registry);
    elementwise::register(registry);
    movement::register(registry);
    normalization::register(registry);
    pooling::register(registry);
    products::register(registry);
    reductions::register(registry);
    shapes::register(registry);
    slices::register(registry);
}

/// What a lowering returns.
type Results<'c> = Result<Vec<super::Operand<'c>>, super::Failure>;
