//! The driver's pipeline cache, kept in a file from one process to the next.
//!
//! The file lies in the user's folder of caches ([`cache::folder`]). A file that is damaged, too large or another driver's is
//! ignored, and a failure to write it is no error: kernels are then rebuilt.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use monopour_program::{cache, write_atomically};

use crate::hal;

/// Largest file read or written: a larger one costs more to read than kernels cost to build.
const MAX_BYTES: usize = 64 << 20;
/// The start of the file, before the hash of the rest.
const MAGIC: &[u8; 8] = b"mpcache1";
const HEADER_BYTES: usize = 16;

/// A device's cache and its file.
#[derive(Debug)]
pub(crate) struct DiskCache {
    /// The cache for creating pipelines.
    pub cache: wgpu::PipelineCache,
    path: PathBuf,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Hash of the file's contents.
    held: Mutex<u64>,
}

impl DiskCache {
    /// The cache of a device of this adapter; `None` if the driver has none or it is turned off.
    pub fn open(device: &wgpu::Device, info: &wgpu::AdapterInfo) -> Option<DiskCache> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let path = cache::folder()?.join(format!("{}.bin", wgpu::util::pipeline_cache_key(info)?));
        let data = read(&path);
        let cache = hal::pipeline_cache(device, data.as_deref());
        let (held, read_bytes) = data.map_or((0, 0), |data| (hash(&data), data.len() as u64));
        Some(DiskCache { cache, path, read_bytes, held: Mutex::new(held) })
    }

    /// Writes the driver's present cache, if it differs from the file.
    pub fn save(&self) {
        let Some(data) = self.cache.get_data().filter(|data| data.len() <= MAX_BYTES) else { return };
        let now = hash(&data);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if *held == now {
            return;
        }
        *held = now;
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let bytes = [&MAGIC[..], &now.to_le_bytes(), &data].concat();
        let written = std::fs::create_dir_all(folder).map_err(|e| e.to_string());
        if let Err(why) = written.and_then(|()| write_atomically(&self.path, &bytes).map_err(|e| e.to_string())) {
            log::info!("the pipeline cache is not kept: {why}");
        }
    }
}

/// The contents of a complete, undamaged file.
fn read(path: &Path) -> Option<Vec<u8>> {
    let found = std::fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > (MAX_BYTES + HEADER_BYTES) as u64 {
        return None;
    }
    unwrap(std::fs::read(path).ok()?)
}

fn unwrap(bytes: Vec<u8>) -> Option<Vec<u8>> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (expected, data) = rest.split_first_chunk::<8>()?;
    (magic == MAGIC && u64::from_le_bytes(*expected) == hash(data)).then(|| data.to_vec())
}

/// FNV-1a: detects damage, not malice; a user with write access here can run programs as this user.
fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_count_as_none() {
        let data = b"what the driver knows".to_vec();
        let file = [&MAGIC[..], &hash(&data).to_le_bytes(), &data].concat();
        assert_eq!(unwrap(file.clone()), Some(data));
        for len in 0..file.len() {
            assert_eq!(unwrap(file[..len].to_vec()), None, "cut at {len}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x40;
            assert_eq!(unwrap(damaged), None, "changed at {at}");
        }
        assert_eq!(read(Path::new("/nonexistent/x.bin")), None);
        assert_eq!(read(&std::env::temp_dir()), None);
    }
}
