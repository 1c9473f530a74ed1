//! Diagnostics: code, severity, location, message, notes and help.

use crate::{Attr, Context, Location, string};
use mlir_sys::{MlirDiagnostic, MlirDiagnosticHandlerID, MlirLogicalResult};
use std::ffi::c_void;
use std::fmt;

impl<'c> Location<'c> {
    /// The context.
    pub fn context(self) -> Context<'c> {
        Context::from_raw(c!(mlirLocationGetContext(self.raw())))
    }

    /// The unknown location.
    pub fn unknown(cx: Context<'c>) -> Self {
        melior::ir::Location::unknown(cx.to_melior()).into()
    }

    /// A position in a file (1-based).
    pub fn file(cx: Context<'c>, file: &str, line: u32, column: u32) -> Self {
        melior::ir::Location::new(cx.to_melior(), file, line as usize, column as usize).into()
    }

    /// The name of a node of a model.
    pub fn named(cx: Context<'c>, name: &str) -> Self {
        let child = Self::unknown(cx);
        Self::from_raw(c!(mlirLocationNameGet(cx.raw(), string::to_ref(name), child.raw())))
    }

    /// The name, if this is, or is fused of, a named location.
    pub fn name(&self) -> Option<String> {
        if c!(mlirLocationIsAName(self.raw())) {
            let name = c!(mlirLocationNameGetName(self.raw()));
            return Some(string::from_ref(c!(mlirIdentifierStr(name))).to_owned());
        }
        if c!(mlirLocationIsAFused(self.raw())) {
            return self.fused().into_iter().find_map(|l| l.name());
        }
        None
    }

    /// File, line and column if this is, or wraps, a file location.
    pub fn position(&self) -> Option<(String, u32, u32)> {
        if c!(mlirLocationIsAFileLineColRange(self.raw())) {
            let file = c!(mlirLocationFileLineColRangeGetFilename(self.raw()));
            let name = string::from_ref(c!(mlirIdentifierStr(file))).to_owned();
            let line = c!(mlirLocationFileLineColRangeGetStartLine(self.raw()));
            let column = c!(mlirLocationFileLineColRangeGetStartColumn(self.raw()));
            return Some((name, line as u32, column as u32));
        }
        if c!(mlirLocationIsAName(self.raw())) {
            return Self::from_raw(c!(mlirLocationNameGetChildLoc(self.raw()))).position();
        }
        if c!(mlirLocationIsACallSite(self.raw())) {
            return Self::from_raw(c!(mlirLocationCallSiteGetCallee(self.raw()))).position();
        }
        if c!(mlirLocationIsAFused(self.raw())) {
            return self.fused().into_iter().find_map(|l| l.position());
        }
        None
    }

    fn fused(&self) -> Vec<Location<'c>> {
        let n = c!(mlirLocationFusedGetNumLocations(self.raw())) as usize;
        let mut raw = vec![self.raw(); n];
        c!(mlirLocationFusedGetLocations(self.raw(), raw.as_mut_ptr()));
        raw.into_iter().map(Location::from_raw).collect()
    }

    /// The location as an attribute (`loc(...)`).
    pub fn to_attr(self) -> Attr<'c> {
        Attr::from_raw(c!(mlirLocationGetAttribute(self.raw())))
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position() {
            Some((file, line, column)) => write!(f, "{file}:{line}:{column}"),
            None => f.write_str(self.name().as_deref().unwrap_or("<unknown location>")),
        }
    }
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Severity {
    /// The input cannot be compiled.
    Error,
    /// It compiles, but probably not as meant.
    Warning,
    /// An explanation of a decision.
    Remark,
    /// Attached to another diagnostic.
    Note,
}

/// One message with a stable code, a location, notes and a hint.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Stable code such as `B0104`; `I0001` for what MLIR's own parser and verifier report.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// `file:line:column`, or empty when the IR has none.
    pub location: String,
    /// Lower case, no full stop, with the user's names.
    pub message: String,
    /// Further facts, each with its own location in the text.
    pub notes: Vec<String>,
    /// A remedy for the user, if known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a location.
    pub fn error(code: &'static str, location: Location, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, location, message)
    }

    /// A remark at a location.
    pub fn remark(code: &'static str, location: Location, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Remark, location, message)
    }

    /// An error that concerns no place in the IR (a file, an option).
    pub fn global(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            location: String::new(),
            message: message.into(),
            notes: vec![],
            help: None,
        }
    }

    fn new(code: &'static str, severity: Severity, location: Location, message: impl Into<String>) -> Self {
        let location = location.position().map(|(f, l, c)| format!("{f}:{l}:{c}")).unwrap_or_default();
        Self { code, severity, location, message: message.into(), notes: vec![], help: None }
    }

    /// Adds a hint.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Location, message and notes on one line, without code and hint: for logs.
    pub fn one_line(&self) -> impl fmt::Display {
        OneLine(self)
    }

    /// Adds a note.
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Remark => "remark",
            Severity::Note => "note",
        };
        write!(f, "{severity}[{}]: {}", self.code, self.message)?;
        if !self.location.is_empty() {
            write!(f, "\n  --> {}", self.location)?;
        }
        for note in &self.notes {
            write!(f, "\n  note: {note}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// A diagnostic without its code and hint, on one line.
struct OneLine<'a>(&'a Diagnostic);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { location, message, notes, .. } = self.0;
        let location = if location.is_empty() { "<unknown location>" } else { location };
        write!(f, "{location}: {message}")?;
        notes.iter().enumerate().try_for_each(|(i, note)| write!(f, "{}{note}", if i == 0 { "; " } else { ", " }))
    }
}

/// The diagnostics of a phase: errors if it fails, remarks if it succeeds.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// A single error.
    pub fn one(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }

    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::one(diagnostic)
    }
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

/// Collects MLIR's own diagnostics while it is attached.
pub(crate) struct Handler<'c> {
    cx: Context<'c>,
    id: MlirDiagnosticHandlerID,
    #[allow(clippy::box_collection, reason = "MLIR holds the vector's address while this handler moves")]
    collected: Box<Vec<Diagnostic>>,
}

impl<'c> Handler<'c> {
    pub(crate) fn attach(cx: Context<'c>) -> Self {
        let mut collected: Box<Vec<Diagnostic>> = Box::default();
        let user: *mut Vec<Diagnostic> = &raw mut *collected;
        let id = c!(mlirContextAttachDiagnosticHandler(cx.raw(), Some(on_diagnostic), user.cast(), None));
        Self { cx, id, collected }
    }

    pub(crate) fn finish(self) -> Diagnostics {
        c!(mlirContextDetachDiagnosticHandler(self.cx.raw(), self.id));
        Diagnostics(*self.collected)
    }
}

extern "C" fn on_diagnostic(diagnostic: MlirDiagnostic, user: *mut c_void) -> MlirLogicalResult {
    // SAFETY: `user` is the vector that `attach` boxed; it lives until `finish` detaches this handler.
    let out = unsafe { &mut *user.cast::<Vec<Diagnostic>>() };
    let location = Location::from_raw(c!(mlirDiagnosticGetLocation(diagnostic)));
    let message = string::collect(|cb, user| c!(mlirDiagnosticPrint(diagnostic, cb, user)));
    let severity = match c!(mlirDiagnosticGetSeverity(diagnostic)) {
        mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticError => Severity::Error,
        mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticWarning => Severity::Warning,
        mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticRemark => Severity::Remark,
        _ => Severity::Note,
    };
    let mut mine = Diagnostic::new("I0001", severity, location, message);
    for i in 0..c!(mlirDiagnosticGetNumNotes(diagnostic)) {
        let note = c!(mlirDiagnosticGetNote(diagnostic, i));
        let place = Location::from_raw(c!(mlirDiagnosticGetLocation(note)));
        let text = string::collect(|cb, user| c!(mlirDiagnosticPrint(note, cb, user)));
        mine.notes.push(format!("{text} at {place}"));
    }
    out.push(mine);
    MlirLogicalResult { value: 1 }
}
