//! Rows of folded texts.
//!
//! A row is the number of its texts in two bytes, the lowest first; the ids of the subscribers;
//! and the texts in the same order, each of which ends in NUL.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use domain::folded::FoldedPart;
use domain::ids::InternalSubscriberId;
use memchr::{memchr, memchr_iter};
use uuid::Uuid;

use super::VisitSubscriber;

/// Maximum length of a row with several texts, in bytes. With its key it fills a page of the
/// file. In tests a group has few texts.
pub(super) const ROOM: usize = if cfg!(test) { 100 } else { 3_900 };

/// A row that can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    ids: Vec<[u8; 16]>,
    text: Vec<u8>,
}

/// A row in borrowed bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    ids: &'a [[u8; 16]],
    text: &'a [u8],
}

impl<'a> View<'a> {
    /// Returns the row in `bytes`. Returns `None` if they are no row.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        let count = usize::from(u16::from_le_bytes(*count));
        let (ids, text) = rest.split_at_checked(count * size_of::<Uuid>())?;
        let is_whole = text.last().is_none_or(|last| *last == 0);
        let ids = ids.as_chunks().0;
        (is_whole && memchr_iter(0, text).count() == count).then_some(Self { ids, text })
    }

    /// The texts, each of which ends in NUL.
    pub(super) fn text(self) -> &'a [u8] {
        self.text
    }

    /// Returns `true` if the row has no text.
    pub(super) fn is_empty(self) -> bool {
        self.ids.is_empty()
    }

    /// Length of the row in bytes.
    pub(super) fn len(self) -> usize {
        size_of::<u16>() + size_of_val(self.ids) + self.text.len()
    }

    /// The texts with their subscribers.
    pub(super) fn entries(self) -> impl Iterator<Item = (&'a [u8], InternalSubscriberId)> {
        let texts = self.text.split(|byte| *byte == 0);
        texts.zip(self.ids).map(|(text, id)| (text, Uuid::from_bytes(*id).into()))
    }

    /// Calls `visit` with the subscribers whose texts have `part`, which has no NUL, until it breaks.
    pub(super) fn find(
        self,
        part: &FoldedPart,
        visit: &mut VisitSubscriber<'_>,
    ) -> ControlFlow<()> {
        let (mut ids, mut text) = (self.ids, self.text);
        while let Some((before, found)) =
            part.find_in(text).and_then(|at| text.split_at_checked(at))
        {
            let Some((_, from)) = ids.split_at_checked(memchr_iter(0, before).count()) else {
                break;
            };
            let Some((id, rest)) = from.split_first() else { break };
            visit(Uuid::from_bytes(*id).into())?;
            ids = rest;
            text = memchr(0, found).and_then(|end| found.get(end + 1..)).unwrap_or_default();
        }
        ControlFlow::Continue(())
    }
}

impl From<View<'_>> for Row {
    fn from(view: View<'_>) -> Self {
        Self { ids: view.ids.to_vec(), text: view.text.to_vec() }
    }
}

impl Row {
    pub(super) fn view(&self) -> View<'_> {
        View { ids: &self.ids, text: &self.text }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let count = u16::try_from(self.ids.len()).unwrap_or(u16::MAX);
        [count.to_le_bytes().as_slice(), self.ids.as_flattened(), &self.text].concat()
    }

    /// Adds a text. Returns `false` if there is no room for it.
    pub(super) fn push(&mut self, text: &[u8], subscriber: InternalSubscriberId) -> bool {
        let len = self.view().len() + size_of::<Uuid>() + text.len() + 1;
        if len > ROOM && !self.ids.is_empty() {
            return false;
        }
        self.ids.push(Uuid::from(subscriber).into_bytes());
        self.text.extend_from_slice(text);
        self.text.push(0);
        true
    }

    /// Removes the texts of these subscribers.
    pub(super) fn remove(&mut self, gone: &BTreeSet<InternalSubscriberId>) {
        let mut rest = Self::default();
        for (text, subscriber) in self.view().entries().filter(|(_, id)| !gone.contains(id)) {
            rest.push(text, subscriber);
        }
        *self = rest;
    }
}
