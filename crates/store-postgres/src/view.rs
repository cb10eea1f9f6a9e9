//! A transaction of the server, as a fixed view.

mod reads;

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fmt, mem};

use foldhash::{HashMap, HashSet};
use futures_util::future::{try_join, try_join3};
use store::overlay::Changes;
use store::{ReadBody, Result, Table};
use tokio_postgres::Row;

use crate::Shared;
use crate::batch::Ahead;
use crate::commit::{Commit, CommitId};
use crate::commit_news::CommitNews;
use crate::failure::Failure;
use crate::heads::{Counts, Head, Lock, heads_of};
use crate::outcome::Unwritten;
use crate::prefetched::{Prefetched, values_of};
use crate::questions::{Question, answer, begin_read, begin_write, prepare};
use crate::rows::{Columns, Note, Rows};
use crate::schema;
use crate::seen::Seen;
use crate::server::{self, Client, Permit};

/// A transaction of the server. Dropping it drops its changes.
pub(crate) struct View {
    /// The right to a connection until the view is dropped.
    permit: RefCell<Option<Permit>>,
    shared: Arc<Shared>,
    mode: Mode,
    stage: RefCell<Stage>,
    /// Counts of the heads that it shows for sure.
    counts: RefCell<Counts>,
    /// The commit under way that it begins behind. Its bodies see the changes of that one.
    ahead: Option<Arc<Ahead>>,
    /// That commit is made.
    is_ahead_made: Cell<bool>,
    failed: RefCell<Option<Failure>>,
    /// Number of values of each table that were asked for one by one.
    missed: RefCell<HashMap<Table, u32>>,
    /// Number of entries of each table that fit into a page of a scan, as far as it is known.
    fitting: RefCell<HashMap<Table, usize>>,
    /// Keys whose values are read with the next question.
    noted: RefCell<BTreeSet<(Table, Vec<u8>)>>,
    prefetched: Prefetched,
    /// Keys of entries that a transaction which writes has seen.
    found: RefCell<HashMap<Table, HashSet<Vec<u8>>>>,
}

/// Number of questions of a view that are asked without a transaction. Each of them looks for changes of
/// what was read before. Most operations ask once or twice, and are spared the begin and the end.
const QUESTIONS_WITHOUT_TRANSACTION: u8 = 2;

/// How far a transaction has got.
enum Stage {
    /// The server has not begun it, and begins it with the first question. Nothing was read.
    Unopened,
    /// The server has not begun it. What was read is right unless it has changed.
    Guess(Seen),
    /// The server has begun it.
    Begun(Client),
    /// It was committed, or its begin has failed.
    Over,
}

/// Whether a transaction keeps others from writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write(Lock),
}

impl View {
    /// Begins a transaction, in one round trip.
    pub(crate) fn begin(shared: &Arc<Shared>, mode: Mode) -> Result<Self, Failure> {
        let view = Self::admitted(shared, mode)?;
        view.open(None)?;
        Ok(view)
    }

    /// A transaction that begins with its first question, and reads nothing from memory before.
    pub(crate) fn unopened(shared: &Arc<Shared>, mode: Mode) -> Result<Self, Failure> {
        let view = Self::admitted(shared, mode)?;
        view.stage.replace(Stage::Unopened);
        Ok(view)
    }

    /// A transaction that may have a connection, and has not begun.
    pub(crate) fn admitted(shared: &Arc<Shared>, mode: Mode) -> Result<Self, Failure> {
        let view = Self::guess(shared, mode, None);
        view.admit()?;
        Ok(view)
    }

    /// A transaction that begins with its first question. What is in memory is taken for right until
    /// then. It fails if that was wrong, or if the commit ahead of it fails.
    pub(crate) fn guess(shared: &Arc<Shared>, mode: Mode, ahead: Option<Arc<Ahead>>) -> Self {
        let known = shared.cache.counts();
        let counts = match mode {
            Mode::Read => known,
            // What is not locked may change at any time.
            Mode::Write(lock) => known.within(lock),
        };
        Self {
            permit: RefCell::default(),
            shared: Arc::clone(shared),
            mode,
            stage: RefCell::new(Stage::Guess(Seen::default())),
            counts: RefCell::new(counts),
            ahead,
            is_ahead_made: Cell::new(false),
            failed: RefCell::default(),
            missed: RefCell::default(),
            fitting: RefCell::default(),
            noted: RefCell::default(),
            prefetched: Prefetched::default(),
            found: RefCell::default(),
        }
    }

    /// Begins the transaction, with its first question.
    fn open(&self, question: Option<Question>) -> Result<Vec<Row>, Failure> {
        self.catch_up()?;
        self.admit_within()?;
        let seen = match self.stage.replace(Stage::Over) {
            Stage::Unopened => Seen::default(),
            Stage::Guess(seen) => seen,
            Stage::Begun(_) | Stage::Over => return Err(Failure::closed()),
        };
        let known = self.shared.cache.counts();
        if known.era != self.counts().era {
            // A body may have asked for the era before.
            return Err(Failure::lost_commits());
        }
        let (mode, mut wanted) = (self.mode, self.take_noted());
        if let Mode::Write(lock) = mode {
            wanted.extend(self.shared.cache.wanted(lock));
        }
        let (since, keys) = (known.clone(), self.question_for(&wanted));
        let begun = self.shared.server.begin("begin a transaction", move |client| async move {
            match mode {
                Mode::Read => begin_read(&client, since, (keys, question)).await,
                Mode::Write(lock) => begin_write(&client, lock, since, (keys, question)).await,
            }
        });
        let (client, begun) = begun?;
        self.stage.replace(Stage::Begun(client));
        let news = CommitNews::read(&self.shared.tables, &begun.news)?;
        self.shared.cache.follow(&known, &news)?;
        let counts = match begun.locked {
            Some(locked) => Counts::read(known.era, &locked),
            None => known.with(&news.counts),
        };
        self.check(&seen, counts)?;
        self.keep_all(wanted, &begun.values)?;
        Ok(begun.answer)
    }

    /// Waits until it may have a connection.
    fn admit(&self) -> Result<(), Failure> {
        if self.permit.borrow().is_none() {
            let server = &self.shared.server;
            let permit = match self.mode {
                Mode::Read => server.admit_reader(),
                Mode::Write(_) => server.admit_writer(),
            };
            self.permit.replace(Some(permit?));
        }
        Ok(())
    }

    /// Gets the right to a connection while the body runs. The body of a reader does not wait for it: it may
    /// hold a lock of the engine, for which those that have all connections wait.
    fn admit_within(&self) -> Result<(), Failure> {
        match self.mode {
            Mode::Read if self.permit.borrow().is_none() => {
                let permit = self.shared.server.try_admit_reader().ok_or_else(Failure::busy)?;
                self.permit.replace(Some(permit));
                Ok(())
            }
            Mode::Read => Ok(()),
            Mode::Write(_) => self.admit(),
        }
    }

    /// Runs the body of a reader. Returns its outcome if what it has read is right.
    pub(crate) fn run(self, body: &mut ReadBody<'_>) -> Result<Result<()>, Failure> {
        let read = body(&&self);
        self.settle().map(|()| read)
    }

    fn take_noted(&self) -> Vec<(Table, Vec<u8>)> {
        self.noted.take().into_iter().collect()
    }

    fn question_for(&self, keys: &[(Table, Vec<u8>)]) -> Option<Question> {
        let columns = Columns::without_values(&self.shared.tables, keys);
        (!columns.is_empty()).then(|| Question::of(schema::GET_WANTED, columns.into_keys()))
    }

    /// Keeps the values under `keys`, as the server has answered.
    fn keep_all(&self, keys: Vec<(Table, Vec<u8>)>, rows: &[Row]) -> Result<(), Failure> {
        for (table, key, value) in values_of(&self.shared.tables, keys, rows)? {
            self.keep(table, &key, &value);
            self.prefetched.keep(table, key, value);
        }
        Ok(())
    }

    /// The commit under way that it begins behind.
    pub(crate) fn ahead(&self) -> Option<&Ahead> {
        self.ahead.as_deref()
    }

    /// Waits for the commit ahead of it.
    fn catch_up(&self) -> Result<(), Failure> {
        let Some(ahead) = self.ahead().filter(|_| !self.is_ahead_made.get()) else { return Ok(()) };
        ahead.outcome.wait().map_err(Unwritten::behind)?;
        self.counts.replace(ahead.counts.clone());
        self.is_ahead_made.set(true);
        Ok(())
    }

    /// Waits for the commit ahead of it. Returns the counts behind its own commit.
    pub(crate) fn counts_behind(&self, changes: &Changes) -> Counts {
        if let Err(failure) = self.catch_up() {
            *self.failed.borrow_mut() = Some(failure);
        }
        let mut counts = self.counts().clone();
        for head in heads_of(changes) {
            if let Ok(number) = self.next_commit(head) {
                counts.set(head, number);
            }
        }
        counts
    }

    /// Begins the transaction if no question has begun it.
    pub(crate) fn open_if_unopened(&self) -> Result<(), Failure> {
        let is_unopened = matches!(&*self.stage.borrow(), Stage::Unopened);
        if !is_unopened {
            return Ok(());
        }
        let opened = self.open(None).map(drop);
        opened.inspect_err(|failure| *self.failed.borrow_mut() = Some(failure.clone()))
    }

    /// Takes the counts of the server, if what was seen is still right. Of changes that bodies have seen
    /// before their commit, it is not known which have been read.
    fn check(&self, seen: &Seen, counts: Counts) -> Result<(), Failure> {
        let is_next = self.ahead.is_none() || *self.counts() == counts;
        let guessed = self.counts.replace(counts);
        let is_right = is_next && seen.is_same(&self.shared.cache, &guessed);
        if is_right { Ok(()) } else { Err(Failure::stale()) }
    }

    /// Makes sure that what was read is right, if the server was not asked yet. A transaction that
    /// writes is begun.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let settled = match (&*self.stage.borrow(), self.mode) {
            (Stage::Guess(seen), Mode::Read) if seen.confirmed > 0 || seen.is_empty() => {
                return Ok(());
            }
            (Stage::Begun(_) | Stage::Over, _) => return Ok(()),
            (Stage::Unopened | Stage::Guess(_), mode) => mode,
        };
        // Nothing is read after this.
        self.noted.borrow_mut().clear();
        let settled = match settled {
            Mode::Read => self.answer_without_transaction(None, Seen::default()),
            Mode::Write(_) => self.open(None),
        };
        settled.map(drop).inspect_err(|failure| *self.failed.borrow_mut() = Some(failure.clone()))
    }

    /// Asks a question, which reads `reads`, and then for news, without a transaction. The answer is the
    /// same before and after the news, unless the news is about what the question reads.
    fn answer_without_transaction(
        &self,
        question: Option<Question>,
        reads: Seen,
    ) -> Result<Vec<Row>, Failure> {
        let Stage::Guess(mut seen) = self.stage.replace(Stage::Over) else {
            return Err(Failure::closed());
        };
        seen.add(reads);
        let question = match question {
            None => return self.read_with_others(None, seen),
            Some(Question { first_of: Some(span), .. }) => {
                return self.read_with_others(Some(span), seen);
            }
            Some(question) => Some(question),
        };
        self.admit_within()?;
        let (known, noted) = (self.counts().clone(), self.take_noted());
        let news = Question::for_news(&known);
        let values = self.question_for(&noted);
        seen.add(Seen::of_keys(noted.iter().cloned()));
        let asked = self.shared.server.begin("read entries", move |client| async move {
            let (question, values) =
                (prepare(&client, question).await?, prepare(&client, values).await?);
            let news = prepare(&client, Some(news)).await?;
            let questions = (answer(&client, question), answer(&client, values));
            try_join3(questions.0, questions.1, answer(&client, news)).await
        });
        let (_, (rows, values, news)) = asked?;
        let news = CommitNews::read(&self.shared.tables, &news)?;
        self.shared.cache.follow(&known, &news)?;
        self.check(&seen, known.with(&news.counts))?;
        seen.confirmed += 1;
        self.stage.replace(Stage::Guess(seen));
        self.keep_all(noted, &values)?;
        Ok(rows)
    }

    /// The failure since which nothing can be read.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failed.borrow().clone()
    }

    /// Makes `changes` durable, in one round trip, under this id.
    pub(crate) fn commit(&self, changes: &Arc<Changes>, id: CommitId) -> Result<(), Failure> {
        let is_cautious = self.shared.caution.take();
        let is_new = |table, key: &[u8]| !is_cautious && self.is_new(table, key);
        let rows = Rows::of(&self.shared.tables, changes, is_new);
        let note = Note::of(&self.shared.tables, &self.counts(), changes)?;
        self.shared.cache.expect(&self.counts(), id, changes);
        let made = self.make((rows, note), id);
        if let Err(failure) = &made {
            self.failed.replace(Some(failure.clone()));
        }
        // After a failure the transaction may still be open, and is ended when `self` is dropped.
        let is_made = matches!(made, Ok(true));
        for head in heads_of(changes) {
            self.shared.cache.commit(&self.counts(), head, (id, is_made));
            if matches!(made, Ok(false)) {
                self.shared.cache.note_foreign_commit(head);
            }
        }
        if !is_cautious && made.as_ref().is_err_and(Failure::is_about_a_key) {
            self.shared.caution.raise();
            return Err(Failure::stale());
        }
        if !made? {
            return Err(Failure::stale());
        }
        self.shared.server.notify_peers();
        Ok(())
    }

    /// Makes a commit of a head without changes.
    pub(crate) fn commit_nothing(&self, head: Head) -> Result<(), Failure> {
        let note = Note::of_nothing(head, self.next_commit(head)?);
        let is_made = self.make((Rows::default(), note), CommitId::NOTHING)?;
        // The next transaction asks for it.
        self.shared.cache.note_foreign_commit(head);
        if is_made { Ok(()) } else { Err(Failure::stale()) }
    }

    /// Returns `false` if another process has changed the heads.
    fn make(&self, (rows, note): (Rows, Note), id: CommitId) -> Result<bool, Failure> {
        let kept = self.shared.commits_kept.cast_signed();
        let commit = Commit { rows, note, id, start: self.counts().era.start, kept };
        let client = match &*self.stage.borrow() {
            Stage::Guess(_) => None,
            Stage::Begun(client) => Some(Arc::clone(client)),
            Stage::Unopened | Stage::Over => return Err(Failure::closed()),
        };
        let server = &self.shared.server;
        let is_made = match client {
            None => self.make_at_once(commit)?,
            Some(client) => server
                .ask("commit a transaction", async move { commit.make(&client, None).await })?,
        };
        self.stage.replace(Stage::Over);
        Ok(is_made)
    }

    /// Makes a commit of a transaction that the server has not begun, together with others if it can.
    fn make_at_once(&self, commit: Commit) -> Result<bool, Failure> {
        let (server, commit) = (&self.shared.server, Arc::new(commit));
        if let Some(is_made) = self.shared.commits.make(server, &commit)? {
            return Ok(is_made);
        }
        self.admit()?;
        let begun = server.begin("commit a transaction", |client| async move {
            commit.make(&client, Some(schema::BEGIN_WRITE)).await
        });
        begun.map(|(_, is_made)| is_made)
    }

    /// The id of a commit of a head. Returns `None` if there is no such commit.
    pub(crate) fn id_of(&self, head: Head, number: u64) -> Result<Option<Vec<u8>>, Failure> {
        let (head, number) = (Box::new(head.number()), Box::new(number.cast_signed()));
        let question = Question::of(schema::COMMIT_ID, vec![head, number]);
        let rows = self.answer(Some(question), Seen::default())?;
        let id = rows.first().map(|row| row.try_get(0)).transpose();
        id.map_err(|error| Failure::of("look for a commit", error))
    }

    /// Number of the commit of a head that would be the next one. An error if the head is not locked.
    pub(crate) fn next_commit(&self, head: Head) -> Result<u64, Failure> {
        self.counts().next(head)
    }

    /// Number of the era of what it shows.
    pub(crate) fn era(&self) -> u64 {
        self.counts().era.number()
    }

    fn counts(&self) -> Ref<'_, Counts> {
        self.counts.borrow()
    }

    /// Asks a question, which reads `reads`, and for the values that were noted.
    fn ask(&self, question: Option<Question>, reads: Seen) -> Result<Vec<Row>> {
        if let Some(failure) = self.failure() {
            return Err(failure.into());
        }
        let answer = self.answer(question, reads);
        Ok(answer.inspect_err(|failure| *self.failed.borrow_mut() = Some(failure.clone()))?)
    }

    fn answer(&self, question: Option<Question>, reads: Seen) -> Result<Vec<Row>, Failure> {
        let (client, may_ask_without_transaction) = match &*self.stage.borrow() {
            Stage::Unopened => (None, false),
            Stage::Guess(seen) => (None, seen.confirmed < QUESTIONS_WITHOUT_TRANSACTION),
            Stage::Begun(client) => (Some(Arc::clone(client)), false),
            Stage::Over => return Err(Failure::closed()),
        };
        match (client, self.mode) {
            (None, Mode::Read) if may_ask_without_transaction && reads.has_heads() => {
                self.answer_without_transaction(question, reads)
            }
            (None, _) => self.open(question),
            (Some(client), _) => {
                let noted = self.take_noted();
                let values = self.question_for(&noted);
                let (rows, values) = self.shared.server.ask("read entries", async move {
                    let (question, values) =
                        (prepare(&client, question).await?, prepare(&client, values).await?);
                    try_join(answer(&client, question), answer(&client, values)).await
                })?;
                self.keep_all(noted, &values)?;
                Ok(rows)
            }
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let Stage::Begun(client) = mem::replace(self.stage.get_mut(), Stage::Over) else { return };
        if self.failed.get_mut().as_ref().is_some_and(Failure::is_lost) {
            server::close(client);
        } else {
            self.shared.server.end(client, self.permit.take());
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("mode", &self.mode).finish_non_exhaustive()
    }
}
