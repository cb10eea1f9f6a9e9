//! The way of a notification: a trigger, its recipients, delivery.

mod bulk;
pub(crate) mod cancel;
pub(crate) mod crowd;
mod current;
pub(crate) mod delivery;
mod explain;
pub(crate) mod facts;
pub(crate) mod fan_out;
pub(crate) mod leases;
pub(crate) mod live_events;
pub(crate) mod notification_tx;
mod notify;
pub(crate) mod planned;
mod prepare;
pub(crate) mod receipts;
mod redrive;
mod resend;
mod row_batch;
pub(crate) mod stalled;
pub(crate) mod sweep;
pub(crate) mod texts;
pub(crate) mod trigger;
mod windows;
