//! The way of a notification: a trigger, its recipients, delivery.

pub(crate) mod delivery;
pub(crate) mod fan_out;
pub(crate) mod trigger;
