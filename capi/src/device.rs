//! Devices.

use std::ffi::{CString, c_char};

use monopour_runtime::DeviceChoice;

use crate::status::guard;
use crate::structs::{free, give, text};

/// A device.
pub struct Device {
    pub(crate) device: monopour_runtime::Device,
    name: CString,
}

/// Opens a device: `auto` (the best hardware GPU, else the CPU), `gpu`, `cpu`, an index or a name.
///
/// # Safety
/// `choice` ends with a zero; `out` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_device_open(choice: *const c_char, out: *mut *mut Device) -> i32 {
    guard(|| {
        // SAFETY: the caller's word, for both.
        let choice = unsafe { text(choice, "choice") }?;
        let open = || {
            let device = monopour_runtime::Device::open(&DeviceChoice::parse(choice))?;
            let name = CString::new(device.name().replace('\0', " ")).unwrap_or_default();
            Ok(Device { device, name })
        };
        // SAFETY: as above.
        unsafe { give(out, open) }
    })
}

/// The name of a device, as long as it lives; null of null.
///
/// # Safety
/// `device` is null or a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_device_name(device: *const Device) -> *const c_char {
    // SAFETY: the caller's word.
    unsafe { device.as_ref() }.map_or(std::ptr::null(), |device| device.name.as_ptr())
}

/// Frees a device. Its sessions go on.
///
/// # Safety
/// `device` is null, or a device that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn monopour_device_free(device: *mut Device) {
    // SAFETY: the caller's word.
    unsafe { free(device) };
}
