//! The key of a row in redb.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use redb::{Key, TypeName, Value};

/// Bytes, as redb's own `&[u8]`, whose name it has in the file. A change within [`bounded`] compares a
/// limited number of keys.
#[derive(Debug)]
pub(super) struct Bytes;

/// A change of one row compares at most so many keys. A tree of 2^40 rows needs 80.
///
/// redb goes down to a row by recursion, and the pages of a damaged file may lead to themselves. So
/// many levels fit on the stack of a thread.
const MAX_COMPARISONS: u32 = 128;

thread_local! {
    /// Number of comparisons that the present change may make, or `None` outside of a change.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Changes one row with `change`.
///
/// # Panics
///
/// If more than [`MAX_COMPARISONS`] keys are compared, which only happens in a damaged file.
pub(super) fn bounded<T>(change: impl FnOnce() -> T) -> T {
    LEFT.set(Some(MAX_COMPARISONS));
    let _end = End;
    change()
}

/// Ends a change, also by a panic.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        LEFT.set(None);
    }
}

impl Value for Bytes {
    type SelfType<'a>
        = &'a [u8]
    where
        Self: 'a;
    type AsBytes<'a>
        = &'a [u8]
    where
        Self: 'a;

    fn fixed_width() -> Option<usize> {
        None
    }

    fn from_bytes<'a>(data: &'a [u8]) -> &'a [u8]
    where
        Self: 'a,
    {
        data
    }

    fn as_bytes<'a, 'b: 'a>(value: &'a &'b [u8]) -> &'a [u8]
    where
        Self: 'b,
    {
        value
    }

    fn type_name() -> TypeName {
        <&[u8]>::type_name()
    }
}

impl Key for Bytes {
    fn compare(one: &[u8], other: &[u8]) -> Ordering {
        if let Some(left) = LEFT.get() {
            assert!(left > 0, "pages lead to themselves");
            LEFT.set(Some(left - 1));
        }
        one.cmp(other)
    }

    fn separator<'a>(left: &'a [u8], right: &'a [u8]) -> Cow<'a, [u8]> {
        <&[u8]>::separator(left, right)
    }

    fn min_encoded_key() -> Option<Cow<'static, [u8]>> {
        <&[u8]>::min_encoded_key()
    }
}
