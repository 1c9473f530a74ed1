//! Caches that outlive a process: a folder of files, each named by its key and checked by a hash.
//!
//! They lie under `$MONOPOUR_CACHE_DIR`, else `$XDG_CACHE_HOME/monopour`, else `~/.cache/monopour`; an empty
//! `MONOPOUR_CACHE_DIR` turns them off. A file that is damaged counts as absent, and a failure to write one is no error.
//! The hash detects damage, not malice: who can write there can run programs as this user.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::SystemTime;

/// Bytes of the hash at a file's start.
const HASH_BYTES: usize = 32;

/// The user's folder of caches; `None` if they are turned off, or there is no home.
pub fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let absolute = |path: &PathBuf| path.is_absolute();
    match variable("MONOPOUR_CACHE_DIR") {
        Some(off) if off.as_os_str().is_empty() => None,
        Some(given) => Some(given),
        None => variable("XDG_CACHE_HOME")
            .filter(absolute)
            .or_else(|| Some(variable("HOME").filter(absolute)?.join(".cache")))
            .map(|caches| caches.join("monopour")),
    }
}

/// A folder of files that may be lost.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    most_bytes: u64,
    has_new: AtomicBool,
}

impl Files {
    /// The files of `folder`, which need not exist, of which [`Files::trim`] keeps `most_bytes` bytes.
    pub fn new(folder: PathBuf, most_bytes: u64) -> Self {
        Self { folder, most_bytes, has_new: AtomicBool::new(false) }
    }

    /// The name of what `parts` determine.
    pub fn key(parts: &[&[u8]]) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The bytes kept under `key`, whole.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.folder.join(key);
        let mut bytes = fs::read(&path).ok()?;
        let (hash, data) = bytes.split_first_chunk::<HASH_BYTES>()?;
        if blake3::hash(data) != *hash {
            return None;
        }
        bytes.drain(..HASH_BYTES);
        // What was used last is dropped last. Where that cannot be noted, it may be dropped earlier.
        let _ = fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Keeps `data` under `key`, if it can.
    pub fn put(&self, key: &str, data: &[u8]) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let temporary = format!("{key}.{}.{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let temporary = self.folder.join(temporary);
        let bytes = [blake3::hash(data).as_bytes(), data].concat();
        // Not synced: a file that a crash cut short does not match its hash.
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&temporary, bytes))
            .and_then(|()| fs::rename(&temporary, self.folder.join(key)));
        match written {
            Ok(()) => self.has_new.store(true, Ordering::Relaxed),
            Err(_) => drop(fs::remove_file(&temporary)),
        }
    }

    /// After a [`Files::put`]: removes the files used longest ago, until three quarters of the limit are left, if all
    /// together are larger than the limit.
    pub fn trim(&self) {
        if !self.has_new.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut files = sizes(&self.folder);
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= self.most_bytes {
            return;
        }
        files.sort();
        for (_, bytes, path) in files {
            if total <= self.most_bytes / 4 * 3 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
    }
}

/// The files of a folder: when they were used, their bytes, their paths.
fn sizes(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let described = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((found.modified().ok()?, found.len(), entry.path()))
    });
    described.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn files(name: &str, most_bytes: u64) -> Files {
        let folder = std::env::temp_dir().join(format!("monopour-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Files::new(folder, most_bytes)
    }

    #[test]
    fn what_was_put_is_found_and_a_damaged_file_is_not() {
        let files = files("damage", 1 << 20);
        let key = Files::key(&[b"a", b"bc"]);
        assert_ne!(key, Files::key(&[b"ab", b"c"]), "the parts are apart");
        assert_eq!(files.get(&key), None);
        files.put(&key, b"code");
        assert_eq!(files.get(&key), Some(b"code".to_vec()));
        let path = files.folder.join(&key);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(files.get(&key), None, "cut at {at}");
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(files.get(&key), None, "changed at {at}");
        }
        assert_eq!(fs::read_dir(&files.folder).unwrap().count(), 1, "no temporary is left");
        fs::remove_dir_all(&files.folder).unwrap();
    }

    #[test]
    fn the_files_used_longest_ago_go_first() {
        let files = files("trim", 1000);
        for (n, key) in ["a", "b", "c", "d"].into_iter().enumerate() {
            files.put(key, &[0; 200]);
            let file = fs::File::options().append(true).open(files.folder.join(key)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(100 - n as u64)).unwrap();
        }
        files.trim();
        assert!(["a", "b", "c", "d"].iter().all(|key| files.folder.join(key).exists()), "928 bytes fit");
        assert!(files.get("a").is_some());
        files.put("e", &[0; 200]);
        files.trim();
        let left: Vec<bool> = ["a", "b", "c", "d", "e"].iter().map(|key| files.folder.join(key).exists()).collect();
        assert_eq!(left, [true, false, false, true, true], "1,160 bytes; 696 are left");
        fs::remove_dir_all(&files.folder).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_error() {
        let blocked = std::env::temp_dir().join(format!("monopour-cache-file-{}", std::process::id()));
        fs::write(&blocked, b"a file").unwrap();
        let files = Files::new(blocked.join("objects"), 1 << 20);
        files.put("key", b"code");
        assert_eq!(files.get("key"), None);
        files.trim();
        fs::remove_file(blocked).unwrap();
    }
}
