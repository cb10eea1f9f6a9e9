use std::time::Duration;

use store::WriteScope;

use super::state::{RECENT, SMALL_COMMIT, TIMES_WANTED, WANTED_OF_A_TABLE};
use super::*;
use crate::commit::CommitId;
use crate::commit_news::HeadCommit;

const TABLE: Table = Table::Subscribers;

/// A key of an environment.
fn key(rest: &[u8]) -> Vec<u8> {
    [&[7; 16][..], rest].concat()
}

fn head() -> Head {
    Head::of(TABLE, &key(b""))
}

fn counts(count: u64) -> Counts {
    Counts::of(Era::first(SystemTime::UNIX_EPOCH)).with(&[(head(), count)])
}

/// Follows the server up to a count.
fn go_on(cache: &Cache, count: u64, news: Vec<HeadCommit>) {
    let news = CommitNews { start: None, counts: vec![(head(), count)], commits: news };
    cache.follow(&cache.counts(), &news).unwrap();
}

fn span(start: &[u8], end: &[u8]) -> Span {
    Span { start: key(start), end: Some(key(end)) }
}

fn cache() -> Cache {
    Cache::of(1 << 20, counts(1))
}

/// A commit of another process.
fn follow(cache: &Cache, number: u64, changed: &[u8]) {
    let keys = Some(vec![(TABLE, key(changed))]);
    go_on(cache, number, vec![news(number, keys)]);
}

fn news(number: u64, keys: Option<Vec<(Table, Vec<u8>)>>) -> HeadCommit {
    HeadCommit { head: head(), number, keys, id: Vec::new() }
}

fn id(number: u8) -> CommitId {
    CommitId::of([number; 8]).unwrap()
}

/// A commit of this process.
fn commit(cache: &Cache, number: u64, changed: &[u8]) {
    let mut own = Changes::default();
    own.set(TABLE, &key(changed), Some(b"value"));
    let id = id(7);
    cache.expect(&counts(number - 1), id, &Arc::new(own));
    cache.commit(&counts(number - 1), head(), (id, true));
}

#[test]
fn a_gap_is_known_until_a_key_in_it_is_written() {
    let (kept, part) = (span(b"b", b"d"), span(b"c", b"d"));
    let own = |cache: &Cache| commit(cache, 2, b"c");
    let others = |cache: &Cache| follow(cache, 2, b"c");
    let far = |cache: &Cache| go_on(cache, 9, Vec::new());
    for write in [&own as &dyn Fn(&Cache), &others, &far] {
        let cache = cache();
        assert!(!cache.is_gap(&counts(1), TABLE, &kept));
        cache.keep_gap(&counts(1), TABLE, &kept);
        assert!(cache.is_gap(&counts(1), TABLE, &kept) && cache.is_gap(&counts(1), TABLE, &part));
        assert!(!cache.is_gap(&counts(1), TABLE, &span(b"b", b"e")));
        assert!(!cache.is_gap(&counts(1), Table::Topics, &kept));
        // A view that is older may have seen an entry that was deleted since.
        assert!(!cache.is_gap(&counts(0), TABLE, &kept));
        write(&cache);
        assert!(!cache.is_gap(&counts(2), TABLE, &kept));
    }
}

#[test]
fn a_gap_outlives_a_key_beside_it() {
    let (cache, kept) = (cache(), span(b"b", b"d"));
    cache.keep_gap(&counts(1), TABLE, &kept);
    follow(&cache, 2, b"d");
    follow(&cache, 3, b"a");
    assert!(cache.is_gap(&counts(3), TABLE, &kept));
}

/// A view that began before other commits may keep what they have not changed.
#[test]
fn what_a_view_has_read_is_kept_unless_it_was_changed_meanwhile() {
    let own = |cache: &Cache| commit(cache, 2, b"c");
    let others = |cache: &Cache| follow(cache, 2, b"c");
    for write in [&own as &dyn Fn(&Cache), &others] {
        let cache = cache();
        write(&cache);
        follow(&cache, 3, b"d");
        let knows = |name| cache.get(&counts(3), TABLE, &key(name)).is_some();
        let before = knows(b"c");
        for name in [b"b", b"c", b"d"] {
            cache.keep(&counts(1), TABLE, &key(name), &None);
        }
        assert!(knows(b"b") && knows(b"c") == before && !knows(b"d"));
        cache.keep(&counts(2), TABLE, &key(b"c"), &None);
        assert!(knows(b"c"));
        for (start, end, is_kept) in [(b"a", b"c", true), (b"c", b"e", false)] {
            cache.keep_gap(&counts(1), TABLE, &span(start, end));
            assert_eq!(cache.is_gap(&counts(3), TABLE, &span(start, end)), is_kept);
        }
    }
}

/// A transaction that waits for a commit sees the counts before it.
#[test]
fn what_was_read_is_known_before_commits_that_have_spared_it() {
    let cache = cache();
    let is_known = |count, name| {
        let is_gap = cache.is_gap(&counts(count), TABLE, &span(name, b"z"));
        (cache.get(&counts(count), TABLE, &key(name)).is_some(), is_gap)
    };
    for (number, name) in [(2, b"a"), (3, b"s"), (4, b"b")] {
        commit(&cache, number, name);
    }
    // Two commits of others, of which one may have spared it.
    let keys = |name| Some(vec![(TABLE, key(name))]);
    go_on(&cache, 6, vec![news(5, keys(b"c")), news(6, keys(b"d"))]);
    cache.keep(&counts(6), TABLE, &key(b"s"), &None);
    cache.keep_gap(&counts(6), TABLE, &span(b"s", b"z"));
    for count in 3..=6 {
        assert_eq!(is_known(count, b"s"), (true, true), "{count}");
    }
    assert_eq!(is_known(2, b"s"), (false, false));
    cache.keep(&counts(5), TABLE, &key(b"t"), &None);
    assert_eq!((is_known(5, b"t").0, is_known(4, b"t").0), (true, false));
}

/// Of several commits at once, the keys come in no order.
#[test]
fn what_several_commits_have_changed_is_known() {
    let cache = cache();
    let keys = |name| Some(vec![(TABLE, key(name))]);
    go_on(&cache, 3, vec![news(2, keys(b"d")), news(3, keys(b"b"))]);
    for (name, is_same) in [(b"a", true), (b"b", false), (b"c", true), (b"d", false), (b"e", true)]
    {
        cache.keep(&counts(1), TABLE, &key(name), &None);
        assert_eq!(cache.is_same(&counts(1), TABLE, &key(name)), is_same, "{name:?}");
        assert_eq!(cache.get(&counts(3), TABLE, &key(name)).is_some(), is_same, "{name:?}");
    }
}

#[test]
fn a_gap_is_as_long_as_all_spans_that_touch() {
    let cache = cache();
    for (start, end) in [(b"b", b"c"), (b"e", b"f"), (b"h", b"i"), (b"c", b"e")] {
        cache.keep_gap(&counts(1), TABLE, &span(start, end));
    }
    let is_gap = |start: &[u8], end: &[u8]| cache.is_gap(&counts(1), TABLE, &span(start, end));
    assert!(is_gap(b"b", b"f") && is_gap(b"d", b"e") && is_gap(b"h", b"i"));
    assert!(!is_gap(b"b", b"g") && !is_gap(b"a", b"c") && !is_gap(b"f", b"h"));
}

/// Much is written by a bulk of events, and little of it is read soon.
#[test]
fn values_of_a_large_commit_are_kept_if_their_keys_were_read() {
    for (size, is_kept) in [(SMALL_COMMIT, true), (SMALL_COMMIT + 1, false)] {
        let (cache, mut own) = (cache(), Changes::default());
        let keys: Vec<_> = (0..size).map(|number| key(&number.to_be_bytes())).collect();
        for key in &keys {
            own.set(TABLE, key, Some(b"value"));
        }
        cache.keep(&counts(1), TABLE, &keys[3], &None);
        let id = id(7);
        cache.expect(&counts(1), id, &Arc::new(own));
        cache.commit(&counts(1), head(), (id, true));
        let value = |key: &[u8]| cache.get(&counts(2), TABLE, key);
        assert_eq!(value(&keys[3]).flatten().as_deref(), Some(&b"value"[..]));
        assert_eq!(value(&keys[4]).is_some(), is_kept);
    }
}

/// A reader asks for news before the writer knows that its commit is made.
#[test]
fn a_commit_that_a_reader_hears_of_first_is_an_own_one() {
    let own = id(7);
    for (id, is_own) in [(own, true), (id(8), false)] {
        let cache = cache();
        cache.keep(&counts(1), TABLE, &key(b"a"), &None);
        let mut changes = Changes::default();
        changes.set(TABLE, &key(b"a"), Some(b"value"));
        cache.expect(&counts(1), own, &Arc::new(changes));
        let news =
            HeadCommit { id: id.bytes().to_vec(), ..news(2, Some(vec![(TABLE, key(b"a"))])) };
        go_on(&cache, 2, vec![news]);
        let value = || cache.get(&counts(2), TABLE, &key(b"a")).flatten();
        assert_eq!(value().is_some(), is_own);
        cache.commit(&counts(1), head(), (own, is_own));
        assert_eq!(value().is_some(), is_own);
    }
}

/// A transaction of all environments begins to commit while one of a single environment waits for its answer.
#[test]
fn a_commit_whose_place_another_one_has_taken_is_not_that_one() {
    let cache = cache();
    let expect = |id, changed: &[u8]| {
        let mut own = Changes::default();
        own.set(TABLE, &key(changed), Some(b"value"));
        cache.expect(&counts(1), id, &Arc::new(own));
    };
    let (first, second) = (id(7), id(8));
    expect(first, b"a");
    expect(second, b"b");
    cache.commit(&counts(1), head(), (first, true));
    assert_eq!(cache.counts(), counts(1));
    cache.commit(&counts(1), head(), (second, true));
    let value = |changed: &[u8]| cache.get(&counts(2), TABLE, &key(changed)).flatten();
    assert_eq!(value(b"b").as_deref(), Some(&b"value"[..]));
    assert!(value(b"a").is_none());
}

#[test]
fn a_head_is_own_behind_some_commits_without_others() {
    let (cache, lock) = (cache(), Lock::of_one(head()));
    for number in 2..2 + u64::from(OWN_IN_A_ROW) {
        assert!(!cache.is_own(lock));
        commit(&cache, number, b"a");
    }
    assert!(cache.is_own(lock) && !cache.is_own(Lock::of(WriteScope::Everything)));
    follow(&cache, 2 + u64::from(OWN_IN_A_ROW), b"b");
    assert!(!cache.is_own(lock));
}

#[test]
fn nothing_is_kept_behind_commits_that_are_not_known() {
    let cache = cache();
    go_on(&cache, 2, Vec::new());
    cache.keep(&counts(1), TABLE, &key(b"a"), &None);
    assert!(cache.get(&counts(2), TABLE, &key(b"a")).is_none());
    let many = (0..=RECENT).map(|number| (TABLE, key(&number.to_be_bytes()))).collect();
    go_on(&cache, 3, vec![news(3, Some(many))]);
    follow(&cache, 4, b"b");
    cache.keep(&counts(2), TABLE, &key(b"a"), &None);
    assert!(cache.get(&counts(4), TABLE, &key(b"a")).is_none());
    cache.keep(&counts(3), TABLE, &key(b"a"), &None);
    assert!(cache.get(&counts(4), TABLE, &key(b"a")).is_some());
}

#[test]
fn a_gap_of_several_environments_is_not_kept() {
    let cache = cache();
    let all = Span { start: key(b""), end: Some(vec![8; 16]) };
    let open = Span { start: key(b""), end: None };
    for span in [all, open] {
        cache.keep_gap(&counts(1), TABLE, &span);
        assert!(!cache.is_gap(&counts(1), TABLE, &span));
    }
}

#[test]
fn a_known_value_that_others_change_is_wanted_for_a_while() {
    let (cache, lock) = (cache(), Lock::of_one(head()));
    follow(&cache, 2, b"unknown");
    assert!(cache.wanted(lock).is_empty());
    cache.keep(&counts(2), TABLE, &key(b"known"), &None);
    follow(&cache, 3, b"known");
    assert!(cache.wanted(Lock::of_one(Head::of(TABLE, &[0; 16]))).is_empty());
    for _ in 0..TIMES_WANTED {
        assert_eq!(cache.wanted(lock), [(TABLE, key(b"known"))]);
    }
    assert!(cache.wanted(lock).is_empty());
}

/// Many values are read ahead at a time, which would be too much of large ones.
#[test]
fn a_large_value_is_kept_and_not_read_ahead() {
    const MEMORY: usize = 4 << 20;
    for (memory, size, is_kept, is_wanted) in [
        (MEMORY, 1 << 10, true, true),
        (MEMORY, 20 << 10, true, false),
        (MEMORY, MEMORY / 64, false, false),
        (1 << 16, 8 << 10, true, true),
    ] {
        let cache = Cache::of(memory, counts(1));
        cache.keep(&counts(1), TABLE, &key(b"a"), &Some(vec![7; size].into()));
        assert_eq!(cache.get(&counts(1), TABLE, &key(b"a")).is_some(), is_kept, "{size}");
        follow(&cache, 2, b"a");
        let wanted = cache.wanted(Lock::of_one(head()));
        assert_eq!(!wanted.is_empty(), is_wanted, "{size}");
        let stale = cache.stale(TABLE, &key(b"b"), 8);
        assert_eq!(!stale.is_empty(), is_wanted, "{size}");
    }
}

#[test]
fn keys_that_others_have_changed_are_stale_until_they_are_read() {
    let cache = cache();
    for name in [b"a", b"b", b"c", b"d"] {
        cache.keep(&counts(1), TABLE, &key(name), &None);
    }
    for (number, name) in (2..).zip([b"a", b"b", b"c", b"x"]) {
        follow(&cache, number, name);
    }
    let stale = |most| cache.stale(TABLE, &key(b"b"), most);
    assert_eq!(stale(9), [key(b"c"), key(b"a")]);
    assert_eq!(stale(1), [key(b"c")]);
    cache.keep(&counts(5), TABLE, &key(b"c"), &None);
    assert_eq!(stale(9), [key(b"a")]);
    go_on(&cache, 9, Vec::new());
    assert!(stale(9).is_empty());
}

#[test]
fn many_keys_of_a_table_leave_room_for_others_that_are_wanted() {
    let (cache, lock) = (cache(), Lock::of_one(head()));
    let names: Vec<[u8; 1]> = (0..40).map(|name| [name]).collect();
    cache.keep(&counts(1), Table::Topics, &key(b"topic"), &None);
    for name in &names {
        cache.keep(&counts(1), TABLE, &key(name), &None);
    }
    let many = names.iter().map(|name| (TABLE, key(name)));
    let keys = Some([(Table::Topics, key(b"topic"))].into_iter().chain(many).collect());
    go_on(&cache, 2, vec![news(2, keys)]);
    let wanted = cache.wanted(lock);
    assert_eq!(wanted.len(), WANTED_OF_A_TABLE + 1);
    assert!(wanted.contains(&(Table::Topics, key(b"topic"))));
}

/// Views of the era before get nothing, and leave nothing, also where the counts are the same again.
#[test]
fn a_server_that_has_lost_commits_ends_an_era() {
    let start = SystemTime::UNIX_EPOCH;
    let all_news = [
        CommitNews { start: Some(start), counts: vec![(head(), 8)], commits: Vec::new() },
        CommitNews {
            start: Some(start + Duration::from_secs(1)),
            counts: Vec::new(),
            commits: Vec::new(),
        },
    ];
    for news in all_news {
        let (cache, before) = (Cache::of(1 << 20, counts(9)), counts(9));
        let (key, span) = (key(b"a"), span(b"b", b"c"));
        cache.keep(&before, TABLE, &key, &None);
        cache.keep_gap(&before, TABLE, &span);
        let knows = |counts: &Counts| {
            (cache.get(counts, TABLE, &key).is_some(), cache.is_gap(counts, TABLE, &span))
        };
        assert_eq!(knows(&before), (true, true));
        for _ in 0..2 {
            assert!(cache.follow(&before, &news).is_err());
            assert_eq!(cache.counts().get(head()), None);
        }
        go_on(&cache, 9, Vec::new());
        let now = cache.counts();
        assert_eq!((knows(&before), knows(&now)), ((false, false), (false, false)));
        cache.keep(&before, TABLE, &key, &None);
        cache.keep_gap(&before, TABLE, &span);
        assert_eq!(knows(&now), (false, false));
        assert!(!cache.is_same(&before, TABLE, &key) && cache.is_same(&now, TABLE, &key));
        cache.keep(&now, TABLE, &key, &None);
        assert_eq!((knows(&before), knows(&now)), ((false, false), (true, false)));
    }
}
