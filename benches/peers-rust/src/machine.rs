//! What the machine can do: multiply-adds in registers, reads, copies, and a hand-written elementwise chain.
//!
//! Rates of arithmetic are the best of several slices, because nothing makes a core faster than it is; those of memory are medians,
//! as the times are that they are compared with. For x86-64 with AVX2 or AVX-512.
#![allow(unsafe_code, reason = "vector instructions, and stores past the caches, have no safe form")]

use crate::timing::{median, seconds_of};
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

/// Independent sums: more than the latency times the multiply-adds that any core begins in a cycle, and fewer than 16 registers.
const CHAINS: usize = 12;
/// Multiply-adds of each chain in a slice of about 10 ms.
const STEPS: usize = 3_000_000;
const SLICES: usize = 7;
/// Bytes that the passes of a measure of reads take together, at least: small buffers are read more often.
const READ_BYTES: usize = 1 << 30;

/// The loops for one instruction set. `$width` is its elements in a register; the rest are its intrinsics.
macro_rules! loops {
    ($name:ident, $feature:literal, $width:literal, $zero:ident, $set:ident, $fma:ident, $add:ident, $load:ident, $store:ident, $stream:ident,
     $mul:ident, $sub:ident, $max:ident, $abs:expr, $sqrt:ident) => {
        mod $name {
            use super::CHAINS;
            use std::arch::x86_64::*;
            use std::hint::black_box;

            pub const WIDTH: usize = $width;

            /// `steps` multiply-adds in each of `CHAINS` chains.
            #[target_feature(enable = $feature)]
            pub fn multiply_adds(steps: usize) {
                let (factor, term) = ($set(black_box(0.999)), $set(black_box(0.001)));
                let mut sums = [$set(black_box(1.0)); CHAINS];
                for _ in 0..steps {
                    for sum in &mut sums {
                        *sum = $fma(*sum, factor, term);
                    }
                }
                black_box(sums);
            }

            /// The sum of `values`, whose length is a multiple of 8 registers.
            #[target_feature(enable = $feature)]
            pub fn sum(values: &[f32]) {
                let mut sums = [$zero(); 8];
                for block in values.chunks_exact(8 * WIDTH) {
                    for (sum, part) in sums.iter_mut().zip(block.chunks_exact(WIDTH)) {
                        // SAFETY: `part` has as many elements as the load reads, and the load needs no alignment.
                        *sum = $add(*sum, unsafe { $load(part.as_ptr()) });
                    }
                }
                black_box(sums);
            }

            /// Copies past the caches. Both lengths are equal, a multiple of a register's, and `to` begins at 64 bytes.
            #[target_feature(enable = $feature)]
            pub fn copy(from: &[f32], to: &mut [f32]) {
                for (from, to) in from.chunks_exact(4 * WIDTH).zip(to.chunks_exact_mut(4 * WIDTH)) {
                    for (from, to) in from.chunks_exact(WIDTH).zip(to.chunks_exact_mut(WIDTH)) {
                        // SAFETY: `from` has as many elements as the load reads, and the load needs no alignment.
                        let value = unsafe { $load(from.as_ptr()) };
                        // SAFETY: `to` has as many elements as are written, and begins at a multiple of them in an aligned buffer.
                        unsafe { $stream(to.as_mut_ptr(), value) };
                    }
                }
                _mm_sfence();
            }

            /// `sqrt(abs((max((x + y) * x, 0) - y) / 2)) + 1`, the program `ew8`; lengths as for `copy`.
            #[target_feature(enable = $feature)]
            pub fn chain(x: &[f32], y: &[f32], to: &mut [f32], past_caches: bool) {
                let (zero, half, one) = ($zero(), $set(0.5), $set(1.0));
                let lines = x.chunks_exact(WIDTH).zip(y.chunks_exact(WIDTH)).zip(to.chunks_exact_mut(WIDTH));
                for ((x, y), to) in lines {
                    // SAFETY: `x` has as many elements as the load reads, and the load needs no alignment.
                    let x = unsafe { $load(x.as_ptr()) };
                    // SAFETY: as for `x`.
                    let y = unsafe { $load(y.as_ptr()) };
                    let product = $mul($add(x, y), x);
                    let scaled = $mul($sub($max(product, zero), y), half);
                    let value = $add($sqrt($abs(scaled)), one);
                    if past_caches {
                        // SAFETY: `to` has as many elements as are written, and begins at a multiple of them in an aligned buffer.
                        unsafe { $stream(to.as_mut_ptr(), value) };
                    } else {
                        // SAFETY: `to` has as many elements as are written, and the store needs no alignment.
                        unsafe { $store(to.as_mut_ptr(), value) };
                    }
                }
                _mm_sfence();
            }
        }
    };
}

loops!(
    avx512,
    "avx512f",
    16,
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_fmadd_ps,
    _mm512_add_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_stream_ps,
    _mm512_mul_ps,
    _mm512_sub_ps,
    _mm512_max_ps,
    _mm512_abs_ps,
    _mm512_sqrt_ps
);
loops!(
    avx2,
    "avx2,fma",
    8,
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_fmadd_ps,
    _mm256_add_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_stream_ps,
    _mm256_mul_ps,
    _mm256_sub_ps,
    _mm256_max_ps,
    |v| _mm256_andnot_ps(_mm256_set1_ps(-0.0), v),
    _mm256_sqrt_ps
);

/// Whether the machine has registers of 512 bits.
fn is_wide() -> bool {
    is_x86_feature_detected!("avx512f")
}

/// Calls a loop of the widest instruction set that the machine has.
macro_rules! widest {
    ($function:ident($($argument:expr),*)) => { in_registers!(is_wide(), $function($($argument),*)) };
}

/// Calls a loop of AVX-512 where `$wide`, which must be possible, else of AVX2.
macro_rules! in_registers {
    ($wide:expr, $function:ident($($argument:expr),*)) => {
        if $wide {
            assert!(is_wide(), "needs AVX-512");
            // SAFETY: the machine has the feature that the function needs.
            unsafe { avx512::$function($($argument),*) }
        } else {
            assert!(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"), "needs AVX2 and FMA");
            // SAFETY: the machine has the features that the function needs.
            unsafe { avx2::$function($($argument),*) }
        }
    };
}

/// Elements that begin at a cache line.
struct Buffer {
    values: Vec<f32>,
    first: usize,
    len: usize,
}

impl Buffer {
    /// `len` is rounded down to whole blocks of the loops; every page has been written.
    fn of(len: usize) -> Self {
        let len = len / 128 * 128;
        let mut values = vec![0.0; len + 16];
        for (i, value) in values.iter_mut().enumerate() {
            *value = (i % 251) as f32 * 0.01 - 1.0;
        }
        let first = values.as_ptr().align_offset(64);
        Self { values, first, len }
    }

    fn get(&self) -> &[f32] {
        &self.values[self.first..][..self.len]
    }

    fn get_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.first..][..self.len]
    }
}

/// Multiply-adds of f32 in registers, the widest or (`narrow`) of 256 bits, on `threads` cores at once: the best slice.
pub fn fma(threads: usize, narrow: bool) -> Value {
    let wide = is_wide() && !narrow;
    let width = if wide { avx512::WIDTH } else { avx2::WIDTH };
    let slice = || together(threads, || in_registers!(wide, multiply_adds(STEPS)));
    let seconds = (0..SLICES).map(|_| slice()).fold(f64::INFINITY, f64::min);
    let flops = (2 * STEPS * CHAINS * width * threads) as f64;
    json!({"gflops": flops / seconds / 1e9, "width": width, "threads": threads})
}

/// Reads of a buffer of `bytes` bytes, a part for each thread: the median of the passes after the first.
pub fn read(bytes: usize, threads: usize) -> Value {
    let parts: Vec<Buffer> = (0..threads).map(|_| Buffer::of(bytes / 4 / threads)).collect();
    let pass = || together_on(&parts, |part| widest!(sum(black_box(part.get()))));
    pass();
    let passes = SLICES.max(READ_BYTES / bytes.max(1 << 16));
    let seconds = median((0..passes).map(|_| pass()).collect());
    let bytes: usize = parts.iter().map(|part| part.len * 4).sum();
    json!({"gbytes": bytes as f64 / seconds / 1e9, "threads": threads})
}

/// Seconds from when all threads begin to when the last has ended.
fn together(threads: usize, work: impl Fn() + Sync) -> f64 {
    together_on(&vec![(); threads], |()| work())
}

fn together_on<T: Sync>(parts: &[T], work: impl Fn(&T) + Sync) -> f64 {
    if let [part] = parts {
        // A new thread may begin on another core.
        let start = Instant::now();
        work(part);
        return start.elapsed().as_secs_f64();
    }
    let barrier = Barrier::new(parts.len());
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let begun: Vec<_> = parts
            .iter()
            .map(|part| {
                scope.spawn(|| {
                    barrier.wait();
                    let start = Instant::now();
                    work(part);
                    (start, Instant::now())
                })
            })
            .collect();
        begun.into_iter().map(|thread| thread.join().expect("the loops do not panic")).collect()
    });
    let start = spans.iter().map(|(start, _)| *start).min().expect("there is a thread");
    let end = spans.iter().map(|(_, end)| *end).max().expect("there is a thread");
    (end - start).as_secs_f64()
}

/// A copy of `bytes` bytes, through the caches (or as the C library chooses) and past them.
pub fn copy(bytes: usize) -> Value {
    let from = Buffer::of(bytes / 4);
    let mut to = Buffer::of(bytes / 4);
    let plain = median(seconds_of(|| black_box(to.get_mut()).copy_from_slice(black_box(from.get()))));
    let streaming = median(seconds_of(|| widest!(copy(black_box(from.get()), black_box(to.get_mut())))));
    let gbytes = 2e-9 * (from.len * 4) as f64 / plain.min(streaming);
    json!({"plain_ms": plain * 1e3, "streaming_ms": streaming * 1e3, "gbytes": gbytes})
}

/// The program `ew8` on `elements`, by hand, through the caches and past them.
pub fn chain(elements: usize) -> Value {
    let (x, y) = (Buffer::of(elements), Buffer::of(elements));
    let mut to = Buffer::of(elements);
    let mut time = |past_caches| {
        let run = || widest!(chain(black_box(x.get()), black_box(y.get()), black_box(to.get_mut()), past_caches));
        median(seconds_of(run)) * 1e3
    };
    json!({"plain_ms": time(false), "streaming_ms": time(true)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_compute_what_they_say() {
        let (x, y) = (Buffer::of(1000), Buffer::of(1000));
        let mut to = Buffer::of(1000);
        assert_eq!(x.get().len(), 896);
        widest!(copy(x.get(), to.get_mut()));
        assert_eq!(to.get(), x.get());
        for past_caches in [false, true] {
            widest!(chain(x.get(), y.get(), to.get_mut(), past_caches));
            for ((x, y), found) in x.get().iter().zip(y.get()).zip(to.get()) {
                let expected = ((((x + y) * x).max(0.0) - y) * 0.5).abs().sqrt() + 1.0;
                assert!((found - expected).abs() < 1e-6, "{x} {y}: {found}, expected {expected}");
            }
        }
    }
}
