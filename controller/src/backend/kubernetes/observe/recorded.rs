//! What a real kubelet and the real native Job controller (1.36) wrote, and what it means: rows of the table of evidence
//! (spec section 6). `recorded.json` was taken from the audit logs of the suites `product` and `node_matrix`, with only
//! the fields that the adapter reads; UIDs and names of nodes are replaced.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::backend::kubernetes::objects::NativeJob;

/// What each moment means.
const EXPECTED: [(&str, &str); 40] = [
    ("the pod waits for its container", "waits"),
    ("no node takes the pod", "waits"),
    ("a registry without the image", "waits: ImageNotFound"),
    ("the same, backing off", "waits: ImageNotFound"),
    ("a registry that refuses the password", "waits: ImagePullDenied"),
    ("a registry that is asked too often", "waits: ImagePullError"),
    ("a registry that is unavailable", "waits: ImagePullError"),
    ("no registry", "waits: ImagePullError"),
    ("an image that is never pulled", "waits: ImageNotPresent"),
    ("a key that is missing", "waits: ReferenceMissing"),
    ("an image that runs as root where none may", "waits: StartRefused"),
    ("a command that is not there", "StartFailed, never started"),
    ("a container before the task exited with 7", "StartFailed, never started"),
    ("its node has no room for it", "Rejected, never started"),
    ("it runs", "runs"),
    ("it exited with 0", "Completed 0"),
    ("it exited with 0, and was counted", "Completed 0"),
    ("it exited with 3", "ProcessFailed 3"),
    ("it was killed for its memory", "OutOfMemory 137"),
    ("it was killed on the node", "ProcessFailed 137"),
    ("the kubelet was away while it exited with 7", "ProcessFailed 7"),
    ("the runtime was away while it ended", "ResultLost"),
    ("its pod was deleted and it exited with 9", "ProcessFailed 9"),
    // The code that only the watch has shown is not lost with the pod.
    ("its pod was deleted and it exited with 9; the pod is gone", "ProcessFailed 9"),
    ("its pod was deleted and it exited with 0", "Completed 0"),
    ("its pod was deleted by force and it was killed", "ProcessFailed 137"),
    ("its pod was evicted and it exited with 143", "Drained 143"),
    // Somebody else's TERM makes no failure of a success.
    ("its pod was evicted and it exited with 0", "Completed 0"),
    ("the kubelet evicted it for its disk, and it exited with 143", "Evicted 143"),
    ("its pod gave way to a more important one", "Preempted 143"),
    // Another pod might come.
    ("its pod was deleted before a node had it", "released"),
    ("the same, once the native Job has given up", "Rejected, never started"),
    ("the same, and the pod is gone", "Rejected, never started"),
    // From the end of its grace period on, which lies ahead.
    ("it was stopped, and is being ended", "runs, silent"),
    ("it was stopped, and exited with 143", "ProcessFailed 143"),
    // Its code of 137 is made up; our recorded stop makes it its own cause.
    ("it was stopped before its image was pulled", "Rejected, never started"),
    ("its node does not answer", "runs, silent"),
    ("its node was deleted", "unknown"),
    ("its node was deleted, and the native Job has given up", "unknown"),
    ("its node was deleted, the native Job has given up and the pod is gone", "lost"),
];

/// One moment of an execution.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Moment {
    /// What had happened.
    case: String,
    native: NativeJob,
    pod: NativePod,
    /// The pod was deleted; this is how it was at last.
    #[serde(default)]
    gone: bool,
}

/// A phase in one line.
fn in_short(execution: &Execution) -> String {
    let silent = if execution.silence.is_some() { ", silent" } else { "" };
    match &execution.phase {
        Phase::Ended(end) => {
            let code = end.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
            let start = if end.started_at.is_some() { "" } else { ", never started" };
            format!("{}{code}{start}", end.reason)
        }
        Phase::Waiting { failure: Some(failure), .. } => format!("waits: {}", failure.reason()),
        Phase::Waiting { failure: None, .. } => "waits".to_owned(),
        Phase::Running { .. } => format!("runs{silent}"),
        Phase::Prepared => "prepared".to_owned(),
        Phase::Released => "released".to_owned(),
        Phase::Stopped => "stopped".to_owned(),
        Phase::Lost { .. } => "lost".to_owned(),
        Phase::Unknown { .. } => "unknown".to_owned(),
    }
}

#[test]
fn each_recorded_moment_is_read_as_the_table_of_evidence_says() {
    let moments: Vec<Moment> = serde_json::from_str(include_str!("recorded.json")).unwrap();
    let read: BTreeMap<&str, String> = moments
        .iter()
        .map(|moment| {
            let pod = NativePod { gone: moment.gone, ..moment.pod.clone() };
            let sought = Sought { job_uid: "job-uid", recorded: Some("native-uid"), started: false };
            let Observation::Present(execution) = observe(sought, Some(&moment.native), &[&pod]) else {
                panic!("{}: it is there", moment.case)
            };
            (moment.case.as_str(), in_short(&execution))
        })
        .collect();
    let expected = EXPECTED.iter().map(|(case, expected)| (*case, (*expected).to_owned())).collect();
    assert_eq!(read, expected);
    assert_eq!(moments.len(), EXPECTED.len(), "a case stands twice");
}
