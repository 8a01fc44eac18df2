//! The written list: where our definitions judge otherwise than the reference, and why.

use std::collections::BTreeSet;

use crate::cases::{Case, Change};

/// One reason for which we refuse what the reference accepts (the other way round there is none).
pub(crate) struct Difference {
    /// The rule in the spec and what it is for.
    pub(crate) reason: &'static str,
    /// Kinds, places and classes of the cases that it is about.
    pub(crate) cases: &'static [(&'static str, &'static [&'static str], &'static [&'static str])],
}

pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        reason: "A7: a CPU quantity that does not parse, is negative or overflows its thousandths is refused",
        cases: &[("*", &["…/requests/cpu", "…/limits/cpu"], BAD_CPU)],
    },
    Difference {
        reason: "A7: a memory quantity that does not parse, is negative or overflows is refused. 2^63-1 cannot be told \
                 from an overflow, since the API server caps what is larger",
        cases: &[("*", &["…/requests/memory", "…/limits/memory"], BAD_MEMORY)],
    },
    Difference {
        reason: "A7: a quantity has at most 64 characters, so that comparing it in CEL is affordable",
        cases: &[("*", &["…/requests/cpu", "…/limits/cpu", "…/requests/memory", "…/limits/memory"], &["too-long"])],
    },
    Difference {
        reason: "A7: strings that end up in a backend have bounds",
        cases: &[
            (
                "Job",
                &[
                    "/spec/jobClassName",
                    "/spec/task/image",
                    "/spec/task/imagePullSecrets/0/name",
                    "/spec/task/command/0",
                    "/spec/task/args/0",
                    "/spec/task/workingDir",
                    "/spec/task/env/0/value",
                    "/spec/task/env/*/valueFrom/*/name",
                    "/spec/task/env/*/valueFrom/*/key",
                ],
                TOO_LONG,
            ),
            // Its pattern refuses emoji in both.
            ("Job", &["/spec/task/env/0/name"], &["too-long"]),
            ("JobClass", &["/spec/parametersRef/*"], TOO_LONG),
            ("KubernetesExecutionParameters", &["/spec/serviceAccountName", "/spec/runtimeClassName"], TOO_LONG),
            (
                "OpenSandboxExecutionParameters",
                &["/spec/endpoint", "/spec/apiKeySecretRef/*", "/spec/poolRef"],
                TOO_LONG,
            ),
        ],
    },
    Difference {
        reason: "A7: lists that end up in a backend have bounds",
        cases: &[
            (
                "Job",
                &["/spec/task/imagePullSecrets", "/spec/task/command", "/spec/task/args", "/spec/task/env"],
                &["too-many"],
            ),
            (
                "KubernetesExecutionParameters",
                &["/spec/scheduling/nodeSelector", "/spec/scheduling/tolerations"],
                &["too-many"],
            ),
        ],
    },
    Difference {
        reason: "A7: what stands in a status has bounds: 16 conditions, 8 references, and their strings",
        cases: &[
            ("*", &["/status/conditions", "/status/execution/references"], &["too-many"]),
            // Beyond 316 characters the reference refuses it too; the pattern refuses emoji in both.
            ("*", &["/status/conditions/0/type"], &["too-long"]),
            (
                "Job",
                &[
                    "/status/resolvedJobClass/*",
                    "/status/resolvedJobClass/parametersRef/*",
                    "/status/execution/adapter",
                    "/status/execution/references/0/*",
                    "/status/result/reason",
                ],
                TOO_LONG,
            ),
        ],
    },
    Difference {
        reason: "A4: a time in a status has the one form that Kubernetes' clients write: CEL can compare it without ever \
                 failing, which would lock the object. (The API server lets a list pass where a format is asked for.)",
        cases: &[
            (
                "*",
                &["/status/startTime", "/status/completionTime", "/status/conditions/0/lastTransitionTime"],
                &["a-list", "another-zone", "nanoseconds", "small-letters"],
            ),
            ("Job", &["/status/completionTime"], &["at-startTime-in-another-zone"]),
        ],
    },
    Difference {
        reason: "A4: completionTime is not before startTime",
        cases: &[
            ("Job", &["/status/startTime"], &["year-9999"]),
            ("Job", &["/status/completionTime"], &["year-1", "before-startTime"]),
        ],
    },
    Difference {
        reason: "A4: completionTime exists exactly when Succeeded is True or False",
        cases: &[
            ("Job", &["/status/completionTime"], &["null", "absent"]),
            ("Job", &["/status/conditions"], &["null", "absent", "empty", "terminal-is-unknown", "no-outcome"]),
            ("Job", &["/status"], &["only-completionTime"]),
        ],
    },
    Difference { reason: "A4: no result before the end", cases: &[("Job", &["/status"], &["only-an-exit-code"])] },
    Difference {
        reason: "A4: no startTime before Scheduled=True, which needs Accepted=True and an execution",
        cases: &[
            ("Job", &["/status"], &["only-startTime"]),
            ("Job", &["/status/conditions"], &["not-scheduled", "not-accepted"]),
            ("Job", &["/status/execution"], &["null", "absent"]),
        ],
    },
    Difference {
        reason: "C2, A4: Accepted=True is written together with the class and the resources",
        cases: &[("Job", &["/status/resolvedJobClass", "/status/effectiveResources"], &["null", "absent"])],
    },
    Difference {
        reason: "A6: the endpoint never holds credentials, however a URL parser may find them",
        cases: &[(
            "OpenSandboxExecutionParameters",
            &["/spec"],
            &[
                "credentials",
                "a-user",
                "an-empty-user",
                "credentials-over-http",
                "credentials-after-three-slashes",
                "credentials-after-a-backslash",
                "credentials-after-backslashes",
                "credentials-after-one-slash",
                "credentials-without-slashes",
                "credentials-without-scheme",
                "credentials-with-a-line-break",
                "credentials-before-two-at-signs",
            ],
        )],
    },
];

const TOO_LONG: &[&str] = &["too-long", "too-long-in-emoji"];

const BAD_CPU: &[&str] = &[
    "text:9223372036854776",
    "text:9Pi",
    "text:1E",
    "text:7Ei",
    "text:9223372036854775806",
    "text:9223372036854775807",
    "text:9223372036854775808",
    "text:8Ei",
    "text:9Ei",
    "text:1e19",
    "text:1e999",
    "text:1e1.5",
    "text:-1",
    "text:-1m",
    "text:-0.5Gi",
    "text:-9Ei",
    "number:-1",
    "number:9223372036854775807",
];

const BAD_MEMORY: &[&str] = &[
    "text:9223372036854775807",
    "text:9223372036854775808",
    "text:8Ei",
    "text:9Ei",
    "text:1e19",
    "text:1e999",
    "text:1e1.5",
    "text:-1",
    "text:-1m",
    "text:-0.5Gi",
    "text:-9Ei",
    "number:-1",
    "number:9223372036854775807",
];

/// `*` stands for one name or index; a pattern that begins with `…` fits the end of the place.
fn place_matches(pattern: &str, place: &str) -> bool {
    let mut names: Vec<_> = place.split('/').collect();
    let pattern: Vec<_> = match pattern.strip_prefix('…') {
        Some(end) => {
            let end: Vec<_> = end.split('/').skip(1).collect();
            names = names.split_off(names.len().saturating_sub(end.len()));
            end
        }
        None => pattern.split('/').collect(),
    };
    pattern.len() == names.len() && pattern.iter().zip(&names).all(|(one, two)| *one == "*" || one == two)
}

/// Faults of the list, given every case and whether the two definitions judged it differently.
///
/// Of single changes the list must say exactly which differ; a pair may differ only if one of its changes may. Every
/// place and every class in the list must occur, so that nothing stays there that has lost its meaning.
pub(crate) fn check(judged: &[(&Case, bool)]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut used = BTreeSet::new();
    for (case, differs) in judged {
        let kind = case.kind.name();
        let words: Vec<_> = case.changes.iter().flat_map(|change| words_about(kind, change)).collect();
        match (differs, case.changes.len(), words.is_empty()) {
            (true, _, true) => faults.push(format!("{kind} {}: differs, and the list does not say why", case.name())),
            (false, 1, false) => faults.push(format!("{kind} {}: the list says that it differs", case.name())),
            (true, 1, false) => used.extend(words),
            _ => {}
        }
    }
    for entry in DIFFERENCES {
        for (kind, places, classes) in entry.cases {
            for word in places.iter().chain(*classes).filter(|word| !used.contains(&(entry.reason, *kind, **word))) {
                faults.push(format!("no {kind} with {word} differs for this reason: {}", entry.reason));
            }
        }
    }
    faults
}

/// Where the list speaks of a change: (reason, kind as it is written, place or class as it is written).
fn words_about(kind: &str, change: &Change) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut words = Vec::new();
    for entry in DIFFERENCES {
        for (of, places, classes) in entry.cases.iter().filter(|(of, ..)| *of == "*" || *of == kind) {
            let class = classes.iter().find(|class| **class == change.class);
            let place = places.iter().find(|pattern| place_matches(pattern, &change.at));
            if let (Some(place), Some(class)) = (place, class) {
                words.extend([(entry.reason, *of, *place), (entry.reason, *of, *class)]);
            }
        }
    }
    words
}

#[test]
fn a_pattern_fits_whole_names_only() {
    assert!(place_matches("/spec/task/env/*/name", "/spec/task/env/0/name"));
    assert!(!place_matches("/spec/task/env/*", "/spec/task/env/0/name"));
    assert!(place_matches("…/limits/cpu", "/spec/resources/limits/cpu"));
    assert!(!place_matches("…/cpu", "/spec/resources/limits/memory"));
}
