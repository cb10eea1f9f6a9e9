//! Workflows, and the texts that they use.

use domain::layout::Layout;
use domain::translation::{Translation, TranslationGroup};
use domain::workflow::Workflow;

use crate::key::Key;
use crate::layout::{
    TRANSLATION_IDS, by_identifier, default_layout, layout_id, translation, translation_group,
    workflow,
};
use crate::record::{Entries, Record};

impl Record for Workflow {
    fn key(&self) -> Key<Self> {
        workflow(self.environment_id, self.id)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(by_identifier(self.environment_id, self.identifier()));
    }
}

impl Record for Layout {
    fn key(&self) -> Key<Self> {
        by_identifier(self.environment_id, &self.identifier)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(layout_id(self.environment_id, self.id));
        if self.is_default {
            entries.add(default_layout(self.environment_id));
        }
    }
}

impl Record for Translation {
    fn key(&self) -> Key<Self> {
        translation(self.environment_id, &self.resource, &self.locale)
    }

    fn index(&self, entries: &mut Entries<Self>) {
        entries.add(TRANSLATION_IDS.within(self.environment_id).then(self.id).end());
    }
}

impl Record for TranslationGroup {
    fn key(&self) -> Key<Self> {
        translation_group(self.environment_id, &self.resource)
    }
}
