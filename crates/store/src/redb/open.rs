//! Opening a file, without touching it unless it is ours.

use std::io::ErrorKind;
use std::path::Path;

use redb::{Builder, DatabaseError, StorageBackend, StorageError};

use super::RedbOptions;
use super::database::DatabaseFile;
use super::failure::{attempt, caught};
use super::gate::Gate;
use super::handle::Handle;
use super::log::{LogPlace, Loss};
use super::medium::Medium;
use super::meta::{self, Identity, Note};
use super::recovery::Recovery;
use crate::layout::{FORMAT, OLDEST_FORMAT};
use crate::{Error, Result};

/// Opens the database in `storage`, which errors call `path`, or creates it. It then has the content
/// of its log, and the log is gone.
pub(super) fn open(
    storage: Box<dyn StorageBackend>,
    path: &Path,
    options: &RedbOptions,
    place: Option<&dyn LogPlace>,
) -> Result<(DatabaseFile, Note)> {
    let (medium, view) = Medium::of(storage);
    let look = || Gate::before(Box::new(view)).map_err(StorageError::from);
    let gate = attempt("look at the file", look).map_err(|failure| failure.at(path))?;
    let mut database = start(gate.clone(), path, options.cache_bytes)?;
    // Another process may have written to the file until it was locked.
    let noted = attempt("look at the file", || medium.note_start().map_err(StorageError::from));
    noted.map_err(|failure| failure.at(path))?;
    // The lock is of the file that was opened. Log and name may be those of another one since.
    let lost = caught(|| place.and_then(LogPlace::lost)).map_err(|failure| failure.at(path))?;
    if lost == Some(Loss::File) {
        return Err(Error::Replaced { path: path.to_owned() });
    }
    if options.verify {
        verify(&mut database, path)?;
    }
    let (recovery, kind) = examine(&database, path, options, place)?;
    let file = DatabaseFile::new(database, medium, path.to_owned(), options.cache_bytes);
    let opened = attempt("prepare the file", || gate.open()).and_then(|()| {
        if matches!(kind, Kind::Blank) {
            attempt("create the store", || meta::claim(file.present().database()))?;
        }
        let note = recovery.run(&file, place, options)?;
        if let Kind::Old { found } = kind {
            attempt("upgrade the file", || meta::upgrade(file.present().database(), found))?;
        }
        Ok(note)
    });
    let note = opened.map_err(|failure| failure.at(path))?;
    Ok((file, note))
}

/// What a file is before it is opened.
enum Kind {
    Blank,
    Ours,
    Old { found: u32 },
}

/// Finds out whether the file is ours, and what its log has for it. Touches neither.
fn examine(
    database: &Handle,
    path: &Path,
    options: &RedbOptions,
    place: Option<&dyn LogPlace>,
) -> Result<(Recovery, Kind)> {
    let identity = attempt("identify the file", || meta::identify(database));
    let note = || attempt("identify the file", || meta::note(database));
    let (note, kind) = match identity.map_err(|failure| failure.at(path))? {
        Identity::Ours => (note(), Kind::Ours),
        Identity::Old { found } => (note(), Kind::Old { found }),
        Identity::Blank if !options.create => {
            return Err(Error::NoStore { path: path.to_owned() });
        }
        Identity::Blank => (Ok(Note::default()), Kind::Blank),
        Identity::Newer { found } => {
            return Err(Error::NewerFormat { path: path.to_owned(), found, supported: FORMAT });
        }
        Identity::TooOld { found } => {
            return Err(Error::OlderFormat {
                path: path.to_owned(),
                found,
                supported: OLDEST_FORMAT,
            });
        }
        Identity::Foreign => return Err(Error::NotOurs { path: path.to_owned() }),
    };
    let note = note.map_err(|failure| failure.at(path))?;
    let recovery = Recovery::plan(place, path, &note, options.discard_damaged_log)?;
    Ok((recovery, kind))
}

fn start(gate: Gate, path: &Path, cache_bytes: usize) -> Result<Handle> {
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    let started = caught(|| builder.create_with_backend(gate));
    match started.map_err(|failure| failure.at(path))? {
        Err(DatabaseError::DatabaseAlreadyOpen) => {
            Err(Error::AlreadyOpen { path: path.to_owned() })
        }
        Err(error) if is_foreign(&error) => Err(Error::NotOurs { path: path.to_owned() }),
        started => attempt("open the file", || started)
            .map(Handle::new)
            .map_err(|failure| failure.at(path)),
    }
}

/// Returns `true` if redb does not recognise the file, or recognises one older than this library.
fn is_foreign(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::UpgradeRequired(_) => true,
        DatabaseError::Storage(StorageError::Io(error)) => error.kind() == ErrorKind::InvalidData,
        _ => false,
    }
}

fn verify(database: &mut Handle, path: &Path) -> Result<()> {
    let sound = attempt("verify the file", || {
        if database.get_mut()?.check_integrity()? {
            Ok(())
        } else {
            Err(redb::Error::Corrupted("a checksum is wrong".to_owned()))
        }
    });
    sound.map_err(|failure| failure.at(path))
}
