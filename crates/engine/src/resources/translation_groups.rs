//! Translation groups: the resources that are translated.

use domain::ids::EnvironmentId;
use domain::translation::{Resource, TranslationGroup};
use store::{ReadRecords, WriteRecords, layout};

use crate::Result;
use crate::resources::cascade::Cascade;
use crate::tx::{Tx, View};

/// Creates the group of a resource that is to be translated, unless it is there.
pub(crate) fn ensure(tx: &mut Tx<'_>, resource: Resource) -> Result<()> {
    let key = layout::translation_group(tx.environment_id(), &resource);
    if tx.contains(&key)? {
        return Ok(());
    }
    Ok(tx.insert(&TranslationGroup::new(tx.home(), resource, tx.now()))?)
}

/// Removes the group of a resource, with its translations.
pub(crate) fn remove(
    cascade: &mut Cascade<'_, '_>,
    environment: EnvironmentId,
    resource: &Resource,
) -> Result<()> {
    cascade.remove(&layout::translations(environment, resource))?;
    cascade.remove(&layout::translation_group(environment, resource).into_prefix())
}
