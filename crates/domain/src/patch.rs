//! Partial updates of fields.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Effect of a partial update on one field.
///
/// On the wire a kept field is absent, and a cleared one is `null`. Fields of this type have the
/// attribute `#[serde(default, skip_serializing_if = "Patch::is_keep")]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// Keeps the field.
    #[default]
    Keep,
    /// Clears the field.
    Clear,
    /// Sets the field.
    Set(T),
}

impl<T> Patch<T> {
    /// Returns the same change of a value that `convert` makes.
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
            Patch::Set(value) => Patch::Set(convert(value)),
        }
    }

    /// Returns `true` if this keeps the field.
    pub fn is_keep(&self) -> bool {
        matches!(self, Patch::Keep)
    }

    /// Returns the value to set.
    pub fn as_set(&self) -> Option<&T> {
        match self {
            Patch::Keep | Patch::Clear => None,
            Patch::Set(value) => Some(value),
        }
    }

    /// Applies the patch to `field`.
    #[doc(hidden)]
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Patch::Keep => {}
            Patch::Clear => *field = None,
            Patch::Set(value) => *field = Some(value),
        }
    }
}

impl<T> From<T> for Patch<T> {
    fn from(value: T) -> Self {
        Patch::Set(value)
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Patch::Keep | Patch::Clear => serializer.serialize_none(),
            Patch::Set(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Option::deserialize(deserializer)?;
        Ok(value.map_or(Patch::Clear, Patch::Set))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Update {
        #[serde(skip_serializing_if = "Patch::is_keep")]
        field: Patch<u8>,
    }

    /// One row per patch: how it is written, and what it makes of an empty field and of a full one.
    #[test]
    fn keeps_clears_and_sets() {
        for (field, json, of_none, of_some) in [
            (Patch::Keep, json!({}), None, Some(1)),
            (Patch::Clear, json!({ "field": null }), None, None),
            (Patch::from(2), json!({ "field": 2 }), Some(2), Some(2)),
        ] {
            assert_eq!(serde_json::to_value(Update { field }).unwrap(), json);
            assert_eq!(serde_json::from_value::<Update>(json).unwrap(), Update { field });
            let applied = |mut to: Option<u8>| {
                field.apply(&mut to);
                to
            };
            assert_eq!((applied(None), applied(Some(1))), (of_none, of_some));
        }
        assert!(serde_json::from_value::<Update>(json!({ "field": "2" })).is_err());
    }
}
