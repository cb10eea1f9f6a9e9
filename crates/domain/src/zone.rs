//! Clocks of time zones: the time that they show at an instant, and the instant at which they show
//! a time.

use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone as _, Timelike, Utc};
use chrono_tz::Tz;

use crate::contact::TimeZone;
use crate::time::Timestamp;

/// Returns the time that the clocks of `zone` show at `at`.
pub(crate) fn local(at: Timestamp, zone: TimeZone) -> NaiveDateTime {
    DateTime::<Utc>::from(at).with_timezone(&Tz::from(zone)).naive_local()
}

/// Returns the first instant at which the clocks of `zone` show `time` or a later time: of a time
/// that they show twice, the first one, and of a time that they skip, the instant of the skip.
/// Returns `None` outside the years of a [`Timestamp`].
pub(crate) fn instant(time: NaiveDateTime, zone: TimeZone) -> Option<Timestamp> {
    let shown = |time: NaiveDateTime| Tz::from(zone).from_local_datetime(&time).earliest();
    // Clocks have never skipped more than one day, and skip to a whole minute.
    let later = || {
        let minute = time.with_second(0)?.with_nanosecond(0)?;
        (1..=24 * 60)
            .find_map(|minutes| shown(minute.checked_add_signed(TimeDelta::minutes(minutes))?))
    };
    let found = shown(time).or_else(later)?;
    let millis = found.timestamp_millis();
    let at = Timestamp::from_millis(millis);
    (at.as_millis() == millis).then_some(at)
}
