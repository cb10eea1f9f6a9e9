//! `LISTEN` and `NOTIFY`: processes notify each other when there are commits.
//!
//! A notification only makes the other process ask for commits at once. It asks from time to time anyway,
//! so that notifications may get lost, behind a pooler for instance, and a server may have none.
//!
//! A transaction that notifies holds a lock of the whole database while it is committed. So notifications
//! are not a part of the transactions with changes, but follow them in transactions of their own.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket};

use crate::connections::{Connections, Tls};

/// The name in `LISTEN`. The payload is the schema.
const CHANNEL: &str = "tidings";

/// Time between two notifications of a process at least. What is committed meanwhile shares one.
const GAP: Duration = Duration::from_millis(20);

/// Time between two looks at the connection, which asks the server if there is no commit.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Time between two attempts to connect.
const RETRY: Duration = Duration::from_secs(10);

/// Makes the connection that listens.
pub(crate) type Connect = Box<dyn Fn(NotifyListener) -> Connecting + Send + Sync>;

type Connecting = Pin<Box<dyn Future<Output = Result<(Client, Driver), Error>> + Send>>;

/// The task of a connection, which ends with this.
type Driver = JoinSet<()>;

/// What a notification of another process does: it wakes the thread that asks for commits.
#[derive(Clone)]
pub(crate) struct NotifyListener {
    schema: String,
    /// One message covers any number of notifications.
    wake: SyncSender<()>,
    /// The server's process of the own connection, which receives its own notifications as well.
    own: Arc<AtomicI32>,
}

impl NotifyListener {
    pub(crate) fn new(schema: &str, wake: SyncSender<()>) -> Self {
        Self { schema: schema.to_owned(), wake, own: Arc::default() }
    }

    fn wake(&self) {
        // If there is a message, it is not taken yet.
        _ = self.wake.try_send(());
    }
}

/// Makes connections of a host's configuration.
pub(crate) fn connect_by<T: Tls>(config: Config, tls: T) -> Connect {
    Box::new(move |listener| {
        let (config, tls) = (config.clone(), tls.clone());
        Box::pin(async move {
            let (client, connection) = config.connect(tls).await?;
            let mut driver = Driver::new();
            driver.spawn(drive::<T>(connection, listener));
            Ok((client, driver))
        })
    })
}

/// Drives a connection, and takes its notifications.
async fn drive<T: MakeTlsConnect<Socket>>(
    mut connection: Connection<Socket, T::Stream>,
    listener: NotifyListener,
) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message
            && notification.payload() == listener.schema
            && notification.process_id() != listener.own.load(Ordering::Relaxed)
        {
            listener.wake();
        }
    }
}

/// Notifies other processes after each commit, and listens to them, for as long as the store is there.
pub(crate) async fn keep_connected(
    (connect, others, limit): (Arc<Connect>, Connections, Duration),
    commits: Arc<Notify>,
    listener: NotifyListener,
) {
    loop {
        // Until there is a connection, the questions that come from time to time have to do.
        _ = listen_and_notify((&connect, &others, limit), &commits, &listener).await;
        sleep(RETRY).await;
    }
}

/// Returns `None` if the server fails, or does not answer within `limit`.
async fn listen_and_notify(
    (connect, others, limit): (&Connect, &Connections, Duration),
    commits: &Notify,
    listener: &NotifyListener,
) -> Option<()> {
    let made = Instant::now();
    // A connection whose server does not answer would stay open behind its client.
    let (client, _driver) = within(limit, connect(listener.clone())).await?;
    // A notification that a crash of the server loses is made up for by polling.
    let listen = format!("SET synchronous_commit = off; LISTEN {CHANNEL}");
    within(limit, client.batch_execute(&listen)).await?;
    let own = within(limit, client.query_one("SELECT pg_backend_pid()", &[])).await?;
    listener.own.store(own.try_get(0).ok()?, Ordering::Relaxed);
    let notify = within(limit, client.prepare("SELECT pg_notify($1, $2)")).await?;
    // Notifications before this one were not received.
    listener.wake();
    // Where the others have found a server that takes no writes, another one has the commits.
    while !client.is_closed() && !others.has_closed(made) {
        if timeout(HEARTBEAT, commits.notified()).await.is_ok() {
            within(limit, client.execute(&notify, &[&CHANNEL, &listener.schema])).await?;
            sleep(GAP).await;
        } else {
            // A network that has gone silent closes no connection.
            within(limit, client.batch_execute("")).await?;
        }
    }
    Some(())
}

async fn within<T>(limit: Duration, answer: impl Future<Output = Result<T, Error>>) -> Option<T> {
    timeout(limit, answer).await.ok()?.ok()
}
