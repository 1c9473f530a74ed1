//! Both ends of the pipe between this program and its child, which runs the cases.
//!
//! A case is `LENGTH`, a newline, the bytes; the answer is lines, of which `phase NAME` precedes each step.

use monopour_testkit::random::Rng;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A stack as large as the compiler's own: parsers recurse.
const STACK_BYTES: usize = 256 << 20;

/// A running child.
pub struct Link {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Link {
    /// Starts this program with these arguments.
    pub fn start(args: &[&OsStr]) -> Self {
        let program = std::env::current_exe().expect("a running program has a path");
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a program starts itself");
        let input = child.stdin.take().expect("is piped");
        let output = BufReader::new(child.stdout.take().expect("is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Self { child, input, lines }
    }

    /// Sends a case; false if the child is dead.
    pub fn send(&mut self, case: &[u8]) -> bool {
        let sent = self.input.write_all(format!("{}\n", case.len()).as_bytes());
        sent.and_then(|()| self.input.write_all(case)).and_then(|()| self.input.flush()).is_ok()
    }

    /// The next line of the answer.
    ///
    /// # Errors
    /// When none came in time, or the child is dead.
    pub fn line(&self, limit: Duration) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(limit)
    }

    /// How the child ended; it closes its output a moment before it ends.
    pub fn status(&mut self) -> Option<ExitStatus> {
        (0..100).find_map(|_| {
            let status = self.child.try_wait().ok().flatten();
            if status.is_none() {
                std::thread::sleep(Duration::from_millis(10));
            }
            status
        })
    }

    /// Peak resident bytes of the child; 0 where the system does not tell.
    pub fn peak_bytes(&self) -> u64 {
        status_bytes(&self.child.id().to_string(), "VmHWM:")
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A size in a process's status.
pub fn status_bytes(process: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}

/// The child: answers each case by `run` until the input ends.
pub fn serve(run: impl Fn(&[u8]) -> String + Send + 'static) -> ExitCode {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || serve_cases(&run));
    let ended = thread.is_ok_and(|thread| thread.join().is_ok());
    if ended { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn serve_cases(run: &dyn Fn(&[u8]) -> String) {
    // A report of a panic needs its location.
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload().downcast_ref::<String>().cloned();
        let message = message.or_else(|| info.payload().downcast_ref::<&str>().map(|&s| s.to_owned()));
        say(&format!("broken {place}: {}", message.unwrap_or_default().replace('\n', " ")));
    }));
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    while input.read_line(&mut line).is_ok_and(|n| n > 0) {
        let mut case = vec![0; line.trim().parse().unwrap_or(0)];
        if input.read_exact(&mut case).is_err() {
            return;
        }
        line.clear();
        // The hook has reported a panic.
        if let Ok(answer) = catch_unwind(AssertUnwindSafe(|| run(&case))) {
            say(&answer);
        }
    }
}

/// Writes a line of the answer.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A hash of a value.
pub fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// One of a list's positions.
pub fn position(rng: &mut Rng, count: usize) -> usize {
    rng.below(count as u64) as usize
}
