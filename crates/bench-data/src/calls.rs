//! Triggers as a host application calls them.

use domain::context::ContextPayload;
use domain::ids::SubscriberId;
use domain::step::Step;
use domain::trigger::{Recipient, Recipients, Trigger};
use domain::vocabulary::Severity;
use domain::workflow::WorkflowCreate;
use serde_json::json;

use crate::draw::{Lots, Purpose, sound};

/// An endless sequence of triggers whose keys come in no order: random subscribers, random
/// transaction ids, random workflows and one of five context sets.
///
/// The environment has the workflows of [`workflows`](Self::workflows). The triggers create their
/// subscribers.
#[derive(Clone, Debug)]
pub struct Calls {
    lots: Lots,
    subscribers: usize,
}

impl Calls {
    /// Number of workflows.
    pub const WORKFLOWS: usize = 20;

    /// Returns the triggers of a seed, for that number of subscribers.
    pub fn new(seed: u64, subscribers: usize) -> Self {
        let root = Lots::root(seed).bits();
        Self { lots: Lots::new(root, Purpose::Calls, 0), subscribers: subscribers.max(1) }
    }

    /// Workflows of the triggers. Each has one step, whose message goes into the inbox.
    pub fn workflows() -> impl Iterator<Item = WorkflowCreate> {
        (0..Self::WORKFLOWS).map(|number| {
            let step = sound(Step::in_app(BODY).and_then(|step| step.subject(SUBJECT)));
            let workflow = WorkflowCreate::new(workflow(number), format!("Workflow {number}"));
            sound(workflow).severity(severity(number)).step(step)
        })
    }

    /// Returns the id of the subscriber of that number.
    pub fn subscriber_id(number: usize) -> SubscriberId {
        sound(SubscriberId::new(format!("user-{number}")))
    }

    /// Returns the next trigger, for that number of different subscribers: 1 to 100.
    pub fn trigger(&mut self, recipients: usize) -> Trigger {
        let recipients = self.recipients(recipients);
        self.trigger_for(recipients)
    }

    /// Returns the next trigger, for these subscribers.
    pub fn trigger_for(&mut self, recipients: Vec<SubscriberId>) -> Trigger {
        let lots = &mut self.lots;
        let workflow = workflow(lots.between(0, Self::WORKFLOWS - 1));
        let order = format!("A-{}", lots.between(1_000, 999_999));
        let payload = json!({ "order": order, "city": lots.one_of(&CITIES) });
        let transaction_id = format!("txn_{:024x}", lots.many_bits() >> 32);
        let contexts: ContextPayload = lots.one_of(&CONTEXT_SETS).iter().copied().collect();
        let trigger = Trigger::new(workflow, "user-0").and_then(|trigger| trigger.payload(payload));
        let mut trigger = sound(trigger.and_then(|trigger| trigger.transaction_id(transaction_id)));
        trigger.to = Recipients::Many(recipients.into_iter().map(Recipient::from).collect());
        trigger.context = (!contexts.0.is_empty()).then_some(contexts);
        trigger
    }

    fn recipients(&mut self, count: usize) -> Vec<SubscriberId> {
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count.min(self.subscribers) {
            let number = self.lots.between(0, self.subscribers - 1);
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        numbers.into_iter().map(Self::subscriber_id).collect()
    }
}

const SUBJECT: &str = "Order {{ payload.order }}";
const BODY: &str = "Your order {{ payload.order }} is on its way to {{ payload.city }}.";

// Types and ids of the contexts of each context set.
const CONTEXT_SETS: [&[(&str, &str)]; 5] = [
    &[],
    &[("tenant", "north")],
    &[("tenant", "south")],
    &[("tenant", "north"), ("app", "web")],
    &[("tenant", "south"), ("app", "mobile")],
];

const CITIES: [&str; 8] =
    ["Lisbon", "Porto", "Berlin", "New York", "Nairobi", "Osaka", "Lima", "Sydney"];

fn workflow(number: usize) -> String {
    format!("workflow-{number}")
}

fn severity(number: usize) -> Severity {
    match number % 5 {
        0 => Severity::High,
        1 => Severity::Medium,
        _ => Severity::None,
    }
}
