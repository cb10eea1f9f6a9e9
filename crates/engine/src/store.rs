//! The contract of a store, its backends and its errors.
//!
//! A backend of a host implements [`Store`], [`Snapshot`] and [`Transaction`]. Tables and keys are
//! bytes to a backend: their encoding is no part of the contract.

#[cfg(feature = "redb")]
pub use store::redb;
pub use store::{
    Decision, Error, HostTransaction, KeyRange, Listener, Order, ReadBody, Result, Snapshot, Store,
    Table, Transaction, Visit, VisitValue, WriteBody, WriteScope, memory, transfer,
};
#[cfg(feature = "conformance")]
pub use store::{conformance, conformance_tests};
