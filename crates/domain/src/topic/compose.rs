//! Constructors and setters of topics.

use super::{TopicCreate, TopicQuery, TopicUpdate};
use crate::convert::IntoChecked;
use crate::error::Invalid;
use crate::ids::TopicKey;
use crate::setters::{page_setters, setters};

impl TopicCreate {
    /// Returns a topic without a name.
    pub fn new(key: impl IntoChecked<TopicKey>) -> Result<Self, Invalid> {
        let key = key.into_checked().map_err(|invalid| invalid.named("key"))?;
        Ok(Self { key, name: None })
    }
}

setters! { TopicCreate:
    /// Sets the display name: 1 to 100 characters.
    name: into(String);
}

setters! { TopicUpdate:
    /// Sets the display name: 1 to 100 characters.
    name: into(String);
    /// Removes the display name.
    clear_name @ name: clear();
}

setters! { TopicQuery:
    /// Lists the topics with this text in their key, in any case.
    key: into(String);
    /// Lists the topics with this text in their name, in any case.
    name: into(String);
}

page_setters!(TopicQuery);
