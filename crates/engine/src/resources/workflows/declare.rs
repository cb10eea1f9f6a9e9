//! Workflows that the host application declares in its code.

use std::collections::HashSet;
use std::sync::Arc;

use domain::ids::WorkflowId;
use domain::workflow::{Undeclared, Workflow, WorkflowCreate, WorkflowSync, WorkflowSyncReport};
use store::{Step, WriteRecords, layout};

use super::{Workflows, being_deleted, close, known, remove, step_ids, translate};
use crate::resources::cascade::Removed;
use crate::tx::{Tx, View};
use crate::{Error, Result};

// Remainder of a synchronization after its first transaction.
struct Rest {
    report: WorkflowSyncReport,
    to_delete: Vec<WorkflowId>,
    removed: Removed,
}

// Result of a declaration.
enum Change {
    Created,
    Changed,
    Nothing,
}

impl Workflows<'_> {
    /// Creates the workflow of that identifier, or changes it to the declaration. An equal
    /// declaration writes nothing.
    ///
    /// A host application that declares its workflows in code calls this when it starts. The
    /// declaration replaces every field but the preference of the operator
    /// ([`WorkflowUpdate::operator_preference`](domain::workflow::WorkflowUpdate::operator_preference)), and `active` if
    /// it is absent: a workflow that [`sync`](Self::sync) has deactivated is active again, and one that `update` has
    /// deactivated is not.
    /// Matched steps keep their ids, so waiting messages are still sent:
    ///
    /// * A step with an `_id`, a `uuid` or a `name` is matched to the step of its type that has it.
    /// * The other steps are matched by position, if the list of types is unchanged.
    ///
    /// A step that matches none is a new one, and waiting jobs of a step that is matched by none are
    /// skipped ([`Detail::StepDeleted`](crate::job::Detail::StepDeleted)). So name each step, or an
    /// inserted one costs those behind it their waiting messages.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::step::Step;
    /// use tidings::workflow::WorkflowCreate;
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// let greeting = WorkflowCreate::new("greeting", "Greeting")?
    ///     .step(Step::in_app("Hello!")?.name("inbox"));
    /// let created = env.workflows().upsert(&greeting)?;
    /// assert_eq!(env.workflows().upsert(&greeting)?, created);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create). An identifier in use is no conflict.
    pub fn upsert(&self, create: &WorkflowCreate) -> Result<Workflow> {
        self.scope.write("workflows.upsert", create, |tx| Ok(declare(tx, create)?.0))
    }

    /// Creates or changes each of the workflows as [`upsert`](Self::upsert) does, all of them in
    /// one transaction. Reports which of them are new, changed and unchanged, and which workflows
    /// were declared before and are not in the set. Steps are matched by their names: waiting jobs of a
    /// step that is matched by none are skipped.
    ///
    /// The set decides about workflows that are not declared any more. Workflows that were never declared
    /// in code stay, and so do those that cannot be read.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tidings::workflow::{WorkflowCreate, WorkflowSync};
    ///
    /// # let engine = tidings::Engine::in_memory();
    /// # let env = engine.organization("acme")?.development()?;
    /// let shipped = WorkflowCreate::new("shipped", "Shipped")?;
    /// let delivered = WorkflowCreate::new("delivered", "Delivered")?;
    /// let workflows = WorkflowSync::new([shipped.clone(), delivered]);
    /// assert_eq!(env.workflows().sync(&workflows)?.created.len(), 2);
    ///
    /// let report = env.workflows().sync(&WorkflowSync::new([shipped]).deactivate_undeclared())?;
    /// assert_eq!(report.unchanged[0].as_str(), "shipped");
    /// assert_eq!(report.undeclared[0].as_str(), "delivered");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`upsert`](Self::upsert), with the place of the workflow in the set;
    /// [`Error::Invalid`](crate::Error::Invalid), if the set has more than 1,000 workflows, or one of them
    /// twice; [`Error::Store`](crate::Error::Store), if undeclared workflows are to be deleted and a workflow
    /// cannot be read. A deletion that fails leaves the declared workflows as they are declared, and goes on
    /// when the call is made again. Until it ends, a declaration of a workflow that it deletes is refused with
    /// [`Error::BeingDeleted`](crate::Error::BeingDeleted).
    pub fn sync(&self, sync: &WorkflowSync) -> Result<WorkflowSyncReport> {
        let start: Option<Rest> = None;
        self.scope.write_in_steps("workflows.sync", sync, start, |tx, rest| {
            let rest = match rest {
                None => declare_all(tx, sync)?,
                Some(rest) => rest.after_one(tx)?,
            };
            Ok(if rest.to_delete.is_empty() {
                Step::Done(rest.report)
            } else {
                Step::More(Some(rest))
            })
        })
    }
}

fn declare(tx: &mut Tx<'_>, create: &WorkflowCreate) -> Result<(Workflow, Change)> {
    tx.limits().check_data(create.data.as_ref())?;
    let key = layout::by_identifier(tx.environment_id(), &create.identifier);
    let (workflow, change) = match known(tx, &key)? {
        Some(before) if before.is_deleted() => {
            return Err(being_deleted(&create.identifier));
        }
        None => {
            let (step_ids, create) = (|| step_ids(tx), create.clone());
            let workflow = Workflow::declared(tx.id(), tx.home(), create, step_ids, tx.now())?;
            tx.insert(&workflow)?;
            (workflow, Change::Created)
        }
        Some(before) => {
            let after = before.redeclared(create.clone(), || step_ids(tx), tx.now())?;
            tx.replace(&*before, &after)?;
            let change = if after == *before { Change::Nothing } else { Change::Changed };
            (after, change)
        }
    };
    translate(tx, &workflow)?;
    Ok((workflow, change))
}

fn declare_all(tx: &mut Tx<'_>, sync: &WorkflowSync) -> Result<Rest> {
    sync.check()?;
    let mut report = WorkflowSyncReport::default();
    for (index, create) in sync.workflows.iter().enumerate() {
        let declared = declare(tx, create).map_err(|error| placed(error, index))?;
        let list = match declared.1 {
            Change::Created => &mut report.created,
            Change::Changed => &mut report.changed,
            Change::Nothing => &mut report.unchanged,
        };
        list.push(create.identifier.clone());
    }
    let undeclared = undeclared(tx, sync)?;
    report.undeclared = undeclared.iter().map(|one| one.identifier().clone()).collect();
    let to_delete = match sync.undeclared {
        Undeclared::Keep => Vec::new(),
        Undeclared::Deactivate => {
            for one in undeclared.iter().filter(|one| !one.is_deleted()) {
                tx.replace(&**one, &one.undeclared(tx.now()))?;
            }
            Vec::new()
        }
        Undeclared::Delete => {
            // From here on nobody declares them again, only to lose them with a later transaction.
            undeclared.iter().try_for_each(|one| close(tx, one))?;
            undeclared.iter().map(|one| one.id).collect()
        }
    };
    Ok(Rest { report, to_delete, removed: Removed::default() })
}

// The workflows that were declared before and are not in the set, oldest first.
fn undeclared(view: &dyn View, sync: &WorkflowSync) -> Result<Vec<Arc<Workflow>>> {
    let declared: HashSet<_> = sync.workflows.iter().map(|create| &create.identifier).collect();
    let prefix = layout::workflows(view.environment_id());
    // The declarations have decoded most of them.
    let prepared = &view.engine().parts.decoded.prepared;
    let mut workflows = match sync.undeclared {
        Undeclared::Keep | Undeclared::Deactivate => prepared.readable(view, &prefix)?.0,
        // A host that deletes counts on it that nothing is left.
        Undeclared::Delete => prepared.all(view, &prefix)?,
    };
    workflows.retain(|one| one.is_declared() && !declared.contains(one.identifier()));
    Ok(workflows)
}

fn placed(error: Error, index: usize) -> Error {
    error.within(format_args!("workflows[{index}]"))
}

impl Rest {
    // Remainder after the deletion of one more workflow, or of a part of it.
    fn after_one(&self, tx: &mut Tx<'_>) -> Result<Self> {
        let mut to_delete = self.to_delete.clone();
        // It may have been deleted since the first transaction.
        let last =
            to_delete.last().map(|last| known(tx, &layout::workflow(tx.environment_id(), *last)));
        let last = last.transpose()?.flatten();
        let step = last.map_or(Ok(Step::Done(())), |last| remove(tx, &last, &self.removed))?;
        let removed = match step {
            Step::More(removed) => removed,
            Step::Done(()) => {
                to_delete.pop();
                Removed::default()
            }
        };
        Ok(Self { report: self.report.clone(), to_delete, removed })
    }
}
