//! Variables of a rendering, and what it notes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::Error;
use minijinja::value::{Enumerator, Object, Value};

use super::budget::refusal;
use super::edit::{RESERVED, TRANSLATOR, WATCH};
use super::filters::FUNCTIONS;
use super::names::TEXTS;
use super::texts::Translator;
use super::{Cost, Format, Variables};

/// Maximum number of notes about the texts of a message.
const MAX_NOTES: usize = 20;
/// Longest key in a note, in characters.
const MAX_KEY: usize = 200;

/// Variables of one rendering.
#[derive(Debug)]
pub(super) struct Roots {
    pub(super) variables: Variables,
    pub(super) format: Format,
    /// Values that a text of a translation is given. `None` in any other template.
    pub(super) given: Option<Value>,
}

/// Note about a text of a translation.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextNote {
    /// No translation has the key.
    Missing(String),
    /// The text under a key does not compile.
    Invalid(String),
}

/// What the renderings of one message have in common.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    texts: Vec<TextNote>,
    missing: Option<String>,
    failure: Option<String>,
    // Costs of the texts of translations.
    of_texts: Cost,
    // Costs of the templates of the message.
    of_templates: Cost,
}

impl Object for Roots {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        match key {
            // A text does not refer to other texts.
            TRANSLATOR => return self.given.is_none().then(|| Translator::of(Arc::clone(self))),
            WATCH => return Some(Value::from_dyn_object(Arc::clone(self))),
            // Functions of the engine, which asks for them here first.
            _ if key.starts_with(RESERVED) => return None,
            _ => {}
        }
        if let Some(given) = &self.given
            && let Some(value) = given.get_attr(key).ok().filter(|value| !value.is_undefined())
        {
            return Some(value);
        }
        match key {
            TEXTS => self.get_value_by_str(TRANSLATOR),
            _ if FUNCTIONS.contains(&key) => None,
            "content" if self.variables.content.is_some() => self.variables.content.clone(),
            name => {
                let value = self.variables.known.get_attr(name).ok()?;
                (!value.is_undefined()).then_some(value)
            }
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

impl Notes {
    // A note is whole after each call, also if a rendering has panicked.
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a missing variable.
    pub(super) fn is_without(&self, name: &str) {
        self.noted().missing.get_or_insert_with(|| name.to_owned());
    }

    /// Notes an error where there is no way to return it.
    pub(super) fn fail(&self, error: &Error) {
        let text = error.detail().map_or_else(|| error.to_string(), ToOwned::to_owned);
        self.noted().failure.get_or_insert(text);
    }

    /// Returns `true` if there was an error.
    pub(super) fn has_failed(&self) -> bool {
        self.noted().failure.is_some()
    }

    /// Returns the first missing variable.
    pub(super) fn missing(&self) -> Option<String> {
        self.noted().missing.take()
    }

    /// Returns the first error.
    pub(super) fn failure(&self) -> Option<String> {
        self.noted().failure.take()
    }

    /// Returns the notes about texts of translations.
    pub(super) fn texts(&self) -> Vec<TextNote> {
        self.noted().texts.clone()
    }

    /// Adds a note about a text of a translation.
    pub(super) fn add(&self, note: fn(String) -> TextNote, key: &str) {
        let key = match key.char_indices().nth(MAX_KEY) {
            Some((end, _)) => key.get(..end).unwrap_or_default(),
            None => key,
        };
        let note = note(key.to_owned());
        let mut noted = self.noted();
        if noted.texts.len() < MAX_NOTES && !noted.texts.contains(&note) {
            noted.texts.push(note);
        }
    }

    /// Adds the cost of a text. Refuses texts of a message that cost more than one rendering may.
    pub(super) fn spend(&self, cost: Cost) -> Result<(), Error> {
        let mut noted = self.noted();
        noted.of_texts = noted.of_texts.and(cost);
        if noted.of_texts.exceeds(Cost::OF_A_RENDERING) {
            return Err(refusal("the texts of the translations are too large"));
        }
        Ok(())
    }

    /// Adds the cost of a template of the message. Returns `false` if that of all is too high.
    pub(super) fn affords(&self, cost: Cost) -> bool {
        let mut noted = self.noted();
        noted.of_templates = noted.of_templates.and(cost);
        !noted.of_templates.exceeds(Cost::OF_A_MESSAGE)
    }
}
