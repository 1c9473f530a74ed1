//! Random functions: decisions on their facts are accepted by the independent checker.

use crate::support::{boundaries, parse};
use monopour_analysis::checker::check;
use monopour_analysis::one_shot::{Decisions, InPlaceAnalysis, Placement};
use monopour_bufferize::{
    Chooser, FunctionBoundaryTypeConversion, Options, Stats, analyse, run_one_shot, run_with_decisions,
};
use monopour_ir::Context;
use monopour_testkit::generate_functions::{Shape, function, module};
use monopour_testkit::random::seeds;

fn options() -> Options {
    Options {
        allow_return_allocs_from_loops: true,
        function_boundary_type_conversion: FunctionBoundaryTypeConversion::Identity,
        ..boundaries()
    }
}

fn text(seed: u64) -> String {
    function(seed)
}

#[test]
fn random_functions_are_valid_and_reproducible() {
    for seed in 0..300 {
        let text = |seed| if seed < 200 { text(seed) } else { module(seed, Shape::whole(seed)) };
        let once = text(seed);
        assert_eq!(once, text(seed), "seed {seed}");
        let parsed = parse(&once);
        parsed.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("seed {seed}: {e}\n{once}"));
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
    let mut totals = Totals::default();
    let cx = Context::new();
    let seeds = seeds(1_000, 20_000);
    for seed in seeds.clone() {
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
    assert!(u64::from(functions) >= seeds.end - seeds.start, "{totals:?}");
    assert!(totals.writes_in_place > 2 * functions && totals.out_of_place > functions, "{totals:?}");
}

/// Parses in a shared context: creating one costs more than the test itself.
fn parse_in<'c>(cx: Context<'c>, text: &str) -> monopour_ir::Module<'c> {
    monopour_ir::Module::parse(cx, text.as_bytes(), "random.mlir").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Allocations and copies by decisions, without those that fit a signature's layout.
fn decided(stats: &Stats) -> u32 {
    let layouts = stats.remarks.0.iter().filter(|r| r.code == "B0202").count();
    stats.allocs + stats.copies - 2 * u32::try_from(layouts).expect("few remarks")
}

/// An omitted copy is an error that the checker must find, mostly: some copies are only due to
/// conservative rules, or matter on paths that are not drawn.
#[test]
fn the_checker_rejects_most_copies_left_out() {
    let (mut flips, mut rejected) = (0, 0);
    let cx = Context::new();
    for seed in seeds(150, 2_000) {
        for function in analyse(parse_in(cx, &text(seed)).op(), &options()).expect("analyses") {
            for operand in function.facts.operands().ids().filter(|id| !function.decisions.is_in_place(*id)) {
                flips += 1;
                let flipped = function.decisions.with(&function.facts, operand, Placement::InPlace);
                rejected += u32::from(check(&function.facts, &flipped).is_err());
            }
        }
    }
    println!("{rejected} of {flips} flips rejected");
    assert!(flips > 200 && rejected * 100 > flips * 60, "{rejected} of {flips} flips were rejected");
}

#[test]
fn random_functions_bufferize_with_decisions_given_and_made() {
    let cx = Context::new();
    for seed in seeds(150, 2_000) {
        let text = text(seed);
        let rewritten = |options: &Options, choose: &mut Chooser<'_>| {
            let module = parse_in(cx, &text);
            let stats =
                run_with_decisions(module.op(), options, choose).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
            module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", module.op()));
            let printed = module.op().to_string();
            assert!(!printed.contains("tensor<"), "seed {seed}: a tensor is left\n{printed}");
            (printed, stats)
        };
        let own = parse_in(cx, &text);
        let stats = run_one_shot(own.op(), &options()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let analysed =
            analyse(parse_in(cx, &text).op(), &options()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let (given, _) = rewritten(&options(), &mut |name, _, _| {
            analysed.iter().find(|f| f.name == name).expect("every function is analysed").decisions.clone()
        });
        assert_eq!(own.op().to_string(), given, "seed {seed}: the same decisions make the same program");
        // All operands out of place is never wrong, and never copies less, layouts aside: a slice in place
        // may not fit the signature where its copy does.
        let (_, most) = rewritten(&options(), &mut |_, facts, decisions| {
            let copied = facts.operands().iter_enumerated().filter(|(_, used)| used.writes && !used.must_in_place);
            copied.fold(decisions, |d: Decisions, (id, _)| d.with(facts, id, Placement::OutOfPlace))
        });
        assert!(decided(&stats) <= decided(&most), "seed {seed}: {stats:?} {most:?}");
    }
}

#[test]
fn decisions_on_another_function_are_refused() {
    let small = parse("func.func @main(%t: tensor<4xf32>) -> tensor<4xf32> { return %t : tensor<4xf32> }");
    let other = analyse(parse(&text(2)).op(), &options()).expect("analyses").remove(0).decisions;
    let errors = run_with_decisions(small.op(), &options(), &mut |_, _, _| other.clone()).expect_err("they do not fit");
    assert_eq!(errors.0[0].code, "B0109");
    assert!(errors.0[0].help.is_some());
}
