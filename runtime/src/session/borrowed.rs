//! Runs on slices that the caller lends.

use super::Session;
use super::core::check_places_count;
use crate::buffer::{DeviceTensor, HostSlice};
use crate::error::Error;

impl Session {
    /// As [`Session::upload`], from the caller's memory.
    ///
    /// # Errors
    /// Those of [`Session::upload`].
    pub fn upload_from(&mut self, inputs: &[HostSlice<'_>]) -> Result<Vec<DeviceTensor>, Error> {
        self.core().upload(inputs)
    }

    /// Copies tensors to `places`, row-major, contiguous and little-endian. Each is at least as long as its tensor;
    /// what lies behind that stays as it is.
    ///
    /// # Errors
    /// [`Error::Inputs`] for another number of places; [`Error::Tensor`] for a short place or a donated tensor; the
    /// device's errors.
    pub fn readback_into(&mut self, tensors: &[DeviceTensor], places: &mut [&mut [u8]]) -> Result<(), Error> {
        self.core().readback(tensors, places)
    }

    /// [`Session::run`] between the caller's slices: inputs are copied to the device from where they are, and results
    /// to `places`, as [`Session::readback_into`] does. Returns the sizes of the results, which may be known with the
    /// run only.
    ///
    /// # Errors
    /// Those of the three steps.
    pub fn run_into(&mut self, inputs: &[HostSlice<'_>], places: &mut [&mut [u8]]) -> Result<Vec<Vec<u64>>, Error> {
        check_places_count(self.signature().results.len(), places.len())?;
        let inputs = self.upload_from(inputs)?;
        let outputs = self.execute(&inputs)?;
        self.readback_into(&outputs, places)?;
        Ok(outputs.iter().map(|output| output.shape().to_vec()).collect())
    }
}
