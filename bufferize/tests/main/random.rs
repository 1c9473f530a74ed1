//! Random functions: decisions on their facts are accepted by a checker that shares nothing with the decider.

use crate::support::{boundaries, parse};
use monopour_analysis::checker::check;
use monopour_analysis::one_shot::{InPlaceAnalysis, Placement, decisions_from_placements};
use monopour_bufferize::{DecisionsByName, FunctionBoundaryTypeConversion, Options, analyse, run_with_decisions};
use monopour_ir::Context;
use monopour_testkit::generate_functions::{Shape, module};

fn options() -> Options {
    Options {
        allow_return_allocs_from_loops: true,
        function_boundary_type_conversion: FunctionBoundaryTypeConversion::Identity,
        ..boundaries()
    }
}

fn full() -> bool {
    std::env::var_os("MONOPOUR_TEST_FULL").is_some_and(|v| v == "1")
}

fn text(seed: u64) -> String {
    module(seed, Shape::of_seed(seed))
}

#[test]
fn random_functions_are_valid_and_reproducible() {
    for seed in 0..200 {
        let once = text(seed);
        assert_eq!(once, text(seed), "seed {seed}");
        let module = parse(&once);
        module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("seed {seed}: {e}\n{once}"));
    }
}

/// Counts over many functions.
#[derive(Default, Debug)]
struct Totals {
    functions: u32,
    in_place: u32,
    out_of_place: u32,
    writes_in_place: u32,
}

#[test]
fn the_checker_accepts_decisions_on_random_functions() {
    let count = if full() { 20_000 } else { 1_000 };
    let mut totals = Totals::default();
    let cx = Context::new();
    for seed in 0..count {
        let text = text(seed);
        let module = monopour_ir::Module::parse(cx, text.as_bytes(), "random.mlir")
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let analysed = analyse(module.op(), &options()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        for function in analysed {
            if let Err(violation) = check(&function.facts, &function.decisions) {
                let names = monopour_analysis::text::Names::new();
                panic!(
                    "seed {seed}, @{}: {violation}\n{text}\n{}\n{}",
                    function.name,
                    monopour_analysis::print::facts(&function.facts, &names),
                    monopour_analysis::print::decisions(&function.facts, &names, &function.decisions)
                );
            }
            let counts = function.decisions.counts();
            totals.functions += 1;
            totals.in_place += counts.in_place;
            totals.out_of_place += counts.out_of_place;
            let written = function.facts.operands().iter_enumerated();
            let in_place = written.filter(|(id, used)| used.writes && function.decisions.is_in_place(*id)).count();
            totals.writes_in_place += u32::try_from(in_place).expect("few operands");
        }
    }
    println!("{totals:?}");
    let functions = totals.functions;
    assert!(functions >= u32::try_from(count).expect("few"), "{totals:?}");
    assert!(totals.writes_in_place > 2 * functions && totals.out_of_place > functions, "{totals:?}");
}

/// A copy left out is a mistake that the checker must see, mostly: some copies are only made because the rules are
/// cautious, or matter on paths that are not drawn.
#[test]
fn the_checker_rejects_most_copies_left_out() {
    let (mut flips, mut rejected) = (0, 0);
    for seed in 0..if full() { 2_000 } else { 150 } {
        for function in analyse(parse(&text(seed)).op(), &options()).expect("analyses") {
            for operand in function.facts.operands().ids().filter(|id| !function.decisions.is_in_place(*id)) {
                let mut placements = function.decisions.placements().clone();
                placements[operand] = Placement::InPlace;
                flips += 1;
                let flipped = decisions_from_placements(&function.facts, placements);
                rejected += u32::from(check(&function.facts, &flipped).is_err());
            }
        }
    }
    println!("{rejected} of {flips} flips rejected");
    assert!(flips > 200 && rejected * 100 > flips * 60, "{rejected} of {flips} flips were rejected");
}

#[test]
fn random_functions_bufferize_with_decisions_given_and_made() {
    for seed in 0..if full() { 2_000 } else { 120 } {
        let text = text(seed);
        let analysed = analyse(parse(&text).op(), &options()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let given: DecisionsByName = analysed.into_iter().map(|f| (f.name, f.decisions)).collect();
        let rewritten = |given: &DecisionsByName, options: &Options| {
            let module = parse(&text);
            let stats =
                run_with_decisions(module.op(), options, given).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
            module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", module.op()));
            let printed = module.op().to_string();
            assert!(!printed.contains("tensor<"), "seed {seed}: a tensor is left\n{printed}");
            (printed, stats.copies)
        };
        let (own, copies) = rewritten(&DecisionsByName::new(), &options());
        assert_eq!(own, rewritten(&given, &options()).0, "seed {seed}: the same decisions make the same program");
        let every_write = Options { copy_before_write: true, ..options() };
        let (_, most) = rewritten(&DecisionsByName::new(), &every_write);
        assert!(copies <= most + 8, "seed {seed}: {copies} copies, {most} when every write is copied");
    }
}

#[test]
fn decisions_on_another_function_are_refused() {
    let small = parse("func.func @main(%t: tensor<4xf32>) -> tensor<4xf32> { return %t : tensor<4xf32> }");
    let analysed = analyse(parse(&text(1)).op(), &options()).expect("analyses");
    let given: DecisionsByName = analysed.into_iter().map(|f| (f.name, f.decisions)).collect();
    let errors = run_with_decisions(small.op(), &options(), &given).expect_err("they do not fit");
    assert_eq!(errors.0[0].code, "B0109");
    assert!(errors.0[0].help.is_some());
}
