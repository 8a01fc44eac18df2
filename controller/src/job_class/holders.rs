//! The Jobs that hold a class, read live before its finalizer goes.

use ayatori_crds::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client, Resource, api::ListParams};
use serde::{Deserialize, Serialize};

use crate::{
    call::{CallError, bounded},
    stores::job_index::{Holders, TOLD},
};

/// Jobs that one call reads.
const PAGE: u32 = 500;

/// A Job with only the class that it was accepted with.
#[derive(Resource, Serialize, Deserialize, Clone, Debug, Default)]
#[resource(inherit = Job)]
struct Unfinished {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Accepted,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct Accepted {
    resolved_job_class: Option<Resolved>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
struct Resolved {
    uid: String,
}

/// The Jobs that are not over and hold the class with this UID. All Jobs that are not over are read: it is done once for
/// each class that is deleted.
pub(super) async fn live(client: &Client, class_uid: &str) -> Result<Holders, CallError> {
    let jobs = Api::<Unfinished>::all(client.clone());
    let mut page = ListParams::default().fields("status.completionTime=").limit(PAGE);
    let mut holders = Holders::default();
    loop {
        let list = bounded(jobs.list(&page)).await?;
        for job in &list.items {
            if job.status.resolved_job_class.as_ref().is_some_and(|class| class.uid == class_uid) {
                holders.count += 1;
                if holders.first.len() < TOLD {
                    let (namespace, name) = (&job.metadata.namespace, &job.metadata.name);
                    holders.first.push(format!(
                        "{}/{}",
                        namespace.as_deref().unwrap_or_default(),
                        name.as_deref().unwrap_or_default()
                    ));
                }
            }
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(holders),
        }
    }
}
