//! Asks a person to log in while a tool call waits: shows a local link that starts the login, and waits until the
//! browser comes back.

use super::code::AddressReader;
use crate::oauth::login::ServerLogin;
use crate::oauth::scopes::Scopes;
use crate::oauth::{OAuthFault, Result};
use std::time::Duration;
use tokio::time::timeout;

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(600);

impl ServerLogin {
    /// Shows a person an address at which to log in, and waits for the login. `show` says whether the person agrees. Of calls
    /// that miss the same login one asks, and the others wait. `scopes` are those that the login has to have, if it is there
    /// and has too few.
    ///
    /// # Errors
    /// The person declines or does not come back; or the login fails.
    pub async fn ask<F: Future<Output = bool>>(
        &self,
        scopes: Option<&Scopes>,
        show: impl FnOnce(String) -> F,
    ) -> Result<()> {
        let _turn = self.inner().asking.lock().await;
        let is_done = match scopes {
            None => self.has_changed().await,
            Some(scopes) => self.has_asked_for(scopes).await,
        };
        if is_done {
            return Ok(());
        }
        let listener = self.listen().await.map_err(|error| OAuthFault::unavailable(error.to_string()))?;
        let pending = self.begin(&listener.redirect_uri(), None, AddressReader::Browser).await?;
        let refused = || OAuthFault::LoginRequired("the person did not log in".to_owned());
        let arrived = {
            let coming = async {
                let arrived = timeout(PATIENCE, listener.wait(&pending)).await.map_err(|_| refused())?;
                arrived.map_err(|error| OAuthFault::unavailable(error.to_string()))
            };
            tokio::pin!(coming);
            // The browser may come back before the client has answered.
            tokio::select! {
                arrived = &mut coming => arrived?,
                agrees = show(listener.start_address()) => match agrees {
                    true => coming.await?,
                    false => return Err(refused()),
                },
            }
        };
        let finished = self.finish(pending, arrived.query()).await;
        arrived.answer(finished.is_ok()).await;
        finished.map(drop)
    }
}
