//! Time: instants that the caller reads from a clock.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Timelike, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use crate::error::{Invalid, Reason};
use crate::packed::{self, Digits, Packed};

/// Instant in milliseconds since the Unix epoch, within the years 0 to 9999.
///
/// Its wire form is `2026-11-20T12:00:00.000Z`. It is read from ISO 8601: a date, or a date and a
/// time with an offset. Seconds and separators are optional. A time without an offset is refused as
/// ambiguous. A date alone means midnight in UTC. `SystemTime::now().into()` is the time of the
/// operating system.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

// The wire form. A zero stands for any digit.
const FORM: &[u8; 24] = b"0000-00-00T00:00:00.000Z";

impl Timestamp {
    /// First instant of the year 0.
    pub const MIN: Timestamp = Timestamp(-62_167_219_200_000);
    /// Last instant of the year 9999.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_999);

    /// Form of a time, as refusals name it.
    pub(crate) const EXPECTED: &str = "an ISO 8601 timestamp, such as `2026-11-20T12:00:00Z`";

    /// Returns the instant of `millis` milliseconds since the Unix epoch, or the nearest valid one.
    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::MIN.0 {
            Self::MIN
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the instant `span` later, at most [`Timestamp::MAX`].
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// Returns the instant `span` earlier, at least [`Timestamp::MIN`].
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_sub(millis))
    }

    /// Returns the span from `earlier` to `self`. It is zero if `self` comes first.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or_default())
    }

    /// Returns `true` if the time is one of a clock that was ahead of `now` by more than a day.
    #[doc(hidden)]
    pub fn is_far_ahead_of(self, now: Timestamp) -> bool {
        self > now.after(MAX_CLOCK_SKEW)
    }
}

/// Time by which a clock may differ from an earlier one. More is a mistake of one of them.
#[doc(hidden)]
pub const MAX_CLOCK_SKEW: Duration = Duration::from_secs(24 * 60 * 60);

/// Record with times of creation and of the last change.
pub(crate) trait Dated: PartialEq + Sized {
    /// Returns the times of creation and of the last change.
    fn dates(&mut self) -> (Timestamp, &mut Timestamp);

    /// Returns the record after a change at `now`. If the clock has gone back, the change keeps the
    /// time of creation.
    fn changed(mut self, now: Timestamp) -> Self {
        let (created_at, updated_at) = self.dates();
        *updated_at = now.max(created_at);
        self
    }

    /// Returns the record, changed at `now` if it differs from `before`.
    fn changed_from(self, before: &Self, now: Timestamp) -> Self {
        if self == *before { self } else { self.changed(now) }
    }
}

/// Declares records with `created_at` and `updated_at`.
macro_rules! dated {
    ($($record:ident),+) => {
        $(
            impl $crate::time::Dated for $record {
                fn dates(&mut self) -> (Timestamp, &mut Timestamp) {
                    (self.created_at, &mut self.updated_at)
                }
            }
        )+
    };
}
pub(crate) use dated;

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_millis(time.timestamp_millis())
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        let span = Duration::from_millis(time.as_millis().unsigned_abs());
        if time.as_millis() < 0 { UNIX_EPOCH - span } else { UNIX_EPOCH + span }
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let epoch = Timestamp::default();
        match time.duration_since(UNIX_EPOCH) {
            Ok(since) => epoch.after(since),
            Err(before) => epoch.before(before.duration()),
        }
    }
}

impl From<Timestamp> for DateTime<Utc> {
    fn from(time: Timestamp) -> Self {
        // Every timestamp is within the range of chrono's.
        DateTime::from_timestamp_millis(time.0).unwrap_or_default()
    }
}

// Records have a dozen of times, and most of them are in the wire form. So it is read and written
// without the general parser and formatter: the parser takes five times as long.
impl Timestamp {
    fn wire_form(self) -> [u8; FORM.len()] {
        let time = DateTime::<Utc>::from(self).naive_utc();
        let year = u32::try_from(time.year()).unwrap_or_default();
        let millis = time.and_utc().timestamp_subsec_millis();
        let parts = [
            (year, 4),
            (time.month(), 2),
            (time.day(), 2),
            (time.hour(), 2),
            (time.minute(), 2),
            (time.second(), 2),
            (millis, 3),
        ];
        let mut text = *FORM;
        let mut places = text.iter_mut().filter(|byte| **byte == b'0');
        for (number, digits) in parts {
            for (digit, place) in (0..digits).rev().zip(&mut places) {
                *place += u8::try_from(number / 10_u32.pow(digit) % 10).unwrap_or_default();
            }
        }
        text
    }

    // Returns `None` if the text is not in the wire form. It may be in another one.
    fn of_wire_form(text: &[u8]) -> Option<Self> {
        let text: &[u8; FORM.len()] = text.try_into().ok()?;
        let is_digit = |(byte, form): (&u8, &u8)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == other,
        };
        if !text.iter().zip(FORM).all(is_digit) {
            return None;
        }
        let number = |range| {
            let digits: &[u8] = text.get::<std::ops::Range<usize>>(range)?;
            Some(digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
        };
        let year = i32::try_from(number(0..4)?).ok()?;
        let date = NaiveDate::from_ymd_opt(year, number(5..7)?, number(8..10)?)?;
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        let time = date.and_hms_milli_opt(hour, minute, second, number(20..23)?)?;
        Some(time.and_utc().into())
    }
}

impl Timestamp {
    // Returns `None` for a late time, whose digits have more bytes.
    fn digits(self) -> Option<Digits> {
        let time = DateTime::<Utc>::from(self).naive_utc();
        let millis = u64::from(time.and_utc().timestamp_subsec_millis());
        let parts = [time.month(), time.day(), time.hour(), time.minute(), time.second()];
        let year = u64::try_from(time.year()).unwrap_or_default();
        let seconds = parts.into_iter().fold(year, |number, part| number * 100 + u64::from(part));
        match (seconds * 1_000 + millis).to_be_bytes() {
            [0, digits @ ..] => Some(digits),
            _ => None,
        }
    }

    // Returns `None` if there is no such time.
    fn of_digits(digits: Digits) -> Option<Self> {
        let mut number = digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let mut next = |size: u64| {
            let part = number % size;
            number /= size;
            u32::try_from(part).unwrap_or_default()
        };
        let millis = next(1_000);
        let [second, minute, hour, day, month] = [(); 5].map(|()| next(100));
        let year = i32::try_from(number).ok()?;
        let date = NaiveDate::from_ymd_opt(year, month, day).filter(|_| year <= 9_999)?;
        Some(date.and_hms_milli_opt(hour, minute, second, millis)?.and_utc().into())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.wire_form()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Timestamp").field(&format_args!("{self}")).finish()
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_newtype_struct(packed::TIME, &Form(*self))
    }
}

// Digits for the formats that know them, and a text for others.
struct Form(Timestamp);

impl Serialize for Form {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if !to.is_human_readable()
            && let Some(digits) = self.0.digits()
        {
            return to.serialize_bytes(&digits);
        }
        let text = self.0.wire_form();
        to.serialize_str(std::str::from_utf8(&text).map_err(ser::Error::custom)?)
    }
}

impl Packed for Timestamp {
    fn unpack(bytes: &[u8]) -> Option<Self> {
        Self::of_digits(bytes.try_into().ok()?)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        packed::read(from, packed::TIME, "a string")
    }
}

impl FromStr for Timestamp {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if let Some(time) = Self::of_wire_form(text.as_bytes()) {
            return Ok(time);
        }
        let time = DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
        time.or_else(|| of_other_form(text))
            .and_then(Self::of_time)
            .ok_or_else(|| Invalid::new("timestamp", Reason::malformed(Self::EXPECTED)))
    }
}

impl Timestamp {
    // Returns `None` for a time in another year than 0 to 9999.
    fn of_time(time: DateTime<Utc>) -> Option<Self> {
        let millis = time.timestamp_millis();
        Some(Self::from_millis(millis)).filter(|time| time.0 == millis)
    }
}

// Forms of ISO 8601 outside of RFC 3339, in the terms of `chrono`. The offset may be `Z`, `+01:00`,
// `+0100` or `+01`. In front of a form is its shape up to the offset or the fraction, with a zero for
// any digit: `chrono` would also take signs, white space and fewer digits.
const TIMES: &[(&str, &str)] = &[
    ("0000-00-00T00:00:00", "%Y-%m-%dT%H:%M:%S%.f%#z"),
    ("0000-00-00T00:00", "%Y-%m-%dT%H:%M%#z"),
    ("00000000T000000", "%Y%m%dT%H%M%S%.f%#z"),
    ("00000000T0000", "%Y%m%dT%H%M%#z"),
];
const DAYS: &[(&str, &str)] = &[("0000-00-00", "%Y-%m-%d"), ("00000000", "%Y%m%d")];

fn of_other_form(text: &str) -> Option<DateTime<Utc>> {
    if text.contains(char::is_whitespace) {
        return None;
    }
    let shape: String = text.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }).collect();
    let has_shape = |start: &str| {
        let rest = shape.strip_prefix(start);
        rest.is_some_and(|rest| !rest.starts_with([':', '0']))
    };
    let times = TIMES.iter().filter(|(start, _)| has_shape(start));
    let mut times = times.filter_map(|(_, form)| DateTime::parse_from_str(text, form).ok());
    let days = DAYS.iter().filter(|(start, _)| *start == shape);
    let mut days = days.filter_map(|(_, form)| NaiveDate::parse_from_str(text, form).ok());
    let time = times.next().map(|time| time.to_utc());
    time.or_else(|| Some(days.next()?.and_time(NaiveTime::MIN).and_utc()))
}

impl TryFrom<String> for Timestamp {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

#[cfg(test)]
mod tests;
