//! Reports of services: requests that a host has received, before their signature is checked.

use domain::error::{Invalid, Reason, Unit};
use domain::integration::Integration;
use domain::receipt::{InboundRefusal, Receipt};
use domain::secret::Secret;
use domain::time::Timestamp;
use serde::Serialize;

use crate::host;
use crate::{Engine, Error, Rejection, Result};

/// Request of a service with reports about messages, as the host has received it.
///
/// ```
/// use tidings::InboundReport;
///
/// let report = InboundReport::new(b"[]".to_vec()).header("Webhook-Id", "evt-1");
/// assert_eq!(report.get("webhook-id"), Some("evt-1"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InboundReport {
    /// Headers, by name.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Report for a provider that verifies and reads it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Inbound<'a> {
    /// Request.
    pub report: &'a InboundReport,
    /// Integration that the report is for.
    pub integration: &'a Integration,
    /// Key in the configurations of the integration that signs reports.
    pub key: &'a Secret,
    /// Time of the engine.
    pub now: Timestamp,
}

impl InboundReport {
    /// Largest body, in bytes.
    pub const MAX_BODY: usize = 1 << 20;
    /// Maximum number of receipts in a report.
    pub const MAX_RECEIPTS: usize = 1_000;

    /// Returns a request without headers.
    pub fn new(body: impl Into<Vec<u8>>) -> Self {
        Self { headers: Vec::new(), body: body.into() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Returns the first header of that name, in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }
}

/// Returns the receipts of a report, which the provider of the integration has verified. No
/// transaction is open.
pub(crate) fn receipts(
    engine: &Engine,
    integration: &Integration,
    report: &InboundReport,
) -> Result<Vec<Receipt>> {
    let (size, max, unit) = (report.body.len(), InboundReport::MAX_BODY, Unit::Bytes);
    if size > max {
        return Err(Invalid::new("body", Reason::TooLarge { max, size, unit }).into());
    }
    let receipts = verified(engine, integration, report)
        .map_err(|reason| Error::Rejected(Rejection::InboundReport { reason }))?;
    let max = InboundReport::MAX_RECEIPTS;
    if receipts.len() > max {
        return Err(Invalid::new("receipts", Reason::TooMany { max }).into());
    }
    receipts.iter().try_for_each(Receipt::check)?;
    Ok(receipts)
}

fn verified(
    engine: &Engine,
    integration: &Integration,
    report: &InboundReport,
) -> Result<Vec<Receipt>, InboundRefusal> {
    let key = integration.inbound_key().ok_or(InboundRefusal::Disabled)?;
    let provider = engine.parts.callbacks.provider(&integration.provider_id);
    let provider = provider.ok_or(InboundRefusal::NoProvider)?;
    let inbound = Inbound { report, integration, key, now: engine.now() };
    let panicked = |_| Err(InboundRefusal::Unreadable { problem: "the provider panicked".into() });
    host::call(|| provider.receipts(&inbound)).unwrap_or_else(panicked)
}
