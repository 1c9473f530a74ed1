//! Random sets of patterns over random IR: the driver against a naive one.
//!
//! The patterns read their op and adaptor only. Then the result depends neither on the order of visits nor on when casts are made.
//! Two features are left out, because with them it depends on the order for any driver:
//! - types that change without a type converter: an adaptor then shows the latest type of the operand;
//! - ops that become recursively legal by a pattern: whether their bodies were converted before is open.
//!
//! 10,000 cases with `MONOPOUR_TEST_FULL=1`, a sample otherwise; `MONOPOUR_TEST_SEEDS=a..b` takes others.

mod generate;
mod model;
mod recipe;
mod reference;

use generate::Rng;
use model::{CAST, Model};
use monopour_ir::conversion::{
    ConversionOptions, ConversionStats, ConversionTarget, Mode, PatternEvent, PatternSet, WorklistOrder,
    analyze_conversion, convert_with, on_clone,
};
use monopour_ir::{Context, Diagnostics, Module, Op, OpSpec, PrintOptions, Type};
use recipe::Case;
use reference::Outcome;
use std::collections::HashSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Ops of the largest module, those that only define operands not counted.
const MAX_SIZE: usize = 24;

fn seeds() -> Range<u64> {
    if let Ok(text) = std::env::var("MONOPOUR_TEST_SEEDS") {
        let (from, to) = text.split_once("..").expect("MONOPOUR_TEST_SEEDS is a..b");
        return from.parse().expect("a number")..to.parse().expect("a number");
    }
    if std::env::var("MONOPOUR_TEST_FULL").is_ok_and(|v| v == "1") { 0..10_000 } else { 0..300 }
}

#[derive(Default)]
struct Tally {
    converted: AtomicUsize,
    failed: AtomicUsize,
    applied: AtomicUsize,
    casts_left: AtomicUsize,
    /// Converted in full mode with a type converter: no cast is left.
    complete: AtomicUsize,
}

#[test]
fn random_patterns_give_what_a_naive_driver_gives() {
    let seeds = seeds();
    let (next, tally, failures) = (AtomicU64::new(seeds.start), Tally::default(), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let cx = Context::new();
                cx.allow_unregistered_dialects(true);
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if let Err(text) = run_guarded(cx, seed, MAX_SIZE, &tally) {
                        failures.lock().expect("nobody panics here").push((seed, reduced(cx, seed, text)));
                    }
                }
            });
        }
    });
    let count = |n: &AtomicUsize| n.load(Ordering::Relaxed);
    let (converted, failed) = (count(&tally.converted), count(&tally.failed));
    let (applied, casts) = (count(&tally.applied), count(&tally.casts_left));
    let complete = count(&tally.complete);
    println!(
        "{converted} converted, {complete} in full mode with types, {failed} cannot be; \
         {applied} patterns applied, {casts} casts left"
    );
    let mut failures = failures.into_inner().expect("nobody panics here");
    failures.sort();
    let seeds: Vec<u64> = failures.iter().map(|f| f.0).collect();
    assert!(failures.is_empty(), "{} seeds fail: {seeds:?}\n\n{}", seeds.len(), failures[0].1);
    if converted + failed >= 300 {
        // Both kinds of cases must occur, or these tests would show nothing.
        assert!(converted > 100 && failed > 50 && complete > 20, "cases succeed and fail");
        assert!(applied > 3_000 && casts > 100, "cases do something");
    }
}

/// The same case on the smallest module on which it fails.
fn reduced(cx: Context, seed: u64, text: String) -> String {
    let tally = Tally::default();
    (0..MAX_SIZE).find_map(|size| run_guarded(cx, seed, size, &tally).err()).unwrap_or(text)
}

fn run_guarded(cx: Context, seed: u64, size: usize, tally: &Tally) -> Result<(), String> {
    let run = AssertUnwindSafe(|| run(cx, seed, size, tally));
    catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned())).unwrap_or_default();
        Err(format!("seed {seed} panics on a module of size {size}: {text}"))
    })
}

fn run(cx: Context, seed: u64, size: usize, tally: &Tally) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let case = generate::case(&mut rng);
    let text = generate::module(&mut rng, size, case.is_tame).to_mlir();
    let module = Module::parse(cx, text.as_bytes(), "random.mlir").map_err(|e| format!("seed {seed}: {e}\n{text}"))?;
    let expected = reference::convert(&case, Model::read(module.op()));
    let wrong = |what: String| format!("seed {seed}: {what}\n\n{case:#?}\n\n{text}");
    check_orders(&module, &case, seed, &expected).map_err(wrong)?;
    check_confined(cx, &mut rng, size, &case, seed)?;
    check_clone(&module, &case, &expected).map_err(wrong)?;
    check_analysis(&module, &case, &expected).map_err(wrong)?;
    if expected.errors.is_empty() && case.mode == Mode::Full && case.conversions.is_some() {
        tally.complete.fetch_add(1, Ordering::Relaxed);
    }
    let kind = if expected.errors.is_empty() { &tally.converted } else { &tally.failed };
    kind.fetch_add(1, Ordering::Relaxed);
    tally.applied.fetch_add(expected.applied, Ordering::Relaxed);
    tally.casts_left.fetch_add(expected.casts_left, Ordering::Relaxed);
    Ok(())
}

fn convert_case(root: Op, case: &Case, options: ConversionOptions<'_>) -> Result<ConversionStats, Diagnostics> {
    let converter = recipe::converter(case);
    let (target, patterns) = (recipe::target(case), recipe::patterns(case, &converter));
    convert_with(root, &target, &patterns, case.mode, options)
}

/// On functions, patterns that promise to stay in their own function give the same result.
fn check_confined(cx: Context, rng: &mut Rng, size: usize, case: &Case, seed: u64) -> Result<(), String> {
    let text = generate::functions(rng, size, case.is_tame).to_mlir();
    let module = Module::parse(cx, text.as_bytes(), "random.mlir").map_err(|e| format!("seed {seed}: {e}\n{text}"))?;
    let expected = reference::convert(case, Model::read(module.op()));
    let converter = recipe::converter(case);
    let (target, mut patterns) = (recipe::target(case), recipe::patterns(case, &converter));
    let mut texts = vec![];
    for is_confined in [false, true] {
        if is_confined {
            patterns.confine();
        }
        for worklist_order in [WorklistOrder::DepthFirst, WorklistOrder::Shuffled(seed)] {
            let copy: &Module = Box::leak(Box::new(module.duplicate()));
            let options = ConversionOptions { verify_each: true, worklist_order, ..Default::default() };
            let outcome = convert_with(copy.op(), &target, &patterns, case.mode, options);
            let wrong = |what: String| {
                format!("seed {seed}, confined: {is_confined}, {worklist_order:?}: {what}\n\n{case:#?}\n\n{text}")
            };
            compare(copy.op(), &outcome, &expected).map_err(wrong)?;
            texts.push(print(copy.op()));
        }
    }
    match texts.iter().find(|text| **text != texts[0]) {
        Some(other) => Err(format!("seed {seed}, confined: gives\n{other}\ninstead of\n{}", texts[0])),
        None => Ok(()),
    }
}

fn check_orders(module: &Module, case: &Case, seed: u64, expected: &Outcome) -> Result<(), String> {
    let shuffled = [WorklistOrder::Shuffled(1), WorklistOrder::Shuffled(seed)];
    let orders = [WorklistOrder::DepthFirst, WorklistOrder::LastFirst, shuffled[0], shuffled[1]];
    let mut first: Option<String> = None;
    for order in orders {
        let copy = module.duplicate();
        let mut bad_casts = None;
        let mut hook =
            |event: &PatternEvent<'_, '_>| bad_casts = bad_casts.take().or_else(|| casts_out_of_bound(event));
        let options = ConversionOptions {
            // Each on a share of the cases.
            after_each_pattern: Some(&mut hook),
            verify_each: seed.is_multiple_of(4),
            fingerprint: seed % 8 == 1,
            worklist_order: order,
        };
        let outcome = convert_case(copy.op(), case, options);
        if let Some(text) = bad_casts {
            return Err(format!("{order:?}: {text}"));
        }
        compare(copy.op(), &outcome, expected).map_err(|text| format!("{order:?}: {text}"))?;
        let text = print(copy.op());
        let first = first.get_or_insert_with(|| text.clone());
        if *first != text {
            return Err(format!("{order:?} gives\n{text}\ninstead of\n{first}"));
        }
    }
    Ok(())
}

fn compare(root: Op, outcome: &Result<ConversionStats, Diagnostics>, expected: &Outcome) -> Result<(), String> {
    root.verify_with_diagnostics().map_err(|e| format!("invalid: {e}\n{}", print(root)))?;
    let text = Model::read(root).render();
    if text != expected.text {
        return Err(format!("gives\n{text}\ninstead of\n{}", expected.text));
    }
    let errors = outcome.as_ref().err().map(said).unwrap_or_default();
    if errors != expected.errors {
        return Err(format!("says\n{}\ninstead of\n{}\n{text}", errors.join("\n"), expected.errors.join("\n")));
    }
    let there = own_casts(root).len();
    let known = outcome.as_ref().map_or(there, |stats| stats.casts_left);
    let needed = expected.casts_left;
    if there != needed || known != there {
        return Err(format!("{there} casts are left, {known} are known, {needed} are needed\n{}", print(root)));
    }
    let most = outcome.as_ref().map_or(0, |stats| stats.max_live_casts);
    if most > expected.casts_made {
        return Err(format!("{most} casts lived at one time, of {} that were asked for", expected.casts_made));
    }
    Ok(())
}

/// Errors without their chains, which depend on the order, sorted for the same reason.
fn said(errors: &Diagnostics) -> Vec<String> {
    let one = |error: &monopour_ir::Diagnostic| match error.code {
        "I0010" => {
            let is_reason = |note: &&String| !note.starts_with("created or changed by") && *note != "and so on";
            let reasons: Vec<_> = error.notes.iter().filter(is_reason).cloned().collect();
            format!("{}: {}: {}", error.location, error.message, reasons.join("; "))
        }
        "I0013" => error.message.clone(),
        _ => error.to_string(),
    };
    let mut out: Vec<String> = errors.0.iter().map(one).collect();
    out.sort();
    out
}

/// The driver's casts: those of the input carry an attribute.
fn own_casts<'c>(root: Op<'c>) -> Vec<Op<'c>> {
    root.find_all(CAST).into_iter().filter(|cast| cast.attr("k").is_none()).collect()
}

/// The bound on live casts: each is used, and there is one per value and result types.
fn casts_out_of_bound(event: &PatternEvent<'_, '_>) -> Option<String> {
    let casts = own_casts(event.root?);
    let mut seen = HashSet::new();
    for cast in &casts {
        let types: Vec<String> = cast.results().iter().map(|r| r.ty().to_string()).collect();
        let wrong = if cast.results().iter().all(|r| r.is_unused()) {
            "an unused cast"
        } else if cast.num_operands() == 1 && !seen.insert((cast.operand(0), types)) {
            "two casts of a value to the same types"
        } else {
            continue;
        };
        return Some(format!("{wrong} after {}\n{}", event.pattern, print(event.root?)));
    }
    let live = event.live_casts;
    (casts.len() != live)
        .then(|| format!("{live} live casts, but {} in the IR\n{}", casts.len(), print(cast_root(event))))
}

fn cast_root<'c>(event: &PatternEvent<'c, '_>) -> Op<'c> {
    event.root.expect("asked before")
}

fn print(root: Op) -> String {
    root.print(&PrintOptions { locations: true, ..Default::default() })
}

fn check_clone(module: &Module, case: &Case, expected: &Outcome) -> Result<(), String> {
    let copy = module.duplicate();
    let before = print(copy.op());
    let outcome = on_clone(copy.op(), |root| convert_case(root, case, ConversionOptions::default()));
    if outcome.is_ok() {
        return compare(copy.op(), &outcome, expected).map_err(|text| format!("on a clone: {text}"));
    }
    let errors = outcome.as_ref().err().map(said).unwrap_or_default();
    if errors != expected.errors {
        return Err(format!("on a clone says\n{}\ninstead of\n{}", errors.join("\n"), expected.errors.join("\n")));
    }
    let after = print(copy.op());
    if before == after { Ok(()) } else { Err(format!("a failure on a clone changes the input to\n{after}")) }
}

/// An analysis changes nothing, and gives the result of a partial conversion.
fn check_analysis(module: &Module, case: &Case, expected: &Outcome) -> Result<(), String> {
    let before = print(module.op());
    let converter = recipe::converter(case);
    let (target, patterns) = (recipe::target(case), recipe::patterns(case, &converter));
    let analysis = analyze_conversion(module.op(), &target, &patterns).map_err(|e| format!("analysis: {e}"))?;
    let errors = said(&analysis.diagnostics);
    let is_same = case.mode == Mode::Full || errors == expected.errors;
    if !is_same || analysis.blocked.is_empty() != errors.is_empty() {
        let blocked: Vec<_> = analysis.blocked.iter().map(|op| op.location().to_string()).collect();
        return Err(format!("analysis says\n{}\nand blocks {}", errors.join("\n"), blocked.join(", ")));
    }
    let after = print(module.op());
    if before == after { Ok(()) } else { Err(format!("analysis changes the input to\n{after}")) }
}

#[test]
fn without_a_converter_changed_types_depend_on_the_order() {
    let read_types = |worklist_order| {
        let module = super::parse("\"t.both\"() : () -> ()\n");
        let (wide, narrow) = (Type::integer(module.context(), 64), Type::integer(module.context(), 32));
        let mut target = ConversionTarget::new();
        target.illegal_op("t.both").illegal_op("t.def").illegal_op("t.use");
        let mut patterns = PatternSet::new();
        patterns.add_fn("t.both", |op, _, rw| {
            let def = rw.create(OpSpec::new("t.def", op.location()).results(&[wide]))?;
            rw.create(OpSpec::new("t.use", op.location()).operands(&def.results()))?;
            rw.erase(op);
            Ok(())
        });
        patterns.add_fn("t.def", |op, _, rw| {
            let new = rw.create(OpSpec::new("n.def", op.location()).results(&[narrow]))?;
            rw.replace_op(op, &new.results());
            Ok(())
        });
        patterns.add_fn("t.use", |op, adaptor, rw| {
            rw.create(OpSpec::new("n.use", op.location()).operands(adaptor.operands()))?;
            rw.erase(op);
            Ok(())
        });
        let options = ConversionOptions { worklist_order, ..Default::default() };
        convert_with(module.op(), &target, &patterns, Mode::Partial, options).expect("converts");
        module.op().find_all("n.use")[0].operand(0).ty().to_string()
    };
    assert_eq!(read_types(WorklistOrder::DepthFirst), "i32");
    assert_eq!(read_types(WorklistOrder::LastFirst), "i64");
}
