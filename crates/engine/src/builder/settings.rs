//! Settings of an engine.

use std::time::Duration;

use domain::circuit::CircuitPolicy;
use domain::contact::{Locale, TimeZone};
use domain::job::RetryPolicy;
use domain::limits::Limits;
use domain::retention::Retention;
use domain::unsubscribe::UnsubscribeLinks;

use crate::pipeline::delivery::quota::CallLimits;

/// Settings of an engine, which do not depend on its store. A rehearsal has a copy of them.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) retry: RetryPolicy,
    pub(crate) lease: Duration,
    pub(crate) limits: Limits,
    pub(crate) retention: Retention,
    /// Language of an environment without a default one, for workflows without one.
    pub(crate) default_locale: Locale,
    /// Time zone of subscribers without one.
    pub(crate) default_timezone: TimeZone,
    pub(crate) unsubscribe: Option<UnsubscribeLinks>,
    /// `None` if circuits never open.
    pub(super) circuit: Option<CircuitPolicy>,
    pub(super) calls: CallLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            lease: Duration::from_secs(300),
            limits: Limits::default(),
            retention: Retention::default(),
            default_locale: Locale::en_us(),
            default_timezone: TimeZone::UTC,
            unsubscribe: None,
            circuit: Some(CircuitPolicy::default()),
            calls: CallLimits::default(),
        }
    }
}
