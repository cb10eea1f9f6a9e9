//! Operations on translations.

use domain::contact::Locale;
use domain::convert::IntoChecked;
use domain::error::Invalid;
use domain::json::Object;
use domain::page::{ListKind, Page};
use domain::translation::{
    ImportProblem, ImportResult, Resource, ResourceType, Translation, TranslationImport,
    TranslationQuery, TranslationUpsert,
};
use serde_json::Value;
use store::{List, ReadRecords, Step, WriteRecords, layout};

use crate::resources::cascade::{Cascade, Deleting};
use crate::resources::{layouts, translation_groups, workflows};
use crate::scope::Between;
use crate::tx::{Tx, View};
use crate::{Entity, Error, Result, Scope};

/// The translations of an environment.
///
/// A workflow is named by its identifier, its id or its slug, a layout by its identifier or its
/// id.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tidings::translation::{Resource, TranslationImport};
/// use serde_json::json;
/// # use tidings::workflow::WorkflowCreate;
///
/// # let engine = tidings::Engine::in_memory();
/// # let env = engine.organization("acme")?.development()?;
/// # env.workflows().create(&WorkflowCreate::new("greeting", "Greeting")?)?;
/// let import = TranslationImport::new("de-DE")?
///     .workflow("greeting", json!({ "hello": "Hallo {{ payload.name }}!" }))
///     .workflow("farewell", json!({}));
/// let imported = env.translations().import(&import)?;
/// assert_eq!(imported.successful, ["greeting"]);
/// assert_eq!(imported.failed, ["farewell"]);
/// assert_eq!(imported.errors[0].message, "workflow `farewell` is not there");
///
/// let greeting = Resource::workflow("greeting");
/// let german = env.translations().get(&greeting, "de_DE")?;
/// assert_eq!(german.content["hello"], "Hallo {{ payload.name }}!");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Translations<'s> {
    pub(crate) scope: &'s Scope,
}

impl Translations<'_> {
    /// Stores the texts of a resource in one language, in place of those that were there. The texts of a
    /// resource whose `isTranslationEnabled` is `false` are stored and not used.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such resource; [`Error::Invalid`] with its path, if
    /// the content holds anything but texts by their names, or is larger than 1 MiB, or if a placeholder of
    /// a text has a mistake: it does not compile, or names a variable that a text does not have.
    pub fn upsert(&self, upsert: &TranslationUpsert) -> Result<Translation> {
        // To compile many texts takes long, and would hold up other writers.
        let checked = self.scope.view(|view| CheckedTexts::of(view, upsert))?;
        self.scope.write("translations.upsert", upsert, |tx| {
            let upsert = resolved(tx, upsert.clone())?;
            match checked.mistake(tx, &upsert)? {
                Some(mistake) => Err(mistake.into()),
                None => put(tx, upsert),
            }
        })
    }

    /// Stores the texts of many resources in one language, each in a transaction of its own. The
    /// result names the resources that were stored, and those that were refused, each with its error. A text
    /// with a mistake in a placeholder, which [`upsert`](Self::upsert) refuses, is stored as it is, with a warning.
    /// The texts of a resource whose `isTranslationEnabled` is `false` are stored and not used.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if there are more than 1,000 resources.
    pub fn import(&self, import: &TranslationImport) -> Result<ImportResult> {
        // To compile many texts takes long, and would hold up other writers.
        let checked =
            |done: Import| self.scope.view(|view| done.clone().with_checked(view, import));
        let start = checked(Import::default())?;
        let between: Between<'_, Import, ImportResult> = &mut |done| checked(done).map(Step::More);
        self.scope.write_in_steps_with(
            "translations.import",
            import,
            (start, between),
            |tx, done| {
                import.check()?;
                let mut resources = import.resources().skip(done.count());
                let Some((resource, content)) = resources.next() else {
                    return Ok(Step::Done(done.clone().result()));
                };
                let upsert = upsert_of(resource.clone(), &import.locale, content);
                let done = match import_one(tx, upsert, done.checked.as_ref()) {
                    Ok(mistake) => done.clone().with(resource, mistake),
                    Err(Error::Store(error)) => return Err(error.into()),
                    Err(error) => done.clone().without(ImportProblem::new(resource, error)),
                };
                let last = resources.next().is_none();
                Ok(if last { Step::Done(done.result()) } else { Step::More(done) })
            },
        )
    }

    /// The texts of a resource in one language.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such resource, or no such translation of it.
    pub fn get(
        &self,
        resource: &Resource,
        locale: impl IntoChecked<Locale>,
    ) -> Result<Translation> {
        let locale = locale.into_checked()?;
        self.scope.read("translations.get", |view| get(view, &known(view, resource)?, &locale))
    }

    /// The texts of a resource in one language. Returns `None` if there are none, or no such
    /// resource.
    pub fn find(
        &self,
        resource: &Resource,
        locale: impl IntoChecked<Locale>,
    ) -> Result<Option<Translation>> {
        let locale = locale.into_checked()?;
        self.scope.read("translations.find", |view| match find_known(view, resource)? {
            Some(resource) => find(view, &resource, &locale),
            None => Ok(None),
        })
    }

    /// A page of the translations, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], if the limit, the cursors or the order of the query cannot be used.
    pub fn list(&self, query: &TranslationQuery) -> Result<Page<Translation>> {
        let request = query
            .page
            .check(self.scope.list_id(ListKind::Translations), TranslationQuery::ORDERS)?;
        let prefix = layout::translation_ids(self.scope.environment_id());
        let matches = |translation: &Translation| query.matches(translation);
        let list = List::new([prefix]).of_records(query.is_filtered(), &matches);
        self.scope.read("translations.list", |view| Ok(view.page(&list, &request)?))
    }

    /// Deletes the texts of a resource in one language. Its group stays, even if it is empty.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn delete(&self, resource: &Resource, locale: impl IntoChecked<Locale>) -> Result<()> {
        self.delete_of(resource, &locale.into_checked()?)
    }

    fn delete_of(&self, resource: &Resource, locale: &Locale) -> Result<()> {
        self.scope.write("translations.delete", (resource, locale), |tx| {
            let translation = get(tx, &known(tx, resource)?, locale)?;
            Ok(tx.remove(&translation)?)
        })
    }

    /// Deletes the texts of a resource in every language, and no longer translates it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], if there is no such resource, or if it is not translated.
    pub fn delete_group(&self, resource: &Resource) -> Result<()> {
        self.scope.write_deletion("translations.delete_group", resource, |tx, before| {
            let environment = tx.environment_id();
            let group = match find_known(tx, resource)? {
                Some(known) => tx.find(&layout::translation_group(environment, &known))?,
                None => None,
            };
            // A group has no id. Its time of creation tells it from a later one of the resource.
            if before.is_over(group.as_ref().map(|group| group.created_at)) {
                return Ok(Step::Done(()));
            }
            let resource = known(tx, resource)?;
            let missing = || Error::not_found(Entity::TranslationGroup, name(&resource));
            let group = group.ok_or_else(missing)?;
            let mut cascade = Cascade::new(tx, before.removed());
            let translations = layout::translations(environment, &resource);
            cascade.remove(&translations)?;
            // The group goes last, because a deletion that was interrupted goes on from it.
            let step = cascade.then(|tx| {
                tx.remove(&group)?;
                let id = &resource.resource_id;
                match resource.resource_type {
                    ResourceType::Workflow => workflows::stop_translating(tx, id),
                    ResourceType::Layout => layouts::stop_translating(tx, id),
                }
            })?;
            Ok(Deleting::after(step, group.created_at))
        })
    }
}

// Progress of an import.
#[derive(Clone, Debug, Default)]
struct Import {
    successful: Vec<String>,
    errors: Vec<ImportProblem>,
    warnings: Vec<ImportProblem>,
    // Texts of the next resource.
    checked: Option<CheckedTexts>,
}

impl Import {
    // Checks the texts of the next resource. A content without the form of texts is refused later, and so is an
    // import of too many resources.
    fn with_checked(mut self, view: &dyn View, import: &TranslationImport) -> Result<Self> {
        let next = import.resources().nth(self.count()).filter(|_| import.check().is_ok());
        let upsert =
            next.and_then(|(resource, content)| upsert_of(resource, &import.locale, content).ok());
        self.checked = upsert.map(|upsert| CheckedTexts::of(view, &upsert)).transpose()?;
        Ok(self)
    }

    fn count(&self) -> usize {
        self.successful.len() + self.errors.len()
    }

    fn with(mut self, resource: Resource, mistake: Option<Invalid>) -> Self {
        self.successful.push(resource.resource_id.clone());
        self.warnings.extend(mistake.map(|mistake| ImportProblem::new(resource, mistake)));
        self
    }

    fn without(mut self, error: ImportProblem) -> Self {
        self.errors.push(error);
        self
    }

    fn result(self) -> ImportResult {
        ImportResult::new(self.successful, self.errors, self.warnings)
    }
}

fn upsert_of(resource: Resource, locale: &Locale, content: &Value) -> Result<TranslationUpsert> {
    let content = Object::try_from(content.clone()).map_err(|invalid| invalid.named("content"))?;
    Ok(TranslationUpsert::new(resource, locale, content)?)
}

// Stores the texts of a resource. Returns the first mistake in them, if there is one.
fn import_one(
    tx: &mut Tx<'_>,
    upsert: Result<TranslationUpsert>,
    checked: Option<&CheckedTexts>,
) -> Result<Option<Invalid>> {
    let upsert = resolved(tx, upsert?)?;
    let mistake = checked.map(|checked| checked.mistake(tx, &upsert)).transpose()?.flatten();
    put(tx, upsert)?;
    Ok(mistake)
}

// The request with its resource by its identifier, if the content has the form of texts.
fn resolved(view: &dyn View, mut upsert: TranslationUpsert) -> Result<TranslationUpsert> {
    Translation::check_content(&upsert.content)?;
    upsert.resource = known(view, &upsert.resource)?;
    Ok(upsert)
}

fn put(tx: &mut Tx<'_>, upsert: TranslationUpsert) -> Result<Translation> {
    translation_groups::ensure(tx, upsert.resource.clone())?;
    let Some(before) = find(tx, &upsert.resource, &upsert.locale)? else {
        let translation = Translation::new(tx.id(), tx.home(), upsert, tx.now());
        tx.insert(&translation)?;
        return Ok(translation);
    };
    let after = before.with_content(upsert.content, tx.now());
    tx.replace(&before, &after)?;
    Ok(after)
}

// Texts that were checked by the schema of their workflow. A text with a mistake is passed over when a message
// is made, which may then show the key of the text.
#[derive(Clone, Debug)]
struct CheckedTexts {
    schema: Option<Object>,
    mistake: Option<Invalid>,
}

impl CheckedTexts {
    fn of(view: &dyn View, upsert: &TranslationUpsert) -> Result<Self> {
        let schema = schema_of(view, &upsert.resource)?;
        let templates = || Translation::check_templates(&upsert.content, schema.as_ref());
        let found = Translation::check_content(&upsert.content).and_then(|()| templates());
        Ok(Self { schema, mistake: found.err() })
    }

    // Returns the first mistake. Checks the texts again if their workflow has another schema now.
    fn mistake(&self, view: &dyn View, upsert: &TranslationUpsert) -> Result<Option<Invalid>> {
        if schema_of(view, &upsert.resource)? == self.schema {
            return Ok(self.mistake.clone());
        }
        Ok(Self::of(view, upsert)?.mistake)
    }
}

fn schema_of(view: &dyn View, resource: &Resource) -> Result<Option<Object>> {
    let workflow = match resource.resource_type {
        ResourceType::Workflow => workflows::find(view, &resource.resource_id)?,
        ResourceType::Layout => None,
    };
    Ok(workflow.and_then(|workflow| Some(workflow.payload_schema.as_deref()?.clone())))
}

// The resource by its identifier.
fn known(view: &dyn View, resource: &Resource) -> Result<Resource> {
    let entity = match resource.resource_type {
        ResourceType::Workflow => Entity::Workflow,
        ResourceType::Layout => Entity::Layout,
    };
    let missing = || Error::not_found(entity, &resource.resource_id);
    find_known(view, resource)?.ok_or_else(missing)
}

fn find_known(view: &dyn View, resource: &Resource) -> Result<Option<Resource>> {
    let id = &resource.resource_id;
    Ok(match resource.resource_type {
        ResourceType::Workflow => {
            workflows::find(view, id)?.map(|workflow| Resource::workflow(workflow.identifier()))
        }
        ResourceType::Layout => {
            layouts::find(view, id)?.map(|layout| Resource::layout(&layout.identifier))
        }
    })
}

fn get(view: &dyn View, resource: &Resource, locale: &Locale) -> Result<Translation> {
    let missing = || {
        let name = format!("{}/{}", name(resource), locale.as_str());
        Error::not_found(Entity::Translation, name)
    };
    find(view, resource, locale)?.ok_or_else(missing)
}

fn find(view: &dyn View, resource: &Resource, locale: &Locale) -> Result<Option<Translation>> {
    Ok(view.find(&layout::translation(view.environment_id(), resource, locale))?)
}

fn name(resource: &Resource) -> String {
    format!("{}/{}", resource.resource_type, resource.resource_id)
}
