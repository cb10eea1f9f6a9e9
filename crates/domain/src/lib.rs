//! Rules of the Tidings notification engine, as values and total functions.
//!
//! Every entity has a file, and so has every decision. [`PreferenceCase`](preference::PreferenceCase)
//! decides whether a channel may be used, and names the layer that decides. [`filter`] evaluates the
//! conditions of a step. Callers, rules and the store share the same types, and their JSON is the
//! wire format.
//!
//! The crate has no clock, randomness, I/O, threads or store. Times and ids of new records are
//! arguments.
//!
//! Items that the documentation hides serve the sibling crates. They are no API, and may change
//! with any version.

pub mod api_key;
pub mod channel;
pub mod circuit;
pub mod condition;
pub mod connection;
pub mod contact;
pub mod content;
pub mod context;
pub mod convert;
pub mod credentials;
pub mod dead_letter;
pub mod digest;
pub mod endpoint;
pub mod environment;
pub mod error;
#[doc(hidden)]
pub mod event;
pub mod explain;
pub mod filter;
#[doc(hidden)]
pub mod fnv;
#[doc(hidden)]
pub mod folded;
#[doc(hidden)]
pub mod hex;
#[doc(hidden)]
pub mod idempotency;
pub mod ids;
pub mod integration;
pub mod job;
pub mod json;
pub mod layout;
pub mod limits;
pub mod message;
mod names;
pub mod notification;
pub mod observer;
#[doc(hidden)]
pub mod packed;
pub mod page;
pub mod patch;
mod payload;
pub mod person;
#[doc(hidden)]
pub mod plan;
pub mod preference;
pub mod preview;
pub mod quarantine;
pub mod query;
#[doc(hidden)]
pub mod quota;
pub mod receipt;
pub mod retention;
#[cfg(test)]
mod sample;
pub mod schedule;
pub mod secret;
mod setters;
mod slug;
pub mod step;
pub mod subscriber;
pub mod subscription;
#[doc(hidden)]
pub mod suggest;
pub mod suppression;
#[doc(hidden)]
pub mod task;
pub mod template;
#[doc(hidden)]
pub mod template_data;
pub mod time;
pub mod topic;
pub mod translation;
pub mod trigger;
pub mod unsubscribe;
pub mod vocabulary;
pub mod workflow;
mod zone;
