//! A task that cannot be done, because a record cannot be read, leaves its lane for the quarantine, and
//! the others go on.

use domain::notification::Notification;
use domain::quarantine::Unreadable;
use domain::task::Task;
use store::{Witness, WriteRecords};

use super::lease::Leased;
use crate::damage;
use crate::pipeline::facts::RunFacts;
use crate::pipeline::live_events::LiveEvents;
use crate::resources::{integrations, notifications};
use crate::tx::{Reading, Tx};
use crate::{Engine, Error, Result};

/// Moves a task into quarantine that `unreadable` keeps from being done.
pub(super) fn move_task(tx: &mut Tx<'_>, task: &Task, unreadable: &Unreadable) -> Result<()> {
    tx.remove(task)?;
    damage::quarantine_with_task(&mut tx.draft, task, unreadable)
}

/// Does `work` on a task. Returns the record that keeps it from being done, if there is one. If all that the
/// task needs can be read at a second look, the work is done once more: the first look may have met a
/// change of the keys or of the rows, and a task that is put into quarantine stays there.
pub(super) fn unless_unreadable<T>(
    engine: &Engine,
    leased: &Leased,
    mut work: impl FnMut() -> Result<T>,
) -> Result<Result<T, Unreadable>> {
    let error = match work() {
        Ok(done) => return Ok(Ok(done)),
        Err(error) => error,
    };
    if unreadable_without_key(&error).is_none() {
        return Err(error);
    }
    if let Some(found) = find_unreadable(engine, leased)? {
        return Ok(Err(found));
    }
    // What fails again is in a record that only this work reads.
    work().map(Ok).or_else(|error| unreadable_without_key(&error).map(Err).ok_or(error))
}

/// Returns the record that cannot be read, of those that a task needs.
fn find_unreadable(engine: &Engine, leased: &Leased) -> Result<Option<Unreadable>> {
    let (home, now) = (leased.task.home(), leased.now(engine));
    engine.read(|snapshot| {
        let witness = Witness::new(snapshot);
        let view = Reading { engine, home: &home, snapshot: &witness };
        let found = notifications::of_work(&view, &leased.task.work);
        let facts = |found: Notification| {
            RunFacts::of(&view, &found, found.next_job(), &LiveEvents::unbounded(now))?;
            integrations::check_readable(&view)
        };
        let read = found.and_then(|found| found.map_or(Ok(()), facts));
        Ok(match read {
            Err(Error::Store(error)) => witness.unreadable(&error),
            Ok(()) | Err(_) => None,
        })
    })
}

/// Returns what cannot be read, where the record is not known.
fn unreadable_without_key(error: &Error) -> Option<Unreadable> {
    let (table, source) = error.corruption()?;
    Some(Unreadable { table, key: Vec::new(), value: Vec::new(), reason: source.to_string() })
}

#[cfg(test)]
mod tests {
    use domain::step::Step;
    use domain::trigger::Trigger;
    use domain::workflow::WorkflowCreate;
    use store::memory::MemoryStore;

    use super::super::claim;
    use super::super::claim_size::ClaimSize;
    use super::*;

    fn damaged() -> Error {
        Error::Store(store::Error::Corrupt { table: "messages", source: "torn".into() })
    }

    /// Number of times that the work fails, with whether it is done in the end and how often it was tried.
    #[test]
    fn work_whose_records_are_sound_is_done_once_more() {
        let engine = Engine::builder().build(MemoryStore::default());
        let env = engine.organization("acme").unwrap().development().unwrap();
        let mail = WorkflowCreate::new("mail", "Mail").unwrap();
        env.workflows().create(&mail.step(Step::email("Hello", "Hello").unwrap())).unwrap();
        env.events().trigger(&Trigger::new("mail", "ada").unwrap()).unwrap();
        let claimed = claim::claim(&engine, ClaimSize::default()).unwrap();
        let [leased] = &claimed.leased[..] else { panic!("one task is due") };
        for (failures, is_done, expected) in [(0, true, 1), (1, true, 2), (2, false, 2)] {
            let mut tried = 0;
            let done = unless_unreadable(&engine, leased, || {
                tried += 1;
                if tried > failures { Ok(()) } else { Err(damaged()) }
            });
            let unreadable = done.unwrap().err().map(|unreadable| unreadable.reason);
            assert_eq!(unreadable, (!is_done).then(|| "torn".to_owned()));
            assert_eq!(tried, expected);
        }
        let other = || Err::<(), _>(Error::not_found(crate::Entity::Message, "m"));
        assert!(unless_unreadable(&engine, leased, other).is_err());
    }
}
