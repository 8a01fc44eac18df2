#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
//! What real kubelets, registries and losses show, and what ayatori makes of it (spec sections 5 and 6; the rows of the
//! test matrix, section 13, that are about containers on a real node). `tests/matrix.rs` says which row is where.
//!
//! Most of these tests wait for the cluster, so they are rows: see [`ayatori_tests::rows`]. One lane shares a cluster,
//! with a namespace for each row; what hurts the node has a second cluster, one row at a time.

mod ends;
mod injected;
mod kubelet;
mod namespaces;
mod node;
mod pods;
mod pulls;
mod references;
mod registries;

use std::process::ExitCode;

use ayatori_tests::{
    rows,
    rows::{Lane, main as run},
};

/// Each row has a Job or two, and a pod costs about a third of a second of a processor.
const SHARED_AT_ONCE: usize = 12;

fn main() -> ExitCode {
    let shared = rows![
        // The namespace controller waits half of the pods' grace period before it looks again.
        namespaces::a_namespace_goes_with_its_running_jobs_and_what_they_refer_to,
        // A pull that has failed is tried again by the kubelet after 25 to 30 s.
        pulls::a_registry_that_refuses_too_many_requests_for_a_while_costs_only_time,
        pulls::a_registry_that_is_unavailable_for_a_while_costs_only_time,
        // The kubelet looks at what volumes hold each 10 s, and tells of it a minute later.
        kubelet::a_task_that_the_kubelet_evicts_for_its_disk_was_evicted,
        namespaces::a_quota_of_native_jobs_that_is_full_says_so_and_the_job_runs_once_it_is_raised,
        references::a_key_that_goes_after_the_acceptance_is_awaited_and_the_job_runs_once,
        pods::a_pod_that_is_deleted_before_a_node_took_it_was_rejected,
        pulls::a_registry_that_is_silent_for_a_while_costs_only_time,
        pulls::an_image_is_pulled_with_the_password_of_its_secret,
        pulls::a_wrong_password_fails_the_job_after_its_grace,
        pulls::an_image_that_the_registry_does_not_have_fails_the_job_after_its_grace,
        namespaces::a_task_that_pod_security_refuses_says_so_and_runs_once_it_may,
        namespaces::a_missing_service_account_is_awaited,
        namespaces::a_job_of_the_same_name_shares_nothing_with_the_one_before,
        namespaces::a_job_that_is_deleted_with_its_children_orphaned_leaves_nothing_running,
        pods::a_task_whose_pod_is_deleted_and_that_exits_0_has_succeeded,
        pods::a_task_whose_pod_is_deleted_and_that_exits_9_has_failed_with_it,
        pods::a_task_whose_pod_is_deleted_by_force_has_failed_with_the_code_of_its_end,
        pods::a_task_whose_pod_is_evicted_and_that_exits_0_has_succeeded,
        pods::a_task_whose_pod_is_evicted_and_that_exits_143_was_drained,
        kubelet::a_pod_that_its_node_has_no_room_for_was_rejected,
        injected::a_container_before_the_task_that_fails_is_a_start_that_failed,
        injected::a_container_before_the_task_that_takes_its_time_is_waited_for_and_said,
        ends::a_task_that_exits_143_by_itself_has_failed_with_it,
        ends::a_task_that_is_killed_on_the_node_has_failed_and_was_not_out_of_memory,
    ];
    let alone = rows![
        node::a_drained_task_that_exits_0_has_succeeded_and_one_that_does_not_was_drained,
        node::a_task_that_gives_way_to_a_more_important_pod_was_preempted,
        node::an_end_while_the_kubelet_is_away_is_told_as_it_was_once_it_is_back,
        node::an_end_while_the_runtime_is_away_is_a_result_that_is_lost,
        node::a_job_that_is_deleted_while_the_kubelet_is_away_goes_once_its_task_has_stopped,
        node::a_task_on_a_silent_node_has_an_unknown_result_until_the_node_tells_its_end,
        node::a_task_on_a_silent_node_has_an_unknown_result_until_the_node_tells_that_it_runs
            => "the control plane waits 50 s before it believes that a node is silent",
        node::a_task_that_ends_with_its_whole_node_is_a_result_that_is_lost
            => "it is the row before once more, with everything on the node killed",
        node::a_task_whose_node_object_is_deleted_has_an_unknown_result
            => "the pod garbage collector waits 40 s before it believes that a node is gone",
    ];
    run(vec![Lane { at_once: SHARED_AT_ONCE, rows: shared }, Lane { at_once: 1, rows: alone }])
}
