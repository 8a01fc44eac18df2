//! What may happen to an execution, by the cluster or by people.

use super::pod::Exit;

/// What the cluster may do next with an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Event {
    /// A pod is made and its task starts, or a pod that was stuck gets its image.
    Start,
    /// A pod is made whose task cannot start.
    Stick,
    /// The task ends by itself.
    End(Exit),
    /// Its node stops answering: whatever happens there, nothing is heard of it.
    FallSilent,
    /// The control plane notices.
    Notice,
    /// The node answers again, and says what has become of the task.
    Answer,
    /// The native Job's controller counts the pod that is over or lost.
    Count,
    /// It carries a stop out: the task is told to end, and ends with that. On a node that does not answer nobody hears it.
    Kill(Exit),
    /// It has stopped everything, and says so.
    Stopped,
    /// Who heard the last words of a pod that is gone was started anew.
    Forget,
    /// The garbage collector deletes what the gone Job owned.
    Collect,
    /// Somebody strips the finalizer and deletes it, with its pod.
    Vanish,
    /// Somebody suspends it: its pod is deleted and nothing is counted.
    Suspend,
    /// The pod is deleted (a drain) before anybody sees it end.
    LosePod,
    /// The object of a node that does not answer is deleted, whatever the task does there.
    LoseNode,
    /// Somebody deletes it; our finalizer holds it.
    DeleteRequest,
}

impl Event {
    /// Where there is none yet.
    pub(super) fn makes_a_pod(self) -> bool {
        matches!(self, Self::Start | Self::Stick)
    }

    /// Done by people and accidents, not by a cluster that works.
    pub(super) const MEDDLING: [Self; 5] =
        [Self::Vanish, Self::Suspend, Self::LosePod, Self::LoseNode, Self::DeleteRequest];

    /// Takes the pod away without a word on how the task ended.
    pub(super) fn takes_the_pod(self) -> bool {
        matches!(self, Self::Vanish | Self::Suspend | Self::LosePod | Self::LoseNode)
    }
}
