//! Ids in the seeded world that requests can name.

use std::sync::LazyLock;

use domain::environment::InitialKey;
use domain::job::{Job, JobStatus};
use domain::message::{Known, MessageQuery};
use domain::notification::{Notification, NotificationQuery};
use domain::quarantine::QuarantineQuery;
use domain::unsubscribe::UnsubscribeRequest;
use domain::vocabulary::Channel;
use serde_json::{Value, json};
use tidings::Scope;

use crate::seeded;

/// The ids in the seeded world that requests can name.
static IDS: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let env = &seeded::world().env;
    let ada = env.subscribers().get("ada").expect("she is there");
    let integrations = env.integrations().list().expect("they are there");
    let of_inbox = |who: &str, query: MessageQuery| {
        let page = env.inbox(who).and_then(|inbox| inbox.list(&query)).expect("they are there");
        page.data.iter().map(|found| json!(found.id)).collect::<Vec<_>>()
    };
    let questions = MessageQuery::default().workflows(["inbox"]);
    let everything = NotificationQuery::default().limit(50);
    let notifications = env.notifications().list(&everything);
    let notifications = notifications.expect("they are there").data;
    let jobs = |found: &Notification| {
        let sent = found.jobs.iter().filter(|job| job.message_id.is_some());
        let steps = sent.filter(|job| job.check_resent().is_ok()).map(|job| job.step.id);
        steps.map(|step| (found.id, step)).collect::<Vec<_>>()
    };
    // Those that go on with the events of a window.
    let collects = |job: &Job| job.digest.is_some() && job.status != JobStatus::Merged;
    let collecting = notifications.iter().filter(|found| found.jobs.iter().any(collects));
    let collecting = collecting.map(|found| json!(found.id)).collect();
    let sent: Vec<_> = notifications.iter().flat_map(jobs).collect();
    let environments = env.environments().list().expect("they are there");
    let of_environments = environments.iter().flat_map(|environment| &environment.api_keys);
    let keys = env.api_keys().list().expect("they are there");
    let letters = env.dead_letters().list(&crate::parsed(json!({}))).expect("they are there").data;
    let header = |api_key: &InitialKey| json!(format!("ApiKey {}", api_key.key.expose()));
    let headers = of_environments.map(header).collect();
    let layouts = env.layouts().list(&crate::parsed(json!({}))).expect("they are there").data;
    let feed = |who: &str, from_the_start: bool| {
        let newest = env.inbox(who).and_then(|inbox| inbox.cursor()).expect("it is there");
        json!(if from_the_start { newest.moved(None, Known::default()) } else { newest })
    };
    let quarantined = seeded::world()
        .engine
        .quarantine()
        .list(&QuarantineQuery::default().limit(8))
        .expect("they are there");
    let named = |kind: &str, ids: Vec<Value>| {
        let named = ids.into_iter().enumerate().map(|(at, id)| (format!("${kind} {at}"), id));
        named.collect::<Vec<_>>()
    };
    [
        named("authorization", headers),
        named("environment", vec![json!(env.environment_id())]),
        named("subscriber", vec![json!(ada.id)]),
        named("integration", integrations.iter().map(|found| json!(found.id)).collect()),
        named("message", of_inbox("ada", MessageQuery::default())),
        named("archived", of_inbox("ada", MessageQuery::default().archived())),
        named("feed", vec![feed("ada", false), feed("ada", true), feed("bob", true)]),
        named("quarantined", quarantined.data.iter().map(|found| json!(found.id)).collect()),
        named("snoozed", of_inbox("bob", MessageQuery::default().snoozed())),
        named("question", of_inbox("bob", questions)),
        named("notification", notifications.iter().map(|found| json!(found.id)).collect()),
        named("digest", collecting),
        named("sent", sent.iter().map(|(id, _)| json!(id)).collect()),
        named("step", sent.iter().map(|(_, step)| json!(step)).collect()),
        named("letter", letters.iter().map(|found| json!(found.id)).collect()),
        named("token", tokens(env)),
        named("key", keys.iter().map(|found| json!(found.id)).collect()),
        named("layout", layouts.iter().map(|found| json!(found.id)).collect()),
    ]
    .concat()
});

// Tokens of unsubscribe links: of a workflow, and of a topic.
fn tokens(env: &Scope) -> Vec<Value> {
    let workflow = UnsubscribeRequest::workflow("ada", "both", Channel::Email);
    let topic = UnsubscribeRequest::topic("ada", "news");
    let urls = [workflow, topic].map(|request| env.unsubscribe_url(&request?));
    let tokens = urls.into_iter().map(|url| {
        let url = url.expect("they are there");
        json!(url.split_once("token=").map(|(_, token)| token))
    });
    tokens.collect()
}

/// Puts ids in the place of their names.
pub(super) fn put_ids(json: &mut Value) {
    match json {
        Value::String(text) if text.starts_with('$') => {
            if let Some((_, id)) = IDS.iter().find(|(name, _)| name == text) {
                *json = id.clone();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(put_ids),
        Value::Object(fields) => fields.values_mut().for_each(put_ids),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
