//! Inputs of inconsistent sizes are refused before the run, on every kind of device.

use crate::host::{compare, devices, f32s, index, ramp, source};
use monopour::runtime::{HostTensor, Options, Session};
use monopour::{CompileOptions, compile};
use std::sync::Arc;

/// Runs with each of the wrong inputs, which gives R0008 with this message, and then with the right ones.
fn check(text: &str, right: (&[HostTensor], &HostTensor), wrong: &[(&[HostTensor], &str)]) {
    for (device, target) in devices() {
        let options = CompileOptions { targets: vec![target], verify: true, ..Default::default() };
        let program = compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}\n{text}")).program;
        let mut session = Session::load(&device, Arc::new(program), &Options::default()).expect("loads");
        for (inputs, message) in wrong {
            let error = session.run(inputs).unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), ("R0008", *message));
            assert!(!error.is_machine_failure() && error.help().contains("sizes fit together"), "{}", error.help());
        }
        let results = session.run(right.0).unwrap_or_else(|e| panic!("{e}\n{text}"));
        compare(text, &results, std::slice::from_ref(right.1));
        assert!(session.close().is_clean());
    }
}

#[test]
fn a_sum_takes_inputs_of_one_size() {
    let text = "func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {\n\
                %s = arith.addf %x, %y : tensor<?xf32>\nreturn %s : tensor<?xf32>\n}\n";
    let of = |n: usize| f32s(&[n as u64], &ramp(n));
    let doubled: Vec<f32> = ramp(5).iter().map(|v| v * 2.0).collect();
    check(
        text,
        (&[of(5), of(5)], &f32s(&[5], &doubled)),
        &[
            (
                &[of(100_000), of(7)],
                "dimension 0 of input `arg1` is 7, dimension 0 of input `arg0` is 100000: the program needs them to be equal",
            ),
            (
                &[of(0), of(7)],
                "dimension 0 of input `arg1` is 7, dimension 0 of input `arg0` is 0: the program needs them to be equal",
            ),
        ],
    );
}

#[test]
fn a_product_takes_matrices_that_fit() {
    let (a, b) = (ramp(6), ramp(12));
    let product: Vec<f32> = (0..8).map(|at| (0..3).map(|i| a[at / 4 * 3 + i] * b[i * 4 + at % 4]).sum()).collect();
    check(
        &source("host/dyn_matmul"),
        (&[f32s(&[2, 3], &a), f32s(&[3, 4], &b)], &f32s(&[2, 4], &product)),
        &[(
            &[f32s(&[2, 3], &a), f32s(&[4, 3], &b)],
            "dimension 0 of input `arg1` is 4, dimension 1 of input `arg0` is 3: the program needs them to be equal",
        )],
    );
}

#[test]
fn a_residual_is_as_large_as_the_softmax() {
    let t = "tensor<?x?xf32>";
    let text = format!(
        "func.func @main(%x: {t}, %r: {t} {{monopour.name = \"residual\"}}) -> {t} {{\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n\
         %m = tensor.dim %x, %c0 : {t}\n%n = tensor.dim %x, %c1 : {t}\n%e = tensor.empty(%m, %n) : {t}\n\
         %s = linalg.softmax dimension(1) ins(%x : {t}) outs(%e : {t}) -> {t}\n%y = arith.addf %s, %r : {t}\nreturn %y : {t}\n}}\n"
    );
    let (x, r) = (ramp(6), ramp(30)[24..].to_vec());
    let rows = x.chunks(3).zip(r.chunks(3)).flat_map(|(row, rest)| {
        let sum: f32 = row.iter().map(|v| v.exp()).sum();
        row.iter().zip(rest).map(move |(v, r)| v.exp() / sum + r)
    });
    let expected = f32s(&[2, 3], &rows.collect::<Vec<_>>());
    check(
        &text,
        (&[f32s(&[2, 3], &x), f32s(&[2, 3], &r)], &expected),
        &[(
            &[f32s(&[2, 3], &x), f32s(&[2, 2], &r[..4])],
            "dimension 1 of input `residual` is 2, dimension 1 of input `arg0` is 3: the program needs them to be equal",
        )],
    );
}

#[test]
fn numbers_and_constants_are_sizes_too() {
    let text = "func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {\n%e = tensor.empty(%n) : tensor<?xf32>\n\
                %s = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>\nreturn %s : tensor<?xf32>\n}\n";
    let x = ramp(4);
    let exp = f32s(&[4], &x.iter().map(|v| v.exp()).collect::<Vec<_>>());
    let message =
        |n: i64| format!("input `arg1` is {n}, dimension 0 of input `arg0` is 4: the program needs them to be equal");
    let wrong = [1 << 20, -4].map(|n| ([f32s(&[4], &x), index(n)], message(n)));
    let wrong: Vec<(&[HostTensor], &str)> = wrong.iter().map(|(inputs, text)| (&inputs[..], text.as_str())).collect();
    check(text, (&[f32s(&[4], &x), index(4)], &exp), &wrong);
    let text = "func.func @main(%x: tensor<?xf32>) -> tensor<4xf32> {\n%c = tensor.cast %x : tensor<?xf32> to tensor<4xf32>\n\
                %s = linalg.exp ins(%c : tensor<4xf32>) outs(%c : tensor<4xf32>) -> tensor<4xf32>\nreturn %s : tensor<4xf32>\n}\n";
    check(
        text,
        (&[f32s(&[4], &x)], &exp),
        &[(&[f32s(&[3], &x[..3])], "dimension 0 of input `arg0` is 3: the program needs it to be 4")],
    );
}

/// Tensors on the device are checked too, and a refused run does not consume donated ones.
#[test]
fn a_refused_run_consumes_nothing() {
    let text = "func.func @main(%x: tensor<?xf32> {monopour.donate}, %y: tensor<?xf32>) -> tensor<?xf32> {\n\
                %s = arith.addf %x, %y : tensor<?xf32>\nreturn %s : tensor<?xf32>\n}\n";
    for (device, target) in devices() {
        let options = CompileOptions { targets: vec![target], ..Default::default() };
        let program = compile(text.as_bytes(), "test.mlir", &options).expect("compiles").program;
        let mut session = Session::load(&device, Arc::new(program), &Options::default()).expect("loads");
        let of = |n: usize| f32s(&[n as u64], &ramp(n));
        let mut large = session.upload(&[of(9), of(9)]).expect("uploads");
        let mut small = session.upload(&[of(3), of(3)]).expect("uploads");
        std::mem::swap(&mut large[1], &mut small[1]);
        for mixed in [&large, &small] {
            assert_eq!(session.execute(mixed).unwrap_err().code(), "R0008");
        }
        std::mem::swap(&mut large[1], &mut small[1]);
        for (inputs, n) in [(large, 9), (small, 3)] {
            let results = session.execute(&inputs).expect("runs");
            let doubled: Vec<f32> = ramp(n).iter().map(|v| v * 2.0).collect();
            compare(text, &session.readback(&results).expect("reads"), &[f32s(&[n as u64], &doubled)]);
        }
        assert!(session.close().is_clean());
    }
}
