//! Secrets: texts that are never printed.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Invalid, Reason};

const MASK: &str = "***";

/// Secret text: prints as `***`, and is overwritten in memory on drop.
///
/// It serializes in plain text, for the store and for providers. Records with secrets have a
/// `redacted` function for every other purpose.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns `text` as a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the masked form of a secret.
    pub fn redacted() -> Self {
        Self(MASK.into())
    }

    /// Refuses the masked form of a secret in `field`: stored, it would be taken for the secret.
    pub(crate) fn check_unmasked(&self, field: impl Into<String>) -> Result<(), Invalid> {
        if self.0 == MASK {
            return Err(Invalid::new(field, Reason::malformed("a secret, not its mask")));
        }
        Ok(())
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
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests;
