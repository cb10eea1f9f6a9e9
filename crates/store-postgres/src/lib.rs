//! PostgreSQL as the store of the Tidings notification engine, for several processes at once.
//!
//! [`PostgresStore`] keeps the tables of an engine in a schema of a database. Engines of several
//! processes may use it at the same time.
//!
//! ```no_run
//! use tidings::Engine;
//! use tidings_store_postgres::PostgresStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = PostgresStore::open("host=db.example.org user=shop dbname=shop")?;
//! let engine = Engine::builder().build(store);
//! let env = engine.organization("shop")?.production()?;
//! # Ok(())
//! # }
//! ```
//!
//! [The page about PostgreSQL][page] is for operators and designers. It says when to move, how to set up the
//! server and poolers, what a call costs, how transactions are ordered, and what follows when the server is away
//! or loses commits.
//!
//! # Errors
//!
//! | error | status | retryable | cause |
//! |---|---|---|---|
//! | [`Error::Unavailable`] | 503 | yes | the server is away, or other transactions are in the way, and [`PostgresOptions::patience`] is over |
//! | [`Error::Backend`] | 500 | yes | the server lacks something, such as room on its disk |
//! | [`Error::Refused`] | 500 | no | the server refuses the call, and would refuse it again |
//!
//! The changes of a write that returns [`Error::Unavailable`] are there as a whole, or not at all.
//!
//! # Transactions of the host
//!
//! [`PostgresStore::within`] and [`PostgresStore::join`] make an event a part of a transaction of the host.
//!
//! # TLS
//!
//! ```no_run
//! # use tidings_store_postgres::{PostgresOptions, PostgresStore};
//! # fn open(client_config: rustls::ClientConfig) -> Result<PostgresStore, Box<dyn std::error::Error>> {
//! let config = "host=db.example.org user=shop dbname=shop sslmode=require".parse()?;
//! let tls = tokio_postgres_rustls::MakeRustlsConnect::new(client_config);
//! let store = PostgresStore::open_tls(config, tls, &PostgresOptions::default())?;
//! # Ok(store)
//! # }
//! ```
//!
//! [page]: https://github.com/tidings-rs/tidings/blob/main/docs/postgresql.md

mod batch;
mod cache;
mod clock;
mod coalesce;
mod commit;
mod commit_news;
mod commits;
mod connections;
mod failure;
mod gaps;
mod heads;
mod hidden;
mod join;
mod keys;
mod listeners;
mod notify;
mod options;
mod outcome;
mod prefetched;
mod questions;
mod retry;
mod rows;
mod scan;
mod schema;
mod seen;
mod server;
mod shared_reads;
mod tables;
mod turns;
mod view;
mod within;

pub use self::join::{HostConnection, HostError, Joined, TypedParams};
pub use self::options::PostgresOptions;

pub(crate) use self::join::Params;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use store::{Error, Listener, ReadBody, Result, Store, Table, WriteBody, WriteScope};
use tokio_postgres::tls::{MakeTlsConnect, NoTls, TlsConnect};
use tokio_postgres::{Config, Socket};

use crate::batch::Writers;
use crate::cache::Cache;
use crate::clock::ServerClock;
use crate::commit::Caution;
use crate::commits::Commits;
use crate::failure::Failure;
use crate::heads::{Counts, Era, Lock};
use crate::listeners::Listeners;
use crate::outcome::Unwritten;
use crate::retry::Retry;
use crate::schema::Opened;
use crate::server::{Client, Server};
use crate::shared_reads::SharedReads;
use crate::tables::Tables;
use crate::view::{Mode, View};

/// Number of commits of a head that are kept: their changed keys for other processes, and what identifies
/// them for the process whose connection broke meanwhile.
const COMMITS_KEPT: u64 = 1_024;

/// Shortest time between two questions for commits of other processes.
const SHORTEST_POLL: Duration = Duration::from_millis(1);

/// A store in a schema of a PostgreSQL database. Clones share its connections.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
    writers: Arc<Writers>,
}

/// What views work with.
pub(crate) struct Shared {
    /// The first bytes of the ids of its commits, as a number.
    id: AtomicU64,
    server: Server,
    schema: String,
    tables: Tables,
    cache: Cache,
    clock: Arc<ServerClock>,
    patience: Duration,
    commits_kept: u64,
    caution: Caution,
    commits: Commits,
    reads: SharedReads,
    listeners: Listeners,
    poll: Duration,
}

impl Shared {
    /// The first bytes of the ids of its commits.
    fn id(&self) -> [u8; 8] {
        self.id.load(Ordering::SeqCst).to_be_bytes()
    }

    /// Records that the outcome of a commit is unknown. Listeners learn that any key may have changed. If
    /// the commit is made after that, they learn of it as of one of another process: later commits have
    /// another id.
    fn unknown(&self, failure: Failure) -> Unwritten {
        self.id.fetch_add(1, Ordering::SeqCst);
        self.listeners.note_in_doubt();
        self.server.notify_peers();
        Unwritten::Unknown(failure)
    }
}

impl PostgresStore {
    /// Opens the store of a database with the default options, or creates it. `url` is a connection
    /// string of PostgreSQL, as in `postgresql://shop@db.example.org/shop`.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open(url: &str) -> Result<Self> {
        Self::open_with(url, &PostgresOptions::default())
    }

    /// Opens the store of a database, or creates it.
    ///
    /// A store of an older format gets the present one. Stop the processes of the older version first, see
    /// [Set-up](https://github.com/tidings-rs/tidings/blob/main/docs/postgresql.md#set-up).
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if `url` or the name of the schema is not valid, the server refuses, or a pooler has
    /// lost the settings of the connection; [`Error::Backend`] if the server has no room;
    /// [`Error::Unavailable`] if the server does not answer; [`Error::NewerFormat`] if a newer version of this
    /// library has written the schema.
    pub fn open_with(url: &str, options: &PostgresOptions) -> Result<Self> {
        let config =
            url.parse().map_err(|error| Failure::of("read the connection string", error))?;
        Self::open_tls(config, NoTls, options)
    }

    /// Opens the store of a database, or creates it, over connections with TLS by a crate of your choice,
    /// such as `tokio-postgres-rustls`.
    ///
    /// # Errors
    ///
    /// As [`open_with`](Self::open_with).
    pub fn open_tls<T>(config: Config, tls: T, options: &PostgresOptions) -> Result<Self>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + Sync,
        T::TlsConnect: Send + Sync,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        if !schema::is_name(&options.schema) {
            return Err(Failure::no_schema().into());
        }
        let server = Server::new(config, tls, options)?;
        let (opened, tables) = open_schema(&server, options)?;
        let counts = Counts::read(Era::first(opened.start), &opened.commits);
        let cache = Cache::of(options.cache_bytes, counts);
        let clock = Arc::new(ServerClock::default());
        clock.learn(opened.clock);
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(|error| Failure::refused("identify a store", error))?;
        let shared = Shared {
            id: AtomicU64::new(u64::from_be_bytes(id)),
            server,
            schema: options.schema.clone(),
            tables,
            cache,
            clock,
            patience: options.patience,
            commits_kept: COMMITS_KEPT,
            caution: Caution::default(),
            commits: Commits::default(),
            reads: SharedReads::default(),
            listeners: Listeners::default(),
            poll: options.poll,
        };
        Ok(Self { shared: Arc::new(shared), writers: Arc::default() })
    }

    /// Number of round trips to the server so far for which a caller has waited, without those of new
    /// connections.
    pub fn round_trips(&self) -> u64 {
        self.shared.server.round_trips()
    }

    /// Number of callers that wait for the server, for their turn to write, or for another caller to commit,
    /// for tests that have something happen when all of them wait.
    #[doc(hidden)]
    pub fn waiting(&self) -> usize {
        self.shared.server.waiting() + self.shared.commits.waiting() + self.writers.waiting()
    }

    /// Begins a read, and tries again until the patience is over.
    fn reader(&self, begin: impl Fn() -> Result<View, Failure>) -> Result<View, Failure> {
        Retry::within(self.shared.patience, begin)
    }
}

/// Creates what is missing, and reads the numbers of the tables.
fn open_schema(server: &Server, options: &PostgresOptions) -> Result<(Opened, Tables)> {
    let mut retry = Retry::new(options.patience);
    let (opened, rows) = loop {
        match try_open_schema(server, options) {
            Err(failure) if (failure.may_go_on() || failure.is_created_twice()) && retry.wait() => {
            }
            opened => break opened?,
        }
    };
    if opened.format > schema::FORMAT {
        return Err(Error::NewerFormat {
            path: PathBuf::from(&options.schema),
            found: opened.format.unsigned_abs(),
            supported: schema::FORMAT.unsigned_abs(),
        });
    }
    Ok((opened, Tables::of(&rows)))
}

fn try_open_schema(
    server: &Server,
    options: &PostgresOptions,
) -> Result<(Opened, Vec<(i16, String)>), Failure> {
    let schema = options.schema.clone();
    let opened = server.begin("open the schema", move |client| async move {
        let names: Vec<&'static str> = Table::ALL.iter().map(|table| table.name()).collect();
        let Some(opened) = schema::migrate(&client, &schema, &names).await? else {
            return Ok(None);
        };
        let rows = client.query("SELECT id, name FROM tidings_tables", &[]).await?;
        let rows = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        Ok(Some((opened, rows.collect::<Result<_, tokio_postgres::Error>>()?)))
    });
    opened?.1.ok_or_else(Failure::no_settings)
}

impl Store for PostgresStore {
    fn read(&self, body: &mut ReadBody<'_>) -> Result<()> {
        let view = self.reader(|| View::begin(&self.shared, Mode::Read))?;
        body(&&view)
    }

    fn read_pure(&self, body: &mut ReadBody<'_>) -> Result<()> {
        let mut read = View::guess(&self.shared, Mode::Read, None).run(body);
        if read.as_ref().is_err_and(Failure::is_busy) {
            // It has to ask alone, for which it needs a connection.
            read = self.reader(|| View::admitted(&self.shared, Mode::Read))?.run(body);
        }
        match read {
            Err(failure) if failure.may_go_on() => {
                let again = || View::begin(&self.shared, Mode::Read)?.run(body);
                Retry::within(self.shared.patience, again)?
            }
            read => read?,
        }
    }

    fn write(&self, body: &mut WriteBody<'_>) -> Result<()> {
        self.write_within(WriteScope::Everything, body)
    }

    fn write_within(&self, mut scope: WriteScope, body: &mut WriteBody<'_>) -> Result<()> {
        let (mut retry, mut is_alone) = (Retry::new(self.shared.patience), false);
        let timeout = self.shared.server.answer_timeout();
        // A caller waits for its turn as long as for an answer of the server, even with less patience.
        let until =
            retry.until().and_then(|end| Some(end.max(Instant::now().checked_add(timeout)?)));
        loop {
            match self.writers.write(&self.shared, (scope, is_alone), until, body)? {
                Ok(()) => return Ok(()),
                Err(Unwritten::OutOfScope) => scope = WriteScope::Everything,
                Err(Unwritten::BatchRefused) => is_alone = true,
                Err(Unwritten::Undone(failure)) if retry.goes_on(&failure) => {}
                Err(Unwritten::Undone(failure) | Unwritten::Unknown(failure)) => {
                    return Err(failure.into());
                }
            }
        }
    }

    fn runs_side_by_side(&self) -> bool {
        true
    }

    fn now(&self) -> Option<SystemTime> {
        // The next call has the answer. Without it, the time would be as far off as two clocks drift apart
        // since the store was opened, if no thread asks for commits.
        if let Some(question) = self.shared.clock.question() {
            let asked = async |client: Client| schema::clock(&client).await;
            self.shared
                .server
                .ask_aside("ask for the time", asked, |reading| question.answer(reading));
        }
        self.shared.clock.now()
    }

    fn listen(&self, listener: Listener) {
        self.shared.listeners.add(&self.shared, listener, self.shared.poll.max(SHORTEST_POLL));
    }

    fn forget_history(&self, scope: WriteScope) -> Result<()> {
        let heads = Lock::of(scope).numbers();
        let server = &self.shared.server;
        let forgotten = Retry::within(self.shared.patience, || {
            let (heads, _permit) = (heads.clone(), server.admit_writer()?);
            server.begin("forget keys", |client| async move {
                let forget = client.prepare_cached(schema::FORGET).await?;
                client.execute(&forget, &[&heads]).await
            })
        });
        Ok(forgotten.map(drop)?)
    }
}

// The connection string has a password, and the values may be secrets.
impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = &self.shared.server;
        f.debug_struct("PostgresStore").field("server", server).finish_non_exhaustive()
    }
}
