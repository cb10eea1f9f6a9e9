//! Texts and layouts of messages, in the languages of their readers.

use std::ops::ControlFlow;

use domain::contact::Locale;
use domain::environment::Environment;
use domain::layout::{Frame, FrameRef, LayoutChoice};
use domain::subscriber::Subscriber;
use domain::translation::{Resource, Texts, chain};
use domain::workflow::Workflow;
use store::{Order, layout};

use crate::Result;
use crate::resources::{environments, layouts};
use crate::tx::View;

/// Layout of an e-mail, as of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct ChosenLayout {
    /// Name of the layout that the e-mail wants, if there is none of this name.
    missing: Option<String>,
    frame: Option<Frame>,
}

/// Returns the texts of a workflow in the languages of a reader. Returns `None` if it has no
/// translations.
pub(crate) fn of_workflow(
    view: &dyn View,
    workflow: &Workflow,
    reader: Option<&Subscriber>,
) -> Result<Option<Texts>> {
    if !workflow.is_translation_enabled {
        return Ok(None);
    }
    let own = environments::own(view)?;
    let locales = locales_of(view, (workflow, own.as_deref()), reader);
    of_resource(view, &Resource::workflow(workflow.identifier()), &locales).map(Some)
}

/// Returns the layout of an e-mail, with its texts. The default one takes the place of a missing one, whose
/// e-mails would lack what the law or the brand demands.
pub(crate) fn chosen_layout(
    view: &dyn View,
    choice: LayoutChoice,
    workflow: &Workflow,
    reader: Option<&Subscriber>,
) -> Result<ChosenLayout> {
    let (missing, layout) = match (layouts::chosen(view, &choice)?, choice) {
        (None, LayoutChoice::Named(name)) => {
            (Some(name), layouts::chosen(view, &LayoutChoice::Default)?)
        }
        (found, _) => (None, found),
    };
    let Some(layout) = layout else { return Ok(ChosenLayout { missing, frame: None }) };
    let texts = if layout.is_translation_enabled {
        let own = environments::own(view)?;
        let locales = locales_of(view, (workflow, own.as_deref()), reader);
        of_resource(view, &Resource::layout(&layout.identifier), &locales)?
    } else {
        Texts::default()
    };
    Ok(ChosenLayout { missing, frame: Some(Frame { layout, texts }) })
}

impl ChosenLayout {
    /// Returns the layout as the plan needs it.
    pub(crate) fn as_frame_ref(&self) -> FrameRef<'_> {
        FrameRef { missing: self.missing.as_deref(), frame: self.frame.as_ref() }
    }
}

// The locales of a reader, the best one first.
fn locales_of<'l>(
    view: &'l dyn View,
    (workflow, environment): (&'l Workflow, Option<&'l Environment>),
    reader: Option<&'l Subscriber>,
) -> Vec<&'l Locale> {
    let own = reader.and_then(|reader| reader.profile.locale.as_ref());
    let of_workflow = workflow.default_locale.as_ref();
    let of_environment = environment.and_then(|environment| environment.default_locale.as_ref());
    let of_engine = &view.engine().parts.settings.default_locale;
    let of_all = of_environment.unwrap_or(of_engine);
    [own, of_workflow, Some(of_all)].into_iter().flatten().collect()
}

// The languages of a resource are read from the keys, so that only the wanted texts are decoded.
fn of_resource(view: &dyn View, resource: &Resource, locales: &[&Locale]) -> Result<Texts> {
    let environment = view.environment_id();
    let range = layout::translations(environment, resource).range();
    let mut available = Vec::new();
    view.scan(range.table(), range.bytes(), Order::Ascending, None, &mut |key, _| {
        available.extend(layout::TRANSLATIONS.read(key).map(|(_, (_, (locale, ())))| locale));
        ControlFlow::Continue(())
    })?;
    let best = chain(locales.iter().copied(), &available);
    let key = |locale: &&Locale| layout::translation(environment, resource, locale);
    let keys: Vec<_> = best.iter().map(key).collect();
    let found = view.engine().parts.decoded.translations.find_many(view, &keys)?;
    Ok(Texts::new(found.into_iter().flatten()))
}
