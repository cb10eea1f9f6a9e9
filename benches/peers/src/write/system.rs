//! What is compared.

use std::sync::Arc;

use bench_data::Calls;
use tidings::ids::SubscriberId;
use tidings::trigger::Trigger;

/// The triggers of one call. They are durable together.
pub(crate) type Call = Arc<[Trigger]>;

/// A system that takes in triggers.
pub(crate) trait System: Sync {
    /// Name in tables.
    fn name(&self) -> &'static str;

    /// Takes in a call. It is durable when this returns.
    fn write(&self, call: &Call);

    /// Takes in calls before the clock runs. They need not be durable one by one.
    fn fill(&mut self, calls: &mut dyn Iterator<Item = Call>);

    /// Returns `true` if the data is in a file of this process.
    fn has_a_file(&self) -> bool;

    /// Closes the file and opens it again, with nothing in memory.
    fn reopen(&mut self);

    /// Returns the texts in the inbox of a subscriber, in alphabetical order.
    fn inbox(&self, subscriber: &SubscriberId) -> Vec<String>;

    /// Returns a line for each notification of a subscriber, in alphabetical order: the workflow, the
    /// contexts, the order of the payload and what the log of its job says.
    fn listed(&self, subscriber: &SubscriberId) -> Vec<String>;
}

/// Panics unless all systems give the same answers about some of the subscribers.
pub(crate) fn compare(systems: &[Box<dyn System>], subscribers: usize) {
    let first = &systems[0];
    for number in (0..subscribers).step_by(subscribers / 50) {
        let subscriber = Calls::subscriber_id(number);
        let (inbox, listed) = (first.inbox(&subscriber), first.listed(&subscriber));
        for system in &systems[1..] {
            let name = system.name();
            assert_eq!(inbox, system.inbox(&subscriber), "{name}: inbox of {subscriber}");
            assert_eq!(listed, system.listed(&subscriber), "{name}: list of {subscriber}");
        }
    }
}
