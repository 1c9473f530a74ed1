//! The lowerings, a file per family of ops.

use super::registry::Registry;

mod activations;
mod bits;
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

impl Default for Registry {
    /// All ops of this crate, a line per family.
    fn default() -> Self {
        let mut registry = Self::new();
        activations::register(&mut registry);
        bits::register(&mut registry);
        compare::register(&mut registry);
        convolution::register(&mut registry);
        elementwise::register(&mut registry);
        movement::register(&mut registry);
        normalization::register(&mut registry);
        pooling::register(&mut registry);
        products::register(&mut registry);
        reductions::register(&mut registry);
        shapes::register(&mut registry);
        slices::register(&mut registry);
        registry
    }
}
