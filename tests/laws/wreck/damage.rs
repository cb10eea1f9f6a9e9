//! Files of one image, each damaged as its number says.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use serde_json::json;
use store::redb::RedbStore;
use testkit::dice::Dice;
use testkit::disk::{Disk, PAGE};
use testkit::redb_page::{children, is_branch, lead_astray};
use testkit::seeded;
use testkit::tables::{Entry, load, try_dump};
use tidings::Scope;

use super::children::told_states;
use super::{engine, options};
use crate::parsed;

/// A sector is written as a whole, or not at all.
const SECTOR: usize = 512;

/// Kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A page is copied over another one.
    Copied,
    /// A page with children is copied over another one, which may be one of them.
    Branch,
    /// A page leads behind the end of the file.
    Astray,
    /// Several pages are copied over others.
    Several,
    /// Sectors of a page are those of an earlier version of the file.
    Stale,
    /// A page is zero.
    Zeroed,
    /// Bits of the file are flipped.
    Flipped,
    /// The file is cut.
    Cut,
    /// The log of a killed process is cut.
    LogCut,
    /// Bits of the log are flipped.
    LogFlipped,
    /// Sectors of the log are copied over others.
    LogCopied,
    /// The log is that of another file.
    LogForeign,
}

impl Kind {
    /// The damage of the file of that number. Nearly half of the files have a page that is copied.
    pub(super) fn of(case: u64) -> Self {
        match case % 16 {
            0..7 => Self::Copied,
            7 => Self::Astray,
            8 => Self::Branch,
            9 => Self::Several,
            10 => Self::Stale,
            11 => Self::Zeroed,
            12 => Self::Flipped,
            13 => Self::Cut,
            14 if case % 32 < 16 => Self::LogCut,
            14 => Self::LogFlipped,
            _ if case % 32 < 16 => Self::LogCopied,
            _ => Self::LogForeign,
        }
    }

    pub(super) fn is_of_log(self) -> bool {
        match self {
            Self::LogCut | Self::LogFlipped | Self::LogCopied | Self::LogForeign => true,
            Self::Copied
            | Self::Branch
            | Self::Astray
            | Self::Several
            | Self::Stale
            | Self::Zeroed
            | Self::Flipped
            | Self::Cut => false,
        }
    }
}

/// Sound files with two environments that use the same names.
pub(super) struct Image {
    /// The file of a store that was closed. redb opens it without a look at its pages.
    file: Vec<u8>,
    /// An earlier version of the same file.
    earlier: Vec<u8>,
    /// The file and the log of a process that was killed.
    killed: Vec<u8>,
    log: Vec<u8>,
    /// The log of another file.
    foreign_log: Vec<u8>,
}

pub(super) static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let disk = Disk::new();
    let (store, [ours, other]) = settled(&disk, 60);
    store.checkpoint().unwrap();
    let earlier = disk.bytes();
    // So that tables have many pages, with records of either environment.
    for env in [&ours, &other] {
        fill(env, 60..120);
    }
    store.checkpoint().unwrap();
    fill(&ours, 120..124);
    fill(&other, 120..124);
    let killed = disk.after_kill();
    drop((ours, other, store));
    Image {
        file: disk.bytes(),
        earlier,
        killed: killed.bytes(),
        log: killed.log_bytes().unwrap(),
        foreign_log: foreign_log(),
    }
});

/// A store with two environments, each of which has been filled.
fn settled(disk: &Disk, records: u64) -> (Arc<RedbStore>, [Scope; 2]) {
    let store = disk.open_with(&options(false)).unwrap();
    load(&store, seeded::with_second_environment());
    let store = Arc::new(store);
    let engine = engine(&store);
    let ours = engine.environment(seeded::world().env.environment_id()).unwrap();
    let other = engine.organization("acme").unwrap().production().unwrap();
    for env in [&ours, &other] {
        fill(env, 0..records);
    }
    (store, [ours, other])
}

fn foreign_log() -> Vec<u8> {
    let disk = Disk::new();
    let (store, [ours, _]) = settled(&disk, 1);
    store.checkpoint().unwrap();
    fill(&ours, 1..4);
    disk.log_bytes().unwrap()
}

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

impl Image {
    /// The sound file.
    pub(super) fn disk(&self) -> Disk {
        Disk::holding(self.file.clone())
    }

    /// Offsets of the pages that are used, without the first one.
    fn pages(&self, which: impl Fn(&[u8]) -> bool) -> Vec<usize> {
        let pages = self.file.chunks(PAGE).enumerate().skip(1);
        pages.filter(|(_, page)| which(page)).map(|(at, _)| at * PAGE).collect()
    }
}

/// A damaged file, and what was done to it.
pub(super) fn wreck(case: u64) -> (Kind, Disk) {
    let (kind, mut dice) = (Kind::of(case), Dice::new(case));
    let disk = match kind {
        Kind::LogCut | Kind::LogFlipped | Kind::LogCopied | Kind::LogForeign => {
            let log = Some(log(kind, &mut dice));
            return (kind, Disk::with_log(IMAGE.killed.clone(), log));
        }
        Kind::Cut => {
            let mut file = IMAGE.file.clone();
            file.truncate((1 + dice.below(file.len() / PAGE - 1)) * PAGE);
            file
        }
        Kind::Flipped => {
            let mut file = IMAGE.file.clone();
            let pages = IMAGE.pages(is_used);
            for _ in 0..=dice.below(8) {
                // The first page, too.
                let page = dice.below(pages.len() + 1).checked_sub(1).map_or(0, |at| pages[at]);
                file[page + dice.below(PAGE)] ^= 1 << dice.below(8);
            }
            file
        }
        Kind::Astray => {
            let mut file = IMAGE.file.clone();
            let branches = IMAGE.pages(is_branch);
            let page = branches[dice.below(branches.len())];
            let mut numbers = children(&file[page..]);
            let number = dice.below(numbers.len());
            lead_astray(&mut file, page + numbers.nth(number).unwrap());
            file
        }
        Kind::Copied | Kind::Branch | Kind::Several | Kind::Stale | Kind::Zeroed => {
            pages_damaged(kind, &mut dice)
        }
    };
    (kind, Disk::holding(disk))
}

fn is_used(page: &[u8]) -> bool {
    page.iter().any(|byte| *byte != 0)
}

fn pages_damaged(kind: Kind, dice: &mut Dice) -> Vec<u8> {
    let mut file = IMAGE.file.clone();
    let pages = IMAGE.pages(is_used);
    let branches = IMAGE.pages(is_branch);
    let one_of = |pages: &[usize], dice: &mut Dice| pages[dice.below(pages.len())];
    let times = if kind == Kind::Several { 2 + dice.below(6) } else { 1 };
    for _ in 0..times {
        let to = one_of(&pages, dice);
        match kind {
            Kind::Zeroed => file[to..to + PAGE].fill(0),
            Kind::Stale => {
                let changed: Vec<usize> = pages
                    .iter()
                    .copied()
                    .filter(|at| IMAGE.earlier.get(*at..at + PAGE) != file.get(*at..at + PAGE))
                    .filter(|at| IMAGE.earlier.len() >= at + PAGE)
                    .collect();
                let to = one_of(&changed, dice);
                // All of the page, or the sectors that a power cut has left.
                let is_torn = dice.below(2) == 0;
                for at in (to..to + PAGE).step_by(SECTOR) {
                    if !is_torn || dice.below(2) == 0 {
                        file[at..at + SECTOR].copy_from_slice(&IMAGE.earlier[at..at + SECTOR]);
                    }
                }
            }
            _ => {
                let from = one_of(if kind == Kind::Branch { &branches } else { &pages }, dice);
                file.copy_within(from..from + PAGE, to);
            }
        }
    }
    file
}

fn log(kind: Kind, dice: &mut Dice) -> Vec<u8> {
    if kind == Kind::LogForeign {
        return IMAGE.foreign_log.clone();
    }
    let mut log = IMAGE.log.clone();
    let used = log.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    match kind {
        Kind::LogCut => log.truncate(dice.below(used)),
        Kind::LogFlipped => {
            for _ in 0..=dice.below(4) {
                log[dice.below(used)] ^= 1 << dice.below(8);
            }
        }
        _ => {
            let sector = |dice: &mut Dice| dice.below(used / SECTOR) * SECTOR;
            let (from, to) = (sector(dice), sector(dice));
            log.copy_within(from..from + SECTOR, to);
        }
    }
    log
}

/// Number that stands for the content of a store.
pub(super) fn digest(entries: &[Entry]) -> u64 {
    let mut hasher = DefaultHasher::new();
    entries.hash(&mut hasher);
    hasher.finish()
}

/// The contents that a store may have whose process was killed, with some of the log. Children are told
/// them.
pub(super) fn states() -> &'static BTreeSet<u64> {
    static STATES: LazyLock<BTreeSet<u64>> =
        LazyLock::new(|| told_states().unwrap_or_else(states_of_log));
    &STATES
}

fn states_of_log() -> BTreeSet<u64> {
    let used = IMAGE.log.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let ends = (SECTOR..=used.next_multiple_of(SECTOR)).step_by(SECTOR);
    let opened = ends.filter_map(|end| {
        let log = IMAGE.log[..end.min(IMAGE.log.len())].to_vec();
        let disk = Disk::with_log(IMAGE.killed.clone(), Some(log));
        let store = disk.open_with(&options(false)).ok()?;
        Some(digest(&try_dump(&store).unwrap()))
    });
    opened.collect()
}

#[test]
fn every_kind_of_damage_is_made() {
    let kinds: Vec<Kind> = (0..32).map(Kind::of).collect();
    for kind in [
        Kind::Copied,
        Kind::Branch,
        Kind::Astray,
        Kind::Several,
        Kind::Stale,
        Kind::Zeroed,
        Kind::Flipped,
        Kind::Cut,
        Kind::LogCut,
        Kind::LogFlipped,
        Kind::LogCopied,
        Kind::LogForeign,
    ] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
    assert!(IMAGE.pages(is_branch).len() > 10, "the tables are small");
    assert!(states().len() > 20, "only {} states", states().len());
}
