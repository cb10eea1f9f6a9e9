//! Overrides of the lengths of delays and digests by a trigger.

use std::borrow::Cow;

use serde_json::Value;

use super::span::check_amount;
use super::{Delay, Digest, StepKind};
use crate::error::{Invalid, Reason};
use crate::json::Object;
use crate::vocabulary::{StepType, TimeUnit};

impl StepKind {
    /// Returns the action with the lengths in the `overrides` of a trigger: the `amount` and `unit`
    /// in `digest` for digests with a fixed window, and those in `delay` for fixed delays. Refuses
    /// an invalid length.
    #[doc(hidden)]
    pub fn overridden(&self, overrides: &Object) -> Result<Cow<'_, Self>, Invalid> {
        let mut kind = Cow::Borrowed(self);
        if !self.has_fixed_length() {
            return Ok(kind);
        }
        let name = self.step_type().as_str();
        let Some((new_amount, new_unit)) = length_in(overrides, name)? else { return Ok(kind) };
        match kind.to_mut() {
            StepKind::Digest { metadata: Digest::Regular(window) | Digest::Backoff(window) } => {
                (window.amount, window.unit) = (Some(new_amount), Some(new_unit));
            }
            StepKind::Delay { metadata: Delay::Regular(delay) } => {
                (delay.amount, delay.unit) = (Some(new_amount), Some(new_unit));
            }
            _ => {}
        }
        Ok(kind)
    }

    const fn has_fixed_length(&self) -> bool {
        matches!(
            self,
            StepKind::Digest { metadata: Digest::Regular(_) | Digest::Backoff(_) }
                | StepKind::Delay { metadata: Delay::Regular(_) }
        )
    }
}

/// Refuses lengths of delays and digests that are not valid.
pub(crate) fn check_lengths(overrides: &Object) -> Result<(), Invalid> {
    [StepType::Delay, StepType::Digest]
        .iter()
        .try_for_each(|kind| length_in(overrides, kind.as_str()).map(drop))
}

// `null` is as good as no length.
fn length_in(overrides: &Object, name: &str) -> Result<Option<(u32, TimeUnit)>, Invalid> {
    let length = overrides.get(name).filter(|length| !length.is_null()).map(length_of);
    length.transpose().map_err(|invalid| invalid.within(format!("overrides.{name}")))
}

fn length_of(length: &Value) -> Result<(u32, TimeUnit), Invalid> {
    let amount = length.get("amount").ok_or_else(|| Invalid::new("amount", Reason::Missing))?;
    let amount = amount.as_u64().map(|amount| u32::try_from(amount).unwrap_or(u32::MAX));
    let amount =
        amount.ok_or_else(|| Invalid::new("amount", Reason::malformed("a whole number")))?;
    let unit = length.get("unit").and_then(Value::as_str);
    let unit = unit.ok_or_else(|| Invalid::new("unit", Reason::Missing))?.parse()?;
    check_amount("amount", amount, unit)?;
    Ok((amount, unit))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(name: &str, metadata: Value) -> StepKind {
        serde_json::from_value(json!({ "type": name, "metadata": metadata })).unwrap()
    }

    fn hour(kind: &str) -> Value {
        json!({ "type": kind, "amount": 1, "unit": "hours" })
    }

    /// D14: a digest has an override of its own, and that of a delay leaves it alone.
    #[test]
    fn d14_a_digest_has_a_length_of_its_own_in_the_overrides() {
        let (short, long) =
            (json!({ "amount": 5, "unit": "seconds" }), json!({ "amount": 2, "unit": "days" }));
        let overrides = json!({ "delay": short, "digest": long }).try_into().unwrap();
        let days = |kind: &str| json!({ "type": kind, "amount": 2, "unit": "days" });
        let cron = json!({ "type": "timed", "timed": { "cronExpression": "0 9 * * *" } });
        for (name, metadata, expected) in [
            ("digest", hour("regular"), days("regular")),
            ("digest", hour("backoff"), days("backoff")),
            ("digest", cron.clone(), cron.clone()),
            (
                "delay",
                hour("regular"),
                json!({ "type": "regular", "amount": 5, "unit": "seconds" }),
            ),
            ("delay", cron.clone(), cron),
            (
                "throttle",
                json!({ "amount": 1, "unit": "hours" }),
                json!({ "amount": 1, "unit": "hours" }),
            ),
        ] {
            let kind_before = kind(name, metadata);
            let overridden = kind_before.overridden(&overrides).unwrap();
            assert_eq!(*overridden, kind(name, expected));
        }
        let only_delay = json!({ "delay": { "amount": 5, "unit": "seconds" } }).try_into().unwrap();
        let digest = kind("digest", hour("regular"));
        assert!(matches!(digest.overridden(&only_delay), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn an_invalid_length_is_refused_with_its_place() {
        for (length, problem) in [
            (json!({}), "`overrides.delay.amount` is required"),
            (json!({ "amount": "1" }), "`overrides.delay.amount` must be a whole number"),
            (json!({ "amount": 1 }), "`overrides.delay.unit` is required"),
            (
                json!({ "amount": 0, "unit": "days" }),
                "`overrides.delay.amount` must be between 1 and 3660",
            ),
            (
                json!({ "amount": 1, "unit": "years" }),
                "`overrides.delay.unit` must be one of seconds, minutes, hours, days, weeks, months",
            ),
        ] {
            let overrides = json!({ "delay": length }).try_into().unwrap();
            let error = kind("delay", hour("regular")).overridden(&overrides).unwrap_err();
            assert_eq!(error.to_string(), problem);
        }
    }
}
