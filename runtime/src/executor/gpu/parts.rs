//! How much of a long run is given to the device at once.
//!
//! What was given runs to its end, also if the run is cancelled: the part that runs, and the next one, which waits in the queue. So a
//! part is to take some tens of milliseconds. What a command takes is not known before: a run that goes on beyond its text, in
//! loops, begins with small parts, which grow while the device is done with them sooner, and shrink where it takes longer.

use std::time::{Duration, Instant};

/// Commands of the first part of a loop.
const FIRST: usize = 1 << 10;
/// Most commands of a part: what is recorded stays in some megabytes.
const MOST: usize = 1 << 16;
/// A part that took less is followed by one of twice as many commands.
const SHORT: Duration = Duration::from_millis(8);
/// A part that took more is followed by one of half as many commands.
const LONG: Duration = Duration::from_millis(25);
/// Fewest commands of a part.
const LEAST: usize = 1 << 4;

/// The parts of a session's runs.
#[derive(Debug)]
pub(super) struct Parts {
    /// Commands of the next part.
    commands: usize,
    /// Commands that a run has without loops, or some more: such a run is one part.
    straight: usize,
    /// When the last part was given to the device.
    given: Option<Instant>,
    /// When the part before it was done.
    done: Option<Instant>,
}

impl Parts {
    /// Those of a host function whose text has this many dispatches.
    pub fn new(dispatches: u64) -> Parts {
        // Copies and fills are commands, too.
        let straight = usize::try_from(dispatches).unwrap_or(MOST).saturating_mul(2).clamp(FIRST, MOST);
        Parts { commands: straight, straight, given: None, done: None }
    }

    /// Whether so many recorded commands are a part; `is_first`: nothing of the run was given to the device before.
    pub fn is_full(&self, recorded: usize, is_first: bool) -> bool {
        recorded >= if is_first { self.commands.max(self.straight) } else { self.commands }
    }

    /// When the last part was given to the device.
    pub fn given(&self) -> Option<Instant> {
        self.given
    }

    /// A part was given to the device.
    pub fn give(&mut self, now: Instant) {
        self.given = Some(now);
    }

    /// The device is done with a part that was given to it then.
    pub fn finish(&mut self, given: Instant, now: Instant) {
        let begun = self.done.map_or(given, |done| done.max(given));
        self.done = Some(now);
        let took = now.saturating_duration_since(begun);
        if took < SHORT {
            self.commands = (self.commands * 2).min(MOST);
        } else if took > LONG {
            self.commands = (self.commands / 2).max(LEAST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_loops_is_one_part() {
        assert!(!Parts::new(3).is_full(FIRST - 1, true) && Parts::new(3).is_full(FIRST, true));
        assert!(!Parts::new(5000).is_full(9_999, true) && Parts::new(5000).is_full(10_000, true));
        assert!(Parts::new(u64::MAX).is_full(MOST, true));
    }

    #[test]
    fn parts_take_some_tens_of_milliseconds() {
        let (mut parts, start) = (Parts::new(1), Instant::now());
        let at = |ms: u64| start + Duration::from_millis(ms);
        assert_eq!(parts.given(), None);
        parts.give(at(0));
        assert_eq!(parts.given(), Some(at(0)));
        parts.finish(at(0), at(60));
        assert!(parts.is_full(FIRST / 2, false) && !parts.is_full(FIRST / 2 - 1, false));
        // The next run is one part, as far as it has no loops.
        assert!(!parts.is_full(FIRST / 2, true));
        // It began when the one before was done: 20 ms.
        parts.finish(at(1), at(80));
        assert!(parts.is_full(FIRST / 2, false) && !parts.is_full(FIRST / 2 - 1, false));
        parts.finish(at(80), at(82));
        assert!(parts.is_full(FIRST, false) && !parts.is_full(FIRST - 1, false));
        (0..20).for_each(|i| parts.finish(at(82 + i), at(83 + i)));
        assert!(parts.is_full(MOST, false) && !parts.is_full(MOST - 1, false));
        (0..40).for_each(|i| parts.finish(at(1000 * i + 200), at(1000 * i + 1100)));
        assert!(parts.is_full(LEAST, false) && !parts.is_full(LEAST - 1, false));
    }
}
