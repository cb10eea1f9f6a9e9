//! Courses of the jobs of notifications, recorded as the engine records them.

use std::time::Duration;

use domain::job::{Detail, DigestType, ExecutionDetail, Job, JobDigest, JobStatus};
use domain::notification::Notification;
use domain::step::DigestEvent;
use domain::time::Timestamp;
use domain::vocabulary::{Channel, ProviderId, StepType, TimeUnit};

use crate::draw::Lots;
use crate::profile::Profile;

/// Runs the jobs of notifications.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    lots: Lots,
    skipped: f64,
    failed: f64,
    retried: f64,
}

// A job, and its current time.
struct Turn<'j> {
    job: &'j mut Job,
    now: Timestamp,
}

impl Course {
    pub(crate) const fn new(profile: &Profile, lots: Lots) -> Self {
        let Profile { skipped, failed, retried, .. } = *profile;
        Self { lots, skipped, failed, retried }
    }

    /// Returns the lots for all values that are no facts.
    pub(crate) const fn lots(&mut self) -> &mut Lots {
        &mut self.lots
    }

    /// Runs the jobs one after the other, until all have ended.
    pub(crate) fn run(&mut self, notification: &mut Notification) {
        let mut now = notification.created_at;
        let event = DigestEvent {
            id: notification.transaction_id.clone(),
            time: now,
            payload: notification.payload.clone().unwrap_or_default(),
        };
        for job in &mut notification.jobs {
            let kind = job.kind;
            let mut turn = Turn { job, now };
            match kind.channel() {
                Some(Channel::InApp) => self.keep(&mut turn),
                Some(channel) => self.send(&mut turn, channel),
                None => self.wait(&mut turn, &event),
            }
            now = turn.now;
        }
        notification.updated_at = now;
    }

    fn keep(&mut self, turn: &mut Turn<'_>) {
        if self.lots.happens(self.skipped) {
            self.log(turn, Detail::FilteredBySubscriberWorkflowPreference, None);
            return turn.end(JobStatus::Skipped);
        }
        turn.job.message_id = Some(self.lots.id(turn.now));
        self.log(turn, Detail::MessageCreated, None);
        turn.end(JobStatus::Completed);
    }

    fn send(&mut self, turn: &mut Turn<'_>, channel: Channel) {
        self.log(turn, Detail::StepQueued, None);
        self.pass(turn, 5, 400);
        if self.lots.happens(self.skipped) {
            let unwilling = self.lots.happens(0.5);
            let filtered = Detail::FilteredBySubscriberWorkflowPreference;
            self.log(turn, if unwilling { filtered } else { missing(channel) }, None);
            return turn.end(JobStatus::Skipped);
        }
        let (provider, integration) = provider(channel);
        turn.job.provider_id = provider;
        if self.lots.happens(self.retried) {
            self.log(turn, Detail::IntegrationSelected, Some(integration.into()));
            self.pass(turn, 50, 900);
            self.log(turn, Detail::ProviderRetry, Some("429 too many requests".into()));
            self.pass(turn, 1_000, 60_000);
        }
        self.log(turn, Detail::IntegrationSelected, Some(integration.into()));
        turn.job.message_id = Some(self.lots.id(turn.now));
        self.pass(turn, 50, 900);
        if self.lots.happens(self.failed) {
            let raw = "refused: 550 mailbox unavailable";
            self.log(turn, Detail::ProviderError, Some(raw.into()));
            return turn.end(JobStatus::Failed);
        }
        let sent = format!("{provider}-{:016x}", self.lots.bits());
        self.log(turn, Detail::MessageSent, Some(sent));
        turn.end(JobStatus::Completed);
    }

    // A digest collects the event of its own notification.
    fn wait(&mut self, turn: &mut Turn<'_>, event: &DigestEvent) {
        turn.job.digest = (turn.job.kind == StepType::Digest).then(|| digest(event.clone()));
        self.log(turn, Detail::StepQueued, None);
        turn.now = turn.now.after(Duration::from_secs(5 * 60));
        turn.end(JobStatus::Completed);
    }

    fn log(&mut self, turn: &mut Turn<'_>, detail: Detail, raw: Option<String>) {
        turn.job.log(ExecutionDetail::new(self.lots.id(turn.now), detail, raw, turn.now));
    }

    // Moves the time forward by `least` to `most` milliseconds.
    fn pass(&mut self, turn: &mut Turn<'_>, least: usize, most: usize) {
        let millis = self.lots.between(least, most) as u64;
        turn.now = turn.now.after(Duration::from_millis(millis));
    }
}

impl Turn<'_> {
    fn end(&mut self, status: JobStatus) {
        self.job.move_to(status, self.now);
    }
}

const fn provider(channel: Channel) -> (ProviderId, &'static str) {
    match channel {
        Channel::InApp => (ProviderId::Svc, "in-app"),
        Channel::Email => (ProviderId::Sendgrid, "sendgrid-main"),
        Channel::Sms => (ProviderId::Twilio, "twilio-main"),
        Channel::Chat => (ProviderId::Slack, "slack-main"),
        Channel::Push => (ProviderId::Fcm, "fcm-main"),
    }
}

// Detail of a subscriber without an address for `channel`.
const fn missing(channel: Channel) -> Detail {
    match channel {
        Channel::InApp => Detail::NoActiveIntegration,
        Channel::Email => Detail::MissingEmail,
        Channel::Sms => Detail::MissingPhone,
        Channel::Chat => Detail::MissingChatWebhook,
        Channel::Push => Detail::MissingPushTokens,
    }
}

fn digest(event: DigestEvent) -> JobDigest {
    let mut digest = JobDigest::new(DigestType::Regular);
    digest.amount = Some(5);
    digest.unit = Some(TimeUnit::Minutes);
    digest.events.push(event);
    digest
}
