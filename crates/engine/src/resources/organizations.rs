//! The organizations of a store.

use domain::ids::OrganizationId;
use domain::page::ForwardPage;
use store::{Order, ReadRecords, Snapshot, layout};

use crate::trace;
use crate::{Engine, Result};

// Number of organizations on a page.
const PAGE: usize = 100;

type Page = ForwardPage<OrganizationId, OrganizationId>;

impl Engine {
    /// A page of the organizations in the store, in the order of the bytes of their ids: up to 100 behind
    /// `after`, or the first ones. An organization is in the store as soon as it has an environment. Its
    /// records need not be readable.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = tidings::Engine::in_memory();
    /// engine.organization("acme")?.production()?;
    ///
    /// # let mut found = Vec::new();
    /// let mut behind = None;
    /// loop {
    ///     let page = engine.organizations(behind.as_ref())?;
    ///     for id in &page.data {
    ///         for environment in engine.organization(id)?.environments().list()? {
    ///             println!("{id}: {}", environment.name);
    ///         }
    ///     }
    /// #   found.extend(page.data.clone());
    ///     behind = page.next;
    ///     if behind.is_none() {
    ///         break;
    ///     }
    /// }
    /// # assert_eq!(found, ["acme".parse()?]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn organizations(
        &self,
        after: Option<&OrganizationId>,
    ) -> Result<ForwardPage<OrganizationId, OrganizationId>> {
        trace::operation("engine.organizations", None, || {
            self.read(|snapshot| page(snapshot, after.cloned()))
        })
    }
}

// The keys of environments are enough, so that a record that cannot be read hides no organization.
// Each organization is one step, however many environments it has.
fn page(snapshot: &dyn Snapshot, mut behind: Option<OrganizationId>) -> Result<Page> {
    let mut data = Vec::new();
    while data.len() <= PAGE {
        let range = layout::environments_behind(behind.as_ref());
        let organization = |key: &[u8]| layout::home_of(key).map(|home| home.organization_id);
        let Some(next) = snapshot.first_known(&range, Order::Ascending, organization)? else {
            return Ok(Page::new(data, None));
        };
        behind = Some(next.clone());
        data.push(next);
    }
    data.truncate(PAGE);
    let next = data.last().cloned();
    Ok(Page::new(data, next))
}
