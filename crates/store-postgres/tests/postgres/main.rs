//! `PostgresStore` on a server that the tests start: the contract, several processes, failures.
//!
//! Where PostgreSQL is not installed, the tests say that they are skipped.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod callers;
mod clocks;
mod cluster;
mod commits;
mod compression;
mod contract;
mod failover;
mod forgetting;
mod guesses;
mod join;
mod opening;
mod round_trips;
mod scans;
mod scopes;
mod several;
mod silence;
mod tls;
mod unknown;
