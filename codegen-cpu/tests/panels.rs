//! Panels of products whose right factor's rows are far apart.

use crate::vectorize::{Case, PRODUCT, check, optimized};

/// Vectors in other pages are packed once for all rows: in registers of two and three, with rests of columns, rows and blocks.
#[test]
fn products_whose_rows_are_far_apart() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let mut cases = vec![];
    for (m, n, k) in [(28, 96, 40), (61, 128, 300), (29, 150, 20), (37, 256, 193)] {
        let loops = [('m', m), ('n', n), ('K', k)];
        let case = || Case::new(&loops, "m,k k,n m,n", PRODUCT, product);
        cases.extend([case(), case().filled().narrow()]);
    }
    // Two loops that sum, the outer one cut.
    let heads = [('m', 40), ('n', 130), ('H', 12), ('K', 32)];
    let case = || Case::new(&heads, "h,m,k h,k,n m,n", PRODUCT, product);
    cases.extend([case().filled(), case().narrow()]);
    check(&cases, 1e-4);
}

#[test]
fn panels_of_far_rows_stay_in_the_first_level_cache() {
    let case = |m, n, k| {
        let product = |x: &[f32], o: f32| o + x[0] * x[1];
        optimized(&Case::new(&[('m', m), ('n', n), ('K', k)], "m,k k,n m,n", PRODUCT, product).filled())
    };
    let panel = |columns: i64, iterations: i64| format!("alloca [{} x float]", columns * iterations);
    // Three registers of columns, then two; equal blocks, if there are some.
    for (n, k, size) in [
        (192, 1024, panel(48, 128)),
        (192, 1000, panel(48, 192)),
        (160, 1024, panel(32, 256)),
        (160, 1000, panel(32, 288)),
    ] {
        let ir = case(64, n, k);
        let found: Vec<&str> = ir.lines().filter(|line| line.contains("alloca")).collect();
        assert!(found.iter().any(|line| line.contains(&size)), "{found:?}");
    }
    // Too few rows read it.
    assert!(!case(8, 192, 1024).contains("alloca"));
}

/// Weights of 16 bits that lie in panels are widened as they are read; others are in a panel of the task.
#[test]
fn panels_of_16_bits_are_not_copied() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let loops = [('m', 61), ('a', 3), ('n', 32), ('K', 200)];
    let laid_out = || Case::new(&loops, "m,k a,k,n m,a,n", PRODUCT, product).narrow();
    let plain = || Case::new(&[('m', 61), ('n', 96), ('K', 200)], "m,k k,n m,n", PRODUCT, product).narrow();
    check(&[laid_out(), laid_out().filled(), plain()], 1e-4);
    let panels = |case: Case| optimized(&case).lines().filter(|line| line.contains("alloca")).count();
    assert_eq!([panels(laid_out()), panels(plain())], [0, 2]);
}
