//! The child: reads a model, imports and compiles it for this CPU.
//!
//! Answers `phase NAME` before each step, `peak BYTES` of memory after them, then `compiled`, `refused CODES` or `broken`.

use crate::link::{self, say, status_bytes};
use monopour::onnx::Model;
use monopour::program::CpuTarget;
use monopour::{CompileOptions, Diagnostics, TargetDescription, compile_onnx};
use monopour_ir::Severity;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// Serves until the input ends; external data is searched in `folder`.
pub fn serve(folder: PathBuf) -> ExitCode {
    link::serve(move |bytes| {
        // Sets the peak to what is resident now; elsewhere than on Linux there is no such file.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let answer = run(bytes, &folder);
        say(&format!("peak {}", status_bytes("self", "VmHWM:")));
        answer
    })
}

fn run(bytes: &[u8], folder: &std::path::Path) -> String {
    say("phase read");
    let model = match Model::from_bytes(bytes, "fuzz.onnx", folder) {
        Ok(model) => model,
        Err(found) => return refused(&found),
    };
    say("phase compile");
    let targets = vec![TargetDescription::Cpu(CpuTarget::host())];
    match compile_onnx(&model, &CompileOptions { targets, verify: true, ..CompileOptions::default() }) {
        Ok(_) => "compiled".to_owned(),
        Err(found) => refused(&found),
    }
}

/// The codes; a refusal of a model is the frontend's and has a hint, all else is a defect of later phases.
fn refused(found: &Diagnostics) -> String {
    let errors: Vec<_> = found.0.iter().filter(|d| d.severity == Severity::Error).collect();
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if errors.is_empty() {
        return format!("broken refused without an error: {}", one_line(&found.to_string()));
    }
    if let Some(odd) = errors.iter().find(|d| !d.code.starts_with('F') || d.help.is_none()) {
        return format!(
            "broken diagnostic {} without a hint or of a later phase: {}",
            odd.code,
            one_line(&odd.message)
        );
    }
    let codes: BTreeSet<&str> = errors.iter().map(|d| d.code).collect();
    format!("refused {}", codes.into_iter().collect::<Vec<_>>().join(","))
}
