//! Processes that look at damaged files, and the one that watches them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::env;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use testkit::child::{command, has_passed};

use super::damage::states;

/// The files of a child, as `first..last`.
const CASES: &str = "TIDINGS_LAWS_WRECK";

/// The contents that the killed file may have, which take a while to find out.
const STATES: &str = "TIDINGS_LAWS_WRECK_STATES";

/// Longer than all requests on a damaged file take, beside other builds.
const PATIENCE: Duration = Duration::from_secs(300);

/// Beginnings of the lines that a child prints.
const WORDS: [&str; 5] = ["ready ", "begin ", "found ", "panic ", "end "];

/// What stands for the line that says that the test of a child has passed.
const PASSED: &str = "passed";

/// What was seen in all files.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) findings: Vec<String>,
    /// Files on which a destructor of redb has panicked while redb was panicking. This ends a process,
    /// and only redb can keep it from happening.
    pub(super) ended_by_redb: Vec<u64>,
    /// Number of answers that name damage.
    pub(super) refusals: usize,
    /// Number of files, and of those that were opened, for each kind of damage.
    kinds: BTreeMap<String, (usize, usize)>,
}

/// The files that this process is to look at, if [`look`] has started it.
pub(super) fn cases() -> Option<Range<u64>> {
    let cases = env::var(CASES).ok()?;
    let (first, last) = cases.split_once("..").unwrap();
    Some(first.parse().unwrap()..last.parse().unwrap())
}

/// The contents that the killed file may have, if [`look`] has started this process.
pub(super) fn told_states() -> Option<BTreeSet<u64>> {
    let states = env::var(STATES).ok()?;
    Some(states.split(' ').map(|state| state.parse().unwrap()).collect())
}

/// Lets two children look at the files.
pub(super) fn look(test: &str, cases: Range<u64>) -> Seen {
    let middle = cases.start.midpoint(cases.end);
    thread::scope(|scope| {
        let halves = [cases.start..middle, middle..cases.end];
        let halves = halves.map(|cases| scope.spawn(|| look_at(test, cases)));
        let [one, other] = halves.map(|half| half.join().unwrap());
        one.and(other)
    })
}

impl Seen {
    fn and(mut self, other: Self) -> Self {
        self.findings.extend(other.findings);
        self.ended_by_redb.extend(other.ended_by_redb);
        self.refusals += other.refusals;
        for (kind, (files, opened)) in other.kinds {
            let sum = self.kinds.entry(kind).or_default();
            *sum = (sum.0 + files, sum.1 + opened);
        }
        self
    }

    pub(super) fn print(&self, mode: &str) {
        let files: usize = self.kinds.values().map(|(files, _)| files).sum();
        let (refusals, findings) = (self.refusals, self.findings.len());
        println!("{mode}: {files} files, {refusals} answers name damage, {findings} findings");
        println!("  redb has ended the process on {:?}", self.ended_by_redb);
        for (kind, (files, opened)) in &self.kinds {
            println!("  {kind}: {files} files, of which {opened} were opened");
        }
    }

    // Takes a line of a child. Returns the file that comes next.
    fn take(&mut self, line: &str) -> (u64, String) {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let case = words[1].parse().unwrap();
        if words[0] == "begin" {
            return (case, words[2].to_owned());
        }
        let sum = self.kinds.entry(words[2].to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + usize::from(words[3] == "opened"));
        self.refusals += words[4].parse::<usize>().unwrap();
        (case + 1, String::new())
    }
}

fn look_at(test: &str, mut cases: Range<u64>) -> Seen {
    let mut seen = Seen::default();
    while !cases.is_empty() {
        let (mut at, mut panics) = ((cases.start, String::new()), VecDeque::new());
        let (mut child, lines) = start(test, &cases);
        let mut is_sound = false;
        let is_late = loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) if line.starts_with("ready") => {}
                Ok(line) if line == PASSED => is_sound = true,
                Ok(line) if line.starts_with("found") => seen.findings.push(line),
                Ok(line) if line.starts_with("panic") => {
                    panics.push_front(line);
                    panics.truncate(3);
                }
                Ok(line) => {
                    at = seen.take(&line);
                    panics.clear();
                }
                Err(RecvTimeoutError::Timeout) => break true,
                Err(RecvTimeoutError::Disconnected) => break false,
            }
        };
        if is_late {
            child.kill().unwrap();
        }
        let status = child.wait().unwrap();
        match end_of(is_late, status) {
            None => {
                assert!(is_sound, "there is no test `{test}`");
                return seen;
            }
            Some(_) if !is_late && is_of_redb(panics.make_contiguous()) => {
                seen.ended_by_redb.push(at.0);
            }
            Some(end) => seen.findings.push(format!("{at:?} {end}, behind {panics:?}")),
        }
        cases.start = at.0 + 1;
    }
    seen
}

/// Whether the last panics, the newest first, are those of redb and of a destructor of redb.
fn is_of_redb(panics: &[String]) -> bool {
    let Some((last, before)) = panics.split_first() else { return false };
    last.contains("panic in a destructor during cleanup")
        && !before.is_empty()
        && before.iter().all(|panic| panic.contains("/redb-"))
}

fn end_of(is_late: bool, status: ExitStatus) -> Option<String> {
    match (is_late, status.success()) {
        (true, _) => Some("comes to no end".to_owned()),
        (false, true) => None,
        (false, false) => Some(format!("ends the process with {status}")),
    }
}

fn start(test: &str, cases: &Range<u64>) -> (Child, Receiver<String>) {
    let states: Vec<_> = states().iter().map(u64::to_string).collect();
    let mut child = command(test)
        .env(STATES, states.join(" "))
        .env(CASES, format!("{}..{}", cases.start, cases.end))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let start = WORDS.iter().filter_map(|word| line.find(word)).min();
            let told = start.and_then(|start| line.get(start..)?.strip_suffix(';'));
            if let Some(told) = told.or_else(|| has_passed(&line).then_some(PASSED)) {
                drop(sender.send(told.to_owned()));
            }
        }
    });
    (child, lines)
}
