//! What a kubelet's words on a container that does not start mean (spec E1): pure, from its reason and message.

use super::objects::Waiting;
use crate::backend::StartFailure;

/// The failure that a waiting container shows; None where it is only being made, or says what is not known here.
pub(super) fn of(waiting: &Waiting) -> Option<StartFailure> {
    let words = Words::of(waiting.message.as_deref().unwrap_or_default());
    match waiting.reason.as_deref()? {
        "InvalidImageName" => Some(StartFailure::InvalidImageName),
        "ErrImageNeverPull" => Some(StartFailure::ImageNotPresent),
        "ErrImagePull"
        | "ImagePullBackOff"
        | "RegistryUnavailable"
        | "ImageInspectError"
        | "SignatureValidationFailed" => Some(of_pull(&words)),
        "CreateContainerConfigError"
        | "CreateContainerError"
        | "RunContainerError"
        | "PreCreateHookError"
        | "PreStartHookError"
        | "PostStartHookError" => Some(of_creation(&words)),
        _ => None,
    }
}

fn of_pull(words: &Words) -> StartFailure {
    // What the registry answered says more than the words around it.
    match words.status {
        Some(401 | 403) => return StartFailure::ImagePullDenied,
        Some(404 | 410) => return StartFailure::ImageNotFound,
        Some(_) => return StartFailure::ImagePullError,
        None => {}
    }
    let denied = ["unauthorized", "forbidden", "access denied", "authorization", "authentication", "no basic auth"];
    // The last one: an image that is there, but not for the node's kind of machine.
    let missing = ["notfound", "not found", "manifest unknown", "name unknown", "no match for platform"];
    match () {
        // "repository does not exist or may require authorization": mended by credentials, or never.
        () if words.have(&denied) => StartFailure::ImagePullDenied,
        () if words.have(&missing) => StartFailure::ImageNotFound,
        () => StartFailure::ImagePullError,
    }
}

fn of_creation(words: &Words) -> StartFailure {
    match () {
        () if words.have(&["couldn't find key", "not found"]) => StartFailure::ReferenceMissing,
        () if words.have(&["runasnonroot", "non-root", "no command specified"]) => StartFailure::StartRefused,
        () => StartFailure::StartError,
    }
}

/// The words of a message, without the names that users chose: an image called `not-found` says nothing.
struct Words {
    text: String,
    /// The status that an HTTP server answered.
    status: Option<u16>,
}

impl Words {
    fn of(message: &str) -> Self {
        // Every second part stands between quotation marks.
        let unquoted: String = message.split('"').step_by(2).collect::<Vec<_>>().join(" ");
        // Whatever has a slash or a dot is an address, an image, a host or a path.
        let words: Vec<String> = unquoted
            .split_whitespace()
            .map(|word| word.trim_matches([':', ',', '.']).to_lowercase())
            .filter(|word| !word.contains(['/', '.']))
            .collect();
        let status = words.iter().filter_map(|word| word.parse().ok()).find(|status| (400..600).contains(status));
        Self { text: words.join(" "), status }
    }

    fn have(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.text.contains(phrase))
    }
}

#[cfg(test)]
mod tests {
    use StartFailure::*;

    use super::*;

    fn shown(reason: &str, message: &str) -> Option<StartFailure> {
        of(&Waiting { reason: Some(reason.into()), message: Some(message.into()) })
    }

    /// The texts of a real kubelet 1.36 with containerd 2.4, with names that are as misleading as can be.
    const PULLS: [(&str, StartFailure); 12] = [
        (
            "pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials",
            ImagePullDenied,
        ),
        (
            "unexpected status from HEAD request to http://registry.test:5000/v2/not-found/manifests/503: 401 Unauthorized",
            ImagePullDenied,
        ),
        (
            "unexpected status from HEAD request to https://registry.test/v2/app/manifests/1: 403 Forbidden",
            ImagePullDenied,
        ),
        ("registry.test/unauthorized:404: not found", ImageNotFound),
        (
            "unexpected status from HEAD request to https://registry.test/v2/app/manifests/1: 429 Too Many Requests",
            ImagePullError,
        ),
        (
            "unexpected status from HEAD request to https://registry.test/v2/app/manifests/1: 503 Service Unavailable",
            ImagePullError,
        ),
        (
            "unexpected status from HEAD request to https://registry.test/v2/app/manifests/1: 500 Internal Server Error",
            ImagePullError,
        ),
        (
            "failed to copy: httpReadSeeker: failed open: unexpected status from GET request to https://registry.test/v2/app/blobs/sha256:404: 503 Service Unavailable",
            ImagePullError,
        ),
        (
            "failed to do request: Head \"https://registry.test/v2/not-found/manifests/401\": dial tcp 127.0.0.1:401: connect: connection refused",
            ImagePullError,
        ),
        (
            "failed to do request: Head \"https://forbidden.test/v2/app/manifests/1\": dial tcp: lookup forbidden.test on 10.0.0.10:53: no such host",
            ImagePullError,
        ),
        (
            "failed to do request: Head \"https://registry.test/v2/app/manifests/1\": net/http: timeout awaiting response headers",
            ImagePullError,
        ),
        ("no match for platform in manifest: not found", ImageNotFound),
    ];

    #[test]
    fn a_pull_fails_for_what_the_registry_said_in_both_states_of_the_kubelet() {
        for (error, expected) in PULLS {
            let image = "registry.test/not-found/unauthorized:404";
            let code = if expected == ImageNotFound { "NotFound" } else { "Unknown" };
            let first = format!(
                "rpc error: code = {code} desc = failed to pull and unpack image \"{image}\": failed to resolve image: {error}"
            );
            let later = format!("Back-off pulling image \"{image}\": ErrImagePull: {first}");
            assert_eq!(shown("ErrImagePull", &first), Some(expected), "{first}");
            assert_eq!(shown("ImagePullBackOff", &later), Some(expected), "{later}");
        }
    }

    #[test]
    fn a_container_that_cannot_be_made_fails_for_what_the_kubelet_said() {
        for (reason, message, expected) in [
            ("CreateContainerConfigError", "couldn't find key K in Secret ns/runAsNonRoot", ReferenceMissing),
            ("CreateContainerConfigError", "secret \"non-root\" not found", ReferenceMissing),
            ("CreateContainerConfigError", "configmap \"c\" not found", ReferenceMissing),
            (
                "CreateContainerConfigError",
                "container has runAsNonRoot and image will run as root (pod: \"not found\", container: task)",
                StartRefused,
            ),
            (
                "CreateContainerError",
                "failed to generate container \"c\" spec: failed to generate spec: no command specified",
                StartRefused,
            ),
            ("CreateContainerError", "context deadline exceeded", StartError),
            ("RunContainerError", "", StartError),
            ("InvalidImageName", "couldn't parse image name", InvalidImageName),
            ("ErrImageNeverPull", "Container image \"x\" is not present with pull policy of Never", ImageNotPresent),
        ] {
            assert_eq!(shown(reason, message), Some(expected), "{reason}: {message}");
        }
    }

    #[test]
    fn what_is_only_being_made_or_is_not_known_here_is_no_failure() {
        for reason in ["ContainerCreating", "PodInitializing", "SomethingNew"] {
            assert_eq!(shown(reason, "not found"), None, "{reason}");
        }
        assert_eq!(of(&Waiting { reason: None, message: None }), None);
        // Kubelets before 1.31 do not repeat the error while they back off.
        assert_eq!(shown("ImagePullBackOff", "Back-off pulling image \"registry.test/404:1\""), Some(ImagePullError));
    }
}
