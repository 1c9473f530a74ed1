//! Memory for the transients of a run whose sizes follow from those of its inputs: planned once per tuple of sizes.
//!
//! Host code asks for all places before it takes the first. The plan of equal requests is kept, so that a run on sizes that came
//! before plans nothing, and its one buffer comes from the pool as that of the run before.

use std::sync::Arc;

use monopour_analysis::index::{BufferId, Id, IndexVec};
use monopour_analysis::liveness::Interval;
use monopour_analysis::plan::{ALIGNMENT_BYTES, Effort, Request, plan_with_effort};
use monopour_contract::MOST_REQUESTS;

use super::run::{Origin, Run};
use super::{Backend, Place};
use crate::error::Error;
use crate::pool::{Physical, size_class};

/// Plans that are kept: of the sizes that came last.
const MOST_PLANS: usize = 64;

/// The sizes and lives of all transients of a run.
pub(super) type Requests = IndexVec<BufferId, Request>;

/// Where the transients of a run lie.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Bytes of each buffer; more than one where the device has no buffer of this size.
    buffers: Vec<u64>,
    /// By request: the buffer, and the offset in it.
    places: Vec<(usize, u64)>,
}

/// The plans of the runs before; the last used comes last.
#[derive(Debug, Default)]
pub(crate) struct Plans(Vec<(Requests, Arc<Plan>)>);

impl Plans {
    /// The plan for these requests, in buffers of at most `most` bytes, and whether it is new.
    fn of(&mut self, requests: &Requests, most: u64) -> (Arc<Plan>, bool) {
        let found = self.0.iter().position(|(known, _)| known == requests);
        let (known, is_new) = match found {
            Some(at) => (self.0.remove(at), false),
            None => ((requests.clone(), Arc::new(plan(requests, most))), true),
        };
        if self.0.len() == MOST_PLANS {
            self.0.remove(0);
        }
        let plan = known.1.clone();
        self.0.push(known);
        (plan, is_new)
    }
}

/// Bytes of the buffer for transients of these sizes, each with the positions of the first and the last op that use it.
pub fn planned_bytes(transients: &[(u64, [u32; 2])]) -> u64 {
    let requests = transients.iter().map(|(bytes, lives)| request(*bytes, *lives)).collect();
    plan(&requests, u64::MAX).buffers.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

fn request(bytes: u64, [first, last]: [u32; 2]) -> Request {
    Request { live: Interval { first, last }, size_bytes: bytes }
}

fn plan(requests: &Requests, most: u64) -> Plan {
    let plan = plan_with_effort(requests, ALIGNMENT_BYTES, Effort::Run);
    if size_class(plan.peak_bytes) > most {
        return in_buffers_of_their_own(requests);
    }
    // Of nothing but empty ones, too, there is a buffer.
    Plan { buffers: vec![plan.peak_bytes.max(1)], places: plan.offsets.iter().map(|offset| (0, *offset)).collect() }
}

/// One after the other in buffers of the size of the largest in each.
fn in_buffers_of_their_own(requests: &Requests) -> Plan {
    let mut order: Vec<BufferId> = requests.ids().collect();
    order.sort_by_key(|id| std::cmp::Reverse(requests[*id].size_bytes));
    let mut lives: Vec<Vec<Interval>> = vec![];
    let mut plan = Plan { buffers: vec![], places: vec![(0, 0); requests.len()] };
    for id in order {
        let Request { live, size_bytes } = requests[id];
        let is_free = |others: &Vec<Interval>| others.iter().all(|o| o.last < live.first || live.last < o.first);
        let buffer = lives.iter().position(is_free).unwrap_or_else(|| {
            lives.push(vec![]);
            plan.buffers.push(size_bytes);
            lives.len() - 1
        });
        lives[buffer].push(live);
        plan.places[id.index()] = (buffer, 0);
    }
    plan
}

/// The transients of one run.
#[derive(Debug)]
pub(super) struct Transients {
    requests: Requests,
    /// Once they are planned: the plan, and the handles of its buffers' memory by request, 0 where it was not asked for.
    placed: Option<(Arc<Plan>, Vec<i64>)>,
}

impl Default for Transients {
    fn default() -> Self {
        Transients { requests: IndexVec::new(), placed: None }
    }
}

impl<B: Backend> Run<'_, B> {
    /// Notes a transient.
    ///
    /// # Errors
    /// R0013, for sizes and positions that no program has, and behind the first place.
    pub(super) fn request_place(&mut self, bytes: i64, lives: [i64; 2]) -> Result<(), Error> {
        let bytes = u64::try_from(bytes).ok();
        let lives = lives.map(|position| u32::try_from(position).ok());
        let known = bytes.zip(lives[0].zip(lives[1])).filter(|(_, (first, last))| first <= last);
        let Some((bytes, (first, last))) = known else {
            return Err(Error::host_code("request: sizes or positions that no transient has"));
        };
        if self.transients.placed.is_some() || self.transients.requests.len() == MOST_REQUESTS {
            return Err(Error::host_code("request: behind the first place, or one too many"));
        }
        self.transients.requests.push(request(bytes, [first, last]));
        Ok(())
    }

    /// The handle of a transient.
    ///
    /// # Errors
    /// R0013, for a request that was not made; those of allocations.
    pub(super) fn take_place(&mut self, number: i64) -> Result<(i64, bool), Error> {
        let Some(number) = usize::try_from(number).ok().filter(|at| *at < self.transients.requests.len()) else {
            return Err(Error::host_code(format!("place {number} of {}", self.transients.requests.len())));
        };
        if self.transients.placed.is_none() {
            self.take_buffers()?;
        }
        let bytes = self.transients.requests.iter().nth(number).map_or(0, |request| request.size_bytes);
        let Some((plan, handles)) = &self.transients.placed else {
            return Err(Error::host_code("a place without a plan"));
        };
        if handles[number] != 0 {
            return Ok((handles[number], false));
        }
        let (buffer, offset) = plan.places[number];
        let place = Place { offset, ..Place::own(self.planned[buffer].clone()) };
        let handle = self.push(place, bytes, Origin::Arena);
        if let Some((_, handles)) = &mut self.transients.placed {
            handles[number] = handle;
        }
        Ok((handle, true))
    }

    fn take_buffers(&mut self) -> Result<(), Error> {
        let most = self.engine.backend.most_buffer_bytes();
        let (plan, is_new) = self.engine.plans.of(&self.transients.requests, most);
        self.counts.plans += u64::from(is_new);
        for bytes in &plan.buffers {
            let loan = self.engine.take(*bytes)?;
            self.counts.allocations += 1;
            let id = u64::MAX - self.planned.len() as u64;
            self.asked.made(id, *bytes);
            self.by_class.made(id, loan.bytes());
            self.planned.push(Arc::new(loan));
        }
        let handles = vec![0; plan.places.len()];
        self.transients.placed = Some((plan, handles));
        Ok(())
    }

    /// Lets go of the buffers, as far as the counts are concerned.
    pub(super) fn end_transients(&mut self) {
        for at in 0..self.planned.len() as u64 {
            self.asked.freed(u64::MAX - at);
            self.by_class.freed(u64::MAX - at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(of: &[(u64, [u32; 2])]) -> Requests {
        of.iter().map(|(bytes, lives)| request(*bytes, *lives)).collect()
    }

    #[test]
    fn equal_requests_are_planned_once() {
        let (mut plans, a) = (Plans::default(), requests(&[(1000, [0, 1]), (300, [1, 2]), (1000, [2, 3])]));
        let (plan, is_new) = plans.of(&a, u64::MAX);
        assert!(is_new);
        assert_eq!(*plan, Plan { buffers: vec![1536], places: vec![(0, 0), (0, 1024), (0, 0)] });
        assert!(plans.of(&requests(&[(1000, [0, 1])]), u64::MAX).1, "of other sizes");
        assert!(!plans.of(&a, u64::MAX).1);
        // Those that came last are kept.
        for bytes in 0..MOST_PLANS as u64 - 1 {
            assert!(plans.of(&requests(&[(bytes, [0, 0])]), u64::MAX).1, "{bytes}");
        }
        assert!(!plans.of(&a, u64::MAX).1);
        assert_eq!(plans.0.len(), MOST_PLANS);
    }

    #[test]
    fn what_no_buffer_holds_lies_in_several() {
        let a = requests(&[(1 << 20, [0, 1]), (1 << 19, [1, 2]), (1 << 20, [2, 3])]);
        let plan = plan(&a, 1 << 20);
        assert_eq!(plan, Plan { buffers: vec![1 << 20, 1 << 19], places: vec![(0, 0), (1, 0), (0, 0)] });
    }
}
