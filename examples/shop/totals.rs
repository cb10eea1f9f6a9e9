//! How the jobs of many notifications ended.

use std::collections::BTreeMap;

use comfy_table::Table;
use tidings::job::{Detail, Job, JobStatus};
use tidings::vocabulary::Channel;

use crate::tables::{align_right, count, table};

/// How many jobs ended how, and why, on each channel.
#[derive(Debug, Default)]
pub struct Totals {
    ends: BTreeMap<(End, Option<Detail>), ByChannel>,
    retries: ByChannel,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Delivered,
    Skipped,
    Failed,
    Canceled,
    Waiting,
}

type ByChannel = BTreeMap<Channel, usize>;

impl Totals {
    /// Counts a job. The last entry in its log says why it ended as it did.
    pub fn add(&mut self, job: &Job) {
        let Some(channel) = job.kind.channel() else { return };
        let details = || job.execution_details.iter().map(|entry| entry.detail);
        let end = (End::from(job.status), details().next_back());
        *self.ends.entry(end).or_default().entry(channel).or_default() += 1;
        let retries = details().filter(|detail| *detail == Detail::ProviderRetry).count();
        *self.retries.entry(channel).or_default() += retries;
    }

    /// A row for each end, and one for each reason below it.
    pub fn table(&self) -> Table {
        let channels = Channel::ALL.iter().map(|channel| channel.as_str());
        let mut table = table(["jobs"].into_iter().chain(channels).chain(["all"]));
        for end in [End::Delivered, End::Skipped, End::Failed, End::Canceled, End::Waiting] {
            let reasons = || self.ends.iter().filter(move |((other, _), _)| *other == end);
            if reasons().next().is_none() {
                continue;
            }
            table.add_row(row(end.as_str(), |channel| {
                reasons().map(|(_, by)| on(by, channel)).sum()
            }));
            for ((_, detail), by) in reasons() {
                let reason = detail.map_or("", Detail::as_str).replace('_', " ");
                table.add_row(row(&format!("   {reason}"), |channel| on(by, channel)));
            }
        }
        table.add_row(row("tried again", |channel| on(&self.retries, channel)));
        align_right(&mut table, 1..Channel::ALL.len() + 2);
        table
    }
}

fn row(title: &str, cell: impl Fn(Channel) -> usize) -> Vec<String> {
    let cells: Vec<usize> = Channel::ALL.iter().map(|channel| cell(*channel)).collect();
    let sum = cells.iter().sum();
    let numbers = cells.into_iter().chain([sum]).map(count);
    [title.to_string()].into_iter().chain(numbers).collect()
}

fn on(by: &ByChannel, channel: Channel) -> usize {
    by.get(&channel).copied().unwrap_or_default()
}

impl End {
    const fn as_str(self) -> &'static str {
        match self {
            End::Delivered => "delivered",
            End::Skipped => "skipped",
            End::Failed => "failed",
            End::Canceled => "canceled",
            End::Waiting => "waiting",
        }
    }
}

impl From<JobStatus> for End {
    fn from(status: JobStatus) -> Self {
        match status {
            JobStatus::Completed => End::Delivered,
            JobStatus::Skipped => End::Skipped,
            JobStatus::Failed => End::Failed,
            JobStatus::Canceled => End::Canceled,
            _ => End::Waiting,
        }
    }
}
