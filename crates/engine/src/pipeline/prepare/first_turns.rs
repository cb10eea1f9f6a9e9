//! First turns of the notifications of an event, planned for one subscriber after the other.

use domain::context::ContextSet;
use domain::event::Event;
use domain::ids::{InternalSubscriberId, WorkflowId};
use domain::plan::{self, Facts, Run};
use domain::subscriber::Subscriber;
use store::layout;

use crate::Result;
use crate::pipeline::facts::Preferences;
use crate::pipeline::planned::{FirstTurn, PlannedRecipient};
use crate::pipeline::texts;
use crate::tx::View;

/// An event whose notifications are planned.
pub(crate) struct FirstTurns<'e> {
    pub(super) event: &'e Event<'e>,
    run: Run<'e>,
    /// Size of the trigger, in bytes.
    trigger_size: usize,
}

impl<'e> FirstTurns<'e> {
    /// Returns the plans of an event whose trigger takes `trigger_size` bytes.
    pub(crate) fn of(event: &'e Event<'e>, trigger_size: usize) -> Self {
        Self { event, run: Run::new(event), trigger_size }
    }

    /// Tells the store which rows of these subscribers are going to be read.
    pub(crate) fn prefetch(
        &self,
        view: &dyn View,
        ids: impl Iterator<Item = InternalSubscriberId>,
    ) -> Result<()> {
        prefetch(view, ids, self.event.context_keys, self.event.workflow.id)
    }

    /// Plans the first turn of the notification for a subscriber.
    pub(crate) fn plan(&self, view: &dyn View, subscriber: &Subscriber) -> Result<FirstTurn> {
        let Event { workflow, contexts, context_keys, actor, now, .. } = *self.event;
        if workflow.is_paused() {
            return Ok(FirstTurn::Later);
        }
        let preferences = Preferences::of(view, subscriber.id, context_keys, Some(workflow.id))?;
        let facts = preferences.facts(Some(subscriber), Some(workflow), contexts, now);
        let texts = texts::of_workflow(view, workflow, Some(subscriber))?;
        let facts = Facts { actor, texts: texts.as_ref(), ..facts };
        Ok(FirstTurn::Planned(plan::turn(&self.run, facts)))
    }

    /// Returns the size of the notification for a recipient and of its first messages, in bytes. Each
    /// has the payload and the overrides of the trigger.
    pub(crate) fn size_of(&self, recipient: &PlannedRecipient) -> usize {
        let messages = match &recipient.first {
            FirstTurn::Planned(actions) => plan::messages_size(self.trigger_size, actions),
            FirstTurn::Later => 0,
        };
        self.trigger_size + messages
    }
}

/// Tells the store which rows of subscribers are going to be read, by their plans and by the
/// transaction behind them.
pub(super) fn prefetch(
    view: &dyn View,
    ids: impl Iterator<Item = InternalSubscriberId>,
    contexts: &ContextSet,
    workflow: WorkflowId,
) -> Result<()> {
    let environment = view.environment_id();
    let mut keys = ids.flat_map(|id| {
        let counters = layout::message_counters(environment, id).into_parts();
        Preferences::keys(environment, id, contexts, workflow).into_iter().chain([counters])
    });
    Ok(view.prefetch(&mut keys)?)
}
