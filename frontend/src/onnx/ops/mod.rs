//! The lowerings, a file per family of ops.

use super::registry::Registry;

mod activations;
mod attention;
mod bits;
mod block_weights;
mod causal;
mod cells;
mod compare;
mod control;
mod conv_transpose;
mod convolution;
mod cumulative;
mod einsum;
mod elementwise;
mod image;
mod indexing;
mod legacy;
mod linear_attention;
mod linear_systems;
mod losses;
mod microsoft;
mod microsoft_attention;
mod microsoft_quantized;
mod movement;
mod normalization;
mod pooling;
mod products;
mod quantization;
mod random;
mod recurrence;
mod recurrent;
mod reductions;
mod regions;
mod resize;
mod resize_axes;
mod rotary;
mod sampling;
mod scalars;
mod scatter;
mod selection;
mod sequences;
mod shapes;
mod signal;
mod slices;
mod sorting;
mod suppression;

impl Default for Registry {
    /// All ops of this crate, a line per family.
    fn default() -> Self {
        let mut registry = Self::new();
        activations::register(&mut registry);
        attention::register(&mut registry);
        bits::register(&mut registry);
        causal::register(&mut registry);
        compare::register(&mut registry);
        control::register(&mut registry);
        convolution::register(&mut registry);
        conv_transpose::register(&mut registry);
        cumulative::register(&mut registry);
        einsum::register(&mut registry);
        elementwise::register(&mut registry);
        image::register(&mut registry);
        indexing::register(&mut registry);
        legacy::register(&mut registry);
        linear_attention::register(&mut registry);
        linear_systems::register(&mut registry);
        losses::register(&mut registry);
        microsoft::register(&mut registry);
        microsoft_attention::register(&mut registry);
        microsoft_quantized::register(&mut registry);
        movement::register(&mut registry);
        normalization::register(&mut registry);
        pooling::register(&mut registry);
        products::register(&mut registry);
        quantization::register(&mut registry);
        random::register(&mut registry);
        recurrent::register(&mut registry);
        reductions::register(&mut registry);
        regions::register(&mut registry);
        resize::register(&mut registry);
        rotary::register(&mut registry);
        sampling::register(&mut registry);
        scatter::register(&mut registry);
        selection::register(&mut registry);
        sequences::register(&mut registry);
        shapes::register(&mut registry);
        signal::register(&mut registry);
        slices::register(&mut registry);
        sorting::register(&mut registry);
        suppression::register(&mut registry);
        registry
    }
}
