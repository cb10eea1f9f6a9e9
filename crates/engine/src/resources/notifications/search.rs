//! Searches of the activity list: a filter, and the subscribers that a query names.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use activity::{Filter, ScopedFilter, Term};
use domain::context::ContextFilter;
use domain::folded::FoldedPart;
use domain::ids::{InternalSubscriberId, SubscriberId, WorkflowId};
use domain::notification::{NotificationQuery, Ordinal};
use domain::subscriber::SubscriberIds;
use domain::workflow::Workflow;
use store::layout::{SearchedField, TextIndex};
use store::{Order, ReadRecords, layout, text_index};

use crate::Result;
use crate::resources::workflows;
use crate::tx::{Reading, View};

/// Maximum number of subscribers that a search holds. More are read anew for each segment.
const HELD: usize = 4_096;

/// A search for the notifications that match a query.
pub(super) struct Search<'q> {
    view: &'q Reading<'q>,
    query: &'q NotificationQuery,
    filter: Filter,
    /// The subscribers that the query names, if they are too many for the filter.
    many: Option<Named>,
}

/// The subscribers that a query names.
struct Named {
    /// Those named by their ids.
    ids: BTreeSet<InternalSubscriberId>,
    part: Option<FoldedPart>,
}

impl<'q> Search<'q> {
    /// The search for what matches `query`.
    pub(super) fn of(view: &'q Reading<'q>, query: &'q NotificationQuery) -> Result<Self> {
        let mut filter = filter(view, query)?;
        let mut many = None;
        if query.names_subscribers() {
            let named = Named::by(view, query)?;
            match named.few(view, query)? {
                Some(few) => filter = filter.any_of(few.into_iter().map(Term::subscriber)),
                None => many = Some(named),
            }
        }
        Ok(Self { view, query, filter, many })
    }

    /// The ordinals that match, newest first: at most `limit`, but for the first `skip`.
    pub(super) fn find(&self, skip: u64, limit: usize) -> Result<Vec<Ordinal>> {
        let Self { view, .. } = self;
        let (index, environment) = (view.engine().activity(), view.environment_id());
        self.with(&mut |wanted| Ok(index.find(*view, environment, wanted, skip, limit)?))
    }

    /// Returns the number of matches.
    pub(super) fn count(&self) -> Result<u64> {
        let Self { view, .. } = self;
        let (index, environment) = (view.engine().activity(), view.environment_id());
        self.with(&mut |wanted| Ok(index.count(*view, environment, wanted)?))
    }

    fn with<T>(&self, run: &mut dyn FnMut(ScopedFilter<'_>) -> Result<T>) -> Result<T> {
        match &self.many {
            None => run(ScopedFilter::from(&self.filter)),
            Some(named) => {
                let each = |visit: &mut dyn FnMut(InternalSubscriberId)| {
                    named.each(self.view, self.query, &mut |id| {
                        visit(id);
                        ControlFlow::Continue(())
                    })
                };
                run(self.filter.among(&each))
            }
        }
    }
}

impl Named {
    fn by(view: &Reading<'_>, query: &NotificationQuery) -> Result<Self> {
        let environment = view.environment_id();
        let named = query.subscriber_ids.iter().map(|id| layout::subscriber(environment, id));
        let named: Vec<_> = named.collect();
        let named = view.find_readable_excerpts::<SubscriberIds>(environment, &named)?;
        let mut ids: BTreeSet<_> = named.into_iter().flatten().map(|found| found.id).collect();
        if let Some(search) = query.searched() {
            let called = SubscriberId::new(search).map(|id| layout::subscriber(environment, &id));
            let called = called.map(|key| store::if_readable(view.find(&key)));
            let called = called.ok().transpose()?.flatten().flatten();
            ids.extend(called.map(|subscriber| subscriber.id));
        }
        Ok(Self { ids, part: query.searched().map(FoldedPart::new) })
    }

    // All of them. Returns `None` if they are too many to be held.
    fn few(
        &self,
        view: &Reading<'_>,
        query: &NotificationQuery,
    ) -> Result<Option<BTreeSet<InternalSubscriberId>>> {
        let mut few = BTreeSet::new();
        self.each(view, query, &mut |id| {
            few.insert(id);
            if few.len() > HELD { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(Some(few).filter(|few| few.len() <= HELD))
    }

    // Calls `visit` with each of them, perhaps more than once, until it breaks. Addresses are many, and are not
    // held.
    fn each(
        &self,
        view: &Reading<'_>,
        query: &NotificationQuery,
        visit: &mut dyn FnMut(InternalSubscriberId) -> ControlFlow<()>,
    ) -> store::Result<()> {
        let environment = view.environment_id();
        let mut flow = self.ids.iter().try_for_each(|id| visit(*id));
        for email in &query.emails {
            let prefix = layout::subscriber_emails(environment, email);
            if flow.is_break() {
                return Ok(());
            }
            view.scan_bytes(&prefix.range(), Order::Ascending, None, &mut |key, _| {
                let entry = layout::subscriber_of_email(environment, key);
                let found = entry.filter(|(address, _)| address == email);
                flow = found.map_or(ControlFlow::Continue(()), |(_, id)| visit(id));
                flow
            })?;
        }
        match &self.part {
            Some(part) if flow.is_continue() => {
                let emails = TextIndex { field: SearchedField::Email, environment };
                text_index::find(view, emails, part, visit)
            }
            Some(_) | None => Ok(()),
        }
    }
}

// Filter of the query, with the ids of its workflows, without its subscribers.
fn filter(view: &dyn View, query: &NotificationQuery) -> Result<Filter> {
    let transaction = query.transaction_id.clone();
    let mut filter = Filter::new(query.earliest, query.latest, transaction);
    if !query.step_types.is_empty() {
        filter = filter.any_of(query.step_types.iter().map(|kind| Term::channel(*kind)));
    }
    if !query.severities.is_empty() {
        filter = filter.any_of(query.severities.iter().map(|severity| Term::severity(*severity)));
    }
    if let Some(key) = &query.topic_key {
        filter = filter.any_of([Term::topic(key)]);
    }
    if let Some(identifier) = &query.subscription_id {
        filter = filter.any_of([Term::subscription(identifier)]);
    }
    if let ContextFilter::Exact(contexts) = &query.context_keys {
        filter = filter.any_of([Term::contexts(contexts)]);
    }
    if !query.workflows.is_empty() {
        let named = named_workflows(view, query)?;
        filter = filter.any_of(named.into_iter().map(Term::workflow));
    }
    Ok(filter.with_outcomes(&query.outcomes))
}

fn named_workflows(view: &dyn View, query: &NotificationQuery) -> Result<BTreeSet<WorkflowId>> {
    let identified = workflows::ids_of(view, &query.workflows)?;
    let mut found = BTreeSet::new();
    for (name, identified) in query.workflows.iter().zip(identified) {
        // The notifications of a workflow that was deleted are still found by its id and its slug.
        found.extend(identified.or_else(|| Workflow::id_in(name.as_str())));
    }
    Ok(found)
}
