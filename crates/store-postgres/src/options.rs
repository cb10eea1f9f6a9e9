//! Options of a store.

use std::time::Duration;

/// Options of a [`PostgresStore`](crate::PostgresStore).
///
/// ```
/// use std::time::Duration;
/// use tidings_store_postgres::PostgresOptions;
///
/// let options = PostgresOptions::default()
///     .schema("shop_notifications")
///     .patience(Duration::from_secs(2));
/// assert_eq!(options.connections, 8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// The schema that has the relations of the store; `tidings` by default. It is created if there
    /// is none.
    pub schema: String,
    /// Number of connections at most; 8 by default, and at least 3. A store of an engine has one more, which
    /// listens to other processes. A read keeps its connection until it ends, and a write that waits for its
    /// environment keeps one while it waits.
    pub connections: usize,
    /// Time that a statement, a lock, and a connection may take; 10 seconds by default. Other time-outs
    /// [follow from it](https://github.com/tidings-rs/tidings/blob/main/docs/postgresql.md#set-up).
    pub timeout: Duration,
    /// Time within which a call begins another try; 10 seconds by default. A call may last longer by one try.
    pub patience: Duration,
    /// Time between two questions for commits of other processes, whose answers wake workers and callers that
    /// wait for an inbox; 100 milliseconds by default, and at least 1. A notification (`NOTIFY`) makes the store
    /// ask at once, if the server passes it on. Reads need no such question.
    pub poll: Duration,
    /// Size of the values in memory, in bytes; 32 MiB by default. A value takes a 64th of it at most, or 16 KiB
    /// if that is more. The keys of late commits and ranges without entries take further memory: at most 4,096 of
    /// each for each of 64 groups of environments.
    pub cache_bytes: usize,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "tidings".to_owned(),
            connections: 8,
            timeout: Duration::from_secs(10),
            patience: Duration::from_secs(10),
            poll: Duration::from_millis(100),
            cache_bytes: 32 << 20,
        }
    }
}

impl PostgresOptions {
    /// Sets the schema that has the relations of the store: a name of 1 to 63 bytes, in any letters.
    #[must_use]
    pub fn schema(self, schema: impl Into<String>) -> Self {
        Self { schema: schema.into(), ..self }
    }

    /// Sets the number of connections at most.
    #[must_use]
    pub fn connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }

    /// Sets the time that a statement, a lock, and a connection may take.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets the time for which a call tries again.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Sets the time between two questions for commits of other processes.
    #[must_use]
    pub fn poll(self, poll: Duration) -> Self {
        Self { poll, ..self }
    }

    /// Sets the size of the values in memory, in bytes.
    #[must_use]
    pub fn cache_bytes(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }
}
