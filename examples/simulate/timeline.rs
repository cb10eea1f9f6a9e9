//! The timeline: the logs of all jobs, in the order of time.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

use serde_json::Value;
use tidings::Scope;
use tidings::ids::MessageId;
use tidings::job::{Detail, ExecutionDetail, Job};
use tidings::json::Object;
use tidings::message::{Message, MessageQuery};
use tidings::notification::{Notification, NotificationQuery};
use tidings::time::Timestamp;

// A line of the timeline: where it stands among those of the same time, and what it says.
type Line = ((Timestamp, usize, usize), String);

/// Returns the timeline of an environment.
pub fn of(env: &Scope) -> Result<String, Box<dyn Error>> {
    let mut notifications = env.notifications().list(&NotificationQuery::default().limit(50))?.data;
    notifications.reverse();
    let mut messages = BTreeMap::new();
    for subscriber in ["ada", "bob"] {
        let all = env.messages().list(subscriber, &MessageQuery::default().limit(100))?;
        messages.extend(all.data.into_iter().map(|message| (message.id, message)));
    }
    let told = notifications.iter().enumerate();
    let mut lines: Vec<_> = told.flat_map(|(at, told)| lines_of(at, told, &messages)).collect();
    lines.sort();
    Ok(printed(&lines))
}

fn printed(lines: &[Line]) -> String {
    let mut text = "● happens   ✓ is sent   … waits   ✗ is not sent\n".to_owned();
    let mut today = String::new();
    for ((at, ..), line) in lines {
        // As in `2026-01-05T08:00:00.000Z`.
        let written = at.to_string();
        let (day, time) = written.split_once('T').unwrap_or_default();
        if day != today {
            today = day.into();
            let _ = writeln!(text, "\n── {}, {day} ──", weekday(*at));
        }
        let time = time.get(..8).unwrap_or(time);
        let _ = writeln!(text, "  {time}  {line}");
    }
    text
}

fn weekday(at: Timestamp) -> &'static str {
    const DAYS: [&str; 7] =
        ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    let days = at.since(Timestamp::default()).as_secs() / (24 * 60 * 60);
    let name = usize::try_from(days % 7).ok().and_then(|number| DAYS.get(number));
    name.copied().unwrap_or_default()
}

// The time of an entry as a weekday and a time of day.
fn moment(raw: &str) -> String {
    let Ok(at) = raw.parse::<Timestamp>() else { return raw.to_owned() };
    let time = raw.split_once('T').and_then(|(_, time)| time.get(..5));
    format!("{}, {}", weekday(at), time.unwrap_or_default())
}

fn lines_of(
    number: usize,
    notification: &Notification,
    messages: &BTreeMap<MessageId, Message>,
) -> Vec<Line> {
    let who = notification.subscriber.as_ref().map(|who| who.subscriber_id.to_string());
    let workflow = notification.workflow.as_ref().map(|workflow| workflow.name.clone());
    let (who, workflow) = (who.unwrap_or_default(), workflow.unwrap_or_default());
    let line = |sign: &str, what: &str, said: &str| {
        format!("{who:<4} {workflow:<8} {sign} {what:<9} {said}").trim_end().to_owned()
    };
    let payload = notification.payload.as_ref().map(written).unwrap_or_default();
    let mut lines = vec![((notification.created_at, number, 0), line("●", "event", &payload))];
    let mut place = 0;
    for job in &notification.jobs {
        for entry in &job.execution_details {
            place += 1;
            let Some((sign, said)) = said(entry, job, messages) else { continue };
            let at = entry.created_at.unwrap_or(notification.created_at);
            lines.push(((at, number, place), line(sign, &job.kind.to_string(), &said)));
        }
    }
    lines
}

// A payload in words, as in `order A-1001`.
fn written(payload: &Object) -> String {
    let said = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields: Vec<_> =
        payload.iter().map(|(key, value)| format!("{key} {}", said(value))).collect();
    fields.join(", ")
}

// What an entry in the log of a job says, if a reader of the week wants to know it.
fn said(
    entry: &ExecutionDetail,
    job: &Job,
    messages: &BTreeMap<MessageId, Message>,
) -> Option<(&'static str, String)> {
    let raw = entry.raw.as_deref().unwrap_or_default();
    Some(match entry.detail {
        Detail::MessageCreated | Detail::MessageSent => {
            let message = messages.get(&job.message_id?)?;
            let text = message.subject.as_deref().or(message.text());
            ("✓", text.unwrap_or_default().to_owned())
        }
        Detail::DigestOpened | Detail::StepDelayed => ("…", format!("waits until {}", moment(raw))),
        Detail::DigestMerged => ("…", "joins what is collected".into()),
        Detail::DeferredToSchedule => ("…", format!("quiet hours, waits until {}", moment(raw))),
        Detail::ProviderRetry => ("…", format!("{raw}, is tried again")),
        Detail::StepQueued
        | Detail::IntegrationSelected
        | Detail::ThrottlePassed
        | Detail::DelayFinished
        | Detail::DigestClosed => return None,
        Detail::ThrottleLimitExceeded => ("✗", "two within an hour are enough".into()),
        Detail::PrecedingStepSkipped => ("✗", "the step before it has stopped here".into()),
        Detail::FilteredBySubscriberWorkflowPreference => {
            ("✗", "the subscriber has switched it off".into())
        }
        Detail::Canceled => ("✗", "the event was canceled".into()),
        other => ("✗", other.to_string().replace('_', " ")),
    })
}
