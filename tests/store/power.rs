//! No acknowledged write is lost when the power fails, and none appears in parts.

use std::thread;

use crate::{check_contains, check_whole, scale, write_five};
use testkit::disk::{Dice, Disk};

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    for seed in 0..60 * scale() {
        let mut dice = Dice::new(seed);
        let disk = Disk::new();
        let store = disk.open();
        disk.unplug_after(dice.roll(400));
        let acknowledged = thread::scope(|scope| {
            let store = &store;
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let ids = (0..40).map(move |round| format!("{writer}-{round}"));
                    let write = move |id: &String| write_five(store, id).is_ok();
                    scope.spawn(move || ids.take_while(write).collect::<Vec<_>>())
                })
                .collect();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });

        drop(store);
        let disk = disk.after_power_cut(&mut dice);
        let store = disk.open();
        let mut found = check_whole(&store);
        check_contains(&found, &acknowledged);

        // What was repaired lasts.
        write_five(&store, "after").unwrap();
        drop(store);
        found.push("after".to_owned());
        assert_eq!(check_whole(&disk.open()), found);
    }
}

/// A power cut while a store is being created, and another one while that is made up for.
#[test]
fn a_store_is_created_in_spite_of_power_cuts() {
    for seed in 0..60 * scale() {
        let mut dice = Dice::new(seed);
        let mut disk = Disk::new();
        for _ in 0..2 {
            disk.unplug_after(dice.roll(40));
            drop(disk.try_open());
            disk = disk.after_power_cut(&mut dice);
        }

        write_five(&disk.open(), "ada").unwrap();

        assert_eq!(check_whole(&disk.open()), ["ada"]);
    }
}
