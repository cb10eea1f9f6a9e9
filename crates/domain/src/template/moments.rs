//! Filters for dates and times: a moment as the clocks of the subscriber's zone show it.

use std::fmt::Write;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Error, State};

use super::Template;
use super::budget::refusal;
use crate::suggest::nearest;
use crate::template_data::DEFAULT_ZONE;

const DATE: &str = "%Y-%m-%d";
const TIME: &str = "%H:%M";

/// Returns `true` if `text` is a format of `strftime` in which a time can be written. Some formats can only be
/// read.
pub(super) fn is_format(text: &str) -> bool {
    formatted(Tz::UTC.timestamp_nanos(0), text).is_some()
}

// Returns `None` if the format is not valid.
fn formatted(moment: DateTime<Tz>, format: &str) -> Option<String> {
    let mut text = String::new();
    let is_short = format.len() <= Template::MAX_FORMAT;
    (is_short && write!(text, "{}", moment.format(format)).is_ok()).then_some(text)
}

/// Returns `true` if `text` is the name of a time zone.
pub(super) fn is_zone(text: &str) -> bool {
    text.parse::<Tz>().is_ok()
}

/// Returns the name of a time zone that is closest to `text`.
pub(super) fn nearest_zone(text: &str) -> Option<&'static str> {
    nearest(text, TZ_VARIANTS.iter().map(|zone| zone.name()))
}

/// `a | date`, `a | date("%d.%m.%Y")` and `a | date(zone="Europe/Berlin")`.
pub(super) fn date(
    state: &State<'_, '_>,
    value: Value,
    values: Rest<ValueOrKwargs>,
) -> Result<Value, Error> {
    shown(state, value, &values.into_values(), DATE)
}

/// `a | time`, with the arguments of `date`.
pub(super) fn time(
    state: &State<'_, '_>,
    value: Value,
    values: Rest<ValueOrKwargs>,
) -> Result<Value, Error> {
    shown(state, value, &values.into_values(), TIME)
}

fn shown(
    state: &State<'_, '_>,
    value: Value,
    values: &[Value],
    default: &str,
) -> Result<Value, Error> {
    let [format, zone] = arguments(values)?;
    let format = format.as_ref().map_or(Ok(default), |format| {
        format.as_str().ok_or_else(|| refusal("the format of a time is not valid"))
    })?;
    let zone = match zone {
        Some(zone) => zone.as_str().and_then(|name| name.parse().ok()),
        None => Some(zone_of(state)),
    };
    let zone: Tz = zone.ok_or_else(|| refusal("a zone is no IANA time zone"))?;
    if value.is_undefined() || value.is_none() {
        return Ok(value);
    }
    let moment = moment(&value, zone).ok_or_else(|| refusal("a value is no date or time"))?;
    let text = formatted(moment, format);
    Ok(Value::from(text.ok_or_else(|| refusal("the format of a time is not valid"))?))
}

// Returns the format and the zone among the arguments.
fn arguments(values: &[Value]) -> Result<[Option<Value>; 2], Error> {
    let named = values.last().and_then(|last| Kwargs::try_from(last.clone()).ok());
    let places = values.len() - usize::from(named.is_some());
    let argument = |place: usize, name: &str| {
        let by_place = values.get(place).filter(|_| place < places).cloned();
        let by_name = || named.as_ref().and_then(|named| named.get::<Option<Value>>(name).ok()?);
        by_place.or_else(by_name).filter(|value| !value.is_none())
    };
    if places > 2 {
        return Err(refusal("a time has a format and a zone"));
    }
    Ok([argument(0, "format"), argument(1, "zone")])
}

// The zone of the subscriber, or else the default one.
fn zone_of(state: &State<'_, '_>) -> Tz {
    let subscriber = state.lookup("subscriber");
    let own = subscriber.and_then(|subscriber| subscriber.get_attr("timezone").ok());
    let named = |zone: Value| zone.as_str()?.parse().ok();
    let default = || state.lookup(DEFAULT_ZONE).and_then(named);
    own.and_then(named).or_else(default).unwrap_or(Tz::UTC)
}

// A text in ISO 8601, or a number of milliseconds since 1970. A date alone is the same in each zone.
// A time without offset is one of UTC.
fn moment(value: &Value, zone: Tz) -> Option<DateTime<Tz>> {
    let utc = match value.kind() {
        ValueKind::Number => DateTime::<Utc>::from_timestamp_millis(value.as_i64()?)?,
        ValueKind::String => {
            let text = value.as_str()?.trim();
            if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
                return Some(date.and_time(NaiveTime::MIN).and_utc().with_timezone(&Tz::UTC));
            }
            match DateTime::parse_from_rfc3339(text) {
                Ok(moment) => moment.to_utc(),
                Err(_) => {
                    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?.and_utc()
                }
            }
        }
        _ => return None,
    };
    Some(utc.with_timezone(&zone))
}
