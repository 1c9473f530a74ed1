//! `MONOPOUR_LOG`: the decisions of passes, one line each, on standard error.
//!
//! `bufferize=trace`, `fuse=trace,tile=trace`, or `trace` for all of them. Without the variable there is no subscriber, and
//! passes make no text.

use std::ffi::OsStr;
use std::io;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::failure::Failure;

const VARIABLE: &str = "MONOPOUR_LOG";
/// The phases that log.
const TARGETS: [&str; 6] = ["fuse", "tile", "bufferize", "dealloc", "distribute", "plan"];

/// Installs a subscriber if the variable asks for one.
pub fn install() -> Result<(), Failure> {
    let Some(filter) = std::env::var_os(VARIABLE).as_deref().map_or(Ok(None), filter)? else { return Ok(()) };
    let plain = tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::TRACE).without_time();
    let subscriber = plain.with_ansi(false).with_writer(io::stderr).finish().with(filter);
    subscriber.try_init().map_err(|e| Failure::machine(format!("error: cannot log: {e}")))
}

/// The filter of a value of the variable; none for an empty one.
fn filter(value: &OsStr) -> Result<Option<Targets>, Failure> {
    if value.is_empty() {
        return Ok(None);
    }
    let wrong = |what: &dyn std::fmt::Display| {
        let (value, known) = (value.display(), TARGETS.join(", "));
        Failure::input(format!(
            "error[I0034]: {VARIABLE} is '{value}': {what}\n  help: write PHASE=trace, separated by commas; phases that log: {known}"
        ))
    };
    let text = value.to_str().ok_or_else(|| wrong(&"not UTF-8"))?;
    let filter: Targets = text.parse().map_err(|e| wrong(&e))?;
    match filter.iter().find(|(target, _)| !TARGETS.contains(target)) {
        Some((target, _)) => Err(wrong(&format!("no phase that logs is called '{target}'"))),
        None => Ok(Some(filter)),
    }
}

#[cfg(test)]
mod tests {
    use super::filter;

    fn kept(value: &str) -> Option<String> {
        filter(value.as_ref()).unwrap_or_else(|e| panic!("{e}")).map(|filter| filter.to_string())
    }

    #[test]
    fn an_empty_value_is_none() {
        assert_eq!(kept(""), None);
        assert_eq!(kept("bufferize=trace"), Some("bufferize=trace".to_owned()));
        assert_eq!(kept("trace"), Some("trace".to_owned()));
    }

    #[test]
    fn phases_that_do_not_log_are_refused() {
        for value in ["loud", "bufferise=trace", "bufferize=loud", "bufferize=trace,import=trace", "=,="] {
            let text = filter(value.as_ref()).err().unwrap_or_else(|| panic!("{value}: accepted")).to_string();
            assert!(text.starts_with("error[I0034]: MONOPOUR_LOG is '") && text.contains("\n  help: "), "{text}");
        }
    }
}
