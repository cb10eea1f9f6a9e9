//! The targets of the fuzzer, by the names of their folders in `fuzz/corpus`.

use crate::effort::Effort;
use crate::{
    decode, entities, facade, files, filters, history, keys, reads, records, requests, rules,
    schedules, segments, step, templates,
};

/// What a target does with an input.
pub type Run = fn(&[u8], Effort);

/// All targets.
pub const ALL: [(&str, Run); 13] = [
    ("entities", |bytes, effort| entities::run(&decode(bytes), effort)),
    ("facade", |bytes, effort| facade::run(&decode(bytes), effort)),
    ("files", |bytes, effort| files::run(&step(bytes), effort)),
    ("filters", |bytes, _| filters::run(&filters::decode(bytes))),
    ("history", |bytes, effort| history::run(&decode(bytes), effort)),
    ("keys", |bytes, _| keys::run(&step(bytes))),
    ("reads", |bytes, effort| reads::run(bytes, effort)),
    ("records", |bytes, effort| records::run(records::decode(bytes), effort)),
    ("requests", |bytes, effort| requests::run(&requests::decode(bytes), effort)),
    ("rules", |bytes, _| rules::run(&rules::decode(bytes))),
    ("schedules", |bytes, _| schedules::run(&schedules::decode(bytes))),
    ("segments", |bytes, effort| segments::run(&decode(bytes), effort)),
    ("templates", |bytes, _| templates::run(bytes)),
];

/// Does what the target of that name does.
///
/// # Panics
///
/// If there is no such target, or if the target finds something.
#[track_caller]
pub fn run(name: &str, bytes: &[u8], effort: Effort) {
    let target = ALL.iter().find(|(target, _)| *target == name);
    target.expect("there is such a target").1(bytes, effort);
}

/// The same as the fuzzer does it.
///
/// # Panics
///
/// If there is no such target, or if the target finds something.
pub fn fuzz(name: &str, bytes: &[u8]) {
    run(name, bytes, Effort::over(bytes));
}
