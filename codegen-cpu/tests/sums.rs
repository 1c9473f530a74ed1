//! Sums along lines and images of every length: what is left of a row is a vector that ends with it.

use crate::vectorize::{Case, PRODUCT, check, optimized};

const ADD: &str = "%r = arith.addf %o, %x0 : f32";
const MAX: &str = "%r = arith.maximumf %x0, %o : f32";

fn add(x: &[f32], o: f32) -> f32 {
    o + x[0]
}

#[test]
fn rows_of_every_length() {
    let mut cases = vec![];
    for k in [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 31, 33, 47, 63, 67, 100, 255, 300] {
        let loops = [('i', 6), ('K', k)];
        cases.push(Case::new(&loops, "i,k i", ADD, add));
        cases.push(Case::new(&loops, "i,k i", MAX, |x, o| x[0].max(o)));
        cases.push(Case::new(&loops, "i,k i", ADD, add).narrow());
        cases.push(Case::new(&loops, "i,k k i", PRODUCT, |x, o| o + x[0] * x[1]));
    }
    check(&cases, 1e-5);
}

#[test]
fn images_are_one_line() {
    let mut cases = vec![];
    for (y, x) in [(7, 7), (3, 3), (2, 9), (14, 14), (5, 64)] {
        let loops = [('c', 9), ('Y', y), ('X', x)];
        cases.push(Case::new(&loops, "c,y,x c", ADD, add));
        cases.push(Case::new(&loops, "c,y,x c", MAX, |x, o| x[0].max(o)));
        cases.push(Case::new(&loops, "c,y,x y,x c", PRODUCT, |x, o| o + x[0] * x[1]));
        // Lines of the second input are others' neighbours.
        cases.push(Case::new(&loops, "c,y,x x,y c", PRODUCT, |x, o| o + x[0] * x[1]));
        let volumes = [('c', 5), ('Z', 3), ('Y', y), ('X', x)];
        cases.push(Case::new(&volumes, "c,z,y,x c", ADD, add));
        cases.push(Case::new(&volumes, "z,c,y,x c", ADD, add));
    }
    // The reference adds one after the other.
    check(&cases, 5e-5);
}

#[test]
fn no_element_of_an_image_is_looked_up_by_divisions() {
    let loops = [('c', 9), ('Z', 512), ('Y', 7), ('X', 7)];
    let ir = optimized(&Case::new(&loops, "z,y,x c,z,y,x c", PRODUCT, |x, o| o + x[0] * x[1]));
    assert!(ir.contains("load <") && !ir.contains("urem") && !ir.contains("udiv"), "{ir}");
}

/// Each row adds up as it would beside another one.
#[test]
fn rows_of_large_matrices_are_read_one_after_the_other() {
    let case = |rows: usize, k: usize| Case::new(&[('i', rows), ('K', k)], "i,k k i", PRODUCT, |x, o| o + x[0] * x[1]);
    // Floats of 16 and 32 bits; rows that end with a part of a vector, and too few rows.
    let sizes = [(700, 768), (701, 771), (300, 1031), (64, 768)];
    let cases = sizes.into_iter().flat_map(|(rows, k)| [case(rows, k), case(rows, k).narrow()]);
    check(&cases.collect::<Vec<_>>(), 2e-4);
    let fetches = |case: &Case| optimized(case).contains("@llvm.prefetch");
    let sums = |case: &Case| optimized(case).matches("= phi <16 x float>").count();
    assert!(fetches(&case(700, 768).narrow()) && !fetches(&case(700, 768)) && !fetches(&case(64, 768).narrow()));
    assert_eq!([case(700, 768).narrow(), case(700, 768), case(64, 768)].map(|case| sums(&case)), [4, 4, 8]);
}

/// A vector times rows of 16 bits fetches the next ones.
#[test]
fn rows_of_16_bits_times_a_vector_are_fetched_ahead() {
    let case = |k: usize, n: usize| Case::new(&[('j', n), ('K', k)], "k k,j j", PRODUCT, |x, o| o + x[0] * x[1]);
    check(&[case(300, 1024).narrow(), case(37, 200).narrow(), case(37, 200)], 1e-4);
    let fetches = |case: &Case| optimized(case).contains("@llvm.prefetch");
    assert!(fetches(&case(300, 1024).narrow()) && !fetches(&case(300, 1024)));
}
