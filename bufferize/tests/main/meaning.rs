//! Small programs that bufferization can get wrong, or has to refuse: each gives the evaluator's results.
//!
//! `// values:` are the results of `@main`, which also check the evaluator; `// options:` the options, where
//! `or-error` allows a diagnostic with help instead of values; `// error:` a part of the expected message.

use crate::execute::{frozen, inputs};
use crate::support::programs_in;
use monopour_bufferize::{FunctionBoundaryTypeConversion, Options, run_one_shot};
use monopour_ir::{Context, Diagnostics, Module};
use monopour_testkit::batch::{Batch, Outcome, bits};
use monopour_testkit::{EvalError, HostTensor, evaluate_in_type};

fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|l| l.strip_prefix("// ")?.strip_prefix(name)?.strip_prefix(": "))
}

fn options(words: &str) -> Options {
    let has = |word: &str| words.split(' ').any(|w| w == word);
    Options {
        bufferize_function_boundaries: true,
        allow_return_allocs_from_loops: has("allow-return-allocs-from-loops"),
        function_boundary_type_conversion: match has("identity-layout-map") {
            true => FunctionBoundaryTypeConversion::Identity,
            false => FunctionBoundaryTypeConversion::Infer,
        },
        extensions: has("extensions"),
        copy_before_write: has("copy-before-write"),
        ..Options::default()
    }
}

/// The expected results of a program: by its header, and by the evaluator if it covers the ops.
fn expected(text: &str, module: &Module, inputs: &[HostTensor]) -> Result<Vec<Vec<i64>>, String> {
    let bits_of = |word: &str| {
        let value: f32 = word.parse().map_err(|e| format!("{word}: {e}"))?;
        Ok(vec![i64::from(value.to_bits() as i32)])
    };
    let stated: Option<Result<Vec<_>, String>> = header(text, "values").map(|v| v.split(' ').map(bits_of).collect());
    let stated = stated.transpose()?;
    let mut values = match (evaluate_in_type(module, "main", inputs), stated) {
        (Ok(found), None) => bits(&found),
        (Ok(found), Some(stated)) if bits(&found) == stated => stated,
        (Err(EvalError::Unsupported { .. }), Some(stated)) => stated,
        (found, stated) => return Err(format!("the evaluator says {found:?}, the file {stated:?}")),
    };
    let kept = inputs.iter().zip(frozen(module)).filter(|(_, f)| *f).map(|(i, _)| i.clone());
    values.extend(bits(&kept.collect::<Vec<_>>()));
    Ok(values)
}

fn refused(text: &str, error: &Diagnostics) -> Result<(), String> {
    let first = error.0.iter().find(|d| d.code.starts_with('B')).ok_or_else(|| error.to_string())?;
    match header(text, "error") {
        Some(part) if first.message.contains(part) => Ok(()),
        None if header(text, "options").is_some_and(|o| o.contains("or-error")) && first.help.is_some() => Ok(()),
        _ => Err(error.to_string()),
    }
}

/// The number of a program in its batch, and the bits of its results.
type Added = (usize, Vec<Vec<i64>>);

/// Bufferizes and adds a program; its number and expected results, or `None` if it was rightly refused.
fn add(batch: &mut Batch, text: &str) -> Result<Option<Added>, String> {
    Context::scope(|cx| {
        let module = Module::parse(cx, text.as_bytes(), "program.mlir").map_err(|d| d.to_string())?;
        let (inputs, frozen) = (inputs(&module, 1), frozen(&module));
        let expected = header(text, "error").is_none().then(|| expected(text, &module, &inputs)).transpose()?;
        match (run_one_shot(module.op(), &options(header(text, "options").unwrap_or_default())), expected) {
            (Err(e), _) => refused(text, &e).map(|()| None),
            (Ok(_), None) => Err("it was not refused".to_owned()),
            (Ok(_), Some(expected)) => {
                module.op().verify_with_diagnostics().map_err(|e| e.to_string())?;
                Ok(Some((batch.add(&module, &inputs, &frozen)?, expected)))
            }
        }
    })
}

#[test]
fn programs_that_are_easily_got_wrong_compute_what_the_evaluator_says() {
    let (mut batch, mut added, mut wrong) = (Batch::default(), vec![], vec![]);
    for (name, text) in programs_in("meaning") {
        match add(&mut batch, &text) {
            Ok(Some((number, expected))) => added.push((name, number, expected)),
            Ok(None) => println!("{name}: refused"),
            Err(e) => wrong.push(format!("{name}: {e}")),
        }
    }
    let outcomes = batch.run().unwrap_or_else(|e| panic!("{e}"));
    let run = added.len();
    for (name, number, expected) in added {
        for (outcome, time) in outcomes[number].iter().zip(["first", "second"]) {
            match outcome {
                Outcome::Values(values) if *values == expected => {}
                other => wrong.push(format!("{name}, {time} run: {}, expected {}", show(other), floats(&expected))),
            }
        }
    }
    assert!(wrong.is_empty() && run >= 15, "{run} run, {} wrong\n{}", wrong.len(), wrong.join("\n"));
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Values(values) => floats(values),
        Outcome::Crash(why) => why.clone(),
    }
}

fn floats(values: &[Vec<i64>]) -> String {
    format!(
        "{:?}",
        values.iter().map(|l| l.iter().map(|v| f32::from_bits(*v as u32)).collect()).collect::<Vec<Vec<_>>>()
    )
}
