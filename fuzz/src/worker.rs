//! The child process: started, fed, watched, and restarted when it dies.

use crate::link::Link;
use std::ffi::OsStr;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Longest time of one case. The machine may be shared.
const LIMIT: Duration = Duration::from_secs(20);
/// Cases per child: upstream keeps some memory of every context.
const CASES_PER_CHILD: usize = 2_000;

/// The outcome of a case.
pub enum Outcome {
    /// The text is invalid; its diagnostics are ignored.
    NotParsed { signature: u64 },
    /// The parser or the verifier of the input crashed or did not end.
    UpstreamCrash { how: String },
    /// The process died, but only after earlier invalid cases: the parser corrupted memory.
    UpstreamHaunted { how: String },
    /// Diagnostics of ours.
    Refused { signature: u64 },
    /// Bufferized, and valid.
    Bufferized { signature: u64 },
    /// A panic, or a failure without a diagnostic.
    Broken { message: String },
    /// The process died or did not end in this phase.
    Crashed { phase: String, how: String },
    /// The process died because of an earlier valid case; this one alone is fine.
    Haunted { how: String },
}

impl Outcome {
    /// Whether it is a defect of ours.
    pub fn is_finding(&self) -> bool {
        matches!(self, Self::Broken { .. } | Self::Crashed { .. } | Self::Haunted { .. })
    }
    /// Whether the child must be restarted.
    pub fn has_crashed(&self) -> bool {
        matches!(
            self,
            Self::UpstreamCrash { .. } | Self::UpstreamHaunted { .. } | Self::Crashed { .. } | Self::Haunted { .. }
        )
    }
    /// One word for the name of a file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotParsed { .. } => "invalid",
            Self::UpstreamCrash { .. } | Self::UpstreamHaunted { .. } => "upstream",
            Self::Refused { .. } => "refused",
            Self::Bufferized { .. } => "bufferized",
            Self::Broken { .. } => "broken",
            Self::Crashed { .. } => "crashed",
            Self::Haunted { .. } => "haunted",
        }
    }
    /// Equal for cases of the same kind.
    pub fn signature(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.kind().hash(&mut hasher);
        match self {
            Self::NotParsed { signature } | Self::Refused { signature } | Self::Bufferized { signature } => {
                signature.hash(&mut hasher);
            }
            Self::UpstreamCrash { how } | Self::Haunted { how } => how.hash(&mut hasher),
            Self::UpstreamHaunted { how } => ("haunted", how).hash(&mut hasher),
            // Numbers in a message differ between cases of one cause.
            Self::Broken { message } => message.replace(|c: char| c.is_ascii_digit(), "").hash(&mut hasher),
            Self::Crashed { phase, how } => (phase, how).hash(&mut hasher),
        }
        hasher.finish()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpstreamCrash { how } => write!(f, "{how} while parsing"),
            Self::UpstreamHaunted { how } => write!(f, "{how}, by text before that is not valid"),
            Self::Broken { message } => f.write_str(message),
            Self::Crashed { phase, how } => write!(f, "{how} in phase {phase}"),
            Self::Haunted { how } => write!(f, "{how}, by one of the cases before"),
            _ => f.write_str(self.kind()),
        }
    }
}

/// A running child.
pub struct Worker {
    link: Link,
    /// The cases of this child, oldest first.
    cases: Vec<String>,
    /// Which of them are valid.
    valid: Vec<bool>,
}

impl Worker {
    /// Starts a child: this program with `--child`.
    pub fn start() -> Self {
        Self { link: Link::start(&[OsStr::new("--child")]), cases: vec![], valid: vec![] }
    }

    /// The cases that the child was given so far, this one last.
    pub fn cases(&self) -> &[String] {
        &self.cases
    }

    /// Runs one case. One that crashes runs again, in a fresh child.
    pub fn run(&mut self, text: &str) -> Outcome {
        if self.cases.len() > CASES_PER_CHILD {
            self.restart();
        }
        let first = self.run_once(text);
        let (Outcome::UpstreamCrash { how } | Outcome::Crashed { how, .. }) = &first else { return first };
        let how = how.clone();
        let (cases, valid) = (std::mem::take(&mut self.cases), std::mem::take(&mut self.valid));
        let is_alone = cases.len() == 1 || self.crashes_after(&[], text);
        let valid_before: Vec<&String> = cases.iter().zip(&valid).filter(|(_, v)| **v).map(|(case, _)| case).collect();
        let outcome = match is_alone {
            true => first,
            false if self.crashes_after(&valid_before, text) => Outcome::Haunted { how },
            false => Outcome::UpstreamHaunted { how },
        };
        self.restart();
        self.cases = cases;
        outcome
    }

    /// Whether a fresh child crashes in one of these cases, the last one included.
    fn crashes_after(&mut self, before: &[&String], last: &str) -> bool {
        self.restart();
        let mut all = before.iter().map(|case| case.as_str()).chain([last]);
        all.any(|case| matches!(self.run_once(case), Outcome::UpstreamCrash { .. } | Outcome::Crashed { .. }))
    }

    fn run_once(&mut self, text: &str) -> Outcome {
        let outcome = self.answer(text);
        self.valid.push(!matches!(outcome, Outcome::NotParsed { .. }));
        outcome
    }

    fn answer(&mut self, text: &str) -> Outcome {
        self.cases.push(text.to_owned());
        let mut phase = "start".to_owned();
        if self.link.send(text.as_bytes()) {
            while let Ok(line) = self.link.line(LIMIT) {
                let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
                let signature = rest.parse().unwrap_or(0);
                match word {
                    "phase" => phase = rest.to_owned(),
                    "invalid" => return Outcome::NotParsed { signature },
                    "refused" => return Outcome::Refused { signature },
                    "bufferized" => return Outcome::Bufferized { signature },
                    "broken" => return Outcome::Broken { message: rest.to_owned() },
                    _ => {}
                }
            }
        }
        let how = self.link.status().map_or_else(|| "no end".to_owned(), |status| status.to_string());
        if phase == "parse" { Outcome::UpstreamCrash { how } } else { Outcome::Crashed { phase, how } }
    }

    /// Starts a fresh child.
    pub fn restart(&mut self) {
        *self = Self::start();
    }
}
