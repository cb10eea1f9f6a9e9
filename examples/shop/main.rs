//! A week in the life of a shop.
//!
//! `cargo run --release --example shop` opens a fresh file, creates the workflows, the provider
//! accounts and the customers of a shop, replays seven days of events at the times at which they
//! happened, and shows what came of them. What goes in is in the files beside this one. All but
//! the last table is the same in every run, for time and chance are handed to the engine.

mod carrier;
mod data;
mod replay;
mod report;
mod tables;
mod timing;
mod totals;

use std::error::Error;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tidings::ids::SubscriberId;
use tidings::message::{MarkAs, MessageQuery};
use tidings::page::PageQuery;
use tidings::{Builder, Engine, ManualClock, Scope, SeededEntropy};

use carrier::Carrier;
use data::Shop;
use replay::replay;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("shop.redb");
    let shop = Shop::read()?;
    let clock = ManualClock::at(shop.start());
    let engine = builder(&clock).open(&path)?;
    let env = production(&engine)?;

    let started = Instant::now();
    shop.open(&env)?;
    let opening = started.elapsed();

    let bar = progress_bar(shop.events.len())?;
    let progress = |done: usize| bar.set_position(done as u64);
    let replay = replay((&engine, &env, &clock), &shop.events, progress)?;
    bar.finish_and_clear();

    report::shop(&shop);
    report::totals(&env, &replay)?;
    if let Some(reader) = replay.busiest() {
        read(&env, reader)?;
        report::inbox(&env, reader)?;
        report::preferences(&env, reader)?;
    }
    report::activity(&env)?;
    timing::writes(&shop, opening, &replay);
    timing::queries(&env, &replay)?;
    timing::size(&path, &replay)?;
    Ok(())
}

/// An engine in which nothing happens by chance.
fn builder(clock: &ManualClock) -> Builder {
    Engine::builder()
        .clock(clock.clone())
        .entropy(SeededEntropy::new(7))
        .default_provider(Carrier::default())
}

fn production(engine: &Engine) -> Result<Scope, Box<dyn Error>> {
    Ok(engine.organization("larkspur")?.production()?)
}

fn progress_bar(events: usize) -> Result<ProgressBar, Box<dyn Error>> {
    let style = ProgressStyle::with_template("  {msg} {bar:40.cyan/dim} {human_pos}/{human_len}")?;
    let bar = ProgressBar::new(events as u64).with_style(style).with_message("replaying a week");
    bar.enable_steady_tick(Duration::from_millis(100));
    Ok(bar)
}

/// Reads an inbox, except for the newest messages.
fn read(env: &Scope, reader: &SubscriberId) -> tidings::Result<()> {
    let page = PageQuery::default().limit(100);
    let inbox = env.inbox(reader)?.list(&MessageQuery::default().page(page))?;
    let older: Vec<_> = inbox.data.iter().skip(5).map(|message| message.id).collect();
    if !older.is_empty() {
        env.inbox(reader)?.mark_as(&older, MarkAs::Read)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tidings::job::{Job, JobStatus};
    use tidings::store::memory::MemoryStore;

    use super::*;

    #[test]
    fn a_week_is_worth_looking_at() {
        let shop = Shop::read().unwrap();
        assert!(shop.workflows.len() >= 8 && shop.integrations.len() >= 3);
        assert!(shop.customers.len() >= 300 && shop.events.len() >= 2_000);

        let clock = ManualClock::at(shop.start());
        let engine = builder(&clock).build(MemoryStore::default());
        let env = production(&engine).unwrap();
        shop.open(&env).unwrap();
        let replay = replay((&engine, &env, &clock), &shop.events, drop).unwrap();

        assert_eq!(replay.events, shop.events.len());
        assert!(replay.repeated > 0 && replay.repeated < replay.events);
        let jobs =
            replay.notifications.keys().flat_map(|id| env.notifications().get(*id).unwrap().jobs);
        let jobs: Vec<Job> = jobs.collect();
        assert!(jobs.iter().all(|job| job.status.has_ended()));
        for status in [JobStatus::Completed, JobStatus::Skipped, JobStatus::Failed] {
            assert!(jobs.iter().any(|job| job.status == status), "{status:?}");
        }
    }
}
