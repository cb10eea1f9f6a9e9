//! Every operation of the specification, case by case, over both backends.

use testkit::world;

mod cascades;
mod channel_connections;
mod channel_endpoints;
mod conditions;
mod content;
mod contexts;
mod dead_letters;
mod delivery;
mod environments;
mod events;
mod explain;
mod fan_out;
mod idempotency;
mod inbox;
mod integrations;
mod layouts;
mod limits;
mod lists;
mod lookups;
mod messages;
mod notifications;
mod pause;
mod preferences;
mod receipts;
mod retention;
mod simulation;
mod steps;
mod subscribers;
mod subscriptions;
mod suppressions;
mod topics;
mod translations;
mod unsubscribe;
mod workflows;
