//! Pages of subscribers.

use std::ops::ControlFlow;

use domain::folded::FoldedPart;
use domain::page::{Page, PageRequest, Total};
use domain::subscriber::{Subscriber, SubscriberSearch};
use store::layout::{CountedList, SearchedField, TextIndex};
use store::{List, ReadRecords, layout, text_index};
use uuid::Uuid;

use crate::Result;
use crate::tx::{Reading, View};

/// The page of the subscribers that a search finds, or of all. All lists are sorted by id.
pub(super) fn page(
    view: &Reading<'_>,
    search: Option<&SubscriberSearch<'_>>,
    request: &PageRequest,
) -> Result<Page<Subscriber>> {
    let environment = view.environment_id();
    let all = layout::subscriber_ids(environment);
    let Some(search) = search else {
        let list = List::new([all]).counted_as(CountedList::Subscribers(environment));
        return Ok(view.page(&list, request)?);
    };
    let finds = |subscriber: &Subscriber| search.finds(subscriber);
    let (list, has_others) = match search {
        SubscriberSearch { email: Some(email), phone, name } => {
            let list = List::new([layout::subscriber_emails(environment, email)]);
            (list, phone.is_some() || name.is_some())
        }
        // Subscribers of an older format may lack the rows of the other two.
        _ if store::backfill::lacks_entries(view)? => (List::new([all]), true),
        SubscriberSearch { phone: Some(phone), name, .. } => {
            (List::new([layout::subscriber_phones(environment, phone)]), name.is_some())
        }
        SubscriberSearch { name: Some(name), .. } => match called(view, name)? {
            Some(ids) => return Ok(view.page_among(&all, &ids, &finds, request)?),
            // So many match that most pages are found after a few subscribers.
            None => (List::new([all]).of_total(Total::CAP + 1), true),
        },
        SubscriberSearch { email: None, phone: None, name: None } => (List::new([all]), false),
    };
    Ok(view.page(&list.of_records(has_others, &finds), request)?)
}

// The sorted ids of the subscribers whose name has a part. Returns `None` if they are more than a total
// counts.
fn called(view: &Reading<'_>, name: &FoldedPart) -> Result<Option<Vec<[u8; 16]>>> {
    let names = TextIndex { field: SearchedField::Name, environment: view.environment_id() };
    let mut ids = Vec::new();
    text_index::find(view, names, name, &mut |id| {
        ids.push(Uuid::from(id).into_bytes());
        if ids.len() > 2 * Total::CAP {
            sort(&mut ids);
            if ids.len() > Total::CAP {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    sort(&mut ids);
    Ok(Some(ids).filter(|ids| ids.len() <= Total::CAP))
}

// Each is there once afterwards.
fn sort(ids: &mut Vec<[u8; 16]>) {
    ids.sort_unstable();
    ids.dedup();
}
