//! What `kubectl explain` and `kubectl apply` make of our definitions (A7, A8).

use anyhow::ensure;
use ayatori_tests::Cluster;
use serde_json::Value;

use crate::{
    kinds::{Kind, schema_of},
    server,
};

/// Client-side apply keeps the whole object in an annotation, and all annotations have this many bytes.
const ANNOTATIONS: usize = 256 * 1024;

/// The fields without a sentence about them.
fn unexplained(schema: &Value, field: &str, found: &mut Vec<String>) {
    let properties = schema["properties"].as_object();
    for (name, inner) in properties.into_iter().flatten() {
        let at = format!("{field}.{name}");
        // `metadata` may not have one in a definition; it and the two others are Kubernetes' own.
        if !(field.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str())) {
            if !is_a_sentence(inner["description"].as_str().unwrap_or_default()) {
                found.push(at.clone());
            }
            unexplained(inner, &at, found);
        }
    }
    for inner in [&schema["items"], &schema["additionalProperties"]] {
        if inner.is_object() {
            unexplained(inner, &format!("{field}[]"), found);
        }
    }
}

/// Several words, not only the field's name said again. (Some of Kubernetes' own sentences lack their full stop.)
fn is_a_sentence(text: &str) -> bool {
    let words = text.split_whitespace().count();
    words >= 5 || (words >= 2 && text.trim_end().ends_with('.'))
}

#[test]
fn every_field_has_a_sentence_about_it() {
    for kind in Kind::ALL {
        let mut found = Vec::new();
        assert!(is_a_sentence(kind.schema().unwrap()["description"].as_str().unwrap_or_default()), "{kind:?} itself");
        unexplained(&kind.schema().unwrap(), "", &mut found);
        assert_eq!(found, Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn a_class_says_that_an_absent_or_empty_selector_allows_all_namespaces() {
    let description =
        &Kind::JobClass.schema().unwrap()["properties"]["spec"]["properties"]["allowedNamespaces"]["description"];
    assert!(description.as_str().unwrap().contains("Absent or empty allows all namespaces"), "{description}");
}

fn kubectl(cluster: &Cluster, arguments: &[&str]) -> anyhow::Result<String> {
    let output = cluster.kubectl().args(arguments).output()?;
    ensure!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_explain_knows_every_field() -> anyhow::Result<()> {
    let cluster = server::our_cluster().await?;
    for kind in Kind::ALL {
        let resource = format!("{}.{}", kind.file().trim_end_matches(".yaml"), ayatori_crds::names::GROUP);
        let text = kubectl(cluster, &["explain", &resource, "--recursive"])?;
        let told: Vec<_> = text.lines().filter_map(|line| line.split_once('\t')).map(|(name, _)| name.trim()).collect();
        for field in crate::fields::fields(&kind.schema().unwrap()) {
            let name = field.rsplit('.').next().unwrap_or_default();
            assert!(name.contains(['[', '{']) || told.contains(&name), "{resource}: {field} is missing in\n{text}");
        }
    }
    let text = kubectl(cluster, &["explain", "ajob.spec.task.env.valueFrom.secretKeyRef.optional"])?;
    assert!(text.contains("FIELD: optional <boolean>"), "{text}");
    assert!(text.contains("Whether the variable is simply left out"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn client_side_apply_takes_the_generated_files() -> anyhow::Result<()> {
    let cluster = server::our_cluster().await?;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crds/generated");
    for kind in Kind::ALL {
        let file = format!("{folder}/{}", kind.file());
        let crd: Value = serde_saphyr::from_str(std::fs::read_to_string(&file)?.split_once("---").unwrap().1)?;
        assert_eq!(schema_of(&crd), kind.schema().unwrap(), "{file} is not what the code gives");
        assert!(serde_json::to_vec(&crd)?.len() < ANNOTATIONS / 2, "{file} is near the limit");
        kubectl(cluster, &["apply", "--server-side=false", "-f", &file])?;
        let again = kubectl(cluster, &["apply", "--server-side=false", "-f", &file])?;
        assert!(again.trim_end().ends_with("unchanged"), "{again}");
    }
    Ok(())
}
