//! Making up for a crash: the changes that only the log has.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::StorageError;
use thiserror::Error;

use super::RedbOptions;
use super::database::{DatabaseFile, Frozen};
use super::failure::{Failure, attempt};
use super::log::{self, LogContent, LogPlace, Scan};
use super::meta::{Note, NoteState};
use crate::memtable::{Malformed, Memtable};
use crate::{Error, Result};

/// Size of the transactions of a recovery, in bytes.
const STEP: usize = 256 << 10;

/// What is to be done before a file is used.
pub(super) enum Recovery {
    /// The file has everything. A log that is there may be removed.
    Nothing(Note),
    /// Changes are to be applied.
    Replay(Frozen),
    /// The file goes on without its log, whose header is damaged.
    Discard(Frozen),
}

#[derive(Debug, Error)]
#[error("the header of the log is damaged")]
struct DamagedHeader;

impl Recovery {
    /// Compares the log at `place` with the `note` of the file at `path`.
    pub(super) fn plan(
        place: Option<&dyn LogPlace>,
        path: &Path,
        note: &Note,
        discards: bool,
    ) -> Result<Self> {
        let log = log::name(path);
        let found = find(place, note).map_err(|failure| failure.at(&log))?;
        match (note.state, found) {
            (_, LogContent::Foreign) => Err(Error::NotOurs { path: log }),
            (_, LogContent::Newer { found, supported }) => {
                Err(Error::NewerFormat { path: log, found, supported })
            }
            (_, LogContent::Damaged) if !discards => Err(damaged(log, DamagedHeader)),
            (_, LogContent::Damaged) => Ok(Recovery::Discard(Frozen::without_log(note))),
            (NoteState::Closed, LogContent::Nothing) => Ok(Recovery::Nothing(*note)),
            (NoteState::Closed, LogContent::Log { id, scan }) => {
                // Its removal was lost, or its creation was interrupted.
                let is_left = id == note.id || (scan.payloads.is_empty() && scan.damage.is_none());
                let foreign = || Error::ForeignLog { path: path.to_owned(), log };
                if is_left { Ok(Recovery::Nothing(*note)) } else { Err(foreign()) }
            }
            (NoteState::Open, LogContent::Nothing) if !discards => {
                Err(Error::LogMissing { path: path.to_owned(), log })
            }
            (NoteState::Open, LogContent::Nothing) => {
                Ok(Recovery::Replay(Frozen::without_log(note)))
            }
            (NoteState::Open, LogContent::Log { id, .. }) if id != note.id => {
                Err(Error::ForeignLog { path: path.to_owned(), log })
            }
            (NoteState::Open, LogContent::Log { scan, .. }) => match scan.damage {
                Some(damage) if !discards => Err(damaged(log, damage)),
                _ => replay(scan, note, discards).map_err(|malformed| damaged(log, malformed)),
            },
        }
    }

    /// Applies the changes, and removes the log. Returns the note of the file.
    pub(super) fn run(
        self,
        file: &DatabaseFile,
        place: Option<&dyn LogPlace>,
        options: &RedbOptions,
    ) -> Result<Note, Failure> {
        let is_discarded = matches!(self, Recovery::Discard(_));
        let note = match self {
            Recovery::Nothing(note) => note,
            Recovery::Replay(frozen) | Recovery::Discard(frozen) => {
                // Nobody else waits for the disk.
                let bytes = options.log.as_ref().map_or(0, |log| log.memtable_bytes / 32).max(STEP);
                let mut position = file.step(&frozen, None, bytes)?;
                while position.is_some() {
                    position = file.step(&frozen, position.as_ref(), bytes)?;
                }
                frozen.note
            }
        };
        let remove = |place: &dyn LogPlace| {
            attempt("remove the log", || {
                // A removal may be lost in a power cut. Any other log does no harm to the file then, but this
                // one would be refused again.
                if is_discarded {
                    place.create().and_then(|empty| empty.sync_data()).map_err(io)?;
                }
                place.remove().map_err(io)
            })
        };
        place.map_or(Ok(()), remove).map(|()| note)
    }
}

impl Frozen {
    fn without_log(note: &Note) -> Self {
        let note = Note { state: NoteState::Closed, ..*note };
        Self { memtable: Arc::default(), note }
    }
}

fn find(place: Option<&dyn LogPlace>, note: &Note) -> Result<LogContent, Failure> {
    // A closed file is compared with no log, so that each record of a foreign one counts.
    let applied = match note.state {
        NoteState::Closed => 0,
        NoteState::Open => note.applied,
    };
    let find = |place| attempt("read the log", || log::find(place, applied).map_err(io));
    place.map_or(Ok(LogContent::Nothing), find)
}

// If damage is discarded, a record that cannot be read ends the log.
fn replay(scan: Scan, note: &Note, discards: bool) -> Result<Recovery, Malformed> {
    let note = Note { state: NoteState::Closed, applied: scan.last, ..*note };
    let mut memtable = Memtable::default();
    for payload in scan.payloads {
        match memtable.replay(payload) {
            Err(_) if discards => break,
            replayed => replayed?,
        }
    }
    Ok(Recovery::Replay(Frozen { memtable: Arc::new(memtable), note }))
}

fn damaged(path: PathBuf, source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Damaged { path, source: Box::new(source) }
}

fn io(error: std::io::Error) -> StorageError {
    StorageError::Io(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use crate::memtable::{encode, encoded_len};
    use crate::overlay::Changes;

    #[test]
    fn a_malformed_record_ends_a_log_whose_damage_is_discarded() {
        let payload = |key: &[u8]| {
            let mut changes = Changes::default();
            changes.set(Table::Topics, key, Some(b"value"));
            encode(&changes, encoded_len(&changes)).payload
        };
        let malformed = Arc::new(b"malformed".to_vec());
        let scan = || {
            let payloads = vec![payload(b"one"), Arc::clone(&malformed), payload(b"three")];
            Scan { payloads, last: 3, damage: None }
        };
        assert!(replay(scan(), &Note::default(), false).is_err());
        let Ok(Recovery::Replay(frozen)) = replay(scan(), &Note::default(), true) else {
            panic!("it is replayed")
        };
        let keys: Vec<_> = frozen.memtable.after(None).map(|(_, key, _)| key.to_vec()).collect();
        assert_eq!(keys, [b"one"]);
    }
}
