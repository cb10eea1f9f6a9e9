//! No acknowledged write is lost when the power fails, and none appears in parts.

use std::thread;

use store::redb::RedbStore;
use testkit::dice::Dice;
use testkit::disk::Disk;
use testkit::scaled;

use crate::{
    BY_A_THREAD, BY_CALLERS, Open, WITHOUT_A_LOG, check_contains, check_whole, write_five,
};

/// Number of operations on the disk until all memtables of a run are applied, or more.
const A_RUN: u64 = 3_000;

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    check_cuts(WITHOUT_A_LOG, scaled(60), 400);
}

#[test]
fn a_log_applied_by_a_thread_survives_power_cuts() {
    check_cuts(BY_A_THREAD, scaled(250), A_RUN);
}

#[test]
fn a_log_applied_by_callers_survives_power_cuts() {
    check_cuts(BY_CALLERS, scaled(250), A_RUN);
}

/// A power cut at any point of one history, and then at any point of its recovery.
#[test]
fn every_operation_on_the_disk_may_be_the_last() {
    let history = |disk: &Disk| -> store::Result<Vec<String>> {
        let store = BY_CALLERS(disk)?;
        let ids = (0..16).map(|round| format!("{round:02}"));
        let written = ids.take_while(|id| write_five(&store, id).is_ok()).collect();
        drop(store);
        Ok(written)
    };
    let all = u64::MAX - {
        let disk = Disk::new();
        history(&disk).unwrap();
        disk.power_left()
    };
    assert!(all > 200, "the history takes {all} operations");
    for operations in 0..all {
        let mut dice = Dice::new(operations);
        let mut disk = Disk::new();
        disk.unplug_after(operations);
        let acknowledged = history(&disk).unwrap_or_default();
        for _ in 0..3 {
            disk = disk.after_power_cut(&mut dice);
            disk.unplug_after(dice.roll(200));
            drop(BY_CALLERS(&disk));
        }
        let disk = disk.after_power_cut(&mut dice);
        check_contains(&check_whole(&BY_CALLERS(&disk).unwrap()), &acknowledged);
        // What was removed on closing is in the file.
        check_contains(&check_whole(&WITHOUT_A_LOG(&disk).unwrap()), &acknowledged);
    }
}

/// The control: on a disk that lies about its syncs, the checks find what is lost.
#[test]
fn a_disk_that_lies_is_found_out() {
    for open in [BY_A_THREAD, BY_CALLERS] {
        let lost = (0..20).filter(|seed| {
            let mut dice = Dice::new(*seed);
            let disk = Disk::new();
            let store = open(&disk).unwrap();
            write_five(&store, "before").unwrap();
            disk.lie();
            disk.unplug_after(dice.roll(400));
            let acknowledged = write_many(&store);
            let disk = disk.after_power_cut(&mut dice);
            let Ok(store) = open(&disk) else { return true };
            let found = testkit::tables::dump(&store);
            !acknowledged.iter().all(|id| found.iter().any(|(_, key, _)| key == id.as_bytes()))
        });
        let lost = lost.count();
        assert!(lost >= 15, "only {lost} of 20 have lost something");
    }
}

/// A power cut while a store is being created, and another one while that is made up for.
#[test]
fn a_store_is_created_in_spite_of_power_cuts() {
    for (seed, open) in (0..scaled(60))
        .flat_map(|seed| [WITHOUT_A_LOG, BY_A_THREAD, BY_CALLERS].map(|open| (seed, open)))
    {
        let mut dice = Dice::new(seed);
        let mut disk = Disk::new();
        for _ in 0..2 {
            disk.unplug_after(dice.roll(60));
            drop(open(&disk).and_then(|store| write_five(&store, "bob")));
            disk = disk.after_power_cut(&mut dice);
        }

        write_five(&open(&disk).unwrap(), "ada").unwrap();

        assert!(check_whole(&open(&disk).unwrap()).contains(&"ada".to_owned()));
    }
}

/// Cuts the power during a run of four writers, and perhaps during the recovery.
#[track_caller]
fn check_cuts(open: Open, cuts: u64, operations: u64) {
    let told: usize = (0..cuts).map(|seed| check_cut(open, seed, operations)).sum();
    assert!(told > 0, "nothing was acknowledged");
    println!("{cuts} power cuts among {told} acknowledged transactions lost none");
}

/// Returns the number of acknowledged transactions.
#[track_caller]
fn check_cut(open: Open, seed: u64, operations: u64) -> usize {
    let mut dice = Dice::new(seed);
    let disk = Disk::new();
    let store = open(&disk).unwrap();
    disk.unplug_after(dice.roll(operations));
    let acknowledged = write_many(&store);
    drop(store);

    let mut disk = disk.after_power_cut(&mut dice);
    if seed.is_multiple_of(2) {
        disk.unplug_after(dice.roll(150));
        drop(open(&disk));
        disk = disk.after_power_cut(&mut dice);
    }
    let store = open(&disk).unwrap();
    let mut found = check_whole(&store);
    check_contains(&found, &acknowledged);

    // What was repaired lasts.
    write_five(&store, "after").unwrap();
    drop(store);
    found.push("after".to_owned());
    assert_eq!(check_whole(&open(&disk).unwrap()), found);
    acknowledged.len()
}

/// Lets four writers work until the power fails, and returns what was acknowledged.
fn write_many(store: &RedbStore) -> Vec<String> {
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let ids = (0..40).map(move |round| format!("{writer}-{round}"));
                let write = move |id: &String| write_five(store, id).is_ok();
                scope.spawn(move || ids.take_while(write).collect::<Vec<_>>())
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    })
}
