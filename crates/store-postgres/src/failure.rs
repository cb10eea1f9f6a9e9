//! Failures of the server, by what helps against them.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use deadpool_postgres::{HookError, PoolError};
use store::Error;
use thiserror::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::HostError;

/// The name of the backend in errors.
const BACKEND: &str = "PostgreSQL";

/// The server did not do what it was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: Kind,
    source: Arc<dyn StdError + Send + Sync>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nothing was changed, and running the transaction again may help.
    Again,
    /// Nothing was changed. What the transaction has taken for right was not.
    Stale,
    /// The connection is lost. What it was asked for last may be done.
    Lost,
    /// There is no connection, so that nothing was asked.
    Away,
    /// The server lacks something, such as room on its disk, which is there later, but not soon.
    Lacking(&'static str),
    /// The server refuses, and would again.
    Refused(&'static str),
}

/// The server has not answered in time.
#[derive(Debug, Error)]
#[error("no answer in time")]
struct NoAnswer;

/// Another process has changed what a transaction has read from memory.
#[derive(Debug, Error)]
#[error("what is in memory has changed")]
struct StaleMemory;

/// Another server has taken over, or this one has got back an earlier state.
#[derive(Debug, Error)]
#[error("the server was started again, or has lost commits")]
struct LostCommits;

/// Others have all connections that may be had.
#[derive(Debug, Error)]
#[error("others have all connections: `PostgresOptions::connections` allows more")]
struct Busy;

/// Other transactions have the environment.
#[derive(Debug, Error)]
#[error("other transactions have held the environment for too long")]
struct Held;

/// The server would cut the name of the schema, or read it as another one.
#[derive(Debug, Error)]
#[error("the name of a schema has 1 to 63 bytes, no NUL, and is not `$user`")]
struct InvalidSchemaName;

/// The settings of a connection were made for another one.
#[derive(Debug, Error)]
#[error(
    "the connection has lost its search path: a pooler has to pool sessions, and no transactions, such as by \
     `pool_mode = session`"
)]
struct NoSettings;

/// The store is being dropped.
#[derive(Debug, Error)]
#[error("the store is closed")]
struct Closed;

/// A transaction has changed a key that others may change meanwhile.
#[derive(Debug, Error)]
#[error("the transaction has not locked its head")]
struct NotLocked;

/// The server has another certificate than the host trusts, or no TLS at all.
#[derive(Debug, Error)]
#[error(
    "{cause}: give `open_tls` the authority that has signed the certificate of the server, and connect \
     by the name in the certificate"
)]
struct NotTrusted {
    cause: String,
    source: tokio_postgres::Error,
}

/// Text of an error of `tokio_postgres`, with those of its causes. Its own text names only its kind. The error
/// itself is left out, since the details of the server may have values of keys.
#[derive(Debug, Error)]
#[error("{0}")]
struct ClientError(String);

/// The message of the server with its code, or the texts of an error and of its causes.
fn text_of(error: &(dyn StdError + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<DbError>() {
        return format!("{} ({})", error.message(), error.code().code());
    }
    match error.source() {
        Some(source) if source.is::<DbError>() => text_of(source),
        Some(source) => format!("{error}: {}", text_of(source)),
        None => error.to_string(),
    }
}

impl Failure {
    fn new(kind: Kind, source: impl StdError + Send + Sync + 'static) -> Self {
        Self { kind, source: Arc::new(source) }
    }

    /// The failure of an action.
    pub(crate) fn of(action: &'static str, error: tokio_postgres::Error) -> Self {
        let kind = match error.code() {
            Some(code) if is_transient(code) => Kind::Again,
            Some(code) if is_loss(code) || is_fatal(&error) => Kind::Lost,
            None if is_about_connection(&error) => Kind::Lost,
            Some(code) if is_lack(code) => Kind::Lacking(action),
            Some(_) | None => Kind::Refused(action),
        };
        Self::new(kind, error)
    }

    /// The failure to connect. An error of the server ends the connection. Without one there is no connection,
    /// as for an unknown host or a closed port. Missing settings are refused, since another try fails as well.
    fn of_connecting(error: tokio_postgres::Error) -> Self {
        let kind = match error.code() {
            Some(code) if is_transient(code) => Kind::Again,
            Some(code) if is_loss(code) => Kind::Lost,
            Some(code) if is_lack(code) => Kind::Lacking("connect"),
            Some(_) => Kind::Refused("connect"),
            None if is_about_settings(&error) => Kind::Refused("connect"),
            None => Kind::Lost,
        };
        Self::new(kind, error)
    }

    /// The failure of a connection of the host.
    pub(crate) fn of_host(error: HostError) -> Self {
        match error.downcast::<tokio_postgres::Error>() {
            Ok(error) => Self::of("use the transaction of the host", *error),
            Err(other) => Self { kind: Kind::Lost, source: Arc::from(other) },
        }
    }

    pub(crate) fn of_pool(error: PoolError) -> Self {
        let failure = match error {
            PoolError::Backend(error) if is_about_trust(&error) => {
                let cause = error.source().unwrap_or(&error).to_string();
                Self::refused("connect by TLS", NotTrusted { cause, source: error })
            }
            PoolError::Backend(error) => Self::of_connecting(error),
            PoolError::PostCreateHook(HookError::Backend(error)) => {
                Self::of("set up a connection", error)
            }
            other => Self::new(Kind::Lost, other),
        };
        // Nothing was asked but for the settings.
        if failure.is_lost() { Self { kind: Kind::Away, ..failure } } else { failure }
    }

    pub(crate) fn no_settings() -> Self {
        Self::refused("open the schema", NoSettings)
    }

    pub(crate) fn held() -> Self {
        Self::new(Kind::Again, Held)
    }

    pub(crate) fn no_schema() -> Self {
        Self::refused("open the schema", InvalidSchemaName)
    }

    pub(crate) fn no_answer() -> Self {
        Self::new(Kind::Lost, NoAnswer)
    }

    pub(crate) fn busy() -> Self {
        Self::new(Kind::Again, Busy)
    }

    pub(crate) fn stale() -> Self {
        Self::new(Kind::Stale, StaleMemory)
    }

    pub(crate) fn lost_commits() -> Self {
        Self::new(Kind::Stale, LostCommits)
    }

    pub(crate) fn closed() -> Self {
        Self::refused("answer", Closed)
    }

    pub(crate) fn not_locked() -> Self {
        Self::refused("change a key", NotLocked)
    }

    pub(crate) fn refused(
        action: &'static str,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        Self::new(Kind::Refused(action), source)
    }

    /// Returns `true` if the transaction may be run again. What was committed last is known.
    pub(crate) fn may_go_on(&self) -> bool {
        matches!(self.kind, Kind::Again | Kind::Stale | Kind::Lost | Kind::Away)
    }

    /// Returns `true` if the transaction should be run again at once, and asks the server first.
    pub(crate) fn is_stale(&self) -> bool {
        self.kind == Kind::Stale
    }

    /// Returns `true` if others have all connections that may be had.
    pub(crate) fn is_busy(&self) -> bool {
        self.source.is::<Busy>()
    }

    /// Returns `true` if the server, or the connection, takes no writes.
    pub(crate) fn is_read_only(&self) -> bool {
        self.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
    }

    /// Returns `true` if nothing was changed, because a key that was taken for new is there.
    pub(crate) fn is_about_a_key(&self) -> bool {
        self.code() == Some(&SqlState::UNIQUE_VIOLATION)
    }

    /// Returns `true` if another process has created the same schema or relation meanwhile.
    pub(crate) fn is_created_twice(&self) -> bool {
        let codes = [
            SqlState::UNIQUE_VIOLATION,
            SqlState::DUPLICATE_SCHEMA,
            SqlState::DUPLICATE_TABLE,
            SqlState::DUPLICATE_OBJECT,
        ];
        self.code().is_some_and(|code| codes.contains(code))
    }

    fn code(&self) -> Option<&SqlState> {
        self.source.downcast_ref::<tokio_postgres::Error>()?.code()
    }

    /// Returns `true` if it is not known whether the last statement was carried out.
    pub(crate) fn is_lost(&self) -> bool {
        self.kind == Kind::Lost
    }

    /// Returns `true` if the server cannot be asked, and any other call would fail as well.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self.kind, Kind::Lost | Kind::Away)
    }

    /// Returns `true` if the server refuses what it was asked for, which may be about a part of it.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.kind, Kind::Lacking(_) | Kind::Refused(_))
    }
}

impl From<Failure> for Error {
    fn from(Failure { kind, source }: Failure) -> Self {
        let is_of_client = source.is::<tokio_postgres::Error>();
        let source =
            if is_of_client { ClientError(text_of(&*source)).into() } else { source.into() };
        match kind {
            Kind::Again | Kind::Stale | Kind::Lost | Kind::Away => {
                Error::Unavailable { backend: BACKEND, source }
            }
            Kind::Lacking(action) => Error::Backend { backend: BACKEND, action, source },
            Kind::Refused(action) => Error::Refused { backend: BACKEND, action, source },
        }
    }
}

/// The server has ended the connection, whatever the reason.
fn is_fatal(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

fn is_about_connection(error: &tokio_postgres::Error) -> bool {
    let source = error.source();
    error.is_closed() || source.is_some_and(<dyn StdError>::is::<io::Error>)
}

/// The connection string lacks something that the server or the client asks for.
fn is_about_settings(error: &tokio_postgres::Error) -> bool {
    // The crate tells its kinds of errors by their texts only.
    ["invalid configuration", "authentication error"].contains(&error.to_string().as_str())
}

/// TLS was refused, and would be again. A connection that was cut in the middle of it is another case.
fn is_about_trust(error: &tokio_postgres::Error) -> bool {
    // The crate tells its kinds of errors by their texts only.
    let is_tls = error.to_string() == "error performing TLS handshake";
    let cut = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let is_cut = |error: &io::Error| {
        !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
    };
    is_tls && !cut.is_some_and(is_cut)
}

/// Another transaction was in the way, or the server was.
fn is_transient(code: &SqlState) -> bool {
    [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::TOO_MANY_CONNECTIONS,
    ]
    .contains(code)
}

/// The server ends the connection, or does not take one yet.
fn is_loss(code: &SqlState) -> bool {
    code.code().starts_with("08")
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ]
        .contains(code)
}

/// The server has too little of something (class 53), or its system has failed (class 58).
fn is_lack(code: &SqlState) -> bool {
    ["53", "58"].iter().any(|class| code.code().starts_with(class))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::iter;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;

    use tokio::runtime::Builder;
    use tokio_postgres::NoTls;

    use super::*;

    /// A message of the server: its letter, and its bytes.
    fn message(letter: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u32::try_from(bytes.len() + 4).unwrap();
        [&[letter][..], &length.to_be_bytes(), bytes].concat()
    }

    /// A part of the details of the server.
    const VALUE: &str = "ada@example.org";

    fn refuse(mut client: UnixStream, severity: &str, code: &str) {
        let read = |client: &mut UnixStream| client.read(&mut [0; 1_024]).unwrap();
        read(&mut client);
        let ready = [message(b'R', &[0; 4]), message(b'Z', b"I")].concat();
        client.write_all(&ready).unwrap();
        read(&mut client);
        let fields = format!("S{severity}\0V{severity}\0C{code}\0Mno\0DKey ({VALUE})\0\0");
        client.write_all(&message(b'E', fields.as_bytes())).unwrap();
        client.write_all(&message(b'Z', b"I")).unwrap();
    }

    /// What a statement fails with that a server refuses so.
    fn failure(severity: &'static str, code: &'static str) -> Failure {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        thread::spawn(move || refuse(listener.accept().unwrap().0, severity, code));
        let url = format!("host={} user=ada", folder.path().display());
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            Failure::of("ask", client.batch_execute("SELECT 1").await.unwrap_err())
        })
    }

    /// An error and its causes have the message of the server, and none of its details.
    #[test]
    fn an_error_leaves_out_details_of_the_server() {
        let error = Error::from(failure("ERROR", "42501"));
        let causes = iter::successors(Some(&error as &dyn StdError), |error| (*error).source());
        let texts: Vec<String> = causes.map(ToString::to_string).collect();
        assert_eq!(texts, ["PostgreSQL could not ask: no (42501)", "no (42501)"]);
        assert!(!format!("{texts:?} {error:?}").contains(VALUE), "{texts:?} {error:?}");
    }

    #[test]
    fn what_the_server_would_refuse_again_is_not_worth_another_call() {
        for (severity, code, is_retryable) in [
            ("ERROR", "22021", false),
            ("ERROR", "42501", false),
            ("ERROR", "54000", false),
            ("ERROR", "XX001", false),
            // A full disk, little memory, too many connections, and an error of the disk.
            ("ERROR", "53100", true),
            ("ERROR", "53200", true),
            ("FATAL", "53300", true),
            ("ERROR", "58030", true),
            ("ERROR", "25006", true),
            ("ERROR", "40P01", true),
            ("ERROR", "57014", true),
            ("FATAL", "57P01", true),
        ] {
            let error = Error::from(failure(severity, code));
            assert_eq!(error.is_retryable(), is_retryable, "{severity} {code}: {error:?}");
        }
        for failure in [Failure::no_settings(), Failure::no_schema(), Failure::closed()] {
            let error = Error::from(failure);
            assert!(!error.is_retryable(), "{error:?}");
        }
    }

    #[test]
    fn an_error_that_ends_the_connection_loses_it() {
        for (severity, code, kind) in [
            ("ERROR", "42501", Kind::Refused("ask")),
            ("ERROR", "40001", Kind::Again),
            ("FATAL", "57P01", Kind::Lost),
            ("FATAL", "57P05", Kind::Lost),
            ("FATAL", "25P04", Kind::Lost),
            ("PANIC", "XX000", Kind::Lost),
        ] {
            assert_eq!(failure(severity, code).kind, kind, "{severity} {code}");
        }
    }
}
