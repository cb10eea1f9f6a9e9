//! The way of a notification: a trigger, its recipients, delivery.

pub(crate) mod apply;
mod bulk;
pub(crate) mod cancel;
pub(crate) mod chunk;
mod current;
pub(crate) mod delivery;
mod explain;
pub(crate) mod facts;
pub(crate) mod fan_out;
pub(crate) mod leases;
pub(crate) mod left;
mod notify;
pub(crate) mod planned;
mod prepare;
pub(crate) mod receipts;
mod redrive;
mod resend;
pub(crate) mod stalled;
pub(crate) mod sweep;
pub(crate) mod texts;
pub(crate) mod trigger;
mod windows;
