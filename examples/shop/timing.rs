//! How long everything took. This is what differs from run to run.

use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::DecimalBytes;
use tidings::ids::SubscriberId;
use tidings::notification::NotificationQuery;
use tidings::preference::PreferencesQuery;
use tidings::{Result, Scope};

use crate::data::Shop;
use crate::replay::Replay;
use crate::report::{newest, urgent};
use crate::tables::{align_right, count, heading, rate, show, table};

/// What was written, and how fast.
pub fn writes(shop: &Shop, opening: Duration, replay: &Replay) {
    let customers = shop.customers.len() + shop.preferences.len();
    let mut table = table(["", "count", "time", "rate"]);
    for (what, number, took) in [
        ("customers and preferences, one by one", customers, opening),
        ("events, in bulks", replay.events, replay.triggering),
        ("notifications of these events", replay.notifications.len(), replay.triggering),
        ("deliveries", replay.deliveries, replay.delivering),
    ] {
        table.add_row([what.into(), count(number), format!("{took:.1?}"), rate(number, took)]);
    }
    align_right(&mut table, 1..4);
    heading("HOW LONG IT TOOK");
    show(&table);
}

/// How soon questions are answered.
pub fn queries(env: &Scope, replay: &Replay) -> Result<()> {
    let of: Vec<&SubscriberId> = replay.notifications.values().take(200).collect();
    let mut table = table(["", "median", "slowest"]);
    for (what, [median, slowest]) in [
        ("a page of an inbox", measure(&of, |id| env.inbox(id)?.list(&newest(10)))?),
        (
            "all preferences of a subscriber",
            measure(&of, |id| env.preferences(id)?.get(&PreferencesQuery::default()))?,
        ),
        (
            "a page of all notifications",
            measure(&of, |_| env.notifications().list(&NotificationQuery::default()))?,
        ),
        ("the page of urgent ones above", measure(&of, |_| env.notifications().list(&urgent()))?),
    ] {
        table.add_row([what.into(), format!("{median:.1?}"), format!("{slowest:.1?}")]);
    }
    align_right(&mut table, 1..3);
    println!();
    show(&table);
    Ok(())
}

/// How large the file has become.
pub fn size(path: &Path, replay: &Replay) -> std::io::Result<()> {
    let size = std::fs::metadata(path)?.len();
    let each = size / (replay.notifications.len() as u64).max(1);
    println!("\n file: {}, {} per notification\n", DecimalBytes(size), DecimalBytes(each));
    Ok(())
}

/// The time that `query` takes for each of `subscribers`: the median and the longest.
fn measure<T>(
    subscribers: &[&SubscriberId],
    query: impl Fn(&SubscriberId) -> Result<T>,
) -> Result<[Duration; 2]> {
    let mut times = Vec::with_capacity(subscribers.len());
    for subscriber in subscribers {
        let started = Instant::now();
        query(subscriber)?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    Ok([at(times.len() / 2), at(times.len().saturating_sub(1))])
}
