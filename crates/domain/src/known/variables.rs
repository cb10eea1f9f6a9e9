//! Data for templates: values of the roots, of which the recipients of an event share most.

use std::cell::OnceCell;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, Serde, Value};
use serde::Serialize;

use super::Known;
use crate::template::Variables;

/// Values that all recipients of an event have in common, converted once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(OnceCell<Arc<Common>>);

#[derive(Debug)]
struct Common {
    payload: Value,
    context: Value,
    workflow: Value,
    actor: Option<Value>,
}

// Values of the roots.
#[derive(Debug)]
struct Roots {
    common: Arc<Common>,
    subscriber: Value,
    steps: Option<Value>,
    digested: Option<Value>,
}

impl Known<'_> {
    /// Returns the data for templates. `shared` is that of the event.
    pub(crate) fn variables(&self, shared: &Shared) -> Variables {
        let steps = self.steps.map(value);
        let digested = self.digested.as_ref().map(value);
        let subscriber = value(&self.subscriber);
        let common = Arc::clone(shared.0.get_or_init(|| Arc::new(Common::of(self))));
        Variables::of(Value::from_object(Roots { common, subscriber, steps, digested }))
    }
}

impl Common {
    fn of(known: &Known<'_>) -> Self {
        Self {
            payload: value(known.payload),
            context: value(&known.context),
            workflow: value(&known.workflow),
            actor: known.actor.as_ref().map(value),
        }
    }
}

fn value(part: impl Serialize) -> Value {
    Value::from(Serde(part))
}

impl Object for Roots {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let Common { payload, context, workflow, actor } = &*self.common;
        match key.as_str()? {
            "payload" => Some(payload.clone()),
            "subscriber" => Some(self.subscriber.clone()),
            "context" => Some(context.clone()),
            "workflow" => Some(workflow.clone()),
            "actor" => actor.clone(),
            "steps" => self.steps.clone(),
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
