//! A progress bar on a terminal, for commands that take longer than a second.

use std::io::IsTerminal;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter commands show nothing.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);
/// Without colours: the same with `NO_COLOR` and on dull terminals.
const TEMPLATE: &str = "{spinner} [{bar:20}] {pos}/{len} {wide_msg} {elapsed}";

/// A bar over the steps of a command; removed when dropped.
pub struct Progress {
    shown: Option<Shown>,
}

struct Shown {
    bar: ProgressBar,
    over: Arc<(Mutex<bool>, Condvar)>,
    waiter: Option<JoinHandle<()>>,
}

impl Progress {
    /// A bar of `steps` steps on standard error: none if that is no terminal, or with `quiet`.
    pub fn new(steps: usize, quiet: bool) -> Progress {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if quiet || is_dumb || !std::io::stderr().is_terminal() {
            return Progress { shown: None };
        }
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        bar.set_style(ProgressStyle::with_template(TEMPLATE).expect("the template is well formed"));
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let waiter = std::thread::spawn({
            let (bar, over) = (bar.clone(), over.clone());
            move || show_later(&bar, &over)
        });
        Progress { shown: Some(Shown { bar, over, waiter: Some(waiter) }) }
    }

    /// Begins the next step.
    pub fn step(&self, what: impl Into<String>) {
        if let Some(shown) = &self.shown {
            // The step before is done.
            if !shown.bar.message().is_empty() {
                shown.bar.inc(1);
            }
            shown.bar.set_message(what.into());
        }
    }

    /// A callback for each phase of a compilation.
    #[cfg(feature = "compiler")]
    pub fn watch(self: &Arc<Progress>) -> Option<monopour::options::Watch> {
        self.shown.as_ref()?;
        let progress = self.clone();
        Some(monopour::options::Watch::new(move |phase, target| progress.step(format!("{phase} for {target}"))))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some(shown) = &mut self.shown else { return };
        let (over, signal) = &*shown.over;
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        signal.notify_all();
        if let Some(waiter) = shown.waiter.take() {
            // It draws nothing after this, so that the command's own output stands alone.
            let _ = waiter.join();
        }
        shown.bar.finish_and_clear();
    }
}

/// Draws the bar after [`SHOWN_AFTER`], unless it is over.
fn show_later(bar: &ProgressBar, (over, signal): &(Mutex<bool>, Condvar)) {
    let mut is_over = over.lock().unwrap_or_else(PoisonError::into_inner);
    let mut wait = SHOWN_AFTER;
    while !*is_over {
        let (guard, timeout) = signal.wait_timeout(is_over, wait).unwrap_or_else(PoisonError::into_inner);
        is_over = guard;
        if *is_over || !timeout.timed_out() {
            continue;
        }
        if wait == SHOWN_AFTER {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            wait = TICK;
        }
        bar.tick();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_shown_where_nobody_looks() {
        assert!(Progress::new(3, true).shown.is_none());
        let over = (Mutex::new(true), Condvar::new());
        let bar = ProgressBar::hidden();
        show_later(&bar, &over);
        assert_eq!(bar.position(), 0);
    }
}
