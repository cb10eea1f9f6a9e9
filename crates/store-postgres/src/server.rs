//! The server: connections, and waiting for its answers.
//!
//! A thread of the store drives the connections. A call waits for it, so that a caller may itself be
//! a thread of a runtime.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_postgres::Config;

use crate::PostgresOptions;
use crate::connections::{Connections, Tls};
use crate::failure::Failure;
use crate::notify::{Connect, NotifyListener, connect_by, keep_connected};

/// A connection of the pool.
pub(crate) type Client = Arc<Object>;

/// The right to have a connection: that of a reader or of a writer, and that of both.
pub(crate) type Permit = [OwnedSemaphorePermit; 2];

type Answer<T> = Result<T, tokio_postgres::Error>;

/// Number of connections at least: one reads, one waits for a lock, and one commits.
const FEWEST: usize = 3;

/// Number of connections that readers leave to writers: one waits for a lock, and one commits.
const OF_WRITERS: usize = 2;

/// Number of connections that are left to commits, which wait for no lock.
const OF_COMMITS: usize = 1;

/// How much longer than a statement may run a call waits for the answer.
const GRACE: Duration = Duration::from_secs(5);

/// Number of threads for transactions of the host at most: that of connections that a server may have. So each
/// transaction has a thread, and none waits for another one that has no thread.
const OF_HOST: usize = 262_143;

pub(crate) struct Server {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    pool: Connections,
    /// Readers that may have a connection.
    readers: Arc<Semaphore>,
    /// Writers that may have a connection. Those of locks that other processes hold keep theirs for long.
    writers: Arc<Semaphore>,
    /// Readers and writers that may have a connection. They leave one to commits.
    all: Arc<Semaphore>,
    /// How long a transaction waits until it may have a connection.
    timeout: Duration,
    /// How long a call waits for an answer.
    answer_timeout: Duration,
    round_trips: AtomicU64,
    waiting: AtomicUsize,
    connect: Arc<Connect>,
    /// Wakes the task that notifies other processes of commits of this one.
    commits: Arc<Notify>,
}

impl Server {
    pub(crate) fn new(
        mut config: Config,
        tls: impl Tls,
        options: &PostgresOptions,
    ) -> Result<Self, Failure> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(OF_HOST)
            .thread_name("tidings-postgres")
            .enable_all()
            .build()
            .map_err(|error| Failure::refused("start a thread", error))?;
        // The system finds out that a network has gone silent before a call stops waiting.
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(options.timeout);
        }
        // An address that does not answer leaves time for the next one.
        if config.get_connect_timeout().is_none() {
            let addresses = config.get_hosts().len().max(config.get_hostaddrs().len());
            let shares = u32::try_from(addresses).unwrap_or(u32::MAX).saturating_add(1);
            config.connect_timeout(options.timeout / shares);
        }
        let connect = Arc::new(connect_by(config.clone(), tls.clone()));
        let connections = options.connections.max(FEWEST);
        let pool = Connections::new(config, tls, connections, options)?;
        let answer_timeout = options.timeout.saturating_add(GRACE);
        Ok(Self {
            runtime: Some(runtime),
            pool,
            readers: Arc::new(Semaphore::new(connections - OF_WRITERS)),
            writers: Arc::new(Semaphore::new(connections / 2)),
            all: Arc::new(Semaphore::new(connections - OF_COMMITS)),
            timeout: options.timeout,
            answer_timeout,
            round_trips: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            connect,
            commits: Arc::default(),
        })
    }

    /// Listens to other processes from now on, and notifies them.
    pub(crate) fn listen(&self, listener: NotifyListener) {
        let (connect, commits) = (Arc::clone(&self.connect), Arc::clone(&self.commits));
        if let Some(runtime) = &self.runtime {
            runtime.spawn(keep_connected(
                (connect, self.pool.clone(), self.timeout),
                commits,
                listener,
            ));
        }
    }

    /// Time within which the server answers, or counts as away.
    pub(crate) fn answer_timeout(&self) -> Duration {
        self.answer_timeout
    }

    /// Notifies other processes of a commit. Commits in quick succession share a notification.
    pub(crate) fn notify_peers(&self) {
        self.commits.notify_one();
    }

    /// Waits until one more reader may have a connection.
    ///
    /// A reader asks before its body runs. Otherwise a body that holds a lock of the engine could wait for a
    /// connection, while those that have all connections wait for that lock. Readers leave some
    /// connections to writers, which would wait for a crowd of readers.
    pub(crate) fn admit_reader(&self) -> Result<Permit, Failure> {
        self.admit(&self.readers)
    }

    /// The right to a connection of one more reader, unless it has to wait for it.
    pub(crate) fn try_admit_reader(&self) -> Option<Permit> {
        try_permit_of(&[&self.readers, &self.all])
    }

    /// Waits until one more writer may have a connection.
    ///
    /// A writer asks when it needs one: no body that writes holds a lock that others wait for, and one that
    /// has not asked the server yet may wait for a commit that needs a connection. A commit that
    /// waits for no lock does not ask: readers and writers leave one connection to such commits.
    pub(crate) fn admit_writer(&self) -> Result<Permit, Failure> {
        self.admit(&self.writers)
    }

    fn admit(&self, own: &Arc<Semaphore>) -> Result<Permit, Failure> {
        match try_permit_of(&[own, &self.all]) {
            Some(permit) => Ok(permit),
            None => self.wait(permit_of([own, &self.all].map(Arc::clone), self.timeout)),
        }
    }

    /// Takes a connection from the pool, and waits for the answer to its first question. If there is
    /// none, the transaction of the connection is ended.
    pub(crate) fn begin<T: Send + 'static, F>(
        &self,
        action: &'static str,
        question: impl FnOnce(Client) -> F + Send + 'static,
    ) -> Result<(Client, T), Failure>
    where
        F: Future<Output = Answer<T>> + Send + 'static,
    {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        self.begin_aside(action, question)
    }

    /// Takes a connection as [`begin`](Self::begin) does, for a question that no caller waits for. It
    /// is not counted.
    pub(crate) fn begin_aside<T: Send + 'static, F>(
        &self,
        action: &'static str,
        question: impl FnOnce(Client) -> F + Send + 'static,
    ) -> Result<(Client, T), Failure>
    where
        F: Future<Output = Answer<T>> + Send + 'static,
    {
        self.wait(begin(action, (self.pool.clone(), self.answer_timeout), question))
    }

    /// Asks on a connection of the pool, and calls `then` with the answer, if there is one. Returns at once.
    pub(crate) fn ask_aside<T: Send + 'static, F>(
        &self,
        action: &'static str,
        question: impl FnOnce(Client) -> F + Send + 'static,
        then: impl FnOnce(T) + Send + 'static,
    ) where
        F: Future<Output = Answer<T>> + Send + 'static,
    {
        let begun = begin(action, (self.pool.clone(), self.answer_timeout), question);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move { begun.await.map(|(_, answer)| then(answer)) });
        }
    }

    /// Waits for the answer to `question`.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        action: &'static str,
        question: impl Future<Output = Answer<T>> + Send + 'static,
    ) -> Result<T, Failure> {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        let (pool, timeout) = (self.pool.clone(), self.answer_timeout);
        self.wait(async move { answer(action, (&pool, timeout), question).await })
    }

    /// Number of questions of callers so far.
    pub(crate) fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }

    /// Number of callers that wait for an answer, or for a connection.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Ends the transaction of `client` without its changes. Returns at once. The connection is in use until
    /// then, and so is its `permit`.
    pub(crate) fn end(&self, client: Client, permit: Option<Permit>) {
        if let Some(runtime) = &self.runtime {
            let ended = end(client, self.answer_timeout);
            runtime.spawn(async move {
                ended.await;
                drop(permit);
            });
        }
    }

    /// Runs `body` on a thread where it may block. Such threads are started as they are needed.
    pub(crate) fn run_blocking<T: Send + 'static>(
        &self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.runtime {
            Some(runtime) => runtime.spawn_blocking(body),
            None => tokio::task::spawn_blocking(body),
        }
    }

    fn wait<T: Send + 'static>(
        &self,
        answer: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let runtime = self.runtime.as_ref().ok_or_else(Failure::closed)?;
        let (sender, receiver) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            // The caller waits for it.
            drop(sender.send(answer.await));
        });
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let answer = receiver.recv();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        answer.unwrap_or_else(|_| Err(Failure::closed()))
    }
}

fn try_permit_of([own, all]: &[&Arc<Semaphore>; 2]) -> Option<Permit> {
    let own = Arc::clone(own).try_acquire_owned().ok()?;
    Some([own, Arc::clone(all).try_acquire_owned().ok()?])
}

async fn permit_of([own, all]: [Arc<Semaphore>; 2], timeout: Duration) -> Result<Permit, Failure> {
    let permit = async { Ok([own.acquire_owned().await?, all.acquire_owned().await?]) };
    let permit = tokio::time::timeout(timeout, permit).await.map_err(|_| Failure::busy())?;
    permit.map_err(|_: AcquireError| Failure::closed())
}

/// Takes a connection from the pool, for the answer to its first question.
async fn begin<T, F: Future<Output = Answer<T>>>(
    action: &'static str,
    (pool, timeout): (Connections, Duration),
    question: impl FnOnce(Client) -> F,
) -> Result<(Client, T), Failure> {
    let client = Arc::new(pool.get().await?);
    match answer(action, (&pool, timeout), question(Arc::clone(&client))).await {
        Ok(answer) => Ok((client, answer)),
        Err(failure) if failure.is_lost() => {
            close(client);
            Err(failure)
        }
        Err(failure) => {
            tokio::spawn(end(client, timeout));
            Err(failure)
        }
    }
}

/// Waits for an answer. If there is none in time, or the connection is lost, idle connections are closed: what
/// has happened to one is likely to have happened to all, and each would fail one call. If the
/// server takes no writes, so are those in use, when they come back: another server may have taken over.
async fn answer<T>(
    action: &'static str,
    (pool, timeout): (&Connections, Duration),
    question: impl Future<Output = Answer<T>>,
) -> Result<T, Failure> {
    let answer = match tokio::time::timeout(timeout, question).await {
        Ok(answer) => answer.map_err(|error| Failure::of(action, error)),
        Err(_) => Err(Failure::no_answer()),
    };
    match &answer {
        Err(failure) if failure.is_read_only() => pool.close_all(),
        Err(failure) if failure.is_lost() => pool.close_unused(),
        Ok(_) | Err(_) => {}
    }
    answer
}

/// Ends the transaction of `client`, which goes back to the pool. If that fails, the connection is
/// closed.
async fn end(client: Client, timeout: Duration) {
    let ended = tokio::time::timeout(timeout, client.batch_execute("ROLLBACK")).await;
    if !matches!(ended, Ok(Ok(()))) {
        close(client);
    }
}

/// Closes a connection that has not answered. It would not answer to the end of its transaction either, and the
/// pool has room for another one.
pub(crate) fn close(client: Client) {
    if let Ok(client) = Arc::try_unwrap(client) {
        drop(Object::take(client));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A caller may be a thread of another runtime, where nothing may block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

// The configuration has a password.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("pool", &self.pool).finish_non_exhaustive()
    }
}
