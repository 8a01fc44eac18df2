//! Each rule of the order alone; what comes of them together is in `model`.

use jiff::SignedDuration;

use super::*;
use crate::testing::{authority, names, now};
use crate::{AUTHORITY_LIFETIME, Authority, LEAF_LIFETIME};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const SETTLE: SignedDuration = SignedDuration::from_secs(10);

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
        trusted: Some(Trusted { authority: ca.certificate().clone(), since: now() }),
    }
}

#[test]
fn an_absent_secret_gets_an_authority() {
    let view = View { stored: Stored::Absent, ..settled(&authority(now())) };
    assert_eq!(decide(&view, SETTLE, now()), Step::CreateAuthority);
}

#[test]
fn a_secret_that_holds_no_authority_is_replaced_with_its_reason() {
    let view = View { stored: Stored::Unreadable("no key".to_owned()), ..settled(&authority(now())) };
    assert_eq!(decide(&view, SETTLE, now()), Step::ReplaceAuthority(ReplaceReason::Unreadable("no key".to_owned())));
}

#[test]
fn an_expired_authority_is_replaced_before_anything_else() {
    let view = View { served: None, ..settled(&authority(now())) };
    assert_eq!(decide(&view, SETTLE, now() + AUTHORITY_LIFETIME), Step::ReplaceAuthority(ReplaceReason::Expired));
}

#[test]
fn an_authority_is_replaced_at_two_thirds_of_its_life_and_not_earlier() {
    let ca = authority(now());
    let due = ca.certificate().validity().renew_at();
    let view = View { served: Some(issue(&ca, due - HOUR)), ..settled(&ca) };
    assert_eq!(decide(&view, SETTLE, due - SignedDuration::from_secs(1)), Step::WaitUntil(due));
    assert_eq!(decide(&view, SETTLE, due), Step::ReplaceAuthority(ReplaceReason::Due));
}

#[test]
fn when_all_is_in_order_the_next_look_is_when_the_leaf_is_due() {
    let view = settled(&authority(now()));
    let due = view.served.as_ref().unwrap().validity.renew_at();
    assert_eq!(decide(&view, SETTLE, now()), Step::WaitUntil(due));
}

#[test]
fn a_leaf_is_renewed_at_two_thirds_of_its_life_and_not_earlier() {
    let ca = authority(now());
    let view = settled(&ca);
    let due = view.served.as_ref().unwrap().validity.renew_at();
    assert_eq!(decide(&view, SETTLE, due - SignedDuration::from_secs(1)), Step::WaitUntil(due));
    assert_eq!(decide(&view, SETTLE, due), Step::IssueLeaf(LeafReason::Due));
}

#[test]
fn a_renewal_by_the_same_authority_waits_for_no_bundle() {
    let ca = authority(now());
    let mut view = settled(&ca);
    view.configurations.push(configuration("cleared", &[]));
    let due = view.served.as_ref().unwrap().validity.renew_at();
    assert_eq!(decide(&view, SETTLE, due), Step::IssueLeaf(LeafReason::Due));
}

#[test]
fn a_leaf_is_renewed_although_its_authority_is_due_too() {
    let ca = authority(now());
    let late = ca.certificate().validity().renew_at() + HOUR;
    assert_eq!(decide(&settled(&ca), SETTLE, late), Step::IssueLeaf(LeafReason::Due));
}

#[test]
fn a_leaf_that_ends_with_its_authority_is_not_issued_again_and_again() {
    let ca = authority(now());
    let end = ca.certificate().validity().not_after - HOUR;
    let view = View { served: Some(issue(&ca, end)), ..settled(&ca) };
    let due = view.served.as_ref().unwrap().validity.renew_at();
    assert!(due < end + HOUR);
    assert_eq!(decide(&view, SETTLE, due), Step::ReplaceAuthority(ReplaceReason::Due));
}

#[test]
fn a_new_authority_is_in_every_bundle_beside_the_old_one_before_its_leaf_is_served() {
    let (old, new) = (authority(now()), authority(now()));
    let mut view = View {
        stored: Stored::Present(new.certificate().clone()),
        served: Some(issue(&old, now())),
        configurations: vec![configuration("mutating", &[&old, &new]), configuration("validating", &[&old])],
        trusted: None,
    };
    let both = configuration("validating", &[&old, &new]);
    let publication = Publication { configuration: "validating".to_owned(), ca_bundle: both.bundles[0].clone() };
    assert_eq!(decide(&view, SETTLE, now()), Step::PublishBundle(vec![publication]));

    view.configurations[1] = both;
    view.trusted = Trusted::after(None, &view.stored, &view.configurations, now());
    assert_eq!(decide(&view, SETTLE, now()), Step::WaitUntil(now() + SETTLE), "API servers see it a moment later");
    assert_eq!(decide(&view, SETTLE, now() + SETTLE), Step::IssueLeaf(LeafReason::SignedByAnother));
}

#[test]
fn what_nobody_accepts_any_more_is_replaced_without_waiting_for_the_bundles_to_be_seen() {
    let (old, new) = (authority(now()), authority(now()));
    let expired = Served::from(&old.issue(&names(), now(), HOUR).unwrap());
    let later = now() + HOUR;
    let view = View {
        stored: Stored::Present(new.certificate().clone()),
        served: Some(expired),
        configurations: vec![configuration("mutating", &[&old, &new])],
        trusted: Some(Trusted { authority: new.certificate().clone(), since: later }),
    };
    assert_eq!(decide(&view, SETTLE, later), Step::IssueLeaf(LeafReason::SignedByAnother));
}

#[test]
fn trust_is_remembered_from_its_first_look_and_forgotten_when_it_is_gone() {
    let (ca, other) = (authority(now()), authority(now()));
    let view = settled(&ca);
    let first = Trusted::after(None, &view.stored, &view.configurations, now());
    let again = Trusted::after(first.clone(), &view.stored, &view.configurations, now() + HOUR);
    assert_eq!((again.as_ref(), again.as_ref().unwrap().since), (first.as_ref(), now()));

    let emptied = [configuration("mutating", &[&ca]), configuration("validating", &[&other])];
    assert_eq!(Trusted::after(first.clone(), &view.stored, &emptied, now()), None);
    assert_eq!(Trusted::after(first.clone(), &Stored::Absent, &view.configurations, now()), None);

    let replaced = Stored::Present(other.certificate().clone());
    let both = [configuration("mutating", &[&ca, &other])];
    let new = Trusted::after(first.clone(), &replaced, &both, now() + HOUR).unwrap();
    assert_eq!((&new.authority, new.since), (other.certificate(), now() + HOUR));

    let set_back = Trusted::after(first, &view.stored, &view.configurations, now() - HOUR).unwrap();
    assert_eq!(set_back.since, now() - HOUR);
}

#[test]
fn a_bundle_that_lost_the_authority_of_what_is_served_gets_it_back() {
    let (old, new) = (authority(now()), authority(now()));
    let mut view = View {
        stored: Stored::Present(new.certificate().clone()),
        served: Some(issue(&old, now())),
        configurations: vec![configuration("mutating", &[&new]), configuration("validating", &[&old, &new])],
        trusted: None,
    };
    let ca_bundle = configuration("mutating", &[&new, &old]).bundles[0].clone();
    let publication = Publication { configuration: "mutating".to_owned(), ca_bundle };
    assert_eq!(decide(&view, SETTLE, now()), Step::PublishBundle(vec![publication]));

    // When it has expired nobody serves a leaf of it, and it is not asked for again.
    view.configurations.truncate(1);
    let end = old.certificate().validity().not_after;
    let new = Authority::create(end, AUTHORITY_LIFETIME).unwrap();
    view.stored = Stored::Present(new.certificate().clone());
    view.configurations = vec![configuration("mutating", &[&new])];
    assert_eq!(decide(&view, SETTLE, end), Step::IssueLeaf(LeafReason::SignedByAnother));
}

#[test]
fn what_a_clock_ahead_of_ours_has_made_is_made_again() {
    let ca = authority(now());
    let before = ca.certificate().validity().not_before - HOUR;
    assert_eq!(decide(&settled(&ca), SETTLE, before), Step::ReplaceAuthority(ReplaceReason::NotYetValid));

    let view = View { served: Some(issue(&ca, now() + HOUR * 24)), ..settled(&ca) };
    assert_eq!(decide(&view, SETTLE, now()), Step::IssueLeaf(LeafReason::NotYetValid));
}

#[test]
fn the_first_leaf_too_waits_for_the_bundles_that_exist() {
    let ca = authority(now());
    let mut view = View { served: None, ..settled(&ca) };
    assert_eq!(decide(&view, SETTLE, now()), Step::IssueLeaf(LeafReason::NoneServed));

    view.configurations[0] = configuration("mutating", &[]);
    assert!(matches!(decide(&view, SETTLE, now()), Step::PublishBundle(_)));

    view.configurations.clear();
    assert_eq!(decide(&view, SETTLE, now()), Step::IssueLeaf(LeafReason::NoneServed));
}

#[test]
fn a_configuration_one_of_whose_webhooks_lacks_the_authority_is_published() {
    let ca = authority(now());
    let mut view = settled(&ca);
    view.configurations[0].bundles.push(Bundle::default());
    let Step::PublishBundle(publications) = decide(&view, SETTLE, now()) else { panic!("nothing published") };
    assert_eq!(publications.len(), 1);
    assert_eq!(publications[0].configuration, "mutating");
    assert!(publications[0].ca_bundle.holds(ca.certificate()));
}
