//! Mutations of MLIR text that often leave it valid: lines moved, values and numbers exchanged, pieces of another module.

use monopour_testkit::random::Rng;

/// Boundary values: empty, one, dynamic, and the limits of arithmetic.
const NUMBERS: &[&str] =
    &["0", "1", "2", "3", "4", "7", "8", "16", "-1", "-2", "65536", "2147483648", "9223372036854775807"];
/// Interchangeable words.
const WORDS: &[&[&str]] = &[
    &["tensor.cast", "tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape"],
    &["tensor.extract_slice", "tensor.insert_slice", "tensor.parallel_insert_slice"],
    &["bufferization.to_tensor", "bufferization.to_buffer", "bufferization.alloc_tensor", "tensor.empty"],
    &["linalg.fill", "linalg.copy", "linalg.abs", "linalg.exp"],
    &["linalg.add", "linalg.mul", "linalg.sub"],
    &["scf.yield", "scf.condition", "scf.forall.in_parallel", "func.return"],
    &["true", "false"],
    &["f32", "f64", "i1", "i32", "index", "f16"],
    &["tensor<", "memref<", "vector<"],
    &["x4x", "x?x", "x0x", "x1x"],
    &["tensor<4x", "tensor<?x", "tensor<*x", "tensor<0x"],
    &["restrict", "restrict writable", ""],
    &["private", "", "nested"],
    &["cf.br", "cf.cond_br", "cf.switch"],
    &[
        "bufferization.writable = true",
        "bufferization.writable = false",
        "bufferization.access = \"none\"",
        "bufferization.access = \"read\"",
    ],
    &["\"parallel\"", "\"reduction\""],
];

/// A mutated copy of `text`; pieces may come from `donor`.
pub fn mutate(rng: &mut Rng, text: &str, donor: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..1 + rng.below(3) {
        text = match rng.below(12) {
            0 => delete_line(rng, &text),
            1 => copy_line(rng, &text),
            2 => swap_lines(rng, &text),
            3 | 4 => exchange_word(rng, &text),
            5 | 6 => exchange_number(rng, &text),
            7..=9 => exchange_value(rng, &text),
            10 => splice(rng, &text, donor),
            _ => change_byte(rng, &text),
        };
    }
    text
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

fn delete_line(rng: &mut Rng, text: &str) -> String {
    let mut lines = lines(text);
    if lines.len() > 1 {
        lines.remove(rng.below(lines.len() as u64) as usize);
    }
    lines.join("\n")
}

fn copy_line(rng: &mut Rng, text: &str) -> String {
    let mut lines = lines(text);
    if !lines.is_empty() {
        let line = *rng.pick(&lines);
        lines.insert(rng.below(lines.len() as u64 + 1) as usize, line);
    }
    lines.join("\n")
}

fn swap_lines(rng: &mut Rng, text: &str) -> String {
    let mut lines = lines(text);
    if lines.len() > 1 {
        let first = rng.below(lines.len() as u64 - 1) as usize;
        lines.swap(first, first + 1);
    }
    lines.join("\n")
}

/// Positions of these words.
fn places(text: &str, words: &[&str]) -> Vec<(usize, usize)> {
    let found = words.iter().filter(|w| !w.is_empty()).flat_map(|w| text.match_indices(w).map(|(at, m)| (at, m.len())));
    found.collect()
}

fn replace(text: &str, (at, length): (usize, usize), by: &str) -> String {
    format!("{}{by}{}", &text[..at], &text[at + length..])
}

fn exchange_word(rng: &mut Rng, text: &str) -> String {
    let words = *rng.pick(WORDS);
    let places = places(text, words);
    if places.is_empty() {
        return text.to_owned();
    }
    let place = *rng.pick(&places);
    let by: &&str = rng.pick(words);
    replace(text, place, by)
}

/// Runs of characters that start after `start` and go on while `inside` holds.
fn runs(text: &str, start: impl Fn(char) -> bool, inside: impl Fn(char) -> bool) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    let mut previous = ' ';
    while let Some((at, c)) = rest.next() {
        if start(c) && !previous.is_alphanumeric() && previous != '%' {
            let mut end = at + c.len_utf8();
            while let Some(&(next, d)) = rest.peek().filter(|(_, d)| inside(*d)) {
                end = next + d.len_utf8();
                previous = d;
                rest.next();
            }
            found.push((at, end - at));
        } else {
            previous = c;
        }
    }
    found
}

fn exchange_number(rng: &mut Rng, text: &str) -> String {
    let numbers = runs(text, |c| c.is_ascii_digit(), |c| c.is_ascii_digit());
    if numbers.is_empty() {
        return text.to_owned();
    }
    let place = *rng.pick(&numbers);
    let by: &&str = rng.pick(NUMBERS);
    replace(text, place, by)
}

/// Replaces a value by another: often of the same type, in modules of few types.
fn exchange_value(rng: &mut Rng, text: &str) -> String {
    let values = runs(text, |c| c == '%', |c| c.is_alphanumeric() || c == '_');
    if values.is_empty() {
        return text.to_owned();
    }
    let (place, other) = (*rng.pick(&values), *rng.pick(&values));
    replace(text, place, &text[other.0..other.0 + other.1])
}

/// Inserts some lines of the donor.
fn splice(rng: &mut Rng, text: &str, donor: &str) -> String {
    let (mut into, from) = (lines(text), lines(donor));
    if from.is_empty() {
        return text.to_owned();
    }
    let first = rng.below(from.len() as u64) as usize;
    let last = (first + 1 + rng.below(6) as usize).min(from.len());
    let at = rng.below(into.len() as u64 + 1) as usize;
    into.splice(at..at, from[first..last].iter().copied());
    into.join("\n")
}

fn change_byte(rng: &mut Rng, text: &str) -> String {
    let places: Vec<(usize, usize)> = text.char_indices().map(|(at, c)| (at, c.len_utf8())).collect();
    if places.is_empty() {
        return text.to_owned();
    }
    let place = *rng.pick(&places);
    let by = char::from(32 + rng.below(95) as u8).to_string();
    replace(text, place, &by)
}
