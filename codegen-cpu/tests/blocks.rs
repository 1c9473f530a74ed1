//! Products whose channels lie in blocks, with blocks of the reduction.

use crate::vectorize::{Case, PRODUCT, check, optimized};

/// Channels in blocks: the filters of some blocks at a time for all lines, with a rest of blocks, rows and channels.
#[test]
fn blocks_of_channels() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let mut cases = vec![];
    for (w, f, blocks) in [(7, 32, 20), (17, 16, 3), (8, 24, 2)] {
        let windows = [('o', 2), ('h', 2), ('w', 2 * w), ('f', f), ('C', 3), ('Y', 3), ('X', 2), ('K', 40)];
        cases.push(Case::new(&windows, "c,2h+y,w+x,k o,c,y,x,k,f o,h,w,f", PRODUCT, product).filled());
        let points = [('o', 2), ('h', 4), ('w', w), ('f', f), ('C', blocks), ('K', 32)];
        let case = || Case::new(&points, "c,h,w,k o,c,k,f o,h,w,f", PRODUCT, product);
        cases.extend([case(), case().filled(), case().narrow()]);
    }
    // Short lines, several of which are in a tile: with a rest of lines, and filters of each line's own.
    for (h, w, blocks) in [(7, 7, 20), (5, 5, 2), (4, 6, 3)] {
        let short = [('o', 2), ('h', h), ('w', w), ('f', 32), ('C', blocks), ('K', 32)];
        let case = |filters: &str| Case::new(&short, &format!("c,h,w,k {filters} o,h,w,f"), PRODUCT, product);
        cases.extend([case("o,c,k,f"), case("o,c,k,f").filled(), case("o,h,c,k,f"), case("o,c,k,f").narrow()]);
    }
    check(&cases, 1e-4);
    let loops = |blocks| [('o', 3), ('h', 5), ('w', 14), ('f', 32), ('C', blocks), ('K', 32)];
    let text = |blocks| optimized(&Case::new(&loops(blocks), "c,h,w,k o,c,k,f o,h,w,f", PRODUCT, product).filled());
    // Fourteen rows of accumulators. Fetched are a part of the next filters, a line of the next image, and one of the output.
    let has = |text: &str| (text.matches("phi <32 x float>").count(), text.matches("call void @llvm.prefetch").count());
    assert_eq!((has(&text(20)), has(&text(2))), ((2 * 2 * 14, 2 * 3), (2 * 14, 3)), "two blocks of nine, and a rest");
    let lines = [('o', 3), ('h', 7), ('w', 7), ('f', 32), ('C', 2), ('K', 32)];
    let text = optimized(&Case::new(&lines, "c,h,w,k o,c,k,f o,h,w,f", PRODUCT, product).filled());
    assert_eq!(text.matches("phi <32 x float>").count(), 2 * (14 + 7), "two lines of seven, and one");
}
