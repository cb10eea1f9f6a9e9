//! Every operation of the specification, case by case, over both backends.

mod delivery;
mod environments;
mod events;
mod inbox;
mod integrations;
mod messages;
mod mortal;
mod notifications;
mod preferences;
mod subscribers;
mod workflows;
mod world;
