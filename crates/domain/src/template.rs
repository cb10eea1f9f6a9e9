//! Templates: texts with placeholders, such as `Hello {{ subscriber.firstName }}`.
//!
//! The language is Jinja's. A template knows `subscriber`, `payload`, `context` (by type: `id` and
//! `data`) and `workflow`. An undefined value renders as an empty text.
//!
//! Templates are as trusted as the code of workflows. The scan and the engine bound instructions
//! and sizes of values. Variables need no trust.

mod bounds;
mod budget;
mod compiled;
mod cursor;
mod edit;
mod engine;
mod expression;
mod filters;
mod growth;
mod lexer;
mod names;
mod places;
mod problem;
mod scan;
mod signatures;

use std::collections::HashSet;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};

use minijinja::value::{Serde, Value};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::convert::text_conversions;
use crate::error::{Invalid, Reason, Unit};
use crate::json::Object;
use compiled::{Compiled, Prepared};
use engine::{ENGINE, Output};
use problem::Problem;
use scan::Scan;

/// Text with placeholders.
///
/// Deserialization does not check a template, so that workflows are read quickly. Saving a workflow
/// [checks](Template::check) every template in it. The first rendering compiles the template, and
/// clones share its compiled form.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template {
    text: String,
    #[serde(skip)]
    prepared: Prepared,
}

/// Values of the placeholders.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Variables(Value);

/// Format of the rendered text.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Values are inserted unchanged.
    Plain,
    /// Values are inserted with HTML escaped.
    Html,
}

/// Error of a rendering: the template ran too long, or failed.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RenderError(String);

impl Template {
    /// Returns `raw` as a template. Refuses a text that does not compile.
    pub fn new(raw: impl Into<String>) -> Result<Self, Invalid> {
        let template = Self::unchecked(raw.into());
        template.check()?;
        Ok(template)
    }

    fn unchecked(text: String) -> Self {
        Self { text, prepared: Prepared::default() }
    }

    /// Refuses a template that is too long, does not compile, or uses unknown names.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.check_for(None)
    }

    /// Checks the template for a workflow whose payload has the JSON schema `payload`.
    pub(crate) fn check_for(&self, payload: Option<&Object>) -> Result<(), Invalid> {
        let scan = self.scan()?;
        let unknown = scan.uses.iter().find_map(|used| used.check(payload).err());
        if let Some(problem) = unknown {
            return Err(self.invalid(&problem));
        }
        let edited = scan.edits.applied(&self.text);
        let compiled = ENGINE.template_from_named_str(Format::Plain.name(), &edited);
        compiled.map(drop).map_err(|error| {
            let problem = RenderError::from(error).0;
            Invalid::new("template", Reason::Template { problem })
        })
    }

    fn scan(&self) -> Result<Scan<'_>, Invalid> {
        if self.text.len() > Self::MAX_LEN {
            let reason = Reason::TooLong { max: Self::MAX_LEN, unit: Unit::Bytes };
            return Err(Invalid::new("template", reason));
        }
        Scan::of(&self.text).map_err(|problem| self.invalid(&problem))
    }

    fn invalid(&self, problem: &Problem) -> Invalid {
        let problem = problem.in_line_of(&self.text);
        Invalid::new("template", Reason::Template { problem })
    }

    /// Returns the memory of the compiled template, in bytes: an upper bound for one format.
    pub(crate) fn prepared_weight(&self) -> usize {
        Compiled::weight(self.text.len())
    }

    /// Returns the text of the template.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the names of the placeholders, as in `payload.order.id`.
    #[doc(hidden)]
    pub fn variables(&self) -> HashSet<String> {
        let Ok(scan) = self.scan() else { return HashSet::new() };
        let edited = scan.edits.applied(&self.text);
        let compiled = ENGINE.template_from_named_str(Format::Plain.name(), &edited);
        let mut names = compiled.map(|one| one.undeclared_variables(true)).unwrap_or_default();
        names.retain(|name| !name.starts_with(edit::RESERVED));
        names
    }

    /// Returns the variables that the template does not set: their first name, and the one behind it.
    pub(crate) fn uses(&self) -> Vec<(String, Option<String>)> {
        let uses = self.scan().map(|scan| scan.uses).unwrap_or_default();
        let names = uses.into_iter().map(|one| (one.root, one.path.first().copied()));
        names.map(|(root, name)| (root.to_owned(), name.map(str::to_owned))).collect()
    }

    /// Renders the template with `variables`: at most 1 MiB.
    #[doc(hidden)]
    pub fn render(&self, format: Format, variables: &Variables) -> Result<String, RenderError> {
        guarded(|| self.rendered(format, variables))
    }

    fn rendered(&self, format: Format, variables: &Variables) -> Result<String, RenderError> {
        let compiled = self.prepared.get_or_compile(format, || self.compile(format))?;
        let mut output = Output::default();
        match compiled.template()?.render_captured_to(variables.0.clone(), &mut output) {
            Ok(_) => Ok(output.into_text()),
            Err(_) if output.full => {
                Err(RenderError(format!("the text is longer than {} bytes", Self::MAX_OUTPUT)))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn compile(&self, format: Format) -> Result<Compiled, RenderError> {
        let scan = self.scan().map_err(|invalid| RenderError(invalid.reason.to_string()))?;
        Ok(Compiled::new(format, scan.edits.applied(&self.text))?)
    }
}

impl Variables {
    /// Returns the roots of `known` as variables.
    pub(crate) fn of(known: Value) -> Self {
        Self(known)
    }

    /// Returns `variables` as serialized.
    pub fn new(variables: impl Serialize) -> Self {
        Self(Value::from(Serde(variables)))
    }
}

text_conversions!(Template);

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Template {}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.text).finish()
    }
}

// Turns a panic of the engine into an error: one template must not stop the delivery of others.
fn guarded(render: impl FnOnce() -> Result<String, RenderError>) -> Result<String, RenderError> {
    panic::catch_unwind(AssertUnwindSafe(render))
        .unwrap_or_else(|_| Err(RenderError("the template engine panicked".into())))
}

impl From<minijinja::Error> for RenderError {
    fn from(error: minijinja::Error) -> Self {
        let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
        let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
        Self(format!("{}{detail}{line}", error.kind()))
    }
}

#[cfg(test)]
mod tests;
