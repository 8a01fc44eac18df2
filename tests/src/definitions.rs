//! CustomResourceDefinitions of a cluster.

use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};

use crate::{Cluster, wait::eventually};

/// Usually a fifth of a second.
const ESTABLISHED: Duration = Duration::from_secs(30);

impl Cluster {
    /// Applies CustomResourceDefinitions (YAML, one each) and waits until the API server serves them.
    ///
    /// # Errors
    /// The API server refuses one, or does not serve it within 30 s.
    pub async fn add_crds(&self, manifests: &[&str]) -> anyhow::Result<()> {
        let api = Api::<CustomResourceDefinition>::all(self.client().await?);
        let mut names = Vec::new();
        for manifest in manifests {
            let crd: CustomResourceDefinition = serde_saphyr::from_str(manifest).context("read a CRD")?;
            let name = crd.name_any();
            let params = PatchParams::apply("ayatori-tests").force();
            api.patch(&name, &params, &Patch::Apply(&crd)).await.with_context(|| format!("apply the CRD {name}"))?;
            names.push(name);
        }
        for name in names {
            eventually("the API server serves a CRD", ESTABLISHED, async || {
                ensure!(is_established(&api.get(&name).await?), "{name} is not established");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
}
