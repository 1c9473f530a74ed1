//! The capabilities that kernels for hardware declare: those of their types and subgroup operations, and no others.

use super::compiled;
use super::targets::{Target, h200, portable};
use monopour::program::Kernel;
use monopour_testkit::spirv::Module;
use monopour_testkit::suite::selected;
use std::collections::BTreeSet;

/// SPIR-V's numbers.
const SHADER: u32 = 1;
const FLOAT16: u32 = 9;
const FLOAT64: u32 = 10;
const INT64: u32 = 11;
const INT16: u32 = 22;
const STORAGE_16: u32 = 4433;
const VULKAN_MEMORY_MODEL: u32 = 5345;
const COOPERATIVE_MATRIX: u32 = 6022;
/// `GroupNonUniform` to `GroupNonUniformShuffleRelative`.
const SUBGROUP: std::ops::RangeInclusive<u32> = 61..=66;
/// `SubgroupBallotKHR`, which naga declares for the size and the number of a subgroup.
const SUBGROUP_BALLOT: u32 = 4423;

/// The capabilities that the types of a module need; matrices need the memory model of Vulkan.
fn of_types(module: &Module) -> BTreeSet<u32> {
    let mut needed = BTreeSet::from([SHADER]);
    for scalar in module.scalar_types() {
        needed.extend(match scalar {
            (true, 16) => vec![FLOAT16, STORAGE_16],
            (false, 16) => vec![INT16, STORAGE_16],
            (true, 64) => vec![FLOAT64],
            (false, 64) => vec![INT64],
            _ => vec![],
        });
    }
    if module.has_matrices() {
        needed.extend([VULKAN_MEMORY_MODEL, COOPERATIVE_MATRIX]);
    }
    needed
}

fn check(target: &Target) {
    let mut halves = 0;
    for case in selected(false) {
        let Ok(program) = compiled(&case, target) else { continue };
        for kernel in &program.variants[0].kernels {
            let Kernel::Gpu(kernel) = kernel else { continue };
            let module = Module::parse(&kernel.spirv).unwrap_or_else(|e| panic!("{}: {e}", case.name));
            let is_subgroup = |capability: &u32| SUBGROUP.contains(capability) || *capability == SUBGROUP_BALLOT;
            let found: BTreeSet<u32> = module.capabilities().iter().copied().filter(|c| !is_subgroup(c)).collect();
            assert_eq!(found, of_types(&module), "{}: {}: {}", target.name, case.name, kernel.name);
            halves += usize::from(found.contains(&FLOAT16));
        }
    }
    let has_halves = target.description.features.contains(&monopour::program::GpuFeature::F16);
    assert_eq!(halves > 0, has_halves, "{}: kernels with f16", target.name);
}

#[test]
fn kernels_declare_what_they_use() {
    [h200(), portable()].iter().for_each(check);
}
