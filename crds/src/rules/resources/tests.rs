use proptest::prelude::*;

use super::*;
use crate::rules::FieldErrorKind;

/// `"rc=1 lm=2Gi"`: r = requests, l = limits, c = cpu, m = memory.
fn parse(text: &str) -> ResourceRequirements {
    let mut all = ResourceRequirements::default();
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap();
        let figure = match key {
            "rc" => Figure::RequestsCpu,
            "rm" => Figure::RequestsMemory,
            "lc" => Figure::LimitsCpu,
            "lm" => Figure::LimitsMemory,
            other => panic!("{other}"),
        };
        all.set(figure, Quantity::from(value));
    }
    all
}

fn policy(defaults: &str, minimum: &str, maximum: &str) -> ResourcePolicy {
    ResourcePolicy { defaults: Some(parse(defaults)), minimum: Some(parse(minimum)), maximum: Some(parse(maximum)) }
}

fn told(result: Result<ResourceRequirements, Vec<FieldError>>) -> Vec<String> {
    result.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn given_wins_over_default_and_an_absent_request_takes_the_limit() {
    let policy = policy("rc=250m lm=1Gi", "", "");
    let outcome = effective(Some(&parse("lc=2")), Some(&policy), "c").unwrap();
    assert_eq!(outcome, parse("rc=250m lc=2 lm=1Gi rm=1Gi"));
    assert_eq!(effective(None, None, "c").unwrap(), ResourceRequirements::default());
}

#[test]
fn every_fault_is_told_at_once() {
    let policy = policy("", "rc=100m", "lc=4 lm=8Gi");
    let asked = parse("rc=50m lc=8 rm=0.5 lm=1");
    assert_eq!(
        told(effective(Some(&asked), Some(&policy), "small")),
        [
            r#"spec.resources.requests.cpu: Invalid value: "50m": must be at least 100m, the minimum of JobClass "small""#,
            r#"spec.resources.requests.memory: Invalid value: "0.5": must be whole bytes"#,
            r#"spec.resources.limits.cpu: Invalid value: "8": must be at most 4, the maximum of JobClass "small""#,
        ]
    );
}

#[test]
fn a_bounded_figure_that_is_absent_is_a_fault_and_never_unbounded() {
    let policy = policy("", "", "lc=4 lm=8Gi");
    assert_eq!(
        told(effective(Some(&parse("lc=1")), Some(&policy), "small")),
        [r#"spec.resources.limits.memory: Required value: must be at most 8Gi, of JobClass "small""#]
    );
}

#[test]
fn a_limit_of_0_is_none_and_so_a_fault() {
    let none = "must be more than 0, as a limit of 0 is no limit";
    assert_eq!(
        told(effective(Some(&parse("rc=0 rm=0 lc=0 lm=0")), Some(&policy("", "", "lc=2 lm=1Gi")), "small")),
        ["cpu", "memory"].map(|name| format!(r#"spec.resources.limits.{name}: Invalid value: "0": {none}"#))
    );
    assert_eq!(told(effective(Some(&parse("rc=0 rm=0 lc=1m lm=1")), None, "small")), [""; 0], "requests may be 0");
    let told: Vec<_> = policy_errors(&policy("lc=0", "", "lm=0m")).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            format!(r#"spec.resources.defaults.limits.cpu: Invalid value: "0": {none}"#),
            format!(r#"spec.resources.maximum.limits.memory: Invalid value: "0m": {none}"#),
        ]
    );
}

#[test]
fn a_request_over_its_limit_is_refused_whoever_gave_them() {
    assert_eq!(
        told(effective(Some(&parse("rc=2")), Some(&policy("lc=1", "", "")), "c")),
        [r#"spec.resources.requests.cpu: Invalid value: "2": must be at most 1, its limit"#]
    );
}

#[test]
fn bounds_are_inclusive_and_compare_by_value() {
    let policy = policy("", "rc=1", "rc=2");
    for good in ["rc=1000m", "rc=2000m", "rc=1.5", "rc=2"] {
        assert_eq!(told(effective(Some(&parse(good)), Some(&policy), "c")), [""; 0], "{good}");
    }
    for bad in ["rc=999m", "rc=2001m"] {
        assert_eq!(told(effective(Some(&parse(bad)), Some(&policy), "c")).len(), 1, "{bad}");
    }
}

#[test]
fn faults_of_a_policy_name_the_field_to_mend() {
    for (policy, expected) in [
        (
            policy("", "rc=2", "rc=1"),
            r#"spec.resources.minimum.requests.cpu: Invalid value: "2": must be at most 1, the maximum"#,
        ),
        (
            policy("rc=1", "rc=2", ""),
            r#"spec.resources.defaults.requests.cpu: Invalid value: "1": must be at least 2, the minimum"#,
        ),
        (
            policy("rc=3", "", "rc=2"),
            r#"spec.resources.defaults.requests.cpu: Invalid value: "3": must be at most 2, the maximum"#,
        ),
        (
            policy("rm=2Gi lm=1Gi", "", ""),
            r#"spec.resources.defaults.requests.memory: Invalid value: "2Gi": must be at most 1Gi, its limit"#,
        ),
        (
            policy("lc=2", "", "rc=1"),
            r#"spec.resources.defaults.limits.cpu: Invalid value: "2": must be at most 1, the maximum of requests.cpu"#,
        ),
        (
            policy("lc=1", "rc=2", ""),
            r#"spec.resources.defaults.limits.cpu: Invalid value: "1": must be at least 2, the minimum of requests.cpu"#,
        ),
        (
            policy("", "rm=2Gi", "lm=1Gi"),
            r#"spec.resources.minimum.requests.memory: Invalid value: "2Gi": must be at most 1Gi, the maximum of limits.memory"#,
        ),
        (
            policy("", "", "lc=0.5m"),
            r#"spec.resources.maximum.limits.cpu: Invalid value: "0.5m": must not be finer than 1m"#,
        ),
    ] {
        let told: Vec<String> = policy_errors(&policy).iter().map(ToString::to_string).collect();
        assert_eq!(told, [expected]);
    }
    assert_eq!(policy_errors(&policy("rc=1 lc=1", "rc=1", "rc=1 lc=1")), []);
    assert_eq!(policy_errors(&policy("rc=1 lc=2", "", "rc=1")), [], "a request that has a default takes that");
}

fn figures() -> impl Strategy<Value = ResourceRequirements> {
    let quantity = || proptest::option::of((0_u32..2000).prop_map(|milli| Quantity(format!("{milli}m"))));
    (quantity(), quantity()).prop_map(|(request, limit)| {
        let mut all = ResourceRequirements::default();
        if let Some(request) = request {
            all.set(Figure::RequestsCpu, request);
        }
        if let Some(limit) = limit {
            all.set(Figure::LimitsCpu, limit);
        }
        all
    })
}

proptest! {
    /// A Job that asks for nothing is at most told what to ask for: no value that it has not given is held against it.
    #[test]
    fn the_defaults_of_a_sound_policy_break_none_of_its_bounds(
        defaults in figures(), minimum in figures(), maximum in figures()
    ) {
        let policy = ResourcePolicy { defaults: Some(defaults), minimum: Some(minimum), maximum: Some(maximum) };
        if policy_errors(&policy).is_empty() {
            let faults = effective(None, Some(&policy), "c").err().unwrap_or_default();
            prop_assert!(faults.iter().all(|fault| fault.kind == FieldErrorKind::Required), "{faults:?}");
        }
    }

    /// What is accepted lies within every bound, and nothing that was given was altered (an independent check).
    #[test]
    fn what_is_accepted_keeps_every_promise(
        asked in figures(), defaults in figures(), minimum in figures(), maximum in figures()
    ) {
        let policy = ResourcePolicy {
            defaults: Some(defaults), minimum: Some(minimum.clone()), maximum: Some(maximum.clone()),
        };
        if let Ok(outcome) = effective(Some(&asked), Some(&policy), "c") {
            for figure in [Figure::RequestsCpu, Figure::LimitsCpu] {
                let amount = |r: &ResourceRequirements| r.get(figure).map(|q| q.amount().unwrap());
                if let Some(given) = asked.get(figure) {
                    prop_assert_eq!(outcome.get(figure), Some(given));
                }
                if let Some(low) = amount(&minimum) { prop_assert!(amount(&outcome).unwrap() >= low); }
                if let Some(high) = amount(&maximum) { prop_assert!(amount(&outcome).unwrap() <= high); }
            }
            let cpu = |figure| outcome.get(figure).map(|q| q.amount().unwrap());
            if let (Some(request), Some(limit)) = (cpu(Figure::RequestsCpu), cpu(Figure::LimitsCpu)) {
                prop_assert!(request <= limit);
            }
            prop_assert!(cpu(Figure::LimitsCpu).is_none() || cpu(Figure::RequestsCpu).is_some());
            prop_assert_ne!(cpu(Figure::LimitsCpu), Some(Amount::ZERO));
        }
    }
}
