//! Files that were damaged page by page or bit by bit.
//!
//! A process of its own makes every request on each of them. It shows no record of another
//! environment, panics nowhere, and comes back from each call. `TIDINGS_WRECKS` is the number of files,
//! and `TIDINGS_WRECKS_FROM` that of the first one. Nearly half of the files have a page that was copied
//! over another one.

mod children;
mod damage;

use std::collections::BTreeSet;
use std::env;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use self::children::Seen;
use self::damage::{IMAGE, Kind, digest, states, wreck};
use serde_json::{Value, json};
use store::Error as StoreError;
use store::redb::{AppliedBy, LogOptions, RedbOptions, RedbStore};
use testkit::disk::Disk;
use testkit::requests::{Refusal, call, sound, text, writes};
use testkit::seeded;
use testkit::tables::try_dump;
use tidings::{Engine, Error, ManualClock, RecordingProvider, Scope, SeededEntropy};

/// Number of files by default.
const FILES: u64 = 32;

/// How the files are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Default,
    Verified,
}

#[test]
fn a_damaged_file_shows_nothing_foreign_and_ends_nothing() {
    let files = files();
    let seen = children::look("wreck::child", files.clone());
    check_seen(&seen, Mode::Default);
    // Most damage hides a record of a list, or lies in a page that no request reads.
    let (refusals, files) = (seen.refusals as u64, files.end - files.start);
    assert!(refusals > files / 8, "only {refusals} requests have met the damage");
}

/// With `verify`, a damaged file is as it was or is refused.
#[test]
fn a_verified_file_shows_what_was_there() {
    let seen = children::look("wreck::child_that_verifies", files());
    check_seen(&seen, Mode::Verified);
    assert!(seen.ended_by_redb.is_empty(), "{:?}", seen.ended_by_redb);
}

/// Not a test, but what the other process does.
#[test]
#[ignore = "the other process of a test"]
fn child() {
    look_at_files(Mode::Default);
}

/// The same for a process that verifies the files.
#[test]
#[ignore = "the other process of a test"]
fn child_that_verifies() {
    look_at_files(Mode::Verified);
}

fn files() -> Range<u64> {
    let number = |name: &str, other| env::var(name).map_or(other, |it| it.parse().unwrap());
    let first = number("TIDINGS_WRECKS_FROM", 0);
    first..first + number("TIDINGS_WRECKS", FILES)
}

#[track_caller]
fn check_seen(seen: &Seen, mode: Mode) {
    seen.print(&format!("{mode:?}"));
    assert!(seen.findings.is_empty(), "{}", seen.findings.join("\n"));
}

fn look_at_files(mode: Mode) {
    let Some(cases) = children::cases() else { return };
    // The last panics before the end of the process are part of the finding.
    panic::set_hook(Box::new(|panic| {
        println!("panic {};", panic.to_string().escape_debug());
    }));
    let foreign = foreign();
    assert!(foreign.len() > 20, "only {} ids are foreign", foreign.len());
    // What a log may leave is known before the time of a file runs.
    println!("ready {};", states().len());
    for case in cases {
        let (kind, disk) = wreck(case);
        println!("begin {case} {kind:?};");
        let mut look = Look { mode, kind, foreign: &foreign, refusals: 0, findings: Vec::new() };
        let opened = if look.look(&disk) { "opened" } else { "refused" };
        println!("end {case} {kind:?} {opened} {};", look.refusals);
        for finding in look.findings {
            println!("found {case} {kind:?}: {};", finding.escape_debug());
        }
    }
}

/// What is seen in a damaged file.
struct Look<'f> {
    mode: Mode,
    kind: Kind,
    /// The ids that only the other environment shows.
    foreign: &'f BTreeSet<String>,
    /// Number of answers that name damage.
    refusals: usize,
    findings: Vec<String>,
}

impl Look<'_> {
    /// Returns `true` if the file was opened.
    fn look(&mut self, disk: &Disk) -> bool {
        let options = options(self.mode == Mode::Verified);
        let opened = self.caught("opening", || disk.open_with(&options));
        let store = match opened {
            Some(Ok(store)) => Arc::new(store),
            Some(Err(error)) => {
                self.check_refusal(&error);
                return false;
            }
            None => return false,
        };
        self.check_content(&store);
        let engine = engine(&store);
        let id = seeded::world().env.environment_id();
        if let Some(Ok(env)) = self.caught("finding the environment", || engine.environment(id)) {
            // First what reads, as long as the others have changed nothing.
            let (writing, reading): (Vec<_>, Vec<_>) =
                sound().iter().partition(|it| writes(it[0].as_str().unwrap_or_default()));
            for request in reading.iter().chain(&writing).chain(&reading) {
                self.ask(&engine, &env, request);
            }
        }
        for (name, act) in WHOLE {
            self.caught(name, || act(&engine, &store));
        }
        self.caught("closing", || drop((engine, store)));
        true
    }

    fn check_refusal(&mut self, error: &StoreError) {
        let is_foreign = matches!(error, StoreError::ForeignLog { .. });
        if is_foreign != (self.kind == Kind::LogForeign) {
            self.findings.push(format!("is refused with {error}"));
        }
    }

    /// Nothing but the whole content is shown if the pages were verified. A log is always verified.
    fn check_content(&mut self, store: &Arc<RedbStore>) {
        if self.mode == Mode::Default && !self.kind.is_of_log() {
            return;
        }
        let Some(Ok(found)) = self.caught("reading", || try_dump(&**store)) else {
            self.findings.push("is verified, and not readable".to_owned());
            return;
        };
        let found = digest(&found);
        let is_expected =
            if self.kind.is_of_log() { states().contains(&found) } else { found == *EXPECTED };
        if !is_expected || self.kind == Kind::LogForeign {
            self.findings.push("shows something else".to_owned());
        }
    }

    fn ask(&mut self, engine: &Engine, env: &Scope, request: &Value) {
        let name = request.to_string();
        let Some(answer) = self.caught(&name, || call(engine, env, request)) else { return };
        let is_refused = matches!(&answer, Err(Refusal::By(Error::Store(_))));
        self.refusals += usize::from(is_refused || leaves_out(&text(&answer)));
        let told = answer.as_ref().map(|answer| answer.json().to_string()).unwrap_or_default();
        let told = [ids(&text(&answer)), ids(&told)].concat();
        if let Some(id) = told.into_iter().find(|id| self.foreign.contains(id)) {
            self.findings.push(format!("{name} shows {id} of another environment"));
        }
    }

    /// Returns `None` if `act` panics, which is a finding.
    fn caught<T>(&mut self, name: &str, act: impl FnOnce() -> T) -> Option<T> {
        let result = catch_unwind(AssertUnwindSafe(act));
        if result.is_err() {
            self.findings.push(format!("{name} panics"));
        }
        result.ok()
    }
}

type Act = fn(&Engine, &RedbStore);

/// What looks at the whole store.
const WHOLE: [(&str, Act); 5] = [
    ("run_due", |engine, _| drop(engine.delivery().run_due(1_000))),
    ("check", |engine, _| drop(engine.check())),
    ("repair", |engine, _| drop(engine.repair())),
    ("dump", |_, store| drop(try_dump(store))),
    ("checkpoint", |_, store| drop(store.checkpoint())),
];

/// The content of the sound file.
static EXPECTED: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| {
    digest(&try_dump(&IMAGE.disk().open_with(&options(false)).unwrap()).unwrap())
});

fn engine(store: &Arc<RedbStore>) -> Engine {
    let clock = ManualClock::at(seeded::world().now());
    let builder = Engine::builder().clock(clock).entropy(SeededEntropy::new(977));
    builder
        .default_provider(RecordingProvider::default())
        .activity_segments(16)
        .build(Arc::clone(store))
}

/// The ids that only the other environment shows.
fn foreign() -> BTreeSet<String> {
    let store = Arc::new(IMAGE.disk().open_with(&options(false)).unwrap());
    let engine = &engine(&store);
    let shown = |env: &Scope| {
        let reading = sound().iter().filter(|it| !writes(it[0].as_str().unwrap_or_default()));
        let answers = reading.filter_map(|it| call(engine, env, it).ok());
        answers.flat_map(|it| [ids(&it.json().to_string()), ids(&it.text())].concat()).collect()
    };
    let world = seeded::world();
    let ours: BTreeSet<String> = shown(&engine.environment(world.env.environment_id()).unwrap());
    let organization = engine.organization("acme").unwrap();
    let other: BTreeSet<String> = shown(&organization.production().unwrap());
    other.difference(&ours).cloned().collect()
}

/// Whether the text of a page says that records of it are not readable.
fn leaves_out(text: &str) -> bool {
    text.contains("unreadable: ") && !text.contains("unreadable: 0")
}

/// The ids in a text: 24 digits of base 16, or a UUID.
pub(crate) fn ids(text: &str) -> Vec<String> {
    let words = text.split(|char: char| !char.is_ascii_hexdigit() && char != '-');
    words.filter(|word| matches!(word.len(), 24 | 32 | 36)).map(str::to_owned).collect()
}

fn options(verify: bool) -> RedbOptions {
    let log = LogOptions::default().applied_by(AppliedBy::Callers);
    RedbOptions::default().verify(verify).log(log)
}

#[test]
fn ids_are_found_in_texts() {
    let id = "0123456789abcdef01234567";
    assert_eq!(ids(&json!({ "_id": id, "n": 3 }).to_string()), [id]);
}
