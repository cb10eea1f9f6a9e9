//! A database behind its redo log.
//!
//! A commit is a record in the log, and a change of the active memtable. A memtable that is full, or
//! that has got nothing for a second, is frozen. It is applied to the database in steps, while the
//! next one fills. Reads merge both memtables with a snapshot of the database.
//!
//! Three locks, always taken in this order: `writer`, `applying`, `state`.

mod applying;
mod pause;
#[cfg(test)]
mod sample;
mod snapshot;

use std::mem;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};
use redb::StorageError;

use self::pause::Stop;
pub(super) use self::snapshot::Merged;
use super::database::{DatabaseFile, Durable, Frozen, Row};
use super::failure::{Failure, attempt, caught};
use super::log::{Log, LogPlace, Loss};
use super::meta::{Note, NoteState};
use super::{AppliedBy, LogOptions};
use crate::group_commit::Base;
use crate::memtable::{Encoded, Memtable, Position, encode, encoded_len};
use crate::overlay::Changes;
use crate::{Error, Result};

/// A payload of up to so many bytes is added to a memtable that no snapshot has, without a copy of
/// what it touches. Snapshots wait meanwhile: some 10 µs.
const IN_PLACE: usize = 16 << 10;

/// The database with its log, if it has one.
pub(super) struct Logged {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    file: DatabaseFile,
    keeping: Keeping,
    writer: Mutex<Writer>,
    /// The end of the last step. Its lock keeps others from applying the same changes.
    applying: Mutex<Option<Position>>,
    state: Mutex<State>,
    changed: Condvar,
}

/// How batches are made durable.
pub(super) enum Keeping {
    /// By a record in the log.
    Log(Logging),
    /// By a transaction of the database. The place tells whether the file is still there.
    Directly(Option<Box<dyn LogPlace>>),
}

/// How the log is kept.
pub(super) struct Logging {
    pub(super) place: Box<dyn LogPlace>,
    pub(super) options: LogOptions,
}

/// What the leader of a batch works with.
struct Writer {
    /// `None` before the first record, and after a checkpoint.
    log: Option<Log>,
    /// What the database notes without a log.
    note: Note,
}

/// What a snapshot captures, and who waits for what.
#[derive(Default)]
struct State {
    active: Arc<Memtable>,
    frozen: Option<Frozen>,
    stopped: Option<Stop>,
    /// Rises with each change of what snapshots show. Moving changes from a memtable into the database is
    /// none.
    stamp: u64,
    /// Number of actions under way that may change what snapshots show, at a moment that is not known.
    changing: usize,
    /// A caller waits until nothing is frozen.
    is_waited_for: bool,
    /// Without a thread, callers apply what is frozen.
    has_thread: bool,
    is_closing: bool,
}

impl Logged {
    /// The database of `file`, which has the content of its log, and says so in `note`.
    pub(super) fn new(file: DatabaseFile, note: Note, keeping: Keeping) -> Self {
        let shared = Arc::new(Shared {
            file,
            keeping,
            writer: Mutex::new(Writer { log: None, note }),
            applying: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let by = shared.logging().map(|logging| logging.options.applied_by);
        let thread = match by {
            Some(AppliedBy::Thread) => spawn(&shared),
            Some(AppliedBy::Callers) | None => None,
        };
        shared.state.lock().has_thread = thread.is_some();
        Self { shared, thread }
    }

    pub(super) fn file(&self) -> &DatabaseFile {
        &self.shared.file
    }

    /// Applies everything, and removes the log.
    pub(super) fn checkpoint(&self) -> Result<(), Failure> {
        self.caught(Shared::checkpoint)
    }

    /// Runs an action that asks the storage of the host. A panic of that ends commits, as an error
    /// does, so that callers that wait for the action get an error.
    fn caught<T>(&self, act: impl FnOnce(&Shared) -> Result<T, Failure>) -> Result<T, Failure> {
        caught(|| act(&self.shared)).unwrap_or_else(|panic| Err(self.shared.stop(panic)))
    }
}

/// Without a thread the callers apply.
fn spawn(shared: &Arc<Shared>) -> Option<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new().name("tidings-log".to_owned()).spawn(move || shared.apply_all()).ok()
}

impl Base for Logged {
    type Snapshot<'s> = Merged<'s>;
    type Failure = Failure;

    fn snapshot(&self) -> Result<Merged<'_>> {
        let shared = &*self.shared;
        // The state stays locked, so that no changes come into the database meanwhile that neither
        // memtable has, and none leave the memtables.
        let state = shared.state.lock();
        let frozen = state.frozen.as_ref().map(|frozen| &frozen.memtable);
        let stamp = (state.changing == 0).then_some(state.stamp);
        Merged::now(&shared.file, [Some(&state.active), frozen], stamp)
    }

    fn commit(&self, changes: &Changes) -> Result<(), Failure> {
        let written = self.caught(|shared| shared.commit(changes))?;
        if self.thread.is_none() {
            self.shared.apply_for(written);
        }
        Ok(())
    }

    fn error(&self, failure: Failure) -> Error {
        failure.at(&self.shared.file.path)
    }
}

impl Shared {
    fn logging(&self) -> Option<&Logging> {
        match &self.keeping {
            Keeping::Log(logging) => Some(logging),
            Keeping::Directly(_) => None,
        }
    }

    /// Makes `changes` durable. Returns the number of bytes that the log has grown by.
    fn commit(&self, changes: &Changes) -> Result<usize, Failure> {
        let mut writer = self.writer.lock();
        self.resume(&mut writer)?;
        let logging = match &self.keeping {
            Keeping::Log(logging) => logging,
            Keeping::Directly(_) => {
                self.check_place()?;
                return self.commit_directly(changes);
            }
        };
        self.make_up_for_loss(&mut writer, logging)?;
        let len = encoded_len(changes);
        let log = writer.log(self, logging)?;
        if !log.takes(len) {
            self.freeze(log)?;
            self.drain()?;
            return self.commit_directly(changes);
        }
        if !log.has_room(len) {
            self.freeze(log)?;
        }
        self.append(log, &encode(changes, len)).map_err(|failure| self.stop(failure))
    }

    /// Fails if another program has moved, deleted or replaced the file.
    fn check_place(&self) -> Result<(), Failure> {
        let place = match &self.keeping {
            Keeping::Log(logging) => Some(&logging.place),
            Keeping::Directly(place) => place.as_ref(),
        };
        match place.and_then(|place| place.lost()) {
            Some(Loss::File) => Err(self.stop(Failure::Replaced)),
            Some(Loss::Log) | None => Ok(()),
        }
    }

    /// Takes the changes of a log that another program has removed into the file.
    fn make_up_for_loss(&self, writer: &mut Writer, logging: &Logging) -> Result<(), Failure> {
        match logging.place.lost() {
            Some(Loss::File) => Err(self.stop(Failure::Replaced)),
            Some(Loss::Log) if writer.log.is_some() => {
                self.take_in(writer).map_err(|failure| self.stop(failure))
            }
            Some(Loss::Log) | None => Ok(()),
        }
    }

    /// Commits to the database what does not go through the log. The memtables are empty.
    fn commit_directly(&self, changes: &Changes) -> Result<usize, Failure> {
        self.changing(|| self.commit_or_end(changes.iter(), None)).map(|()| 0)
    }

    /// Runs an action that may change what snapshots show. Those that are taken meanwhile have no stamp.
    fn changing<T>(&self, act: impl FnOnce() -> T) -> T {
        self.state.lock().changing += 1;
        let done = act();
        let mut state = self.state.lock();
        state.changing -= 1;
        state.stamp += 1;
        done
    }

    /// Commits to the database what no memtable has. There are no more commits if snapshots do not
    /// show it: the caller gets an error, and a store that goes on would show the changes later.
    fn commit_or_end<'r>(
        &self,
        rows: impl IntoIterator<Item = Row<'r>>,
        note: Option<&Note>,
    ) -> Result<(), Failure> {
        match self.file.commit(rows, note).map_err(|failure| self.stop(failure))? {
            Durable::Shown => Ok(()),
            Durable::Hidden(failure) => Err(self.stop(Failure::Stopped(Box::new(failure)))),
        }
    }

    fn create_log(&self, logging: &Logging, last: u64) -> Result<Log, Failure> {
        let bytes = logging.options.memtable_bytes;
        let create = || Log::create(&*logging.place, bytes, last);
        let log = attempt("create the log", || create().map_err(StorageError::Io))?;
        // The database names its log before there is a record that could be lost.
        let note = Note { state: NoteState::Open, id: log.id(), applied: last };
        self.commit_or_end([], Some(&note))?;
        Ok(log)
    }

    fn append(&self, log: &mut Log, changes: &Encoded) -> Result<usize, Failure> {
        attempt("write the log", || log.append(&changes.payload).map_err(StorageError::Io))?;
        let was_empty = self.state.lock().active.is_empty();
        self.show(changes);
        if was_empty {
            self.changed.notify_all();
        }
        Ok(changes.payload.len())
    }

    /// Adds changes to the active memtable. Snapshots that were taken before do not show them.
    fn show(&self, changes: &Encoded) {
        let mut state = self.state.lock();
        if changes.payload.len() <= IN_PLACE
            && let Some(active) = Arc::get_mut(&mut state.active)
        {
            active.add(changes);
            state.stamp += 1;
            return;
        }
        let active = Arc::clone(&state.active);
        drop(state);
        let mut next = Memtable::clone(&active);
        next.add(changes);
        let mut state = self.state.lock();
        let before = mem::replace(&mut state.active, Arc::new(next));
        state.stamp += 1;
        drop(state);
        drop(before);
    }

    /// Lets the active memtable be applied, and goes on with an empty one.
    fn freeze(&self, log: &mut Log) -> Result<(), Failure> {
        self.drain_frozen()?;
        self.turn(log);
        Ok(())
    }

    /// Freezes the active memtable, if there is anything in it. None is frozen.
    fn turn(&self, log: &mut Log) {
        let mut state = self.state.lock();
        if !state.active.is_empty() {
            let memtable = mem::take(&mut state.active);
            let note = Note { state: NoteState::Open, id: log.id(), applied: log.last() };
            state.frozen = Some(Frozen { memtable, note });
            log.turn();
            self.changed.notify_all();
        }
    }

    fn checkpoint(&self) -> Result<(), Failure> {
        let mut writer = self.writer.lock();
        self.resume(&mut writer)?;
        self.check_place()?;
        let (Some(logging), Some(log)) = (self.logging(), &mut writer.log) else { return Ok(()) };
        self.freeze(log)?;
        self.take_in(&mut writer).map_err(|failure| self.stop(failure))?;
        attempt("remove the log", || logging.place.remove().map_err(StorageError::Io))
    }
}

impl Writer {
    /// The log, which is created if there is none.
    fn log(&mut self, shared: &Shared, logging: &Logging) -> Result<&mut Log, Failure> {
        let log = match self.log.take() {
            Some(log) => log,
            None => shared.create_log(logging, self.note.applied)?,
        };
        Ok(self.log.insert(log))
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        self.shared.state.lock().is_closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        self.shared.state.lock().has_thread = false;
        self.shared.hurry();
        // If this fails, the next opening does the same.
        drop(self.checkpoint());
    }
}
