//! A provider that refuses some addresses, and remembers what it has sent.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use domain::ids::NotificationId;
use tidings::{Address, Delivery, Provider, ProviderReceipt, SendError};

/// A provider that refuses some addresses, and remembers what it has sent.
/// Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Post(Arc<Mutex<State>>);

/// A message that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Address.
    pub to: String,
    /// Id of the message at the provider.
    pub number: String,
    /// Its notification.
    pub notification: NotificationId,
}

#[derive(Debug, Default)]
struct State {
    refused: BTreeSet<String>,
    sent: Vec<Sent>,
}

impl Post {
    /// Refuses messages to the address from now on, or accepts them.
    pub fn refuse(&self, address: &str, refuses: bool) {
        let unwanted = &mut self.state().refused;
        if refuses {
            unwanted.insert(address.to_owned());
        } else {
            unwanted.remove(address);
        }
    }

    /// The messages that were sent, oldest first.
    pub fn sent(&self) -> Vec<Sent> {
        self.state().sent.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread panics with the lock in hand")
    }
}

impl Provider for Post {
    fn send(&self, delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        let Address::Email(to) = &delivery.address else {
            return Err(SendError::permanent("an address for e-mail is required"));
        };
        let state = &mut *self.state();
        let to = to.to_string();
        if state.refused.contains(&to) {
            return Err(SendError::permanent("on purpose"));
        }
        let number = format!("message {}", state.sent.len());
        let notification = delivery.notification.id;
        state.sent.push(Sent { to, number: number.clone(), notification });
        Ok(ProviderReceipt::with_id(number))
    }
}
