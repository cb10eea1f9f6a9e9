//! Answers that this process stores while it erases a person.

use std::sync::{Arc, Weak};

use domain::ids::{EnvironmentId, IdempotencyKey};
use parking_lot::Mutex;
use store::{Change, ChangeKind, Table, layout};

/// The erasures that are under way.
#[derive(Debug, Default)]
pub(crate) struct OngoingErasures(Mutex<Vec<Weak<AnswersSince>>>);

/// The answers that were stored in an environment since an erasure has begun.
#[derive(Debug)]
pub(super) struct AnswersSince {
    environment: EnvironmentId,
    keys: Mutex<Vec<IdempotencyKey>>,
}

impl OngoingErasures {
    /// Begins to take note of the answers in an environment.
    pub(super) fn answers_of(&self, environment: EnvironmentId) -> Arc<AnswersSince> {
        let answered = Arc::new(AnswersSince { environment, keys: Mutex::default() });
        self.0.lock().push(Arc::downgrade(&answered));
        answered
    }

    /// Takes note of the answers among the changes of a transaction that may still fail.
    pub(crate) fn note(&self, changes: &[Change]) {
        let mut erasures = self.0.lock();
        if erasures.is_empty() {
            return;
        }
        erasures.retain(|erasure| erasure.strong_count() > 0);
        let stored = changes.iter().filter(|change| {
            change.table == Table::StoredAnswers && change.kind != ChangeKind::Removed
        });
        for (environment, key) in stored.filter_map(|change| layout::answer_key_of(&change.key)) {
            for answered in erasures.iter().filter_map(Weak::upgrade) {
                if answered.environment == environment {
                    answered.keys.lock().push(key.clone());
                }
            }
        }
    }
}

impl AnswersSince {
    /// The keys of up to `limit` answers behind the first `seen`, in the order of their transactions.
    pub(super) fn behind(&self, seen: usize, limit: usize) -> Vec<IdempotencyKey> {
        self.keys.lock().iter().skip(seen).take(limit).cloned().collect()
    }
}
