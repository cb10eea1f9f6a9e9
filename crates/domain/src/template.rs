//! Templates: texts with placeholders, such as `Hello {{ subscriber.firstName }}`.
//!
//! The language is Jinja's. A template knows `subscriber`, `payload`, `context` (by type: `id` and
//! `data`) and `workflow`, and `t` with the texts of the workflow's translations: `t.cart.title`,
//! `t("cart.items", count=3)`. [`MissingVariables`] says what a value that is absent or `null` renders as.
//!
//! `date` and `time` show a moment in the time zone of the subscriber, or else in that of the engine:
//! `{{ payload.at | date("%d.%m.%Y") }}`. Formats are those of `strftime`.
//!
//! Templates are as trusted as the code of workflows. The scan and the engine bound instructions
//! and sizes of values. Variables need no trust: their HTML is escaped in e-mails, and the markup of a
//! chat service is for its provider to escape.

mod absent;
mod bounds;
mod budget;
mod compiled;
mod cost;
mod cursor;
mod edit;
mod engine;
mod expression;
mod filters;
mod growth;
mod lexer;
mod missing;
mod moments;
mod names;
mod places;
mod problem;
mod roots;
mod scan;
mod signatures;
mod sizes;
mod texts;

use std::collections::HashSet;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use minijinja::value::{Serde, Value};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::convert::text_conversions;
use crate::error::{Invalid, Reason, Unit, excerpt};
use crate::json::is_nested_within;
use crate::translation::Texts;
use crate::vocabulary::wire_enum;
use compiled::{Compiled, Prepared};
use cost::Cost;
use engine::{ENGINE, Output};
pub(crate) use names::Role;
use problem::Problem;
#[doc(hidden)]
pub use roots::TextNote;
use roots::{Notes, Roots};
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

/// Values of the placeholders of a message.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Variables {
    known: Value,
    /// Body of the message, for its frame.
    content: Option<Value>,
    texts: Option<Texts>,
    missing: MissingVariables,
    notes: Arc<Notes>,
}

wire_enum! {
    /// Effect of a variable that is absent or `null`, where a template prints it: alone, behind filters, in
    /// brackets, joined by `~`, or chosen by `if .. else`. A name that the template sets, such as that of a
    /// loop, counts as well. The filter `default` gives the variable a value instead. Other operators,
    /// conditions, slices and arguments get it as it is.
    #[derive(Default)]
    MissingVariables, "missingVariables":
    Error = "error",
    #[default]
    Empty = "empty",
    Marker = "marker",
}

/// Format of the rendered text.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Values are inserted unchanged.
    Plain,
    /// Values are inserted with HTML escaped.
    Html,
}

/// Error of a rendering.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RenderError {
    /// The template ran too long, or failed.
    #[error("{0}")]
    Failed(String),
    /// A variable has no value.
    #[error("the variable `{0}` is missing")]
    Missing(String),
}

impl Template {
    /// Returns `raw` as a template. Refuses a text that does not compile.
    pub fn new(raw: impl Into<String>) -> Result<Self, Invalid> {
        let template = Self::unchecked(raw.into());
        template.check()?;
        Ok(template)
    }

    pub(crate) fn unchecked(text: String) -> Self {
        Self { text, prepared: Prepared::default() }
    }

    /// Refuses a template that is too long, does not compile, or uses unknown names.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Invalid> {
        self.check_as(Role::Message(None))
    }

    /// Checks the template for its role.
    pub(crate) fn check_as(&self, role: Role<'_>) -> Result<(), Invalid> {
        let scan = self.scan()?;
        let mut uses = scan.uses.iter();
        let unknown = uses.find_map(|used| Some((used, used.check(role).err()?)));
        if let Some((used, problem)) = unknown {
            // A schema without `order` refuses `payload.order-id` before `id` is looked at.
            let next = uses.next().and_then(|next| next.hyphenated(&self.text));
            let next = next.filter(|path| path.starts_with("payload"));
            let hint = used.hyphenated(&self.text).or(next);
            let hint = hint.map(|path| format!("a name with `-` is written as in `{path}`"));
            return Err(self.invalid(&problem.with(hint)));
        }
        let edited = scan.edits.applied(&self.text);
        let compiled = ENGINE.template_from_named_str(Format::Plain.name(), &edited);
        compiled.map(drop).map_err(|error| {
            let problem = RenderError::from(error).to_string();
            Invalid::new("template", Reason::Template { problem })
        })
    }

    /// Refuses a template with texts of translations.
    pub(crate) fn check_untranslated(&self) -> Result<(), Invalid> {
        let scan = self.scan()?;
        let Some(used) = scan.uses.iter().find(|used| used.root == names::TEXTS) else {
            return Ok(());
        };
        Err(self.invalid(&Problem::new("`t` needs `isTranslationEnabled`", used.at)))
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

    /// Returns the memory of the compiled template, in bytes: an upper bound for one form.
    pub(crate) fn prepared_weight(&self) -> usize {
        Self::weight(&self.text)
    }

    /// Returns the memory of `text` as a compiled template, in bytes: an upper bound for one form.
    pub(crate) fn weight(text: &str) -> usize {
        Compiled::weight(text)
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

    /// Returns the variables that the template does not set: their first name, and those behind it.
    pub(crate) fn uses(&self) -> Vec<(String, Vec<String>)> {
        let uses = self.scan().map(|scan| scan.uses).unwrap_or_default();
        let owned = |path: Vec<&str>| path.into_iter().map(str::to_owned).collect();
        uses.into_iter().map(|one| (one.root.to_owned(), owned(one.path))).collect()
    }

    /// Renders the template with `variables`: at most 1 MiB.
    #[doc(hidden)]
    pub fn render(&self, format: Format, variables: &Variables) -> Result<String, RenderError> {
        guarded(|| self.rendered(format, variables))
    }

    fn rendered(&self, format: Format, variables: &Variables) -> Result<String, RenderError> {
        let roots = Roots { variables: variables.clone(), format, given: None };
        let rendered = self.run(format, variables.is_watched(), Value::from_object(roots));
        if let Some(name) = variables.notes.missing() {
            return Err(RenderError::Missing(excerpt(name)));
        }
        if let Some(problem) = variables.notes.failure() {
            return Err(RenderError::Failed(excerpt(problem)));
        }
        let (text, cost) = rendered?;
        if variables.notes.affords(cost.with(text.len())) {
            return Ok(text);
        }
        let problem = "the templates of the message make or read too much";
        Err(RenderError::Failed(problem.into()))
    }

    // Renders the template with these roots. Variables are watched so that missing ones are noted.
    fn run(
        &self,
        format: Format,
        watched: bool,
        roots: Value,
    ) -> Result<(String, Cost), RenderError> {
        let compile = || self.compile(format, watched);
        let compiled = self.prepared.get_or_compile((format, watched), compile)?;
        let mut output = Output::default();
        match compiled.template()?.render_captured_to(roots, &mut output) {
            Ok(mut captured) => {
                let cost = captured.with_state_mut(budget::cost);
                drop(captured);
                Ok((output.into_text(), cost))
            }
            Err(_) if output.full => Err(RenderError::Failed(format!(
                "the text is longer than {} bytes",
                Self::MAX_OUTPUT
            ))),
            Err(error) => Err(error.into()),
        }
    }

    fn compile(&self, format: Format, watched: bool) -> Result<Compiled, RenderError> {
        let scan = self.scan().map_err(|invalid| RenderError::Failed(invalid.reason.to_string()));
        let mut scan = scan?;
        if watched {
            scan.watch();
        }
        Ok(Compiled::new(format, scan.edits.applied(&self.text))?)
    }
}

impl Variables {
    // The limit of the JSON reader: deeper data cannot arrive as text.
    const MAX_DEPTH: usize = 128;

    /// Returns the roots of `known` as variables.
    pub(crate) fn of(known: Value) -> Self {
        let (content, texts, missing, notes) = Default::default();
        Self { known, content, texts, missing, notes }
    }

    /// Returns the roots.
    pub(crate) fn known(&self) -> &Value {
        &self.known
    }

    /// Returns `variables` as serialized, or no variables if they are nested more than 128 levels
    /// deep.
    pub fn new(variables: impl Serialize) -> Self {
        if !is_nested_within(&variables, Self::MAX_DEPTH) {
            return Self::of(Value::default());
        }
        Self::of(Value::from(Serde(variables)))
    }

    /// Sets the effect of missing variables.
    #[must_use]
    pub fn missing(self, missing: MissingVariables) -> Self {
        Self { missing, ..self }
    }

    /// Sets the texts of `t`.
    #[must_use]
    pub fn texts(self, texts: Texts) -> Self {
        Self { texts: Some(texts), ..self }
    }

    /// Sets the body of the message, which is HTML.
    #[must_use]
    pub fn content(self, html: String) -> Self {
        Self { content: Some(Value::from_safe_string(html)), ..self }
    }

    /// Returns the notes about texts of translations, over all renderings.
    pub fn notes(&self) -> Vec<TextNote> {
        self.notes.texts()
    }

    fn is_watched(&self) -> bool {
        self.missing != MissingVariables::Empty
    }
}

impl MissingVariables {
    /// Returns `true` if missing variables are empty texts.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        *self == Self::Empty
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
        .unwrap_or_else(|_| Err(RenderError::Failed("the template engine panicked".into())))
}

impl From<minijinja::Error> for RenderError {
    fn from(error: minijinja::Error) -> Self {
        let line = error.line().map(|line| format!(" in line {line}")).unwrap_or_default();
        let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
        Self::Failed(excerpt(format!("{}{detail}{line}", error.kind())))
    }
}

#[cfg(test)]
mod tests;
