//! Operations on translations.

use domain::contact::Locale;
use domain::environment::Home;
use domain::ids::EnvironmentId;
use domain::json::Object;
use domain::page::Page;
use domain::time::Timestamp;
use domain::translation::{
    ImportResult, Resource, ResourceType, Translation, TranslationGroup, TranslationImport,
    TranslationQuery, TranslationUpsert,
};
use serde_json::Value;
use store::{List, ReadRecords, Snapshot, Table, Transaction, WriteRecords, layout};

use crate::idempotency::Step;
use crate::resources::cascade::Cascade;
use crate::resources::{layouts, workflows};
use crate::{Entity, Error, Result, Scope};

/// The translations of an environment.
///
/// A workflow is named by its identifier, its id or its slug, a layout by its identifier or its
/// id.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use tidings::contact::Locale;
/// # use tidings::translation::{Resource, ResourceType};
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme".try_into()?).development()?;
/// # env.workflows().create(serde_json::from_str(
/// #     r#"{ "workflowId": "greeting", "name": "Greeting", "steps": [] }"#)?)?;
/// let imported = env.translations().import(&serde_json::from_str(
///     r#"{ "locale": "de-DE", "masterJson": { "workflows": {
///          "greeting": { "hello": "Hallo {{ payload.name }}!" }, "farewell": {} } } }"#,
/// )?)?;
/// assert_eq!(imported.successful, ["greeting"]);
/// assert_eq!(imported.failed, ["farewell"]);
///
/// let greeting = Resource::workflow(&"greeting".try_into()?);
/// let german = env.translations().get(&greeting, &Locale::new("de_DE")?)?;
/// assert_eq!(german.content["hello"], "Hallo {{ payload.name }}!");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Translations<'s> {
    pub(crate) scope: &'s Scope,
}

impl Translations<'_> {
    /// Stores the texts of a resource in one language, in place of those that were there.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such resource; [`Error::Invalid`] with the way to it, if
    /// the content holds anything but texts by their names, or is larger than 1 MiB.
    pub fn upsert(&self, upsert: &TranslationUpsert) -> Result<Translation> {
        self.scope.write("translations.upsert", upsert, |txn, now| {
            put(self.scope, txn, upsert.clone(), now)
        })
    }

    /// Stores the texts of many resources in one language, each in a transaction of its own, and
    /// says for which of them that worked.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if there are more than 1,000 resources.
    pub fn import(&self, import: &TranslationImport) -> Result<ImportResult> {
        let start = Import::default();
        self.scope.write_in_steps("translations.import", import, start, |txn, now, done| {
            import.check()?;
            let mut resources = import.resources().skip(done.count());
            let Some((resource, content)) = resources.next() else {
                return Ok(Step::Done(done.clone().result()));
            };
            let id = resource.resource_id.clone();
            let locale = import.locale.clone();
            let done = match import_one(self.scope, txn, (resource, locale), content, now) {
                Ok(()) => done.clone().with(id),
                Err(Error::Store(error)) => return Err(error.into()),
                Err(_) => done.clone().without(id),
            };
            let last = resources.next().is_none();
            Ok(if last { Step::Done(done.result()) } else { Step::More(done) })
        })
    }

    /// The texts of a resource in one language.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such resource, or no such translation of it.
    pub fn get(&self, resource: &Resource, locale: &Locale) -> Result<Translation> {
        self.scope.read(|snapshot| find(self.scope, snapshot, resource, locale))
    }

    /// A page of the translations, newest first unless the query says otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the page that the query asks for cannot be one.
    pub fn list(&self, query: &TranslationQuery) -> Result<Page<Translation>> {
        let request =
            query.page.check(self.scope.list_id(Table::Translations), TranslationQuery::ORDERS)?;
        let prefix = layout::translation_ids(self.scope.environment_id());
        let shows = |translation: &Translation| query.shows(translation);
        let list = List::new(Table::TranslationIds, [prefix]).of_records(query.is_narrow(), &shows);
        self.scope.read(|snapshot| Ok(snapshot.page(&list, &request)?))
    }

    /// Deletes the texts of a resource in one language. Its group stays, also without any.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn delete(&self, resource: &Resource, locale: &Locale) -> Result<()> {
        self.scope.write("translations.delete", (resource, locale), |txn, _| {
            let translation = find(self.scope, &*txn, resource, locale)?;
            Ok(txn.remove(&translation)?)
        })
    }

    /// Deletes the texts of a resource in every language, and no longer translates it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such resource, or if it is not translated.
    pub fn delete_group(&self, resource: &Resource) -> Result<()> {
        let environment = self.scope.environment_id();
        self.scope.write_in_steps("translations.delete_group", resource, (), |txn, now, ()| {
            let resource = known(self.scope, &*txn, resource)?;
            let key = layout::translation_group(environment, &resource);
            let group: Option<TranslationGroup> = txn.find(&key)?;
            let missing = || Error::not_found(Entity::TranslationGroup, name(&resource));
            let group = group.ok_or_else(missing)?;
            let mut cascade = Cascade::new(txn);
            let translations = layout::translations(environment, &resource);
            cascade.remove::<Translation>(Table::Translations, &translations)?;
            // The group goes last, for without it there would be nothing to go on with.
            cascade.then(|txn| {
                txn.remove(&group)?;
                let id = &resource.resource_id;
                match resource.resource_type {
                    ResourceType::Workflow => workflows::stop_translating(self.scope, txn, id, now),
                    ResourceType::Layout => layouts::stop_translating(self.scope, txn, id, now),
                }
            })
        })
    }
}

// How far an import has come.
#[derive(Clone, Debug, Default)]
struct Import {
    successful: Vec<String>,
    failed: Vec<String>,
}

impl Import {
    fn count(&self) -> usize {
        self.successful.len() + self.failed.len()
    }

    fn with(mut self, id: String) -> Self {
        self.successful.push(id);
        self
    }

    fn without(mut self, id: String) -> Self {
        self.failed.push(id);
        self
    }

    fn result(self) -> ImportResult {
        ImportResult::new(self.successful, self.failed)
    }
}

/// The group of a resource that is to be translated, created if need be.
pub(crate) fn ensure_group(
    home: &Home,
    txn: &mut dyn Transaction,
    resource: Resource,
    now: Timestamp,
) -> Result<()> {
    let key = layout::translation_group(home.environment_id, &resource);
    if txn.contains(Table::TranslationGroups, &key)? {
        return Ok(());
    }
    let environment_id = home.environment_id;
    Ok(txn.insert(&TranslationGroup { environment_id, resource, created_at: now })?)
}

/// Removes the group of a resource, with its translations.
pub(crate) fn remove_group(
    cascade: &mut Cascade<'_>,
    environment: EnvironmentId,
    resource: &Resource,
) -> Result<()> {
    let prefix = layout::translations(environment, resource);
    cascade.remove::<Translation>(Table::Translations, &prefix)?;
    cascade.remove::<TranslationGroup>(Table::TranslationGroups, &prefix)
}

fn import_one(
    scope: &Scope,
    txn: &mut dyn Transaction,
    (resource, locale): (Resource, Locale),
    content: &Value,
    now: Timestamp,
) -> Result<()> {
    let content = Object::try_from(content.clone())?;
    put(scope, txn, TranslationUpsert { resource, locale, content }, now).map(drop)
}

fn put(
    scope: &Scope,
    txn: &mut dyn Transaction,
    upsert: TranslationUpsert,
    now: Timestamp,
) -> Result<Translation> {
    Translation::check_content(&upsert.content)?;
    let upsert = TranslationUpsert { resource: known(scope, &*txn, &upsert.resource)?, ..upsert };
    ensure_group(&scope.home, txn, upsert.resource.clone(), now)?;
    let key = layout::translation(scope.environment_id(), &upsert.resource, &upsert.locale);
    let Some(before) = txn.find::<Translation>(&key)? else {
        let translation = Translation::new(scope.id(now), &scope.home, upsert, now);
        txn.insert(&translation)?;
        return Ok(translation);
    };
    let after = before.with_content(upsert.content, now);
    txn.replace(&before, &after)?;
    Ok(after)
}

// The resource, by its identifier.
fn known(scope: &Scope, snapshot: &dyn Snapshot, resource: &Resource) -> Result<Resource> {
    let id = &resource.resource_id;
    match resource.resource_type {
        ResourceType::Workflow => {
            Ok(Resource::workflow(workflows::get(scope, snapshot, id)?.identifier()))
        }
        ResourceType::Layout => Ok(Resource::layout(&layouts::get(scope, snapshot, id)?.layout_id)),
    }
}

fn find(
    scope: &Scope,
    snapshot: &dyn Snapshot,
    resource: &Resource,
    locale: &Locale,
) -> Result<Translation> {
    let resource = known(scope, snapshot, resource)?;
    let key = layout::translation(scope.environment_id(), &resource, locale);
    let missing = || {
        let name = format!("{}/{}", name(&resource), locale.as_str());
        Error::not_found(Entity::Translation, name)
    };
    snapshot.find(&key)?.ok_or_else(missing)
}

fn name(resource: &Resource) -> String {
    format!("{}/{}", resource.resource_type, resource.resource_id)
}
