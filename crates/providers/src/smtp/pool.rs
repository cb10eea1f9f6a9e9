//! The pool: connections that wait for another e-mail.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidings::credentials::Credentials;
use tidings::error::Invalid;
use tidings::ids::IntegrationId;
use tidings::integration::Integration;

use super::account::Account;
use super::connection::Connection;
use super::mail::Mail;
use super::outcome::Failure;

// Servers close a connection that is silent for minutes.
const IDLE: Duration = Duration::from_secs(30);

// Connections of a relay that wait.
const WAITING: usize = 16;

// Relays that are kept. A host with more integrations connects more often.
const RELAYS: usize = 256;

/// Relays by integration.
#[derive(Debug, Default)]
pub(super) struct Relays(Mutex<HashMap<IntegrationId, Arc<Relay>>>);

/// Server of an integration.
#[derive(Debug)]
pub(super) struct Relay {
    credentials: Credentials,
    account: Account,
    waiting: Mutex<Vec<Connection>>,
}

impl Relays {
    /// Returns the relay of an integration. Its connections are dropped if its credentials have
    /// changed.
    pub(super) fn of(&self, integration: &Integration) -> Result<Arc<Relay>, Invalid> {
        let mut relays = self.0.lock();
        let known = relays.get(&integration.id);
        if let Some(relay) = known.filter(|relay| relay.credentials == integration.credentials) {
            return Ok(Arc::clone(relay));
        }
        let account = Account::of(&integration.credentials)?;
        if relays.len() >= RELAYS {
            relays.clear();
        }
        let credentials = integration.credentials.clone();
        let relay = Arc::new(Relay { credentials, account, waiting: Mutex::default() });
        relays.insert(integration.id, Arc::clone(&relay));
        Ok(relay)
    }
}

impl Relay {
    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    /// Sends an e-mail through a connection that waits, or through a new one.
    pub(super) fn send(&self, mail: &Mail, deadline: Instant) -> Result<(), Failure> {
        let mut connection = match self.waiting(deadline) {
            Some(connection) => connection,
            None => Connection::open(&self.account, deadline)?,
        };
        let sent = connection.send(&mail.envelope, &mail.content);
        if sent.as_ref().err().is_none_or(Failure::leaves_connection) {
            let mut waiting = self.waiting.lock();
            if waiting.len() < WAITING {
                waiting.push(connection.rest());
            }
        }
        sent
    }

    // Returns a connection that still answers.
    fn waiting(&self, deadline: Instant) -> Option<Connection> {
        loop {
            let mut connection = self.waiting.lock().pop()?;
            let is_fresh = connection.since().elapsed() < IDLE;
            if is_fresh && connection.reset(deadline).is_ok() {
                return Some(connection);
            }
        }
    }
}
