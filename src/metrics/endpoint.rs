//! One request for the metrics: path, method, who asks, and the page.

use std::sync::Arc;

use ayatori_webhook::Handler;
use futures::{FutureExt, future::BoxFuture};
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use prometheus_client::{
    encoding::prometheus_text::{CONTENT_TYPE as PROMETHEUS_TEXT, encode},
    registry::Registry,
};
use tokio::task::spawn_blocking;

use super::{access::Access, remembered::Verdict};

/// The one page.
pub(super) const PATH: &str = "/metrics";

/// Serves the registry to whom the cluster allows it, or to anybody.
pub(super) struct Endpoint {
    registry: Arc<Registry>,
    access: Option<Access>,
}

/// Why there is no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Path,
    Method,
    NoToken,
    UnknownToken,
    Forbidden,
    NoAnswer,
    Broken,
}

impl Endpoint {
    /// Without access control where `access` is None.
    pub(super) fn new(registry: Registry, access: Option<Access>) -> Self {
        Self { registry: Arc::new(registry), access }
    }

    /// The answer to `request`, whatever it is; its body is not read.
    pub(super) async fn answer_to<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        match self.page(request).await {
            Ok(page) => {
                let mut response = Response::new(Full::from(page));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROMETHEUS_TEXT));
                response
            }
            Err(refusal) => refusal.into_response(),
        }
    }

    async fn page<B>(&self, request: &Request<B>) -> Result<String, Refusal> {
        if request.uri().path() != PATH {
            return Err(Refusal::Path);
        }
        if request.method() != Method::GET {
            return Err(Refusal::Method);
        }
        if let Some(access) = &self.access {
            let token = bearer_token(request.headers()).ok_or(Refusal::NoToken)?;
            match access.of(token, PATH).await {
                Ok(Verdict::Allowed) => {}
                Ok(Verdict::Forbidden) => return Err(Refusal::Forbidden),
                Ok(Verdict::Unknown) => return Err(Refusal::UnknownToken),
                Err(error) => {
                    tracing::warn!("cannot find out who may read the metrics: {error:#}");
                    return Err(Refusal::NoAnswer);
                }
            }
        }
        let registry = Arc::clone(&self.registry);
        // All Jobs are counted for it, of which there may be many.
        let text = spawn_blocking(move || {
            let mut text = String::new();
            encode(&mut text, &registry).map(|()| text)
        });
        text.await.ok().and_then(Result::ok).ok_or(Refusal::Broken)
    }
}

impl Handler for Endpoint {
    fn answer(&self, request: Request<Incoming>) -> BoxFuture<'_, Response<Full<Bytes>>> {
        async move { self.answer_to(&request).await }.boxed()
    }
}

/// The token of `Authorization: Bearer TOKEN`.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

impl Refusal {
    fn into_response(self) -> Response<Full<Bytes>> {
        let plain = |status, text| (status, text, None);
        let with =
            |status, text, name: HeaderName, value| (status, text, Some((name, HeaderValue::from_static(value))));
        let (status, text, header) = match self {
            Self::Path => plain(StatusCode::NOT_FOUND, "there is nothing at this path: the metrics are at /metrics\n"),
            Self::Method => with(StatusCode::METHOD_NOT_ALLOWED, "only GET is served here\n", ALLOW, "GET"),
            Self::NoToken => with(
                StatusCode::UNAUTHORIZED,
                "a token of this cluster is needed: Authorization: Bearer TOKEN\n",
                WWW_AUTHENTICATE,
                "Bearer",
            ),
            Self::UnknownToken => with(
                StatusCode::UNAUTHORIZED,
                "the cluster does not know this token\n",
                WWW_AUTHENTICATE,
                "Bearer error=\"invalid_token\"",
            ),
            Self::Forbidden => plain(
                StatusCode::FORBIDDEN,
                "the bearer of this token may not get the URL /metrics: bind it to a ClusterRole that may\n",
            ),
            Self::NoAnswer => with(
                StatusCode::SERVICE_UNAVAILABLE,
                "the API server does not tell who may read the metrics; try again\n",
                RETRY_AFTER,
                "1",
            ),
            Self::Broken => plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n"),
        };
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response.headers_mut().extend(header);
        response
    }
}
