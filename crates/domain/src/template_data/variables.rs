//! Data for templates: values of the roots, of which the recipients of an event share most.

use std::cell::{OnceCell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use minijinja::value::{Enumerator, Object, Serde, Value};
use serde::Serialize;

use super::{DEFAULT_ZONE, SubscriberDataOwned, TemplateData};
use crate::contact::TimeZone;
use crate::ids::StepId;
use crate::step::Rendered;
use crate::template::Variables;
use crate::unsubscribe::Link;

/// What all recipients of an event have in common: values, converted once, and contents that
/// depend on nothing else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    common: OnceCell<Arc<Common>>,
    // A workflow has few steps.
    contents: RefCell<Vec<(StepId, Rendered)>>,
}

#[derive(Debug)]
struct Common {
    payload: Value,
    context: Value,
    workflow: Value,
    actor: Option<Value>,
}

// Values of the roots.
#[derive(Debug)]
struct TemplateRoots {
    common: Arc<Common>,
    // Whether a template has asked for more than the common values.
    asked: AtomicBool,
    subscriber_data: SubscriberDataOwned,
    // Value of `subscriber_data`, which few templates ask for.
    subscriber: OnceLock<Value>,
    steps: Option<Value>,
    digested: Option<Value>,
    link: Option<Link>,
    default_zone: TimeZone,
}

impl TemplateData<'_> {
    /// Returns the data for templates. `shared` is that of the event.
    pub(crate) fn variables(&self, shared: &Shared) -> Variables {
        let steps = self.steps.as_ref().map(value);
        let digested = self.digested.as_ref().map(value);
        let (subscriber_data, subscriber) = (self.subscriber.to_static(), OnceLock::new());
        let common = Arc::clone(shared.common.get_or_init(|| Arc::new(Common::of(self))));
        let (asked, link) = (AtomicBool::new(false), self.link.cloned());
        let default_zone = self.default_zone;
        let roots = TemplateRoots {
            common,
            asked,
            subscriber_data,
            subscriber,
            steps,
            digested,
            link,
            default_zone,
        };
        Variables::of(Value::from_object(roots))
    }
}

impl Shared {
    /// Returns the content of a step, if it is that of all recipients.
    pub(crate) fn content(&self, step: StepId) -> Option<Rendered> {
        let contents = self.contents.borrow();
        contents.iter().find(|(of, _)| *of == step).map(|(_, rendered)| rendered.clone())
    }

    /// Keeps the content of a step that was rendered with `variables`, if the templates have asked
    /// for nothing but the common values.
    pub(crate) fn keep(&self, step: StepId, rendered: &Rendered, variables: &Variables) {
        let roots = variables.known().downcast_object_ref::<TemplateRoots>();
        if roots.is_some_and(|roots| !roots.asked.load(Ordering::Relaxed)) {
            self.contents.borrow_mut().push((step, rendered.clone()));
        }
    }
}

impl Common {
    fn of(data: &TemplateData<'_>) -> Self {
        Self {
            payload: value(data.payload),
            context: value(&data.context),
            workflow: value(&data.workflow),
            actor: data.actor.as_ref().map(value),
        }
    }
}

impl SubscriberDataOwned {
    fn value(&self) -> Value {
        match self {
            Self::Record(subscriber) => value(subscriber),
            Self::Object(data) => value(data),
        }
    }
}

fn value(part: impl Serialize) -> Value {
    Value::from(Serde(part))
}

impl Object for TemplateRoots {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let Common { payload, context, workflow, actor } = &*self.common;
        let name = key.as_str()?;
        match name {
            "payload" => return Some(payload.clone()),
            "context" => return Some(context.clone()),
            "workflow" => return Some(workflow.clone()),
            "actor" => return actor.clone(),
            DEFAULT_ZONE => return Some(Value::from(self.default_zone.as_str())),
            _ => self.asked.store(true, Ordering::Relaxed),
        }
        match name {
            "subscriber" => {
                Some(self.subscriber.get_or_init(|| self.subscriber_data.value()).clone())
            }
            "steps" => self.steps.clone(),
            // A link is signed for the templates that show it.
            "unsubscribeUrl" => self.link.as_ref().map(|link| Value::from(link.to_url())),
            _ => {
                let found = self.digested.as_ref()?.get_item(key).ok()?;
                (!found.is_undefined()).then_some(found)
            }
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}
