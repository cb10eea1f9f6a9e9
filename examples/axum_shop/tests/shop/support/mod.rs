//! What the tests talk to, and what they talk with.

pub mod feed;
pub mod mail_server;
pub mod server;
