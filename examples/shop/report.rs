//! What is printed.

use tidings::content::MessageContent;
use tidings::ids::SubscriberId;
use tidings::job::JobStatus;
use tidings::message::{Message, MessageQuery};
use tidings::notification::{Notification, NotificationQuery};
use tidings::page::PageQuery;
use tidings::preference::{Criticality, Layer, PreferencesQuery, WorkflowPreference};
use tidings::subscriber::Subscriber;
use tidings::vocabulary::{Channel, Severity};
use tidings::{Result, Scope};

use crate::data::Shop;
use crate::replay::Replay;
use crate::tables::{at_most, count, heading, local, show, table};
use crate::totals::Totals;

/// What went in.
pub fn shop(shop: &Shop) {
    heading("A WEEK AT LARKSPUR");
    let counts = [
        (shop.workflows.len(), "workflows"),
        (shop.integrations.len(), "integrations"),
        (shop.customers.len(), "subscribers"),
        (shop.preferences.len(), "preferences"),
        (shop.events.len(), "events"),
    ];
    println!(" {}", counts.map(|(number, what)| format!("{} {what}", count(number))).join(", "));
}

/// What came out: how many jobs ended how, on each channel.
pub fn totals(env: &Scope, replay: &Replay) -> Result<()> {
    let mut totals = Totals::default();
    for id in replay.notifications.keys() {
        env.notifications().get(*id)?.jobs.iter().for_each(|job| totals.add(job));
    }
    heading("WHAT CAME OF IT");
    let [events, repeated, notifications] =
        [replay.events, replay.repeated, replay.notifications.len()].map(count);
    println!(" {notifications} notifications of {events} events, {repeated} of them repeated\n");
    show(&totals.table());
    Ok(())
}

/// The newest messages in an inbox, at the local time of its reader.
pub fn inbox(env: &Scope, reader: &SubscriberId) -> Result<()> {
    let reader = env.subscribers().get(reader)?;
    let inbox = env.inbox(&reader.subscriber_id)?;
    let counts = inbox.counts()?;

    heading(format!("THE INBOX OF {}", name(&reader).to_uppercase()));
    let zone = reader.profile.timezone.map_or("UTC", |zone| zone.as_str());
    println!(" {} unread, {} unseen; times of {zone}\n", counts.unread, counts.unseen);
    let mut table = table(["", "received", "subject", "text"]);
    table.add_rows(
        inbox.list(&newest(12))?.data.iter().map(|message| message_row(message, &reader)),
    );
    show(&table);
    Ok(())
}

/// The newest messages.
pub fn newest(limit: u32) -> MessageQuery {
    let page = PageQuery::default().limit(limit);
    MessageQuery::default().page(page)
}

fn message_row(message: &Message, reader: &Subscriber) -> [String; 4] {
    let text = match &message.content {
        Some(MessageContent::Text(text)) => text,
        Some(MessageContent::Blocks(_)) | None => "",
    };
    [
        if message.stage.is_read() { " " } else { "●" }.into(),
        local(message.created_at, reader.profile.timezone),
        at_most(26, message.subject.as_deref().unwrap_or_default()),
        at_most(46, text),
    ]
}

/// Which channels a subscriber gets, and on whose word.
pub fn preferences(env: &Scope, subscriber: &SubscriberId) -> Result<()> {
    let query = PreferencesQuery::default().criticality(Criticality::All);
    let preferences = env.preferences(subscriber)?.get(&query)?;
    let subscriber = env.subscribers().get(subscriber)?;

    heading(format!("THE PREFERENCES OF {}", name(&subscriber).to_uppercase()));
    let channels = Channel::ALL.iter().map(|channel| channel.as_str());
    let mut table = table(["workflow"].into_iter().chain(channels));
    table.add_rows(preferences.workflows.iter().map(preference_row));
    show(&table);
    println!(
        "\n ✓ on, ✗ off, each with the layer that decided; without one, no layer has a preference"
    );
    Ok(())
}

fn preference_row(preference: &WorkflowPreference) -> Vec<String> {
    let cells = preference.overrides.iter().map(|decided| {
        let enabled = preference.channels.get(decided.channel).unwrap_or_default();
        let by = match decided.layer {
            Layer::Default => "",
            Layer::Definition => "workflow",
            Layer::Operator => "dashboard",
            Layer::SubscriberGlobal => "in general",
            Layer::SubscriberWorkflow => "for this",
        };
        format!("{} {by}", if enabled { '✓' } else { '✗' })
    });
    [preference.workflow.name.clone()].into_iter().chain(cells).collect()
}

/// A page of the activity list: the last notifications that matter much.
pub fn activity(env: &Scope) -> Result<()> {
    let query = urgent();
    let page = env.notifications().list(&query)?;

    heading("THE LATEST URGENT NOTIFICATIONS");
    println!(" {}\n", serde_json::to_string(&query).unwrap_or_default());
    let mut table = table(["triggered, UTC", "workflow", "subscriber", "jobs"]);
    table.add_rows(page.data.iter().map(notification_row));
    show(&table);
    if page.has_more {
        println!("\n … and there are more");
    }
    Ok(())
}

/// Notifications that matter much, but not those about passwords.
pub fn urgent() -> NotificationQuery {
    NotificationQuery::default()
        .severities([Severity::High])
        .workflows(["payment-failed", "new-device-login"])
}

fn notification_row(notification: &Notification) -> [String; 4] {
    let workflow = notification.workflow.as_ref().map(|workflow| workflow.name.clone());
    let subscriber = notification.subscriber.as_ref().map(|known| known.subscriber_id.to_string());
    let jobs = notification.jobs.iter().map(|job| {
        let mark = match job.status {
            JobStatus::Completed => '✓',
            JobStatus::Skipped => '–',
            JobStatus::Failed | JobStatus::Canceled => '✗',
            _ => '…',
        };
        format!("{mark} {}", job.kind)
    });
    [
        local(notification.created_at, None),
        workflow.unwrap_or_default(),
        subscriber.unwrap_or_default(),
        jobs.collect::<Vec<_>>().join("  "),
    ]
}

fn name(subscriber: &Subscriber) -> String {
    let names = [&subscriber.profile.first_name, &subscriber.profile.last_name];
    let names: Vec<&str> = names.into_iter().filter_map(|name| name.as_deref()).collect();
    names.join(" ")
}
