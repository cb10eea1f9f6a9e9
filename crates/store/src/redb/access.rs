//! Who may read the files that a store makes beside its own.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

/// Makes new files of `options` files of their owner alone. Other systems than Unix give them the
/// permissions of their folder.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    options.mode(0o600);
    options
}

/// Returns `true` if a file is for its owner alone.
#[cfg(unix)]
pub(super) fn is_private(metadata: &Metadata) -> bool {
    metadata.mode().trailing_zeros() >= 6
}

/// Makes a file one of its owner alone. Returns `false` if its file system leaves it as it is. A file of
/// somebody else counts as one that takes permissions.
#[cfg(unix)]
pub(super) fn takes_permissions(file: &File) -> bool {
    let private = std::fs::Permissions::from_mode(0o600);
    let found = file.set_permissions(private).and_then(|()| file.metadata());
    match found {
        Ok(found) => is_private(&found),
        Err(_) => true,
    }
}

/// Gives `file` the owner, the group and the permissions of the file with `metadata`. The owner stays as
/// it is if this process may not give files away.
pub(super) fn take_over(file: &File, metadata: &Metadata) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "other systems have no groups"))]
    let mut permissions = metadata.permissions();
    #[cfg(unix)]
    if !is_given(file, metadata)? {
        // What one group may do is not for another, which may do what everybody may.
        let mode = permissions.mode();
        permissions.set_mode((mode & 0o707) | ((mode & 0o007) << 3));
    }
    file.set_permissions(permissions)
}

/// Returns `true` if `file` is of the same group afterwards.
#[cfg(unix)]
fn is_given(file: &File, metadata: &Metadata) -> io::Result<bool> {
    let (own, owner, group) = (file.metadata()?, metadata.uid(), metadata.gid());
    Ok((own.uid(), own.gid()) == (owner, group)
        || fchown(file, Some(owner), Some(group)).is_ok()
        || own.gid() == group
        || fchown(file, None, Some(group)).is_ok())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::ops::ControlFlow;
    use std::os::unix::fs::{chown, symlink};
    use std::path::Path;

    use super::super::{RedbStore, backup, restore};
    use super::*;
    use crate::{Decision, Error, Store, Table};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn write(store: &RedbStore) {
        store
            .write(&mut |txn| {
                txn.put(Table::ALL[0], b"ada", b"a secret").map(|()| Decision::Commit)
            })
            .unwrap();
    }

    #[test]
    fn a_log_and_a_compacted_file_are_for_those_who_may_use_the_file() {
        for expected in [0o600, 0o640, 0o666] {
            let folder = tempfile::tempdir().unwrap();
            let [path, log] = ["shop.redb", "shop.redb-log"].map(|name| folder.path().join(name));
            drop(RedbStore::open(&path).unwrap());
            fs::set_permissions(&path, Permissions::from_mode(expected)).unwrap();
            // Only some processes may give files away.
            let is_given = chown(&path, Some(4711), Some(4712)).is_ok();

            let store = RedbStore::open(&path).unwrap();
            write(&store);
            let owner = |path: &Path| fs::metadata(path).map(|it| (it.uid(), it.gid())).unwrap();
            let before = owner(&path);
            assert_eq!((mode(&log), owner(&log)), (expected, before));
            drop(store);

            assert!(RedbStore::compact(&path).unwrap().is_finished);
            assert_eq!((mode(&path), owner(&path)), (expected, before));
            assert!(!is_given || before == (4711, 4712));
        }
    }

    #[test]
    fn a_backup_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [path, copy, again] = ["shop", "copy", "again"].map(|name| folder.path().join(name));
        let store = RedbStore::open(&path).unwrap();
        write(&store);
        // What is there of an interrupted one is for its owner as well.
        assert!(!backup(&store, &copy, |_| ControlFlow::Break(())).unwrap().is_finished);
        assert_eq!(mode(&folder.path().join("copy-partial")), 0o600);
        assert!(backup(&store, &copy, |_| ControlFlow::Continue(())).unwrap().is_finished);
        assert_eq!(mode(&copy), 0o600);
        assert!(restore(&copy, &again).unwrap().is_finished);
        assert_eq!(mode(&again), 0o600);
    }

    /// File systems without permissions show each file as one for everybody.
    #[test]
    fn a_backup_that_is_under_way_is_left_alone_whatever_its_permissions_are() {
        let folder = tempfile::tempdir().unwrap();
        let [path, copy, part] =
            ["shop", "copy", "copy-partial"].map(|name| folder.path().join(name));
        let store = RedbStore::open(&path).unwrap();
        write(&store);
        let mut other = None;
        let copied = backup(&store, &copy, |_| {
            fs::set_permissions(&part, Permissions::from_mode(0o755)).unwrap();
            let before = fs::metadata(&part).unwrap().ino();
            other = Some(backup(&store, &copy, |_| ControlFlow::Continue(())));
            assert_eq!(fs::metadata(&part).unwrap().ino(), before);
            ControlFlow::Continue(())
        });
        assert!(matches!(other, Some(Err(Error::AlreadyOpen { .. }))), "{other:?}");
        assert!(copied.unwrap().is_finished);
        drop(RedbStore::open(&copy).unwrap());
    }

    /// Somebody else has put a file, or a link to one, where the backup is made.
    #[test]
    fn a_backup_is_not_written_to_a_file_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let store = RedbStore::open(place("shop")).unwrap();
        write(&store);
        fs::write(place("copy-partial"), "").unwrap();
        fs::set_permissions(place("copy-partial"), Permissions::from_mode(0o666)).unwrap();
        fs::write(place("other"), "").unwrap();
        symlink(place("other"), place("again-partial")).unwrap();
        for name in ["copy", "again"] {
            assert!(
                backup(&store, place(name), |_| ControlFlow::Continue(())).unwrap().is_finished
            );
            assert!(place(name).symlink_metadata().unwrap().is_file());
            assert_eq!(mode(&place(name)), 0o600);
        }
        assert_eq!(fs::read(place("other")).unwrap(), b"");
    }
}
