//! The connections of a store, each with the settings of its options.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod};
use parking_lot::Mutex;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, Socket};

use crate::PostgresOptions;
use crate::failure::Failure;
use crate::schema::quoted;

/// TLS for connections that any thread may use.
pub(crate) trait Tls:
    MakeTlsConnect<
        Socket,
        Stream: Send + Sync,
        TlsConnect: TlsConnect<Socket, Future: Send> + Send + Sync,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<T> Tls for T where
    T: MakeTlsConnect<
            Socket,
            Stream: Send + Sync,
            TlsConnect: TlsConnect<Socket, Future: Send> + Send + Sync,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

/// Connections of a store. Clones share them.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool,
    closed: Closed,
}

/// Time up to which all connections are closed. One that was in use then is closed when it comes back.
#[derive(Clone, Debug, Default)]
struct Closed(Arc<Mutex<Option<Instant>>>);

impl Closed {
    /// Returns `true` if a connection that was made then is closed.
    fn includes(&self, made: Instant) -> bool {
        self.0.lock().is_some_and(|closed| made <= closed)
    }
}

impl Connections {
    pub(crate) fn new(
        config: Config,
        tls: impl Tls,
        max: usize,
        options: &PostgresOptions,
    ) -> Result<Self, Failure> {
        let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config, tls, manager_config);
        let (settings, timeout) = (settings(options), options.timeout);
        let prepare = Hook::async_fn(move |client, _| {
            let settings = settings.clone();
            Box::pin(async move {
                let set = tokio::time::timeout(timeout, client.batch_execute(&settings)).await;
                let no_answer = |_| HookError::message("no answer to the settings in time");
                set.map_err(no_answer)?.map_err(HookError::Backend)
            })
        });
        let closed = Closed::default();
        let known = closed.clone();
        let check = Hook::sync_fn(move |_, metrics| {
            if known.includes(metrics.created) {
                return Err(HookError::message("the server took no writes"));
            }
            Ok(())
        });
        let pool = Pool::builder(manager)
            .max_size(max)
            .runtime(deadpool_postgres::Runtime::Tokio1)
            .wait_timeout(Some(timeout))
            .create_timeout(Some(timeout))
            .post_create(prepare)
            .pre_recycle(check)
            .build()
            .map_err(|error| Failure::refused("make a pool", error))?;
        Ok(Self { pool, closed })
    }

    /// Takes a connection, or makes one.
    pub(crate) async fn get(&self) -> Result<Object, Failure> {
        self.pool.get().await.map_err(Failure::of_pool)
    }

    /// Closes the connections that are not in use.
    pub(crate) fn close_unused(&self) {
        drop(self.pool.retain(|_, _| false));
    }

    /// Closes all connections that were made until now. One that is in use is closed when it comes back.
    pub(crate) fn close_all(&self) {
        *self.closed.0.lock() = Some(Instant::now());
        self.close_unused();
    }

    /// Returns `true` if a connection that was made then is closed.
    pub(crate) fn has_closed(&self, made: Instant) -> bool {
        self.closed.includes(made)
    }
}

// The configuration has a password.
impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("status", &self.pool.status()).finish_non_exhaustive()
    }
}

/// Settings that a server may not know. A statement is planned once, and not for each call. Its plan
/// takes an index even if the relation is small when the statement is planned, and follows the order of the
/// index: a full sort would read the whole range of a scan. Large values are compressed by lz4, where the
/// server was built with it: pglz takes longer.
const TUNING: &str = "SELECT set_config(name, tuning.setting, false)
    FROM pg_settings JOIN (VALUES
        ('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'),
        ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'), ('enable_sort', 'off'),
        ('default_toast_compression', 'lz4')
    ) AS tuning (name, setting) USING (name)
    WHERE enumvals IS NULL OR tuning.setting = ANY (enumvals)";

// The statements that set up a new connection.
fn settings(options: &PostgresOptions) -> String {
    let (timeout, of_idle) = (millis(options.timeout), millis(options.timeout.saturating_mul(10)));
    format!(
        "SET search_path = {}; SET default_transaction_isolation = 'read committed'; \
         SET statement_timeout = {timeout}; SET lock_timeout = {timeout}; \
         SET idle_in_transaction_session_timeout = {of_idle}; {TUNING}",
        quoted(&options.schema),
    )
}

/// A time as the server takes it. Zero would be no limit at all.
fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_takes_any_time() {
        for (time, expected) in [
            (Duration::ZERO, 1),
            (Duration::from_micros(10), 1),
            (Duration::from_secs(10), 10_000),
            (Duration::MAX, i32::MAX),
        ] {
            assert_eq!(millis(time), expected);
        }
    }
}
