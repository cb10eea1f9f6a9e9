//! Setters of credentials.

use serde_json::Value;

use super::{Credentials, TlsOptions};
use crate::error::Invalid;
use crate::json::Object;
use crate::secret::Secret;
use crate::setters::setters;

impl Credentials {
    /// Sets `port`.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port: Some(port.to_string()), ..self }
    }
}

setters! { Credentials:
    /// Sets `apiKey`.
    api_key: into(Secret);
    /// Sets `user`.
    user: into(String);
    /// Sets `secretKey`.
    secret_key: into(Secret);
    /// Sets `domain`.
    domain: into(String);
    /// Sets `password`.
    password: into(Secret);
    /// Sets `host`.
    host: into(String);
    /// Sets `secure`.
    secure: exact(bool);
    /// Sets `region`.
    region: into(String);
    /// Sets `accountSid`.
    account_sid: into(String);
    /// Sets `messageProfileId`.
    message_profile_id: into(String);
    /// Sets `token`.
    token: into(Secret);
    /// Sets `from`.
    from: into(String);
    /// Sets `senderName`.
    sender_name: into(String);
    /// Sets `projectName`.
    project_name: into(String);
    /// Sets `applicationId`.
    application_id: into(String);
    /// Sets `clientId`.
    client_id: into(String);
    /// Sets `requireTls`.
    require_tls: exact(bool);
    /// Sets `ignoreTls`.
    ignore_tls: exact(bool);
    /// Sets `tlsOptions`.
    tls_options: checked(TlsOptions, "tlsOptions");
    /// Sets `baseUrl`.
    base_url: into(String);
    /// Sets `webhookUrl`.
    webhook_url: into(Secret);
    /// Sets `redirectUrl`.
    redirect_url: into(String);
    /// Sets `hmac`.
    hmac: exact(bool);
    /// Sets `serviceAccount`.
    service_account: into(Secret);
    /// Sets `ipPoolName`.
    ip_pool_name: into(String);
    /// Sets `apiKeyRequestHeader`.
    api_key_request_header: into(String);
    /// Sets `secretKeyRequestHeader`.
    secret_key_request_header: into(String);
    /// Sets `idPath`.
    id_path: into(String);
    /// Sets `datePath`.
    date_path: into(String);
    /// Sets `apiToken`.
    api_token: into(Secret);
    /// Sets `authenticateByToken`.
    authenticate_by_token: exact(bool);
    /// Sets `authenticationTokenKey`.
    authentication_token_key: into(Secret);
    /// Sets `instanceId`.
    instance_id: into(String);
    /// Sets `alertUid`.
    alert_uid: into(String);
    /// Sets `title`.
    title: into(String);
    /// Sets `imageUrl`.
    image_url: into(String);
    /// Sets `state`.
    state: into(String);
    /// Sets `externalLink`.
    external_link: into(String);
    /// Sets `channelId`.
    channel_id: into(String);
    /// Sets `phoneNumberIdentification`.
    phone_number_identification: into(String);
    /// Sets `accessKey`.
    access_key: into(Secret);
    /// Sets `appSid`.
    app_sid: into(String);
    /// Sets `senderId`.
    sender_id: into(String);
    /// Sets `tenantId`.
    tenant_id: into(String);
    /// Sets `AppIOBaseUrl`.
    app_io_base_url: into(String);
}

impl From<Object> for TlsOptions {
    fn from(options: Object) -> Self {
        Self(options)
    }
}

impl TryFrom<Value> for TlsOptions {
    type Error = Invalid;

    fn try_from(options: Value) -> Result<Self, Invalid> {
        options.try_into().map(Self)
    }
}
