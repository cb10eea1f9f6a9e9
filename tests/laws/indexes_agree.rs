//! Every index agrees with the records: nothing missing, nothing left over, nothing dangling.

use std::collections::BTreeSet;

use fuzz::facade::{Who, World};
use fuzz::tables::{check_indexes, dump};
use proptest::collection::vec;
use proptest::prelude::*;
use store::Table;
use tidings::domain::ids::NotificationId;
use tidings::domain::job::JobStatus;
use tidings::domain::message::{InboxCounts, MessageQuery};
use tidings::domain::notification::{Notification, NotificationQuery};
use tidings::domain::page::PageQuery;
use tidings::domain::vocabulary::Channel;

use crate::{beginning, cases, op};

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn after_any_history(ops in vec(op(), 0..60)) {
        let mut world = World::in_memory();
        for op in beginning().iter().chain(&ops) {
            world.run(*op);
            check_indexes(&world.store);
        }
        check_counts(&world);
        check_due(&world);
    }
}

/// What the inbox counts is what the messages say.
#[track_caller]
fn check_counts(world: &World) {
    let everything = PageQuery { limit: Some(PageQuery::MAX_LIMIT), ..PageQuery::default() };
    for who in (0..4).map(|who| Who(who).id()) {
        let query = MessageQuery { page: everything.clone(), ..MessageQuery::default() };
        let Ok(page) = world.env.messages().list(&who, &query) else { continue };
        assert_eq!(page.next, None, "there are more messages than this test looks at");
        let in_inbox = page.data.iter().filter(|message| message.channel == Channel::InApp);
        let stages: Vec<_> = in_inbox.map(|message| message.stage).collect();
        let expected = InboxCounts {
            unseen: stages.iter().filter(|stage| !stage.is_seen()).count(),
            unread: stages.iter().filter(|stage| !stage.is_read()).count(),
        };
        assert_eq!(world.env.inbox(&who).counts().unwrap(), expected, "{who} has {stages:?}");
    }
}

/// Whoever looks for work finds just the notifications with a job that waits or runs.
#[track_caller]
fn check_due(world: &World) {
    let entries = dump(&world.store);
    let due = entries.iter().filter(|(table, _, _)| *table == Table::Due);
    let due: BTreeSet<Vec<u8>> = due.map(|(_, _, target)| target.clone()).collect();
    let notifications = all_notifications(world);
    let waiting = notifications.iter().filter(|notification| {
        let mut jobs = notification.jobs.iter();
        jobs.any(|job| matches!(job.status, JobStatus::Queued { .. } | JobStatus::Running { .. }))
    });
    let waiting: BTreeSet<NotificationId> = waiting.map(|notification| notification.id).collect();
    assert_eq!(due.len(), waiting.len(), "{waiting:?} wait");
}

fn all_notifications(world: &World) -> Vec<Notification> {
    let page = |page| {
        let limit = Some(NotificationQuery::MAX_LIMIT);
        let query = NotificationQuery { page, limit, ..NotificationQuery::default() };
        world.env.notifications().list(&query).unwrap().data
    };
    (0..).map(page).take_while(|page| !page.is_empty()).flatten().collect()
}
