//! Rules of identifiers that callers choose.

use super::{MAX_LEN, SubscriptionIdentifier, TopicKey};
use crate::contact::Email;
use crate::error::{Invalid, Reason, Unit, at_most};

fn sized(field: &str, raw: &str, max: usize) -> Result<(), Invalid> {
    if raw.is_empty() {
        return Err(Invalid::new(field, Reason::Empty));
    }
    if raw.len() > max {
        return Err(Invalid::new(field, Reason::TooLong { max, unit: Unit::Bytes }));
    }
    Ok(())
}

pub(super) fn readable(field: &str, raw: &str) -> Result<(), Invalid> {
    sized(field, raw, MAX_LEN)?;
    plain(field, raw)
}

pub(super) fn long(field: &str, raw: &str) -> Result<(), Invalid> {
    sized(field, raw, SubscriptionIdentifier::MAX_LEN)?;
    plain(field, raw)
}

pub(super) fn short(field: &str, raw: &str) -> Result<(), Invalid> {
    line(field, raw, MAX_LEN)
}

/// Refuses a name that is empty, longer than `max` characters, or not plain. The name may be in any
/// script, so its length counts in characters.
pub(crate) fn line(field: &str, raw: &str, max: usize) -> Result<(), Invalid> {
    sized(field, raw, usize::MAX)?;
    at_most(field, raw, max)?;
    plain(field, raw)
}

/// Refuses control characters, line breaks among them. The rule holds for every name: identifiers,
/// display names, tags, and the names and phone number of a subscriber. It does not hold for
/// descriptions, templates and custom data. The key layout separates parts with NUL.
pub(crate) fn plain(field: &str, raw: &str) -> Result<(), Invalid> {
    if raw.chars().any(char::is_control) {
        let expected = "text without control characters";
        return Err(Invalid::new(field, Reason::malformed(expected)));
    }
    Ok(())
}

pub(super) fn joined_runs(field: &str, raw: &str) -> Result<(), Invalid> {
    sized(field, raw, MAX_LEN)?;
    let is_run = |run: &str| !run.is_empty() && run.chars().all(|c| c.is_ascii_alphanumeric());
    if !raw.split(['-', '_', '.']).all(is_run) {
        let expected = "letters and digits, joined by single `-`, `_` or `.`";
        return Err(Invalid::new(field, Reason::malformed(expected)));
    }
    Ok(())
}

pub(super) fn topic_key(field: &str, raw: &str) -> Result<(), Invalid> {
    sized(field, raw, MAX_LEN)?;
    at_most(field, raw, TopicKey::MAX_LEN)?;
    let is_plain = raw.chars().all(|c| c.is_ascii_alphanumeric() || "_:.-".contains(c));
    if !is_plain && Email::new(raw).is_err() {
        let expected = "letters, digits, `_`, `:`, `.` and `-`, or an e-mail address";
        return Err(Invalid::new(field, Reason::malformed(expected)));
    }
    Ok(())
}
