//! Integrations that are paused.

use super::Integration;
use crate::time::Timestamp;

impl Integration {
    /// Returns `true` if the integration is paused: its messages are chosen for it, and wait.
    pub const fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// Returns the integration, paused at `now` unless it is paused already.
    #[doc(hidden)]
    #[must_use]
    pub fn paused(&self, now: Timestamp) -> Self {
        Self { paused_at: self.paused_at.or(Some(now)), ..self.clone() }
    }

    /// Returns the integration, not paused.
    #[doc(hidden)]
    #[must_use]
    pub fn resumed(&self) -> Self {
        Self { paused_at: None, ..self.clone() }
    }
}
