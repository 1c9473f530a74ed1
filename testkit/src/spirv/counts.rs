//! Counts of a dispatch, in the terms of hardware: sectors of global memory, banks of workgroup memory.

use std::collections::BTreeMap;
use std::fmt;

/// Bytes of a sector: the unit of traffic between caches and memory.
pub const SECTOR_BYTES: u64 = 32;
/// Banks of workgroup memory, a word of four bytes each.
const BANKS: usize = 32;
/// Bytes that workgroup memory delivers at once.
const WAVEFRONT_BYTES: u64 = 128;

/// Accesses of global memory by subgroups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Accesses: one is of all active invocations of a subgroup.
    pub accesses: u64,
    /// Bytes that invocations access.
    pub bytes: u64,
    /// Sectors, counted once per access.
    pub sectors: u64,
    /// The least number of sectors that hold the distinct bytes of each access.
    pub least_sectors: u64,
}

/// Accesses of workgroup memory by subgroups.
///
/// Accesses of 8 bytes take half a subgroup of 32 at a time, those of 16 bytes a quarter, as on NVIDIA's hardware.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Banked {
    /// Accesses: one is of all active invocations of a subgroup.
    pub accesses: u64,
    /// Elements that invocations access.
    pub elements: u64,
    /// Passes over the banks: in one, each bank has one word.
    pub wavefronts: u64,
    /// Passes if no bank were asked for two words.
    pub conflict_free: u64,
}

/// A barrier: scope of execution, scope of memory, semantics, as in the module.
pub type Barrier = (u32, u32, u32);

/// What a dispatch did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Instructions of subgroups.
    pub instructions: u64,
    /// Loads from storage buffers.
    pub loads: Traffic,
    /// Stores to storage buffers.
    pub stores: Traffic,
    /// Atomics on storage buffers, of invocations.
    pub atomics: u64,
    /// Loads from workgroup memory.
    pub shared_loads: Banked,
    /// Stores to workgroup memory.
    pub shared_stores: Banked,
    /// Products of floats, of invocations, each component one: multiplications and fused multiply-adds. Drivers fuse a
    /// multiplication with the addition behind it.
    pub products: u64,
    /// Subgroup operations, of subgroups.
    pub subgroup_ops: u64,
    /// Barriers of workgroups by kind.
    pub barriers: BTreeMap<Barrier, u64>,
}

impl Counts {
    /// Adds those of another dispatch.
    pub fn add(&mut self, other: &Counts) {
        self.instructions += other.instructions;
        self.loads.add(&other.loads);
        self.stores.add(&other.stores);
        self.atomics += other.atomics;
        self.shared_loads.add(&other.shared_loads);
        self.shared_stores.add(&other.shared_stores);
        self.products += other.products;
        self.subgroup_ops += other.subgroup_ops;
        other.barriers.iter().for_each(|(kind, count)| *self.barriers.entry(*kind).or_default() += count);
    }
}

impl Traffic {
    fn add(&mut self, other: &Traffic) {
        self.accesses += other.accesses;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.least_sectors += other.least_sectors;
    }

    /// Sectors over the least number; 1 without accesses.
    pub fn ratio(&self) -> f64 {
        if self.least_sectors == 0 { 1.0 } else { self.sectors as f64 / self.least_sectors as f64 }
    }

    /// Counts an access of `bytes` bytes at each of these addresses, which are sorted.
    pub(super) fn count(&mut self, addresses: &[u64], bytes: u64) {
        let (mut distinct, mut sectors, mut end, mut next_sector) = (0, 0, 0, 0);
        for &start in addresses {
            let stop = start + bytes;
            distinct += stop.saturating_sub(end.max(start));
            end = end.max(stop);
            let last = (stop - 1) / SECTOR_BYTES + 1;
            sectors += last.saturating_sub(next_sector.max(start / SECTOR_BYTES));
            next_sector = next_sector.max(last);
        }
        self.accesses += 1;
        self.bytes += bytes * addresses.len() as u64;
        self.sectors += sectors;
        self.least_sectors += distinct.div_ceil(SECTOR_BYTES);
    }
}

impl Banked {
    fn add(&mut self, other: &Banked) {
        self.accesses += other.accesses;
        self.elements += other.elements;
        self.wavefronts += other.wavefronts;
        self.conflict_free += other.conflict_free;
    }

    /// Wavefronts over those without conflicts; 1 without accesses.
    pub fn ratio(&self) -> f64 {
        if self.conflict_free == 0 { 1.0 } else { self.wavefronts as f64 / self.conflict_free as f64 }
    }

    /// Counts an access of `bytes` bytes, so many elements, at each of these addresses, in the order of lanes.
    pub(super) fn count(&mut self, addresses: &[u64], bytes: u64, elements: u64) {
        self.accesses += 1;
        self.elements += elements * addresses.len() as u64;
        let together = (WAVEFRONT_BYTES / bytes.clamp(4, WAVEFRONT_BYTES)) as usize;
        let mut words: Vec<u64> = Vec::with_capacity(BANKS);
        for part in addresses.chunks(together) {
            words.clear();
            words.extend(part.iter().flat_map(|&at| at / 4..(at + bytes).div_ceil(4)));
            words.sort_unstable();
            words.dedup();
            let mut of_bank = [0u64; BANKS];
            words.iter().for_each(|word| of_bank[(word % BANKS as u64) as usize] += 1);
            self.wavefronts += of_bank.into_iter().max().unwrap_or(0);
            self.conflict_free += words.len().div_ceil(BANKS) as u64;
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let traffic = |t: &Traffic| format!("{} sectors for {} ({:.3})", t.sectors, t.least_sectors, t.ratio());
        let banked = |b: &Banked| format!("{} wavefronts for {} ({:.3})", b.wavefronts, b.conflict_free, b.ratio());
        writeln!(f, "loads: {}", traffic(&self.loads))?;
        writeln!(f, "stores: {}", traffic(&self.stores))?;
        if self.shared_loads.accesses + self.shared_stores.accesses > 0 {
            writeln!(f, "shared loads: {}", banked(&self.shared_loads))?;
            writeln!(f, "shared stores: {}", banked(&self.shared_stores))?;
        }
        if self.products > 0 {
            writeln!(f, "products: {}", self.products)?;
        }
        for ((execution, memory, semantics), count) in &self.barriers {
            writeln!(f, "barriers of scope {execution}, memory scope {memory}, semantics {semantics:#x}: {count}")?;
        }
        Ok(())
    }
}
