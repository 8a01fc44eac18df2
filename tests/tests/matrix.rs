//! The test matrix (spec section 13) and what may befall a container on a real node: which test shows which row.
//!
//! A row that no test shows stands in [`NOT_YET`], with the reason.
#![allow(clippy::unwrap_used)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// A row, and its tests: `FILE FUNCTION`, the file below the folder that the list names.
type Row = (&'static str, &'static [&'static str]);

/// On real servers, by the suites in `tests/tests`.
const SHOWN: &[Row] = &[
    ("normal exit 0", &["product/ends.rs a_task_that_exits_0_is_reported_with_everything_that_is_known_of_it"]),
    ("non-zero exit", &["product/ends.rs a_task_that_fails_says_with_which_code"]),
    ("exit 143 by itself", &["node_matrix/ends.rs a_task_that_exits_143_by_itself_has_failed_with_it"]),
    (
        "killed by a signal",
        &["node_matrix/ends.rs a_task_that_is_killed_on_the_node_has_failed_and_was_not_out_of_memory"],
    ),
    ("out of memory", &["product/ends.rs a_task_that_the_kernel_kills_for_its_memory_is_out_of_memory"]),
    ("command not found", &["product/ends.rs a_command_that_does_not_exist_fails_without_having_started"]),
    ("refused by the kubelet", &["node_matrix/kubelet.rs a_pod_that_its_node_has_no_room_for_was_rejected"]),
    ("evicted by the kubelet", &["node_matrix/kubelet.rs a_task_that_the_kubelet_evicts_for_its_disk_was_evicted"]),
    (
        "init container that the cluster adds",
        &[
            "node_matrix/injected.rs a_container_before_the_task_that_fails_is_a_start_that_failed",
            "node_matrix/injected.rs a_container_before_the_task_that_takes_its_time_is_waited_for_and_said",
        ],
    ),
    ("class created later", &["product/defaults.rs a_job_waits_for_the_class_that_it_names"]),
    (
        "Secret/ConfigMap/key created later",
        &[
            "product/missing_references.rs a_job_waits_for_its_secret_and_then_for_the_key_in_it",
            "node_matrix/references.rs a_key_that_goes_after_the_acceptance_is_awaited_and_the_job_runs_once",
        ],
    ),
    (
        "pull or provisioning failure without startTime",
        &[
            "node_matrix/pulls.rs a_wrong_password_fails_the_job_after_its_grace",
            "node_matrix/pulls.rs an_image_that_the_registry_does_not_have_fails_the_job_after_its_grace",
            "product/stalled.rs an_image_that_is_not_there_fails_after_its_grace_with_the_words_of_the_kubelet",
            "product/stalled.rs an_image_that_runs_as_root_where_none_may_fails_as_it_cannot_be_started",
        ],
    ),
    (
        "registry that fails for a while",
        &[
            "node_matrix/pulls.rs a_registry_that_refuses_too_many_requests_for_a_while_costs_only_time",
            "node_matrix/pulls.rs a_registry_that_is_unavailable_for_a_while_costs_only_time",
            "node_matrix/pulls.rs a_registry_that_is_silent_for_a_while_costs_only_time",
        ],
    ),
    ("pull with a password", &["node_matrix/pulls.rs an_image_is_pulled_with_the_password_of_its_secret"]),
    (
        "crash after create before status",
        &[
            "faults/crash_points.rs a_life_ends_as_if_nothing_had_happened_whichever_request_meets_a_crash_or_loses_its_answer",
            "product/at_most_once.rs each_job_runs_exactly_once_while_two_processes_are_killed_again_and_again",
        ],
    ),
    (
        "restart in every non-terminal state",
        &[
            "faults/crash_points.rs a_life_ends_as_if_nothing_had_happened_whichever_request_meets_a_crash_or_loses_its_answer",
            "product/at_most_once.rs each_job_runs_exactly_once_while_two_processes_are_killed_again_and_again",
        ],
    ),
    (
        "create/observe timeout → unknown, no TTL",
        &["node_matrix/node.rs a_task_on_a_silent_node_has_an_unknown_result_until_the_node_tells_its_end"],
    ),
    (
        "unknown → found running",
        &["node_matrix/node.rs a_task_on_a_silent_node_has_an_unknown_result_until_the_node_tells_that_it_runs"],
    ),
    (
        "unknown → administrator → BackendLost",
        &["product/rulings.rs a_lost_backend_is_ruled_by_an_administrator_and_the_job_ends_with_his_words"],
    ),
    (
        "cancel while resolving/scheduling/starting/running",
        &[
            "product/cancel.rs a_job_that_is_cancelled_before_it_is_accepted_never_runs",
            "product/cancel.rs a_job_that_is_cancelled_before_it_is_scheduled_never_runs",
            "product/refused_pods.rs a_namespace_whose_quota_is_full_says_so_and_the_job_can_be_cancelled",
            "product/waiting.rs a_job_whose_image_is_missing_says_so_and_can_be_cancelled",
            "product/cancel.rs a_running_job_that_is_cancelled_and_exits_143_is_cancelled",
        ],
    ),
    (
        "our own stop with exit 0, with 143",
        &[
            "product/cancel.rs a_running_job_that_is_cancelled_and_exits_0_is_cancelled",
            "product/cancel.rs a_running_job_that_is_cancelled_and_exits_143_is_cancelled",
        ],
    ),
    ("deadline", &["product/deadline.rs a_task_that_outlives_its_deadline_is_stopped_and_says_so"]),
    (
        "delete in every state",
        &[
            "product/deletion.rs a_job_that_waits_for_its_class_goes_at_once",
            "product/deletion.rs a_job_that_is_accepted_and_not_scheduled_goes_at_once",
            "product/rulings.rs a_job_in_doubt_that_is_cancelled_and_deleted_waits_for_a_ruling",
            "product/deletion.rs jobs_deleted_right_after_they_were_made_leave_nothing",
            "product/deletion.rs a_running_job_is_stopped_before_it_goes_and_who_waits_for_its_end_is_answered",
            "product/deletion.rs a_finished_job_takes_its_native_job_and_its_pod_with_it",
        ],
    ),
    (
        "namespace deleted with running Jobs and what they refer to",
        &["node_matrix/namespaces.rs a_namespace_goes_with_its_running_jobs_and_what_they_refer_to"],
    ),
    (
        "backend away during delete",
        &["node_matrix/node.rs a_job_that_is_deleted_while_the_kubelet_is_away_goes_once_its_task_has_stopped"],
    ),
    ("TTL for three terminal states", &["product/ttl.rs each_of_the_three_ends_has_its_ttl"]),
    (
        "restart while waiting for TTL",
        &["faults/ttl.rs each_end_has_its_ttl_and_none_is_forgotten_or_early_while_the_process_is_away"],
    ),
    (
        "TTL extended near expiry",
        &[
            "faults/ttl.rs no_accepted_edit_of_a_ttl_near_its_expiry_is_lost",
            "product/ttl.rs a_ttl_that_is_extended_before_its_time_wins_and_one_that_is_shortened_too",
        ],
    ),
    (
        "same name, new UID",
        &[
            "product/ttl.rs a_job_made_anew_under_the_same_name_has_nothing_of_the_old_one",
            "node_matrix/namespaces.rs a_job_of_the_same_name_shares_nothing_with_the_one_before",
        ],
    ),
    ("immutable fields and un-cancel", &["schema/updates.rs every_update_in_the_tables_is_judged_as_they_say"]),
    (
        "explicit > namespace > global default",
        &["product/defaults.rs a_named_class_wins_over_that_of_the_namespace_and_that_over_that_of_the_cluster"],
    ),
    (
        "zero and many defaults",
        &[
            "product/defaults.rs a_job_without_any_default_is_admitted_with_a_warning_and_runs_once_there_is_one",
            "product/defaults.rs several_defaults_are_never_chosen_from",
        ],
    ),
    (
        "allowed/denied namespace and label change after acceptance",
        &[
            "product/refusals.rs a_namespace_that_is_the_only_fault_is_forbidden_and_beside_others_one_more_cause",
            "product/pinned_class.rs a_label_that_its_namespace_loses_does_not_reach_a_job_that_is_accepted",
        ],
    ),
    (
        "unsupported controller, wrong parameters kind",
        &[
            "product/classes.rs a_class_of_an_adapter_that_is_not_here_is_admitted_with_a_warning_and_not_accepted",
            "product/classes.rs a_class_that_contradicts_itself_is_refused_with_every_fault",
        ],
    ),
    (
        "parameters late, re-created",
        &[
            "product/classes.rs a_class_and_its_jobs_wait_for_its_parameters",
            "product/pinned_class.rs parameters_that_are_made_anew_do_not_take_over_a_job_of_the_old_ones",
        ],
    ),
    (
        "class edit leaves accepted Jobs alone",
        &["product/pinned_class.rs an_edit_of_the_class_does_not_reach_a_job_that_is_accepted"],
    ),
    (
        "Ready=False blocks only starts",
        &["product/classes.rs a_class_that_becomes_unready_starts_nothing_new_and_its_running_jobs_go_on"],
    ),
    (
        "ServiceAccount/RuntimeClass missing, no fallback",
        &[
            "node_matrix/namespaces.rs a_missing_service_account_is_awaited",
            "product/classes.rs a_class_whose_runtime_class_is_missing_accepts_jobs_and_starts_none",
        ],
    ),
    (
        "quota full, pods refused",
        &[
            "product/refused_pods.rs a_namespace_whose_quota_is_full_says_so_and_the_job_can_be_cancelled",
            "node_matrix/namespaces.rs a_quota_of_native_jobs_that_is_full_says_so_and_the_job_runs_once_it_is_raised",
            "node_matrix/namespaces.rs a_task_that_pod_security_refuses_says_so_and_runs_once_it_may",
        ],
    ),
    (
        "runAsNonRoot in a restricted namespace",
        &["product/pod_security.rs a_class_that_runs_as_non_root_works_in_a_restricted_namespace"],
    ),
    (
        "class deletion blocked, then free",
        &["product/protection.rs a_class_that_is_deleted_waits_for_its_jobs_says_for_which_and_accepts_no_others"],
    ),
    (
        "re-created class or parameters never hijack",
        &[
            "product/pinned_class.rs a_class_that_is_made_anew_does_not_take_over_a_job_of_the_old_one",
            "product/pinned_class.rs parameters_that_are_made_anew_do_not_take_over_a_job_of_the_old_ones",
        ],
    ),
    (
        "finalizer missing or dropped by replace",
        &[
            "product/webhook_away.rs a_job_whose_finalizer_was_lost_gets_it_back_before_anything_is_started",
            "product/webhook_away.rs the_finalizer_is_there_from_creation_on_and_a_replace_without_it_keeps_it",
        ],
    ),
    (
        "--cascade=orphan",
        &[
            "product/foreign_hands.rs a_native_job_without_its_owner_is_still_ours_by_its_recorded_uid",
            "product/foreign_hands.rs a_pod_that_somebody_orphaned_is_still_ours_and_waited_for_until_somebody_deletes_it",
            "node_matrix/namespaces.rs a_job_that_is_deleted_with_its_children_orphaned_leaves_nothing_running",
        ],
    ),
    (
        "native Job left behind by a release",
        &[
            "product/rulings.rs a_job_that_is_released_goes_without_waiting_for_its_task",
            "product/foreign_hands.rs a_native_job_whose_job_was_forced_away_is_stopped_and_swept",
        ],
    ),
    ("never-bound pod deleted", &["node_matrix/pods.rs a_pod_that_is_deleted_before_a_node_took_it_was_rejected"]),
    (
        "pod deleted, also by force",
        &[
            "node_matrix/pods.rs a_task_whose_pod_is_deleted_and_that_exits_0_has_succeeded",
            "node_matrix/pods.rs a_task_whose_pod_is_deleted_and_that_exits_9_has_failed_with_it",
            "node_matrix/pods.rs a_task_whose_pod_is_deleted_by_force_has_failed_with_the_code_of_its_end",
        ],
    ),
    (
        "evicted, drained, preempted",
        &[
            "node_matrix/pods.rs a_task_whose_pod_is_evicted_and_that_exits_0_has_succeeded",
            "node_matrix/pods.rs a_task_whose_pod_is_evicted_and_that_exits_143_was_drained",
            "node_matrix/node.rs a_drained_task_that_exits_0_has_succeeded_and_one_that_does_not_was_drained",
            "node_matrix/node.rs a_task_that_gives_way_to_a_more_important_pod_was_preempted",
        ],
    ),
    (
        "kubelet away while the task ends",
        &["node_matrix/node.rs an_end_while_the_kubelet_is_away_is_told_as_it_was_once_it_is_back"],
    ),
    (
        "runtime away while the task ends",
        &[
            "node_matrix/node.rs an_end_while_the_runtime_is_away_is_a_result_that_is_lost",
            "node_matrix/node.rs a_task_that_ends_with_its_whole_node_is_a_result_that_is_lost",
        ],
    ),
    ("node object deleted", &["node_matrix/node.rs a_task_whose_node_object_is_deleted_has_an_unknown_result"]),
];

/// Where a real cluster would show it only by luck: by tests of what decides; below the root of the repository.
const DECIDED: &[Row] = &[
    ("repeated and duplicate events", &["model/src/life/tests.rs two_controllers_survive_stores_that_stop"]),
    (
        "cancel races success",
        &[
            "controller/src/job/decide/tests/ending.rs an_end_before_our_stop_stands_and_a_later_one_is_the_cause_of_the_stop",
        ],
    ),
    (
        "our own stop with the pod gone",
        &["controller/src/job/decide/tests/ending.rs what_is_gone_after_our_stop_is_the_recorded_cause"],
    ),
    (
        "defaults/min/max/request>limit/quantity edges",
        &[
            "crds/src/rules/resources/tests.rs given_wins_over_default_and_an_absent_request_takes_the_limit",
            "crds/src/rules/resources/tests.rs bounds_are_inclusive_and_compare_by_value",
            "crds/src/rules/resources/tests.rs a_request_over_its_limit_is_refused_whoever_gave_them",
        ],
    ),
    (
        "skewed node clock",
        &[
            "controller/src/job/decide/tests.rs a_start_time_lies_between_creation_and_now_whatever_the_nodes_clock_says",
            "controller/src/job/decide/tests.rs an_end_is_told_at_our_time_whatever_the_nodes_clock_says",
        ],
    ),
];

/// Rows without a test, and why.
const NOT_YET: &[(&str, &str)] = &[
    ("two references stable and free of credentials", "the OpenSandbox adapter"),
    ("API key missing, rotated, backend recovering", "the OpenSandbox adapter"),
    ("secret env / image auth forbidden", "the OpenSandbox adapter; the webhook's part is in product/settings.rs"),
];

#[test]
fn every_test_that_a_row_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = [(SHOWN, root.join("tests/tests")), (DECIDED, root.to_owned())];
    let mut sources = BTreeMap::new();
    let mut missing = vec![];
    for (rows, folder) in folders {
        for (row, tests) in rows {
            assert!(!tests.is_empty(), "{row}: no test");
            for test in *tests {
                let (file, function) = test.split_once(' ').unwrap();
                let source =
                    sources.entry(file).or_insert_with(|| fs::read_to_string(folder.join(file)).unwrap_or_default());
                if !source.contains(&format!("fn {function}(")) {
                    missing.push(format!("{row}: {test}"));
                }
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_row_stands_once() {
    let shown = SHOWN.iter().chain(DECIDED).map(|(row, _)| *row);
    let all: Vec<&str> = shown.chain(NOT_YET.iter().map(|(row, _)| *row)).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}
