//! What is served of two files that somebody else replaces, such as cert-manager's Secret as kubelet mounts it.
//!
//! Bytes are compared, never times of change: kubelet swaps a symlink, and a restored file may be older than its
//! predecessor. What cannot be served changes nothing, and is said once, not at every look.

use crate::{Pair, PairError};

/// The bytes of one look. No `Debug`: half of them are a key.
#[derive(Clone, PartialEq, Eq)]
#[allow(missing_debug_implementations)]
pub struct PemFiles {
    /// The chain, the serving certificate first.
    pub certificates: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

/// What a look leads to.
#[derive(Debug, Clone)]
pub enum Look {
    /// The files are as they were at the look before.
    Unchanged,
    /// Another good pair: serve it from now on.
    Serve(Pair),
    /// Something else than before, and it cannot be served, for this reason: what is served stays.
    Refused(String),
}

/// What was seen at the last look.
#[derive(Default)]
#[allow(missing_debug_implementations)]
pub struct Watched {
    last: Option<Result<PemFiles, String>>,
}

impl Watched {
    /// Takes what was read, or why it could not be.
    pub fn look(&mut self, read: Result<PemFiles, String>) -> Look {
        if self.last.as_ref() == Some(&read) {
            return Look::Unchanged;
        }
        let look = match &read {
            Ok(files) => match Pair::from_pem(&files.certificates, &files.key) {
                Ok(pair) => Look::Serve(pair),
                Err(error) => refused(error),
            },
            Err(why) => Look::Refused(why.clone()),
        };
        self.last = Some(read);
        look
    }
}

fn refused(error: PairError) -> Look {
    Look::Refused(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority, now, pem_pair};

    fn files() -> PemFiles {
        let (certificates, key) = pem_pair(&authority(now()));
        PemFiles { certificates: certificates.into_bytes(), key: key.into_bytes() }
    }

    fn served(look: &Look) -> Option<&Pair> {
        if let Look::Serve(pair) = look { Some(pair) } else { None }
    }

    fn said(look: &Look) -> Option<&str> {
        if let Look::Refused(why) = look { Some(why) } else { None }
    }

    #[test]
    fn a_pair_is_served_once_until_other_bytes_come() {
        let (mut watched, first, second) = (Watched::default(), files(), files());
        assert!(served(&watched.look(Ok(first.clone()))).is_some());
        assert!(matches!(watched.look(Ok(first.clone())), Look::Unchanged));
        let certificate = Pair::from_pem(&second.certificates, &second.key).unwrap().certificate().clone();
        assert_eq!(served(&watched.look(Ok(second))).unwrap().certificate(), &certificate);
        // Back to the first one: bytes count, not what was newer.
        assert!(served(&watched.look(Ok(first))).is_some());
    }

    #[test]
    fn what_cannot_be_served_is_said_once_and_again_when_it_changes() {
        let (mut watched, good) = (Watched::default(), files());
        watched.look(Ok(good.clone()));
        let halves = PemFiles { certificates: good.certificates.clone(), key: files().key };
        let mismatch = watched.look(Ok(halves.clone()));
        assert_eq!(said(&mismatch), Some("the private key does not belong to the first certificate"));
        assert!(matches!(watched.look(Ok(halves.clone())), Look::Unchanged));
        let empty = PemFiles { certificates: vec![], key: vec![] };
        assert_eq!(said(&watched.look(Ok(empty))), Some("the certificate file holds no certificate in PEM"));
        assert!(said(&watched.look(Ok(halves))).is_some());
        assert!(served(&watched.look(Ok(good))).is_some());
    }

    #[test]
    fn files_that_cannot_be_read_change_nothing_and_are_said_once() {
        let (mut watched, good) = (Watched::default(), files());
        assert_eq!(said(&watched.look(Err("no such file".to_owned()))), Some("no such file"));
        assert!(matches!(watched.look(Err("no such file".to_owned())), Look::Unchanged));
        assert!(served(&watched.look(Ok(good.clone()))).is_some());
        assert_eq!(said(&watched.look(Err("no such file".to_owned()))), Some("no such file"));
        assert!(served(&watched.look(Ok(good))).is_some(), "the same bytes again after a gap");
    }
}
