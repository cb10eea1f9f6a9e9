//! Triggers: their times, workflows and recipients.

use std::time::Duration;

use domain::time::Timestamp;
use domain::vocabulary::Severity;

use crate::draw::{Lots, Purpose, Ranks};
use crate::population::Population;
use crate::profile::{Profile, SEVERAL, SHARE_OF_SEVERAL};

/// Draws one occasion after the other.
#[derive(Clone, Debug)]
pub(crate) struct Occasions {
    lots: Lots,
    clock: Clock,
    subscribers: Ranks,
    workflows: Ranks,
    topics: Ranks,
    context_sets: Ranks,
    severities: [(Severity, f64); 4],
}

/// A trigger, by ranks.
#[derive(Clone, Debug)]
pub(crate) struct Occasion {
    pub(crate) at: Timestamp,
    pub(crate) workflow: usize,
    pub(crate) context_set: Option<usize>,
    pub(crate) severity: Severity,
    pub(crate) topics: Vec<usize>,
    pub(crate) recipients: Vec<Recipient>,
}

/// The recipient.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipient {
    pub(crate) subscriber: usize,
    /// Number of the subscriber's topics, counted from the first.
    pub(crate) topics: usize,
    /// Random part of the id of the notification.
    pub(crate) random: u64,
}

/// Clock of the triggers: bursts with pauses.
#[derive(Clone, Debug)]
struct Clock {
    start: Timestamp,
    passed: Duration,
    left_in_burst: usize,
    mean_burst: usize,
    // In seconds.
    mean_step: f64,
    mean_pause: f64,
}

impl Occasions {
    pub(crate) fn new(population: &Population) -> Self {
        let profile = population.profile();
        Self {
            lots: population.lots(Purpose::Facts),
            clock: Clock::new(profile),
            subscribers: Ranks::new(profile.subscribers),
            workflows: Ranks::new(profile.workflows),
            topics: Ranks::new(profile.topics),
            context_sets: Ranks::new(profile.context_sets),
            severities: profile.severities.shares(),
        }
    }

    pub(crate) fn draw(&mut self, profile: &Profile) -> Occasion {
        let at = self.clock.tick(&mut self.lots);
        let lots = &mut self.lots;
        let workflow = self.workflows.draw(lots);
        let contextless = lots.happens(profile.contextless);
        let context_set = (!contextless).then(|| self.context_sets.draw(lots));
        let severity = self.severity();
        let topics = self.topics(profile);
        let recipients = self.recipients(profile, topics.len());
        Occasion { at, workflow, context_set, severity, topics, recipients }
    }

    fn severity(&mut self) -> Severity {
        let mut rest = self.lots.unit();
        let drawn = self.severities.into_iter().find(|(_, share)| {
            rest -= share;
            rest < 0.0
        });
        drawn.map_or(Severity::None, |(severity, _)| severity)
    }

    // Few triggers that go through one topic go through another one, too.
    fn topics(&mut self, profile: &Profile) -> Vec<usize> {
        if !self.lots.happens(profile.through_topic) {
            return Vec::new();
        }
        let mut topics = vec![self.topics.draw(&mut self.lots)];
        if self.lots.happens(0.05) {
            topics.push(self.topics.draw(&mut self.lots));
            topics.dedup();
        }
        topics
    }

    // No subscriber is notified twice.
    fn recipients(&mut self, profile: &Profile, topics: usize) -> Vec<Recipient> {
        let lots = &mut self.lots;
        let many = if topics > 0 {
            lots.between(1, profile.most(profile.fan_out))
        } else if lots.happens(SHARE_OF_SEVERAL) {
            lots.between(profile.most(2), profile.most(SEVERAL))
        } else {
            1
        };
        let mut recipients: Vec<Recipient> = Vec::with_capacity(many);
        // The number of draws is limited, because rare subscribers are hard to draw if most are
        // needed.
        for _ in 0..many.saturating_mul(16) {
            let subscriber = self.subscribers.draw(lots);
            if recipients.iter().all(|known| known.subscriber != subscriber) {
                let topics = if lots.happens(0.5) { topics } else { topics.min(1) };
                recipients.push(Recipient { subscriber, topics, random: lots.bits() });
            }
            if recipients.len() == many {
                break;
            }
        }
        recipients
    }
}

impl Clock {
    fn new(profile: &Profile) -> Self {
        let day = 24.0 * 60.0 * 60.0;
        let mean = day * profile.per_trigger() / f64::from(profile.per_day.max(1));
        let mean_step = (mean / 2.0).min(0.01);
        let burst = profile.burst.max(1);
        let mean_pause = f64::from(burst) * mean - f64::from(burst - 1) * mean_step;
        Self {
            start: profile.start,
            passed: Duration::ZERO,
            left_in_burst: 0,
            mean_burst: burst as usize,
            mean_step,
            mean_pause,
        }
    }

    fn tick(&mut self, lots: &mut Lots) -> Timestamp {
        let seconds = if self.left_in_burst == 0 {
            self.left_in_burst = lots.between(1, self.mean_burst.saturating_mul(2) - 1);
            lots.wait(self.mean_pause)
        } else if lots.happens(0.5) {
            0.0
        } else {
            lots.wait(2.0 * self.mean_step)
        };
        self.left_in_burst -= 1;
        let waited = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.passed = self.passed.saturating_add(waited);
        self.start.after(self.passed)
    }
}
