//! Operations on the records of an environment, one file per group, and on organizations.

pub(crate) mod cascade;
pub(crate) mod channels;
pub(crate) mod connections;
pub(crate) mod contexts;
pub(crate) mod dead_letters;
pub(crate) mod deletion;
pub(crate) mod endpoints;
pub(crate) mod environments;
pub(crate) mod inbox;
pub(crate) mod integrations;
pub(crate) mod keys;
pub(crate) mod layouts;
pub(crate) mod messages;
mod neighbours;
pub(crate) mod notifications;
mod organizations;
pub(crate) mod person;
pub(crate) mod preferences;
pub(crate) mod quarantine;
pub(crate) mod subscribers;
pub(crate) mod subscriptions;
pub(crate) mod suppressions;
pub(crate) mod topics;
pub(crate) mod translation_groups;
pub(crate) mod translations;
pub(crate) mod unsubscribe;
pub(crate) mod workflows;
