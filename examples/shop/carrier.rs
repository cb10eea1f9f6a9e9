//! The way out of the process. A real provider speaks SMTP or HTTP here; this one only acts as if.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidings::Address;
use tidings::{Delivery, Provider, ProviderReceipt, SendError};

/// Takes nearly everything, and answers as providers do where it does not. It never looks at a
/// clock or at chance, so every run of the example tells the same story.
#[derive(Debug, Default)]
pub struct Carrier {
    calls: AtomicU32,
}

impl Provider for Carrier {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call.is_multiple_of(20) {
            return Err(SendError::retry_after("429 too many requests", Duration::from_secs(30)));
        }
        check(&delivery.address)?;
        let id = format!("{}-{call:05}", delivery.integration.provider_id);
        Ok(ProviderReceipt::with_id(id))
    }
}

fn check(address: &Address) -> Result<(), SendError> {
    match address {
        Address::Email(email) if email.as_str().ends_with("@gone.example.org") => {
            Err(SendError::recipient_gone("550 no such mailbox"))
        }
        Address::Email(email) if email.as_str().ends_with("@full.example.org") => {
            Err(SendError::retryable("452 mailbox full"))
        }
        Address::Device(token) if token.starts_with("expired-") => {
            Err(SendError::recipient_gone("the app was removed"))
        }
        Address::Email(_)
        | Address::Phone(_)
        | Address::Webhook { .. }
        | Address::Device(_)
        | Address::Workspace { .. } => Ok(()),
    }
}
