//! `monopour explain`: every copy and allocation of a program.

use crate::failure::Failure;
use crate::source::SourceArgs;
use clap::Args;
use monopour::explain;
use monopour::program::write_atomically;
use std::ffi::OsString;
use std::path::PathBuf;

/// Explain every copy and allocation that is left in a program.
#[derive(Args)]
#[command(after_help = "Example: monopour explain mlp.mlir --html mlp.html")]
pub struct ExplainArgs {
    /// The model: .mlir, .mlirbc, .onnx, or .mpr.
    model: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Write one page with live bytes, their bound and all buffers over the dispatches; it needs nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// gpu[:FILE.json|portable] or cpu[:CPU,...], for a source.
    #[arg(long, value_name = "TARGET")]
    target: Vec<OsString>,
    #[command(flatten)]
    source: SourceArgs,
}

/// Runs the command.
pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let program = crate::model::load(&args.model, &args.source, &args.target)?;
    let explanations = explain::explain(&program);
    if let Some(file) = &args.html {
        let title = args.model.file_name().unwrap_or_default().to_string_lossy();
        let page = explain::page(&title, &explanations).map_err(|e| Failure::machine(format!("error: {e}")))?;
        write_atomically(file, page.as_bytes())?;
    }
    if args.json {
        let object = serde_json::json!({ "variants": explanations });
        return crate::stdout::print(&format!("{object:#}"));
    }
    crate::stdout::print(&explain::render(&explanations))
}
