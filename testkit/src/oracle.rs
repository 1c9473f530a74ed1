//! Upstream's `mlir-opt` of the pinned version, as a second opinion.

use crate::directive::split_arguments;
use monopour_ir::{Attr, Context, Module, WalkOrder};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A tool of the LLVM installation that the workspace links.
pub fn tool(name: &str) -> PathBuf {
    let prefix = std::env::var_os("MLIR_SYS_220_PREFIX").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    PathBuf::from(prefix).join("bin").join(name)
}

/// Runs `mlir-opt` with a line of arguments on MLIR text and returns its standard output.
///
/// # Errors
/// Its standard error, or why it did not start.
pub fn mlir_opt(arguments: &str, input: &str) -> Result<String, String> {
    let path = tool("mlir-opt");
    let mut command = Command::new(&path);
    command.args(split_arguments(arguments)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("{}: {e}", path.display()))?;
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let text = input.to_owned();
    // A second thread, because both pipes could fill up. A tool that stops reading closes the pipe; its status tells.
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()).is_ok());
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let _ = writer.join();
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Checks that upstream parses and verifies the text; unregistered attributes and ops are allowed.
///
/// # Errors
/// The error of `mlir-opt`.
pub fn verifies(text: &str) -> Result<(), String> {
    mlir_opt("-allow-unregistered-dialect", text).map(drop)
}

/// The bufferization decisions that a printed module carries, one line per op that has any, in order:
/// `linalg.fill [none, true]`.
///
/// # Errors
/// The parser's diagnostics.
pub fn decisions(text: &str) -> Result<Vec<String>, String> {
    let cx = Context::new();
    cx.allow_unregistered_dialects(true);
    let module = Module::parse(cx, text.as_bytes(), "decisions").map_err(|d| d.to_string())?;
    let mut out = vec![];
    module.op().walk(WalkOrder::Pre, |op| {
        if let Some(operands) = op.attr("__inplace_operands_attr__").and_then(|a| a.as_array()) {
            let words: Vec<_> = operands.iter().map(|a: &Attr| a.as_string().unwrap_or("?").to_owned()).collect();
            out.push(format!("{} [{}]", op.name(), words.join(", ")));
        }
    });
    Ok(out)
}
