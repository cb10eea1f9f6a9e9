//! The time of single calls.

use std::time::{Duration, Instant};

use testkit::postgres::Server;
use tidings::message::{MarkAs, MessageQuery};
use tidings::notification::NotificationQuery;
use tidings::preference::PreferencesQuery;
use tidings::trigger::Trigger;
use tidings::{Engine, Scope};

use crate::by_hand::ByHand;
use crate::same_rows::SameRows;
use crate::{prepare, subscriber};

const CALLS: u64 = 500;

pub(crate) fn measure(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let file = Engine::open(folder.path().join("tidings.redb")).unwrap();
    let place = server.place();
    let remote = Engine::builder().build(place.open());
    let mut hand = ByHand::open(&server.url());
    println!();
    println!(
        "| call | redb p50 | redb p99 | PostgreSQL p50 | p99 | same rows p50 | p99 | by hand p50 | p99 |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let scopes = [prepare(&file, "shop"), prepare(&remote, "shop")];
    for (name, call) in calls() {
        let [file, remote] = scopes.each_ref().map(|env| times(|number| call(env, number)));
        let by_hand = match name {
            "trigger for one" => times(|number| hand.trigger(&[number])),
            "trigger for 100" => times(|_| hand.trigger(&(0..100).collect::<Vec<_>>())),
            "inbox page" => times(|number| hand.inbox(number)),
            "mark as read" => times(|number| hand.mark(number)),
            _ => "– | –".to_owned(),
        };
        let same_rows = if name.starts_with("trigger") {
            let mut same = SameRows::of(place.url(), place.schema(), || call(&scopes[1], 0));
            times(|_| same.write())
        } else {
            "– | –".to_owned()
        };
        println!("| {name} | {file} | {remote} | {same_rows} | {by_hand} |");
    }
}

type Call = fn(&Scope, u64);

fn calls() -> [(&'static str, Call); 6] {
    [
        ("trigger for one", |env, number| trigger(env, number, 1)),
        ("trigger for 100", |env, number| trigger(env, number, 100)),
        ("inbox page", |env, number| {
            let inbox = env.inbox(subscriber(number).as_str()).unwrap();
            assert!(!inbox.list(&MessageQuery::default()).unwrap().data.is_empty());
        }),
        ("mark as read", |env, number| {
            let inbox = env.inbox(subscriber(number).as_str()).unwrap();
            let query = MessageQuery::default().limit(1);
            let first = inbox.list(&query).unwrap().data[0].id;
            let state = if number / 100 % 2 == 0 { MarkAs::Read } else { MarkAs::Unread };
            inbox.mark_as([first], state).unwrap();
        }),
        ("preferences", |env, number| {
            let preferences = env.preferences(subscriber(number).as_str()).unwrap();
            let all = preferences.get(&PreferencesQuery::default()).unwrap();
            assert_eq!(all.workflows.len(), 20);
        }),
        ("page of the activity list", |env, _| {
            let query = NotificationQuery::default();
            assert!(!env.notifications().list(&query).unwrap().data.is_empty());
        }),
    ]
}

fn trigger(env: &Scope, number: u64, recipients: u64) {
    let workflow = format!("workflow-{}", number % 20);
    let mut trigger = Trigger::new(workflow.as_str(), subscriber(number).as_str()).unwrap();
    for other in 1..recipients {
        trigger = trigger.to(subscriber(number + other).as_str()).unwrap();
    }
    env.events().trigger(&trigger).unwrap();
}

/// Median and 99th percentile, as cells of a table.
fn times(mut call: impl FnMut(u64)) -> String {
    let mut times: Vec<Duration> = (0..CALLS)
        .map(|number| {
            let start = Instant::now();
            call(number);
            start.elapsed()
        })
        .collect();
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1_000.0;
    format!("{:.2} ms | {:.2} ms", at(50), at(99))
}
