//! What is written outside of the process, pinned: the JSON of every record, response and request.
//!
//! `wire/` holds two files for each: one with every field there is, and one with those only that
//! must be there. [`document`] says field by field what the specification asks for.
//! `own/` holds requests with names that the specification does not have.

mod document;
mod enumerations;
mod errors;
mod feed;
mod own;
mod strict;
mod wire;
