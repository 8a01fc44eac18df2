//! What keeps a released task from starting while the backend goes on trying, and how much patience it deserves
//! (spec E1).

use ayatori_crds::conditions::reason;

/// Why the main process could not be started so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartFailure {
    /// The image's name is none.
    InvalidImageName,
    /// The registry has no such image.
    ImageNotFound,
    /// The class never pulls, and the image is not where the task would run.
    ImageNotPresent,
    /// The registry asks for credentials, or for better ones.
    ImagePullDenied,
    /// The pull failed for any other cause: busy, away, too slow, no space.
    ImagePullError,
    /// A Secret, a ConfigMap or a key of one is missing, although it may have been there at acceptance.
    ReferenceMissing,
    /// The task is refused as it was asked for, for example an image that runs as root where none may.
    StartRefused,
    /// It could not be made for any other cause.
    StartError,
}

/// Whether waiting may cure it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Hardly ever.
    Permanent,
    /// Where somebody mends the credentials.
    Authorization,
    /// It often does.
    Transient,
}

impl StartFailure {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::InvalidImageName,
        Self::ImageNotFound,
        Self::ImageNotPresent,
        Self::ImagePullDenied,
        Self::ImagePullError,
        Self::ReferenceMissing,
        Self::StartRefused,
        Self::StartError,
    ];

    /// The reason of the condition `Stalled`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::InvalidImageName => reason::INVALID_IMAGE_NAME,
            Self::ImageNotFound => reason::IMAGE_NOT_FOUND,
            Self::ImageNotPresent => reason::IMAGE_NOT_PRESENT,
            Self::ImagePullDenied => reason::IMAGE_PULL_DENIED,
            Self::ImagePullError => reason::IMAGE_PULL_ERROR,
            Self::ReferenceMissing => reason::REFERENCE_MISSING,
            Self::StartRefused => reason::START_REFUSED,
            Self::StartError => reason::START_ERROR,
        }
    }

    /// The one that a condition `Stalled` names.
    #[must_use]
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|failure| failure.reason() == reason)
    }

    /// The reason of the condition `Succeeded`, once it is given up.
    #[must_use]
    pub const fn verdict(self) -> &'static str {
        match self {
            Self::InvalidImageName
            | Self::ImageNotFound
            | Self::ImageNotPresent
            | Self::ImagePullDenied
            | Self::ImagePullError => reason::IMAGE_PULL_FAILED,
            Self::ReferenceMissing | Self::StartRefused | Self::StartError => reason::START_FAILED,
        }
    }

    /// Whether waiting may cure it.
    #[must_use]
    pub const fn nature(self) -> Nature {
        match self {
            Self::InvalidImageName | Self::ImageNotFound | Self::ImageNotPresent | Self::StartRefused => {
                Nature::Permanent
            }
            Self::ImagePullDenied => Nature::Authorization,
            Self::ImagePullError | Self::ReferenceMissing | Self::StartError => Nature::Transient,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_again_by_its_reason_which_is_in_the_list_of_the_api() {
        for failure in StartFailure::ALL {
            assert_eq!(StartFailure::of_reason(failure.reason()), Some(failure));
            assert!(reason::ALL.contains(&failure.reason()), "{failure:?}");
        }
        assert_eq!(StartFailure::of_reason(reason::PROGRESSING), None);
    }
}
