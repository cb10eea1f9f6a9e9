//! What the tests talk to, and what they talk with.

pub mod mail_server;
pub mod server;
