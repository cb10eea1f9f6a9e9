//! The workflows that are triggered.

use domain::environment::Home;
use domain::error::Invalid;
use domain::ids::WorkflowId;
use domain::step::{Delay, DigestWindow, Step, StepKind, WorkflowStep};
use domain::time::Timestamp;
use domain::vocabulary::{Channel, TimeUnit};
use domain::workflow::{Workflow, WorkflowCreate};

use crate::draw::{Lots, sound};

/// Subjects of events.
const THINGS: [&str; 10] = [
    "order", "comment", "invoice", "task", "document", "project", "ticket", "booking", "payment",
    "report",
];

/// Kinds of events.
const EVENTS: [&str; 10] = [
    "created",
    "mentioned",
    "overdue",
    "assigned",
    "shared",
    "updated",
    "closed",
    "confirmed",
    "failed",
    "ready",
];

/// The channels of the first workflows, and of the next ones again.
const CHANNELS: [&[Channel]; 10] = [
    &[Channel::InApp, Channel::Email, Channel::Push],
    &[Channel::InApp, Channel::Push],
    &[Channel::InApp, Channel::Email],
    &[Channel::InApp, Channel::Email, Channel::Chat],
    &[Channel::InApp],
    &[Channel::Email, Channel::Sms],
    &[Channel::InApp, Channel::Email, Channel::Push],
    &[Channel::InApp, Channel::Chat],
    &[Channel::Email],
    &[Channel::InApp, Channel::Sms, Channel::Push],
];

/// The workflow of `rank`, which was made at `at` by the name of `id`.
pub(crate) fn workflow(
    rank: usize,
    home: &Home,
    (id, at): (WorkflowId, Timestamp),
    lots: &mut Lots,
) -> Workflow {
    let new_step = || (lots.id(at), lots.id(at));
    let mut workflow = sound(Workflow::new(id, home, create(rank), new_step, at));
    if let Some(kind) = waiting(rank) {
        // The engine takes no such step yet, and so its domain makes none.
        let step = Step::new(kind).name("Wait");
        let wait = WorkflowStep::new(lots.id(at), lots.id(at), step.definition);
        if let Some(first) = workflow.steps.first_mut() {
            first.parent_id = Some(wait.id);
        }
        workflow.steps.insert(0, wait);
    }
    workflow
}

fn create(rank: usize) -> WorkflowCreate {
    let (tens, ones) = (rank / 10, rank % 10);
    // In each hundred of ranks, every event is combined with every subject once.
    let (thing, event) = (nth(THINGS, ones), nth(EVENTS, tens + ones));
    let more = if rank < 100 { String::new() } else { format!("-{}", rank / 100 + 1) };
    let (first, rest) = thing.split_at(1);
    let name = format!("{}{rest} {event}", first.to_uppercase());
    let steps: Vec<_> = nth(CHANNELS, rank).iter().map(|channel| sound(step(*channel))).collect();
    let create = sound(WorkflowCreate::new(format!("{thing}-{event}{more}"), name));
    let tags = [thing, if ones < 5 { "product" } else { "billing" }];
    create.tags(tags).steps(steps).critical(ones == 9)
}

fn nth<T: Copy + Default>(things: [T; 10], place: usize) -> T {
    things.get(place % 10).copied().unwrap_or_default()
}

fn step(channel: Channel) -> Result<Step, Invalid> {
    Ok(match channel {
        Channel::InApp => Step::in_app(BODY)?.subject(TITLE)?.url(URL)?.name("Inbox"),
        Channel::Email => Step::email(TITLE, BODY)?.name("E-mail"),
        Channel::Push => Step::push(TITLE, BODY)?.name("Push"),
        Channel::Sms => Step::sms(BODY)?.name("Text message"),
        Channel::Chat => Step::chat(BODY)?.name("Chat"),
    })
}

const TITLE: &str = "{{payload.title}}";
const BODY: &str = "{{payload.actor.name}}: {{payload.title}}, {{payload.reference}}";
const URL: &str = "{{payload.url}}";

// Step before the first message of the workflow: a digest, a delay, or none.
fn waiting(rank: usize) -> Option<StepKind> {
    let (amount, unit) = (5, TimeUnit::Minutes);
    match rank % 10 {
        2 => Some(StepKind::Digest { metadata: DigestWindow::new(amount, unit).into() }),
        5 => Some(StepKind::Delay { metadata: Delay::lasting(amount, unit) }),
        _ => None,
    }
}
