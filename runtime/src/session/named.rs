//! Runs by the names of inputs and results.

use super::Session;
use crate::buffer::HostTensor;
use crate::error::Error;
use monopour_program::TensorDesc;

impl Session {
    /// [`Session::run`] with inputs by name, in any order; copies only the results of these names to the host, in this order.
    ///
    /// # Errors
    /// [`Error::Inputs`] for a name that the signature does not have, or that is given twice, and for a missing input;
    /// those of [`Session::run`].
    pub fn run_named<'n>(
        &mut self,
        inputs: impl IntoIterator<Item = (&'n str, HostTensor)>,
        results: &[&str],
    ) -> Result<Vec<HostTensor>, Error> {
        let wanted = positions(&self.signature().results, results)?;
        let given = in_order(&self.signature().inputs, inputs)?;
        let given = self.upload(&given)?;
        let mut outputs: Vec<_> = self.execute(&given)?.into_iter().map(Some).collect();
        let wanted: Vec<_> = wanted.into_iter().filter_map(|at| outputs[at].take()).collect();
        self.readback(&wanted)
    }
}

/// Positions of the results of these names, each at most once.
fn positions(descs: &[TensorDesc], names: &[&str]) -> Result<Vec<usize>, Error> {
    let mut out = Vec::with_capacity(names.len());
    for name in names {
        let at = position(descs, "result", name)?;
        if out.contains(&at) {
            return Err(Error::Inputs { what: format!("result `{name}` is requested twice") });
        }
        out.push(at);
    }
    Ok(out)
}

/// Tensors in the order of the signature.
fn in_order<'n>(
    descs: &[TensorDesc],
    inputs: impl IntoIterator<Item = (&'n str, HostTensor)>,
) -> Result<Vec<HostTensor>, Error> {
    let mut slots: Vec<Option<HostTensor>> = vec![None; descs.len()];
    for (name, tensor) in inputs {
        if slots[position(descs, "input", name)?].replace(tensor).is_some() {
            return Err(Error::Inputs { what: format!("input `{name}` is given twice") });
        }
    }
    let each = slots.into_iter().zip(descs);
    each.map(|(slot, desc)| slot.ok_or_else(|| Error::Inputs { what: format!("input `{desc}` is missing") })).collect()
}

fn position(descs: &[TensorDesc], kind: &str, name: &str) -> Result<usize, Error> {
    descs.iter().position(|desc| desc.name == name).ok_or_else(|| {
        let names: Vec<&str> = descs.iter().map(|desc| desc.name.as_str()).collect();
        Error::Inputs { what: format!("no {kind} is named `{name}`; there are {}", names.join(", ")) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use monopour_program::DType;

    fn descs() -> [TensorDesc; 2] {
        ["x", "y"].map(|name| TensorDesc::tensor(name, DType::I64, vec![1]))
    }

    fn number(value: i64) -> HostTensor {
        HostTensor::from_i64(vec![1], &[value]).unwrap()
    }

    #[test]
    fn inputs_by_name_are_in_the_order_of_the_signature() {
        let ordered = in_order(&descs(), [("y", number(2)), ("x", number(1))]).unwrap();
        assert_eq!(ordered.iter().map(HostTensor::to_f64).collect::<Vec<_>>(), [[1.0], [2.0]]);
        let refused = |inputs: Vec<(&str, HostTensor)>| in_order(&descs(), inputs).unwrap_err().to_string();
        assert_eq!(refused(vec![("z", number(0))]), "no input is named `z`; there are x, y");
        assert_eq!(refused(vec![("x", number(0)), ("x", number(1))]), "input `x` is given twice");
        assert_eq!(refused(vec![("x", number(0))]), "input `y: tensor<1xi64>` is missing");
    }

    #[test]
    fn results_are_found_by_name_and_once() {
        assert_eq!(positions(&descs(), &["y", "x"]), Ok(vec![1, 0]));
        let refused = |names: &[&str]| positions(&descs(), names).unwrap_err().to_string();
        assert_eq!(refused(&["z"]), "no result is named `z`; there are x, y");
        assert_eq!(refused(&["x", "x"]), "result `x` is requested twice");
    }
}
