//! Transactions of `tokio-postgres`, whose connection belongs to the runtime of the host.

use std::fmt;
use std::panic::resume_unwind;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};

use crate::{HostConnection, HostError, Joined, PostgresStore, TypedParams};

impl PostgresStore {
    /// Runs `body` on a thread of the store, where it may block, and makes its changes in a transaction of the
    /// host, which commits it afterwards:
    ///
    /// ```no_run
    /// # use tidings::{Scope, trigger::Trigger};
    /// # use tidings_store_postgres::PostgresStore;
    /// # async fn order(
    /// #     mut client: tokio_postgres::Client, store: PostgresStore, env: Scope, shipped: Trigger,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// transaction.execute("UPDATE orders SET is_shipped = true WHERE id = 4711", &[]).await?;
    /// store.within(&transaction, move |joined| env.events().trigger_in(joined, &shipped)).await?;
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The connection is one of the database of the store; its search path may be any. If the
    /// future is dropped, such as by a timeout, each operation of `body` is in the transaction as a whole
    /// or not at all, and the host does not know which. It should roll the transaction back. See
    /// [`join`](Self::join) for locks, and for errors after which the host runs the transaction again. The wait
    /// for a lock ends with the `lock_timeout` of the connection, if it has one.
    ///
    /// # Panics
    ///
    /// If `body` panics, or the system has no thread for it.
    pub async fn within<T, F>(&self, transaction: &Transaction<'_>, body: F) -> T
    where
        F: FnOnce(&mut Joined<'_>) -> T + Send + 'static,
        T: Send + 'static,
    {
        let (ask, mut asked) = mpsc::unbounded_channel::<Question>();
        let store = self.clone();
        // Not one of the host's: all of them may wait for a transaction that needs one to go on.
        let host = Handle::try_current().ok();
        let run = move || {
            let _in_host = host.as_ref().map(Handle::enter);
            body(&mut store.join(&mut Bridge { ask }))
        };
        let ran = self.shared.server.run_blocking(run);
        while let Some(Question { statement, params, answer }) = asked.recv().await {
            let params: Vec<_> =
                params.iter().map(|(it, of)| (&**it as &(dyn ToSql + Sync), of.clone())).collect();
            // The thread waits for it.
            drop(answer.send(transaction.query_typed(&statement, &params).await));
        }
        match ran.await {
            Ok(outcome) => outcome,
            Err(error) => resume_unwind(error.into_panic()),
        }
    }
}

/// A statement, and where its rows go.
struct Question {
    statement: String,
    params: TypedParams,
    answer: oneshot::Sender<Result<Vec<Row>, tokio_postgres::Error>>,
}

/// The way from a thread to the connection.
struct Bridge {
    ask: mpsc::UnboundedSender<Question>,
}

impl HostConnection for Bridge {
    fn query(&mut self, statement: &str, params: TypedParams) -> Result<Vec<Row>, HostError> {
        let (answer, answered) = oneshot::channel();
        let statement = statement.to_owned();
        // If the future of the host was dropped, the channel is closed, and the next line fails.
        drop(self.ask.send(Question { statement, params, answer }));
        Ok(answered.blocking_recv()??)
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").finish_non_exhaustive()
    }
}
