//! What the webhook refuses, created where no webhook sees it (B10): the controller finds the same faults and says them
//! in the object's conditions.

use anyhow::{Context, ensure};
use ayatori_tests::{api::usable_classes::IN_A_CONDITION, eventually};
use futures::{StreamExt, stream};

use crate::{
    manifests,
    theme::{Case, Send},
    world::{AT_ONCE, BOUND, World},
};

/// Longest message of a condition that is written.
const MESSAGE: usize = 1024;

/// What is asked before the rest of the rules: while that is awaited, what the webhook refuses is not told yet.
const AWAITED: [&str; 3] = ["NoDefaultJobClass", "JobClassNotFound", "JobClassNotAccepted"];

/// Whether a case is to be looked at: a creation that the webhook refuses.
pub(crate) fn is_due(case: &Case) -> bool {
    matches!(case.send, Send::Create(_)) && case.expect.is_refused_by_webhook()
}

/// Creates them all, and compares what becomes of them.
pub(crate) async fn judge(world: &World, cases: &[&Case]) -> anyhow::Result<Vec<String>> {
    let judge = stream::iter(cases).map(|case| async move {
        let outcome = one(world, case).await;
        outcome.err().map(|error| format!("{:?}, unseen: {error:#}", case.say))
    });
    Ok(judge.buffer_unordered(AT_ONCE).filter_map(|fault| async { fault }).collect().await)
}

async fn one(world: &World, case: &Case) -> anyhow::Result<()> {
    let wanted = case.unseen.as_deref().context("the case does not say what becomes of it")?;
    let Send::Create(change) = &case.send else { return Ok(()) };
    let made = world.make(&manifests::changed(case.kind, &case.name(), change)?).await?.body;
    if wanted == "none" {
        return Ok(());
    }
    let (reason, message) = eventually("it is not accepted", BOUND, async || {
        let object = world.get(&made).await?;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let accepted = conditions.into_iter().find(|one| one["type"] == "Accepted").context("nobody has judged it")?;
        ensure!(accepted["status"] == "False", "it is accepted: {accepted}");
        let word = |field: &str| accepted[field].as_str().unwrap_or_default().to_owned();
        Ok((word("reason"), word("message")))
    })
    .await?;
    ensure!(reason == wanted, "wanted {wanted}, got {reason}: {message}");
    ensure!(
        AWAITED.contains(&wanted) || tells_the_same(case, &message),
        "the webhook says {:?}, the condition {message:?}",
        case.expect
    );
    Ok(())
}

/// Whether a message says nothing but what the webhook said, in its order: all faults of the first rule that fails.
fn tells_the_same(case: &Case, message: &str) -> bool {
    let faults = &case.expect.refused;
    let cut = |text: &str| {
        text.chars()
            .scan(0, |length, c| {
                *length += c.len_utf8();
                (*length <= MESSAGE).then_some(c)
            })
            .collect::<String>()
    };
    let of_the_namespace = faults.iter().filter_map(|fault| fault.strip_prefix("spec.jobClassName: Forbidden: "));
    let of_the_namespace = of_the_namespace.chain(case.expect.forbidden.as_deref());
    let (offer, in_a_condition) = IN_A_CONDITION;
    let runs = (0..faults.len()).flat_map(|from| (from + 1..=faults.len()).map(move |to| faults[from..to].join("; ")));
    runs.map(|run| cut(&run)).any(|run| run == message)
        || of_the_namespace.map(|one| one.replace(offer, in_a_condition)).any(|one| one == message)
}
