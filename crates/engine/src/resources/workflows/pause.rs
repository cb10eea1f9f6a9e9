//! Workflows that are paused.

use domain::ids::WorkflowRef;
use domain::workflow::Workflow;
use store::{WriteRecords, lanes};

use super::{Workflows, get};
use crate::Result;
use crate::tx::Tx;

impl Workflows<'_> {
    /// Pauses a workflow until it is [resumed](Self::resume). Triggers are accepted, and their notifications are in
    /// the activity list. Meanwhile no message is sent or put into an inbox, no delay and no digest ends, and no
    /// function is called. One exception: [`resend`](crate::Notifications::resend) delivers a message in the inbox at
    /// once. The crowd of a broadcast or a large topic is notified after the resumption. Events can be canceled and
    /// expire meanwhile. A call that a provider has begun is not recalled.
    ///
    /// A workflow that is paused stays as it is, and `upsert` and `sync` do not resume it.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use tidings::{step::Step, trigger::Trigger, workflow::WorkflowCreate};
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// # env.workflows().create(
    /// #     &WorkflowCreate::new("order-shipped", "Shipped")?.step(Step::in_app("Shipped")?))?;
    /// env.workflows().pause("order-shipped")?;
    /// env.events().trigger(&Trigger::new("order-shipped", "ada")?)?;
    /// engine.delivery().run_due(100)?;
    /// assert_eq!(env.inbox("ada")?.counts()?.unread, 0);
    /// assert_eq!(engine.delivery().stats()?.total().held, 1);
    ///
    /// env.workflows().resume("order-shipped")?;
    /// engine.delivery().run_due(100)?;
    /// assert_eq!(env.inbox("ada")?.counts()?.unread, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such workflow.
    pub fn pause(&self, name: impl Into<WorkflowRef>) -> Result<Workflow> {
        self.pause_of(name.into().as_str())
    }

    fn pause_of(&self, name: &str) -> Result<Workflow> {
        self.scope.write("workflows.pause", name, |tx| {
            let before = get(tx, name)?;
            let after = before.paused(tx.now());
            if after != *before {
                tx.replace(&*before, &after)?;
                after.lanes().iter().try_for_each(|lane| lanes::hold(tx, lane))?;
            }
            Ok(after)
        })
    }

    /// Resumes a workflow that was [paused](Self::pause): what was due meanwhile is due at once. A
    /// workflow that is not paused stays as it is.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`](crate::Error::NotFound), if there is no such workflow.
    pub fn resume(&self, name: impl Into<WorkflowRef>) -> Result<Workflow> {
        self.resume_of(name.into().as_str())
    }

    fn resume_of(&self, name: &str) -> Result<Workflow> {
        self.scope.write("workflows.resume", name, |tx| {
            let before = get(tx, name)?;
            let after = before.resumed(tx.now());
            if after != *before {
                tx.replace(&*before, &after)?;
                release(tx, &after)?;
            }
            Ok(after)
        })
    }
}

// Lets the tasks of a workflow be claimed.
pub(super) fn release(tx: &mut Tx<'_>, workflow: &Workflow) -> Result<()> {
    Ok(workflow.lanes().iter().try_for_each(|lane| lanes::release(tx, lane))?)
}
