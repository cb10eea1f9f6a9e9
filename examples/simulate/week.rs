//! The week: workflows, subscribers, and what happens.

use std::error::Error;

use serde_json::json;
use tidings::integration::IntegrationCreate;
use tidings::preference::{
    GlobalPreferenceUpdate, WorkflowPreferenceUpdate, WorkflowPreferenceUpdates,
};
use tidings::schedule::{DaySchedule, Schedule};
use tidings::step::{Delay, DigestWindow, Step, Throttle};
use tidings::subscriber::SubscriberCreate;
use tidings::time::Timestamp;
use tidings::trigger::Trigger;
use tidings::vocabulary::{Channel, TimeUnit, Weekday};
use tidings::workflow::WorkflowCreate;
use tidings::{
    Clock, Delivery, Engine, ManualClock, Provider, ProviderReceipt, Result, Scope, SendError,
};

use Happening::{Cancel, Event, NoEmail};

/// Monday morning.
pub const START: &str = "2026-01-05T08:00:00Z";

const END: &str = "2026-01-12T10:00:00Z";

// Something that happens in the shop.
enum Happening {
    // An event of a workflow for a subscriber, with a field of its payload.
    Event(&'static str, &'static str, (&'static str, &'static str)),
    // The event with this transaction id is called off.
    Cancel(&'static str),
    // A subscriber switches off the e-mails of a workflow.
    NoEmail(&'static str, &'static str),
}

const WEEK: &[(&str, Happening)] = &[
    ("2026-01-05T09:00:00Z", Event("trial", "ada", ("plan", "Studio"))),
    ("2026-01-05T09:30:00Z", Event("trial", "bob", ("plan", "Home"))),
    ("2026-01-05T11:00:00Z", Event("replies", "ada", ("by", "cleo"))),
    ("2026-01-05T11:20:00Z", Event("replies", "ada", ("by", "dan"))),
    ("2026-01-05T11:45:00Z", Event("replies", "ada", ("by", "eve"))),
    ("2026-01-05T21:15:00Z", Event("shipped", "bob", ("order", "A-1001"))),
    ("2026-01-06T22:30:00Z", Event("code", "bob", ("code", "4711"))),
    ("2026-01-07T09:00:00Z", Cancel("trial-bob-2026-01-05T09:30:00Z")),
    ("2026-01-07T10:00:00Z", Event("shipped", "ada", ("order", "A-1002"))),
    ("2026-01-08T03:00:00Z", Event("alert", "ada", ("sensor", "The freezer"))),
    ("2026-01-08T03:10:00Z", Event("alert", "ada", ("sensor", "The freezer"))),
    ("2026-01-08T03:20:00Z", Event("alert", "ada", ("sensor", "The freezer"))),
    ("2026-01-08T04:30:00Z", Event("alert", "ada", ("sensor", "The freezer"))),
    ("2026-01-09T12:00:00Z", NoEmail("ada", "shipped")),
    ("2026-01-09T14:00:00Z", Event("shipped", "ada", ("order", "A-1003"))),
    ("2026-01-10T16:40:00Z", Event("replies", "bob", ("by", "cleo"))),
];

/// A service for every channel, which is out of order for a minute on Wednesday.
#[derive(Debug)]
pub struct Service {
    clock: ManualClock,
    outage: [Timestamp; 2],
}

impl Service {
    pub fn new(clock: ManualClock) -> Result<Self, Box<dyn Error>> {
        let outage = ["2026-01-07T10:00:00Z".parse()?, "2026-01-07T10:01:00Z".parse()?];
        Ok(Self { clock, outage })
    }
}

impl Provider for Service {
    fn send(&self, _: &Delivery) -> Result<ProviderReceipt, SendError> {
        let [from, to] = self.outage;
        let now = self.clock.now();
        if from <= now && now < to {
            return Err(SendError::retryable("421 out of order"));
        }
        Ok(ProviderReceipt::default())
    }
}

/// Creates accounts, workflows and subscribers.
pub fn furnish(env: &Scope) -> Result<()> {
    for (provider, channel) in [("mail", Channel::Email), ("text", Channel::Sms)] {
        env.integrations().create(&IntegrationCreate::new(provider, channel)?)?;
    }
    for workflow in workflows()? {
        env.workflows().create(&workflow)?;
    }
    for (name, phone) in [("ada", "+44 20 7946 0001"), ("bob", "+44 20 7946 0002")] {
        let address = format!("{name}@example.org");
        env.subscribers().create(&SubscriberCreate::new(name)?.email(address)?.phone(phone))?;
    }
    // Bob is disturbed on working days only, from nine to five.
    let (mut hours, nine) = (Schedule::open(), DaySchedule::open().hours("09:00 AM", "05:00 PM")?);
    for day in Weekday::ALL {
        let is_free = matches!(day, Weekday::Saturday | Weekday::Sunday);
        let of_day = if is_free { DaySchedule::closed() } else { nine.clone() };
        hours = hours.day(*day, of_day);
    }
    let quiet = GlobalPreferenceUpdate::default().schedule(hours);
    env.preferences("bob")?.update_global(&quiet)?;
    Ok(())
}

fn workflows() -> Result<Vec<WorkflowCreate>> {
    let heads = "{{ total_count }} repl{{ 'y' if total_count == 1 else 'ies' }}, \
                 the last by {{ last.payload.by }}";
    let trial = "Your trial of {{ payload.plan }} ends on Friday";
    Ok(vec![
        WorkflowCreate::new("replies", "Replies")?
            .step(Step::digest(DigestWindow::new(1, TimeUnit::Hours)))
            .step(Step::in_app(heads)?)
            .step(Step::email(heads, "<p>Read them.</p>")?),
        WorkflowCreate::new("trial", "Trial")?
            .step(Step::in_app("Welcome to {{ payload.plan }}")?)
            .step(Step::delay(Delay::lasting(3, TimeUnit::Days)))
            .step(Step::email(trial, "<p>Stay with us.</p>")?),
        WorkflowCreate::new("alert", "Alert")?
            .step(Step::throttle(Throttle::per(1, TimeUnit::Hours).threshold(2)))
            .step(Step::sms("{{ payload.sensor }} is too hot")?),
        WorkflowCreate::new("code", "Code")?
            .critical(true)
            .step(Step::sms("Your code is {{ payload.code }}")?),
        WorkflowCreate::new("shipped", "Shipped")?
            .step(Step::in_app("Order {{ payload.order }} is on its way")?)
            .step(Step::email("Order {{ payload.order }} is on its way", "<p>Soon.</p>")?),
    ])
}

/// Lets the week pass: does what is due before each happening, and what is due after the last.
pub fn pass(engine: &Engine, env: &Scope) -> Result<(), Box<dyn Error>> {
    for (at, happening) in WEEK {
        engine.delivery().run_until(at.parse()?)?;
        match happening {
            Event(workflow, to, (key, value)) => {
                let event = Trigger::new(*workflow, *to)?.payload(json!({ *key: value }))?;
                let event = event.transaction_id(format!("{workflow}-{to}-{at}"))?;
                env.events().trigger(&event)?;
            }
            Cancel(transaction_id) => {
                env.events().cancel(*transaction_id)?;
            }
            NoEmail(subscriber, workflow) => {
                let no_email = WorkflowPreferenceUpdate::new(*workflow).with(Channel::Email, false);
                let update = WorkflowPreferenceUpdates::default().preference(no_email);
                env.preferences(*subscriber)?.update_bulk(&update)?;
            }
        }
    }
    engine.delivery().run_until(END.parse()?)?;
    Ok(())
}
