//! Random reductions: loops in any order and any input, windows, epilogues.

use super::{Loops, MULTIPLY_ADD, ONE, PRIVATE, STAGED, SUBGROUP, THREE};
use crate::device::device;
use crate::program::{assert_close, execute};

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// Loops in any order and any input; each is in the result or in an input by itself.
fn random_case(random: &mut Random) -> (Loops, String) {
    let names: Vec<char> = "abcdef".chars().take(2 + random.below(4)).collect();
    let results = 1 + random.below(names.len() - 1);
    let mut output: Vec<char> = names[..results].to_vec();
    random.shuffle(&mut output);
    let count = 1 + random.below(3);
    let mut inputs: Vec<Vec<String>> = vec![vec![]; count];
    for (i, name) in names.iter().enumerate() {
        // Reductions must be somewhere; other loops may be in the result alone.
        let least = usize::from(i >= results);
        let holders = least + random.below(count + 1 - least);
        let mut all: Vec<usize> = (0..count).collect();
        random.shuffle(&mut all);
        all[..holders].iter().for_each(|input| inputs[*input].push(name.to_string()));
    }
    for input in &mut inputs {
        random.shuffle(input);
    }
    // A window: an input that has a loop of the result walks with a reduction that another operand has.
    let (y, i) = (names[0].to_string(), names[names.len() - 1].to_string());
    let holds = |input: &Vec<String>, name: &String| input.contains(name);
    let window =
        (0..count).find(|w| holds(&inputs[*w], &y) && (0..count).any(|other| other != *w && holds(&inputs[other], &i)));
    if let Some(w) = window.filter(|_| random.below(2) == 0) {
        inputs[w].retain(|e| *e != i);
        let scale = 1 + random.below(2);
        inputs[w].iter_mut().filter(|e| **e == y).for_each(|e| *e = format!("{scale}*{y}+{i}"));
    }
    inputs.retain(|input| !input.is_empty());
    let mut cut = 0;
    let sizes: Vec<String> = names
        .iter()
        .map(|n| {
            let of_result = output.contains(n);
            let extent = if of_result {
                random.pick(&[1usize, 2, 3, 7, 8, 9, 16, 17, 24, 33, 64])
            } else {
                random.pick(&[1usize, 2, 3, 5, 8, 12, 16, 19, 40])
            };
            let tile = random.pick(&[1usize, 4, 8, 16]).min(extent);
            if of_result && cut < 3 && random.below(2) == 0 {
                cut += 1;
                return format!("{n}{extent}/{tile}");
            }
            format!("{n}{extent}")
        })
        .collect();
    let joined = |words: &[String]| words.join(" ");
    let inputs: Vec<String> = inputs.iter().map(|i| joined(i)).collect();
    let output: Vec<String> = output.iter().map(|c| c.to_string()).collect();
    let text = format!("{} -> {}", inputs.join(", "), joined(&output));
    let mut case = Loops::new(&text, &sizes.join(" "));
    case.body = [ONE, MULTIPLY_ADD, THREE][case.inputs.len() - 1];
    case.filled = random.below(4) > 0;
    if random.below(3) == 0 {
        case = case.bias(&output[random.below(output.len())]);
    }
    (case, format!("{text} with {}", sizes.join(" ")))
}

#[test]
fn random_reductions() {
    let Some(device) = device() else { return };
    let kernels = [
        SUBGROUP.replace("16, 8", "3, 8"),
        SUBGROUP.replace("16, 8", "2, 2"),
        PRIVATE.replace("4, 4", "2, 4"),
        PRIVATE.replace("16, 16, 1", "4, 2, 1").replace("vector_width = 4", "vector_width = 8"),
        STAGED.replace("16, 16, 1", "8, 4, 1").replace("= 16 :", "= 4 :"),
        SUBGROUP.replace("16, 8", "9, 8").replace("8, 1, 1", "16, 1, 1"),
    ];
    let count = if monopour_testkit::device::full_is_asked_for() { 600 } else { 24 };
    for seed in 0..count {
        let mut random = Random(seed);
        random.below(1);
        let (case, what) = random_case(&mut random);
        if case.extents.iter().product::<i64>() > 2_000_000 || case.inputs.is_empty() {
            continue;
        }
        let kernel = &kernels[random.below(kernels.len())];
        let inputs = case.inputs();
        let (out, report) = execute(device, &case.text(kernel), &case.grid(), &inputs);
        let what = format!("seed {seed}: {what}, {kernel}");
        assert_eq!(report.kernels[0].strategy, "contraction", "{what}: {}", report.kernels[0].declined);
        let expected = case.expected(&inputs, |c, v| c + v.iter().product::<f64>());
        assert_close(&out[case.inputs.len()], &expected, 1e-4, &what);
    }
}
