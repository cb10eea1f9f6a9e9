//! `LISTEN` and `NOTIFY`: processes call each other when there are commits.
//!
//! A call only makes the other process ask at once. It asks from time to time anyway, so that calls
//! may get lost, behind a pooler for instance, and a server may have none.
//!
//! A transaction that notifies holds a lock of the whole database while it is committed. So calls are
//! not a part of the transactions with changes, but follow them in transactions of their own.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket};

/// The name in `LISTEN`. The payload is the schema.
const CHANNEL: &str = "tidings";

/// Time between two calls of a process at least. What is committed meanwhile shares a call.
const GAP: Duration = Duration::from_millis(20);

/// Time between two looks at the connection.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Time between two attempts to connect.
const RETRY: Duration = Duration::from_secs(10);

/// Makes the connection that listens.
pub(crate) type Connect = Box<dyn Fn(Ears) -> Connecting + Send + Sync>;

type Connecting = Pin<Box<dyn Future<Output = Result<Client, Error>> + Send>>;

/// What happens when another process calls.
#[derive(Clone)]
pub(crate) struct Ears {
    schema: String,
    /// Wakes the thread that asks for news. One message covers any number of calls.
    wake: SyncSender<()>,
    /// The server's process of the own connection, which hears its own calls as well.
    own: Arc<AtomicI32>,
}

impl Ears {
    pub(crate) fn new(schema: &str, wake: SyncSender<()>) -> Self {
        Self { schema: schema.to_owned(), wake, own: Arc::default() }
    }

    fn hear(&self) {
        // If there is one, it is not taken yet.
        _ = self.wake.try_send(());
    }
}

/// Makes connections of a host's configuration.
pub(crate) fn connect_by<T>(config: Config, tls: T) -> Connect
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send + Sync,
    T::TlsConnect: Send + Sync,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    Box::new(move |ears| {
        let (config, tls) = (config.clone(), tls.clone());
        Box::pin(async move {
            let (client, connection) = config.connect(tls).await?;
            tokio::spawn(listen::<T>(connection, ears));
            Ok(client)
        })
    })
}

/// Drives a connection, and hears calls.
async fn listen<T: MakeTlsConnect<Socket>>(
    mut connection: Connection<Socket, T::Stream>,
    ears: Ears,
) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(call) = message
            && call.payload() == ears.schema
            && call.process_id() != ears.own.load(Ordering::Relaxed)
        {
            ears.hear();
        }
    }
}

/// Calls others after each commit, and listens to them, for as long as the store is there.
pub(crate) async fn keep(connect: Arc<Connect>, commits: Arc<Notify>, ears: Ears) {
    loop {
        // Until there is a connection, the questions that come from time to time have to do.
        drop(converse(&connect, &commits, &ears).await);
        sleep(RETRY).await;
    }
}

async fn converse(connect: &Connect, commits: &Notify, ears: &Ears) -> Result<(), Error> {
    let client = connect(ears.clone()).await?;
    // A notification that a crash of the server loses is made up for by polling.
    client.batch_execute(&format!("SET synchronous_commit = off; LISTEN {CHANNEL}")).await?;
    let own = client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?;
    ears.own.store(own, Ordering::Relaxed);
    let notify = client.prepare("SELECT pg_notify($1, $2)").await?;
    // Calls before this one were not heard.
    ears.hear();
    while !client.is_closed() {
        if timeout(HEARTBEAT, commits.notified()).await.is_ok() {
            client.execute(&notify, &[&CHANNEL, &ears.schema]).await?;
            sleep(GAP).await;
        }
    }
    Ok(())
}
