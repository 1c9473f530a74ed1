//! Kernels chosen by measurement, on the device that will run them.
//!
//! ```text
//! compile    each dispatch by the cost model: candidate 0
//! round 1    each dispatch as its candidate 1; both programs run in turns, each kernel timed by the device
//! round 2    ..
//! compile    each dispatch as its fastest candidate
//! ```
//! A round measures all dispatches at once, so that a program takes as many compilations as the dispatch with the most candidates
//! has, not their product: a kernel's time hardly depends on the others'. A candidate is taken where it is clearly faster
//! (in at most 0.95 of the time) and computes the same; all are dropped where the program as a whole is not faster.
//! Choices are by structure ([`monopour_frontend::tuning`]): with those of an earlier run nothing is measured again, and the
//! same choices give the same bytes.
//!
//! [`saved`] and [`save`] keep the choices of a device in the user's folder of caches.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use monopour_program::{GpuDescription, Signature, cache, write_atomically};
use monopour_runtime::{Device, HostTensor, Options, Session};
use tracing::{debug, warn};

use crate::{Compiled, Diagnostics, Error};

pub use monopour_frontend::tuning::{Choices, Tunable, Tuning};

/// The part of its candidate's time below which a kernel is taken for faster: less is noise.
const CLEARLY: f64 = 0.95;
/// Runs of each program in a round, after those that warm up.
const RUNS: usize = 7;
const WARM_UP: usize = 2;

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuned {
    /// The choices for the program's structures, those of before included.
    pub choices: Choices,
    /// The structures that were measured.
    pub kernels: Vec<TunedKernel>,
    /// Whether all candidates were measured: there was time, and the device has timestamps.
    pub is_complete: bool,
}

/// A structure that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct TunedKernel {
    /// The source of the first dispatch of the structure.
    pub location: String,
    /// The kernel that was chosen.
    pub choice: String,
    /// Its time over that of the cost model's kernel; 1 for that one.
    pub ratio: f64,
}

/// Makes the inputs of a program.
pub type Inputs<'a> = dyn Fn(&Signature) -> Result<Vec<HostTensor>, Error> + 'a;

/// Chooses the kernels of a program. `compile` compiles it with these choices for `device`, a GPU; `inputs` makes its inputs; no
/// round begins after `limit`; `begins` is called as each does, with its number and how many there are. On a device without
/// timestamps, and on a CPU, the cost model's kernels stay.
///
/// # Errors
/// Those of a compilation, of making the inputs, and of a run.
pub fn tune(
    (device, limit): (&Device, Duration),
    known: &Choices,
    (compile, inputs): (&dyn Fn(Tuning) -> Result<Compiled, Diagnostics>, &Inputs<'_>),
    begins: &dyn Fn(usize, usize),
) -> Result<Tuned, Error> {
    let Some(description) = device.description().cloned() else {
        return Ok(Tuned { choices: known.clone(), ..Tuned::default() });
    };
    let start = Instant::now();
    let compile =
        |choices: &Choices| compile(Tuning { device: description.clone(), choices: choices.clone(), measures: true });
    let first = compile(known)?;
    let is_open = |of: &&Tunable| of.candidates.len() > 1 && !known.contains_key(&of.key);
    let open: Vec<Tunable> = first.report.tunable.iter().filter(is_open).cloned().collect();
    let mut tuned = Tuned { choices: known.clone(), is_complete: true, ..Tuned::default() };
    if open.is_empty() {
        return Ok(tuned);
    }
    let given = inputs(&first.program.signature)?;
    let mut rounds = Rounds { device, compile: &compile, open: &open, base: Timed::load(device, first)?, given };
    let (best, is_complete) = rounds.best(known, &|| start.elapsed() > limit, begins)?;
    let ratios = rounds.confirmed(known, &best)?;
    tuned.is_complete = is_complete;
    for of in &open {
        let known = ratios.get(of.key.as_str()).copied();
        let text =
            best.get(of.key.as_str()).filter(|_| known.is_some()).map_or(of.candidates[0].as_str(), |best| best.1);
        tuned.choices.insert(of.key.clone(), text.to_owned());
        let (location, choice) = (of.location.clone(), text.to_owned());
        tuned.kernels.push(TunedKernel { location, choice, ratio: known.unwrap_or(1.0) });
    }
    Ok(tuned)
}

/// The fastest candidate by structure: its time over that of the cost model's, and its text.
type Best<'a> = HashMap<&'a str, (f64, &'a str)>;

/// The rounds of a program.
struct Rounds<'a> {
    device: &'a Device,
    compile: &'a dyn Fn(&Choices) -> Result<Compiled, Diagnostics>,
    /// The structures that are measured.
    open: &'a [Tunable],
    /// The program by the cost model.
    base: Timed,
    given: Vec<HostTensor>,
}

impl<'a> Rounds<'a> {
    /// The best candidates, each measured once, and whether all were.
    fn best(
        &mut self,
        known: &Choices,
        is_over: &dyn Fn() -> bool,
        begins: &dyn Fn(usize, usize),
    ) -> Result<(Best<'a>, bool), Error> {
        let (open, mut best, mut is_complete) = (self.open, Best::new(), true);
        let rounds = open.iter().map(|of| of.candidates.len()).max().unwrap_or(1);
        for round in 1..rounds {
            if is_over() {
                return Ok((best, false));
            }
            begins(round, rounds - 1);
            let tried = open.iter().filter_map(|of| Some((of.key.as_str(), of.candidates.get(round)?.as_str())));
            let tried: Vec<(&str, &str)> = tried.collect();
            let Some([expected, found]) = self.race(known, &tried)? else {
                warn!(target: "tune", "round {round}: other values than by the cost model's kernels; not taken");
                continue;
            };
            for (key, text) in tried {
                // Without timestamps, or in a branch that is not taken, nothing is known.
                let (Some(expected), Some(found)) = (expected.get(key), found.get(key)) else {
                    is_complete = false;
                    continue;
                };
                let ratio = found / expected;
                debug!(target: "tune", "{key}: {ratio:.2} by {text}");
                if ratio < CLEARLY && best.get(key).is_none_or(|(least, _)| ratio < *least) {
                    best.insert(key, (ratio, text));
                }
            }
        }
        Ok((best, is_complete))
    }

    /// The ratios of those that are clearly faster once more: of several candidates the one that was lucky looks best. None where the
    /// program as a whole is not faster.
    fn confirmed(&mut self, known: &Choices, best: &Best<'a>) -> Result<HashMap<&'a str, f64>, Error> {
        let taken: Vec<(&str, &str)> = best.iter().map(|(key, (_, text))| (*key, *text)).collect();
        if taken.is_empty() {
            return Ok(HashMap::new());
        }
        let Some([before, after]) = self.race(known, &taken)? else { return Ok(HashMap::new()) };
        let sum = |times: &HashMap<String, f64>| times.values().sum::<f64>();
        debug!(target: "tune", "the program: {:.2}", sum(&after) / sum(&before));
        if sum(&after) >= sum(&before) {
            return Ok(HashMap::new());
        }
        let ratio = |key: &'a str| Some((key, after.get(key)? / before.get(key)?));
        Ok(best.keys().filter_map(|key| ratio(key)).filter(|(_, ratio)| *ratio < CLEARLY).collect())
    }

    /// The times of the program by the cost model and by these kernels, run in turns; `None` if the values differ.
    fn race(&mut self, known: &Choices, tried: &[(&str, &str)]) -> Result<Option<[HashMap<String, f64>; 2]>, Error> {
        let mut choices = known.clone();
        choices.extend(tried.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())));
        let mut other = Timed::load(self.device, (self.compile)(&choices)?)?;
        let times = race([&mut self.base, &mut other], &self.given)?;
        Ok(agree(&self.base.results, &other.results).then_some(times))
    }
}

/// A loaded program, and the structures of its kernels by name.
struct Timed {
    session: Session,
    keys: HashMap<String, String>,
    results: Vec<HostTensor>,
}

impl Timed {
    fn load(device: &Device, Compiled { program, report }: Compiled) -> Result<Self, Error> {
        let options = Options { trace: true, ..Options::default() };
        let session = Session::load(device, Arc::new(program), &options)?;
        Ok(Self { session, keys: report.measured.into_iter().collect(), results: vec![] })
    }

    /// Microseconds of each structure's kernels in one run.
    fn run(&mut self, given: &[HostTensor]) -> Result<HashMap<String, f64>, Error> {
        let inputs = self.session.upload(given)?;
        self.session.drain_trace();
        let results = self.session.execute(&inputs)?;
        self.results = self.session.readback(&results)?;
        let mut times = HashMap::new();
        for span in self.session.drain_trace().into_iter().filter(|span| span.track == "device") {
            if let Some(key) = self.keys.get(&span.name) {
                *times.entry(key.clone()).or_default() += span.duration_us;
            }
        }
        Ok(times)
    }
}

/// Runs two programs in turns, so that what else the machine does meets both alike; returns the least times by structure, which it
/// disturbs the least.
fn race(both: [&mut Timed; 2], given: &[HostTensor]) -> Result<[HashMap<String, f64>; 2], Error> {
    let mut least: [HashMap<String, f64>; 2] = Default::default();
    let [one, other] = both;
    for run in 0..WARM_UP + RUNS {
        for (of, least) in [&mut *one, &mut *other].into_iter().zip(&mut least) {
            for (key, time) in of.run(given)?.into_iter().filter(|_| run >= WARM_UP) {
                let known = least.entry(key).or_insert(time);
                *known = known.min(time);
            }
        }
    }
    Ok(least)
}

/// Whether results differ by no more than another order of sums explains.
fn agree(expected: &[HostTensor], found: &[HostTensor]) -> bool {
    expected.len() == found.len()
        && expected.iter().zip(found).all(|(expected, found)| {
            let (expected, found) = (expected.to_f64(), found.to_f64());
            let scale =
                expected.iter().filter(|value| value.is_finite()).fold(0.0, |most: f64, value| most.max(value.abs()));
            let is_close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-2 * scale || (a.is_nan() && b.is_nan());
            expected.len() == found.len() && expected.iter().zip(&found).all(is_close)
        })
}

/// The file of a device's choices; `None` if the user has no folder of caches.
fn file(device: &GpuDescription) -> Option<PathBuf> {
    let described = serde_json::to_vec(&(crate::VERSION, device)).ok()?;
    Some(cache::folder()?.join("kernels").join(format!("{}.json", &blake3::hash(&described).to_hex()[..32])))
}

/// The choices that were saved for a device: none where there are none, or they cannot be read.
pub fn saved(device: &GpuDescription) -> Choices {
    let text = file(device).and_then(|file| std::fs::read(file).ok());
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Saves choices for a device, beside those that another process saved meanwhile. Nothing is saved where nothing can be: the next run measures
/// again.
pub fn save(device: &GpuDescription, choices: &Choices) {
    let Some(file) = file(device) else { return };
    let mut all = saved(device);
    all.extend(choices.clone());
    let written = file
        .parent()
        .map(std::fs::create_dir_all)
        .transpose()
        .is_ok_and(|_| serde_json::to_vec_pretty(&all).is_ok_and(|text| write_atomically(&file, &text).is_ok()));
    if !written {
        warn!(target: "tune", "the choices could not be saved in {}", file.display());
    }
}
