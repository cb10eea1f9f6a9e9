//! Tidings, in a file.

use std::path::{Path, PathBuf};

use bench_data::Calls;
use tidings::ids::SubscriberId;
use tidings::message::MessageQuery;
use tidings::notification::{Notification, NotificationQuery};
use tidings::store::redb::{RedbOptions, RedbStore};
use tidings::{Engine, Error, Scope};

use crate::write::disk;
use crate::write::system::{Call, System};

/// An engine with its file.
pub(crate) struct Tidings {
    path: PathBuf,
    options: RedbOptions,
    // Absent while the file is closed.
    scope: Option<Scope>,
}

impl Tidings {
    pub(crate) fn create(path: &Path, with_log: bool) -> Self {
        let mut options = RedbOptions::default();
        options.log = options.log.filter(|_| with_log);
        let scope = Some(open(path, &options));
        let tidings = Self { path: path.into(), options, scope };
        for workflow in Calls::workflows() {
            tidings.scope().workflows().create(&workflow).unwrap();
        }
        tidings
    }

    fn scope(&self) -> &Scope {
        self.scope.as_ref().unwrap()
    }
}

fn open(path: &Path, options: &RedbOptions) -> Scope {
    let store = RedbStore::open_with(path, options).unwrap();
    let engine = Engine::builder().build(store);
    engine.organization("acme").unwrap().development().unwrap()
}

impl System for Tidings {
    fn name(&self) -> &'static str {
        "Tidings"
    }

    fn write(&self, call: &Call) {
        let events = self.scope().events();
        if let [trigger] = &**call {
            events.trigger(trigger).unwrap();
        } else {
            events
                .trigger_bulk(call)
                .unwrap()
                .into_iter()
                .for_each(|receipt| drop(receipt.unwrap()));
        }
    }

    fn fill(&mut self, calls: &mut dyn Iterator<Item = Call>) {
        calls.for_each(|call| self.write(&call));
    }

    fn reopen(&mut self) {
        self.scope = None;
        disk::forget(&self.path);
        self.scope = Some(open(&self.path, &self.options));
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
    let workflow = &notification.template.as_ref().unwrap().name;
    let (contexts, job) = (notification.context_keys.canonical(), &notification.jobs[0]);
    let order = &notification.payload.as_ref().unwrap()["order"];
    format!("{workflow}, {contexts}, {order}, {}", job.execution_details[0].detail)
}
