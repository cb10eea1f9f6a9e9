//! Credentials of providers.

mod compose;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Invalid, Unit};
use crate::json::{Object, shape};
use crate::limits;
use crate::secret::Secret;

/// Credentials of an integration, under the names that providers use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "named as in the specification")]
#[non_exhaustive]
pub struct Credentials {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_sid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_profile_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_tls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_tls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_options: Option<TlsOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_pool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_request_header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_request_header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authenticate_by_token: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_token_key: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alert_uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number_identification: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_sid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    #[serde(rename = "AppIOBaseUrl", skip_serializing_if = "Option::is_none")]
    pub app_io_base_url: Option<String>,
}

shape! { Credentials {
    "apiKey": api_key, "user": user, "secretKey": secret_key, "domain": domain,
    "password": password, "host": host, "port": port, "secure": secure, "region": region,
    "accountSid": account_sid, "messageProfileId": message_profile_id, "token": token,
    "from": from, "senderName": sender_name, "projectName": project_name,
    "applicationId": application_id, "clientId": client_id, "requireTls": require_tls,
    "ignoreTls": ignore_tls, "tlsOptions": tls_options, "baseUrl": base_url,
    "webhookUrl": webhook_url, "redirectUrl": redirect_url, "hmac": hmac,
    "serviceAccount": service_account, "ipPoolName": ip_pool_name,
    "apiKeyRequestHeader": api_key_request_header,
    "secretKeyRequestHeader": secret_key_request_header, "idPath": id_path,
    "datePath": date_path, "apiToken": api_token, "authenticateByToken": authenticate_by_token,
    "authenticationTokenKey": authentication_token_key, "instanceId": instance_id,
    "alertUid": alert_uid, "title": title, "imageUrl": image_url, "state": state,
    "externalLink": external_link, "channelId": channel_id,
    "phoneNumberIdentification": phone_number_identification, "accessKey": access_key,
    "appSid": app_sid, "senderId": sender_id, "tenantId": tenant_id,
    "AppIOBaseUrl": app_io_base_url,
} }

/// TLS options of a connection to a provider. They may hold a private key, and so print as `***`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TlsOptions(pub Object);

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Credentials {
    /// Largest credentials, in bytes of JSON text.
    pub const MAX_SIZE: usize = 64 * 1024;

    /// Refuses credentials with a mask in place of a secret, as a redacted record has them.
    pub(crate) fn check_unmasked(&self) -> Result<(), Invalid> {
        for (name, secret) in self.clone().secrets() {
            if let Some(secret) = secret {
                secret.check_unmasked(format!("credentials.{name}"))?;
            }
        }
        Ok(())
    }

    /// Refuses credentials that are too large.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let size = serde_json::to_vec(self).map_or(usize::MAX, |text| text.len());
        limits::sized("credentials", size, Self::MAX_SIZE, Unit::Bytes)
    }

    /// Returns the credentials with secrets masked, and without TLS options.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        for (_, secret) in self.secrets() {
            *secret = secret.as_ref().map(|_| Secret::redacted());
        }
        Self { tls_options: None, ..self }
    }

    // The secrets, with their names.
    fn secrets(&mut self) -> [(&'static str, &mut Option<Secret>); 9] {
        [
            ("apiKey", &mut self.api_key),
            ("secretKey", &mut self.secret_key),
            ("password", &mut self.password),
            ("token", &mut self.token),
            ("webhookUrl", &mut self.webhook_url),
            ("serviceAccount", &mut self.service_account),
            ("apiToken", &mut self.api_token),
            ("authenticationTokenKey", &mut self.authentication_token_key),
            ("accessKey", &mut self.access_key),
        ]
    }
}
