//! Summaries of functions for their callers: which arguments a function reads and writes, which results may alias an argument,
//! which results may alias each other, and which may be read-only memory.
//!
//! Decided functions are summarised callees first; a call's operands then get their facts from the summary.
//! A function that is not analysed gets [`Summary::unknown`].
//!
//! Mutually recursive functions are decided together, by [`fixpoint`]: they start with empty summaries, are
//! decided with the current summaries, and are decided again until no summary grows. By induction over the depth of the
//! recursion, the summaries then cover every call.
//!
//! Arguments and results are numbered as in the function type; those that are no tensors have empty entries.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::facts::Facts;
use crate::index::ValueId;
use crate::one_shot::{Decisions, InPlaceAnalysis};

/// How often [`fixpoint`] drops single guesses before it drops all of them.
const MOST_REFUTATIONS: usize = 4;

/// How a function uses one argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentSummary {
    /// The contents may be loaded.
    pub reads: bool,
    /// The buffer may be stored to.
    pub writes: bool,
    /// The results that may alias the argument, ascending.
    pub aliasing_results: Vec<u32>,
}

/// The summary of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// By argument.
    pub arguments: Vec<ArgumentSummary>,
    /// For each result, the argument that it is always equivalent to.
    pub equivalent_arguments: Vec<Option<u32>>,
    /// For each result, the first result that it may alias: itself, if there is none before it.
    pub result_classes: Vec<u32>,
    /// The results that may be read-only memory (a constant), ascending. Arguments do not count: the caller
    /// knows whether its own operand is writable.
    pub read_only_results: Vec<u32>,
}

impl Summary {
    /// The empty summary: no argument is accessed or returned. The start of a recursion.
    pub fn nothing(arguments: usize, results: usize) -> Self {
        Self {
            arguments: vec![ArgumentSummary::default(); arguments],
            equivalent_arguments: vec![None; results],
            result_classes: (0..number(results)).collect(),
            read_only_results: vec![],
        }
    }

    /// The worst case for arguments: each of these is read and written and may alias each of these results.
    /// Results among each other are left open.
    pub fn unknown(arguments: &[bool], results: &[bool]) -> Self {
        let tensors: Vec<u32> =
            (0..number(results.len())).zip(results).filter(|(_, is)| **is).map(|(i, _)| i).collect();
        let info = |is_tensor: &bool| match is_tensor {
            true => ArgumentSummary { reads: true, writes: true, aliasing_results: tensors.clone() },
            false => ArgumentSummary::default(),
        };
        Self { arguments: arguments.iter().map(info).collect(), ..Self::nothing(arguments.len(), results.len()) }
    }

    /// Whether a call's operand for this argument aliases this result and is equivalent to it: the argument may
    /// be this result only, and the result always is this argument.
    pub fn is_equivalent(&self, argument: u32, result: u32) -> bool {
        let only = self.arguments.get(argument as usize).is_some_and(|info| info.aliasing_results == [result]);
        only && self.equivalent_arguments.get(result as usize) == Some(&Some(argument))
    }

    /// Pairs of results that may alias, enough to connect each class.
    pub fn shared_results(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.result_classes
            .iter()
            .zip(0..)
            .filter(|(first, result)| *first != result)
            .map(|(first, result)| (*first, result))
    }

    /// Assumes that a result is equivalent to an argument, for [`fixpoint`] to confirm.
    pub fn guess(&mut self, argument: u32, result: u32) {
        merge_sorted(&mut self.arguments[argument as usize].aliasing_results, &[result]);
        self.equivalent_arguments[result as usize] = Some(argument);
    }

    fn give_up(&mut self, result: u32) {
        if let Some(argument) = self.equivalent_arguments[result as usize].take() {
            self.arguments[argument as usize].aliasing_results.retain(|r| *r != result);
        }
    }

    /// Joins another summary of the same function; whether this one grew.
    fn join(&mut self, other: &Self) -> bool {
        let before = self.clone();
        for (mine, its) in self.arguments.iter_mut().zip(&other.arguments) {
            mine.reads |= its.reads;
            mine.writes |= its.writes;
            merge_sorted(&mut mine.aliasing_results, &its.aliasing_results);
        }
        for (mine, its) in self.equivalent_arguments.iter_mut().zip(&other.equivalent_arguments) {
            if mine != its {
                *mine = None;
            }
        }
        for (first, result) in other.shared_results() {
            unite(&mut self.result_classes, first, result);
        }
        merge_sorted(&mut self.read_only_results, &other.read_only_results);
        *self != before
    }
}

fn merge_sorted(mine: &mut Vec<u32>, other: &[u32]) {
    if !other.iter().all(|item| mine.binary_search(item).is_ok()) {
        mine.extend_from_slice(other);
        mine.sort_unstable();
        mine.dedup();
    }
}

/// The first result of the class; entries point to an earlier one of their class, or to themselves.
fn first_of(classes: &[u32], mut result: u32) -> u32 {
    while classes[result as usize] != result {
        result = classes[result as usize];
    }
    result
}

/// Joins two classes; every entry then points to the first of its class.
fn unite(classes: &mut [u32], a: u32, b: u32) {
    let (a, b) = (first_of(classes, a), first_of(classes, b));
    if a != b {
        for class in classes.iter_mut().filter(|class| **class == a.max(b)) {
            *class = a.min(b);
        }
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Summarise a decided function.
///
/// `arguments`: those of the entry block, `None` for non-tensors. `returns`: for each return, its operands in the
/// order of the results. A function without a return returns nothing to its caller.
/// Time O(uses + values + size of the summary + returned operands).
pub fn summarise(
    facts: &Facts,
    decisions: &Decisions,
    arguments: &[Option<ValueId>],
    returns: &[Vec<Option<ValueId>>],
) -> Summary {
    let results = returns.iter().map(Vec::len).max().unwrap_or(0);
    let written: HashSet<ValueId> = facts
        .operands()
        .iter_enumerated()
        .filter(|(operand, used)| used.writes && decisions.is_in_place(*operand))
        .map(|(_, used)| decisions.alias_class(used.value))
        .collect();
    let returned_by_class = returned_by_class(decisions, returns);
    let arguments_info = arguments.iter().map(|argument| {
        let Some(argument) = *argument else { return ArgumentSummary::default() };
        let class = decisions.alias_class(argument);
        ArgumentSummary {
            reads: facts.is_value_read(argument),
            writes: written.contains(&class),
            aliasing_results: returned_by_class.get(&class).cloned().unwrap_or_default(),
        }
    });
    let mut summary = Summary {
        arguments: arguments_info.collect(),
        equivalent_arguments: equivalent_arguments(decisions, arguments, returns, results),
        ..Summary::nothing(0, results)
    };
    // Through two returns a result may be in two classes: aliasing is taken as transitive.
    for shared in returned_by_class.values() {
        for pair in shared.windows(2) {
            unite(&mut summary.result_classes, pair[0], pair[1]);
        }
    }
    summary.read_only_results = read_only_results(facts, decisions, arguments, &returned_by_class);
    summary
}

/// Results by the alias class of the returned values, ascending.
fn returned_by_class(decisions: &Decisions, returns: &[Vec<Option<ValueId>>]) -> BTreeMap<ValueId, Vec<u32>> {
    let mut found: BTreeMap<ValueId, Vec<u32>> = BTreeMap::new();
    for operands in returns {
        for (result, value) in (0..).zip(operands) {
            if let Some(value) = *value {
                found.entry(decisions.alias_class(value)).or_default().push(result);
            }
        }
    }
    for results in found.values_mut() {
        results.sort_unstable();
        results.dedup();
    }
    found
}

/// For each result the first argument that every return returns for it.
fn equivalent_arguments(
    decisions: &Decisions,
    arguments: &[Option<ValueId>],
    returns: &[Vec<Option<ValueId>>],
    results: usize,
) -> Vec<Option<u32>> {
    let mut by_class: HashMap<ValueId, u32> = HashMap::new();
    for (index, argument) in (0..).zip(arguments) {
        if let Some(argument) = *argument {
            by_class.entry(decisions.equivalence_class(argument)).or_insert(index);
        }
    }
    let equivalent = |value: Option<ValueId>| by_class.get(&decisions.equivalence_class(value?)).copied();
    let common = |result: usize| {
        let mut found = returns.iter().map(|operands| equivalent(operands.get(result).copied().flatten()));
        let first = found.next().flatten()?;
        found.all(|other| other == Some(first)).then_some(first)
    };
    (0..results).map(common).collect()
}

fn read_only_results(
    facts: &Facts,
    decisions: &Decisions,
    arguments: &[Option<ValueId>],
    returned_by_class: &BTreeMap<ValueId, Vec<u32>>,
) -> Vec<u32> {
    let arguments: HashSet<ValueId> = arguments.iter().copied().flatten().collect();
    let read_only = |(value, info): (ValueId, &crate::facts::Value)| {
        (!info.info.buffer.writable && !arguments.contains(&value)).then(|| decisions.alias_class(value))
    };
    let classes: HashSet<ValueId> = facts.values().iter_enumerated().filter_map(read_only).collect();
    let mut results: Vec<u32> =
        returned_by_class.iter().filter(|(class, _)| classes.contains(class)).flat_map(|(_, r)| r.clone()).collect();
    results.sort_unstable();
    results.dedup();
    results
}

/// A group of mutually recursive functions, as [`fixpoint`] queries it.
pub trait Recursion {
    /// The error of a function that cannot be decided.
    type Error;
    /// Sets the current summary of the function at a position.
    fn set(&mut self, position: usize, known: &Summary);
    /// Decides and summarises the function at a position, with the current summaries of all of them.
    ///
    /// # Errors
    /// The function cannot be decided.
    fn decide(&mut self, position: usize) -> Result<Summary, Self::Error>;
}

/// Summaries of mutually recursive functions, by position.
///
/// `starts`: the initial summaries, empty or with guesses that a result is equivalent to an argument, which
/// are confirmed or dropped. The last decisions on each function use the returned summaries, so they
/// may be kept.
/// Time: the number of rounds is bounded by the size of the summaries; without wrong guesses it is 2 or 3.
///
/// # Errors
/// The first error of [`Recursion::decide`].
pub fn fixpoint<R: Recursion>(starts: Vec<Summary>, functions: &mut R) -> Result<Vec<Summary>, R::Error> {
    let mut starts = starts;
    let mut refutations = 0;
    loop {
        starts.iter().enumerate().for_each(|(position, start)| functions.set(position, start));
        let mut summaries = starts.clone();
        let Some(refuted) = iterate(&starts, &mut summaries, functions)? else { return Ok(summaries) };
        // Consequences of the guess are dropped with it.
        refutations += 1;
        if refutations < MOST_REFUTATIONS {
            refuted.results.into_iter().for_each(|result| starts[refuted.position].give_up(result));
        } else {
            starts
                .iter_mut()
                .for_each(|start| (0..number(start.equivalent_arguments.len())).for_each(|r| start.give_up(r)));
        }
    }
}

/// Guesses that were refuted.
struct Refuted {
    position: usize,
    results: Vec<u32>,
}

/// Decides the functions in turn until no summary grows, or a guess is refuted.
fn iterate<R: Recursion>(
    starts: &[Summary],
    summaries: &mut [Summary],
    functions: &mut R,
) -> Result<Option<Refuted>, R::Error> {
    // Number of consecutive functions whose summary did not grow.
    let mut stable = 0;
    let mut position = 0;
    while stable < summaries.len() {
        let found = functions.decide(position)?;
        let results = refuted_guess(&starts[position], &found);
        if !results.is_empty() {
            return Ok(Some(Refuted { position, results }));
        }
        stable += 1;
        if summaries[position].join(&found) {
            functions.set(position, &summaries[position]);
            stable = 0;
        }
        position = (position + 1) % summaries.len();
    }
    Ok(None)
}

/// Results that were guessed to be equivalent to an argument and are not.
fn refuted_guess(start: &Summary, found: &Summary) -> Vec<u32> {
    let pairs = start.equivalent_arguments.iter().zip(&found.equivalent_arguments);
    (0..).zip(pairs).filter(|(_, (guess, found))| guess.is_some() && guess != found).map(|(result, _)| result).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{Recursion, Summary, fixpoint, summarise};
    use crate::index::{BlockId, Id, OperandId};
    use crate::one_shot::{Options, decide};
    use crate::text;

    /// The last line of the facts is the return.
    fn summary_of(input: &str) -> Summary {
        let (facts, _) = text::parse(input).expect("facts are well-formed");
        let decisions = decide(&facts, &Options::default()).expect("facts can be decided");
        let last = facts.operands().ids().last().map_or(0, Id::index);
        let op = facts.operands()[OperandId::from_index(last)].op;
        let returns = vec![facts.operands_of(op).iter().map(|id| Some(facts.operands()[*id].value)).collect()];
        let arguments: Vec<_> = facts.arguments_of(BlockId::new(0)).iter().copied().map(Some).collect();
        summarise(&facts, &decisions, &arguments, &returns)
    }

    /// `rw0>0`: the argument is read, written, and may alias result 0; `=`: is equivalent to it.
    fn show(summary: &Summary) -> String {
        let arguments = summary.arguments.iter().zip(0..).map(|(info, index)| {
            let results = info
                .aliasing_results
                .iter()
                .map(|r| if summary.is_equivalent(index, *r) { format!("={r}") } else { format!(">{r}") });
            let access = [(info.reads, "r"), (info.writes, "w")].into_iter().filter(|(is, _)| *is).map(|(_, c)| c);
            format!("{}{index}{}", access.collect::<String>(), results.collect::<String>())
        });
        let shared = summary.shared_results().map(|(a, b)| format!("share {a} {b}"));
        let read_only = summary.read_only_results.iter().map(|r| format!("read-only {r}"));
        arguments.chain(shared).chain(read_only).collect::<Vec<_>>().join(", ")
    }

    fn check(input: &str, expected: Expect) {
        expected.assert_eq(&show(&summary_of(input)));
    }

    #[test]
    fn argument_that_is_updated_and_returned() {
        check("block(%a, %b)\n%0 = insert r%b, rw%a>%0\nreturn r%0", expect!["rw0=0, r1"]);
    }

    #[test]
    fn argument_that_is_copied() {
        check("block(%a<frozen>)\n%0 = insert rw%a>%0\nreturn r%0", expect!["r0"]);
    }

    #[test]
    fn slice_of_an_argument() {
        check("block(%a)\n%0 = extract %a~%0 take 0 [0:1:1]\nreturn r%0, r%a", expect!["r0>0>1, share 0 1"]);
    }

    #[test]
    fn two_results_are_one_new_tensor() {
        check("block(%a)\n%0 = make\nreturn r%0, r%a, r%0", expect!["r0=1, share 0 2"]);
    }

    #[test]
    fn constant_that_is_returned() {
        check("block(%a)\n%0<frozen> = constant\nreturn r%0, r%a", expect!["r0=1, read-only 0"]);
    }

    #[test]
    fn unknown_functions_do_everything_to_tensors() {
        let summary = Summary::unknown(&[true, false], &[false, true]);
        expect!["rw0>1, 1"].assert_eq(&show(&summary));
        assert!(!summary.is_equivalent(0, 1));
    }

    /// Functions whose bodies, as facts, depend on the summaries of all of them.
    struct Bodies<F> {
        body: F,
        known: Vec<Summary>,
        decided: usize,
    }

    impl<F: Fn(usize, &[Summary]) -> String> Recursion for Bodies<F> {
        type Error = ();
        fn set(&mut self, position: usize, known: &Summary) {
            self.known.resize(self.known.len().max(position + 1), Summary::default());
            self.known[position] = known.clone();
        }
        fn decide(&mut self, position: usize) -> Result<Summary, ()> {
            self.decided += 1;
            let body = (self.body)(position, &self.known);
            if body.is_empty() { Err(()) } else { Ok(summary_of(&body)) }
        }
    }

    /// The final summaries, and how often a function was decided.
    fn decided(starts: Vec<Summary>, body: impl Fn(usize, &[Summary]) -> String) -> (Vec<Summary>, usize) {
        let mut bodies = Bodies { body, known: vec![], decided: 0 };
        let summaries = fixpoint(starts, &mut bodies).expect("nothing fails");
        assert_eq!(summaries, bodies.known, "the last decisions are with what is returned");
        (summaries, bodies.decided)
    }

    /// A function that calls itself.
    fn recursive(body: impl Fn(&Summary) -> String, start: Summary) -> (Summary, usize) {
        let (mut summaries, rounds) = decided(vec![start], |_, known| body(&known[0]));
        (summaries.remove(0), rounds)
    }

    /// A call of the function on `%a`, giving `%c`.
    fn call(known: &Summary) -> String {
        let info = &known.arguments[0];
        let access = format!("{}{}", if info.reads { "r" } else { "" }, if info.writes { "w" } else { "" });
        let alias = match (known.is_equivalent(0, 0), info.aliasing_results.is_empty()) {
            (true, _) => ">%c",
            (false, true) => "",
            (false, false) => "~%c",
        };
        format!("%c = call {access}%a{alias}")
    }

    fn guess() -> Summary {
        let mut start = Summary::nothing(1, 1);
        start.guess(0, 0);
        start
    }

    #[test]
    fn recursion_that_updates_its_argument() {
        let body = |known: &Summary| format!("block(%a)\n{}\n%1 = insert rw%c>%1\nreturn r%1", call(known));
        let (summary, rounds) = recursive(body, guess());
        expect!["rw0=0"].assert_eq(&show(&summary));
        assert!(rounds <= 3, "{rounds} rounds");
        // Without the guess the summary is less precise, and still right: it returns a value not known to alias the argument.
        expect!["0"].assert_eq(&show(&recursive(body, Summary::nothing(1, 1)).0));
    }

    #[test]
    fn recursion_that_reads_only() {
        let body = |known: &Summary| format!("block(%a)\n{}\nread r%a\n%1 = make\nreturn r%1", call(known));
        let (summary, rounds) = recursive(body, guess());
        expect!["r0"].assert_eq(&show(&summary));
        assert!(rounds <= 4, "{rounds} rounds");
    }

    #[test]
    fn functions_that_call_each_other() {
        // Position 0 passes its argument to 1, which writes to it and calls 0.
        let (summaries, _) = decided(vec![Summary::nothing(1, 1); 2], |position, known| {
            let write = if position == 1 { "%w = fill w%a>%w\nread r%w" } else { "" };
            format!("block(%a)\n{}\n{write}\nreturn r%c", call(&known[1 - position]))
        });
        let shown: Vec<_> = summaries.iter().map(show).collect();
        expect!["w0; w0"].assert_eq(&shown.join("; "));
    }

    #[test]
    fn a_ring_of_functions_takes_a_constant_number_of_rounds() {
        for count in [10, 100] {
            let (summaries, rounds) = decided(vec![guess(); count], |position, known| {
                let next = &known[(position + count - 1) % count];
                format!("block(%a)\n{}\n%1 = insert rw%c>%1\nreturn r%1", call(next))
            });
            assert!(summaries.iter().all(|summary| show(summary) == "rw0=0"));
            assert!(rounds <= 3 * count, "{count} functions: {rounds} decisions");
        }
    }

    #[test]
    fn errors_end_it() {
        let mut bodies = Bodies { body: |_: usize, _: &[Summary]| String::new(), known: vec![], decided: 0 };
        assert_eq!(fixpoint(vec![Summary::default()], &mut bodies), Err(()));
    }
}
