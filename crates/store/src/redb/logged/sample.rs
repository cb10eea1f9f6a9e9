//! A log in a folder of its own, before a database in memory.

use std::fs::File;

use redb::backends::InMemoryBackend;
use tempfile::TempDir;

use super::super::log::LogFile;
use super::super::{AppliedBy, LogOptions, RedbOptions, open};
use super::{Keeping, Logged, Logging};

pub(super) fn logged() -> (TempDir, Logged) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("shop.redb");
    let file = File::create(&place).unwrap();
    let log = LogOptions::default().applied_by(AppliedBy::Callers);
    let options = RedbOptions::default().log(log.clone());
    let storage = Box::new(InMemoryBackend::new());
    let (database, note) = open::open(storage, &place, &options, None).unwrap();
    let place = Box::new(LogFile::beside(&place, &file));
    let logged = Logged::new(database, note, Keeping::Log(Logging { place, options: log }));
    (folder, logged)
}
