//! Texts of the translations of a workflow or a layout, as a message needs them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde_json::{Map, Value};

use super::Translation;
use super::plural::{self, Rules};
use crate::contact::Locale;
use crate::error::Invalid;
use crate::json::Object;
use crate::template::{Role, Template};

/// Translations of one resource. The first that has a text is used.
#[derive(Clone, Debug, Default)]
pub struct Texts(Arc<[Arc<Translation>]>);

/// Maximum number of locales for each one that is wanted.
const MAX_LOCALES: usize = 5;
/// Maximum number of compiled texts that a translation keeps.
const MAX_PREPARED: usize = 256;

impl Texts {
    /// Returns the texts of `translations`, the best one first.
    pub fn new(translations: impl IntoIterator<Item = Arc<Translation>>) -> Self {
        Self(translations.into_iter().collect())
    }

    /// Returns the translations, the best one first.
    pub(crate) fn chain(&self) -> impl Iterator<Item = &Translation> {
        self.0.iter().map(|one| &**one)
    }
}

/// Returns the `available` locales for a reader who `wants` these, the best one first: for each at most
/// five of its language, first itself.
///
/// Among those of one language come first those with the same script, of which first that of the same region,
/// then those without a region, then the others by their names.
pub fn chain<'l>(
    wants: impl IntoIterator<Item = &'l Locale>,
    available: &[Locale],
) -> Vec<&Locale> {
    let mut chain: Vec<&Locale> = Vec::new();
    for wanted in wants {
        let (language, _, region) = wanted.parts();
        let distance = |one: &Locale| {
            let (_, _, its_region) = one.parts();
            let regions = (its_region != region, its_region.is_some());
            (one != wanted, one.script() != wanted.script(), regions, one.as_str().to_owned())
        };
        let mut of_language: Vec<_> =
            available.iter().filter(|one| one.parts().0 == language).collect();
        of_language.sort_by_cached_key(|one| distance(one));
        let others = of_language.into_iter().take(MAX_LOCALES);
        for one in others.filter(|one| !chain.contains(one)).collect::<Vec<_>>() {
            chain.push(one);
        }
    }
    chain
}

/// Compiled texts of a translation, by the texts themselves. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Prepared(Arc<Shared>);

#[derive(Default)]
struct Shared {
    templates: RwLock<HashMap<Box<str>, Compiled>>,
    rules: OnceLock<Rules>,
}

// The problem of a text that does not compile is kept as well.
type Compiled = Result<Arc<Template>, Arc<str>>;

impl Translation {
    /// Returns the text under `key`, whose parts are joined by dots. Of a text with plural forms,
    /// returns the form for `count`.
    pub(crate) fn text(&self, key: &str, count: Option<&str>) -> Option<&str> {
        match find(&self.content, key)? {
            Value::String(text) => Some(text),
            Value::Object(forms) => {
                let form = |name: &str| forms.get(name).and_then(Value::as_str);
                let other = form(plural::OTHER).filter(|_| plural::are_forms(forms))?;
                let rules = || self.prepared.0.rules.get_or_init(|| Rules::of(&self.locale));
                let category = count.map_or(plural::OTHER, |count| rules().category(count));
                Some(form(category).unwrap_or(other))
            }
            _ => None,
        }
    }

    /// Returns `true` if there are texts below `key`, and none under it.
    pub(crate) fn is_group(&self, key: &str) -> bool {
        let found = find(&self.content, key).and_then(Value::as_object);
        found.is_some_and(|members| !plural::are_forms(members))
    }

    /// Returns `text` as a template. Returns `None` if it has no placeholders.
    pub(crate) fn template(&self, text: &str) -> Result<Option<Arc<Template>>, Arc<str>> {
        if !is_template(text) {
            return Ok(None);
        }
        let templates = &self.prepared.0.templates;
        let kept = templates.read().unwrap_or_else(PoisonError::into_inner).get(text).cloned();
        if let Some(compiled) = kept {
            return compiled.map(Some);
        }
        let template = Template::unchecked(text.to_owned());
        let checked = template.check_as(Role::Text(None));
        let compiled: Compiled = match checked {
            Ok(()) => Ok(Arc::new(template)),
            Err(Invalid { reason, .. }) => Err(reason.to_string().into()),
        };
        let mut kept = templates.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_PREPARED {
            kept.insert(text.into(), compiled.clone());
        }
        compiled.map(Some)
    }

    /// Returns the memory of its compiled texts, in bytes: an upper bound for both formats.
    #[doc(hidden)]
    pub fn prepared_weight(&self) -> usize {
        let mut weights = Vec::new();
        let mut open: Vec<&Value> = self.content.values().collect();
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) if is_template(text) => {
                    weights.push(2 * text.len() + 2 * Template::weight(text));
                }
                Value::Object(members) => open.extend(members.values()),
                _ => {}
            }
        }
        weights.sort_unstable_by(|a, b| b.cmp(a));
        weights.iter().take(MAX_PREPARED).sum()
    }
}

/// Refuses a text with placeholders that does not compile, or that names what a text of a translation does
/// not have. The payload may have a JSON `schema`.
pub(super) fn check(text: &str, schema: Option<&Object>) -> Result<(), Invalid> {
    if !is_template(text) {
        return Ok(());
    }
    Template::unchecked(text.to_owned()).check_as(Role::Text(schema))
}

fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|tag| text.contains(tag))
}

// Returns the value under `key`. A name with dots comes before a path.
fn find<'c>(mut members: &'c Map<String, Value>, key: &str) -> Option<&'c Value> {
    let mut rest = key;
    loop {
        if let Some(found) = members.get(rest) {
            return Some(found);
        }
        let (name, behind) = rest.split_once('.')?;
        members = members.get(name)?.as_object()?;
        rest = behind;
    }
}

// Compiled texts are no part of the value of a translation.
impl PartialEq for Prepared {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Prepared {}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}
