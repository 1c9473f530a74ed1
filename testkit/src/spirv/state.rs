//! The state of a dispatch that runs.

use std::collections::{BTreeMap, HashMap};

use super::counts::{Barrier, Counts};
use super::module::Module;
use super::shadow::Shadow;

/// The lanes that take part in an instruction.
pub(super) type Mask = u128;

/// Why a subgroup does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// It is done.
    End,
    /// It waits at a barrier.
    Barrier { word: usize, kind: Barrier },
}

/// Where the lanes of a subgroup are in a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    pub function: usize,
    /// By lane: its block, and the one before.
    pub blocks: Vec<u32>,
    pub previous: Vec<u32>,
    /// The block that runs, its lanes, and the next instruction; 0 for none.
    pub block: u32,
    pub active: Mask,
    pub at: usize,
    /// The id of the call's result.
    pub result: u32,
    pub depth: u32,
}

/// A range of a buffer that is bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The buffer.
    pub buffer: usize,
    /// Its first byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The parameters of a dispatch.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// Workgroups: x, y, z.
    pub grid: [u32; 3],
    /// Invocations of a subgroup: a power of two, at most 128.
    pub subgroup_size: u32,
    /// Decides the order of subgroups between barriers, and which lane holds which elements of a matrix.
    pub seed: u64,
    /// What is bound, by binding.
    pub windows: &'a [Window],
    /// Immediates, or push constants.
    pub immediates: &'a [u8],
    /// The most instructions of all subgroups.
    pub limit: u64,
}

/// Invocations that run in lock step.
#[derive(Clone, Debug, Default)]
pub(super) struct Subgroup {
    /// Its position in the workgroup.
    pub number: u32,
    /// Its first invocation.
    pub first: u32,
    /// The lanes that exist.
    pub exists: Mask,
    /// Scalars, each a row of lanes.
    pub registers: Vec<u64>,
    /// Variables of each lane.
    pub private: Vec<u8>,
    /// Where it is.
    pub frame: Frame,
    pub stop: Option<Stop>,
}

/// The workgroup that runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Workgroup {
    pub id: [u32; 3],
    /// Its first invocation, counted over all workgroups.
    pub first_invocation: u32,
    pub memory: Vec<u8>,
    pub shadow: Shadow,
    /// Times of storage buffers, and of workgroup memory: now, and at the beginning.
    pub storage: (u32, u32),
    pub shared: (u32, u32),
}

/// A dispatch that runs.
pub(super) struct Machine<'a> {
    pub module: &'a Module,
    pub launch: &'a Launch<'a>,
    pub buffers: &'a mut [Vec<u8>],
    pub lanes: usize,
    /// The rows of constants.
    pub constants: Vec<u64>,
    pub scratch: Vec<u64>,
    /// The subgroup that runs, the others being among `waiting`.
    pub subgroup: Subgroup,
    pub waiting: Vec<Subgroup>,
    pub workgroup: Workgroup,
    /// By buffer, where two invocations may meet.
    pub shadows: BTreeMap<usize, Shadow>,
    /// Whether accesses of a binding are noted there.
    pub is_shadowed: HashMap<u32, bool>,
    /// By use, number of elements and their width of a matrix: its elements, by scalar and lane.
    pub layouts: HashMap<(u32, u32, u32), Vec<u32>>,
    pub active: Mask,
    pub word: usize,
    pub counts: Counts,
}
