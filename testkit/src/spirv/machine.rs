//! A dispatch: workgroups one after another, their subgroups in turns from barrier to barrier.

use std::collections::{BTreeMap, HashMap};

use spirv::{BuiltIn, Op, StorageClass};

use super::counts::Counts;
use super::error::{Error, FaultKind};
use super::module::Module;
use super::shadow::Shadow;
use super::state::{Launch, Machine, Stop, Subgroup, Window, Workgroup};
use super::values::first_lanes;
use crate::random::Rng;

/// The largest subgroups.
const MOST_LANES: u32 = 128;
/// The most invocations of a workgroup.
const MOST_INVOCATIONS: u32 = 4096;

/// Runs a dispatch on buffers.
///
/// # Errors
/// [`Error`]; the buffers then hold what was written before.
pub fn launch(module: &Module, launch: &Launch, buffers: &mut [Vec<u8>]) -> Result<Counts, Error> {
    check(module, launch, buffers)?;
    let lanes = launch.subgroup_size as usize;
    let constants = module.constants.iter().flat_map(|value| std::iter::repeat_n(*value, lanes)).collect();
    let mut machine = Machine {
        module,
        launch,
        buffers,
        lanes,
        constants,
        scratch: vec![0; lanes],
        subgroup: Subgroup::default(),
        waiting: vec![],
        workgroup: Workgroup::default(),
        shadows: BTreeMap::new(),
        is_shadowed: HashMap::new(),
        layouts: HashMap::new(),
        active: 0,
        word: 0,
        counts: Counts::default(),
    };
    machine.watch_buffers();
    machine.make_subgroups();
    let mut rng = Rng::new(launch.seed);
    let [x, y, z] = launch.grid;
    for number in 0..u64::from(x) * u64::from(y) * u64::from(z) {
        let (x, y) = (u64::from(x), u64::from(y));
        machine.workgroup.id = [number % x, number / x % y, number / x / y].map(|id| id as u32);
        machine.run_workgroup(number as u32, &mut rng)?;
    }
    Ok(machine.counts)
}

/// Whether a launch fits its module and its buffers.
fn check(module: &Module, launch: &Launch, buffers: &[Vec<u8>]) -> Result<(), Error> {
    let wrong = |what: &'static str| Err(Error::Launch { what });
    if !launch.subgroup_size.is_power_of_two() || launch.subgroup_size > MOST_LANES {
        return wrong("the size of a subgroup is a power of two of at most 128");
    }
    if module.matrix_lanes != 0 && module.matrix_lanes != launch.subgroup_size {
        return wrong("the module was read for subgroups of another size");
    }
    let invocations = module.workgroup_size.iter().try_fold(1u32, |all, size| all.checked_mul(*size));
    if invocations.is_none_or(|count| !(1..=MOST_INVOCATIONS).contains(&count)) {
        return wrong("a workgroup has 1 to 4,096 invocations");
    }
    let total = launch.grid.iter().try_fold(invocations.unwrap_or(1), |all, extent| all.checked_mul(*extent));
    if total.is_none_or(|total| total > u32::MAX - 2) {
        return wrong("the grid has too many invocations");
    }
    let fits = |window: &Window| {
        let end = window.offset.checked_add(window.bytes);
        buffers.get(window.buffer).zip(end).is_some_and(|(buffer, end)| end <= buffer.len() as u64)
    };
    if !launch.windows.iter().all(fits) {
        return wrong("a window is outside of its buffer");
    }
    let bound = |number: u32| (number as usize) < launch.windows.len();
    let is_buffer = |class: StorageClass| matches!(class, StorageClass::StorageBuffer | StorageClass::Uniform);
    if !module.variables.iter().all(|v| !is_buffer(v.class) || bound(v.number)) {
        return wrong("a binding has no window");
    }
    Ok(())
}

impl Machine<'_> {
    /// Decides which buffers need a shadow: those that the module writes, with whatever else is bound there.
    fn watch_buffers(&mut self) {
        let storage: Vec<_> = self.module.variables.iter().filter(|v| v.class == StorageClass::StorageBuffer).collect();
        let window = |number: u32| self.launch.windows[number as usize];
        let meets = |a: Window, b: Window| {
            a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
        };
        for variable in &storage {
            let own = window(variable.number);
            let is_met = storage.iter().any(|other| other.is_written && meets(window(other.number), own));
            self.is_shadowed.insert(variable.number, is_met);
            if is_met {
                let bytes = self.buffers[own.buffer].len() as u64;
                let narrow = self.module.scalar_types().iter().any(|(_, bits)| *bits < 32);
                let granule = if narrow { 2 } else { 4 };
                self.shadows.entry(own.buffer).or_insert_with(|| Shadow::new(bytes, granule, true));
            }
        }
    }

    fn make_subgroups(&mut self) {
        let invocations: u32 = self.module.workgroup_size.iter().product();
        let lanes = self.launch.subgroup_size;
        self.waiting = (0..invocations.div_ceil(lanes))
            .map(|number| Subgroup {
                number,
                first: number * lanes,
                exists: first_lanes((invocations - number * lanes).min(lanes)),
                registers: vec![0; self.module.registers as usize * self.lanes],
                private: vec![0; self.module.private_bytes as usize * self.lanes],
                ..Subgroup::default()
            })
            .collect();
        let bytes = self.module.workgroup_bytes;
        self.workgroup.memory = vec![0; bytes as usize];
        self.workgroup.shadow = Shadow::new(bytes.into(), 2, false);
    }

    fn run_workgroup(&mut self, number: u32, rng: &mut Rng) -> Result<(), Error> {
        let invocations: u32 = self.module.workgroup_size.iter().product();
        self.workgroup.first_invocation = number * invocations;
        for (now, start) in [&mut self.workgroup.storage, &mut self.workgroup.shared] {
            *now += 1;
            *start = *now;
        }
        for at in 0..self.waiting.len() {
            self.subgroup = std::mem::take(&mut self.waiting[at]);
            self.start_subgroup()?;
            self.waiting[at] = std::mem::take(&mut self.subgroup);
        }
        loop {
            let mut order: Vec<usize> = (0..self.waiting.len()).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, rng.below(at as u64 + 1) as usize);
            }
            for at in order {
                self.subgroup = std::mem::take(&mut self.waiting[at]);
                let stop = self.resume();
                self.subgroup.stop = stop.as_ref().ok().copied();
                self.waiting[at] = std::mem::take(&mut self.subgroup);
                stop?;
            }
            if self.meet()? {
                return Ok(());
            }
        }
    }

    /// Compares where the subgroups stopped; true if the workgroup is done.
    fn meet(&mut self) -> Result<bool, Error> {
        let first = self.waiting[0].stop;
        let odd = self.waiting.iter().position(|subgroup| subgroup.stop != first);
        if let Some(odd) = odd {
            // The fault is of the one at a barrier.
            let at = [0, odd].into_iter().find(|at| matches!(self.waiting[*at].stop, Some(Stop::Barrier { .. })));
            self.subgroup = self.waiting[at.unwrap_or(0)].clone();
            if let Some(Stop::Barrier { word, .. }) = self.subgroup.stop {
                self.word = word;
            }
            return Err(self.fault(FaultKind::DivergentBarrier, Op::ControlBarrier, 0));
        }
        let Some(Stop::Barrier { kind, .. }) = first else { return Ok(true) };
        *self.counts.barriers.entry(kind).or_default() += 1;
        let (_, scope, semantics) = kind;
        let orders = spirv::MemorySemantics::from_bits_truncate(semantics);
        use spirv::MemorySemantics as M;
        let is_order = orders.intersects(M::ACQUIRE_RELEASE | M::SEQUENTIALLY_CONSISTENT)
            && scope <= spirv::Scope::Workgroup as u32;
        if is_order && orders.contains(M::UNIFORM_MEMORY) {
            self.workgroup.storage.0 += 1;
        }
        if is_order && orders.contains(M::WORKGROUP_MEMORY) {
            self.workgroup.shared.0 += 1;
        }
        Ok(false)
    }

    /// The value of a built-in in each lane.
    pub fn builtin(&self, number: u32, scalar: u32) -> Result<Vec<u64>, Error> {
        let unknown = || Error::Unsupported { word: self.word, instruction: format!("BuiltIn {number}") };
        let builtin = BuiltIn::from_u32(number).ok_or_else(unknown)?;
        let [x, y, _] = self.module.workgroup_size;
        let at = scalar as usize;
        let local = |lane: usize| {
            let index = self.subgroup.first + lane as u32;
            [index % x, index / x % y, index / x / y][at.min(2)]
        };
        let each = |f: &dyn Fn(usize) -> u32| Ok((0..self.lanes).map(|lane| u64::from(f(lane))).collect());
        match builtin {
            BuiltIn::WorkgroupId => each(&|_| self.workgroup.id[at.min(2)]),
            BuiltIn::NumWorkgroups => each(&|_| self.launch.grid[at.min(2)]),
            BuiltIn::LocalInvocationId => each(&local),
            BuiltIn::GlobalInvocationId => {
                each(&|lane| self.workgroup.id[at.min(2)] * self.module.workgroup_size[at.min(2)] + local(lane))
            }
            BuiltIn::LocalInvocationIndex => each(&|lane| self.subgroup.first + lane as u32),
            BuiltIn::SubgroupSize => each(&|_| self.launch.subgroup_size),
            BuiltIn::SubgroupLocalInvocationId => each(&|lane| lane as u32),
            BuiltIn::SubgroupId => each(&|_| self.subgroup.number),
            BuiltIn::NumSubgroups => each(&|_| self.waiting.len() as u32),
            _ => Err(unknown()),
        }
    }
}
