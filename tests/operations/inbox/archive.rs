//! The archive of an inbox, and deleted messages.

use serde_json::json;
use testkit::tables::check_indexes;
use tidings::ids::MessageId;
use tidings::message::{InboxCounts, MarkAs, MessageQuery, Stage};
use tidings::page::Total;

use super::{counts, mark};
use crate::world::{NO_ID, World, email, in_app, on_both};

fn with_messages(world: &World, count: usize) -> Vec<MessageId> {
    world.in_app_workflow("hi");
    (0..count)
        .map(|_| {
            world.tick();
            world.notify("hi", "ada");
            world.inbox("ada")[0].id
        })
        .collect()
}

#[test]
fn an_archived_message_is_read_and_in_a_list_of_its_own() {
    on_both(|world| {
        let [first, second] = with_messages(&world, 2)[..] else { unreachable!() };
        let inbox = world.env.inbox("ada").unwrap();
        world.tick();
        let archived = inbox.archive([first, first]).unwrap();
        let at = world.now();
        assert_eq!(archived.len(), 1);
        let stage = Stage::Archived { seen_at: at, read_at: at, archived_at: at };
        assert_eq!(archived[0].stage, stage);
        assert_eq!(world.inbox("ada").iter().map(|one| one.id).collect::<Vec<_>>(), [second]);
        let listed = inbox.list(&MessageQuery::default().archived()).unwrap();
        assert_eq!((listed.data, listed.total), (archived.clone(), Total::Exactly(1)));
        assert_eq!(counts(&world, "ada"), InboxCounts::new(1, 1));
        assert_eq!(world.messages("ada").len(), 2, "lists of all messages have it");
        world.unchanged(|| inbox.archive([first]).unwrap());

        let back = inbox.unarchive([first]).unwrap();
        assert_eq!(back[0].stage, Stage::Read { seen_at: at, read_at: at });
        assert_eq!(world.inbox("ada").len(), 2);
        assert_eq!(counts(&world, "ada"), InboxCounts::new(1, 1));
        check_indexes(&world.store);
    });
}

/// One row per mark of an archived message: whether it stays in the archive, and the counts.
#[test]
fn a_mark_that_says_unread_takes_a_message_out_of_the_archive() {
    on_both(|world| {
        let id = with_messages(&world, 1)[0];
        let inbox = world.env.inbox("ada").unwrap();
        for (mark_as, is_archived, unseen, unread) in [
            (MarkAs::Read, true, 0, 0),
            (MarkAs::Seen, true, 0, 0),
            (MarkAs::Unread, false, 0, 1),
            (MarkAs::Unseen, false, 1, 1),
        ] {
            let before = inbox.archive([id]).unwrap();
            let after = mark(&world, "ada", &[id], mark_as);
            assert_eq!(after[0].stage.is_archived(), is_archived, "{mark_as}");
            assert!(!is_archived || after == before, "{mark_as} changes it");
            assert_eq!(counts(&world, "ada"), InboxCounts::new(unseen, unread), "{mark_as}");
        }
    });
}

#[test]
fn only_messages_of_the_inbox_are_archived_and_deleted() {
    on_both(|world| {
        super::reachable(&world);
        world.workflow_of("both", &[in_app(), email()]);
        world.notify("both", "ada");
        world.notify("both", "bob");
        world.run_due();
        let inbox = world.env.inbox("ada").unwrap();
        let mail = world.messages("ada").iter().find(|one| one.email.is_some()).unwrap().id;
        let of_bob = world.inbox("bob")[0].id;
        let unknown: MessageId = NO_ID.parse().unwrap();
        for ids in [[mail, unknown], [of_bob, unknown]] {
            world.unchanged(|| assert_eq!(inbox.archive(ids).unwrap(), []));
            world.unchanged(|| assert_eq!(inbox.delete(ids).unwrap(), 0));
        }
        let own = world.inbox("ada")[0].id;
        assert_eq!(inbox.delete([own, own, mail]).unwrap(), 1);
        assert_eq!(world.messages("ada").len(), 1);
        world.refuses("422 `messageId` must not be empty", || inbox.archive([] as [MessageId; 0]));
        world.refuses("422 `messageId` must not be empty", || inbox.delete([] as [MessageId; 0]));
        let eve = world.env.inbox("eve").unwrap();
        world.refuses("404 subscriber `eve` is not there", || eve.archive([own]));
        world.refuses("404 subscriber `eve` is not there", || eve.delete([own]));
        let all = MessageQuery::default();
        world.refuses("404 subscriber `eve` is not there", || eve.delete_matching(&all));
        check_indexes(&world.store);
    });
}

// A change of the messages that match a query.
type Change<'c> = &'c dyn Fn(&MessageQuery) -> u64;

/// One row per change of messages that match a query: how many it changes, and how many are left in
/// the list and in the archive.
#[test]
fn messages_that_match_are_archived_and_deleted() {
    on_both(|world| {
        let ids = with_messages(&world, 5);
        mark(&world, "ada", &ids[..2], MarkAs::Read);
        let inbox = world.env.inbox("ada").unwrap();
        let (all, read) = (MessageQuery::default(), MessageQuery::default().read());
        let archive = |query: &MessageQuery| inbox.archive_matching(query).unwrap();
        let restore = |query: &MessageQuery| inbox.unarchive_matching(query).unwrap();
        let delete = |query: &MessageQuery| inbox.delete_matching(query).unwrap();
        let unarchived: MessageQuery = crate::world::parsed(json!({ "archived": false }));
        let oldest = MessageQuery::default()
            .transaction_id(world.messages("ada")[4].transaction_id.clone())
            .unwrap();
        let rows: [(Change<'_>, &MessageQuery, u64, usize, usize); 9] = [
            (&archive, &read, 2, 3, 2),
            (&restore, &unarchived, 0, 3, 2),
            (&archive, &read, 0, 3, 2),
            (&restore, &oldest, 1, 4, 1),
            (&delete, &oldest, 1, 3, 1),
            (&archive, &all, 3, 0, 4),
            (&restore, &all, 4, 4, 0),
            (&delete, &MessageQuery::default().unread(), 0, 4, 0),
            (&delete, &all, 4, 0, 0),
        ];
        for (row, (change, query, changed, open, archived)) in rows.into_iter().enumerate() {
            assert_eq!(change(query), changed, "{row}");
            let left = [MessageQuery::default(), MessageQuery::default().archived()];
            let left = left.map(|query| inbox.list(&query).unwrap().data.len());
            assert_eq!(left, [open, archived], "{row}");
            check_indexes(&world.store);
        }
        let many = json!({ "tags": vec!["a"; 101] });
        let many = crate::world::parsed(many);
        world.refuses("422 `tags` must have at most 100 items", || inbox.archive_matching(&many));
        world.refuses("422 `tags` must have at most 100 items", || inbox.list(&many));
        world.refuses("422 `tags` must have at most 100 items", || inbox.count(&many));
    });
}
