//! The power fails at any moment, and the index agrees with what is left.

use crate::world::{Deed, World, past, queries};
use testkit::dice::Dice;
use testkit::disk::Disk;
use testkit::scaled;
use testkit::world::Backend;

#[test]
fn a_power_cut_leaves_an_index_that_agrees() {
    for seed in 0..scaled(30) {
        let mut dice = Dice::new(seed);
        let mut disk = Disk::new();
        let world = World::new(Backend::Redb(disk.clone()), 16);
        past(&world, seed);
        for round in 0..2 {
            disk.unplug_after(dice.roll(150));
            while world.does(0, &any_deed(&mut dice)).is_ok() {}
            world.store.close();
            disk = disk.after_power_cut(&mut dice);
            world.reopen_from(Backend::Redb(disk.clone()));
            world.is_in_order(&queries(seed, 3));
            // What it was doing is gone on with.
            let deed = if round == 0 { Deed::TendAll } else { Deed::Rebuild };
            world.does(0, &deed).unwrap();
            world.is_in_order(&queries(seed + 1, 3));
        }
    }
}

fn any_deed(dice: &mut Dice) -> Deed {
    match dice.roll(8) {
        0..3 => {
            let (count, traits) = (1 + dice.roll(40), dice.roll(1 << 16));
            Deed::Append {
                count: count.try_into().unwrap(),
                transaction: 1,
                traits: traits.try_into().unwrap(),
                later: 1,
            }
        }
        3..5 => Deed::TendAll,
        5 => Deed::Delete(usize::try_from(dice.roll(50)).unwrap(), 3),
        6 => Deed::DeleteBefore { ago: 2, limit: 30 },
        _ => Deed::Rebuild,
    }
}
