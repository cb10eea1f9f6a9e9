//! Texts of translations in templates: `t.cart.title`, `t("cart.items", count=3)` and
//! `"cart.items" | t(count=3)`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, ObjectRepr, Value};
use minijinja::{Error, State};

use super::budget::{self, refusal};
use super::edit::TRANSLATOR;
use super::roots::{Roots, TextNote};
use super::{Cost, Format, Template};
use crate::translation::Texts;

/// Texts of translations whose keys have a common start.
#[derive(Debug)]
pub(super) struct Translator {
    roots: Arc<Roots>,
    start: String,
}

impl Translator {
    /// Returns all texts.
    pub(super) fn of(roots: Arc<Roots>) -> Value {
        Value::from_object(Self { roots, start: String::new() })
    }

    // Returns the text under `key`, in the first language that has it, or the key itself.
    fn text(&self, key: &str, given: Option<Value>) -> Result<Value, Error> {
        let (variables, notes) = (&self.roots.variables, &self.roots.variables.notes);
        // A property that cannot be read does not end the rendering.
        if notes.has_failed() {
            return Err(refusal("a text of a translation has failed"));
        }
        let count = given.as_ref().and_then(|given| given.get_attr("count").ok());
        let count = count.filter(|count| !count.is_undefined()).map(|count| count.to_string());
        for translation in variables.texts.iter().flat_map(Texts::chain) {
            let Some(text) = translation.text(key, count.as_deref()) else { continue };
            match translation.template(text) {
                Ok(None) => {
                    notes.spend(Cost::of_text(text))?;
                    return Ok(self.made(text.to_owned()));
                }
                Ok(Some(template)) => return self.rendered(&template, given),
                Err(problem) => {
                    // It is compiled for each rendering, if it is not kept.
                    notes.spend(Cost::of_text(text))?;
                    let locale = translation.locale.as_str();
                    notes.add(TextNote::Invalid, &format!("{key} in {locale}: {problem}"));
                }
            }
        }
        notes.add(TextNote::Missing, key);
        notes.spend(Cost::of_text(key))?;
        Ok(Value::from(key))
    }

    /// Returns the text that a language has where another one has the texts that this is the start of.
    pub(super) fn whole(&self) -> Option<Result<Value, Error>> {
        let mut chain = self.roots.variables.texts.iter().flat_map(Texts::chain);
        let has_text = chain.any(|one| one.text(&self.start, None).is_some());
        has_text.then(|| self.text(&self.start, None))
    }

    fn rendered(&self, template: &Template, given: Option<Value>) -> Result<Value, Error> {
        let Roots { variables, format, .. } = &*self.roots;
        let given = Some(given.unwrap_or_default());
        let roots = Roots { variables: variables.clone(), format: *format, given };
        let (text, cost) = template
            .run(*format, variables.is_watched(), Value::from_object(roots))
            .map_err(|error| refusal(error.to_string()))?;
        // A text that is not kept is compiled for each rendering.
        let cost = cost.and(Cost::of_text(&text)).with(template.as_str().len());
        variables.notes.spend(cost)?;
        Ok(self.made(text))
    }

    // A text may have markup of its own, as the template may.
    fn made(&self, text: String) -> Value {
        match self.roots.format {
            Format::Plain => Value::from(text),
            Format::Html => Value::from_safe_string(text),
        }
    }

    fn key(&self, name: &str) -> String {
        if self.start.is_empty() { name.to_owned() } else { format!("{}.{name}", self.start) }
    }

    fn is_group(&self, key: &str) -> bool {
        self.roots.variables.texts.iter().flat_map(Texts::chain).any(|one| one.is_group(key))
    }
}

impl Object for Translator {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str() {
            Some(name) => self.get_value_by_str(name),
            None => self.get_value_by_str(&key.to_string()),
        }
    }

    fn get_value_by_str(self: &Arc<Self>, name: &str) -> Option<Value> {
        let key = self.key(name);
        if self.is_group(&key) {
            return Some(Value::from_object(Self { roots: Arc::clone(&self.roots), start: key }));
        }
        self.text(&key, None).map_err(|error| self.roots.variables.notes.fail(&error)).ok()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        budget::read(state, args)?;
        let (key, given) = match args {
            [key] => (key, None),
            [key, given] => (key, Some(Value::from(Kwargs::try_from(given.clone())?))),
            _ => return Err(refusal("`t` is given a key, and values by their names")),
        };
        match key.as_str() {
            Some(key) => self.text(&self.key(key), given),
            // An absent key has no text.
            None if key.is_none() => self.text("", given),
            None => self.text(&self.key(&key.to_string()), given),
        }
    }

    // A part of a key that is printed is a key without a text, unless a language has one.
    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let notes = &self.roots.variables.notes;
        match self.whole() {
            Some(Ok(text)) => write!(f, "{text}"),
            Some(Err(error)) => {
                notes.fail(&error);
                Ok(())
            }
            None => {
                notes.add(TextNote::Missing, &self.start);
                f.write_str(&self.start)
            }
        }
    }
}

/// Returns the values with the text of each group of texts that a language has as a text, also where it is a named
/// value of a filter. Its markup stays, which it would lose as a text that is made from a value.
pub(super) fn settled(values: &[Value]) -> Result<Cow<'_, [Value]>, Error> {
    let is_open = |value: &Value| value.is_kwargs() || group(value).is_some();
    if !values.iter().any(is_open) {
        return Ok(values.into());
    }
    values.iter().map(settle).collect::<Result<_, _>>().map(Cow::Owned)
}

/// Does the same for one value.
pub(super) fn settle(value: &Value) -> Result<Value, Error> {
    if value.is_kwargs() {
        let named = Kwargs::try_from(value.clone())?;
        let settled = named.args().map(|name| Ok((name, settle(&named.peek(name)?)?)));
        return Ok(settled.collect::<Result<Kwargs, Error>>()?.into());
    }
    group(value).and_then(Translator::whole).unwrap_or_else(|| Ok(value.clone()))
}

fn group(value: &Value) -> Option<&Translator> {
    value.downcast_object_ref()
}

/// `"cart.items" | t(count=3)`.
pub(super) fn text(state: &mut State<'_, '_>, key: Value, values: Kwargs) -> Result<Value, Error> {
    let translator = state.lookup(TRANSLATOR).unwrap_or_default();
    translator.call(state, &[key, values.into()])
}
