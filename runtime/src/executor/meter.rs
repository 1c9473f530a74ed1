//! The memory that a run takes from the pool, while it is not known yet which allocations are results.

/// Sums of bytes alive, and the most of them.
///
/// An allocation that is never freed is a result. The most bytes of all others follows without a list of all of a run: each
/// allocation alive keeps the most bytes alive since it was made, and one that is freed hands that on to the one before.
#[derive(Debug, Default)]
pub(super) struct Meter {
    alive_bytes: u64,
    /// The most before the first allocation alive.
    most_before: u64,
    alive: Vec<Alive>,
}

#[derive(Debug)]
struct Alive {
    id: u64,
    bytes: u64,
    /// The most bytes alive between this allocation and the next one alive.
    most: u64,
}

impl Meter {
    pub fn made(&mut self, id: u64, bytes: u64) {
        self.alive_bytes = self.alive_bytes.saturating_add(bytes);
        self.alive.push(Alive { id, bytes, most: self.alive_bytes });
    }

    pub fn freed(&mut self, id: u64) {
        // Most were made of late.
        let Some(at) = self.alive.iter().rposition(|alive| alive.id == id) else { return };
        let gone = self.alive.remove(at);
        self.alive_bytes = self.alive_bytes.saturating_sub(gone.bytes);
        let before = match at.checked_sub(1) {
            Some(before) => &mut self.alive[before].most,
            None => &mut self.most_before,
        };
        *before = gone.most.max(*before);
    }

    /// The most bytes alive at once, without those that are alive at the end.
    pub fn most_freed(&self) -> u64 {
        let mut kept = 0u64;
        let mut most = self.most_before;
        for alive in &self.alive {
            kept = kept.saturating_add(alive.bytes);
            most = most.max(alive.most.saturating_sub(kept));
        }
        most
    }

    /// Bytes alive at the end.
    pub fn kept(&self) -> u64 {
        self.alive_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Meter;

    /// The most by a sum over all of a run, for all sequences of a small generator.
    #[test]
    fn the_most_is_that_of_a_sum_over_time() {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
            (state >> 33) % below
        };
        for _ in 0..500 {
            let mut meter = Meter::default();
            let mut events: Vec<(u64, u64, Option<usize>)> = vec![];
            let mut alive: Vec<usize> = vec![];
            for time in 0..next(12) as usize {
                if alive.is_empty() || next(3) > 0 {
                    let bytes = next(9);
                    meter.made(time as u64, bytes);
                    alive.push(events.len());
                    events.push((time as u64, bytes, None));
                } else {
                    let at = alive.remove(next(alive.len() as u64) as usize);
                    meter.freed(events[at].0);
                    events[at].2 = Some(time);
                }
            }
            let at = |time: u64| {
                let lives = |e: &&(u64, u64, Option<usize>)| e.0 <= time && e.2.is_some_and(|end| (end as u64) > time);
                events.iter().filter(lives).map(|e| e.1).sum::<u64>()
            };
            assert_eq!(meter.most_freed(), (0..12).map(at).max().unwrap_or(0), "{events:?}");
            assert_eq!(meter.kept(), alive.iter().map(|at| events[*at].1).sum::<u64>());
        }
    }
}
