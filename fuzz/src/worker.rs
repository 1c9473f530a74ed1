//! The child process as its parent sees it: started, fed, watched, and started again when it dies.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long one case may take. The machine may be shared.
const LIMIT: Duration = Duration::from_secs(20);
/// Cases that one child takes: upstream keeps some memory of every context.
const CASES_PER_CHILD: u32 = 20_000;

/// What became of a case.
pub enum Outcome {
    /// The text is not valid; what the diagnostics say does not matter.
    NotParsed { signature: u64 },
    /// The parser or the verifier of the input crashed or did not end.
    UpstreamCrash { how: String },
    /// Diagnostics of ours.
    Refused { signature: u64 },
    /// Bufferized, and valid.
    Bufferized { signature: u64 },
    /// A panic, or a failure without a diagnostic.
    Broken { message: String },
    /// The process died or did not end in this phase.
    Crashed { phase: String, how: String },
}

impl Outcome {
    /// Whether it is a defect of ours.
    pub fn is_finding(&self) -> bool {
        matches!(self, Self::Broken { .. } | Self::Crashed { .. })
    }
    /// One word for the name of a file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotParsed { .. } => "invalid",
            Self::UpstreamCrash { .. } => "upstream",
            Self::Refused { .. } => "refused",
            Self::Bufferized { .. } => "bufferized",
            Self::Broken { .. } => "broken",
            Self::Crashed { .. } => "crashed",
        }
    }
    /// Equal for cases that tell the same story.
    pub fn signature(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.kind().hash(&mut hasher);
        match self {
            Self::NotParsed { signature } | Self::Refused { signature } | Self::Bufferized { signature } => {
                signature.hash(&mut hasher);
            }
            Self::UpstreamCrash { how } => how.hash(&mut hasher),
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
            Self::Broken { message } => f.write_str(message),
            Self::Crashed { phase, how } => write!(f, "{how} in phase {phase}"),
            _ => f.write_str(self.kind()),
        }
    }
}

/// A running child.
pub struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    cases: u32,
}

impl Worker {
    /// Starts a child: this program with `--child`.
    pub fn start() -> Self {
        let program = std::env::current_exe().expect("a running program has a path");
        let mut child = Command::new(program)
            .arg("--child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a program starts itself");
        let input = child.stdin.take().expect("is piped");
        let output = BufReader::new(child.stdout.take().expect("is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Self { child, input, lines, cases: 0 }
    }

    /// Runs one case.
    pub fn run(&mut self, text: &str) -> Outcome {
        self.cases += 1;
        if self.cases > CASES_PER_CHILD {
            self.restart();
        }
        let sent = self.input.write_all(format!("{}\n", text.len()).as_bytes());
        let sent = sent.and_then(|()| self.input.write_all(text.as_bytes())).and_then(|()| self.input.flush());
        let mut phase = "start".to_owned();
        if sent.is_ok() {
            while let Ok(line) = self.lines.recv_timeout(LIMIT) {
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
        let how = match self.child.try_wait() {
            Ok(Some(status)) => format!("{status}"),
            _ => "no end".to_owned(),
        };
        self.restart();
        if phase == "parse" { Outcome::UpstreamCrash { how } } else { Outcome::Crashed { phase, how } }
    }

    fn restart(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        *self = Self::start();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
