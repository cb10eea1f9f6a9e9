//! Looking up several things in one sorted list. The searches take their steps together, so that the
//! processor waits for several entries of the list at once, and has no branches to predict.

/// Number of searches that take their steps together.
pub(crate) const TOGETHER: usize = 16;

/// Shows `visit` each of `wanted` with the last entry that is not behind it, or with the first entry if all of
/// them are behind it.
pub(crate) fn nearest<'s, E, W>(
    sorted: &'s [E],
    wanted: &[W],
    is_behind: impl Fn(&E, &W) -> bool,
    mut visit: impl FnMut(&W, &'s E),
) {
    for wanted in wanted.chunks(TOGETHER) {
        let mut found = [0; TOGETHER];
        let mut len = sorted.len();
        while len > 1 {
            let half = len / 2;
            for (at, wanted) in found.iter_mut().zip(wanted) {
                let next = *at + half;
                let is_behind = sorted.get(next).is_none_or(|entry| is_behind(entry, wanted));
                *at = if is_behind { *at } else { next };
            }
            len -= half;
        }
        for (at, wanted) in found.into_iter().zip(wanted) {
            if let Some(entry) = sorted.get(at) {
                visit(wanted, entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_search_finds_what_it_finds_alone(
            sorted in proptest::collection::btree_set(0..200_u8, 0..100),
            wanted: Vec<u8>,
        ) {
            let sorted: Vec<u8> = sorted.into_iter().collect();
            let alone = |wanted: &u8| {
                let found = sorted.iter().rfind(|entry| *entry <= wanted);
                Some((*wanted, *found.or(sorted.first())?))
            };
            let expected: Vec<(u8, u8)> = wanted.iter().filter_map(alone).collect();
            let mut found = Vec::new();
            let is_behind = |entry: &u8, wanted: &u8| entry > wanted;
            nearest(&sorted, &wanted, is_behind, |wanted, entry| found.push((*wanted, *entry)));
            prop_assert_eq!(found, expected);
        }
    }
}
