//! The lowerings, a file per family of ops.

use super::registry::Registry;

mod activations;
mod bits;
mod compare;
mod control;
mod convolution;
mod cumulative;
mod elementwise;
mod indexing;
mod movement;
mod normalization;
mod pooling;
mod products;
mod reductions;
mod scatter;
mod selection;
mod sequences;
mod shapes;
mod slices;
mod sorting;
mod suppression;

impl Default for Registry {
    /// All ops of this crate, a line per family.
    fn default() -> Self {
        let mut registry = Self::new();
        activations::register(&mut registry);
        bits::register(&mut registry);
        compare::register(&mut registry);
        control::register(&mut registry);
        convolution::register(&mut registry);
        cumulative::register(&mut registry);
        elementwise::register(&mut registry);
        indexing::register(&mut registry);
        movement::register(&mut registry);
        normalization::register(&mut registry);
        pooling::register(&mut registry);
        products::register(&mut registry);
        reductions::register(&mut registry);
        scatter::register(&mut registry);
        selection::register(&mut registry);
        sequences::register(&mut registry);
        shapes::register(&mut registry);
        slices::register(&mut registry);
        sorting::register(&mut registry);
        suppression::register(&mut registry);
        registry
    }
}
