//! Text whose blobs of resources are taken out before MLIR's parser copies, scans and decodes their digits.

use crate::{Context, ResourceRanges, string};
use mlir_sys::{MlirContext, MlirStringRef};
use std::borrow::Cow;
use std::ffi::c_void;
use std::ops::Range;

unsafe extern "C" {
    fn monopour_shim_take_blobs(
        cx: MlirContext,
        take: extern "C" fn(MlirStringRef, MlirStringRef, *mut c_void) -> bool,
        user: *mut c_void,
    );
    fn monopour_shim_fill_blob(cx: MlirContext, key: MlirStringRef, bytes: MlirStringRef, alignment: usize);
}

/// What is before a blob's digits.
const PREFIX: &[u8] = b"\"0x";
/// The digits of a blob's alignment, before those of its bytes.
const ALIGNMENT_DIGITS: usize = 8;
/// The first bytes of what is put in place of a blob, random ones; its number follows.
const MARK: u128 = 0x93d1_4c6a_0be7_f852_2f7e_b9a4_c510_6d38;

/// The digits of what is put in place of a blob.
fn mark(number: usize) -> String {
    format!("{MARK:032x}{number:016x}")
}

/// The number of the blob that this one stands for.
fn number(blob: &[u8]) -> Option<usize> {
    let number = blob.strip_prefix(&MARK.to_be_bytes())?;
    usize::try_from(u64::from_be_bytes(number.try_into().ok()?)).ok()
}

/// Text in which each large blob is a mark with its number.
pub(crate) struct Shortened<'s> {
    text: Cow<'s, [u8]>,
    /// Where the digits of each are in the whole text.
    digits: Vec<Range<usize>>,
}

impl<'s> Shortened<'s> {
    /// Takes out the blobs among `strings` of at least `least` bytes.
    pub(crate) fn new(source: &'s [u8], mut strings: Vec<Range<usize>>, least: usize) -> Self {
        strings.retain(|place| {
            let hex = source[place.clone()].strip_prefix(PREFIX).and_then(|hex| hex.strip_suffix(b"\""));
            // The parser says what is wrong with other digits.
            hex.is_some_and(|hex| hex.len() >= ALIGNMENT_DIGITS + 2 * least && const_hex::check(hex).is_ok())
        });
        if strings.is_empty() {
            return Self { text: source.into(), digits: vec![] };
        }
        let (mut text, mut end, mut digits) = (vec![], 0, vec![]);
        for place in strings {
            let first = place.start + PREFIX.len() + ALIGNMENT_DIGITS;
            text.extend_from_slice(&source[end..first]);
            text.extend_from_slice(mark(digits.len()).as_bytes());
            end = place.end - 1;
            digits.push(first..end);
        }
        text.extend_from_slice(&source[end..]);
        Self { text: text.into(), digits }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Removes the marks from a context in which the text was parsed; where the digits of each resource are in the whole
    /// text, by its key.
    pub(crate) fn take_blobs(self, cx: Context<'_>) -> ResourceRanges {
        let mut taken = Taken { digits: self.digits, ranges: vec![] };
        if !taken.digits.is_empty() {
            let user = (&raw mut taken).cast();
            // SAFETY: defined in the shim; `take` gets `taken`, which lives during the call.
            unsafe { monopour_shim_take_blobs(cx.raw(), take, user) };
        }
        taken.ranges.sort_by(|a, b| a.0.cmp(&b.0));
        taken.ranges
    }
}

/// Puts a blob back that [`crate::Module::parse_without_blobs`] left out of the module.
pub(crate) fn restore(cx: Context<'_>, source: &[u8], key: &str, place: Range<usize>) {
    let alignment = &source[place.start - ALIGNMENT_DIGITS..place.start];
    let alignment = const_hex::decode_to_array(alignment).map_or(1, u32::from_le_bytes);
    let mut bytes = vec![0; place.len() / 2];
    const_hex::decode_to_slice(&source[place], &mut bytes).expect("invariant: the digits were checked");
    let blob = MlirStringRef { data: bytes.as_ptr().cast(), length: bytes.len() };
    // SAFETY: defined in the shim, which copies the bytes; both strings live during the call.
    unsafe { monopour_shim_fill_blob(cx.raw(), string::to_ref(key), blob, alignment.max(1) as usize) };
}

struct Taken {
    digits: Vec<Range<usize>>,
    ranges: ResourceRanges,
}

extern "C" fn take(key: MlirStringRef, blob: MlirStringRef, user: *mut c_void) -> bool {
    // SAFETY: `user` is what `take_blobs` passes down.
    let taken = unsafe { &mut *user.cast::<Taken>() };
    let place = number(string::bytes_of(blob)).and_then(|number| taken.digits.get(number));
    taken.ranges.extend(place.map(|place| (string::from_ref(key).to_owned(), place.clone())));
    place.is_some()
}
