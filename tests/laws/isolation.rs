//! Environments and organizations do not see each other: every operation of one, with the identifiers of
//! another one, does what it does if that one is empty.

use std::fmt::{Debug, Display};

use serde_json::{Value, json};
use testkit::disk::Disk;
use testkit::facade::restarted;
use testkit::interposed::Interposed;
use testkit::postgres::Server;
use testkit::requests::{self, Answer, Refusal};
use testkit::tables::{Entry, dump};
use testkit::world::World;
use testkit::{parsed, seeded};
use tidings::ids::EnvironmentId;
use tidings::store::Table;
use tidings::{Engine, Organization, Scope};
use uuid::Uuid;

// Records of environments themselves, which stay where an environment is emptied.
const OF_ENVIRONMENTS: [Table; 4] =
    [Table::Environments, Table::EnvironmentIds, Table::ApiKeys, Table::LinkKeys];

// Operations of the whole engine, and of the organization, which has several environments.
const OF_ALL: [&str; 5] =
    ["delivery.", "engine.", "environments.list", "environments.create", "quarantine."];

fn is_of(scope: &Scope, (table, key, _): &Entry) -> bool {
    let id = Uuid::from(scope.environment_id()).into_bytes();
    !OF_ENVIRONMENTS.contains(table) && key.windows(id.len()).any(|part| part == id)
}

fn of(scope: &Scope, world: &World) -> Vec<Entry> {
    let mut entries = dump(&world.store);
    entries.retain(|entry| is_of(scope, entry));
    entries
}

/// Calls `request` in `Production` of a world in which `Development` has everything, and of one in
/// which it has nothing, on each backend.
fn check(entries: &[Entry], request: &Value) -> Answer {
    let in_memory = check_in([0, 1].map(|_| Interposed::default()), entries, request);
    let disks = [Disk::new(), Disk::new()];
    let stores = disks.each_ref().map(|disk| Interposed::new(disk.open()));
    let on_disk = check_in(stores, entries, request);
    assert_eq!(requests::text(&in_memory), requests::text(&on_disk));
    on_disk
}

fn check_in([full, empty]: [Interposed; 2], entries: &[Entry], request: &Value) -> Answer {
    let full = seeded::reopened(full, entries, 3);
    let emptied: Vec<_> =
        entries.iter().filter(|entry| !is_of(&full.env, entry)).cloned().collect();
    let empty = seeded::reopened(empty, &emptied, 3);
    let neighbour = of(&full.env, &full);
    assert!(!neighbour.is_empty() && of(&empty.env, &empty).is_empty());

    let (own, own_if_empty) = (full.production(), empty.production());
    let answer = requests::call(&full.engine, &own, request);
    let expected = requests::call(&empty.engine, &own_if_empty, request);

    assert_eq!(requests::text(&answer), requests::text(&expected), "{request} shows another");
    let (done, expected) = (of(&own, &full), of(&own, &empty));
    let other = done.iter().zip(&expected).find(|(one, other)| one != other);
    assert!(done == expected, "{request} is done otherwise: {other:?}");
    assert!(of(&full.env, &full) == neighbour, "{request} changes another");
    answer
}

fn is_of_one(request: &Value) -> bool {
    let name = request[0].as_str().unwrap_or_default();
    !OF_ALL.iter().any(|all| name.starts_with(all))
}

/// The names of hosts are the same in both environments, and the ids of the engine are those of the
/// other one.
#[test]
fn every_operation_of_an_environment_is_the_same_whatever_another_one_has() {
    let entries = seeded::with_second_environment();
    let (mut done, mut refused) = (0, 0);
    for request in requests::sound().iter().filter(|request| is_of_one(request)) {
        match check(entries, request) {
            Ok(_) => done += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{done} requests are done beside another environment, and {refused} refused");
    assert!(done > 100 && refused > 20, "{done} are done, and {refused} refused");
}

/// An organization beside one that has everything, and beside one that has nothing.
struct Organizations {
    /// The environments of the one that has everything.
    theirs: Vec<EnvironmentId>,
    full: &'static [Entry],
    emptied: Vec<Entry>,
}

impl Organizations {
    fn new() -> Self {
        let theirs = seeded::world().organization.environments().list().unwrap();
        let theirs = theirs.iter().map(|environment| environment.id).collect();
        let mut all =
            Self { theirs, full: seeded::with_second_organization(), emptied: Vec::new() };
        all.emptied = all.full.iter().filter(|entry| !all.is_theirs(entry)).cloned().collect();
        all
    }

    fn is_theirs(&self, (_, key, value): &Entry) -> bool {
        let mut ids = self.theirs.iter().map(|id| Uuid::from(*id).into_bytes());
        let has = |bytes: &[u8], id| bytes.windows(16).any(|part| part == id);
        ids.any(|id| has(key, id) || has(value, id))
    }

    fn theirs_in(&self, world: &World) -> Vec<Entry> {
        dump(&world.store).into_iter().filter(|entry| self.is_theirs(entry)).collect()
    }

    /// Checks that a call in the organization gives the same beside both. Returns what it gives.
    fn same<T: PartialEq + Debug>(
        &self,
        what: impl Display,
        call: impl Fn(&Engine, &Organization) -> T,
    ) -> T {
        let [full, empty] = [self.full, &self.emptied].map(seeded::copy_of);
        let before = self.theirs_in(&full);
        assert!(before.len() > 500 && self.theirs_in(&empty).is_empty());
        // Both engines draw the same ids, whatever their worlds have drawn.
        let [answer, expected] = [&full, &empty].map(|world| {
            let engine = world.engine_with(restarted(5));
            call(&engine, &engine.organization("other").unwrap())
        });
        assert_eq!(answer, expected, "{what} shows another");
        assert!(self.theirs_in(&full) == before, "{what} changes another");
        answer
    }
}

/// The same of two organizations, with the environments and keys of the other one.
#[test]
fn every_operation_of_an_organization_is_the_same_whatever_another_one_has() {
    let organizations = Organizations::new();
    let of_all = |request: &Value| {
        let name = request[0].as_str().unwrap_or_default();
        let groups = ["delivery.", "engine.", "organization.", "quarantine."];
        groups.iter().any(|group| name.starts_with(group))
    };
    let (mut done, mut refused) = (0, 0);
    for request in requests::sound().iter().filter(|request| !of_all(request)) {
        let (is_done, _) = organizations.same(request, |engine, organization| {
            let own = organization.development().unwrap();
            let answer = requests::call(engine, &own, request);
            (answer.is_ok(), requests::text(&answer))
        });
        *if is_done { &mut done } else { &mut refused } += 1;
    }
    println!("{done} requests are done beside another organization, and {refused} refused");
    assert!(done > 100 && refused > 20, "{done} are done, and {refused} refused");
}

/// A host that names an environment of another organization finds none.
#[test]
fn an_organization_has_its_own_environments_only() {
    let organizations = Organizations::new();
    let update = parsed(json!({ "name": "New" }));
    let text = |answer: tidings::Result<_>| format!("{answer:?}");
    organizations.same("a list", |_, organization| {
        let all = organization.environments().list().unwrap();
        assert!(!all.is_empty());
        format!("{all:?}")
    });
    for id in &organizations.theirs {
        let answers = organizations.same(id, |_, organization| {
            let environments = organization.environments();
            [environments.get(*id), environments.update(*id, &update)].map(text)
        });
        assert!(answers.iter().all(|answer| answer.contains("NotFound")), "{answers:?}");
    }
}

#[test]
fn on_a_server_an_operation_is_the_same_whatever_another_environment_has() {
    let Some(server) = Server::wanted() else { return };
    let entries = seeded::with_second_environment();
    for request in requests::sound().iter().filter(|request| is_of_one(request)).step_by(11) {
        let stores = [0, 1].map(|_| Interposed::new(server.place().open()));
        let on_a_server = check_in(stores, entries, request);
        let stores = [0, 1].map(|_| Interposed::default());
        let in_memory = check_in(stores, entries, request);
        assert_eq!(requests::text(&on_a_server), requests::text(&in_memory));
    }
}

/// An idempotency key of one environment is another one in its neighbour.
#[test]
fn an_idempotency_key_belongs_to_its_environment() {
    let (mut done, mut done_beside) = (0, 0);
    for request in requests::writing().filter(|request| is_of_one(request)) {
        let Value::Array(parts) = request else { continue };
        if parts[0] == "idempotent" {
            continue;
        }
        let mut once = vec![json!("idempotent"), json!("the same")];
        once.extend(parts.iter().cloned());
        let once = Value::Array(once);
        let called = seeded::reopened(Interposed::default(), seeded::with_second_environment(), 2);
        let answer = requests::call(&called.engine, &called.env, &once);
        done += usize::from(answer.is_ok());
        done_beside += usize::from(check(&dump(&called.store), &once).is_ok());
    }
    assert!(done > 50 && done_beside > 50, "{done} are done, and {done_beside} beside them");
}

// A list, by its request for a first page of one.
struct Listing {
    request: Value,
    cursor: String,
}

fn listing(world: &World, scope: &Scope, request: Value) -> Option<Listing> {
    let answer = requests::call(&world.engine, scope, &request).ok()?.json();
    let cursor = answer.get("next")?.as_str()?.to_owned();
    Some(Listing { request, cursor })
}

fn listings(world: &World, scope: &Scope) -> Vec<Listing> {
    let lists = requests::sound().iter().filter(|request| {
        request.as_array().and_then(|parts| parts.last()).is_some_and(Value::is_object)
    });
    let found = lists.filter_map(|request| {
        let mut request = request.clone();
        let query = request.as_array_mut()?.last_mut()?;
        *query = json!({ "limit": 1 });
        listing(world, scope, request)
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|one| one.request.to_string());
    found.dedup_by_key(|one| one.request.to_string());
    found
}

// The messages of a subscriber are one list, in the inbox and outside of it.
fn is_same(one: &Value, other: &Value) -> bool {
    let plain = |request: &Value| request.to_string().replace("inbox.list", "messages.list");
    plain(one) == plain(other)
}

/// A cursor is refused by every list but its own: that of another kind, of another environment, of
/// another subscriber and of another topic.
#[test]
fn a_cursor_is_accepted_by_its_own_list_only() {
    let world = seeded::copy_of(seeded::with_second_environment());
    let mut own = listings(&world, &world.env);
    let kinds = own.iter().map(|one| one.request[0].to_string());
    assert!(kinds.collect::<std::collections::BTreeSet<_>>().len() >= 10);
    // The order of most other lists.
    let by_date = json!(["topics.list", { "limit": 1, "orderBy": "createdAt" }]);
    own.push(listing(&world, &world.env, by_date).expect("there are several topics"));
    for from in &own {
        for to in &own {
            for (scope, is_home) in [(&world.env, true), (&world.production(), false)] {
                let mut request = to.request.clone();
                if let Some(query) = request.as_array_mut().and_then(|parts| parts.last_mut()) {
                    query["after"] = json!(from.cursor);
                }
                let answer = requests::call(&world.engine, scope, &request);
                let is_accepted = is_home && is_same(&from.request, &to.request);
                let context = format!("the cursor of {} in {request}", from.request);
                if is_accepted {
                    assert!(answer.is_ok(), "{context}: {answer:?}");
                } else {
                    let text = requests::text(&answer);
                    let Err(refusal) = answer else { panic!("{context} is accepted") };
                    assert_eq!(text, "`after` must be a cursor of this list", "{context}");
                    if let Refusal::By(error) = refusal {
                        assert_eq!(error.status(), 422, "{context}");
                    }
                }
            }
        }
    }
}
