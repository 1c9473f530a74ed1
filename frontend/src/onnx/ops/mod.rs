//! The lowerings, a file per family of ops.

use super::registry::Registry;

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

impl Default for Registry {
    /// All ops of this crate, a line per family.
    fn default() -> Self {
        let mut registry = Self::new();
        activations::register(&mut registry);
        attention::register(&mut registry);
        causal::register(&mut registry);
        compare::register(&mut registry);
        convolution::register(&mut registry);
        elementwise::register(&mut registry);
        legacy::register(&mut registry);
        linear_attention::register(&mut registry);
        microsoft::register(&mut registry);
        microsoft_attention::register(&mut registry);
        movement::register(&mut registry);
        normalization::register(&mut registry);
        pooling::register(&mut registry);
        products::register(&mut registry);
        recurrent::register(&mut registry);
        reductions::register(&mut registry);
        rotary::register(&mut registry);
        shapes::register(&mut registry);
        slices::register(&mut registry);
        registry
    }
}
