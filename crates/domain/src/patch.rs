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
