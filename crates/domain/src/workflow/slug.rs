//! Names of workflows in URLs.

use super::Workflow;
use crate::ids::WorkflowId;
use crate::slug::{base62, from_base62, slugify};

/// Text between the name and the id in a slug.
const SLUG: &str = "_wf_";

impl Workflow {
    /// Returns the name in URLs.
    #[doc(hidden)]
    pub fn slug(&self) -> String {
        format!("{}{SLUG}{}", slugify(&self.name), base62(self.id.into()))
    }

    /// Returns the id of the workflow that `name` is the id or the slug of. An identifier may look like
    /// either. Returns `None` if there is none.
    #[doc(hidden)]
    pub fn id_in(name: &str) -> Option<WorkflowId> {
        name.parse().ok().or_else(|| Self::id_in_slug(name))
    }

    /// Returns the id at the end of `slug`. Returns `None` if there is none.
    pub(super) fn id_in_slug(slug: &str) -> Option<WorkflowId> {
        let (_, id) = slug.rsplit_once(SLUG)?;
        from_base62(id).map(WorkflowId::from)
    }
}
