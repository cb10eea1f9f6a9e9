//! Realistic activity, for benches of a host application.
//!
//! Subscribers, workflows, topics and contexts have ranks, counted from 0. The lower the rank, the
//! more often it comes up. So a bench can ask for a subscriber with many notifications, or with few.
//!
//! ```
//! use tidings::Engine;
//! use tidings::bench_data::{self, Profile};
//! use tidings::notification::NotificationQuery;
//!
//! # fn main() -> tidings::Result<()> {
//! let engine = Engine::in_memory();
//! let env = engine.organization("acme")?.development()?;
//! let activity = bench_data::load(&env, &Profile::default(), 42, 1_000)?;
//!
//! let of = |rank| {
//!     let subscriber = activity.population().subscriber_id(rank);
//!     env.notifications().count(&NotificationQuery::default().subscriber_ids([subscriber])?)
//! };
//! assert!(of(0)? > of(1_000)?);
//! # Ok(())
//! # }
//! ```

use ::domain::notification::NotificationQuery;
use ::domain::subscriber::SubscriberQuery;
use ::domain::topic::TopicQuery;
use ::domain::trigger::AcceptedTrigger;
use ::domain::workflow::WorkflowQuery;
use activity::Facets;
use store::{Record, Transaction, WriteRecords};

pub use ::bench_data::*;

use crate::{Entity, Error, Result, Scope};

// Number of records that one transaction writes.
const AT_A_TIME: usize = 1_000;

/// Fills an empty environment with at least `notifications` notifications, and with the subscribers,
/// workflows and topics that they name. The same profile and seed are the same activity, but for
/// the ids of the environment.
///
/// Returns the activity, which goes on after the last notification.
///
/// # Errors
///
/// [`Error::Conflict`], if there are subscribers, workflows or notifications already;
/// [`Error::Store`].
pub fn load(env: &Scope, profile: &Profile, seed: u64, notifications: u64) -> Result<Activity> {
    check_empty(env)?;
    let mut activity = Activity::new(profile.clone(), env.home.clone(), seed);
    let population = activity.population();
    put_all(env, population.workflows().iter().cloned())?;
    put_all(env, population.topics().iter().cloned())?;
    put_all(env, population.subscribers())?;
    while activity.notifications() < notifications {
        put_activity(env, &mut activity, notifications)?;
    }
    Ok(activity)
}

// Refuses an environment with records, because they would mix with the loaded ones.
fn check_empty(env: &Scope) -> Result<()> {
    let subscribers = env.subscribers().list(&SubscriberQuery::default())?.data.len();
    let workflows = env.workflows().list(&WorkflowQuery::default())?.data.len();
    let topics = env.topics().list(&TopicQuery::default())?.data.len();
    let notifications = env.notifications().list(&NotificationQuery::default())?.data.len();
    if subscribers + workflows + topics + notifications > 0 {
        return Err(taken(env));
    }
    Ok(())
}

fn taken(env: &Scope) -> Error {
    Error::conflict(Entity::Environment, env.environment_id())
}

fn put_all<R: Record>(env: &Scope, records: impl Iterator<Item = R>) -> Result<()> {
    let mut records = records.peekable();
    while records.peek().is_some() {
        let some: Vec<R> = records.by_ref().take(AT_A_TIME).collect();
        write(env, |txn| Ok(some.iter().try_for_each(|record| txn.insert(record))?))?;
    }
    Ok(())
}

// Writes the notifications of a number of triggers.
fn put_activity(env: &Scope, activity: &mut Activity, notifications: u64) -> Result<()> {
    let (index, mut some) = (env.engine.activity(), Vec::new());
    let until = notifications.min(activity.notifications() + AT_A_TIME as u64);
    while activity.notifications() < until {
        some.extend(activity.next());
    }
    write(env, |txn| {
        for triggered in &some {
            let mut appender = index.append(&*txn, env.environment_id())?;
            for notification in &triggered.notifications {
                let next = appender.next_id(notification.created_at, 0);
                if next.ordinal() != notification.id.ordinal() {
                    return Err(taken(env));
                }
                txn.insert(notification)?;
                appender.add(Facets::from(notification));
            }
            let id = triggered.transaction_id.clone();
            let at = triggered.created_at;
            appender.finish(txn, AcceptedTrigger::bare(env.environment_id(), at, id))?;
        }
        Ok(())
    })?;
    Ok(index.tend_all(env.engine.store(), env.environment_id())?)
}

fn write(env: &Scope, mut body: impl FnMut(&mut dyn Transaction) -> Result<()>) -> Result<()> {
    env.engine.write(env.engine.now(), |draft| body(draft.writer))
}
