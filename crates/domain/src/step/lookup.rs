//! Values in a payload that settings of a step name by their path.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::StepDefinition;
use crate::error::{Invalid, Reason};
use crate::json::Object;
use crate::limits;
use crate::payload::fields::ROOT;

/// Refuses a path that is empty, too long, has an empty name, or is a template.
pub(super) fn check_path(field: &str, path: &str) -> Result<(), Invalid> {
    if path.is_empty() {
        return Err(Invalid::new(field, Reason::Empty));
    }
    limits::text(field, path, StepDefinition::MAX_PATH)?;
    if path.contains("{{") || path.split('.').any(str::is_empty) {
        let expected = "a path such as `order.id`";
        return Err(Invalid::new(field, Reason::malformed(expected)));
    }
    Ok(())
}

/// Returns the value of `payload` at a path such as `order.items.0.id`, or
/// `payload.order.items.0.id`.
pub(crate) fn find<'p>(payload: &'p Object, path: &str) -> Option<&'p Value> {
    let behind_root = || payload.find(path.strip_prefix(ROOT)?);
    payload.find(path).or_else(behind_root)
}

/// Returns the path from the root on.
pub(super) fn rooted(path: &str) -> String {
    if path.starts_with(ROOT) { path.to_owned() } else { format!("{ROOT}{path}") }
}

/// Value by which a digest collects events, or a throttle counts them: the first half of a SHA-256.
/// Equal values have equal keys. An absent value, `null`, and an empty text differ.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Uuid", into = "Uuid")]
pub struct EventKey([u8; 16]);

impl EventKey {
    /// Returns the key of an event with this `payload`. Without a `path`, all events have one key.
    pub(super) fn of(path: Option<&str>, payload: &Object) -> Self {
        let mut hash = Sha256::new();
        match path.map(|path| find(payload, path)) {
            None => hash.update([0]),
            Some(None) => hash.update([1]),
            Some(Some(value)) => {
                hash.update([2]);
                // A whole number may be written with a fraction of zero.
                hash.update(canonical(value).to_string());
            }
        }
        let mut key = [0; 16];
        key.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        Self(key)
    }

    /// Returns the bytes, for a key of a store.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl From<Uuid> for EventKey {
    fn from(key: Uuid) -> Self {
        Self(key.into_bytes())
    }
}

impl From<EventKey> for Uuid {
    fn from(key: EventKey) -> Uuid {
        Uuid::from_bytes(key.0)
    }
}

// The depth of a payload is bounded.
fn canonical(value: &Value) -> Value {
    // Beyond, not every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "the number is whole and in range")]
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT => {
                (float as i64).into()
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Object(map) => {
            // A host may have chosen maps that keep the order of their members.
            let members = map.iter().map(|(name, value)| (name.clone(), canonical(value)));
            members.collect::<BTreeMap<_, _>>().into_iter().collect()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}
