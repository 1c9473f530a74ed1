//! The source of each dispatch of a run, for traces.
//!
//! Host code names the kernel alone, and one kernel may serve several ops of equal structure. A run makes the dispatches
//! outside of loops and branches once, in the program's order: the n-th dispatch of a kernel is the n-th of its sources.

use std::sync::Arc;

use monopour_program::{Program, Source, Variant};

use crate::spans;

/// The source of a dispatch.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Site {
    /// The op, such as `linalg.matmul`.
    pub op: String,
    /// `file:line:column`, or the name of a node; of a dispatch in a loop, all that it may be, separated by commas.
    pub location: String,
}

/// The sources of a variant's dispatches, by kernel.
fn by_kernel(variant: &Variant) -> Vec<Vec<Arc<Site>>> {
    let mut sources = vec![vec![]; variant.kernels.len()];
    // The program was verified: each source is of a kernel.
    variant.sources.iter().for_each(|source| sources[source.kernel as usize].push(source));
    sources.into_iter().map(|sources| sites(&sources)).collect()
}

/// Those of one kernel: one for all, if it is not known which dispatch is which.
fn sites(sources: &[&Source]) -> Vec<Arc<Site>> {
    let site = |op: &str, location: String| Arc::new(Site { op: op.to_owned(), location });
    if sources.iter().all(|source| source.is_once) {
        return sources.iter().map(|source| site(&source.op, source.location.clone())).collect();
    }
    let mut locations: Vec<&str> = sources.iter().map(|source| source.location.as_str()).collect();
    locations.dedup();
    vec![site(&sources[0].op, locations.join(", "))]
}

/// Counts the dispatches of a run, if someone asks for their sources.
#[derive(Debug)]
pub(crate) struct Turns {
    program: Arc<Program>,
    variant: usize,
    /// The sources by kernel; empty until someone asks.
    sites: Vec<Vec<Arc<Site>>>,
    /// Dispatches so far, by kernel.
    turns: Vec<usize>,
    /// Whether each run is traced.
    always: bool,
    is_on: bool,
}

impl Turns {
    /// For runs of a verified program's variant, which are traced if `always`, or if someone listens then.
    pub fn new((program, variant): (Arc<Program>, usize), always: bool) -> Turns {
        Turns { program, variant, sites: Vec::new(), turns: Vec::new(), always, is_on: false }
    }

    /// A run begins.
    pub fn begin(&mut self) {
        self.is_on = self.always || spans::follows_dispatches();
        if !self.is_on {
            return;
        }
        if self.sites.is_empty() {
            self.sites = by_kernel(&self.program.variants[self.variant]);
        }
        self.turns.clear();
        self.turns.resize(self.sites.len(), 0);
    }

    /// Whether sources are asked for in this run.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// The source of the next dispatch of a kernel.
    pub fn next(&mut self, kernel: usize) -> Option<Arc<Site>> {
        if !self.is_on {
            return None;
        }
        let (sites, turn) = (self.sites.get(kernel)?, self.turns.get_mut(kernel)?);
        *turn += 1;
        sites.get((*turn - 1) % sites.len().max(1)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatches_that_are_not_told_apart_share_their_sources() {
        let source =
            |location: &str, is_once| Source { kernel: 0, op: "op".into(), location: location.into(), is_once };
        let found = |sources: &[Source]| {
            let sources: Vec<&Source> = sources.iter().collect();
            sites(&sources).iter().map(|site| format!("{} {}", site.op, site.location)).collect::<Vec<_>>()
        };
        let [first, second] = ["a:1:1", "a:2:1"].map(|location| source(location, true));
        assert_eq!(found(&[first.clone(), second.clone()]), ["op a:1:1", "op a:2:1"]);
        let third = source("a:4:1", false);
        assert_eq!(found(std::slice::from_ref(&third)), ["op a:4:1"]);
        assert_eq!(found(&[first, third.clone(), third, second]), ["op a:1:1, a:4:1, a:2:1"]);
        assert!(found(&[]).is_empty());
    }
}
