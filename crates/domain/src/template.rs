//! Templates: texts with placeholders, such as `Hello {{ subscriber.firstName }}`.
//!
//! The language is Jinja's. A template knows `subscriber`, `payload`, `context` (by type: `id` and
//! `data`) and `workflow`. What is not known renders as nothing.
//!
//! A template is written by whoever writes workflows, and is trusted as code is: its instructions
//! are counted and bounded, the texts that it builds up on the way are not. What it is filled with
//! need not be trusted.

mod budget;
mod cursor;
mod edit;
mod engine;
mod expression;
mod filters;
mod growth;
mod lexer;
mod names;
mod problem;
mod scan;

use std::collections::HashSet;

use minijinja::value::{Serde, Value};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::convert::text_conversions;
use crate::error::{Invalid, Reason, Unit};
use crate::json::Object;
use engine::{ENGINE, MAX_OUTPUT, Output, PLAIN};
use problem::Problem;
use scan::Scan;

/// A text with placeholders.
///
/// One that is read from JSON is taken as it is, so that reading a workflow costs nothing more; a
/// workflow that is saved [checks](Template::check) every template in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(String);

/// What the placeholders stand for.
#[derive(Clone, Debug)]
pub struct Variables(Value);

/// How text is put in place of placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As it is.
    Plain,
    /// With what means something in HTML escaped.
    Html,
}

/// A template could not be rendered: it ran too long, or did something impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RenderError(String);

impl Template {
    /// The longest template, in bytes.
    pub const MAX_LEN: usize = 256 * 1024;

    /// Takes `raw` as a template, if it compiles.
    pub fn new(raw: impl Into<String>) -> Result<Self, Invalid> {
        let template = Self(raw.into());
        template.check()?;
        Ok(template)
    }

    /// Refuses a template that is too long or does not compile, or that names what there is not.
    pub fn check(&self) -> Result<(), Invalid> {
        self.check_for(None)
    }

    /// The same, for a workflow whose payload has the JSON schema `payload`.
    pub(crate) fn check_for(&self, payload: Option<&Object>) -> Result<(), Invalid> {
        let scan = self.scan()?;
        let unknown = scan.uses.iter().find_map(|used| used.check(payload).err());
        if let Some(problem) = unknown {
            return Err(self.invalid(&problem));
        }
        let edited = scan.edits.applied(&self.0);
        ENGINE.template_from_named_str(PLAIN, &edited).map(drop).map_err(|error| {
            let problem = RenderError::from(error).0;
            Invalid::new("template", Reason::Template { problem })
        })
    }

    fn scan(&self) -> Result<Scan<'_>, Invalid> {
        if self.0.len() > Self::MAX_LEN {
            let reason = Reason::TooLong { max: Self::MAX_LEN, unit: Unit::Bytes };
            return Err(Invalid::new("template", reason));
        }
        Scan::of(&self.0).map_err(|problem| self.invalid(&problem))
    }

    fn invalid(&self, problem: &Problem) -> Invalid {
        let problem = problem.in_line_of(&self.0);
        Invalid::new("template", Reason::Template { problem })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of the placeholders, as in `payload.order.id`.
    pub fn variables(&self) -> HashSet<String> {
        let Ok(scan) = self.scan() else { return HashSet::new() };
        let edited = scan.edits.applied(&self.0);
        let compiled = ENGINE.template_from_named_str(PLAIN, &edited);
        let mut names = compiled.map(|one| one.undeclared_variables(true)).unwrap_or_default();
        names.retain(|name| !name.starts_with(edit::RESERVED));
        names
    }

    /// The text, with `variables` in the place of the placeholders: at most 1 MiB.
    pub fn render(&self, format: Format, variables: &Variables) -> Result<String, RenderError> {
        let name = match format {
            Format::Plain => engine::PLAIN,
            Format::Html => engine::HTML,
        };
        let scan = self.scan().map_err(|invalid| RenderError(invalid.reason.to_string()))?;
        let edited = scan.edits.applied(&self.0);
        let mut output = Output::default();
        let template = ENGINE.template_from_named_str(name, &edited)?;
        match template.render_captured_to(variables.0.clone(), &mut output) {
            Ok(_) => Ok(output.into_text()),
            Err(_) if output.full => {
                Err(RenderError(format!("the text is longer than {MAX_OUTPUT} bytes")))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Variables {
    /// Takes whatever can be serialized as variables.
    pub fn new(variables: impl Serialize) -> Self {
        Self(Value::from(Serde(variables)))
    }
}

text_conversions!(Template);

impl From<minijinja::Error> for RenderError {
    fn from(error: minijinja::Error) -> Self {
        let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
        let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
        Self(format!("{}{detail}{line}", error.kind()))
    }
}

#[cfg(test)]
mod tests;
