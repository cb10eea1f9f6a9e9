//! Variables of templates, and the check of their names.

use super::problem::{Problem, meant};
use crate::json::Object;
use crate::payload::fields::unlisted;
use crate::template_data::{
    CONTEXT_FIELDS, FRAME_ROOTS, ROOTS, SUBSCRIBER_FIELDS, WORKFLOW_FIELDS,
};

/// Root of the texts of translations.
pub(super) const TEXTS: &str = "t";

/// Text that a template is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role<'p> {
    /// Part of a message. The payload may have a JSON schema.
    Message(Option<&'p Object>),
    /// Frame around messages.
    Frame,
    /// Text of a translation, whose callers may give it values under any name. The payload may have a JSON
    /// schema.
    Text(Option<&'p Object>),
}

/// Use of a variable in a template.
#[derive(Clone, Debug)]
pub(super) struct Use<'s> {
    /// First name.
    pub(super) root: &'s str,
    /// Names behind the first one.
    pub(super) path: Vec<&'s str>,
    /// Start, in bytes.
    pub(super) at: usize,
}

impl Use<'_> {
    /// Refuses a variable that a template of this role does not have.
    pub(super) fn check(&self, role: Role<'_>) -> Result<(), Problem> {
        let payload = match role {
            Role::Message(payload) | Role::Text(payload) => payload,
            Role::Frame => None,
        };
        let is_text = matches!(role, Role::Text(_));
        let field = |place: &str, name: &str, known: &[&str]| {
            if known.contains(&name) {
                return Ok(());
            }
            let what = format!("`{place}` has no field{}", meant(name, known.iter().copied()));
            Err(Problem::new(what, self.at))
        };
        match (self.root, self.path.as_slice()) {
            ("subscriber" | "actor", [name, ..]) => field(self.root, name, &SUBSCRIBER_FIELDS),
            ("workflow", [name, ..]) => field(self.root, name, &WORKFLOW_FIELDS),
            ("context", [kind, name, ..]) => {
                field(&format!("context.{kind}"), name, &CONTEXT_FIELDS)
            }
            ("payload", path) => self.check_payload(path, payload),
            (TEXTS, _) if is_text => {
                Err(Problem::new("a text of a translation refers to other texts", self.at))
            }
            // They are read for the steps that the workflow names, which is not to depend on a language.
            ("steps", _) if is_text => {
                let what = "a text of a translation has no results of steps: the template gives it values, \
                    as in `t('key', read=steps.mail.read)`";
                Err(Problem::new(what, self.at))
            }
            (_, _) if is_text => Ok(()),
            (root, _) if role == Role::Frame && FRAME_ROOTS.contains(&root) => Ok(()),
            (root, _) if role == Role::Frame => {
                Err(Problem::unknown("variable", root, FRAME_ROOTS, self.at))
            }
            (root, _) if ROOTS.contains(&root) => Ok(()),
            (root, _) => Err(Problem::unknown("variable", root, ROOTS, self.at)),
        }
    }

    /// Returns the path in brackets whose name with `-` the variable is a part of: that of `payload.order-id`
    /// for `id`.
    pub(super) fn hyphenated(&self, source: &str) -> Option<String> {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let (before, behind) = source.split_at_checked(self.at)?;
        let before = before.strip_suffix('-')?;
        let start = before.trim_end_matches(|letter| is_name(letter) || letter == '.').len();
        let (path, first) = before.get(start..)?.rsplit_once('.')?;
        let end = behind.find(|letter| !is_name(letter)).unwrap_or(behind.len());
        let last = behind.get(..end)?;
        let is_path = path.starts_with(|letter: char| letter.is_ascii_alphabetic());
        (is_path && !first.is_empty()).then(|| format!("{path}[\"{first}-{last}\"]"))
    }

    fn check_payload(&self, path: &[&str], schema: Option<&Object>) -> Result<(), Problem> {
        let Some(schema) = schema else { return Ok(()) };
        match unlisted(schema, path.iter().copied()) {
            None => Ok(()),
            Some(unlisted) => {
                let name = meant(unlisted.name, unlisted.fields());
                let what = format!("`{}` has no field{name}", unlisted.place);
                Err(Problem::new(what, self.at))
            }
        }
    }
}
