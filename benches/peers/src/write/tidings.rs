//! Tidings, in a file or in PostgreSQL.

use std::path::{Path, PathBuf};

use bench_data::Calls;
use tidings::ids::SubscriberId;
use tidings::message::MessageQuery;
use tidings::notification::{Notification, NotificationQuery};
use tidings::store::redb::{RedbOptions, RedbStore};
use tidings::{Engine, Error, Scope};
#[cfg(feature = "postgres")]
use tidings_store_postgres::{PostgresOptions, PostgresStore};

use crate::write::disk;
use crate::write::system::{Call, System};

/// An engine with its store.
pub(crate) struct Tidings {
    name: &'static str,
    open: Box<dyn Fn() -> Engine + Sync>,
    /// The file, unless a server has the data.
    file: Option<PathBuf>,
    // Absent while the store is closed.
    scope: Option<Scope>,
}

impl Tidings {
    /// In a new file.
    pub(crate) fn in_file(path: &Path, with_log: bool) -> Self {
        let mut options = RedbOptions::default();
        options.log = options.log.filter(|_| with_log);
        let file = path.to_owned();
        let open = move || Engine::builder().build(RedbStore::open_with(&file, &options).unwrap());
        Self::new("Tidings", Box::new(open), Some(path.into()))
    }

    /// In an empty schema of a server.
    #[cfg(feature = "postgres")]
    pub(crate) fn in_postgres(url: &str, schema: &str) -> Self {
        let mut options = PostgresOptions::default();
        options.schema = schema.into();
        let url = url.to_owned();
        let open =
            move || Engine::builder().build(PostgresStore::open_with(&url, &options).unwrap());
        Self::new("Tidings on PostgreSQL", Box::new(open), None)
    }

    fn new(
        name: &'static str,
        open: Box<dyn Fn() -> Engine + Sync>,
        file: Option<PathBuf>,
    ) -> Self {
        let scope = Some(scope(&open()));
        let tidings = Self { name, open, file, scope };
        for workflow in Calls::workflows() {
            tidings.scope().workflows().create(&workflow).unwrap();
        }
        tidings
    }

    fn scope(&self) -> &Scope {
        self.scope.as_ref().unwrap()
    }
}

fn scope(engine: &Engine) -> Scope {
    engine.organization("acme").unwrap().development().unwrap()
}

impl System for Tidings {
    fn name(&self) -> &'static str {
        self.name
    }

    fn write(&self, call: &Call) {
        let events = self.scope().events();
        if let [trigger] = &**call {
            events.trigger(trigger).unwrap();
        } else {
            events.trigger_bulk(call).unwrap().all().unwrap();
        }
    }

    fn fill(&mut self, calls: &mut dyn Iterator<Item = Call>) {
        calls.for_each(|call| self.write(&call));
    }

    fn has_a_file(&self) -> bool {
        self.file.is_some()
    }

    fn reopen(&mut self) {
        self.scope = None;
        if let Some(file) = &self.file {
            disk::forget(file);
        }
        self.scope = Some(scope(&(self.open)()));
    }

    fn inbox(&self, subscriber: &SubscriberId) -> Vec<String> {
        let query = MessageQuery::default().limit(100);
        let messages = match self.scope().inbox(subscriber).unwrap().list(&query) {
            // Its first trigger creates it.
            Err(Error::NotFound { .. }) => Vec::new(),
            page => page.unwrap().data,
        };
        let mut texts: Vec<_> =
            messages.iter().map(|message| message.text().unwrap().to_owned()).collect();
        texts.sort();
        texts
    }

    fn listed(&self, subscriber: &SubscriberId) -> Vec<String> {
        let query = NotificationQuery::default().subscriber_ids([subscriber]).unwrap().limit(50);
        let page = self.scope().notifications().list(&query).unwrap();
        let mut listed: Vec<_> = page.data.iter().map(line).collect();
        listed.sort();
        listed
    }
}

fn line(notification: &Notification) -> String {
    let workflow = &notification.workflow.as_ref().unwrap().name;
    let (contexts, job) = (notification.context_keys.canonical(), &notification.jobs[0]);
    let order = &notification.payload.as_ref().unwrap()["order"];
    format!("{workflow}, {contexts}, {order}, {}", job.execution_details[0].detail)
}
