//! The forms of vector loops, in the order in which they are tried. Each plans from data and changes nothing.

use super::choose::Choice;
use super::emit::Emit;
use super::nest::Nest;
use super::{pointwise, sums};
use monopour_program::CpuTarget;
use std::fmt;

/// A way to write an op as loops over vectors.
pub(super) trait Form: Sync {
    /// Chooses the vector loop and the register tile, or declines.
    fn plan(&self, nest: &Nest, cpu: &CpuTarget) -> Result<Choice, Declined>;
    /// Writes the loops.
    fn write(&self, e: &mut Emit, nest: &Nest, choice: &Choice);
}

/// All forms, in order.
const FORMS: [&dyn Form; 2] = [&sums::Sums, &pointwise::Pointwise];

/// The first form that takes the op, with its choice; else why not.
pub(super) fn plan(nest: &Nest, cpu: &CpuTarget) -> Result<(&'static dyn Form, Choice), Declined> {
    let mut declined = Declined::NotAsked;
    for form in FORMS {
        match form.plan(nest, cpu) {
            Ok(choice) => return Ok((form, choice)),
            Err(why) => declined = why,
        }
    }
    Err(declined)
}

/// The reason why an op is left to scalar loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Declined {
    /// The vector loop is that of another form.
    NotAsked,
    /// A register holds one element of the widest type.
    NarrowRegisters,
    /// No loop is long enough and fits the outputs.
    NoVectorLoop,
    /// Every operand along the best loop would be gathered.
    Gathers,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Declined::NotAsked => "the vector loop asks for another form",
            Declined::NarrowRegisters => "a register holds one element of the widest type",
            Declined::NoVectorLoop => {
                "no loop is long enough and contiguous in the outputs, or sums them by one associative op"
            }
            Declined::Gathers => "along every loop all operands would be gathered element by element",
        })
    }
}
