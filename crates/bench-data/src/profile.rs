//! Profile of the activity.

use domain::time::Timestamp;
use domain::vocabulary::Severity;

/// Amounts and frequencies of generated activity.
///
/// A senseless value is replaced by the nearest valid one: each count is at least 1, and each share
/// is between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Subscribers.
    pub subscribers: Ranked,
    /// Workflows.
    pub workflows: Ranked,
    /// Context sets of notifications, with one or two contexts each.
    pub context_sets: Ranked,
    /// The share of triggers without a context set.
    pub contextless: f64,
    /// Topics.
    pub topics: Ranked,
    /// The share of triggers that go through a topic. The others are for one subscriber, or
    /// rarely for a few.
    pub through_topic: f64,
    /// The most subscribers that a trigger reaches through a topic; the fewest is one.
    pub fan_out: usize,
    /// Shares of triggers by severity.
    pub severities: Severities,
    /// The share of jobs that a rule or a missing address has skipped.
    pub skipped: f64,
    /// The share of deliveries that fail for good.
    pub failed: f64,
    /// The share of deliveries that a provider puts off once.
    pub retried: f64,
    /// Start of the activity.
    pub start: Timestamp,
    /// Approximate number of notifications in a day.
    pub per_day: u32,
    /// Approximate number of triggers in a burst of milliseconds. A pause follows each burst.
    pub burst: u32,
    /// `true` if notifications have the parts that a list neither searches nor sorts. These are
    /// jobs, payload, overrides, tags and the recipient as the trigger named it. Apart
    /// from these parts, only the time of the last change depends on this field.
    pub bodies: bool,
}

/// Things of which few come up often: the first `1`, the second `1 / 2ᵉ`, the third `1 / 3ᵉ` times
/// as often as the first, with the exponent `e`: Zipf's law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Number of items.
    pub count: usize,
    /// Exponent of Zipf's law. With 0, all items come up equally often.
    pub exponent: f64,
}

/// The shares of triggers with a severity. The other triggers have none.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Severities {
    pub high: f64,
    pub medium: f64,
    pub low: f64,
}

impl Default for Profile {
    /// A million notifications in 90 days, from 1 June 2026 on, for 100,000 subscribers.
    fn default() -> Self {
        Self {
            subscribers: Ranked { count: 100_000, exponent: 0.9 },
            workflows: Ranked { count: 50, exponent: 1.0 },
            context_sets: Ranked { count: 5_000, exponent: 1.0 },
            contextless: 0.4,
            topics: Ranked { count: 500, exponent: 1.0 },
            through_topic: 0.4,
            fan_out: 20,
            severities: Severities { high: 0.02, medium: 0.06, low: 0.08 },
            skipped: 0.04,
            failed: 0.02,
            retried: 0.03,
            start: Timestamp::from_millis(1_780_272_000_000),
            per_day: 11_112,
            burst: 20,
            bodies: true,
        }
    }
}

impl Profile {
    /// Returns the approximate number of notifications of a trigger.
    pub fn per_trigger(&self) -> f64 {
        let through_topic = self.through_topic.clamp(0.0, 1.0);
        let fan_out = mean(1, self.most(self.fan_out));
        let several = SHARE_OF_SEVERAL * mean(2, self.most(SEVERAL)) + (1.0 - SHARE_OF_SEVERAL);
        through_topic * fan_out + (1.0 - through_topic) * several
    }

    /// Largest number of subscribers that one trigger can reach, up to `many`.
    pub(crate) fn most(&self, many: usize) -> usize {
        many.min(self.subscribers.count).max(1)
    }
}

/// Share of triggers with several recipients.
pub(crate) const SHARE_OF_SEVERAL: f64 = 0.1;
/// The most subscribers that such a trigger names.
pub(crate) const SEVERAL: usize = 5;

// The mean of the numbers from `low` to `high`.
fn mean(low: u32, high: usize) -> f64 {
    let high = u32::try_from(high).unwrap_or(u32::MAX);
    f64::from(low.min(high)).midpoint(f64::from(high))
}

impl Ranked {
    /// Returns the share of the item of that rank in all draws. Returns 0 if there is no such item.
    pub fn share(self, rank: usize) -> f64 {
        let weight = self.weights().nth(rank).unwrap_or_default();
        weight / self.weights().sum::<f64>()
    }

    // Weight of each rank. The first rank has weight 1.
    pub(crate) fn weights(self) -> impl Iterator<Item = f64> {
        let exponent = if self.exponent.is_finite() { self.exponent } else { 0.0 };
        let places = std::iter::successors(Some(1.0_f64), |place| Some(place + 1.0));
        places.take(self.count.max(1)).map(move |place| libm::pow(place, -exponent))
    }
}

impl Severities {
    /// Returns each severity with its share of triggers, highest severity first. The shares add up
    /// to 1.
    pub fn shares(self) -> [(Severity, f64); 4] {
        let mut rest = 1.0;
        let mut take = |share: f64| {
            let taken = if share.is_nan() { 0.0 } else { share.clamp(0.0, rest) };
            rest -= taken;
            taken
        };
        let [high, medium, low] = [self.high, self.medium, self.low].map(&mut take);
        [
            (Severity::High, high),
            (Severity::Medium, medium),
            (Severity::Low, low),
            (Severity::None, rest),
        ]
    }
}
