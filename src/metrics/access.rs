//! Who may read the metrics: the cluster says (spec J4), by a TokenReview and a SubjectAccessReview, as it does for
//! everything that is built on controller-runtime.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use ayatori_controller::call::bounded;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::{sync::Semaphore, time::timeout};

use super::remembered::{Key, Remembered, Verdict};

/// For both questions. Prometheus itself gives up after 10 s.
const ANSWERED: Duration = Duration::from_secs(5);
/// Tokens that are asked about at the same time: whoever sends many does not reach the API server with all of them.
const AT_ONCE: usize = 4;

/// Asks the API server, and believes its answers for a while.
pub(super) struct Access {
    client: Client,
    remembered: Mutex<Remembered>,
    room: Semaphore,
}

impl Access {
    pub(super) fn new(client: Client) -> Self {
        Self { client, remembered: Mutex::default(), room: Semaphore::new(AT_ONCE) }
    }

    /// Whether the bearer of this token may `get` this path.
    ///
    /// # Errors
    /// Where the API server gives no answer in time, or does not let us ask. Failures are not remembered.
    pub(super) async fn of(&self, token: &str, path: &str) -> Result<Verdict> {
        let key = Key::of(token);
        if let Some(verdict) = self.remembered().get(key, Instant::now()) {
            return Ok(verdict);
        }
        let verdict = timeout(ANSWERED, self.ask(token, path)).await.context("no answer in time")??;
        self.remembered().put(key, verdict, Instant::now());
        Ok(verdict)
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, token: &str, path: &str) -> Result<Verdict> {
        let _room = self.room.acquire().await?;
        let Some(user) = self.bearer(token).await.context("cannot review the token")? else {
            return Ok(Verdict::Unknown);
        };
        let may = self.may(user, path).await.context("cannot review the access")?;
        Ok(if may { Verdict::Allowed } else { Verdict::Forbidden })
    }

    /// Whose token it is.
    async fn bearer(&self, token: &str) -> Result<Option<UserInfo>> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews = Api::<TokenReview>::all(self.client.clone());
        let status = bounded(reviews.create(&PostParams::default(), &review)).await?.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn may(&self, user: UserInfo, path: &str) -> Result<bool> {
        let get = NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
        let spec = SubjectAccessReviewSpec {
            non_resource_attributes: Some(get),
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let status = bounded(reviews.create(&PostParams::default(), &review)).await?.status;
        Ok(status.is_some_and(|status| status.allowed))
    }
}
