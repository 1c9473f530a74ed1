//! Properties of decisions on random functions.

use crate::checker::{Violation, check, check_elements};
use crate::classes::{Classes, SMALL};
use crate::cost::{Cost, cost};
use crate::facts::Facts;
use crate::generate::{Shape, function};
use crate::index::{IndexVec, OperandId, ValueId};
use crate::one_shot::{
    Claim, Decisions, Heuristic, InPlaceAnalysis, Options, Placement, Strategy, decide, decide_in_order,
    decisions_from_placements,
};
use crate::order::visiting_order;
use crate::random::Random;
use crate::reference::PairwiseClasses;
use crate::text::Names;
use crate::{print, text};

/// Number of functions to try: a sample, or all if the environment says so.
fn count(sample: u64, all: u64) -> u64 {
    if std::env::var_os("MONOPOUR_TEST_FULL").is_some_and(|value| value == "1") { all } else { sample }
}

fn placements(decisions: Result<Decisions, crate::one_shot::DecideError>) -> Result<String, String> {
    let letter = |placement: &Placement| match *placement {
        Placement::InPlace => 'i',
        Placement::OutOfPlace => 'o',
    };
    match decisions {
        Ok(decisions) => Ok(decisions.placements().iter().map(letter).collect()),
        Err(error) => Err(format!("{}", error.operand())),
    }
}

fn assert_agree(facts: &Facts, seed: u64, heuristic: Heuristic, strategy: Strategy) {
    let order = visiting_order(facts, heuristic);
    let unordered_graph_regions = seed.is_multiple_of(2) && strategy == Strategy::Greedy;
    let options = Options { unordered_graph_regions, strategy, ..Options::default() };
    let literal = decide_in_order(facts, &order, &mut PairwiseClasses::new(facts, &options), false);
    for small in [0, SMALL] {
        let fast = decide_in_order(facts, &order, &mut Classes::new(facts, &options, small), false);
        if placements(fast.clone()) == placements(literal.clone()) {
            continue;
        }
        // Differences after the first may follow from it.
        let reason = |decided: &Result<Decisions, _>, id| decided.as_ref().ok().and_then(|d: &Decisions| d.reason(id));
        let differs = |id: &OperandId| reason(&fast, *id).is_none() != reason(&literal, *id).is_none();
        let first = order.iter().copied().find(differs);
        let text = print::facts(facts, &Names::new());
        let reasons = first.map(|id| (id, facts.operands()[id].op, reason(&fast, id), reason(&literal, id)));
        panic!("seed {seed}, {heuristic:?}, lists of up to {small}: {reasons:?}\n{text}");
    }
}

#[test]
fn indexed_decisions_are_the_literal_ones() {
    let functions = count(1200, 40_000);
    for seed in 0_u64..functions {
        let shape =
            Shape { ops: 6 + (seed % 20) as u32, depth: (seed % 4) as u32, wild: seed.is_multiple_of(5), parts: false };
        let facts = function(seed, shape);
        let other = if seed.is_multiple_of(2) { Heuristic::TopDown } else { Heuristic::Fuzzer(seed) };
        for heuristic in [Heuristic::BottomUp, other] {
            assert_agree(&facts, seed, heuristic, Strategy::Greedy);
        }
        let facts = function(seed, Shape { parts: true, ..shape });
        assert_agree(&facts, seed, Heuristic::BottomUp, Strategy::Minimal);
    }
}

#[test]
fn checker_accepts_decisions() {
    let mut decided = 0;
    for seed in 0..count(400, 8000) {
        let shape = Shape {
            ops: 6 + (seed % 20) as u32,
            depth: (seed % 4) as u32,
            wild: !seed.is_multiple_of(3),
            parts: false,
        };
        let facts = function(seed, shape);
        for heuristic in [Heuristic::BottomUp, Heuristic::Fuzzer(seed)] {
            let options = Options { heuristic, ..Options::default() };
            // Refused: a tensor inserted into itself beside another insertion.
            let Ok(decisions) = decide(&facts, &options) else { continue };
            decided += 1;
            if let Err(violation) = check(&facts, &decisions) {
                let names = Names::new();
                panic!(
                    "seed {seed}: {violation}\n{}\n{}",
                    print::facts(&facts, &names),
                    print::decisions(&facts, &names, &decisions)
                );
            }
        }
    }
    assert!(decided > 550, "only {decided} functions were decided");
}

/// Parts that the decider keeps apart by symbols are apart in each execution.
#[test]
fn checker_accepts_parts_kept_apart() {
    let (mut decided, mut saved, mut ended, mut refused) = (0, 0, 0, vec![]);
    for seed in 0..count(600, 20_000) {
        let shape =
            Shape { ops: 6 + (seed % 20) as u32, depth: (seed % 4) as u32, wild: seed.is_multiple_of(3), parts: true };
        let facts = function(seed, shape);
        let of = |strategy| decide(&facts, &Options { strategy, ..Options::default() });
        let (Ok(minimal), Ok(greedy)) = (of(Strategy::Minimal), of(Strategy::Greedy)) else { continue };
        decided += 1;
        saved += i64::from(greedy.counts().out_of_place) - i64::from(minimal.counts().out_of_place);
        match check_elements(&facts, &minimal) {
            Ok(count) => ended += count,
            Err(violation) => {
                let names = Names::new();
                println!(
                    "seed {seed}: {violation}; greedy: {:?}\n{}\n{}",
                    check_elements(&facts, &greedy),
                    print::facts(&facts, &names),
                    print::decisions(&facts, &names, &minimal)
                );
                refused.push(seed);
            }
        }
    }
    assert!(refused.is_empty(), "refused: {refused:?}");
    assert!(decided > 400 && saved > 15, "{decided} functions were decided, and {saved} copies saved");
    assert!(ended > 2000, "{ended} executions came to an end");
}

/// An operand that is copied and put in place by force is an error that the checker has to find, mostly: some copies are only
/// due to conservative rules, or matter on paths that are not drawn.
#[test]
fn checker_rejects_most_copies_left_out() {
    let (mut flips, mut rejected) = (0, 0);
    for seed in 0..150 {
        let facts = function(seed, Shape { ops: 14, depth: (seed % 3) as u32, wild: false, parts: false });
        let Ok(decisions) = decide(&facts, &Options::default()) else { continue };
        for operand in facts.operands().ids() {
            if decisions.is_in_place(operand) {
                continue;
            }
            let mut placements = decisions.placements().clone();
            placements[operand] = Placement::InPlace;
            flips += 1;
            rejected += u32::from(check(&facts, &decisions_from_placements(&facts, placements)).is_err());
        }
    }
    assert!(flips > 300 && rejected * 100 > flips * 80, "{rejected} of {flips} flips were rejected");
}

fn judge(input: &str, placements: &str) -> String {
    let (facts, _) = text::parse(input).expect("facts are well-formed");
    let placements = text::parse_placements(&facts, placements).expect("placements are well-formed");
    match check(&facts, &decisions_from_placements(&facts, placements)) {
        Ok(()) => "fine".to_owned(),
        Err(violation) => violation.to_string(),
    }
}

#[test]
fn checker_judges_placements() {
    let raw = "%0<always> = tensor\n%1 = insert rw%0>%1\nread r%0";
    assert_eq!(judge(raw, "out in"), "fine");
    assert_eq!(judge(raw, "in in"), "operand u1 reads contents that are not its value's");
    assert_eq!(
        judge("block(%a<frozen>)\n%0 = fill w%a>%0", "in"),
        "operand u0 writes to a buffer that is not writable"
    );
    let rewritten = "block(%a)\n%0 = extract %a~%0 take 0 [0:1:1]\n%1 = fill w%0>%1\n\
                     %2 = insert r%1, rw%a>%2 put 0 1 [0:1:1]\nread r%2";
    assert_eq!(judge(rewritten, "in in in in in"), "fine");
    let other = rewritten.replace("put 0 1 [0:1:1]", "put 0 1 [1:1:1]");
    assert_eq!(judge(&other, "in in in in in"), "operand u2 reads contents that are not its value's");
    // A part at an unknown position is not the whole: an elementwise operation over both reads contents that it has written.
    let view = "block(%a)\n%0 = view %a~%0\n%1 = map re%0, we%a>%1\nread r%1";
    assert_eq!(judge(view, "in in in in"), "operand u1 reads contents that are not its value's");
    let shared = "block(%c)\n%0<never> = empty\nforall branch rw%0^%o {\nregion repeat parallel next 0 {\n\
                  block(%o)\n%1 = fill w%c>%1\nread r%1\n}\n}";
    assert_eq!(judge(shared, "in in in"), "operand u2 reads contents that are not its value's");
    assert_eq!(judge("block(%a)\nyield rm%a", "out"), "operand u0 must be in place and is not");
}

/// Claims of decisions besides placements: that the contents of a copy are not needed, and that values are equivalent.
/// (Placements follow rules of their own; these claims follow from them, and a rewrite trusts them.)
#[test]
fn checker_rejects_false_claims() {
    let input = "block(%a, %b)\n%0 = insert r%b, rw%a>%0\nread r%a\nread r%0\nif branch {\nregion {\nread r%0\n}\n}";
    let (facts, _) = text::parse(input).expect("facts are well-formed");
    let decisions = decide(&facts, &Options::default()).expect("nothing must be in place");
    assert_eq!(check(&facts, &decisions), Ok(()));
    let copied = facts.operands().ids().find(|&id| !decisions.is_in_place(id)).expect("%a is read below");
    let empty = decisions.with_claim(Claim::NoContents(copied));
    assert_eq!(check(&facts, &empty), Err(Violation::ReadsOtherContents(copied)));
    let values: Vec<ValueId> = facts.values().ids().collect();
    for (index, &a) in values.iter().enumerate() {
        for &b in &values[index + 1..] {
            let verdict = check(&facts, &decisions.with_claim(Claim::Equivalent(a, b)));
            assert!(matches!(verdict, Err(Violation::IsAnotherBuffer(..))), "{a} and {b}: {verdict:?}");
        }
    }
}

/// A branch with more regions than the least number of executions: whichever of them is wrong, it is entered.
#[test]
fn checker_enters_each_of_many_regions() {
    for wrong in 0..40 {
        let region =
            |i| if i == wrong { "region {\n%x = insert rw%a>%x\nread r%x\nread r%a\n}\n" } else { "region {\n}\n" };
        let regions: String = (0..40).map(region).collect();
        let input = format!("block(%a)\nswitch branch {{\n{regions}}}");
        assert_ne!(judge(&input, "in in in"), "fine", "region {wrong}");
    }
}

/// Values bound in an earlier pass of a block are not compared: `%v` is the new `%x`, `%w` still the one before.
#[test]
fn checker_compares_values_of_one_pass() {
    let input = "block(%a)\nrun {\nregion {\nblock next 1\nbr rm%a>?%x^%x\nblock(%x) next 1, 2\n\
                 if branch {\nregion {\n%v = view %x>%v\nread r%v\n}\n}\n%w = view %x>%w\nread r%w\n\
                 %n<always alloc> = empty\nbr rm%n>?%x^%x\nblock\n}\n}";
    let (facts, _) = text::parse(input).unwrap_or_else(|e| panic!("{e}\n{input}"));
    let decisions = decide(&facts, &Options::default()).expect("all can be in place");
    assert_eq!(check(&facts, &decisions), Ok(()));
}

/// A chain of more blocks than the most trips of a loop: the last one is reached.
#[test]
fn checker_reaches_the_last_of_many_blocks() {
    let header = |next: u32| if next < 10 { format!("block next {next}\n") } else { "block\n".to_owned() };
    let steps: String = (0..9).map(|i| format!("%{i} = fill w%c>%{i}\n{}", header(i + 2))).collect();
    let input = format!(
        "block(%a, %c)\n%r = run {{\nregion {{\nblock next 1\n{steps}%x = insert rw%a>%x\nread r%x\nread r%a\nyield rm%x>?%r^%r\n}}\n}}"
    );
    let (facts, _) = text::parse(&input).unwrap_or_else(|e| panic!("{e}\n{input}"));
    let placements = IndexVec::filled(Placement::InPlace, facts.operands().len());
    let verdict = check(&facts, &decisions_from_placements(&facts, placements));
    assert!(verdict.is_err(), "the write of the last block is read as if it had not been made\n{input}");
}

#[test]
fn generated_text_round_trips() {
    for seed in 0..100 {
        let facts = function(seed, Shape { ops: 20, depth: 3, wild: true, parts: false });
        let printed = print::facts(&facts, &Names::new());
        let (again, names) = text::parse(&printed).expect("what is printed can be parsed");
        // The values that an operand flows to have no order.
        let sorted = |text: String| {
            let mut characters: Vec<char> = text.chars().collect();
            characters.sort_unstable();
            characters
        };
        assert_eq!(sorted(print::facts(&again, &names)), sorted(printed), "seed {seed}");
        let count = |facts: &Facts| decide(facts, &Options::default()).map(|decisions| decisions.counts()).ok();
        assert_eq!(count(&facts), count(&again), "seed {seed}");
    }
}

/// Any text gives facts or an error; any facts give decisions or an error.
#[test]
fn damaged_text_never_panics() {
    let good = print::facts(&function(11, Shape { ops: 12, depth: 2, wild: true, parts: false }), &Names::new());
    let tokens =
        ["%v1", " ", "{", "}", "\n", "rw", "m", ">", "~", "^", "[0:1:1]", "put 0 1", "take 0", "next 0", "region", "("];
    let mut random = Random::new(3);
    let mut well_formed = 0;
    for _ in 0..3000 {
        let mut text = good.clone();
        for _ in 0..1 + random.below(3) {
            let place = random.below(u32::try_from(text.len()).expect("small")) as usize;
            match random.below(3) {
                0 => drop(text.remove(place)),
                1 => text.insert_str(place, tokens[random.below(16) as usize]),
                _ => text.truncate(text.len() - place.min(text.len() / 8)),
            }
        }
        let Ok((facts, names)) = text::parse(&text) else { continue };
        well_formed += 1;
        let printed = print::facts(&facts, &names);
        let (again, _) = text::parse(&printed).expect("what is printed can be parsed");
        assert_eq!(again.operands(), facts.operands(), "{text}\n{printed}");
        if let Ok(decisions) = decide(&facts, &Options::default()) {
            // Damaged facts need not be a valid program, so the verdict is open.
            let _ = check(&facts, &decisions);
        }
    }
    assert!(well_formed > 50, "{well_formed} texts were well-formed");
}

/// The path is cut off in the cycle, and says nothing of what the region yields behind it.
#[test]
fn checker_claims_nothing_after_a_cycle_without_an_end() {
    let input = "block(%a)\n%c = outer branch {\nregion {\nblock\n%b = inner branch {\nregion {\nblock next 1\nread r%a\n\
                 block next 1\nread r%a\nblock\nyield rm%a>?%b^%b\n}\n}\nyield rm%b>?%c^%c\n}\n}\nread r%c";
    let (facts, _) = text::parse(input).expect("facts are well-formed");
    let decisions = decide(&facts, &Options::default()).expect("nothing is forced");
    let classes: Vec<_> = facts.values().ids().map(|id| decisions.equivalence_class(id)).collect();
    assert_eq!((classes.len(), classes[0]), (3, classes[1]));
    assert_eq!(classes[0], classes[2]);
    assert_eq!(check(&facts, &decisions), Ok(()));
}

/// What is known of parts never costs bytes.
#[test]
fn parts_that_are_known_apart_cost_no_bytes() {
    let (mut decided, mut less, mut above) = (0, 0, vec![]);
    for seed in 0..count(1000, 6500) {
        let shape =
            Shape { ops: 6 + (seed % 20) as u32, depth: (seed % 4) as u32, wild: seed.is_multiple_of(3), parts: true };
        let facts = function(seed, shape);
        let of = |strategy| decide(&facts, &Options { strategy, ..Options::default() });
        let (Ok(minimal), Ok(greedy)) = (of(Strategy::Minimal), of(Strategy::Greedy)) else { continue };
        let (minimal, greedy) = (cost(&facts, &minimal), cost(&facts, &greedy));
        decided += 1;
        less += u32::from(minimal < greedy);
        if minimal > greedy {
            above.push((seed, minimal, greedy));
        }
    }
    println!("{decided} functions: {less} below greedy, above it {above:?}");
    assert!(decided > 700 && less > 15 && above.is_empty(), "{decided}, {less}, {above:?}");
}

/// Operands that may be copied, where it makes a difference.
fn candidates(facts: &Facts) -> Vec<OperandId> {
    let is_candidate = |id: &OperandId| {
        let used = facts.operands()[*id];
        !used.must_in_place && (used.writes || !facts.aliasing_values(*id).is_empty())
    };
    facts.operands().ids().filter(is_candidate).collect()
}

/// The least cost of all sets of candidates in place that pass.
fn exhaustive(facts: &Facts, candidates: &[OperandId], found: Cost, passes: impl Fn(&Decisions) -> bool) -> Cost {
    let mut least = found;
    for set in 0..1_u32 << candidates.len() {
        let mut placements = IndexVec::filled(Placement::InPlace, facts.operands().len());
        for (number, id) in candidates.iter().enumerate() {
            placements[*id] = if set >> number & 1 == 1 { Placement::InPlace } else { Placement::OutOfPlace };
        }
        let other = decisions_from_placements(facts, placements);
        let cost = cost(facts, &other);
        if cost < least && passes(&other) {
            least = cost;
        }
    }
    least
}

/// Whether the placements keep the rules, word by word.
fn keeps_rules(facts: &Facts, options: &Options, decisions: &Decisions) -> bool {
    let (kept, copied): (Vec<_>, Vec<_>) = facts.operands().ids().partition(|id| decisions.is_in_place(*id));
    let order = [kept.as_slice(), &copied].concat();
    let again = decide_in_order(facts, &order, &mut PairwiseClasses::new(facts, options), false);
    again.is_ok_and(|again| kept.iter().all(|id| again.is_in_place(*id)))
}

/// Of functions with few candidates the least cost is found by trying all sets of them under the rules word by word.
#[test]
fn decisions_cost_least() {
    const MOST_CANDIDATES: usize = 12;
    let (mut compared, mut below_greedy) = (0, 0);
    for seed in 0..count(400, 5000) {
        let shape =
            Shape { ops: 5 + (seed % 7) as u32, depth: (seed % 3) as u32, wild: seed.is_multiple_of(4), parts: true };
        let facts = function(seed, shape);
        let options = Options { strategy: Strategy::Minimal, ..Options::default() };
        let Ok(decisions) = decide(&facts, &options) else { continue };
        let (candidates, found) = (candidates(&facts), cost(&facts, &decisions));
        if candidates.len() > MOST_CANDIDATES || found == Cost::default() {
            continue;
        }
        let least = exhaustive(&facts, &candidates, found, |other| keeps_rules(&facts, &options, other));
        compared += 1;
        let greedy = decide(&facts, &Options::default()).expect("fewer parts overlap for the other strategy");
        below_greedy += u32::from(found < cost(&facts, &greedy));
        assert_eq!(found, least, "seed {seed}\n{}", print::facts(&facts, &Names::new()));
    }
    println!("{compared} functions with copies, {below_greedy} below greedy");
    assert!(compared > 300 && below_greedy > 50, "{compared}, {below_greedy}");
}

/// Some copies of the rules are needless: in a sample of executions all is right without them.
#[test]
fn rules_are_near_the_fewest_bytes() {
    const MOST_CANDIDATES: usize = 12;
    let (mut compared, mut above, mut found_bytes, mut least_bytes) = (0, 0, 0, 0);
    for seed in 0..count(150, 1000) {
        let facts = function(seed, Shape { ops: 8, depth: (seed % 3) as u32, wild: false, parts: true });
        let options = Options { strategy: Strategy::Minimal, ..Options::default() };
        let Ok(decisions) = decide(&facts, &options) else { continue };
        let (candidates, found) = (candidates(&facts), cost(&facts, &decisions));
        if candidates.len() > MOST_CANDIDATES || found == Cost::default() {
            continue;
        }
        let least = exhaustive(&facts, &candidates, found, |other| check_elements(&facts, other).is_ok());
        compared += 1;
        above += u32::from(found.bytes > least.bytes);
        (found_bytes, least_bytes) = (found_bytes + found.bytes, least_bytes + least.bytes);
    }
    println!("{compared} functions with copies: {above} above the fewest bytes, {found_bytes} of {least_bytes} in all");
    assert!(
        compared > 80 && 10 * found_bytes <= 12 * least_bytes,
        "{compared}, {above}: {found_bytes} of {least_bytes}"
    );
}
