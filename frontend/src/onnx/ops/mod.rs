//! The lowerings, a file per family of ops.

use super::registry::Registry;

mod activations;
mod compare;
mod convolution;
mod einsum;
mod elementwise;
mod image;
mod linear_systems;
mod losses;
mod microsoft_quantized;
mod movement;
mod normalization;
mod pooling;
mod products;
mod quantization;
mod reductions;
mod regions;
mod resize;
mod resize_axes;
mod sampling;
mod scalars;
mod shapes;
mod signal;
mod slices;

impl Default for Registry {
    /// All ops of this crate, a line per family.
    fn default() -> Self {
        let mut registry = Self::new();
        activations::register(&mut registry);
        compare::register(&mut registry);
        convolution::register(&mut registry);
        einsum::register(&mut registry);
        elementwise::register(&mut registry);
        image::register(&mut registry);
        linear_systems::register(&mut registry);
        losses::register(&mut registry);
        microsoft_quantized::register(&mut registry);
        movement::register(&mut registry);
        normalization::register(&mut registry);
        pooling::register(&mut registry);
        products::register(&mut registry);
        quantization::register(&mut registry);
        reductions::register(&mut registry);
        regions::register(&mut registry);
        resize::register(&mut registry);
        sampling::register(&mut registry);
        shapes::register(&mut registry);
        signal::register(&mut registry);
        slices::register(&mut registry);
        registry
    }
}
