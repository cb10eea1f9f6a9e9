//! Values that must not be seen by accident.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A text that stays out of logs: it prints as `***`, and its memory is overwritten when it is
/// dropped.
///
/// It is serialized as it is, for that is how it is stored and sent. A record that holds one has
/// a `redacted` function for every other purpose.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes `text` as a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What stands for a secret where it is not to be seen.
    pub fn redacted() -> Self {
        Self("***".into())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&String> for Secret {
    fn from(text: &String) -> Self {
        Self::new(text.as_str())
    }
}

impl From<&Secret> for Secret {
    fn from(secret: &Secret) -> Self {
        secret.clone()
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests;
