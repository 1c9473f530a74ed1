//! The lowerings, a file per family of ops.

use super::Registry;

mod activations;
mod attention;
mod causal;
mod cells;
mod compare;
mod convolution;
mod elementwise;
mod legacy;
mod linear_attention;
mod microsoft;
mod microsoft_attention;
mod movement;
mod normalization;
mod pooling;
mod products;
mod recurrence;
mod recurrent;
mod reductions;
mod rotary;
mod shapes;
mod slices;

/// Adds every op of this crate.
pub(super) fn register(registry: &mut Registry) {
    activations::register(registry);
    attention::register(registry);
    causal::register(registry);
    compare::register(registry);
    convolution::register(registry);
    elementwise::register(registry);
    legacy::register(registry);
    linear_attention::register(registry);
    microsoft::register(registry);
    microsoft_attention::register(registry);
    movement::register(registry);
    normalization::register(registry);
    pooling::register(registry);
    products::register(registry);
    recurrent::register(registry);
    reductions::register(registry);
    rotary::register(registry);
    shapes::register(registry);
    slices::register(registry);
}

/// What a lowering returns.
type Results<'c> = Result<Vec<super::Operand<'c>>, super::Failure>;
