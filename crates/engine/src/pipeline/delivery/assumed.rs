//! Answers of the outside world that a rehearsal assumes.

use domain::json::Object;

use super::call::{Call, Handler};
use super::provider::{Delivery, Provider, ProviderReceipt, SendError};
use crate::Result;

/// Accepts every message, and returns nothing from a custom step.
#[derive(Debug)]
pub(crate) struct Assumed;

impl Provider for Assumed {
    fn send(&self, _delivery: &Delivery) -> Result<ProviderReceipt, SendError> {
        Ok(ProviderReceipt::default())
    }
}

impl Handler for Assumed {
    fn call(&self, _call: &Call) -> Result<Option<Object>, SendError> {
        Ok(None)
    }
}
