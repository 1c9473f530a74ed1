//! Who accessed a location last: finds races, whatever the order in which invocations ran.
//!
//! Time is counted in epochs: a barrier that orders a memory begins a new one, and so does a workgroup. Workgroups run
//! one after another here, and nothing orders them on a device: accesses of two of them conflict in any epochs.

/// Words of a cell: the last write, atomic and load, each as invocation and epoch, then the first atomic and load.
const CELL: usize = 8;
const WRITE: usize = 0;
const ATOMIC: usize = 2;
const LOAD: usize = 4;
const FIRST_ATOMIC: usize = 6;
const FIRST_LOAD: usize = 7;
/// Several invocations in one epoch.
const MANY: u32 = u32::MAX;

/// An access of one invocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Load,
    Store,
    Atomic,
}

/// The position of an access in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The invocation, counted over all workgroups.
    pub invocation: u32,
    /// The epoch.
    pub epoch: u32,
    /// The first epoch of the workgroup.
    pub start: u32,
}

/// The other side of a race; without a number, several invocations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Other(pub Option<u32>);

/// The accesses of a memory, by granules of bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    cells: Vec<u32>,
    granule: u64,
    /// Whether other workgroups have the same memory.
    is_shared: bool,
}

impl Shadow {
    /// A memory of so many bytes in granules of `granule`, a power of two.
    pub fn new(bytes: u64, granule: u64, is_shared: bool) -> Shadow {
        let cells = bytes.div_ceil(granule) as usize;
        Shadow { cells: vec![0; cells * CELL], granule, is_shared }
    }

    /// Notes an access of a range, or finds the race.
    pub fn access(&mut self, access: Access, range: (u64, u64), moment: Moment) -> Result<(), Other> {
        let (offset, bytes) = range;
        for granule in offset / self.granule..(offset + bytes).div_ceil(self.granule) {
            let at = granule as usize * CELL;
            let is_shared = self.is_shared;
            // Padding behind the end of a buffer has no cell.
            if let Some(cell) = self.cells.get_mut(at..at + CELL) {
                note(cell, access, moment, is_shared)?;
            }
        }
        Ok(())
    }

    /// Whether this workgroup has written the whole range.
    pub fn is_written(&self, offset: u64, bytes: u64, start: u32) -> bool {
        (offset / self.granule..(offset + bytes).div_ceil(self.granule)).all(|granule| {
            let at = granule as usize * CELL;
            let since = |slot: usize| self.cells[at + slot] != 0 && self.cells[at + slot + 1] >= start;
            since(WRITE) || since(ATOMIC)
        })
    }
}

fn note(cell: &mut [u32], access: Access, moment: Moment, is_shared: bool) -> Result<(), Other> {
    let me = moment.invocation + 1;
    let other = |by: u32| if by == MANY { Other(None) } else { Other(Some(by - 1)) };
    let conflict = |slot: usize, first: u32| {
        let (by, epoch) = (cell[slot], cell[slot + 1]);
        if by == 0 {
            return Ok(());
        }
        let before = is_shared && first < moment.start;
        let now = epoch == moment.epoch && by != me;
        // Its first access was another workgroup's, whoever was the last.
        if now || before { Err(other(if by == me { MANY } else { by })) } else { Ok(()) }
    };
    conflict(WRITE, cell[WRITE + 1])?;
    if access != Access::Atomic {
        conflict(ATOMIC, cell[FIRST_ATOMIC])?;
    }
    if access != Access::Load {
        conflict(LOAD, cell[FIRST_LOAD])?;
    }
    let (slot, first) = match access {
        Access::Store => (WRITE, None),
        Access::Atomic => (ATOMIC, Some(FIRST_ATOMIC)),
        Access::Load => (LOAD, Some(FIRST_LOAD)),
    };
    let is_alone = cell[slot] == 0 || cell[slot + 1] != moment.epoch || cell[slot] == me;
    if let Some(first) = first.filter(|_| cell[slot] == 0) {
        cell[first] = moment.epoch;
    }
    cell[slot] = if is_alone { me } else { MANY };
    cell[slot + 1] = moment.epoch;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(invocation: u32, epoch: u32, start: u32) -> Moment {
        Moment { invocation, epoch, start }
    }

    #[test]
    fn a_store_and_a_load_of_two_invocations_need_a_barrier() {
        let mut shadow = Shadow::new(16, 4, false);
        assert_eq!(shadow.access(Access::Store, (4, 4), at(0, 1, 1)), Ok(()));
        assert_eq!(shadow.access(Access::Load, (4, 4), at(0, 1, 1)), Ok(()));
        assert_eq!(shadow.access(Access::Load, (8, 4), at(1, 1, 1)), Ok(()));
        assert_eq!(shadow.access(Access::Load, (0, 8), at(1, 1, 1)), Err(Other(Some(0))));
        assert_eq!(shadow.access(Access::Load, (0, 8), at(1, 2, 1)), Ok(()));
        assert_eq!(shadow.access(Access::Load, (0, 8), at(2, 2, 1)), Ok(()));
        assert_eq!(shadow.access(Access::Store, (4, 4), at(2, 2, 1)), Err(Other(None)));
        assert_eq!(shadow.access(Access::Store, (4, 4), at(2, 3, 1)), Ok(()));
        assert!(shadow.is_written(4, 4, 1) && !shadow.is_written(0, 8, 1) && !shadow.is_written(4, 4, 4));
    }

    #[test]
    fn nothing_orders_two_workgroups() {
        for (first, second, races) in [
            (Access::Store, Access::Store, true),
            (Access::Store, Access::Load, true),
            (Access::Load, Access::Store, true),
            (Access::Load, Access::Load, false),
            (Access::Atomic, Access::Atomic, false),
            (Access::Atomic, Access::Load, true),
            (Access::Load, Access::Atomic, true),
        ] {
            let mut shadow = Shadow::new(4, 4, true);
            assert_eq!(shadow.access(first, (0, 4), at(0, 1, 1)), Ok(()));
            assert_eq!(shadow.access(second, (0, 4), at(64, 5, 5)).is_err(), races, "{first:?}, {second:?}");
        }
    }

    #[test]
    fn atomics_of_one_epoch_do_not_conflict() {
        let mut shadow = Shadow::new(4, 4, true);
        for invocation in 0..3 {
            assert_eq!(shadow.access(Access::Atomic, (0, 4), at(invocation, 1, 1)), Ok(()));
        }
        assert_eq!(shadow.access(Access::Load, (0, 4), at(0, 1, 1)), Err(Other(None)));
    }
}
