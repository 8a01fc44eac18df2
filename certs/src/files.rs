//! What is served of two files that somebody else replaces, such as cert-manager's Secret as kubelet mounts it.
//!
//! Bytes are compared, never times of change: kubelet swaps a symlink, and a restored file may be older than its
//! predecessor. What cannot be served, or is accepted by nobody yet, changes nothing, and is said once, not at every look.

use jiff::Timestamp;

use crate::{Pair, PairError, Validity};

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
    /// There is nothing to do.
    Unchanged,
    /// Another good pair: serve it from now on.
    Serve(Pair),
    /// Another good pair that nobody accepts at this time, while what is served is accepted: it is kept, and served when
    /// its time has come, or that of the other is over.
    Later(Validity),
    /// Something else than before, and it cannot be served, for this reason: what is served stays.
    Refused(String),
}

/// What was seen so far.
#[derive(Default)]
#[allow(missing_debug_implementations)]
pub struct Watched {
    last: Option<Result<PemFiles, String>>,
    served: Option<Validity>,
    kept: Option<Pair>,
}

impl Watched {
    /// Takes what was read at this time, or why it could not be.
    pub fn look(&mut self, read: Result<PemFiles, String>, now: Timestamp) -> Look {
        if self.last.as_ref() == Some(&read) {
            return match self.kept.take().map(|pair| self.take(pair, now)) {
                None | Some(Look::Later(_)) => Look::Unchanged,
                Some(look) => look,
            };
        }
        let look = match &read {
            Ok(files) => match Pair::from_pem(&files.certificates, &files.key) {
                Ok(pair) => self.take(pair, now),
                Err(error) => refused(error),
            },
            Err(why) => Look::Refused(why.clone()),
        };
        self.last = Some(read);
        look
    }

    fn take(&mut self, pair: Pair, now: Timestamp) -> Look {
        let validity = pair.validity();
        if validity.holds(now) || !self.served.is_some_and(|served| served.holds(now)) {
            self.served = Some(validity);
            self.kept = None;
            Look::Serve(pair)
        } else {
            self.kept = Some(pair);
            Look::Later(validity)
        }
    }
}

fn refused(error: PairError) -> Look {
    Look::Refused(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority, now, pem_pair, pem_pair_of};

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
        assert!(served(&watched.look(Ok(first.clone()), now())).is_some());
        assert!(matches!(watched.look(Ok(first.clone()), now()), Look::Unchanged));
        let certificate = Pair::from_pem(&second.certificates, &second.key).unwrap().certificate().clone();
        assert_eq!(served(&watched.look(Ok(second), now())).unwrap().certificate(), &certificate);
        // Back to the first one: bytes count, not what was newer.
        assert!(served(&watched.look(Ok(first), now())).is_some());
    }

    /// As [`files`], for these years.
    fn files_of(from: i32, until: i32) -> PemFiles {
        let (certificates, key) = pem_pair_of(&authority(now()), (from, until));
        PemFiles { certificates: certificates.into_bytes(), key: key.into_bytes() }
    }

    #[test]
    fn a_pair_that_nobody_accepts_yet_waits_while_what_is_served_is_accepted() {
        let year = |year: i16| format!("{year}-06-01T00:00:00Z").parse::<Timestamp>().unwrap();
        let (mut watched, held, next) = (Watched::default(), files_of(2030, 2032), files_of(2031, 2034));
        assert!(served(&watched.look(Ok(held), year(2030))).is_some());
        assert!(matches!(watched.look(Ok(next.clone()), year(2030)), Look::Later(_)));
        assert!(matches!(watched.look(Ok(next.clone()), year(2030)), Look::Unchanged), "it is said once");
        assert!(served(&watched.look(Ok(next.clone()), year(2031))).is_some(), "its time has come");
        assert!(matches!(watched.look(Ok(next), year(2031)), Look::Unchanged));

        // An old one that somebody has restored; and files that cannot be read meanwhile.
        let old = files_of(2028, 2029);
        assert!(matches!(watched.look(Ok(old), year(2031)), Look::Later(_)));
        assert!(said(&watched.look(Err("no such file".to_owned()), year(2032))).is_some());
        let last = watched.look(Err("no such file".to_owned()), year(2035));
        assert!(served(&last).is_some(), "what was served is over: it is no worse");
    }

    #[test]
    fn without_anything_better_a_pair_that_nobody_accepts_is_served() {
        assert!(served(&Watched::default().look(Ok(files_of(2031, 2032)), now())).is_some());
    }

    #[test]
    fn what_cannot_be_served_is_said_once_and_again_when_it_changes() {
        let (mut watched, good) = (Watched::default(), files());
        watched.look(Ok(good.clone()), now());
        let halves = PemFiles { certificates: good.certificates.clone(), key: files().key };
        let mismatch = watched.look(Ok(halves.clone()), now());
        assert_eq!(said(&mismatch), Some("the private key does not belong to the first certificate"));
        assert!(matches!(watched.look(Ok(halves.clone()), now()), Look::Unchanged));
        let empty = PemFiles { certificates: vec![], key: vec![] };
        assert_eq!(said(&watched.look(Ok(empty), now())), Some("the certificate file holds no certificate in PEM"));
        assert!(said(&watched.look(Ok(halves), now())).is_some());
        assert!(served(&watched.look(Ok(good), now())).is_some());
    }

    #[test]
    fn files_that_cannot_be_read_change_nothing_and_are_said_once() {
        let (mut watched, good) = (Watched::default(), files());
        assert_eq!(said(&watched.look(Err("no such file".to_owned()), now())), Some("no such file"));
        assert!(matches!(watched.look(Err("no such file".to_owned()), now()), Look::Unchanged));
        assert!(served(&watched.look(Ok(good.clone()), now())).is_some());
        assert_eq!(said(&watched.look(Err("no such file".to_owned()), now())), Some("no such file"));
        assert!(served(&watched.look(Ok(good), now())).is_some(), "the same bytes again after a gap");
    }
}
