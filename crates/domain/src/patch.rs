//! Partial updates.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a partial update does to one field.
///
/// On the wire a field that is kept is absent, and one that is cleared is `null`. A struct that
/// has a patch as a field says so with `#[serde(default, skip_serializing_if = "Patch::is_keep")]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// Leaves the field as it is.
    #[default]
    Keep,
    /// Empties the field.
    Clear,
    /// Gives the field a value.
    Set(T),
}

impl<T> Patch<T> {
    /// Whether this leaves the field as it is.
    pub fn is_keep(&self) -> bool {
        matches!(self, Patch::Keep)
    }

    /// Returns the value that the field is given.
    pub fn as_set(&self) -> Option<&T> {
        match self {
            Patch::Keep | Patch::Clear => None,
            Patch::Set(value) => Some(value),
        }
    }

    /// Does it to `field`.
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
