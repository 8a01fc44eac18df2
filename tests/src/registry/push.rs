//! Giving an image to a registry, by the distribution API.

use anyhow::{Context, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Request, Response, Uri, header, request};
use hyper::body::Bytes;

use super::{Access, PASSWORD, Registry, USER, http_client};
use crate::Image;

impl Registry {
    /// Stores an image under the repository and the tag in its name; the host there is only the node's.
    ///
    /// # Errors
    /// The name is no `HOST/REPOSITORY:TAG`, or the registry refuses something.
    pub async fn push(&self, image: &Image) -> anyhow::Result<()> {
        let parts = image.name().split_once('/').and_then(|(_, rest)| rest.rsplit_once(':'));
        let (repository, tag) = parts.with_context(|| format!("{} is no HOST/REPOSITORY:TAG", image.name()))?;
        let contents = image.contents()?;
        for (digest, blob) in contents.blobs {
            self.push_blob(repository, &digest, blob).await.with_context(|| format!("push {digest}"))?;
        }
        let put = Request::put(format!("/v2/{repository}/manifests/{tag}"));
        let put = put.header(header::CONTENT_TYPE, crate::image::MANIFEST);
        accepted(&self.send(put, contents.manifest).await?).context("push the manifest")
    }

    async fn push_blob(&self, repository: &str, digest: &str, blob: Vec<u8>) -> anyhow::Result<()> {
        let begun = self.send(Request::post(format!("/v2/{repository}/blobs/uploads/")), Vec::new()).await?;
        accepted(&begun)?;
        let location: Uri = begun.headers().get(header::LOCATION).context("no location")?.to_str()?.parse()?;
        let upload = location.path_and_query().context("a location without a path")?.as_str();
        let separator = if upload.contains('?') { '&' } else { '?' };
        let put = Request::put(format!("{upload}{separator}digest={digest}"));
        accepted(&self.send(put, blob).await?)
    }

    /// Sends a request, with the password where one is needed.
    pub(super) async fn send(&self, request: request::Builder, body: Vec<u8>) -> anyhow::Result<Response<Bytes>> {
        let mut request = request.header(header::HOST, self.address.to_string());
        if self.access == Access::Guarded {
            let login = STANDARD.encode(format!("{USER}:{PASSWORD}"));
            request = request.header(header::AUTHORIZATION, format!("Basic {login}"));
        }
        http_client::send(&self.network, self.address, request.body(body.into())?).await
    }
}

fn accepted(answer: &Response<Bytes>) -> anyhow::Result<()> {
    ensure!(answer.status().is_success(), "{}: {}", answer.status(), String::from_utf8_lossy(answer.body()));
    Ok(())
}
