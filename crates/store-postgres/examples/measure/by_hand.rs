//! By hand: the tables of a host that knows SQL, with an index for each list. It has no
//! preferences, no counters, no log of decisions and no conditions.

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

const TABLES: &str = "
DROP SCHEMA IF EXISTS by_hand CASCADE;
CREATE SCHEMA by_hand;
SET search_path = by_hand;
CREATE TABLE subscribers (id bigserial PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE triggers (id bigserial PRIMARY KEY, transaction_id text NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT now(), workflow int NOT NULL, payload jsonb NOT NULL);
CREATE TABLE notifications (id bigserial PRIMARY KEY, trigger int8 NOT NULL, subscriber int8 NOT NULL,
  workflow int NOT NULL, jobs jsonb NOT NULL);
CREATE INDEX by_subscriber ON notifications (subscriber);
CREATE INDEX by_workflow ON notifications (workflow);
CREATE TABLE messages (id bigserial PRIMARY KEY, notification int8 NOT NULL, subscriber int8 NOT NULL,
  is_read bool NOT NULL DEFAULT false, created_at timestamptz NOT NULL DEFAULT now(),
  content text NOT NULL);
CREATE INDEX inbox ON messages (subscriber, id);
INSERT INTO subscribers (name) SELECT 'subscriber-' || number FROM generate_series(0, 99) AS number;
";

const SUBSCRIBERS: &str = "SELECT id FROM subscribers WHERE name = ANY ($1)";

const TRIGGER: &str = "INSERT INTO triggers (transaction_id, workflow, payload)
  VALUES ($1, $2, '{\"order\": 4711}') RETURNING id";

const ROWS: &str = "WITH told AS (
    INSERT INTO notifications (trigger, subscriber, workflow, jobs)
    SELECT $1, id, $2, '[{\"step\": \"in_app\", \"status\": \"completed\"}]'
    FROM unnest($3::int8[]) AS id RETURNING id, subscriber
  )
  INSERT INTO messages (notification, subscriber, content)
  SELECT id, subscriber, 'Your order 4711 is on its way' FROM told";

const INBOX: &str = "SELECT m.id, m.is_read, m.content, n.workflow
  FROM subscribers s JOIN messages m ON m.subscriber = s.id JOIN notifications n ON n.id = m.notification
  WHERE s.name = $1 ORDER BY m.id DESC LIMIT 10";

const MARK: &str = "UPDATE messages SET is_read = NOT is_read WHERE id = (
    SELECT m.id FROM subscribers s JOIN messages m ON m.subscriber = s.id
    WHERE s.name = $1 ORDER BY m.id DESC LIMIT 1
  )";

/// A connection with the statements of a careful host.
pub(crate) struct ByHand {
    runtime: Runtime,
    client: Client,
    statements: [Statement; 5],
    triggers: u64,
}

impl ByHand {
    pub(crate) fn open(url: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (client, statements) = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute(TABLES).await.unwrap();
            let mut statements = Vec::new();
            for sql in [SUBSCRIBERS, TRIGGER, ROWS, INBOX, MARK] {
                statements.push(client.prepare(sql).await.unwrap());
            }
            (client, statements.try_into().unwrap())
        });
        Self { runtime, client, statements, triggers: 0 }
    }

    /// One transaction, with a statement for each table or two.
    pub(crate) fn trigger(&mut self, to: &[u64]) {
        self.triggers += 1;
        let [subscribers, trigger, rows, ..] = &self.statements;
        let names: Vec<String> = to.iter().map(|number| crate::subscriber(*number)).collect();
        let (id, workflow) =
            (format!("order-{}", self.triggers), i32::try_from(self.triggers % 20).unwrap());
        self.runtime.block_on(async {
            let transaction = self.client.transaction().await.unwrap();
            let found = transaction.query(subscribers, &[&names]).await.unwrap();
            let found: Vec<i64> = found.iter().map(|row| row.get(0)).collect();
            let row = transaction.query_one(trigger, &[&id, &workflow]).await.unwrap();
            let row: i64 = row.get(0);
            transaction.execute(rows, &[&row, &workflow, &found]).await.unwrap();
            transaction.commit().await.unwrap();
        });
    }

    pub(crate) fn inbox(&self, number: u64) {
        let [.., inbox, _] = &self.statements;
        let name = crate::subscriber(number);
        let params: [&(dyn ToSql + Sync); 1] = [&name];
        let rows = self.client.query(inbox, &params);
        assert!(!self.runtime.block_on(rows).unwrap().is_empty());
    }

    pub(crate) fn mark(&self, number: u64) {
        let [.., mark] = &self.statements;
        let name = crate::subscriber(number);
        let params: [&(dyn ToSql + Sync); 1] = [&name];
        let marked = self.client.execute(mark, &params);
        assert_eq!(self.runtime.block_on(marked).unwrap(), 1);
    }
}
