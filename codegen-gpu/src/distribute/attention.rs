//! Attention without scores in memory: the keys in blocks, with an online softmax.
//!
//! Before, on a tile of rows `i` (the ops are on local buffers `[rows, keys]` and `[rows]`):
//! ```mlir
//! s = sum over d of q[i, d] * k[j, d] ; s = mask(scale(s)) ; m = max over j of s ; p = exp(s - m) ; l = sum over j of p
//! w = p / l ; o = sum over j of w * v[j, c] ; epilogue
//! ```
//! After: a loop over blocks of keys, which carries the maximum `x`, the sum `l` and the sums `o` of each row.
//! ```mlir
//! s = q * k of the block ; s = mask(scale(s)) ; y = max(x, max of s) ; f = exp(x - y) ; p = exp(s - y)
//! l = l * f + sum of p ; o = o * f + p * v of the block ; x = y                 and after the loop: o / l ; epilogue
//! ```
//! Where `y` is negative infinity, `x` and `s` are compared with 0, so that a block without any score changes nothing; a row
//! without any score has `l = 0`, and `0 / l` is what the quotient's body makes of it.
//!
//! Four geometries. `cooperative`: subgroups hold sums of halves as matrices. `subgroup`: one subgroup holds the rows; the lanes lie along the keys, then along the values' columns,
//! and shuffles pass queries and powers on. `teams`: eight lanes have rows, or a part of the keys where there are few rows.
//! `workgroup`, where no subgroup's size is known: each invocation has a part of the scores and of the sums, and powers and maxima
//! pass through workgroup memory.
//!
//! Weights that the program rounds to 16 bits are not: their sums are known after the last block. Cooperative matrices round the
//! powers instead.
//!
//! Ragged edges: loads are clamped, keys beyond the last one have the score negative infinity and the value 0, stores of rows
//! and columns are guarded.
//! Requires: class `attention`, and the form that `frontend`'s `attention.rs` makes. Declines otherwise, with a reason.

mod cooperative;
mod factor;
mod form;
mod mask;
mod part;
mod plan;
mod softmax;
mod subgroup;
mod teams;
mod tile;
mod workgroup;

use super::code::{Code, gcd};
use super::evaluate::{Evaluator, is_vectorizable};
use super::fitted::FittedChoice;
use super::locals::Scratch;
use super::strategy::{Declined, KernelPlan, Site, Strategy};
use form::Form;
use monopour_contract::{KernelClass, MOST_ATTENTION_BYTES, MOST_ATTENTION_KEYS};
use monopour_ir::Diagnostics;
use monopour_program::GpuDescription;
use plan::{Lanes, Plan};

/// The strategy.
pub(super) struct Attention;

impl Strategy for Attention {
    fn plan<'c, 'm>(
        &self,
        body: &Evaluator<'c, 'm>,
        kernel: &FittedChoice,
        device: &GpuDescription,
    ) -> Result<Box<dyn KernelPlan<'c, 'm> + 'm>, Declined> {
        if kernel.class != KernelClass::Attention {
            return Err(Declined::NotAsked);
        }
        Ok(Box::new(plan(body, kernel, device)?))
    }
}

/// Plans, or declines.
fn plan<'c, 'm>(
    evaluator: &Evaluator<'c, 'm>,
    kernel: &FittedChoice,
    device: &GpuDescription,
) -> Result<Plan<'c, 'm>, Declined> {
    if !evaluator.model.is_straight() {
        return Err(Declined::ControlFlow);
    }
    let form = form::read(evaluator.model).ok_or(Declined::NotAttention)?;
    let rows = form.row.map_or(Some(1), |row| row.1.facts.bound).ok_or(Declined::UnboundedRows)?.max(1);
    let invocations = kernel.invocations();
    let subgroup = kernel.shared_lanes.filter(|lanes| i64::from(*lanes) == invocations);
    let wanted = kernel.register_tile.get(1).copied().unwrap_or(1).max(1);
    let block = if subgroup.is_some() { wanted * invocations } else { wanted };
    let lanes = lanes(&form, kernel, if subgroup.is_some() { wanted } else { wanted / workgroup::COLUMNS });
    let most_keys = device.is_cpu_adapter().then_some(MOST_ATTENTION_KEYS);
    let mut plan = Plan { form, subgroup, cooperative: None, teams: None, invocations, rows, block, lanes, most_keys };
    if let Some(subgroup) = kernel.cooperative {
        let widest = self::lanes(&plan.form, kernel, block / cooperative::PER_ROW);
        let scalar = std::mem::replace(&mut plan.lanes, widest);
        let offered = u64::from(device.limits.max_workgroup_storage_bytes);
        if cooperative::fits(&plan, evaluator, subgroup) && cooperative::bytes(&plan, subgroup) <= offered {
            return Ok(Plan { cooperative: Some(subgroup), ..plan });
        }
        plan.lanes = scalar;
    }
    let team_lanes = kernel.shared_lanes.filter(|size| subgroup.is_none() && i64::from(*size) % teams::TEAM == 0);
    if team_lanes.is_some() {
        let needed = teams::bytes(&plan);
        if wanted % teams::TEAM != 0 || !matches!(wanted / teams::TEAM, 1 | 2 | 4) {
            return Err(Declined::RegisterTile);
        }
        if needed > u64::from(device.limits.max_workgroup_storage_bytes) {
            return Err(Declined::WorkgroupMemory(needed));
        }
        plan.teams = team_lanes;
    } else if subgroup.is_none() {
        if wanted % workgroup::COLUMNS != 0 || invocations % workgroup::COLUMNS != 0 || rows > invocations {
            return Err(Declined::RegisterTile);
        }
        let needed = workgroup::bytes(&plan);
        let is_small = needed <= u64::from(MOST_ATTENTION_BYTES);
        debug_assert!(is_small || kernel.cooperative.is_some(), "tiling asks for smaller tiles");
        if needed > u64::from(device.limits.max_workgroup_storage_bytes) {
            return Err(Declined::WorkgroupMemory(needed));
        }
    }
    Ok(plan)
}

/// The widest vectors: elements that are not aligned are loaded one by one, in fewer iterations. `neighbours` keys are next
/// to each other in an invocation.
fn lanes(form: &Form, kernel: &FittedChoice, neighbours: i64) -> Lanes {
    let widest = |extent: i64, fits: bool| {
        let divides = |l: &u32| *l <= kernel.vector_width && extent % i64::from(*l) == 0;
        [8, 4, 2].into_iter().find(divides).filter(|_| fits).unwrap_or(1)
    };
    let on_results = form.after.iter().all(|op| is_vectorizable(op)) && is_vectorizable(form.weights);
    Lanes {
        size: widest(form.size, form.queries.is_vectorizable() && form.keys.is_vectorizable()),
        keys: widest(gcd(neighbours, form.count.facts.divisor), form.pointwise.iter().all(|op| is_vectorizable(op))),
        width: widest(form.width, form.weighted.is_vectorizable() && on_results),
    }
}

impl<'c, 'm> KernelPlan<'c, 'm> for Plan<'c, 'm> {
    fn strategy(&self) -> &'static str {
        KernelClass::Attention.as_str()
    }

    fn lanes(&self) -> u32 {
        self.lanes.width
    }

    fn write(&self, code: &mut Code<'c, '_>, site: &Site<'c, '_, 'm>) -> Result<Vec<Scratch>, Diagnostics> {
        let evaluator = Evaluator { lanes: self.argument_lanes(site.body), ..site.body.clone() };
        let linear = code.linear_id(site.kernel.workgroup_size);
        if let Some(lanes) = self.cooperative {
            cooperative::write(code, &evaluator, self, (linear, lanes))?;
            return Ok(vec![]);
        }
        match (self.subgroup, self.teams) {
            (Some(lanes), _) => subgroup::write(code, &evaluator, self, linear, lanes)?,
            (None, Some(lanes)) => teams::write(code, &evaluator, self, (linear, lanes))?,
            (None, None) => workgroup::write(code, &evaluator, self, linear)?,
        }
        Ok(vec![])
    }
}
