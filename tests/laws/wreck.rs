//! Files that were damaged page by page or bit by bit, and are opened by default.
//!
//! A process of its own makes every request on each of them. It shows no record of another
//! environment, panics nowhere, and comes back from each call. `TIDINGS_WRECKS` is the number of files.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use crate::parsed;
use serde_json::{Value, json};
use store::redb::{AppliedBy, LogOptions, RedbOptions, RedbStore};
use testkit::disk::{Dice, Disk, PAGE};
use testkit::requests::{Refusal, call, sound, text, writes};
use testkit::seeded;
use testkit::tables::{load, try_dump};
use tidings::{Engine, Error, ManualClock, Outbox, Scope, SeededEntropy};

/// The files of a child, as `first..last`.
const CASES: &str = "TIDINGS_LAWS_WRECK";

/// Number of files by default.
const FILES: u64 = 24;

/// Longer than all requests on a damaged file take.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_damaged_file_shows_nothing_foreign_and_ends_nothing() {
    check_files("wreck::child", env::var("TIDINGS_WRECKS").map_or(FILES, |it| it.parse().unwrap()));
}

/// With `verify`, a damaged file is as it was or is refused.
#[test]
fn a_verified_file_shows_what_was_there() {
    let expected = try_dump(&IMAGE.disk().open_with(&options(false)).unwrap()).unwrap();
    for case in 0..FILES {
        let (damage, disk) = wreck(case);
        // A log that is cut is taken for one whose last changes were never made.
        if damage == LOG_CUT {
            continue;
        }
        let Ok(store) = disk.open_with(&options(true)) else { continue };
        assert!(try_dump(&store).unwrap() == expected, "file {case} shows something else");
    }
}

/// Not a test, but what the other process does.
#[test]
fn child() {
    let Ok(cases) = env::var(CASES) else { return };
    let (first, last) = cases.split_once("..").unwrap();
    let foreign = foreign();
    assert!(foreign.len() > 20, "only {} ids are foreign", foreign.len());
    for case in first.parse::<u64>().unwrap()..last.parse().unwrap() {
        let (damage, disk) = wreck(case);
        println!("begin {case} {damage};");
        let mut refusals = 0;
        for finding in findings(&disk, &foreign, &mut refusals) {
            println!("found {case} {damage}: {};", finding.escape_debug());
        }
        println!("end {case} {refusals};");
    }
}

/// What is wrong with the answers on a damaged disk. Counts the answers that name damage.
fn findings(disk: &Disk, foreign: &BTreeSet<String>, refusals: &mut usize) -> Vec<String> {
    let mut findings = Vec::new();
    let opened = catch_unwind(AssertUnwindSafe(|| disk.open_with(&options(false))));
    let store = match opened {
        Err(_) => return vec!["opening panics".to_owned()],
        Ok(Err(_)) => return findings,
        Ok(Ok(store)) => Arc::new(store),
    };
    let engine = engine(&store);
    let env =
        catch_unwind(AssertUnwindSafe(|| engine.environment(seeded::world().env.environment_id())));
    match env {
        Err(_) => findings.push("finding the environment panics".to_owned()),
        Ok(Err(_)) => {}
        Ok(Ok(env)) => {
            // First what reads, as long as the others have changed nothing.
            let (writing, reading): (Vec<_>, Vec<_>) =
                sound().iter().partition(|it| writes(it[0].as_str().unwrap_or_default()));
            for request in reading.iter().chain(&writing).chain(&reading) {
                findings.extend(ask(&engine, &env, request, foreign, refusals));
            }
        }
    }
    for (name, act) in WHOLE {
        if catch_unwind(AssertUnwindSafe(|| act(&engine, &store))).is_err() {
            findings.push(format!("{name} panics"));
        }
    }
    if catch_unwind(AssertUnwindSafe(|| drop((engine, store)))).is_err() {
        findings.push("closing panics".to_owned());
    }
    findings
}

type Look = fn(&Engine, &RedbStore);

/// What looks at the whole store.
const WHOLE: [(&str, Look); 4] = [
    ("run_due", |engine, _| drop(engine.delivery().run_due(1_000))),
    ("check", |engine, _| drop(engine.check())),
    ("dump", |_, store| drop(try_dump(store))),
    ("checkpoint", |_, store| drop(store.checkpoint())),
];

fn ask(
    engine: &Engine,
    env: &Scope,
    request: &Value,
    foreign: &BTreeSet<String>,
    refusals: &mut usize,
) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| call(engine, env, request))) {
        Err(_) => Some(format!("{request} panics")),
        Ok(answer) => {
            let is_refused = matches!(&answer, Err(Refusal::By(Error::Store(_))));
            *refusals += usize::from(is_refused || leaves_out(&text(&answer)));
            let told = answer.as_ref().map(|(json, _)| json.clone()).unwrap_or_default();
            let told = [ids(&text(&answer)), ids(&told.to_string())].concat();
            let id = told.into_iter().find(|id| foreign.contains(id))?;
            Some(format!("{request} shows {id} of another environment"))
        }
    }
}

fn engine(store: &Arc<RedbStore>) -> Engine {
    let clock = ManualClock::at(seeded::world().now());
    let builder = Engine::builder().clock(clock).entropy(SeededEntropy::new(977));
    builder.default_provider(Outbox::default()).activity_segments(16).build(Arc::clone(store))
}

/// The ids that only the other environment shows.
fn foreign() -> BTreeSet<String> {
    let store = Arc::new(IMAGE.disk().open_with(&options(false)).unwrap());
    let engine = &engine(&store);
    let shown = |env: &Scope| {
        let reading = sound().iter().filter(|it| !writes(it[0].as_str().unwrap_or_default()));
        let answers = reading.filter_map(|it| call(engine, env, it).ok());
        answers.flat_map(|(json, text)| [ids(&json.to_string()), ids(&text)].concat()).collect()
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
    let log = Some(LogOptions { applied_by: AppliedBy::Callers, ..LogOptions::default() });
    RedbOptions { verify, log, ..RedbOptions::default() }
}

/// A sound file with two environments that use the same names, and a log with the last changes.
static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let disk = Disk::new();
    let store = disk.open_with(&options(false)).unwrap();
    load(&store, seeded::neighbours());
    // So that tables have many pages, with records of either environment.
    let store = Arc::new(store);
    let engine = engine(&store);
    let ours = engine.environment(seeded::world().env.environment_id()).unwrap();
    let other = engine.organization("acme").unwrap().production().unwrap();
    for env in [&ours, &other] {
        fill(env, 0..120);
    }
    store.checkpoint().unwrap();
    fill(&ours, 120..130);
    fill(&other, 120..130);
    let killed = disk.after_kill();
    drop((ours, other, engine, store));
    Image { file: disk.bytes(), killed: killed.bytes(), log: killed.log_bytes() }
});

/// Adds records to an environment. The other one has records of the same names.
fn fill(env: &Scope, ids: Range<u64>) {
    for id in ids {
        let subscriber = json!({ "subscriberId": format!("many-{id:03}"), "firstName": "Many",
            "email": format!("many-{id:03}@example.org"), "data": { "text": "x".repeat(300) } });
        env.subscribers().create(&parsed(subscriber)).unwrap();
        let topic = json!({ "key": format!("many-{id:03}"), "name": "Many" });
        env.topics().create(&parsed(topic)).unwrap();
        let trigger = json!({ "name": "inbox", "to": ["ada", format!("many-{id:03}")],
            "payload": { "n": id } });
        env.events().trigger(&parsed(trigger)).unwrap();
    }
}

struct Image {
    /// The file of a store that was closed. redb opens it without a look at its pages.
    file: Vec<u8>,
    /// The file and the log of a process that was killed.
    killed: Vec<u8>,
    log: Option<Vec<u8>>,
}

impl Image {
    fn disk(&self) -> Disk {
        Disk::holding(self.file.clone())
    }

    /// The pages that are used.
    fn pages(&self) -> Vec<usize> {
        let pages = self.file.chunks(PAGE).enumerate();
        pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0)).map(|(at, _)| at).collect()
    }
}

const LOG_CUT: &str = "the log is cut";

/// A damaged file, and what was done to it.
fn wreck(case: u64) -> (&'static str, Disk) {
    let mut dice = Dice::new(case);
    let mut file = IMAGE.file.clone();
    let pages = IMAGE.pages();
    let mut page = || pages[1 + dice.below(pages.len() - 1)] * PAGE;
    let damage = match case % 8 {
        0..4 => {
            let (from, to) = (page(), page());
            file.copy_within(from..from + PAGE, to);
            "a page is copied over another"
        }
        4 => {
            let at = page();
            file[at..at + PAGE].fill(0);
            "a page is zero"
        }
        5 => {
            for _ in 0..=dice.below(8) {
                let at = pages[dice.below(pages.len())] * PAGE + dice.below(PAGE);
                file[at] ^= 1 << dice.below(8);
            }
            "bits are flipped"
        }
        6 => {
            file.truncate((1 + dice.below(file.len() / PAGE - 1)) * PAGE);
            "the file is cut"
        }
        _ => {
            let mut log = IMAGE.log.clone().unwrap();
            log.truncate(dice.below(log.len().min(64 << 10)));
            return (LOG_CUT, Disk::with_log(IMAGE.killed.clone(), Some(log)));
        }
    };
    (damage, Disk::holding(file))
}

/// Lets children look at the files, and fails if there is anything to be found.
#[track_caller]
fn check_files(test: &str, files: u64) {
    let half = files / 2;
    let (findings, refusals) = thread::scope(|scope| {
        let halves = [0..half, half..files].map(|cases| scope.spawn(|| look(test, cases)));
        let [(mut one, some), (other, more)] = halves.map(|half| half.join().unwrap());
        one.extend(other);
        (one, some + more)
    });
    println!("{files} files, {refusals} answers that name damage, {} findings", findings.len());
    // Most damage hides a record of a list, or lies in a page that no request reads.
    assert!(refusals as u64 > files / 8, "only {refusals} requests have met the damage");
    assert!(
        findings.is_empty(),
        "{} findings in {files} files:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// What is found in the files, and how many answers name damage.
fn look(test: &str, mut cases: Range<u64>) -> (Vec<String>, usize) {
    let (mut findings, mut refusals) = (Vec::new(), 0);
    while !cases.is_empty() {
        let mut at = (cases.start, String::new());
        let (mut child, lines) = start(test, &cases);
        let end = loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) if line.starts_with("begin") => at = parts(&line),
                Ok(line) if line.starts_with("end") => {
                    let (case, named) = parts(&line);
                    refusals += named.parse::<usize>().unwrap();
                    at = (case + 1, String::new());
                }
                Ok(line) => findings.push(line),
                Err(RecvTimeoutError::Timeout) => break Some(format!("{at:?} comes to no end")),
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        let status = ended(&mut child, end.is_some());
        match end {
            Some(loops) => findings.push(loops),
            None if status.success() => return (findings, refusals),
            None => findings.push(format!("{at:?} ends the process with {status}")),
        }
        cases.start = at.0 + 1;
    }
    (findings, refusals)
}

fn start(test: &str, cases: &Range<u64>) -> (Child, Receiver<String>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CASES, format!("{}..{}", cases.start, cases.end))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = channel();
    thread::spawn(move || {
        let lines = output.lines().map_while(Result::ok);
        let told = lines.filter_map(|line| {
            let start =
                ["begin ", "found ", "end "].iter().filter_map(|word| line.find(word)).min()?;
            Some(line.get(start..)?.strip_suffix(';')?.to_owned())
        });
        told.for_each(|line| drop(sender.send(line)));
    });
    (child, lines)
}

fn ended(child: &mut Child, kill: bool) -> ExitStatus {
    if kill {
        child.kill().unwrap();
    }
    child.wait().unwrap()
}

fn parts(line: &str) -> (u64, String) {
    let mut words = line.splitn(3, ' ').skip(1);
    (words.next().unwrap().parse().unwrap(), words.next().unwrap_or_default().to_owned())
}

#[test]
fn ids_are_found_in_texts() {
    let id = "0123456789abcdef01234567";
    assert_eq!(ids(&json!({ "_id": id, "n": 3 }).to_string()), [id]);
}
