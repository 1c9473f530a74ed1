//! The copies of a run, each with its reason.

use monopour_ir::Diagnostics;
use monopour_program::CopyNote;
use monopour_split::copies::Site;

/// The reason of an explicit copy.
const ASKED_FOR: &str = "the program puts one tensor into another (insert_slice, concat, pad, copy): what is computed where it \
    goes, into a slice of a tensor.empty, is not copied";

/// A note for every copy that a phase inserted; a new buffer without contents is not one.
pub(super) fn inserted(remarks: &Diagnostics, bytes: &[Option<u64>]) -> Vec<CopyNote> {
    let copies = remarks.0.iter().zip(bytes).filter(|(_, bytes)| **bytes != Some(0));
    let note = |(remark, bytes): (&monopour_ir::Diagnostic, &Option<u64>)| CopyNote {
        reason: remark.to_string(),
        location: remark.location.clone(),
        bytes: *bytes,
        times: None,
    };
    copies.map(note).collect()
}

/// The copies of a run, with the reasons of those that a phase inserted. Inserted copies that folded away, or that are in a
/// kernel's own memory, are left out.
pub(super) fn explained(sites: &[Site], mut inserted: Vec<CopyNote>) -> Vec<CopyNote> {
    // Of several notes at one location, the first of equal size; then one of unknown size.
    let mut reasons: Vec<Option<String>> = vec![None; sites.len()];
    let exact: fn(&Site, &CopyNote) -> bool = |site, note| site.bytes == note.bytes;
    let vague: fn(&Site, &CopyNote) -> bool = |site, note| site.bytes.is_none() || note.bytes.is_none();
    for fits in [exact, vague] {
        for (site, reason) in sites.iter().zip(&mut reasons).filter(|(_, reason)| reason.is_none()) {
            let found = inserted.iter().position(|note| note.location == site.location && fits(site, note));
            *reason = found.map(|at| inserted.remove(at).reason);
        }
    }
    let note = |(site, reason): (&Site, Option<String>)| CopyNote {
        reason: reason.unwrap_or_else(|| ASKED_FOR.to_owned()),
        location: site.location.clone(),
        bytes: site.bytes,
        times: site.times,
    };
    sites.iter().zip(reasons).map(note).collect()
}
