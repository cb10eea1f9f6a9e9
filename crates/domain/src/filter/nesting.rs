//! Filters that are nested deeper than they may be, until they are refused.

use std::{fmt, mem};

use serde::ser::Error;
use serde::{Serialize, Serializer};

use super::{Filter, FilterChild};
use crate::error::{Invalid, Reason};

// One level more than a filter may have, so that what is cut is refused as the whole would be.
const KEPT: usize = Filter::MAX_DEPTH + 1;

impl Filter {
    // A list instead of recursion.
    fn is_kept(&self) -> bool {
        let mut open = vec![(self, 1)];
        while let Some((group, level)) = open.pop() {
            if level > KEPT {
                return false;
            }
            open.extend(group.children.iter().filter_map(|child| match child {
                FilterChild::Group(inner) => Some((inner, level + 1)),
                FilterChild::Part(_) => None,
            }));
        }
        true
    }

    fn cut(&self, levels: usize) -> Self {
        let child = |child: &FilterChild| match child {
            FilterChild::Part(part) => Some(FilterChild::Part(part.clone())),
            FilterChild::Group(_) if levels == 1 => None,
            FilterChild::Group(group) => Some(FilterChild::Group(group.cut(levels - 1))),
        };
        let children = self.children.iter().filter_map(child).collect();
        Self { is_negated: self.is_negated, kind: self.kind, value: self.value, children }
    }

    fn equals(&self, other: &Self) -> bool {
        (self.is_negated, self.kind, self.value) == (other.is_negated, other.kind, other.value)
            && self.children == other.children
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("is_negated", &self.is_negated)
            .field("kind", &self.kind)
            .field("value", &self.value)
            .field("children", &self.children)
            .finish()
    }
}

impl Clone for Filter {
    fn clone(&self) -> Self {
        self.cut(KEPT)
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        if self.is_kept() && other.is_kept() {
            return self.equals(other);
        }
        self.cut(KEPT).equals(&other.cut(KEPT))
    }
}

impl Eq for Filter {}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_kept() { self.describe(f) } else { self.cut(KEPT).describe(f) }
    }
}

impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if !self.is_kept() {
            let reason = Reason::TooDeep { max: Self::MAX_DEPTH };
            return Err(S::Error::custom(Invalid::new("filters", reason)));
        }
        Wire::from(self).serialize(to)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'f> {
    is_negated: bool,
    #[serde(rename = "type")]
    kind: super::FilterType,
    value: super::Joint,
    children: &'f [FilterChild],
}

impl<'f> From<&'f Filter> for Wire<'f> {
    fn from(filter: &'f Filter) -> Self {
        let Filter { is_negated, kind, value, children } = filter;
        Self { is_negated: *is_negated, kind: *kind, value: *value, children }
    }
}

impl Drop for Filter {
    // Level by level. The derived drop would recurse once per level.
    fn drop(&mut self) {
        let mut open = mem::take(&mut self.children);
        while let Some(child) = open.pop() {
            if let FilterChild::Group(mut group) = child {
                open.append(&mut group.children);
            }
        }
    }
}
