//! Each rule of the order alone, then whole years of it.

use jiff::SignedDuration;

use super::*;
use crate::testing::{authority, names, now};
use crate::{AUTHORITY_LIFETIME, Authority, CLOCK_SKEW, LEAF_LIFETIME, Leaf};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn issue(authority: &Authority, at: Timestamp) -> Served {
    Served::from(&authority.issue(&names(), at, LEAF_LIFETIME).unwrap())
}

fn configuration(name: &str, trusted: &[&Authority]) -> Configuration {
    let bundle = trusted.iter().fold(Bundle::default(), |bundle, ca| bundle.with(ca.certificate(), now()));
    Configuration { name: name.to_owned(), bundles: vec![bundle] }
}

/// Everything in order: `ca` stored and trusted, a fresh leaf of it served.
fn settled(ca: &Authority) -> View {
    View {
        stored: Stored::Present(ca.certificate().clone()),
        served: Some(issue(ca, now())),
        configurations: vec![configuration("mutating", &[ca]), configuration("validating", &[ca])],
    }
}

#[test]
fn an_absent_secret_gets_an_authority() {
    let view = View { stored: Stored::Absent, ..settled(&authority(now())) };
    assert_eq!(decide(&view, now()), Step::CreateAuthority);
}

#[test]
fn a_secret_that_holds_no_authority_is_replaced_with_its_reason() {
    let view = View { stored: Stored::Unreadable("no key".to_owned()), ..settled(&authority(now())) };
    assert_eq!(decide(&view, now()), Step::ReplaceAuthority(ReplaceReason::Unreadable("no key".to_owned())));
}

#[test]
fn an_expired_authority_is_replaced_before_anything_else() {
    let view = View { served: None, ..settled(&authority(now())) };
    assert_eq!(decide(&view, now() + AUTHORITY_LIFETIME), Step::ReplaceAuthority(ReplaceReason::Expired));
}

#[test]
fn an_authority_is_replaced_at_two_thirds_of_its_life_and_not_earlier() {
    let ca = authority(now());
    let due = ca.certificate().validity().renew_at();
    let view = View { served: Some(issue(&ca, due - HOUR)), ..settled(&ca) };
    assert_eq!(decide(&view, due - SignedDuration::from_secs(1)), Step::WaitUntil(due));
    assert_eq!(decide(&view, due), Step::ReplaceAuthority(ReplaceReason::Due));
}

#[test]
fn when_all_is_in_order_the_next_look_is_when_the_leaf_is_due() {
    let view = settled(&authority(now()));
    let due = view.served.as_ref().unwrap().validity.renew_at();
    assert_eq!(decide(&view, now()), Step::WaitUntil(due));
}

#[test]
fn a_leaf_is_renewed_at_two_thirds_of_its_life_and_not_earlier() {
    let ca = authority(now());
    let view = settled(&ca);
    let due = view.served.as_ref().unwrap().validity.renew_at();
    assert_eq!(decide(&view, due - SignedDuration::from_secs(1)), Step::WaitUntil(due));
    assert_eq!(decide(&view, due), Step::IssueLeaf(LeafReason::Due));
}

#[test]
fn a_renewal_by_the_same_authority_waits_for_no_bundle() {
    let ca = authority(now());
    let mut view = settled(&ca);
    view.configurations.push(configuration("cleared", &[]));
    let due = view.served.as_ref().unwrap().validity.renew_at();
    assert_eq!(decide(&view, due), Step::IssueLeaf(LeafReason::Due));
}

#[test]
fn a_leaf_is_renewed_although_its_authority_is_due_too() {
    let ca = authority(now());
    let late = ca.certificate().validity().renew_at() + HOUR;
    assert_eq!(decide(&settled(&ca), late), Step::IssueLeaf(LeafReason::Due));
}

#[test]
fn a_leaf_that_ends_with_its_authority_is_not_issued_again_and_again() {
    let ca = authority(now());
    let end = ca.certificate().validity().not_after - HOUR;
    let view = View { served: Some(issue(&ca, end)), ..settled(&ca) };
    let due = view.served.as_ref().unwrap().validity.renew_at();
    assert!(due < end + HOUR);
    assert_eq!(decide(&view, due), Step::ReplaceAuthority(ReplaceReason::Due));
}

#[test]
fn a_new_authority_is_in_every_bundle_beside_the_old_one_before_its_leaf_is_served() {
    let (old, new) = (authority(now()), authority(now()));
    let mut view = View {
        stored: Stored::Present(new.certificate().clone()),
        served: Some(issue(&old, now())),
        configurations: vec![configuration("mutating", &[&old, &new]), configuration("validating", &[&old])],
    };
    let both = configuration("validating", &[&old, &new]);
    let publication = Publication { configuration: "validating".to_owned(), ca_bundle: both.bundles[0].clone() };
    assert_eq!(decide(&view, now()), Step::PublishBundle(vec![publication]));

    view.configurations[1] = both;
    assert_eq!(decide(&view, now()), Step::IssueLeaf(LeafReason::SignedByAnother));
}

#[test]
fn the_first_leaf_too_waits_for_the_bundles_that_exist() {
    let ca = authority(now());
    let mut view = View { served: None, ..settled(&ca) };
    assert_eq!(decide(&view, now()), Step::IssueLeaf(LeafReason::NoneServed));

    view.configurations[0] = configuration("mutating", &[]);
    assert!(matches!(decide(&view, now()), Step::PublishBundle(_)));

    view.configurations.clear();
    assert_eq!(decide(&view, now()), Step::IssueLeaf(LeafReason::NoneServed));
}

#[test]
fn a_configuration_one_of_whose_webhooks_lacks_the_authority_is_published() {
    let ca = authority(now());
    let mut view = settled(&ca);
    view.configurations[0].bundles.push(Bundle::default());
    let Step::PublishBundle(publications) = decide(&view, now()) else { panic!("nothing published") };
    assert_eq!(publications.len(), 1);
    assert_eq!(publications[0].configuration, "mutating");
    assert!(publications[0].ca_bundle.holds(ca.certificate()));
}

/// A cluster with one Secret, two configurations and replicas that carry out what is decided.
struct Cluster {
    stored: Option<Authority>,
    configurations: Vec<Configuration>,
    replicas: Vec<Option<Leaf>>,
}

impl Cluster {
    fn view(&self, replica: usize) -> View {
        View {
            stored: self.stored.as_ref().map_or(Stored::Absent, |ca| Stored::Present(ca.certificate().clone())),
            served: self.replicas[replica].as_ref().map(Served::from),
            configurations: self.configurations.clone(),
        }
    }

    fn trusted(&self, leaf: &Leaf) -> bool {
        self.configurations.iter().flat_map(|c| &c.bundles).all(|bundle| bundle.holds(leaf.signer()))
    }

    /// Takes one step for a replica; true when there is nothing to do.
    fn step(&mut self, replica: usize, now: Timestamp) -> bool {
        match decide(&self.view(replica), now) {
            Step::CreateAuthority | Step::ReplaceAuthority(_) => self.stored = Some(authority(now)),
            Step::IssueLeaf(_) => {
                let leaf = self.stored.as_ref().unwrap().issue(&names(), now, LEAF_LIFETIME).unwrap();
                self.replicas[replica] = Some(leaf);
            }
            Step::PublishBundle(publications) => {
                for Publication { configuration, ca_bundle } in publications {
                    let found = self.configurations.iter_mut().find(|held| held.name == configuration).unwrap();
                    found.bundles.fill(ca_bundle);
                }
            }
            Step::WaitUntil(until) => {
                assert!(until > now, "a wait lies in the future");
                return true;
            }
        }
        false
    }
}

#[test]
fn for_three_years_every_replica_serves_a_valid_leaf_that_every_configuration_trusts() {
    let mut cluster = Cluster {
        stored: None,
        configurations: vec![configuration("mutating", &[]), configuration("validating", &[])],
        replicas: vec![None, None],
    };
    let (mut time, end) = (now(), now() + AUTHORITY_LIFETIME * 3);
    while time < end {
        for replica in [0, 1] {
            let steps = (0..8).take_while(|_| !cluster.step(replica, time)).count();
            assert!(steps < 8, "no rest at {time}");
            for leaf in cluster.replicas.iter().flatten() {
                assert!(!leaf.validity().expired(time), "an expired leaf at {time}");
                assert!(cluster.trusted(leaf), "an untrusted leaf at {time}");
            }
        }
        time += HOUR * 5;
    }
    let held = cluster.configurations[0].bundles[0].clone();
    assert_eq!(Bundle::from_pem(&held.to_pem()), held);
    assert!(held.to_pem().len() < 4096, "the bundle does not grow for ever");
}

#[test]
fn replicas_that_take_their_steps_in_turns_never_serve_what_is_not_trusted() {
    let old = Authority::create(now() - AUTHORITY_LIFETIME + HOUR, AUTHORITY_LIFETIME).unwrap();
    let leaf = old.issue(&names(), now() - CLOCK_SKEW, LEAF_LIFETIME).unwrap();
    let mut cluster = Cluster {
        configurations: vec![configuration("mutating", &[&old]), configuration("validating", &[&old])],
        stored: Some(old),
        replicas: vec![Some(leaf.clone()), Some(leaf)],
    };
    let mut idle = 0;
    for turn in 0..40 {
        idle = if cluster.step(turn % 2, now()) { idle + 1 } else { 0 };
        assert!(cluster.replicas.iter().flatten().all(|leaf| cluster.trusted(leaf)), "turn {turn}");
    }
    assert!(idle > 20, "both came to rest");
}
